"""Callers by HTTP, each on a connection of its own with one call at a time: http_load.py URL BODY ANSWER CALLERS SECONDS.
Prints "warm" when it has called for that time, and when it has for as long again what it has seen in this second time;
each lasts until there are as many answers as callers. Another answer than ANSWER is an error."""

import asyncio
import json
import os
import sys
import time
from urllib.parse import urlsplit

import uvloop

url, body, answer, callers, seconds = sys.argv[1:]
to = urlsplit(url)
REQUEST = (
    f"POST {to.path or '/'} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    f"Content-Length: {len(body)}\r\n\r\n{body}"
).encode()
took: "list[float]" = []  # what the calls have, in seconds
connecting = set()


class Caller(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.received = b""
        self.call()

    def call(self):
        self.began = time.perf_counter()
        self.transport.write(REQUEST)

    def data_received(self, some):
        self.received += some
        head, _, content = self.received.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
        if length:
            if len(content) < int(length):
                return
        elif content.endswith(b"\r\n0\r\n\r\n"):
            content = content.split(b"\r\n")[1]  # the only chunk
        else:
            return
        if not head.startswith(b"HTTP/1.1 200 ") or content.decode() != answer:
            sys.exit(f"{url}: {self.received.decode()}")
        self.received = b""
        took.append(time.perf_counter() - self.began)
        self.call()

    def connection_lost(self, error):
        # A server that is late may close what it takes for idle.
        connecting.add(asyncio.ensure_future(connect()))


async def connect():
    await asyncio.get_running_loop().create_connection(Caller, to.hostname, to.port)


async def measured():
    """Of the answers from now on: how many, how many a second, and how long the calls took."""
    took.clear()
    began = time.perf_counter()
    while time.perf_counter() < began + float(seconds) or len(took) < int(callers):
        await asyncio.sleep(0.01)
    of = sorted(took)
    rate = len(of) / (time.perf_counter() - began)
    return {"calls": len(of), "rate": rate, "p50_ms": of[len(of) // 2] * 1e3, "p99_ms": of[len(of) * 99 // 100] * 1e3}


async def main():
    for _ in range(int(callers)):
        await connect()
    await measured()
    print("warm", flush=True)
    print(json.dumps(await measured()), flush=True)
    os._exit(0)  # the connections are still in use


uvloop.run(main())
