"""Peer: uWebSockets by its Python bindings; what one says is published to everybody."""

import socket

from socketify import App, OpCode

with socket.socket() as probe:  # socketify does not tell which port it was given
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]

app = App()
app.ws(
    "/*",
    {
        "compression": 0,
        "max_payload_length": 1 << 20,
        "max_backpressure": 64 << 20,
        "idle_timeout": 0,
        "open": lambda socket: socket.subscribe("live"),
        "message": lambda socket, text, opcode: app.publish("live", text, OpCode.TEXT),
    },
)
app.listen({"host": "127.0.0.1", "port": port}, lambda config: print(f"127.0.0.1:{port}", flush=True))
app.run()
