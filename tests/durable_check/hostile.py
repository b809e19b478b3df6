#!/usr/bin/env python3
"""Clients that mean no good, a disk that is full and files that are damaged, at a broker with a durable store: errors are
those of the contract, the broker goes on, and nobody else is hurt.

    hostile.py WIRECALL [--seed N]
"""

import argparse
import json
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import typing

from check import WAIT_S, Broker, Connection

INVALID = -32602
FULL = -32005
BROKEN = -32603
LARGEST = (1 << 64) - 1


class Faults:
    """What was found."""

    def __init__(self) -> None:
        self.found: "list[str]" = []

    def expect(self, holds: bool, what: str) -> None:
        if not holds:
            self.found.append(what)


def answer_to(connection: Connection, method: str, params: object) -> dict:
    number = connection.send(method, params)
    while True:
        message = connection.receive()
        if message.get("id") == number and "method" not in message:
            return message


def code_of(connection: Connection, method: str, params: object) -> int:
    return answer_to(connection, method, params).get("error", {}).get("code", 0)


def wrong_params(broker: Broker, faults: Faults) -> None:
    name = "x" * 300
    refused: "list[tuple[str, dict]]" = [
        ("rpc.publish", {"topic": "a b", "durable": True}),
        ("rpc.publish", {"topic": "rpc.x", "durable": True}),
        ("rpc.publish", {"topic": "a", "params": 1, "durable": True}),
        ("rpc.publish", {"topic": "a", "durable": True, "msg_id": "x" * 256}),
        ("rpc.publish", {"topic": "a", "durable": True, "msg_id": 1}),
        ("rpc.queue.push", {"method": name}),
        ("rpc.queue.push", {"method": "rpc.ping"}),
        ("rpc.queue.push", {"method": "a", "delay_ms": LARGEST}),
        ("rpc.queue.push", {"method": "a", "delay_ms": -1}),
        ("rpc.queue.push", {"method": "a", "timeout_ms": 0}),
        ("rpc.queue.push", {"method": "a", "max_deliver": 1 << 32}),
        ("rpc.queue.peek", {"method": "a", "count": 1001}),
        ("rpc.queue.peek", {"method": "a", "state": "lost"}),
        ("rpc.queue.result", {"id": -1}),
        ("rpc.queue.result", {"id": "1"}),
        ("rpc.queue.result", {"id": LARGEST}),
        ("rpc.queue.drop", {"id": LARGEST}),
        ("rpc.durable.read", {"topic": "a", "count": 0}),
        ("rpc.durable.read", {"topic": "a", "after": -1}),
        ("rpc.durable.forget", {"consumer": "nobody"}),
        ("rpc.durable.forget", {"consumer": "a/b"}),
    ]
    refused += [("rpc.subscribe", {"topic": "a", "durable": "c", "start": start}) for start in (-1, 0, 1.5, "x", [], {})]
    with Connection(broker.path) as connection:
        for method, params in refused:
            code = code_of(connection, method, params)
            faults.expect(code == INVALID, f"{method} {params} is answered {code}")
        for topic in (name, name + ".>"):
            code = code_of(connection, "rpc.publish", {"topic": topic, "durable": True})
            faults.expect(code in (0, INVALID), f"a topic of 300 bytes is answered {code}")
        read = connection.call("rpc.durable.read", {"topic": ">", "after": LARGEST})
        faults.expect(read["events"] == [], "there are events behind the largest number")
        joined = connection.call("rpc.subscribe", {"topic": "far.>", "durable": "far", "start": LARGEST})
        faults.expect(joined["position"] < 1000, f"a consumer begins at {joined['position']}")
        number = connection.send("rpc.publish", {"topic": "far.a", "durable": True})
        got = [connection.receive(), connection.receive()]
        ids = [message["id"] for message in got]
        faults.expect(number in ids, "a publish is not answered")
        faults.expect(any(str(one).startswith("far:") for one in ids), "a consumer from far away is sent nothing")


