"""`wirecall serve FILE.py --reload`: what is saved is served."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import wirecall
from wirecall import _reload

TOOL = str(pathlib.Path(sys.executable).with_name("wirecall"))

PROGRAM = """
import asyncio
import os
import sys
import wirecall

app = wirecall.Server("calc", drain_ms=50)

@app
def answer() -> int:
    return 1

@app
def pid() -> int:
    return os.getpid()

@app
async def hold() -> None:
    print("holds", file=sys.stderr, flush=True)
    await asyncio.sleep(3600)

@app
def stop() -> None:
    app.stop()
"""


def saying(number: int) -> str:
    return PROGRAM.replace("return 1", f"return {number}")


class Reloading:
    """The command in a folder that has the program as calc.py, at a socket in that folder."""

    def __init__(self, folder: pathlib.Path, *words: str, command: tuple[str, ...] = (TOOL,)) -> None:
        self.folder = folder
        self.uri = f"unix://{folder}/socket"
        self.save(PROGRAM)
        self.process = subprocess.Popen(
            [*command, "serve", "--reload", *(words or ("calc.py",)), "--listen", self.uri],
            cwd=folder,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []

    def save(self, text: str, name: str = "calc.py") -> None:
        """As editors do, at once."""
        path = self.folder / name
        new = path.with_suffix(".new")
        new.write_text(text)
        new.replace(path)

    def wait_for(self, words: str) -> str:
        """The next line that has them."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if words in line:
                return line
        raise AssertionError("".join(self.lines))

    def begin(self) -> str:
        return self.wait_for("methods at ")

    def call(self, method: str) -> object:
        with wirecall.connect(self.uri, wait=60) as c:
            return c[method]()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Its exit status, and what it has said since, once all its processes have ended: they have its stderr."""
        self.process.send_signal(number)
        rest = self.process.communicate(timeout=60)[1]
        return self.process.returncode, rest


Start = Callable[..., Reloading]


@pytest.fixture
def start(tmp_path, sighup_ends) -> Iterator[Start]:
    started: list[Reloading] = []

    def make(*words: str, **options: object) -> Reloading:
        one = Reloading(tmp_path, *words, **options)  # type: ignore[arg-type]
        started.append(one)
        return one

    yield make
    for one in started:
        one.process.kill()
        one.process.communicate()


def listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as peer:
        return peer.connect_ex(path) == 0


def is_alive(pid: object) -> bool:
    assert isinstance(pid, int)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("command", [(TOOL,), (sys.executable, "-m", "wirecall")])
@pytest.mark.parametrize("words", [("calc.py",), ("calc:app",), ("calc.py:app", "--workers", "2")])
def test_what_is_saved_is_served(start, words, command):
    serving = start(*words, command=command)
    serving.begin()
    assert serving.call("answer") == 1
    # Of the same size, and mostly within the same second.
    for number in (2, 3, 4):
        serving.save(saying(number))
        assert serving.wait_for("has changed") == "wirecall: calc.py has changed\n"
        serving.begin()
        assert serving.call("answer") == number
    assert serving.end() == (0, "")


@pytest.mark.parametrize("words", [("calc.py",), ("calc.py", "--workers", "2")])
def test_sigusr2_starts_the_program_anew(start, words):
    serving = start(*words)
    serving.begin()
    before = serving.call("pid")
    serving.process.send_signal(signal.SIGUSR2)
    assert serving.wait_for("SIGUSR2") == "wirecall: SIGUSR2 has come\n"
    serving.begin()
    assert serving.call("pid") != before
    assert serving.end() == (0, "")


def test_what_it_imports_is_watched_as_well(start, tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "number.py").write_text("NUMBER = 1\n")
    serving = start()
    serving.save(
        PROGRAM.replace("return 1", "return NUMBER").replace("import os", "import os\nfrom parts.number import *")
    )
    serving.begin()
    for number in (5, 6):
        serving.save(f"NUMBER = {number}\n", "parts/number.py")
        serving.wait_for("parts/number.py has changed")
        serving.begin()
        assert serving.call("answer") == number


def test_an_error_is_shown_and_the_next_change_is_waited_for(start):
    serving = start()
    serving.begin()
    serving.save(saying(2) + "def (\n")
    serving.wait_for("SyntaxError")
    ended = "wirecall: the program has ended with status 1, and starts again when a file changes\n"
    assert serving.wait_for("the program has ended") == ended
    serving.save("import nothing_of_that_name\n")
    serving.wait_for("No module named 'nothing_of_that_name'")
    assert serving.wait_for("the program has ended") == ended
    serving.save(saying(3))
    serving.begin()
    assert serving.call("answer") == 3


def test_an_error_at_its_start_is_no_end_either(start):
    serving = start("calc.py:other")
    serving.wait_for("the program has ended with status 2")
    serving.save(PROGRAM.replace("app", "other"))
    serving.begin()
    assert serving.call("answer") == 1


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all(start, number, workers):
    serving = start("calc.py", "--workers", workers)
    serving.begin()
    pid = serving.call("pid")
    assert pid != serving.process.pid
    assert serving.end(number) == (0, "")
    assert not is_alive(pid)


def test_a_signal_ends_it_while_it_waits_for_a_change(start):
    serving = start()
    serving.save("def (\n")
    serving.wait_for("the program has ended")
    assert serving.end() == (0, "")


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_a_program_does_not_outlive_it(start, number, workers):
    serving = start("calc.py", "--workers", workers)
    serving.begin()
    pid = serving.call("pid")
    assert serving.end(number)[0] == -number
    # Who ends it now is whoever takes orphans on; its stderr is closed.
    with pytest.raises(wirecall.ConnectionLost):
        while True:  # its descriptors are closed one after another, stderr among the first
            wirecall.connect(serving.uri, connect_attempts=1).close()
    assert pid != serving.process.pid


def test_a_call_in_progress_has_the_time_to_end_that_others_have(start):
    serving = start()
    serving.begin()
    with wirecall.connect(serving.uri) as c:
        failures: list[wirecall.Error] = []

        def call() -> None:
            try:
                c.hold()
            except wirecall.Error as error:
                failures.append(error)

        calling = threading.Thread(target=call)
        calling.start()
        serving.wait_for("holds")
        serving.save(saying(2))
        serving.begin()
        calling.join()
        assert [error.code for error in failures] == [-32009]
        assert c.answer() == 2


def test_a_second_signal_ends_a_call_at_once(start):
    serving = start("calc.py", "--drain-ms", "3600000", "--call-timeout-ms", "3600000")
    serving.begin()
    path = serving.uri.removeprefix("unix://")
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(path)
        caller.sendall(b'{"jsonrpc":"2.0","method":"hold","id":1}')
        serving.wait_for("holds")
        serving.save(saying(2))
        while listens(path):  # until it has taken the first signal
            pass
        assert serving.end()[0] == 0


def test_a_port_with_connections_is_bound_again(tmp_path, start):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serving = start("calc.py", "--listen", f"tcp://127.0.0.1:{port}")
    serving.begin()
    with wirecall.connect(f"tcp://127.0.0.1:{port}") as c:
        for number in range(2, 5):
            serving.save(saying(number))
            serving.begin()
            assert c.answer() == number


def test_many_changes_at_once_are_few_restarts_and_the_last_one_is_served(start):
    serving = start()
    serving.begin()
    for number in range(100, 300):
        serving.save(saying(number))
    answer: object = None
    while answer != 299:
        with contextlib.suppress(wirecall.Draining, wirecall.ConnectionLost):  # a server that is about to end
            answer = serving.call("answer")
    status, said = serving.end()
    assert status == 0
    assert 1 <= said.count("has changed") <= 20
    assert "has ended" not in said


def test_a_program_that_ends_by_itself_ends_it(start):
    serving = start()
    serving.begin()
    serving.call("stop")
    assert serving.process.communicate(timeout=60)[1] == ""
    assert serving.process.returncode == 0


def test_a_command_line_that_cannot_be_is_refused_at_once(tmp_path):
    for words, why in [
        (["nothing.py", "--reload"], "wirecall: there is no file nothing.py\n"),
        (["calc.py", "--reload", "--workers", "none"], "wirecall: --workers none: give a number of processes"),
        (["calc.py", "--reload", "-c", "none.toml"], "wirecall: cannot read the file none.toml: No such file"),
    ]:
        (tmp_path / "calc.py").write_text(PROGRAM)
        process = subprocess.run(
            [TOOL, "serve", *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert (process.returncode, process.stderr[: len(why)]) == (2, why)


def test_it_is_of_the_command_line_alone():
    with pytest.raises(TypeError, match=r"say it on the command line, wirecall serve FILE\.py --reload"):
        wirecall.Server(reload=True)
    with pytest.raises(TypeError, match="reload"):
        wirecall.Server().run(reload=True)  # type: ignore[call-arg]


@pytest.mark.parametrize("by", ["watchfiles", "looking"])
def test_only_python_files_of_the_program_are_watched(tmp_path, monkeypatch, by):
    if by == "watchfiles":
        pytest.importorskip("watchfiles")
    else:
        monkeypatch.setitem(sys.modules, "watchfiles", None)
    for name in ("parts", ".venv", "node_modules/x", "lib/site-packages/y", "__pycache__"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "old.py").write_text("")
    (tmp_path / "gone.py").write_text("")
    changes = _reload.changed_files(tmp_path)
    assert next(changes) == set()
    for name in (
        "a.txt",
        ".hidden.d",
        ".venv/x.py",
        "node_modules/x/x.py",
        "lib/site-packages/y/x.py",
        "__pycache__/x.py",
    ):
        (tmp_path / name).write_text("")
    (tmp_path / "old.py").write_text("1")
    (tmp_path / "gone.py").unlink()
    (tmp_path / "parts" / "new.py").write_text("")
    found: set[str] = set()
    wanted = {str(tmp_path / name) for name in ("old.py", "gone.py", "parts/new.py")}
    until = time.monotonic() + 60
    while found != wanted and time.monotonic() < until:
        found |= next(changes)
    assert found == wanted


@contextlib.contextmanager
def calls_all_the_while(one: Reloading) -> Iterator[None]:
    is_over = threading.Event()

    def call() -> None:
        with wirecall.connect(one.uri, wait=60) as c:
            while not is_over.is_set():
                c.answer()

    caller = threading.Thread(target=call)
    caller.start()
    try:
        yield
    finally:
        is_over.set()
        caller.join()


def test_sighup_is_handed_on(start, tmp_path):
    handler = "signal.signal(signal.SIGHUP, lambda *_: print('was told', file=sys.stderr, flush=True))\n"
    (tmp_path / "told.py").write_text(f"import signal\n{PROGRAM}\n{handler}")
    one = start("told.py")
    one.begin()
    one.process.send_signal(signal.SIGHUP)
    with calls_all_the_while(one):  # Python runs handlers where the main thread runs Python
        one.wait_for("was told")
    assert one.end()[0] == 0
