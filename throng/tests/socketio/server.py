"""A room of python-socketio in which messages carry a picture: what throng's tests talk to."""

import sys

import socketio
from aiohttp import web

PICTURE = bytes([0, 1, 2, 255])

sio = socketio.AsyncServer(async_mode="aiohttp", ping_interval=1, ping_timeout=5)
app = web.Application()
sio.attach(app)


@sio.event
async def join(sid, room):
    await sio.enter_room(sid, room)
    await sio.emit("joined", room, room=room, skip_sid=sid)
    return {"ok": True}


@sio.event
async def leave(sid, room):
    await sio.leave_room(sid, room)


@sio.event
async def message(sid, said):
    await sio.emit("message", {**said, "picture": PICTURE}, room=said["room"], skip_sid=sid)
    return {"ok": True}


@sio.event
async def history(sid, room, limit):
    return "refused by us" if limit == 20 else []


web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
