#!/usr/bin/env python3
"""What connections cost a server that do nothing: 10,000 of them, half raw JSON and half HTTP, make one call each and
are then idle for 5 s. Prints the added resident memory of each, the server's processor time while they are idle, and how
often it woke up, beside their bounds. Exits with 1 when a bound is exceeded.

    connections.py [WIRECALL] [--engine epoll|uring] [--connections N] [--seconds S]
"""

import argparse
import os
import re
import resource
import selectors
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BYTES_MAX = 1024
CORE_MAX = 0.01
# At most so many wake-ups a second of a server that has nothing to do.
WAKES_MAX = 20

CALL = b'{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1}'
RAW = CALL + b"\n"
HTTP = b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(CALL), CALL)
ANSWER = b'{"jsonrpc":"2.0","result":19,"id":1}'


def resident_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
    parser.add_argument("wirecall", nargs="?", default=str(ROOT / "build" / "wirecall"))
    parser.add_argument("--engine", default="epoll")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()

    wanted = options.connections + 200
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        sys.exit(f"this needs {wanted} descriptors, and the hard limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    server = subprocess.Popen([options.wirecall, "serve", "--demo", "--engine", options.engine, "--listen",
                               "tcp://127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
    try:
        port = None
        for line in server.stderr:
            found = re.search(r"tcp://127\.0\.0\.1:(\d+)", line)
            if found:
                port = int(found[1])
                break
        if port is None:
            sys.exit("the server does not say where it listens")

        def connect(count: int) -> "list[tuple[socket.socket, bytes]]":
            opened = []
            for i in range(count):
                opened.append((socket.create_connection(("127.0.0.1", port)), (RAW, HTTP)[i % 2]))
            return opened

        first = connect(100)  # whatever is made once is there after these
        call_once(first)
        before = resident_bytes(server.pid)
        connections = connect(options.connections)
        for at in range(0, len(connections), 500):
            call_once(connections[at:at + 500])
        time.sleep(1)
        added = (resident_bytes(server.pid) - before) / options.connections
        busy, woken, began = processor_seconds(server.pid), wakes(server.pid), time.monotonic()
        time.sleep(options.seconds)
        passed = time.monotonic() - began
        core = (processor_seconds(server.pid) - busy) / passed
        rate = (wakes(server.pid) - woken) / passed
    finally:
        server.kill()
        server.stderr.close()
        server.wait()

    rows = [(f"added memory of {options.connections} idle connections, bytes each", added, BYTES_MAX),
            ("processor while they are idle, of a core", core, CORE_MAX),
            ("wake-ups a second while they are idle", rate, WAKES_MAX)]
    for name, figure, bound in rows:
        print(f"{name:60} {figure:10.3f}   bound {bound:8.2f}  {'ok' if figure <= bound else 'over'}")
    return 0 if all(figure <= bound for _, figure, bound in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
