#!/usr/bin/env python3
"""Holds a broker's durable store to its word: what was answered is there after kill -9, at any moment, and after a loss
of power.

    check.py WIRECALL [--rounds N] [--power-loss LIBRARY] [--fsync WORD] [--seed N]

In each round clients publish events, push jobs, and a consumer acknowledges, until the broker is killed; then it is
started again. With the library (power_loss.c) what was not synced is lost as well, and with --fsync everysec the check
has to find losses: it says so, and exits with 1. It knows nothing of the store but its answers:

- an event whose publish was answered is there under that seq, with its params, once; no seq is two events;
- an event that was published again with its msg_id is there once;
- a job whose push was answered is there, and in the end has run;
- in the end the consumer has been sent each event that is there.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import typing

WAIT_S = 60  # until a silent broker fails the check
ROUNDS_OF_STORE = 100
LOOK_S = 0.02


class Connection:
    """Lines of JSON over a unix socket."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(WAIT_S)
        self.socket.connect(path)
        self.lines = self.socket.makefile("rb")
        self.last = 0

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.lines.close()
            self.socket.close()

    def send(self, method: str, params: object) -> int:
        self.last += 1
        self.write({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        return self.last

    def write(self, *messages: dict) -> None:
        self.socket.sendall("".join(json.dumps(message) + "\n" for message in messages).encode())

    def receive(self) -> dict:
        line = self.lines.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the broker has closed the connection")
        return json.loads(line)

    def call(self, method: str, params: object) -> typing.Any:
        number = self.send(method, params)
        while True:
            message = self.receive()
            if message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise AssertionError(f"{method} is refused: {message['error']}")
                return message["result"]


class Broker:
    def __init__(self, program: str, fsync: str, library: "str | None") -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="wirecall-durable-"))
        self.data = self.folder / "data"
        self.path = str(self.folder / "socket")
        self.words = [program, "serve", "--listen", f"unix://{self.path}", "--durable", str(self.data),
                      "--durable-fsync", fsync, "--durable-dedup-ms", "3600000"]
        self.library = library
        self.start()

    def start(self) -> None:
        environment = {**os.environ, **({"LD_PRELOAD": self.library} if self.library else {})}
        self.log = open(self.folder / "log", "ab")
        # What this process ignores stays ignored: a file that may not grow is a full disk there (hostile.py).
        self.process = subprocess.Popen(self.words, stderr=self.log, stdout=self.log, env=environment,
                                        restore_signals=False)
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise AssertionError("the broker does not start: " + (self.folder / "log").read_text()[-2000:])
            try:
                with Connection(self.path) as connection:
                    connection.call("rpc.ping", [])
                return
            except OSError:
                time.sleep(0.002)
        raise AssertionError("the broker does not start")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(WAIT_S)
        self.log.close()
        if not self.library:
            return
        for file in self.data.glob("wirecall.db*"):
            if not file.name.endswith(".durable"):
                file.unlink()
        for file in self.data.glob("*.durable"):
            shutil.copyfile(file, str(file)[: -len(".durable")])

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(WAIT_S) == 0, "the broker has not ended as it should"
        shutil.rmtree(self.folder)


class Worker(threading.Thread):
    """Uses the broker until it has gone."""

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self.work()

    def work(self) -> None:
        raise NotImplementedError


class Publisher(Worker):
    """Publishes events and pushes jobs, some in flight at once."""

    IN_FLIGHT = 8

    def __init__(self, path: str, name: str, numbers: random.Random, told: threading.Semaphore) -> None:
        super().__init__()
        self.path, self.name_, self.random, self.told = path, name, numbers, told
        self.events: "dict[int, list]" = {}  # by seq: what was answered
        self.jobs: "dict[int, list]" = {}
        self.refused: "list[dict]" = []

    def work(self) -> None:
        with Connection(self.path) as connection:
            waiting: "dict[int, tuple[str, list, str]]" = {}
            number = 0
            while True:
                while len(waiting) < self.IN_FLIGHT:
                    number += 1
                    params = [f"{self.name_}.{number}", "x" * self.random.choice([0, 10, 100, 3000])]
                    msg_id = f"{self.name_}.{number // 2}" if self.random.random() < 0.3 else ""
                    kind = self.random.choice(["event", "event", "job"])
                    call = {"params": params, **({"msg_id": msg_id} if msg_id else {})}
                    if kind == "event":
                        key = connection.send("rpc.publish", {"topic": f"t.{number % 3}", "durable": True, **call})
                    else:
                        key = connection.send("rpc.queue.push", {"method": "work", **call})
                    waiting[key] = (kind, params, msg_id)
                answer = connection.receive()
                kind, params, msg_id = waiting.pop(answer["id"])
                if "error" in answer:
                    self.refused.append(answer)
                    return
                result = answer["result"]
                if kind == "event" and not result.get("duplicate"):
                    self.events[result["seq"]] = params
                elif kind == "job" and not result.get("duplicate"):
                    self.jobs[result["id"]] = params
                self.told.release()


class Consumer(Worker):
    """Acknowledges most of what it is sent."""

    def __init__(self, path: str, numbers: random.Random, sent: "set[int]") -> None:
        super().__init__()
        self.path, self.random, self.sent = path, numbers, sent

    def work(self) -> None:
        with Connection(self.path) as connection:
            connection.send("rpc.subscribe", {"topic": "t.*", "durable": "all", "start": "first", "max_deliver": 0})
            while True:
                message = connection.receive()
                if "method" not in message:
                    assert "result" in message, message
                    continue
                self.sent.add(int(message["id"].split(":")[1]))
                reply: dict = {"jsonrpc": "2.0", "id": message["id"]}
                if self.random.random() < 0.05:
                    reply["error"] = {"code": 1, "message": "not now"}
                else:
                    reply["result"] = None
                connection.write(reply)


