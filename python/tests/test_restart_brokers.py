"""SIGUSR2 at a program that serves a broker: the new process has its sessions, retained values and durable store."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from restarts import DEAF

import wirecall

WAIT_S = 60

PROGRAM = """
import logging
import os
import wirecall

logging.basicConfig(level=logging.INFO)

app = wirecall.Server("restarted", broker={broker}{options})

@app
def pid() -> int:
    return os.getpid()

app.run("unix://{socket}", quiet=True)
"""


class Serving:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.socket = folder / "calls.sock"
        self.uri = f"unix://{self.socket}"
        self.program = folder / "program.py"

    def write(self, broker: bool = True, options: str = "") -> None:
        self.program.write_text(PROGRAM.format(broker=broker, options=options, socket=self.socket))

    def start(self, broker: bool = True, options: str = "") -> None:
        self.write(broker, options)
        self.process = subprocess.Popen(
            [sys.executable, self.program], stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        while self.process.poll() is None and not self.socket.exists():
            pass
        assert self.pid() == self.process.pid

    def connect(self, **options: Any) -> wirecall.Client:
        return wirecall.connect(self.uri, wait_ms=20_000, **options)

    def pid(self) -> int:
        with self.connect() as c:
            return int(c.pid())

    def replace(self) -> None:
        """Returns once another process serves who connects."""
        self.process.send_signal(signal.SIGUSR2)
        self.log_until("has taken over")
        assert self.pid() != self.process.pid

    def log_until(self, word: str) -> str:
        assert self.process.stderr is not None
        said = ""
        while word not in said:
            line = self.process.stderr.readline()
            assert line, said
            said += line
        return said


@pytest.fixture
def serving(tmp_path: pathlib.Path) -> Iterator[Serving]:
    serving = Serving(tmp_path)
    try:
        yield serving
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(serving.process.pid, signal.SIGKILL)
        serving.process.communicate()


class PlainClient:
    """Knows only JSON-RPC: it stays with the process that it has connected to."""

    def __init__(self, path: pathlib.Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(WAIT_S)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile()

    def call(self, method: str, *params: Any) -> Any:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        return self.read()["result"]

    def read(self) -> Any:
        return json.loads(self._lines.readline())

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


def test_names_methods_subscriptions_and_retained_values_cross_and_no_call_fails(serving: Serving) -> None:
    serving.start()
    events: queue.Queue[tuple[str, Any]] = queue.Queue()
    with serving.connect(client_id="worker") as worker, serving.connect(client_id="caller") as caller:
        worker.provide("work.upper", str.upper)
        worker.subscribe("news.>", lambda topic, value: events.put((topic, value)))
        caller.publish("state.door", "open", retain=True)
        over = threading.Event()
        failures: list[Exception] = []

        def call_on() -> None:
            while not over.is_set():
                try:
                    assert caller.work.upper("a", _to="worker") == "A"
                except Exception as failure:
                    failures.append(failure)

        calling = threading.Thread(target=call_on)
        calling.start()
        serving.replace()
        assert serving.process.wait(WAIT_S) == 0
        caller.publish("news.today", 1)
        assert events.get(timeout=WAIT_S) == ("news.today", 1)
        over.set()
        calling.join()
        assert not failures
        last: queue.Queue[Any] = queue.Queue()
        caller.subscribe("state.door", lambda _, value: last.put(value), last=True)
        assert last.get(timeout=WAIT_S) == "open"


def test_events_and_calls_reach_the_clients_of_both_processes(serving: Serving) -> None:
    serving.start()
    plain = PlainClient(serving.socket)
    assert plain.call("rpc.subscribe", "news.*")
    serving.replace()
    with serving.connect(client_id="worker") as worker:
        worker.provide("work.upper", str.upper)
        worker.publish("news.today", 1)
        assert plain.read() == {"jsonrpc": "2.0", "method": "news.today", "params": [1]}
        assert plain.call("work.upper", "a") == "A"
    plain.close()
    assert serving.process.wait(WAIT_S) == 0


def test_the_durable_store_crosses(serving: Serving) -> None:
    serving.start(options=f', durable={{"path": {str(serving.folder / "data")!r}}}')
    with serving.connect(client_id="one") as c:
        assert c.publish_durable("orders.new", 1) == {"seq": 1}
        serving.replace()
        assert c.publish_durable("orders.new", 2) == {"seq": 2}
        came: queue.Queue[Any] = queue.Queue()
        c.subscribe("orders.>", lambda _, value: came.put(value), durable="billing", start="first")
        assert [came.get(timeout=WAIT_S) for _ in range(2)] == [1, 2]


def test_one_that_cannot_open_the_store_leaves_the_old_one_as_it_was(serving: Serving) -> None:
    serving.start(options=f', durable={{"path": {str(serving.folder / "data")!r}}}')
    with serving.connect(client_id="one") as c:
        c.publish("state.door", "open", retain=True)
        (serving.folder / "file").touch()
        serving.write(options=f', durable={{"path": {str(serving.folder / "file")!r}}}')
        serving.process.send_signal(signal.SIGUSR2)
        serving.log_until("this one goes on")
        assert c.publish_durable("orders.new", 1) == {"seq": 1}
        assert serving.pid() == serving.process.pid
        serving.write(options=f', durable={{"path": {str(serving.folder / "data")!r}}}')
        serving.replace()
        assert c.publish_durable("orders.new", 2) == {"seq": 2}


def test_one_that_comes_up_and_says_nothing_more_leaves_the_old_one_as_it_was(serving: Serving) -> None:
    serving.start()
    with serving.connect(client_id="worker") as worker, serving.connect() as caller:
        worker.provide("work.upper", str.upper)
        serving.program.write_text(DEAF.replace('b"1"', 'b"b"'))
        serving.process.send_signal(signal.SIGUSR2)
        serving.log_until("this one goes on")
        assert caller.work.upper("a") == "A"
    assert serving.pid() == serving.process.pid


def test_a_program_that_is_no_broker_does_not_take_over_from_one(serving: Serving) -> None:
    serving.start()
    serving.write(broker=False)
    serving.process.send_signal(signal.SIGUSR2)
    assert "is no broker any more" in serving.log_until("this one goes on")
    assert serving.pid() == serving.process.pid


def test_a_program_that_has_become_a_broker_takes_over(serving: Serving) -> None:
    serving.start(broker=False)
    serving.write(broker=True, options=f', durable={{"path": {str(serving.folder / "data")!r}}}')
    serving.replace()
    with serving.connect(client_id="one") as c:
        assert c.publish_durable("orders.new", 1) == {"seq": 1}


def test_where_the_old_one_dies_meanwhile_the_new_one_serves(serving: Serving) -> None:
    serving.start(options=f', durable={{"path": {str(serving.folder / "data")!r}}}')
    serving.process.send_signal(signal.SIGUSR2)
    serving.log_until("is started to take over")
    serving.process.send_signal(signal.SIGSTOP)  # it hears no more of the other one
    serving.process.kill()
    serving.process.wait(WAIT_S)
    assert serving.pid() != serving.process.pid
    with serving.connect(client_id="one") as c:
        assert c.publish_durable("orders.new", 1) == {"seq": 1}
