"""A token-authenticated chat: FastAPI, SQLite, argon2, one process, one event loop.

Of throng's own writing, with the behavior of a published chat: a broadcast is encoded once and
sent to everybody in the channel, the sender included; messages are written to the database in
batches; a `perf_test` message is answered on the same way as everything else.
"""

import asyncio
import os
import secrets
import sqlite3
import time
from contextlib import asynccontextmanager
from datetime import datetime, timezone

import psutil
import uvicorn
from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError
from fastapi import FastAPI, Form, HTTPException, WebSocket, WebSocketDisconnect

from codec import named

CHANNELS = [f"test_{n}" for n in range(10)]
# Messages of a channel's past that are sent on request.
HISTORY_MAX = 50
# Longest message and name, characters.
CONTENT_MAX, NAME_MAX = 4096, 100
# Smoothing of the message volume: its weight, and the shortest period, seconds.
ALPHA, PERIOD_MIN = 0.5, 0.25

SET = {name: os.environ.get(f"CHAT_{name}", "") for name in
       ("PORT", "DB", "CODEC", "JSON", "DEFLATE", "LOOP", "CPU", "ACCOUNTS", "HASHING")}


class Store:
    """The database: accounts, subscriptions, messages. Called from one thread at a time."""

    def __init__(self, path, accounts):
        self.db = sqlite3.connect(path, check_same_thread=False)
        self.db.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
            "CREATE TABLE IF NOT EXISTS users(name TEXT PRIMARY KEY, hash TEXT);"
            "CREATE TABLE IF NOT EXISTS subscriptions(name TEXT, channel TEXT,"
            " PRIMARY KEY(name, channel));"
            "CREATE TABLE IF NOT EXISTS messages(id INTEGER PRIMARY KEY, channel TEXT,"
            " username TEXT, content TEXT, sent_at TEXT);"
            "CREATE INDEX IF NOT EXISTS by_channel ON messages(channel, id);"
        )
        # One hash for all accounts of a test: to check it costs the same, to make it takes long.
        hashed = PasswordHasher().hash("secret")
        rows = [(f"user{n}", hashed) for n in range(accounts)]
        self.db.executemany("INSERT OR IGNORE INTO users VALUES(?, ?)", rows)
        self.db.commit()

    def password_hash(self, name):
        row = self.db.execute("SELECT hash FROM users WHERE name = ?", (name,)).fetchone()
        return row and row[0]

    def channels(self, name):
        rows = self.db.execute("SELECT channel FROM subscriptions WHERE name = ?", (name,))
        return [row[0] for row in rows]

    def subscribe(self, name, channel):
        self.db.execute("INSERT OR IGNORE INTO subscriptions VALUES(?, ?)", (name, channel))
        self.db.commit()

    def unsubscribe(self, name, channel):
        query = "DELETE FROM subscriptions WHERE name = ? AND channel = ?"
        self.db.execute(query, (name, channel))
        self.db.commit()

    def keep(self, batch):
        query = "INSERT INTO messages(channel, username, content, sent_at) VALUES(?, ?, ?, ?)"
        self.db.executemany(query, batch)
        self.db.commit()

    def past(self, channel):
        query = ("SELECT username, content FROM messages WHERE channel = ?"
                 " ORDER BY id DESC LIMIT ?")
        rows = self.db.execute(query, (channel, HISTORY_MAX)).fetchall()
        return [f"{name}: {content}" for name, content in reversed(rows)]


