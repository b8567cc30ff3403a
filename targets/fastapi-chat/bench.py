"""How long a chat message takes to write and to read, and how long it is: json, orjson, protobuf.

    venv/bin/python bench.py [LOOPS]

with the Python of the target's virtual environment. Prints a table in Markdown.
"""

import os
import sys
import timeit

os.chdir(os.path.dirname(os.path.abspath(__file__)))

from codec import Json, Orjson, Protobuf  # noqa: E402

MESSAGE = {
    "event": "message",
    "channel": "test_3",
    "username": "user42",
    "content": "correct horse battery staple",
    "sent_at": "2024-05-01T12:34:56.789012+00:00",
}


def row(name, codec, loops):
    data = codec.encode(MESSAGE)
    assert codec.decode(data) == MESSAGE, name
    write = min(timeit.repeat(lambda: codec.encode(MESSAGE), number=loops, repeat=3))
    # What a receiver needs: the message as an object. For protobuf that is no dictionary.
    parse = codec.kind.FromString if name == "protobuf" else codec.decode
    read = min(timeit.repeat(lambda: parse(data), number=loops, repeat=3))
    micros = 1e6 / loops
    print(f"| {name} | {write * micros:.2f} | {read * micros:.2f} | {len(data)} |")


def main():
    loops = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    print(f"{loops} loops, the best of three\n")
    print("| codec | write, µs | read, µs | bytes |\n| --- | ---: | ---: | ---: |")
    for name, codec in [("json", Json()), ("orjson", Orjson()), ("protobuf", Protobuf())]:
        row(name, codec, loops)


if __name__ == "__main__":
    main()
