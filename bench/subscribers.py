#!/usr/bin/env python3
"""What clients of a broker cost it: 10,000 of them say hello with a name of 16 bytes and subscribe to one topic. Prints the
broker's resident memory after that, all of it, beside its bound; then one event has to reach all of them. Exits with 1
when the bound is exceeded.

    subscribers.py [WIRECALL] [--engine epoll|uring] [--clients N]
"""

import socket
import sys

import harness

MIB_MAX = 24

BEGIN = (b'{"jsonrpc":"2.0","method":"rpc.hello","params":{"name":"client-%09d"},"id":1}\n'
         b'{"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"news"},"id":2}\n')
EVENT = b'{"jsonrpc":"2.0","method":"news","params":["x"]}\n'


def received(client: socket.socket, lines: int) -> bytes:
    """What has come when so many lines have."""
    got = b""
    while got.count(b"\n") < lines:
        more = client.recv(4096)
        if not more:
            sys.exit(f"the broker has closed a connection after {got!r}")
        got += more
    return got


def main() -> int:
    parser = harness.arguments(__doc__)
    parser.add_argument("--clients", type=int, default=10_000)
    options = parser.parse_args()

    harness.allow_descriptors(options.clients + 200)
    # With the log of every client the pipe that its beginning is read from would fill.
    with harness.listening(harness.serve(options, "--log-level", "error")) as broker:
        clients = []
        for number in range(options.clients):
            clients.append(socket.create_connection(broker.address))
            clients[-1].settimeout(30)
            clients[-1].sendall(BEGIN % number)
        for client in clients:
            if b'"error"' in received(client, 2):
                sys.exit("the broker has refused a hello or a subscription")
        memory = harness.memory_bytes(broker.pid, "VmRSS") / 2**20
        clients[0].sendall(EVENT)
        for client in clients[1:]:  # without echo its publisher is not told
            if received(client, 1) != EVENT:
                sys.exit("an event has come that was not published")
        for client in clients:
            client.close()
    return 0 if harness.report([(f"memory of a broker with {options.clients} clients, MiB", memory, MIB_MAX)]) else 1


if __name__ == "__main__":
    sys.exit(main())
