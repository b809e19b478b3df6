#!/usr/bin/env python3
"""Whether a broker's memory stays flat while clients come and go: a round connects a provider, a subscriber and a caller of
some framings, registers, subscribes, calls, streams, cancels, publishes, retains and clears under names that no round has
used before, and leaves in order, by half-close or by reset. Prints the resident memory as it goes, and in the end its
least-squares slope from the first tenth on, in KiB an hour, and what the broker held at the end beside the first tenth.

    churn.py [WIRECALL] [--seconds S] [--rate ROUNDS] [--engine epoll|uring] [--seed N] [--slope KIB]

Exits with 1 when a round goes wrong, or when the slope is above --slope."""

import argparse
import pathlib
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time

import framings

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Peer:
    """One connection that waits for what it asks for."""

    def __init__(self, port, framing):
        self.framing = framing()
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.messages = []
        self.socket.sendall(self.framing.opening)

    def send(self, method, params=None, **more):
        message = {"jsonrpc": "2.0", "method": method, **more}
        if params is not None:
            message["params"] = params
        self.socket.sendall(self.framing.write(message))

    def answer(self, request, **outcome):
        self.socket.sendall(self.framing.write({"jsonrpc": "2.0", **outcome, "id": request["id"]}))

    def wait(self, wanted):
        """The first message for which `wanted` is true; others are kept."""
        seen = 0
        while True:
            for at in range(seen, len(self.messages)):
                if wanted(self.messages[at]):
                    return self.messages.pop(at)
            seen = len(self.messages)
            some = self.socket.recv(1 << 16)
            if not some:
                raise SystemExit(f"a connection of {self.framing.name} has ended; it had {self.messages}")
            self.messages += self.framing.read(some)
            if self.framing.due:
                self.socket.sendall(self.framing.due)
                self.framing.due = b""

    def ask(self, method, params=None, **more):
        self.send(method, params, id=method, **more)
        return self.wait(lambda message: message is not None and "method" not in message and message["id"] == method)

    def leave(self, how):
        if how == "reset":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif how == "half":
            self.socket.shutdown(socket.SHUT_WR)
            while self.socket.recv(1 << 16):
                pass
        self.socket.close()


def expect(condition, *what):
    if not condition:
        raise SystemExit(f"a round went wrong: {what}")


def round_of(port, number, chance):
    connected = [one for one in framings.ALL if one.connected]
    provider, subscriber = Peer(port, chance.choice(connected)), Peer(port, chance.choice(connected))
    caller = Peer(port, chance.choice(framings.ALL))
    method, topic = f"churn{number}.work", f"news{number}.of.{chance.randrange(1 << 30)}"

    expect("result" in provider.ask("rpc.hello", {"name": f"provider-{number}"}), "hello")
    expect(provider.ask("rpc.register", {"methods": [{"method": method, "idempotent": chance.random() < 0.5,
                                                      "summary": "s" * chance.randrange(500)},
                                                     {"method": f"churn{number}.>"}]}).get("result") == 2, "register")
    pattern = chance.choice([topic, f"news{number}.>", f"*.of.{topic.split('.')[2]}"])
    expect(subscriber.ask("rpc.subscribe", {"topic": pattern, "last": True}).get("result") is True, "subscribe")

    caller.send(method, {"value": number}, id="call")
    request = provider.wait(lambda message: message.get("method") == method)
    provider.answer(request, result={"pad": "x" * chance.randrange(2000), "value": request["params"]["value"]})
    reply = caller.wait(lambda message: message.get("id") == "call")
    expect(reply.get("result", {}).get("value") == number, reply)

    if caller.framing.connected:
        caller.send(method, {"value": 1}, id="stream", stream=2)
        request = provider.wait(lambda message: message.get("method") == method)
        for at in range(2):
            provider.send("rpc.item", {"id": request["id"], "seq": at, "value": "y" * chance.randrange(500)})
        for _ in range(2):
            caller.wait(lambda message: message.get("method") == "rpc.item")
        if chance.random() < 0.5:
            caller.send("rpc.cancel", {"id": "stream"})
            provider.wait(lambda message: message.get("method") == "$/cancelRequest")
        provider.answer(request, result=None)
        caller.wait(lambda message: message.get("id") == "stream")

    publisher = caller if caller.framing.connected else provider
    expect("result" in publisher.ask("rpc.publish", {"topic": topic, "params": {"pad": "z" * chance.randrange(3000)},
                                                     "retain": True}), "publish")
    subscriber.wait(lambda message: message.get("method") == topic)
    late = Peer(port, chance.choice(connected))
    late.send("rpc.subscribe", {"topic": topic, "last": True}, id=1)
    late.wait(lambda message: message.get("method") == topic)
    expect("result" in publisher.ask("rpc.publish", {"topic": topic, "retain": True}), "clear")

    # What is left undone when they go: a call at the provider, and one that waits for its caller.
    caller.send(method, {"value": 2}, id="left")
    provider.wait(lambda message: message.get("method") == method)
    how = chance.choice(["close", "reset"])
    caller.leave(how)
    if how == "reset":
        provider.wait(lambda message: message.get("method") == "$/cancelRequest")
    if chance.random() < 0.5:
        expect(provider.ask("rpc.unregister", {"method": method}).get("result") == 1, "unregister")
    for one in (provider, subscriber, late):
        one.leave(chance.choice(["close", "reset", "half"]))


