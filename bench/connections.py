#!/usr/bin/env python3
"""What idle connections cost a server: 10,000 connections make one call each and are then idle for 5 s. Half are raw JSON
and half HTTP; with --websocket all are WebSocket, with --tls all are raw JSON by TLS. Prints the added resident memory of
each, the server's CPU time while they are idle, and its wake-ups a second, beside their bounds. With --tls the bound of
memory is what a connection adds to a server that is OpenSSL alone, and 2 KiB. Exits with 1 when a bound is exceeded.

    connections.py [WIRECALL] [TLS_CEILING] [--websocket | --tls] [--engine epoll|uring] [--connections N] [--seconds S]
"""

import argparse
import contextlib
import re
import selectors
import socket
import ssl
import sys
import tempfile
import time
import typing
from pathlib import Path

import harness

BYTES_MAX = 1024
CORE_MAX = 0.01
# At most so many wake-ups a second of a server that has nothing to do.
WAKES_MAX = 20

# Beyond what OpenSSL alone takes.
TLS_BYTES_MAX = 2048

CALL = b'{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1}'
ANSWER = b'{"jsonrpc":"2.0","result":19,"id":1}'
UPGRADE = (b"GET /rpc HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
# The requests that a client sends in order, and the end of the reply to each.
RAW = [(CALL + b"\n", ANSWER + b"\n")]
HTTP = [(b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(CALL), CALL), ANSWER)]
WEBSOCKET = [(UPGRADE, b"\r\n\r\n"), (b"\x81%c\0\0\0\0%s" % (0x80 | len(CALL), CALL), ANSWER)]


def wakes(pid: int) -> int:
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int(re.search(r"\nvoluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(encoding="ascii"))[1])
    return total


def call_once(connections: "list[socket.socket]", kinds: "list[list[tuple[bytes, bytes]]]") -> None:
    """Connection i sends the requests of kind i, modulo the number of kinds."""
    selector = selectors.DefaultSelector()
    got, left = {}, {}
    for i, connection in enumerate(connections):
        left[connection] = list(kinds[i % len(kinds)])
        got[connection] = b""
        connection.sendall(left[connection][0][0])
        selector.register(connection, selectors.EVENT_READ)
    while left:
        ready = selector.select(30)
        if not ready:
            sys.exit("the server does not answer")
        for connection in (key.fileobj for key, _ in ready):
            more = connection.recv(4096)
            if not more:
                sys.exit(f"the server has closed after {got[connection]}")
            got[connection] += more
            if not got[connection].endswith(left[connection][0][1]):
                continue
            got[connection] = b""
            del left[connection][0]
            if left[connection]:
                connection.sendall(left[connection][0][0])
                continue
            selector.unregister(connection)
            del left[connection]
    selector.close()


class Idle(typing.NamedTuple):
    """What idle connections cost a server."""
    bytes_each: float
    core: float
    wakes_a_second: float


def measure(server: harness.ServerProcess, kinds: "list[list[tuple[bytes, bytes]]]", options: argparse.Namespace) -> Idle:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def connect(count: int) -> "list[socket.socket]":
        made = []
        for at in range(0, count, 500):
            some = [socket.create_connection(server.address, timeout=30) for _ in range(min(500, count - at))]
            made += [context.wrap_socket(one) for one in some] if options.tls else some
            call_once(made[at:], kinds)
        return made

    with contextlib.ExitStack() as stack:
        # The first connections make what is made once.
        stack.callback(lambda made: [one.close() for one in made], connect(100))
        before = harness.memory_bytes(server.pid, "VmRSS")
        stack.callback(lambda made: [one.close() for one in made], connect(options.connections))
        time.sleep(1)
        added = (harness.memory_bytes(server.pid, "VmRSS") - before) / options.connections
        busy, woken, began = harness.processor_seconds(server.pid), wakes(server.pid), time.monotonic()
        time.sleep(options.seconds)
        passed = time.monotonic() - began
        core = (harness.processor_seconds(server.pid) - busy) / passed
        return Idle(added, core, (wakes(server.pid) - woken) / passed)


def main() -> int:
    parser = harness.arguments(__doc__)
    parser.add_argument("ceiling", nargs="?", default=str(harness.ROOT / "build" / "bench" / "tls_ceiling"))
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--websocket", action="store_true")
    kind.add_argument("--tls", action="store_true")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()

    harness.allow_descriptors(options.connections + 200)
    command = harness.serve(options, "--demo")
    bytes_max = BYTES_MAX
    what = "idle connections"
    if options.tls:
        what = "idle connections by TLS"
        with tempfile.TemporaryDirectory() as folder:
            cert, key = harness.certificate(folder)
            bare = [options.ceiling, cert, key, str(len(RAW[0][0])), ANSWER.decode()]
            with harness.listening(bare) as ceiling:
                least = measure(ceiling, [RAW], options).bytes_each
            with harness.listening([*command, "--tls-cert", cert, "--tls-key", key]) as server:
                idle = measure(server, [RAW], options)
        print(f"added memory of {options.connections} {what} to OpenSSL alone, bytes each: {least:.0f}")
        bytes_max = least + TLS_BYTES_MAX
    else:
        if options.websocket:
            what = "idle connections by WebSocket"
        with harness.listening(command) as server:
            idle = measure(server, [WEBSOCKET] if options.websocket else [RAW, HTTP], options)

    rows = [(f"added memory of {options.connections} {what}, bytes each", idle.bytes_each, bytes_max),
            ("processor while they are idle, of a core", idle.core, CORE_MAX),
            ("wake-ups a second while they are idle", idle.wakes_a_second, WAKES_MAX)]
    return 0 if harness.report(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
