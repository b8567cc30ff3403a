"""Peer: Python's websockets on uvloop, with its own broadcast()."""

import asyncio

import uvloop
from websockets.asyncio.server import broadcast, serve

everybody = set()


async def attend(socket):
    everybody.add(socket)
    try:
        async for text in socket:
            broadcast(everybody, text)
    finally:
        everybody.discard(socket)


async def main():
    quiet = {"compression": None, "ping_interval": None, "backlog": 4096}
    async with serve(attend, "127.0.0.1", 0, **quiet) as server:
        print("127.0.0.1:%d" % server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


uvloop.run(main())