class Chat:
    """Who is where, and what is said."""

    def __init__(self):
        self.codec = named(SET["CODEC"], SET["JSON"])
        self.store = Store(SET["DB"] or "chat.db", int(SET["ACCOUNTS"] or "1000"))
        self.hasher = PasswordHasher()
        self.tokens = {}
        self.people = {}
        self.channels = {channel: {} for channel in CHANNELS}
        self.cache = []
        self.volume, self.adjusted, self.asked = 0, 0.0, time.monotonic()
        self.counts = {"logins": 0, "messages": 0, "deliveries": 0}

    async def send(self, socket, data):
        try:
            await (socket.send_text(data) if self.codec.is_text else socket.send_bytes(data))
        except (RuntimeError, WebSocketDisconnect):
            # Somebody who is just leaving.
            pass

    async def tell(self, socket, **message):
        await self.send(socket, self.codec.encode(message))

    async def broadcast(self, channel, message):
        data = self.codec.encode(message)
        everybody = list(self.channels[channel].items())
        await asyncio.gather(*(self.deliver(channel, *member, data) for member in everybody))

    async def deliver(self, channel, name, socket, data):
        # A task of a broadcast begins later than the broadcast. Whoever has left meanwhile has been
        # told so and gets nothing behind that.
        if self.channels[channel].get(name) is socket:
            self.volume += 1
            self.counts["deliveries"] += 1
            await self.send(socket, data)

    async def message(self, socket, name, said):
        channel, content = said.get("channel"), said.get("content", "")
        if name not in self.channels.get(channel, ()) or len(content) > CONTENT_MAX:
            return await self.tell(socket, event="error", content="not in that channel")
        now = datetime.now(timezone.utc).isoformat()
        self.counts["messages"] += 1
        self.cache.append((channel, name, content, now))
        answer = {"event": "message", "channel": channel, "username": name,
                  "content": content, "sent_at": now}
        await self.broadcast(channel, answer)

    async def join(self, socket, name, said):
        channel = said.get("channel")
        if channel in self.channels:
            self.store.subscribe(name, channel)
            self.channels[channel][name] = socket
            await self.tell(socket, event="channel_join", channel=channel, username=name)

    async def leave(self, socket, name, said):
        channel = said.get("channel")
        if channel in self.channels:
            self.store.unsubscribe(name, channel)
            self.channels[channel].pop(name, None)
            await self.tell(socket, event="channel_leave", channel=channel, username=name)

    async def history(self, socket, _, said):
        channel = said.get("channel")
        past = self.store.past(channel)
        await self.tell(socket, event="message_history", channel=channel, data=past)

    async def perf_test(self, socket, _, said):
        now = time.monotonic()
        period = max(now - self.asked, PERIOD_MIN)
        self.adjusted += ALPHA * (self.volume / period - self.adjusted)
        await self.tell(
            socket, event="perf_test", perf_test_id=str(said.get("perf_test_id", "")),
            cpu_load=psutil.cpu_percent(percpu=True),
            memory_usage=psutil.virtual_memory().percent,
            active_connections=len(self.people), message_volume=self.volume,
            mv_period=period, mv_adjusted=self.adjusted)
        self.volume, self.asked = 0, now

    async def talk(self, socket, name):
        verbs = {"message": self.message, "channel_join": self.join, "channel_leave": self.leave,
                 "message_history": self.history, "perf_test": self.perf_test}
        while True:
            data = await (socket.receive_text() if self.codec.is_text else socket.receive_bytes())
            said = self.codec.decode(data)
            verb = verbs.get(said.get("event"))
            if verb:
                await verb(socket, name, said)

    async def keep_all(self):
        """Writes what was said once a second."""
        while True:
            await asyncio.sleep(1)
            batch, self.cache = self.cache, []
            if batch:
                await asyncio.to_thread(self.store.keep, batch)


@asynccontextmanager
async def alive(_):
    """What runs as long as the server does."""
    task = asyncio.create_task(chat.keep_all())
    yield
    task.cancel()


chat = Chat()
app = FastAPI(lifespan=alive)


def check(name, password):
    hashed = chat.store.password_hash(name)
    try:
        return bool(hashed) and chat.hasher.verify(hashed, password)
    except VerifyMismatchError:
        return False


@app.post("/auth/token")
async def token(username: str = Form(max_length=NAME_MAX), password: str = Form(max_length=100)):
    # In the loop, as published, a login stops everybody for as long as it takes.
    if SET["HASHING"] == "thread":
        is_fine = await asyncio.to_thread(check, username, password)
    else:
        is_fine = check(username, password)
    if not is_fine:
        raise HTTPException(401, "wrong name or password")
    found = secrets.token_urlsafe(24)
    chat.tokens[found] = username
    chat.counts["logins"] += 1
    return {"access_token": found, "token_type": "bearer"}


@app.websocket("/ws")
async def connect(socket: WebSocket):
    scheme, _, given = socket.headers.get("authorization", "").partition(" ")
    name = chat.tokens.get(given) if scheme.lower() == "bearer" else None
    if name is None:
        return await socket.close(1008)
    await socket.accept()
    chat.people[name] = socket
    channels = chat.store.channels(name)
    for channel in channels:
        chat.channels[channel][name] = socket
    try:
        await chat.tell(socket, event="channel_subscriptions", data=channels)
        await chat.talk(socket, name)
    except WebSocketDisconnect:
        pass
    finally:
        if chat.people.get(name) is socket:
            del chat.people[name]
            for members in chat.channels.values():
                members.pop(name, None)


@app.get("/stats")
async def stats():
    return chat.counts


if __name__ == "__main__":
    if SET["CPU"] not in ("", "any"):
        os.sched_setaffinity(0, {int(SET["CPU"])})
    uvicorn.run(app, host="127.0.0.1", port=int(SET["PORT"]), loop=SET["LOOP"] or "asyncio",
                ws_per_message_deflate=SET["DEFLATE"] == "on", log_level="warning",
                access_log=False, ws_ping_interval=None)
