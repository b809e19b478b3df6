"""SIGUSR2: the program starts again, and the new process takes over; what cannot be replaced goes on."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading

import pytest
from restarts import DEAF, Manager

import wirecall

PROGRAM = """
import logging
import os
import wirecall

logging.basicConfig(level=logging.INFO)

app = wirecall.Server("restarted"{how})
VERSION = 1

@app
def version() -> tuple[int, int]:
    return os.getpid(), VERSION

app.run("unix://{socket}", quiet=True)
"""


class Serving:
    def __init__(self, folder: pathlib.Path, how: str = "") -> None:
        self.socket = folder / "calls.sock"
        self.program = folder / "program.py"
        self.program.write_text(PROGRAM.format(how=how, socket=self.socket))
        self.process = subprocess.Popen(
            [sys.executable, self.program], stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.uri = f"unix://{self.socket}"
        while self.process.poll() is None and not self.socket.exists():
            pass
        self.ask()

    def ask(self) -> tuple[int, int]:
        with wirecall.connect(self.uri, wait_ms=20_000) as c:
            pid, version = c.version()
            return pid, version

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def log_until(self, word: str) -> str:
        assert self.process.stderr is not None
        said = ""
        while word not in said:
            line = self.process.stderr.readline()
            assert line, said
            said += line
        return said


def test_the_program_as_it_is_now_takes_over_and_nobody_notices(tmp_path):
    serving = Serving(tmp_path)
    try:
        over = threading.Event()
        failures: list[Exception] = []

        def call_on() -> None:
            while not over.is_set():
                try:
                    serving.ask()
                except Exception as failure:
                    failures.append(failure)

        caller = threading.Thread(target=call_on)
        caller.start()
        serving.program.write_text(serving.program.read_text().replace("VERSION = 1", "VERSION = 2"))
        serving.process.send_signal(signal.SIGUSR2)
        while serving.ask()[1] == 1:
            pass
        assert serving.process.wait(60) == 0
        pid, version = serving.ask()
        assert pid != serving.process.pid
        assert version == 2
        over.set()
        caller.join()
        assert not failures
        assert serving.socket.exists()
        os.kill(pid, signal.SIGTERM)
    finally:
        serving.end()


def test_one_that_does_not_come_up_leaves_the_old_one_as_it_was(tmp_path):
    serving = Serving(tmp_path)
    try:
        text = serving.program.read_text()
        serving.program.write_text("raise SystemExit(7)")
        serving.process.send_signal(signal.SIGUSR2)
        said = serving.log_until("no other process takes over, and this one goes on")
        assert "its exit status is 7" in said
        assert serving.ask() == (serving.process.pid, 1)
        serving.program.write_text(text)
        serving.process.send_signal(signal.SIGUSR2)
        assert serving.process.wait(60) == 0
        assert serving.ask()[0] != serving.process.pid
    finally:
        serving.end()


def test_one_that_comes_up_and_cannot_be_told_to_serve_leaves_the_old_one_as_it_was(tmp_path):
    serving = Serving(tmp_path)
    try:
        serving.program.write_text(DEAF)
        serving.process.send_signal(signal.SIGUSR2)
        serving.log_until("no other process takes over, and this one goes on")
        assert serving.ask() == (serving.process.pid, 1)
        assert serving.socket.exists()
    finally:
        serving.end()


def test_one_that_is_sent_sigusr2_while_it_starts_takes_over_all_the_same(tmp_path):
    serving = Serving(tmp_path)
    try:
        early = f"""
import os, pathlib, signal
marker = pathlib.Path({str(tmp_path / "marker")!r})
if not marker.exists():
    marker.touch()
    os.kill(os.getpid(), signal.SIGUSR2)
"""
        serving.program.write_text(early + serving.program.read_text())
        serving.process.send_signal(signal.SIGUSR2)
        said = serving.log_until("has taken over")
        # It has been told as well, and starts another one.
        said += serving.log_until("has taken over")
        assert "this one goes on" not in said
        assert serving.process.wait(60) == 0
    finally:
        serving.end()


def test_a_service_manager_is_told_which_process_is_the_main_one(tmp_path, monkeypatch):
    manager = Manager(tmp_path)
    monkeypatch.setenv("NOTIFY_SOCKET", str(manager.path))
    serving = Serving(tmp_path)
    try:
        assert manager.heard() == "READY=1\n"
        serving.process.send_signal(signal.SIGUSR2)
        told = manager.heard()
        assert manager.heard() == "READY=1\n"
        assert serving.process.wait(60) == 0
        pid, _ = serving.ask()
        assert told == f"MAINPID={pid}\n"
        assert pid != serving.process.pid
    finally:
        serving.end()


def test_where_the_old_one_goes_on_it_is_the_main_one_again(tmp_path, monkeypatch):
    manager = Manager(tmp_path)
    monkeypatch.setenv("NOTIFY_SOCKET", str(manager.path))
    serving = Serving(tmp_path)
    try:
        assert manager.heard() == "READY=1\n"
        serving.program.write_text(DEAF)
        serving.process.send_signal(signal.SIGUSR2)
        serving.log_until("no other process takes over, and this one goes on")
        assert manager.heard().startswith("MAINPID=")
        assert manager.heard() == f"MAINPID={serving.process.pid}\n"
    finally:
        serving.end()


def test_where_the_old_one_dies_meanwhile_the_new_one_serves(tmp_path):
    serving = Serving(tmp_path)
    try:
        serving.process.send_signal(signal.SIGUSR2)
        serving.log_until("is started to take over")
        serving.process.send_signal(signal.SIGSTOP)  # it hears no more of the other one
        serving.process.kill()
        serving.process.wait(60)
        pid, _ = serving.ask()
        assert pid != serving.process.pid
    finally:
        serving.end()


def test_one_that_is_told_to_end_ends_the_process_that_it_has_started(tmp_path):
    serving = Serving(tmp_path)
    try:
        serving.program.write_text("import time\ntime.sleep(1000)")
        serving.process.send_signal(signal.SIGUSR2)
        line = serving.log_until("is started to take over").splitlines()[-1]
        started = int(line.split("process ")[1].split()[0])
        serving.process.send_signal(signal.SIGTERM)
        assert serving.process.wait(60) == 0
        with pytest.raises(ProcessLookupError):
            os.kill(started, 0)
    finally:
        serving.end()


def test_what_tells_a_process_of_its_predecessor_is_for_the_one_that_was_started_alone():
    told = {**os.environ, "WIRECALL_PYTHON_RESTART": '[1, 900, 1, [[901, "tcp://127.0.0.1:1"]]]'}
    subprocess.run([sys.executable, "-c", "import wirecall"], env=told, check=True)


def test_the_command_serves_a_program_that_is_replaced(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.split("app.run", maxsplit=1)[0].format(how=""))
    command = pathlib.Path(sys.executable).with_name("wirecall")
    uri = f"unix://{tmp_path}/calls.sock"
    with subprocess.Popen([command, "serve", program, "--listen", uri], stderr=subprocess.PIPE, text=True) as old:
        assert old.stderr is not None
        assert old.stderr.readline()
        old.send_signal(signal.SIGUSR2)
        assert old.wait(60) == 0
        with wirecall.connect(uri) as c:
            pid, _ = c.version()
        assert pid != old.pid
        os.kill(pid, signal.SIGTERM)
