#!/usr/bin/env python3
"""Holds the store to its word: its bounds, ranges and watchers, and that what was answered is there after kill -9.

    check.py PROGRAM [POWER_LOSS.so] [unittest's arguments]

With the library (power_loss.c) what was not synced is lost as well when the store is killed; and the check is checked
by LMDB's MDB_NOSYNC, with which it has to find losses. SEED in the environment repeats what clients write.
"""

import base64
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import typing
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
POWER_LOSS = os.path.abspath(sys.argv.pop(2)) if sys.argv[2:] and sys.argv[2].endswith(".so") else None
del sys.argv[1]
SEED = int(os.environ.get("SEED", random.randrange(1 << 32)))
WAIT_S = 60  # until a silent store fails the test

Value = typing.Optional[bytes]
Call = typing.Tuple[str, dict]


def encoded(value: Value) -> typing.Any:
    return None if value is None else {"$bytes": base64.b64encode(value).decode()}


def decoded(value: typing.Any) -> Value:
    return None if value is None else base64.b64decode(value["$bytes"])


class Refused(Exception):
    def __init__(self, error: dict) -> None:
        super().__init__(error)
        self.code, self.data = error["code"], error.get("data", {})


class Peer:
    """One connection: lines of JSON, of which those without an id are kept apart."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
        self.lines = self.socket.makefile("rb")
        self.sent = 0
        self.events: "list[dict]" = []

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self.lines.close()
        self.socket.close()

    def send(self, calls: "list[Call]", **more: object) -> "list[int]":
        """Sends all at once, and returns their ids."""
        ids = list(range(self.sent, self.sent + len(calls)))
        self.sent += len(calls)
        lines = ""
        for i, (method, params) in zip(ids, calls):
            lines += json.dumps({"jsonrpc": "2.0", "id": i, "method": method, "params": params, **more}) + "\n"
        self.socket.sendall(lines.encode())
        return ids

    def receive(self) -> dict:
        line = self.lines.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the store has closed the connection")
        return json.loads(line)

    def answer(self) -> dict:
        while "id" not in (message := self.receive()):
            self.events.append(message)
        return message

    def call(self, method: str, **params: object) -> typing.Any:
        self.send([(method, params)])
        answer = self.answer()
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    def put(self, key: str, value: bytes) -> typing.Any:
        return self.call("put", key=key, value=encoded(value))

    def all(self, **params: str) -> "dict[str, Value]":
        return {entry["key"]: decoded(entry["value"]) for entry in self.call("range", **params)}

    def event(self) -> dict:
        message = self.events.pop(0) if self.events else self.receive()
        return message["params"]


class Store:
    """A process of the store, and its folder. With the library, it does not wait for the disk."""

    def __init__(self, *bounds: int, library: "str | None" = POWER_LOSS, **environment: str) -> None:
        self.folder = tempfile.mkdtemp()
        self.words = [PROGRAM, self.folder, "tcp://127.0.0.1:0", *map(str, bounds)]
        self.library = library
        self.environment = {**os.environ, **environment, **({"LD_PRELOAD": library} if library else {})}
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, text=True, env=self.environment)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().rpartition(":")[2])

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        ended_with = self.end(signal.SIGTERM)
        shutil.rmtree(self.folder)
        assert ended_with == 0, f"the store has ended with {ended_with}"

    def end(self, by: signal.Signals) -> int:
        self.process.send_signal(by)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.wait(WAIT_S)

    def restart(self) -> None:
        """After a kill; with the library on what a loss of power has left."""
        if self.library:
            shutil.copyfile(f"{self.folder}/data.mdb.durable", f"{self.folder}/data.mdb")
        self.start()

    def peer(self) -> Peer:
        return Peer(self.port)

    def gate(self) -> str:
        """Has each sync wait until this FIFO has been opened for writing and closed."""
        path = f"{self.folder}/data.mdb.gate"
        os.mkfifo(path)
        return path


class Writer(threading.Thread):
    """Writes keys of its own, some calls in flight at once, until the store has gone. `known` is what answered calls
    have left, and `unanswered` what each other call would."""

    IN_FLIGHT = 6

    def __init__(self, number: int, port: int, known: "dict[str, Value]", answered: threading.Semaphore) -> None:
        super().__init__()
        self.prefix = f"{number}."
        self.port, self.answered = port, answered
        self.random = random.Random(f"{SEED} {number} {len(known)}")
        self.known = {key: value for key, value in known.items() if key.startswith(self.prefix)}
        self.unanswered: "list[dict[str, Value]]" = []
        self.refused: "list[dict]" = []

    def changes(self, free: "list[str]") -> "dict[str, Value]":
        def value() -> bytes:
            return self.random.randbytes(self.random.choice([0, 10, 100, 5000]))

        kind = self.random.choice(["put", "put", "delete", "batch"])
        if kind == "put":
            return {free.pop(): value()}
        if kind == "delete":
            return {free.pop(): None}
        return {free.pop(): self.random.choice([value(), None]) for _ in range(3)}

    @staticmethod
    def call(changes: "dict[str, Value]") -> Call:
        if len(changes) > 1:
            return "batch", {"changes": [{"key": key, "value": encoded(value)} for key, value in changes.items()]}
        [(key, value)] = changes.items()
        return ("delete", {"key": key}) if value is None else ("put", {"key": key, "value": encoded(value)})

    def run(self) -> None:
        with contextlib.suppress(OSError), Peer(self.port) as peer:
            while True:
                free = [f"{self.prefix}{i}" for i in range(60)]
                self.random.shuffle(free)
                self.unanswered = [self.changes(free) for _ in range(self.IN_FLIGHT)]
                waiting = dict(zip(peer.send([self.call(changes) for changes in self.unanswered]), self.unanswered))
                while waiting:
                    answer = peer.answer()
                    changes = waiting.pop(answer["id"])
                    if "result" in answer:
                        self.unanswered.remove(changes)
                        self.known.update(changes)
                    else:
                        self.refused.append(answer)
                    self.answered.release()

    def losses(self, found: "dict[str, Value]") -> "list[str]":
        """What is not there as it was answered, and which unanswered calls are there in part."""
        losses = [f"refused: {answer}" for answer in self.refused]
        for changes in self.unanswered:
            before = {key: self.known.get(key) for key in changes}
            after = {key: found.get(key) for key in changes}
            if after not in (before, changes):
                losses.append(f"in part: {list(changes)}")
        open_keys = {key for changes in self.unanswered for key in changes}
        own = {key for key in found if key.startswith(self.prefix)}
        losses += [key for key in (own | set(self.known)) - open_keys if found.get(key) != self.known.get(key)]
        return losses


def rounds_of_killing(store: Store, rounds: int) -> "list[str]":
    """Kills the store while others write, and starts it again. Returns what was lost."""
    numbers = random.Random(SEED)
    found: "dict[str, Value]" = {}
    for _ in range(rounds):
        answered = threading.Semaphore(0)
        writers = [Writer(number, store.port, found, answered) for number in range(8)]
        for writer in writers:
            writer.start()
        for _ in range(numbers.randrange(1, 400)):
            assert answered.acquire(timeout=WAIT_S), "the store does not answer"
        store.end(signal.SIGKILL)
        for writer in writers:
            writer.join()
        store.restart()
        with store.peer() as peer:
            found = peer.all()
        losses = [loss for writer in writers for loss in writer.losses(found)]
        if losses:
            return losses
    return []


class Killing(unittest.TestCase):
    def test_what_was_answered_outlives_the_process_and_batches_are_whole(self) -> None:
        with Store(library=None) as store:
            self.assertEqual(rounds_of_killing(store, 8), [])

    @unittest.skipUnless(POWER_LOSS, "needs the library")
    def test_what_was_answered_outlives_a_loss_of_power_and_batches_are_whole(self) -> None:
        with Store() as store:
            self.assertEqual(rounds_of_killing(store, 8), [])

    @unittest.skipUnless(POWER_LOSS, "needs the library")
    def test_a_store_that_does_not_sync_is_found_out(self) -> None:
        with Store(POWER_LOSS_NOSYNC="1") as store:
            self.assertNotEqual(rounds_of_killing(store, 1), [])


@unittest.skipUnless(POWER_LOSS, "needs the library")
class Commit(unittest.TestCase):
    """With a gate before the disk, at which the store waits as long as it is held open here."""

    def test_nobody_hears_of_a_change_before_it_is_on_disk_and_reads_do_not_wait_for_it(self) -> None:
        with Store() as store, store.peer() as watcher, store.peer() as peer:
            peer.put("a", b"1")
            watcher.call("watch")
            gate = store.gate()
            [put] = peer.send([("put", {"key": "a", "value": encoded(b"2")})])
            with open(gate, "wb"):
                [get] = peer.send([("get", {"key": "a"})])
                self.assertEqual(peer.answer(), {"jsonrpc": "2.0", "result": encoded(b"1"), "id": get})
                self.assertEqual(decoded(watcher.call("get", key="a")), b"1")
                self.assertEqual(watcher.events, [])
            self.assertEqual(peer.answer(), {"jsonrpc": "2.0", "result": 1, "id": put})
            self.assertEqual(watcher.event()["result"], {"key": "a", "value": encoded(b"2")})
            self.assertEqual(decoded(watcher.call("get", key="a")), b"2")

    def test_512_callers_that_have_come_meanwhile_share_the_next_sync(self) -> None:
        with Store() as store, store.peer() as peer:
            gate = store.gate()
            ids = peer.send([("put", {"key": "first", "value": encoded(b"")})])
            with open(gate, "wb"):
                ids += peer.send([("put", {"key": f"{i}", "value": encoded(b"")}) for i in range(512)])
                [get] = peer.send([("get", {"key": "first"})])
                self.assertEqual(peer.answer()["id"], get, "so that all have been received")
            self.assertEqual(peer.answer(), {"jsonrpc": "2.0", "result": 1, "id": ids[0]})
            with open(gate, "wb"):
                pass
            answers = [peer.answer() for _ in range(512)]
            self.assertEqual(sorted(answer["id"] for answer in answers if answer["result"] == 1), ids[1:])


class Bounds(unittest.TestCase):
    def refused(self, peer: Peer, method: str, **params: object) -> Refused:
        with self.assertRaises(Refused) as caught:
            peer.call(method, **params)
        return caught.exception

    def test_keys_have_1_to_511_bytes(self) -> None:
        with Store() as store, store.peer() as peer:
            longest = "ä" * 255 + "x"
            peer.put(longest, b"1")
            self.assertEqual(decoded(peer.call("get", key=longest)), b"1")
            self.assertEqual(peer.call("range", first=longest), [{"key": longest, "value": encoded(b"1")}])
            for key in ("", longest + "x"):
                for method, params in (
                    ("get", {"key": key}),
                    ("put", {"key": key, "value": encoded(b"")}),
                    ("delete", {"key": key}),
                    ("batch", {"changes": [{"key": "a", "value": encoded(b"")}, {"key": key, "value": None}]}),
                ):
                    refusal = self.refused(peer, method, **params)
                    self.assertEqual((refusal.code, refusal.data["loc"]), (-32602, ["key"]), (method, key))
            self.assertEqual(list(peer.all()), [longest], "a batch that is refused in part is refused whole")

    def test_values_have_the_bytes_that_the_store_says(self) -> None:
        with Store(1 << 24, 100) as store, store.peer() as peer:
            for size in (0, 100):
                peer.put("a", b"x" * size)
                self.assertEqual(decoded(peer.call("get", key="a")), b"x" * size)
            refusal = self.refused(peer, "put", key="a", value=encoded(b"x" * 101))
            self.assertEqual((refusal.code, refusal.data["limit"]), (-32006, "value_bytes"))

    def test_a_value_is_required_in_a_batch_and_null_deletes(self) -> None:
        with Store() as store, store.peer() as peer:
            self.assertEqual(peer.put("a", b"1"), 1)
            self.assertEqual(self.refused(peer, "batch", changes=[{"key": "a", "valeu": None}]).code, -32602)
            self.assertEqual(peer.call("batch", changes=[{"key": "a", "value": None}, {"key": "b", "value": None}]), 1)
            self.assertEqual(peer.call("delete", key="a"), 0)
            self.assertIsNone(peer.call("get", key="a"))

    def test_a_full_store_refuses_what_does_not_fit_and_only_that(self) -> None:
        with Store(1 << 20) as store, store.peer() as peer:
            size = {f"{i:02}": 60_000 if i % 2 else 100 for i in range(60)}
            ids = peer.send([("put", {"key": key, "value": encoded(b"x" * size[key])}) for key in size])
            answers = {answer["id"]: answer for answer in (peer.answer() for _ in ids)}
            stored = {key for i, key in enumerate(size) if "result" in answers[ids[i]]}
            for i, key in enumerate(size):
                if key not in stored:
                    error = answers[ids[i]]["error"]
                    self.assertEqual((error["code"], error["data"]["limit"]), (-32005, "map_bytes"))
            self.assertEqual(set(peer.all()), stored)
            self.assertLess(len(stored), 60)
            self.assertGreaterEqual(stored, {key for key in size if size[key] == 100}, "those that fit")


class Range(unittest.TestCase):
    def test_keys_from_the_first_to_before_the_end_in_the_order_of_their_bytes(self) -> None:
        with Store() as store, store.peer() as peer:
            for key in ("b", "a", "ä", "c", "bb"):
                peer.put(key, key.encode())
            self.assertEqual(list(peer.all()), ["a", "b", "bb", "c", "ä"])
            self.assertEqual(peer.all(first="b", end="c"), {"b": b"b", "bb": b"bb"})
            self.assertEqual(peer.all(first="aa", end="b"), {})

    def test_a_stream_has_what_is_there_as_it_comes_to_it(self) -> None:
        with Store() as store, store.peer() as peer, store.peer() as other:
            value = b"x" * 1000
            changes = [{"key": f"{i:04}", "value": encoded(value)} for i in range(500)]
            other.call("batch", changes=changes)
            peer.send([("range", {})], stream=1)
            keys = [peer.receive()["params"]["value"]["key"]]
            other.call("batch", changes=[{**change, "value": None} for change in changes[100:499]])
            peer.send([("rpc.credit", {"id": 0, "n": 1000})])
            while (message := peer.receive()).get("method") == "rpc.item":
                keys.append(message["params"]["value"]["key"])
            self.assertEqual(message["id"], 0)
            self.assertLess(len(keys), 150, "what was deleted behind the present block is not there")
            self.assertEqual((keys[0], keys[-1], sorted(keys)), ("0000", "0499", keys))

    def test_streams_that_nobody_reads_keep_no_pages_from_being_used_again(self) -> None:
        with Store(1 << 21) as store, store.peer() as slow, store.peer() as peer:
            value = b"x" * 4000
            peer.call("batch", changes=[{"key": f"{i:02}", "value": encoded(value)} for i in range(50)])
            slow.send([("range", {})] * 300, stream=1)
            for _ in range(300):
                slow.receive()
            for _ in range(600):  # more than the map has pages
                peer.put("00", value)


class Watch(unittest.TestCase):
    def test_each_committed_change_is_heard_in_order_and_is_there_then(self) -> None:
        with Store() as store, store.peer() as watcher, store.peer() as reader, contextlib.ExitStack() as stack:
            watcher.call("watch", prefix="w.")
            writers = [stack.enter_context(store.peer()) for _ in range(4)]
            for i in range(1, 101):
                for number, writer in enumerate(writers):
                    writer.send(
                        [
                            ("put", {"key": f"w.{number}", "value": encoded(b"%d" % i)}),
                            ("put", {"key": f"v.{number}", "value": encoded(b"")}),
                        ]
                    )
            heard: "dict[str, list[int]]" = {f"w.{number}": [] for number in range(4)}
            for _ in range(400):
                change = watcher.event()["result"]
                i = int(decoded(change["value"]) or b"")
                heard[change["key"]].append(i)
                self.assertGreaterEqual(int(decoded(reader.call("get", key=change["key"])) or b""), i)
            self.assertEqual(heard, {key: list(range(1, 101)) for key in heard})
            changes = [
                {"key": "w.a", "value": encoded(b"1")},
                {"key": "x", "value": encoded(b"2")},
                {"key": "w.b", "value": None},
                {"key": "w.a", "value": None},
            ]
            reader.call("batch", changes=changes)
            told = [watcher.event()["result"] for _ in range(3)]
            self.assertEqual(told, [changes[0], *changes[2:]])

    def test_what_is_refused_is_not_heard(self) -> None:
        with Store(1 << 24, 10) as store, store.peer() as peer:
            peer.call("watch")
            with self.assertRaises(Refused):
                peer.call(
                    "batch", changes=[{"key": "a", "value": encoded(b"")}, {"key": "b", "value": encoded(b"x" * 11)}]
                )
            peer.put("c", b"")
            self.assertEqual(peer.event()["result"]["key"], "c")

    def test_who_does_not_read_in_time_is_told_so(self) -> None:
        with Store() as store, store.peer() as watcher, store.peer() as peer:
            watcher.call("watch")
            value = encoded(b"x" * (1 << 20))
            for _ in range(90):
                peer.call("put", key="a", value=value)
            while "result" in (event := watcher.event()):
                pass
            self.assertEqual((event["error"]["code"], event["error"]["data"]["limit"]), (-32005, "watch_bytes"))


if __name__ == "__main__":
    print(f"SEED={SEED}", file=sys.stderr)
    unittest.main()
