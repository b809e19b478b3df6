#!/usr/bin/env python3
"""What connections cost a server that do nothing: 10,000 of them, half raw JSON and half HTTP, make one call each and
are then idle for 5 s. Prints the added resident memory of each, the server's processor time while they are idle, and how
often it woke up, beside their bounds. Exits with 1 when a bound is exceeded.

    connections.py [WIRECALL] [--engine epoll|uring] [--connections N] [--seconds S]
"""

import argparse
import re
import resource
import selectors
import socket
import sys
import time
from pathlib import Path

import harness

BYTES_MAX = 1024
CORE_MAX = 0.01
# At most so many wake-ups a second of a server that has nothing to do.
WAKES_MAX = 20

CALL = b'{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1}'
RAW = CALL + b"\n"
HTTP = b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(CALL), CALL)
ANSWER = b'{"jsonrpc":"2.0","result":19,"id":1}'


def wakes(pid: int) -> int:
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int(re.search(r"\nvoluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(encoding="ascii"))[1])
    return total


def call_once(connections: "list[tuple[socket.socket, bytes]]") -> None:
    selector = selectors.DefaultSelector()
    got = {}
    for connection, request in connections:
        connection.sendall(request)
        got[connection] = b""
        selector.register(connection, selectors.EVENT_READ)
    while got:
        for key, _ in selector.select(30):
            got[key.fileobj] += key.fileobj.recv(4096)
            if ANSWER in got[key.fileobj]:
                selector.unregister(key.fileobj)
                del got[key.fileobj]
    selector.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wirecall", nargs="?", default=harness.WIRECALL)
    parser.add_argument("--engine", default="epoll")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()

    wanted = options.connections + 200
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        sys.exit(f"this needs {wanted} descriptors, and the hard limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    command = [options.wirecall, "serve", "--demo", "--engine", options.engine, "--listen", "tcp://127.0.0.1:0"]
    with harness.listening(command) as server:
        address = "127.0.0.1", int(server.urls[0].rpartition(":")[2])

        def connect(count: int) -> "list[tuple[socket.socket, bytes]]":
            return [(socket.create_connection(address), (RAW, HTTP)[i % 2]) for i in range(count)]

        first = connect(100)  # whatever is made once is there after these
        call_once(first)
        before = harness.memory_bytes(server.pid, "VmRSS")
        connections = connect(options.connections)
        for at in range(0, len(connections), 500):
            call_once(connections[at:at + 500])
        time.sleep(1)
        added = (harness.memory_bytes(server.pid, "VmRSS") - before) / options.connections
        busy, woken, began = harness.processor_seconds(server.pid), wakes(server.pid), time.monotonic()
        time.sleep(options.seconds)
        passed = time.monotonic() - began
        core = (harness.processor_seconds(server.pid) - busy) / passed
        rate = (wakes(server.pid) - woken) / passed

    rows = [(f"added memory of {options.connections} idle connections, bytes each", added, BYTES_MAX),
            ("processor while they are idle, of a core", core, CORE_MAX),
            ("wake-ups a second while they are idle", rate, WAKES_MAX)]
    return 0 if harness.report(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