class Doer(Worker):
    """Provides the jobs' method."""

    def __init__(self, path: str, numbers: random.Random) -> None:
        super().__init__()
        self.path, self.random = path, numbers

    def work(self) -> None:
        with Connection(self.path) as connection:
            connection.send("rpc.register", {"method": "work", "concurrency": 4})
            while True:
                message = connection.receive()
                if message.get("method") == "work":
                    connection.write({"jsonrpc": "2.0", "id": message["id"], "result": message["params"][0]})


def read_events(connection: Connection) -> "dict[int, dict]":
    found: "dict[int, dict]" = {}
    after = 0
    while True:
        page = connection.call("rpc.durable.read", {"topic": "t.*", "after": after, "count": 1000})
        for event in page["events"]:
            found[event["seq"]] = event
        if page["last"] <= after:
            return found
        after = page["last"]


def losses_of(publishers: "list[Publisher]", events: "dict[int, list]", found: "dict[int, dict]") -> "list[str]":
    losses: "list[str]" = []
    for publisher in publishers:
        losses += [f"refused: {answer}" for answer in publisher.refused]
        for seq, params in publisher.events.items():
            if seq in events and events[seq] != params:
                losses.append(f"seq {seq} was given to two events")
            events[seq] = params
    for seq, params in events.items():
        if seq not in found:
            losses.append(f"event {seq} is lost: {params[0]}")
        elif found[seq]["params"] != params:
            losses.append(f"event {seq} is another one: {found[seq]['params'][0]}, not {params[0]}")
    return losses


def finish(broker: Broker, jobs: "dict[int, list]", sent: "set[int]", numbers: random.Random) -> "list[str]":
    """Waits until the consumer and the jobs are through."""
    Consumer(broker.path, numbers, sent).start()
    Doer(broker.path, numbers).start()
    losses: "list[str]" = []
    with Connection(broker.path) as connection:
        found = read_events(connection)
        # Looks, not seconds: a machine that stands still for a while is not a broker that does.
        seen: "tuple[int, str]" = (-1, "")
        looks = 0
        while True:
            queue = [row for row in connection.call("rpc.queue.ls", []) if row["method"] == "work"]
            left = sum(row["waiting"] + row["running"] for row in queue)
            consumers = connection.call("rpc.durable.ls", [])["consumers"]
            behind = [row for row in consumers if row["pending"] or row["position"] < max(found, default=0)]
            if left == 0 and not behind:
                break
            looks = looks + 1 if seen == (left, str(behind)) else 0
            seen = (left, str(behind))
            if looks > WAIT_S / LOOK_S:
                losses.append(f"nothing goes on: {left} jobs left, {behind}")
                break
            time.sleep(LOOK_S)
        losses += [f"event {seq} was never sent to the consumer" for seq in found if seq not in sent]
        for job, params in jobs.items():
            row = connection.call("rpc.queue.result", {"id": job})
            if row["state"] != "done" or row["result"] != params[0]:
                losses.append(f"job {job} of {params[0]} is {row}")
    return losses


class Counts:
    kills = events = jobs = 0


def rounds_of_killing(asked: argparse.Namespace, numbers: random.Random, rounds: int, counts: Counts) -> "list[str]":
    """With a store of its own. Returns what was lost."""
    broker = Broker(asked.program, asked.fsync, asked.power_loss)
    events: "dict[int, list]" = {}
    jobs: "dict[int, list]" = {}
    sent: "set[int]" = set()
    losses: "list[str]" = []
    try:
        for number in range(rounds):
            told = threading.Semaphore(0)
            publishers = [Publisher(broker.path, f"{number}.{i}", numbers, told) for i in range(4)]
            workers = [*publishers, Consumer(broker.path, numbers, sent), Doer(broker.path, numbers)]
            for worker in workers:
                worker.start()
            for _ in range(numbers.randrange(1, 200)):
                assert told.acquire(timeout=WAIT_S), "the broker does not answer"
            broker.kill()
            counts.kills += 1
            for worker in workers:
                worker.join()
            broker.start()
            for publisher in publishers:
                jobs.update(publisher.jobs)
            with Connection(broker.path) as connection:
                losses = losses_of(publishers, events, read_events(connection))
                for job in [job for publisher in publishers for job in publisher.jobs]:
                    connection.call("rpc.queue.result", {"id": job})
            if losses:
                break
        losses = losses or finish(broker, jobs, sent, numbers)
    except AssertionError as error:
        losses.append(str(error))
    broker.stop()
    counts.events += len(events)
    counts.jobs += len(jobs)
    return losses


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--power-loss", default=None)
    parser.add_argument("--fsync", default="always")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    asked = parser.parse_args()
    print(f"seed {asked.seed}")
    numbers = random.Random(asked.seed)
    counts = Counts()
    losses: "list[str]" = []
    # All of a store is read after each kill: so there is a new one now and then.
    for begin in range(0, asked.rounds, ROUNDS_OF_STORE):
        rounds = min(ROUNDS_OF_STORE, asked.rounds - begin)
        losses = losses or rounds_of_killing(asked, numbers, rounds, counts)
    for loss in losses[:20]:
        print(loss)
    print(f"{counts.kills} kills, {counts.events} events, {counts.jobs} jobs, {len(losses)} losses")
    return 1 if losses else 0


if __name__ == "__main__":
    raise SystemExit(main())