def slope_of(samples):
    """Least squares, a second."""
    mean_time = sum(when for when, _ in samples) / len(samples)
    mean_value = sum(value for _, value in samples) / len(samples)
    spread = sum((when - mean_time) ** 2 for when, _ in samples)
    return sum((when - mean_time) * (value - mean_value) for when, value in samples) / spread if spread else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wirecall", nargs="?", default=str(ROOT / "build" / "wirecall"))
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--rate", type=float, default=50, help="rounds a second, of four connections each")
    parser.add_argument("--engine", default="epoll")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--slope", type=float, help="KiB an hour that the memory may grow by")
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.engine}, {options.rate:g} rounds a second", flush=True)
    chance = random.Random(options.seed)
    log = tempfile.TemporaryFile()
    broker = subprocess.Popen([options.wirecall, "serve", "--port", "0", "--log-level", "warning", "--engine", options.engine],
                              stdout=subprocess.DEVNULL, stderr=log)
    try:
        while True:
            log.seek(0)
            if listening := re.search(rb"127\.0\.0\.1:(\d+)", log.read()):
                break
            expect(broker.poll() is None, "the broker does not start")
            time.sleep(0.01)
        port = int(listening[1])
        status = pathlib.Path(f"/proc/{broker.pid}/status")
        began = time.monotonic()
        samples, number = [], 0
        while (passed := time.monotonic() - began) < options.seconds:
            round_of(port, number, chance)
            number += 1
            if not samples or passed >= samples[-1][0] + min(10, options.seconds / 100):
                samples.append((passed, int(re.search(r"VmRSS:\s+(\d+)", status.read_text())[1])))
                if len(samples) % 30 == 1:
                    print(f"{passed:6.0f} s  {number:8} rounds  {samples[-1][1]} KiB", flush=True)
            time.sleep(max(0.0, began + number / options.rate - time.monotonic()))
        spent = sum(map(int, pathlib.Path(f"/proc/{broker.pid}/stat").read_text().rpartition(")")[2].split()[11:13])) / 100
        descriptors = len(list(pathlib.Path(f"/proc/{broker.pid}/fd").iterdir()))
    finally:
        broker.kill()
        broker.wait()
    settled = [sample for sample in samples if sample[0] >= options.seconds / 10] or samples
    slope = slope_of(settled) * 3600
    print(f"{number} rounds, {4 * number} connections in {passed:.0f} s, {spent / passed:.1%} of a core; slope {slope:+.1f} KiB/h; "
          f"{settled[0][1] / 1024:.2f} MiB after {settled[0][0]:.0f} s, {samples[-1][1] / 1024:.2f} MiB in the end; "
          f"{descriptors} descriptors")
    return 1 if options.slope is not None and slope > options.slope else 0


if __name__ == "__main__":
    sys.exit(main())
