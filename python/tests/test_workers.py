"""Several processes behind one endpoint, and `wirecall serve FILE.py`."""

from __future__ import annotations

import os
import pathlib
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

import wirecall

PROGRAM = """
import os
import wirecall

app = wirecall.Server("workers", limits={"batch": 7})

@app
def pid() -> int:
    return os.getpid()

@app
def die() -> None:
    os._exit(3)

@app
async def later(value: int) -> int:
    return value

@app
def stop() -> None:
    app.stop()
"""


class Serving:
    """`wirecall serve` of a program."""

    def __init__(self, program: pathlib.Path, *words: str) -> None:
        command = pathlib.Path(sys.executable).with_name("wirecall")
        self.process = subprocess.Popen([command, "serve", program, *words], stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.greeting = self.process.stderr.readline()
        endpoint = re.search(r"at (\S+?)[, ]", self.greeting)
        assert endpoint, self.greeting + self.process.stderr.read()
        self.uri = endpoint[1]

    def end(self) -> str:
        """What it has said after its greeting."""
        self.process.send_signal(signal.SIGINT)
        said: str = self.process.communicate(timeout=300)[1]
        return said

    def ask(self) -> int:
        with wirecall.connect(self.uri) as c:
            pid: int = c.pid()
            return pid

    def ask_until(self, count: int, known: frozenset[int] = frozenset()) -> set[int]:
        """As often as it takes to hear of so many processes beyond the known ones; the system spreads connections."""
        heard: set[int] = set()
        while len(heard) < count:
            heard |= {self.ask()} - known
        return heard


@pytest.fixture
def program(tmp_path) -> pathlib.Path:
    path: pathlib.Path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture(params=["tcp://127.0.0.1:0", "unix"])
def serving(program, request) -> Iterator[Serving]:
    endpoint = f"unix://{program.parent}/socket" if request.param == "unix" else request.param
    served = Serving(program, "--listen", endpoint, "--workers", "2")
    yield served
    served.process.kill()
    served.process.communicate()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_share_an_endpoint_and_end_together(serving):
    workers = serving.ask_until(2)
    assert "4 methods at " in serving.greeting
    assert ", by 2 workers" in serving.greeting
    assert serving.process.pid not in workers
    with wirecall.connect(serving.uri) as c:
        assert c.later(7) == 7
    assert serving.end() == ""
    assert serving.process.returncode == 0
    assert not any(alive(pid) for pid in workers)


def test_a_crashed_one_is_replaced(serving):
    workers = serving.ask_until(2)
    with wirecall.connect(serving.uri) as c:
        dead = c.pid()
        with pytest.raises(wirecall.ConnectionLost):
            c.die()
    assert serving.ask_until(2, frozenset({dead})) >= workers - {dead}
    said = serving.end()
    assert f"(process {dead}) has ended with status 3; another takes its place" in said
    assert serving.process.returncode == 0


def test_stop_in_one_stops_all(serving):
    workers = serving.ask_until(2)
    with wirecall.connect(serving.uri) as c:
        c.stop()
    assert serving.process.communicate(timeout=300)[1] == ""
    assert serving.process.returncode == 0
    assert not any(alive(pid) for pid in workers)


def test_none_stays_when_the_parent_is_killed(serving):
    workers = serving.ask_until(2)
    files = [os.pidfd_open(pid) for pid in workers]
    serving.process.kill()
    for file in files:
        assert select.select([file], [], [], 20)[0]
        os.close(file)


def test_run_says_what_workers_cannot_be(app):
    with pytest.raises(ValueError, match="a broker is one process"):
        wirecall.Server(broker=True).run(workers=2)
    app.listen("tcp://127.0.0.1:0")
    with pytest.raises(ValueError, match="workers listen where run is told to"):
        app.run(workers=2)
    with pytest.raises(ValueError, match="not for several processes"):
        wirecall.Server().run("stdio:", workers=2)


def test_a_server_is_of_use_after_its_workers(program):
    endpoint = f"unix://{program.parent}/socket"
    stopping = f"""
import wirecall
while True:
    try:
        with wirecall.connect({endpoint!r}) as c:
            c.stop()
        break
    except wirecall.ConnectionLost:
        pass
"""
    code = (
        program.read_text()
        + f"""
import subprocess, sys
stopping = subprocess.Popen([sys.executable, "-c", {stopping!r}])
app.run({endpoint!r}, workers=2, quiet=True)
print(app.handle('{{"jsonrpc":"2.0","method":"pid","id":1}}'))
stopping.wait()
"""
    )
    answered = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert '"id":1' in answered.stdout


# ---- wirecall serve FILE.py ----


def test_what_the_command_says_goes_over_the_program(program):
    program.write_text(PROGRAM + "app.run('tcp://127.0.0.1:1')\n")
    served = Serving(program, "--listen", "tcp://127.0.0.1:0", "--limits-batch=3")
    try:
        assert served.ask() == served.process.pid
        assert "1 methods" not in served.greeting
        answer = subprocess.run(
            [pathlib.Path(sys.executable).with_name("wirecall"), "call", "rpc.hello", "--url", served.uri],
            capture_output=True, text=True, timeout=300, check=True,
        )  # fmt: skip
        assert '"batch":3' in answer.stdout
    finally:
        served.end()


def test_options_of_a_file_and_of_flags(program, tmp_path):
    config = tmp_path / "wirecall.toml"
    config.write_text("port = 0\n[limits]\nbatch = 4\ndepth = 9\n")
    served = Serving(program, "-c", str(config), "--limits-batch", "5")
    try:
        with wirecall.connect(served.uri) as c:
            limits = c["rpc.hello"]()["limits"]
        assert (limits["batch"], limits["depth"]) == (5, 9)
    finally:
        served.end()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["none.py"], "there is no file none.py"),
        (["{program}:none"], "has no wirecall.Server named none: it has app"),
        (["{program}", "--batch", "7"], "there is no option --batch"),
        (["{program}", "--limits-batch"], "--limits-batch needs a value: a number from 1"),
        (["{program}", "--limits-batch", "x"], '--limits-batch: limits.batch is "x": give a number from 1'),
        (["{program}", "-c", "none.toml"], "none.toml: "),
        (["{program}", "--workers", "-1"], "--workers -1: give a number of processes from 1 to 1024"),
        (["{program}", "--workers", "0"], "--workers 0: give a number of processes from 1 to 1024"),
        (["{program}", "--workers", "x"], "--workers x: give a number of processes from 1 to 1024"),
        (["{program}", "--workers", "100000"], "--workers 100000: give a number of processes from 1 to 1024"),
        (["{program}", "--workers"], "argument --workers: expected one argument; wirecall serve --help tells"),
        (["{program}", "two.py"], "serve takes one program, which is {program}: start another wirecall serve for two"),
        (["{none}"], "must be a wirecall.Server to serve, and {none} makes none"),
        (["{several}"], "has several: say which, {several}:one"),
    ],
)
def test_what_cannot_be_served(program, words, line):
    names = {"program": str(program), "none": str(program.with_name("no_server.py")),
             "several": str(program.with_name("several.py"))}  # fmt: skip
    pathlib.Path(names["none"]).write_text("import wirecall\n")
    pathlib.Path(names["several"]).write_text("import wirecall\none = wirecall.Server()\ntwo = wirecall.Server()\n")
    command = pathlib.Path(sys.executable).with_name("wirecall")
    answered = subprocess.run(
        [command, "serve", *(word.format(**names) for word in words)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert answered.returncode == 2
    assert line.format(**names) in answered.stderr
    assert answered.stderr.count("\n") == 1


def test_a_named_server_and_a_port_that_is_taken(program):
    program.write_text(PROGRAM.replace("app", "other"))
    served = Serving(pathlib.Path(f"{program}:other"), "--port", "0")
    try:
        command = pathlib.Path(sys.executable).with_name("wirecall")
        answered = subprocess.run(
            [command, "serve", program, "--listen", served.uri],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert answered.returncode == 3
        assert "Address already in use" in answered.stderr
        assert answered.stderr.count("\n") == 1
    finally:
        served.end()


AFTER = """
import pathlib, sys, threading, wirecall

file = pathlib.Path(sys.argv[1])
app = wirecall.Server("calc", principals_file=str(file))

@app
def twice(x: int) -> int:
    return 2 * x

good = file.read_text()
stops = threading.Thread(target=app.stop)
if len(sys.argv) > 2:
    file.write_text("{")
    stops.start()
    app.run("tcp://127.0.0.1:0", workers=2)
    stops.join()
    uses = [lambda: app.handle("{}"), lambda: app.listen("tcp://127.0.0.1:0"), lambda: app.add(twice, name="again")]
    for use in uses:
        try:
            use()
        except ValueError as failure:
            print(str(failure).replace(str(file), "FILE"))
    app.stop()  # it has ended
    file.write_text(good)
else:
    stops.start()
    app.run("tcp://127.0.0.1:0", workers=2)
    stops.join()
print(app.handle('{"jsonrpc":"2.0","method":"twice","params":[2],"id":1}'))
"""


def run_after(tmp_path: pathlib.Path, *words: str) -> list[str]:
    (tmp_path / "after.py").write_text(AFTER)
    (tmp_path / "p.json").write_text('[{"name": "ann", "tokens": ["a-token-of-ann"], "call": [">"]}]')
    command = [sys.executable, tmp_path / "after.py", tmp_path / "p.json", *words]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=300).stdout.splitlines()


def test_stop_ends_the_workers_from_another_thread(tmp_path):
    assert run_after(tmp_path) == ['{"jsonrpc":"2.0","result":4,"id":1}']


def test_a_server_whose_file_is_broken_when_its_workers_have_ended_says_so_until_it_is_mended(tmp_path):
    *refused, last = run_after(tmp_path, "broken")
    assert len(refused) == 3
    assert all("FILE" in line and "JSON" in line for line in refused), refused
    assert last == '{"jsonrpc":"2.0","result":4,"id":1}'
