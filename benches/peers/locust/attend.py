"""Peer: people of Locust, by its own SocketIOUser or with websocket-client. Each takes the time of a
delivery from the text; the last ones to come talk."""

import json
import os
import time

import gevent
import websocket
from locust import User, events, task
from locust.contrib.socketio import SocketIOUser
from locust.exception import StopUser


def number(name):
    return float(os.environ[name])


PEOPLE, TALKERS, TIMES = int(number("PEOPLE")), int(number("TALKERS")), int(number("TIMES"))
EVERY_S, STAY_S, TEXT_BYTES = number("EVERY_MS") / 1e3, number("STAY_MS") / 1e3, int(number("TEXT_BYTES"))
URL = os.environ["URL"]
MARK = "t="
arrived = 0


def arrive():
    """The person's number, in the order of coming."""
    global arrived
    arrived += 1
    return arrived - 1


def text():
    return f"{MARK}{time.time() * 1e3:.0f} ".ljust(TEXT_BYTES, ".")


def record(environment, said):
    _, mark, behind = said.partition(MARK)
    if mark:
        latency_ms = time.time() * 1e3 - int(behind[: behind.index(" ")])
        environment.events.request.fire(
            request_type="WSR", name="delivery", response_time=latency_ms,
            response_length=len(said), exception=None, context={},
        )


def attend(person, say):
    """Talks if it is one of the last to come, and stays until the time is over."""
    end = time.time() + STAY_S
    talker = person - (PEOPLE - TALKERS)
    if talker >= 0:
        gevent.sleep(EVERY_S + talker / TALKERS * EVERY_S)
        for _ in range(TIMES):
            say(text())
            gevent.sleep(EVERY_S)
    gevent.sleep(max(0, end - time.time()))
    raise StopUser()


class River(SocketIOUser):
    @task
    def attend(self):
        person = arrive()
        name = f"l{person}"
        self.sio.on("says", lambda said: record(self.environment, said))
        self.sio.connect(URL, transports=["websocket"])
        self.sio.emit("room-join", ("live", name))
        attend(person, lambda words: self.sio.emit(
            "event", {"name": name, "room": "live", "text": words}, callback=lambda: None))

    def on_stop(self):
        self.sio.disconnect()


class Yardstick(User):
    @task
    def attend(self):
        person = arrive()
        name = f"l{person}"
        self.socket = websocket.create_connection(URL, subprotocols=["yardstick.v1.json"])
        self.asked = 0
        self.ask(login={"name": name, "password": name})
        self.ask(join={"room": "live"})
        self.listener = gevent.spawn(self.listen)
        attend(person, lambda words: self.ask(say={"room": "live", "text": words}))

    def ask(self, **what):
        self.asked += 1
        self.socket.send(json.dumps({"id": self.asked, **what}))

    def listen(self):
        while True:
            message = json.loads(self.socket.recv()).get("message")
            if message:
                record(self.environment, message["text"])

    def on_stop(self):
        self.listener.kill()
        self.socket.close()


@events.quitting.add_listener
def tell(environment, **_):
    delivery = environment.stats.get("delivery", "WSR")
    print(json.dumps({"received": delivery.num_requests, "p50": delivery.median_response_time}))
