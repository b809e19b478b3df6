"""SIGUSR2 at a program with workers: it starts again, and the workers of that process take over from these."""

import contextlib
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from restarts import DEAF, Manager

import wirecall

PROGRAM = """
import contextlib
import logging
import os
import pathlib
import time
import wirecall

logging.basicConfig(level=logging.INFO)
VERSION = 1

@contextlib.contextmanager
def lifespan(app):
    pass
    yield

app = wirecall.Server("restarted", drain_ms=60_000, lifespan=lifespan)

@app
def version() -> tuple[int, int]:
    return os.getpid(), VERSION

@app
def parent() -> int:
    return os.getppid()

@app
def wait_for(begun: str, end: str) -> int:
    pathlib.Path(begun).touch()
    while not os.path.exists(end):
        time.sleep(0.001)
    return VERSION

@app
def die() -> None:
    os._exit(3)

app.run("URI", workers=2)
"""


class Serving:
    def __init__(self, folder: pathlib.Path, uri: str, workers: int = 2) -> None:
        self.program = folder / "program.py"
        self.program.write_text(PROGRAM.replace("URI", uri).replace("workers=2", f"workers={workers}"))
        self.process = subprocess.Popen(
            [sys.executable, self.program], stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.parent = self.process.pid  # of those who serve
        self.parents = [self.parent]
        endpoint = re.search(r"at (\S+?),? ", self.log_until("(Ctrl-C to stop)"))
        assert endpoint
        self.uri = endpoint[1]

    def change(self, before: str, after: str) -> None:
        text = self.program.read_text()
        assert before in text
        self.program.write_text(text.replace(before, after))

    def log_until(self, word: str) -> str:
        assert self.process.stderr is not None
        said = ""
        while word not in said:
            line = self.process.stderr.readline()
            assert line, said
            said += line
        return said

    def begin_restart(self) -> int:
        """The process that is to take over."""
        os.kill(self.parent, signal.SIGUSR2)
        started = re.search(r"process (\d+) is started to take over", self.log_until("is started to take over"))
        assert started
        self.parents.append(int(started[1]))
        return self.parents[-1]

    def restart(self) -> int:
        """Another process has taken over when this returns."""
        started = self.begin_restart()
        self.log_until(f"process {started} has taken over")
        self.parent = started
        return started

    def connect(self) -> wirecall.Client:
        return wirecall.connect(self.uri, wait_ms=20_000)

    def ask(self) -> tuple[int, int]:
        with self.connect() as c:
            pid, version = c.version()
            return pid, version

    def ask_until(self, count: int, known: frozenset[int] = frozenset()) -> set[int]:
        """Until so many processes have answered beyond the known ones."""
        heard: set[int] = set()
        while len(heard) < count:
            heard |= {self.ask()[0]} - known
        return heard

    def end(self) -> None:
        """All processes that it knows of, each with its workers."""
        for pid in self.parents:
            with contextlib.suppress(OSError):
                children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                for one in (pid, *map(int, children)):
                    os.kill(one, signal.SIGKILL)
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()


class Callers:
    """Threads that connect and call all the time, none of them a second time."""

    def __init__(self, serving: Serving, count: int = 2) -> None:
        self._over = threading.Event()
        self._failures: list[Exception] = []
        self._threads = [threading.Thread(target=self._call_on, args=(serving.uri,), daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _call_on(self, uri: str) -> None:
        while not self._over.is_set():
            try:
                with wirecall.connect(uri, wait_ms=0) as c:
                    c.version()
            except Exception as failure:
                self._failures.append(failure)

    def end(self) -> list[Exception]:
        self._over.set()
        for thread in self._threads:
            thread.join()
        return self._failures


@pytest.fixture(params=["unix", "tcp"])
def uri(tmp_path, request) -> str:
    return f"unix://{tmp_path}/calls.sock" if request.param == "unix" else "tcp://127.0.0.1:0"


@pytest.fixture
def serving(tmp_path, uri) -> Iterator[Serving]:
    served = Serving(tmp_path, uri)
    yield served
    served.end()


def has_ended(pid: int) -> bool:
    """Whether that process ends within a time that is enough."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], 60)[0])
    finally:
        os.close(process)


@pytest.mark.parametrize(("before", "after"), [(2, 2), (2, 3), (3, 2), (2, 1), (1, 2)])
def test_the_program_as_it_is_now_takes_over_with_as_many_workers_as_it_says_and_nobody_notices(
    tmp_path, uri, before, after
):
    serving = Serving(tmp_path, uri, before)
    callers = Callers(serving)
    try:
        old = serving.ask_until(before)
        serving.change("VERSION = 1", "VERSION = 2")
        serving.change(f"workers={before}", f"workers={after}")
        started = serving.restart()
        assert serving.process.wait(60) == 0
        assert all(has_ended(pid) for pid in old)
        new = serving.ask_until(after, frozenset(old))
        assert serving.ask()[1] == 2
        assert (started in new) == (after == 1)
        assert callers.end() == []
        os.kill(started, signal.SIGTERM)
        assert all(has_ended(pid) for pid in new)
        if uri.startswith("unix"):
            assert not pathlib.Path(uri.removeprefix("unix://")).exists()
    finally:
        callers.end()
        serving.end()


def test_five_in_a_row_are_noticed_by_nobody(serving):
    callers = Callers(serving)
    for _ in range(5):
        known = frozenset(serving.ask_until(2))
        serving.restart()
        serving.ask_until(2, known)
    assert callers.end() == []
    assert serving.process.wait(60) == 0


def test_a_call_in_progress_is_answered_by_the_old_worker_and_a_client_that_stays_is_served_by_it(serving, tmp_path):
    begun, end = tmp_path / "begun", tmp_path / "end"
    answers: list[int] = []

    def call() -> None:
        with serving.connect() as c:
            answers.append(c.wait_for(str(begun), str(end)))

    with wirecall.connect(serving.uri) as stays:
        before = stays.version()
        caller = threading.Thread(target=call, daemon=True)
        caller.start()
        while not begun.exists():
            pass
        serving.change("VERSION = 1", "VERSION = 2")
        serving.restart()
        while serving.ask()[1] == 1:  # an old worker may still accept for a moment
            pass
        assert stays.version() == before
        end.touch()
        caller.join()
        assert answers == [1]
        assert serving.process.poll() is None
    assert serving.process.wait(60) == 0


def test_who_connects_while_one_with_more_workers_comes_up_is_served_by_the_old_ones(tmp_path):
    serving = Serving(tmp_path, "tcp://127.0.0.1:0")
    try:
        old = serving.ask_until(2)
        end = tmp_path / "end"
        serving.change("workers=2", "workers=6")
        serving.change("    pass\n", f"    while not os.path.exists({str(end)!r}): time.sleep(0.001)\n")
        started = serving.begin_restart()
        serving.log_until("by 6 workers")  # it has all its sockets
        assert {serving.ask()[0] for _ in range(60)} <= old
        end.touch()
        serving.log_until(f"process {started} has taken over")
        serving.ask_until(6, frozenset(old))
    finally:
        serving.end()


def test_where_one_worker_does_not_come_up_the_old_ones_go_on(serving):
    old = serving.ask_until(2)
    serving.change("    pass\n", "    raise OSError\n")
    started = serving.begin_restart()
    said = serving.log_until("no other process takes over, and this one goes on")
    assert f"process {started} has not come up; its exit status is 1" in said
    assert "has ended with status 1; the process that was to be replaced goes on" in said
    assert serving.ask_until(2) == old
    serving.change("    raise OSError\n", "    pass\n")
    serving.restart()
    serving.ask_until(2, frozenset(old))
    assert serving.process.wait(60) == 0


def test_one_that_does_not_come_up_leaves_the_old_ones_as_they_were(serving):
    old = serving.ask_until(2)
    serving.program.write_text("raise SystemExit(7)")
    serving.begin_restart()
    assert "its exit status is 7" in serving.log_until("no other process takes over, and this one goes on")
    assert serving.ask_until(2) == old


def test_one_that_comes_up_and_cannot_be_told_to_serve_leaves_the_old_ones_as_they_were(serving):
    old = serving.ask_until(2)
    serving.program.write_text("""
import json, os, socket
_, channel, *_ = json.loads(os.environ["WIRECALL_PYTHON_RESTART"])
with socket.socket(fileno=channel) as told:
    told.send(b"2")  # something else
    told.recv(1)
    while True:
        pass
""")
    serving.begin_restart()
    assert "its exit status is -15" in serving.log_until("no other process takes over, and this one goes on")
    assert serving.ask_until(2) == old


def test_one_that_is_sent_sigusr2_while_it_starts_takes_over_and_is_replaced_then(serving, tmp_path):
    old = serving.ask_until(2)
    marker = tmp_path / "marker"
    serving.change(
        "VERSION = 1",
        f"""VERSION = 2
import signal
if not os.path.exists({str(marker)!r}):
    pathlib.Path({str(marker)!r}).touch()
    os.kill(os.getpid(), signal.SIGUSR2)
""",
    )
    serving.begin_restart()
    said = serving.log_until("has taken over")
    said += serving.log_until("has taken over")
    assert "this one goes on" not in said
    serving.parents += map(int, re.findall(r"process (\d+) has taken over", said))
    serving.ask_until(2, frozenset(old))
    assert serving.process.wait(60) == 0


def test_a_service_manager_is_told_by_the_parent_when_all_serve_and_which_process_is_the_main_one(
    tmp_path, monkeypatch
):
    manager = Manager(tmp_path)
    monkeypatch.setenv("NOTIFY_SOCKET", str(manager.path))
    serving = Serving(tmp_path, f"unix://{tmp_path}/calls.sock")
    try:
        old = serving.ask_until(2)
        assert manager.heard() == "READY=1\n"
        started = serving.restart()
        serving.ask_until(2, frozenset(old))
        assert manager.heard() == f"MAINPID={started}\n"
        assert manager.heard() == "READY=1\n"
        assert manager.has_heard_all()
        assert serving.process.wait(60) == 0
    finally:
        serving.end()


def test_where_the_old_parent_goes_on_it_is_the_main_process_again(tmp_path, monkeypatch):
    manager = Manager(tmp_path)
    monkeypatch.setenv("NOTIFY_SOCKET", str(manager.path))
    serving = Serving(tmp_path, f"unix://{tmp_path}/calls.sock")
    try:
        assert manager.heard() == "READY=1\n"
        serving.program.write_text(DEAF)
        started = serving.begin_restart()
        said = serving.log_until("no other process takes over, and this one goes on")
        assert "has come up, but this one cannot let go" in said
        assert manager.heard() == f"MAINPID={started}\n"
        assert manager.heard() == f"MAINPID={serving.process.pid}\n"
    finally:
        serving.end()


def test_a_worker_that_crashes_meanwhile_is_replaced_and_then_with_the_others(serving, tmp_path):
    end = tmp_path / "end"
    old = serving.ask_until(2)
    serving.change("VERSION = 1", f"while not os.path.exists({str(end)!r}): time.sleep(0.001)\nVERSION = 2")
    started = serving.begin_restart()
    with contextlib.suppress(wirecall.ConnectionLost), serving.connect() as c:
        c.die()
    serving.log_until("has ended with status 3; another takes its place")
    (again,) = serving.ask_until(2) - old
    end.touch()
    serving.log_until(f"process {started} has taken over")
    new = serving.ask_until(2, frozenset(old | {again}))
    assert not new & old
    assert serving.process.wait(60) == 0


def test_where_the_old_parent_dies_meanwhile_the_new_workers_serve(serving):
    old = serving.ask_until(2)
    serving.begin_restart()
    serving.process.send_signal(signal.SIGSTOP)  # it hears no more of the other one
    serving.process.kill()
    serving.process.wait(60)
    assert all(has_ended(pid) for pid in old)
    serving.ask_until(2, frozenset(old))


def test_where_the_new_parent_dies_before_it_has_come_up_the_old_ones_go_on(serving):
    old = serving.ask_until(2)
    serving.change("    pass\n", "    time.sleep(1000)\n")
    started = serving.begin_restart()
    os.kill(started, signal.SIGKILL)
    assert "its exit status is -9" in serving.log_until("no other process takes over, and this one goes on")
    assert serving.ask_until(2) == old


def test_one_that_is_told_to_end_ends_the_process_that_it_has_started(serving):
    old = serving.ask_until(2)
    serving.change("VERSION = 1", "time.sleep(1000)")
    started = serving.begin_restart()
    serving.process.send_signal(signal.SIGTERM)
    assert serving.process.wait(60) == 0
    assert all(has_ended(pid) for pid in (started, *old))


def test_a_worker_that_crashes_after_another_process_has_taken_over_has_no_successor(serving):
    with wirecall.connect(serving.uri) as stays:
        stays.version()
        old = serving.ask_until(2)
        serving.restart()
        serving.ask_until(2, frozenset(old))
        with contextlib.suppress(wirecall.ConnectionLost):
            stays.die()
    assert serving.process.wait(60) == 0


def test_sigterm_at_one_that_has_been_replaced_ends_its_workers(serving):
    with wirecall.connect(serving.uri) as stays:
        pid, _ = stays.version()
        serving.restart()
        serving.process.send_signal(signal.SIGTERM)
        assert has_ended(pid)
    assert serving.process.wait(60) == 0


def test_sigusr2_at_a_worker_does_nothing(serving):
    old = serving.ask_until(2)
    for pid in old:
        os.kill(pid, signal.SIGUSR2)
    assert serving.ask_until(2) == old
    with serving.connect() as c:
        assert c.parent() == serving.process.pid
