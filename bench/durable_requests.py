#!/usr/bin/env python3
"""What requests to the durable store cost: a broker with as much in it as one client may have there is sent a thousand
of each kind at once, by one connection, while another one looks something up, again and again.

    durable_requests.py WIRECALL [--count N]

For each kind: the CPU time of one request, of the broker's loop and of its store, in microseconds, whatever else the
machine does; the bytes of all answers; the other connection's longest wait for an answer, in milliseconds, of rpc.ping
and of a look-up; and by how much the broker's memory has grown at most, in MiB.
"""

import argparse
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import typing

METHOD = "a.rather.long.name.of.a.method."
QUEUES = 4000
CONSUMERS = 1000
TRIED = 9000


class Connection:
    """Lines of JSON over a unix socket."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(600)
        self.socket.connect(path)
        self.lines = self.socket.makefile("rb", 1 << 20)
        self.last = 0

    def request(self, method: str, params: object) -> dict:
        self.last += 1
        return {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}

    def write(self, message: object) -> None:
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def call(self, method: str, params: object) -> typing.Any:
        request = self.request(method, params)
        self.write(request)
        while True:
            message = json.loads(self.lines.readline())
            if "method" in message:
                continue
            if "error" in message:
                raise AssertionError(f"{method}: {message['error']}")
            return message["result"]

    def all(self, method: str, each: "list[object]") -> int:
        """Sends them in batches of a thousand, and returns the bytes of the answers."""
        size = 0
        for at in range(0, len(each), 1000):
            part = each[at : at + 1000]
            self.write([self.request(method, params) for params in part])
            left = len(part)
            while left:
                line = self.lines.readline()
                size += len(line)
                if line.startswith(b"["):
                    left = 0
                elif b'"method":"' not in line[:40]:
                    left -= 1
        return size


class Broker:
    def __init__(self, program: str) -> None:
        memory = pathlib.Path("/dev/shm")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="wirecall-", dir=memory if memory.is_dir() else None))
        self.path = str(self.folder / "socket")
        self.process = subprocess.Popen(
            [program, "serve", "--listen", f"unix://{self.path}", "--durable", str(self.folder / "data")],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.exists(self.path):
            time.sleep(0.01)

    def cpu(self) -> "tuple[float, float]":
        """Seconds of the main thread, and of all others."""
        main = others = 0.0
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            ns = int((task / "schedstat").read_text().split()[0])
            if int(task.name) == self.process.pid:
                main += ns / 1e9
            else:
                others += ns / 1e9
        return main, others

    def memory(self) -> float:
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return 0

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)


class Other(threading.Thread):
    """Asks one thing after the other, and knows the longest wait; and how much memory the broker has."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(daemon=True)
        self.broker = broker
        self.connection = Connection(broker.path)
        self.over = threading.Event()
        self.longest = {"rpc.ping": 0.0, "rpc.queue.result": 0.0}
        self.memory = 0.0

    def run(self) -> None:
        while not self.over.is_set():
            for method, params in (("rpc.ping", []), ("rpc.queue.result", {"id": 1})):
                begin = time.monotonic()
                self.connection.call(method, params)
                self.longest[method] = max(self.longest[method], time.monotonic() - begin)
            self.memory = max(self.memory, self.broker.memory())
            time.sleep(0.001)


def fill(broker: Broker) -> None:
    client = Connection(broker.path)
    print("filling: queues", flush=True)
    client.all("rpc.queue.push", [{"method": f"{METHOD}{i}", "params": [i]} for i in range(QUEUES)])
    client.all("rpc.queue.push", [{"method": "large", "params": ["x" * 100_000]} for _ in range(50)])
    print("filling: events", flush=True)
    client.all("rpc.publish", [{"topic": f"a.rather.long.topic.{i % 100}", "params": [i], "durable": True}
                               for i in range(20_000)])
    print("filling: consumers", flush=True)
    client.all("rpc.subscribe", [{"topic": f"none.{i}", "durable": f"c{i}"} for i in range(CONSUMERS)])
    print("filling: a consumer with much behind an event that is not answered", flush=True)
    slow = Connection(broker.path)
    slow.call("rpc.subscribe", {"topic": "a.>", "durable": "slow", "start": "first", "max_in_flight": 100,
                                "ack_wait_ms": 86_400_000})
    answered = 0
    while answered < TRIED:
        message = json.loads(slow.lines.readline())
        if message["id"].startswith("slow:1:"):
            continue
        slow.write({"jsonrpc": "2.0", "id": message["id"], "result": None})
        answered += 1
    slow.call("rpc.ping", [])
    slow.socket.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("wirecall")
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    broker = Broker(options.wirecall)
    try:
        fill(broker)
        kinds: "list[tuple[str, object]]" = [
            ("rpc.ping", []),
            ("rpc.publish", {"topic": "b", "params": [1], "durable": True}),
            ("rpc.queue.push", {"method": f"{METHOD}1", "params": [1]}),
            ("rpc.queue.result", {"id": 1}),
            ("rpc.queue.result", {"id": QUEUES + 1}),
            ("rpc.queue.retry", {"id": QUEUES + 1}),
            ("rpc.queue.ls", []),
            ("rpc.queue.peek", {"method": "large", "count": 1000}),
            ("rpc.durable.ls", []),
            ("rpc.durable.read", {"topic": "none.at.all"}),
            ("rpc.durable.read", {"topic": "a.>", "count": 1000}),
            ("rpc.subscribe", {"topic": "a.>", "durable": "slow", "start": "first", "max_in_flight": 1}),
            ("rpc.durable.forget", {"consumer": "nobody"}),
        ]
        print(f"{'method':20} {'params':58} {'loop us':>8} {'store us':>8} {'bytes':>12} {'ping ms':>8} {'lookup':>7} "
              f"{'MiB':>6}")
        for method, params in kinds:
            client = Connection(broker.path)
            client.call("rpc.ping", [])
            other = Other(broker)
            before = broker.cpu()
            memory = broker.memory()
            other.start()
            size = client.all(method, [params] * options.count)
            other.over.set()
            other.join()
            after = broker.cpu()
            loop, store = ((after[i] - before[i]) / options.count * 1e6 for i in (0, 1))
            print(f"{method:20} {json.dumps(params):58} {loop:8.1f} {store:8.1f} {size:12} "
                  f"{other.longest['rpc.ping'] * 1e3:8.1f} {other.longest['rpc.queue.result'] * 1e3:7.1f} "
                  f"{other.memory - memory:6.1f}", flush=True)
            client.socket.close()
    finally:
        broker.end()


if __name__ == "__main__":
    main()