def foreign_answers(broker: Broker, faults: Faults) -> None:
    with Connection(broker.path) as owner, Connection(broker.path) as other, Connection(broker.path) as member:
        owner.call("rpc.subscribe", {"topic": "own.>", "durable": "own", "ack_wait_ms": 3_600_000})
        member.call("rpc.subscribe", {"topic": "else.>", "durable": "else"})
        seq = other.call("rpc.publish", {"topic": "own.a", "durable": True})["seq"]
        ids = [f"own:{seq}:1", f"own:{seq}:0", f"own:{seq}:{LARGEST}", f"own:{LARGEST}0:1", "own:-1:1", "own::", ":::", "own"]
        for connection in (other, member):
            connection.write(*[{"jsonrpc": "2.0", "id": one, "result": None} for one in ids])
            connection.call("rpc.ping", [])
        owner.write(*[{"jsonrpc": "2.0", "id": one, "result": None} for one in ids[1:]])
        with Connection(broker.path) as asking:
            rows = {row["name"]: row for row in asking.call("rpc.durable.ls", [])["consumers"]}
        faults.expect(rows["own"]["pending"] == 1, "somebody else has acknowledged an event")
        owner.write({"jsonrpc": "2.0", "id": ids[0], "result": None})
        owner.call("rpc.ping", [])
        with Connection(broker.path) as asking:
            rows = {row["name"]: row for row in asking.call("rpc.durable.ls", [])["consumers"]}
        faults.expect(rows["own"]["pending"] == 0, "an answer has no effect")


def memory_of(broker: Broker, which: str) -> int:
    """In KiB: VmRSS, what it has, or VmHWM, the most that it has had."""
    status = pathlib.Path(f"/proc/{broker.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith(which)).split()[1])


def thousandfold(broker: Broker, faults: Faults) -> None:
    """The dearest reads, a thousand in one batch: others are answered long before it is."""
    with Connection(broker.path) as asking, Connection(broker.path) as other:
        for _ in range(4):
            other.call("rpc.publish", {"topic": "large.a", "params": ["x" * 1_000_000], "durable": True})
        reads = [{"jsonrpc": "2.0", "method": "rpc.durable.read", "params": {"topic": "large.a"}, "id": i} for i in range(1000)]
        asking.socket.sendall((json.dumps(reads) + "\n").encode())
        answered: "list[str]" = []

        def wait_for_batch() -> None:
            json.loads(asking.lines.readline())
            answered.append("batch")

        waiting = threading.Thread(target=wait_for_batch)
        waiting.start()
        job = other.call("rpc.queue.push", {"method": "work", "params": [1]})["id"]
        for _ in range(10):
            other.call("rpc.queue.result", {"id": job})
        answered.append("other")
        waiting.join()
        faults.expect(answered[0] == "other", "a thousand reads of one are made before those of another")
        most = memory_of(broker, "VmHWM")
        faults.expect(most < 1_000_000, f"the broker has had {most} KiB")


def floods(broker: Broker, faults: Faults) -> None:
    """While one floods and reads nothing, others publish, consume and have their jobs made."""
    with Connection(broker.path) as flood, Connection(broker.path) as idle, Connection(broker.path) as fair:
        idle.call("rpc.subscribe", {"topic": "flood.>", "durable": "idle", "max_in_flight": 65_536})
        fair.call("rpc.subscribe", {"topic": "fair.>", "durable": "fair", "ack_wait_ms": 3_600_000})
        flood.socket.settimeout(0.2)
        sent = 0
        try:
            while sent < 50:
                calls = [
                    {
                        "jsonrpc": "2.0",
                        "id": f"{sent}.{i}",
                        "method": "rpc.publish",
                        "params": {"topic": f"flood.{i}", "params": ["x" * 2000], "durable": True},
                    }
                    for i in range(100)
                ]
                flood.write(*calls)
                sent += 1
        except TimeoutError:
            pass  # it is not read any more
        with Connection(broker.path) as publisher:
            for number in range(50):
                publisher.call("rpc.publish", {"topic": "fair.a", "params": [number], "durable": True})
        for number in range(50):
            message = fair.receive()
            faults.expect(message["params"] == [number], f"a fair consumer is sent {message}")
            fair.write({"jsonrpc": "2.0", "id": message["id"], "result": None})
        many = [{"jsonrpc": "2.0", "method": "rpc.durable.read", "params": {"topic": ">", "count": 1000}, "id": i} for i in range(200)]
        idle.write(*many)
        with Connection(broker.path) as publisher:
            publisher.call("rpc.queue.push", {"method": "work", "params": [1]})
        faults.expect(memory_of(broker, "VmRSS") < 1_000_000, f"the broker has {memory_of(broker, 'VmRSS')} KiB")


def never_acknowledges(broker: Broker, faults: Faults) -> None:
    with Connection(broker.path) as silent, Connection(broker.path) as dead:
        dead.call("rpc.subscribe", {"topic": "dead.silent", "durable": "graves", "ack_wait_ms": 3_600_000})
        settings = {"ack_wait_ms": 1, "max_deliver": 3, "max_in_flight": 1}
        silent.call("rpc.subscribe", {"topic": "silent.>", "durable": "silent", **settings})
        with Connection(broker.path) as publisher:
            for number in range(5):
                publisher.call("rpc.publish", {"topic": "silent.a", "params": [number], "durable": True})
        for number in range(5):
            letter = dead.receive()
            faults.expect(letter["params"]["params"] == [number], f"a dead letter is {letter}")
            dead.write({"jsonrpc": "2.0", "id": letter["id"], "result": None})


def full_disk(broker: Broker, faults: Faults) -> None:
    """The files may not grow: publishes are refused, and taken again once they may."""
    pid = broker.process.pid
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (65_536, resource.RLIM_INFINITY))
    event = {"topic": "full.a", "params": ["x" * 200_000], "durable": True}
    with Connection(broker.path) as connection:
        codes = [code_of(connection, "rpc.publish", event) for _ in range(20)]
        faults.expect(set(codes) == {BROKEN}, f"a full disk is {set(codes)}")
        faults.expect(code_of(connection, "rpc.ping", []) == 0, "a full disk ends more than publishes")
        read = connection.call("rpc.durable.read", {"topic": "full.a", "count": 1000})
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        faults.expect(code_of(connection, "rpc.publish", event) == 0, "the disk is not full any more, and a publish fails")
        faults.expect(read["events"] == [], "an event is there that was refused")


def damaged_files(program: str, numbers: random.Random, faults: Faults) -> None:
    """The broker starts, or says why not; no damage kills it. What is damaged within an event is found by nobody."""
    whole = Broker(program, "always", None)
    with Connection(whole.path) as connection:
        for number in range(50):
            connection.call("rpc.publish", {"topic": "a.b", "params": ["x" * 500, number], "durable": True})
            connection.call("rpc.queue.push", {"method": "work", "params": [number]})
        connection.call("rpc.subscribe", {"topic": "a.>", "durable": "all", "start": "first"})
    whole.process.send_signal(signal.SIGKILL)
    whole.process.wait(WAIT_S)
    for _ in range(20):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="wirecall-damaged-"))
        shutil.copytree(whole.data, folder / "data")
        for file in (folder / "data").iterdir():
            content = bytearray(file.read_bytes())
            if not content:
                continue
            kind = numbers.choice(["flip", "cut", "zero", "noise"])
            if kind == "cut":
                content = content[: numbers.randrange(len(content))]
            else:
                for _ in range(numbers.choice([1, 100])):
                    at = numbers.randrange(len(content))
                    size = min(numbers.choice([1, 512]), len(content) - at)
                    content[at : at + size] = bytes(size) if kind == "zero" else numbers.randbytes(size)
            file.write_bytes(content)
        words = [program, "serve", "--listen", f"unix://{folder}/socket", "--durable", str(folder / "data")]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        said = b""
        assert process.stderr is not None
        for line in process.stderr:
            said += line
            if b"unix://" in line and b"cannot open" not in line:
                break
        if process.poll() is None and b"cannot open" not in said:
            try:
                with Connection(f"{folder}/socket") as connection:
                    for method, params in (
                        ("rpc.durable.read", {"topic": ">"}),
                        ("rpc.publish", {"topic": "a", "durable": True}),
                        ("rpc.queue.ls", []),
                        ("rpc.queue.peek", {"method": "work"}),
                        ("rpc.durable.ls", []),
                    ):
                        code = code_of(connection, method, params)
                        faults.expect(code in (0, BROKEN), f"damage is {code} of {method}")
            except OSError as error:
                faults.expect(False, f"damage has ended a broker: {error}")
            except ValueError:
                pass  # it was within an event
            process.send_signal(signal.SIGTERM)
        status = process.wait(WAIT_S)
        faults.expect(status in (0, 3), f"damage ends the broker with {status}: {said[-500:]!r}")
        shutil.rmtree(folder)
    whole.stop()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    asked = parser.parse_args()
    print(f"seed {asked.seed}")
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # of the broker as well: a file that may not grow is a full disk
    faults = Faults()
    broker = Broker(asked.program, "always", None)
    parts: "list[typing.Callable[[Broker, Faults], None]]" = [
        wrong_params,
        foreign_answers,
        thousandfold,
        floods,
        never_acknowledges,
        full_disk,
    ]
    try:
        for part in parts:
            part(broker, faults)
            faults.expect(broker.process.poll() is None, f"{part.__name__} has ended the broker")
        damaged_files(asked.program, random.Random(asked.seed), faults)
    except (AssertionError, OSError) as error:
        faults.expect(False, f"{type(error).__name__}: {error}")
    broker.stop()
    for fault in faults.found[:20]:
        print(fault)
    print(json.dumps({"faults": len(faults.found)}))
    return 1 if faults.found else 0


if __name__ == "__main__":
    raise SystemExit(main())
