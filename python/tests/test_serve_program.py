"""`wirecall serve FILE.py`: what the command line says goes over what the program says, and how both are told of."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import wirecall

TOOL = str(pathlib.Path(sys.executable).with_name("wirecall"))
HEAD = "import wirecall\napp = wirecall.Server('calc')\n@app\ndef twice(x: int) -> int:\n    return 2 * x\n"

Serve = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def serve(tmp_path, sighup_ends) -> Iterator[Serve]:
    """Runs `wirecall serve WORDS` in a folder that has `program` as calc.py, and ends it."""
    processes: list[subprocess.Popen[str]] = []

    def start(program: str, *words: str, command: tuple[str, ...] = (TOOL, "serve")) -> subprocess.Popen[str]:
        (tmp_path / "calc.py").write_text(program)
        process = subprocess.Popen(
            [*command, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def endpoints_in(greeting: str) -> list[str]:
    return re.findall(r"\w+://[^\s,]+", greeting)


def stopping(told: str) -> str:
    """A program that ends as soon as it serves, so that nothing has to be waited for."""
    return f"{HEAD}app.stop()\n{told}\n"


def said(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, err = process.communicate(timeout=300)
    return process.returncode, out + err


@pytest.mark.parametrize(
    "runs",
    [
        "app.run('tcp://127.0.0.1:1')",
        "app.run(['tcp://127.0.0.1:1', 'unix:///nowhere/at/all'])",
        "app.listen('tcp://127.0.0.1:0'); app.run()",
        "app.listen(); app.run()",
        "app.listen('tcp://127.0.0.1:1'); app.listen('unix:///nowhere/at/all'); app.run()",
        "app.run(host='127.0.0.3', port=1)",
        "",
    ],
)
@pytest.mark.parametrize(
    ("words", "endpoint"),
    [
        (["--port", "0", "--host", "127.0.0.2"], "tcp://127.0.0.2:"),
        (["--listen", "tcp://127.0.0.2:0"], "tcp://127.0.0.2:"),
        (["-c", "endpoints.toml"], "tcp://127.0.0.2:"),
        (["-c", "endpoints.toml", "--host", "127.0.0.4", "--port", "0"], "tcp://127.0.0.4:"),
        (["-c", "endpoints.toml", "--listen", "tcp://127.0.0.4:0"], "tcp://127.0.0.4:"),
    ],
)
def test_the_endpoints_of_the_command_go_over_those_of_the_program(serve, tmp_path, runs, words, endpoint):
    (tmp_path / "endpoints.toml").write_text('listen = ["tcp://127.0.0.2:0"]\n')
    status, told = said(serve(stopping(runs), "calc.py", *words))
    assert status == 0, told
    (only,) = endpoints_in(told)
    assert only.startswith(endpoint)


def test_a_port_goes_over_a_server_s_list_of_endpoints(serve):
    program = stopping("").replace("Server('calc')", "Server('calc', listen=['unix:///nowhere/at/all'])")
    status, told = said(serve(program, "calc.py", "--port", "0"))
    assert (status, endpoints_in(told)[0].rsplit(":", 1)[0]) == (0, "tcp://127.0.0.1")


def test_an_endpoint_and_a_port_are_refused_as_the_broker_refuses_them(serve):
    words = ["--listen", "tcp://127.0.0.1:0", "--port", "1"]
    line = (2, "wirecall: --listen says where to listen, so leave --host and --port out\n")
    assert said(serve(HEAD, "calc.py", *words)) == line
    assert said(serve(HEAD, *words)) == line


@pytest.mark.parametrize("name", ["", ":app"])
def test_a_server_that_is_not_the_named_one_listens_where_the_program_says(serve, tmp_path, name):
    program = HEAD + f"other = wirecall.Server('other')\nprint(other.listen('unix://{tmp_path}/o.sock'))\napp.stop()\n"
    status, told = said(serve(program, f"calc.py{name}", "--listen", f"unix://{tmp_path}/a.sock"))
    assert (status, endpoints_in(told)) == (0, [f"unix://{tmp_path}/o.sock", f"unix://{tmp_path}/a.sock"])


def test_it_runs_again_after_it_has_served_in_the_background(capfd):
    app = wirecall.Server("again")
    app.add(lambda: 7, name="seven")
    for _ in range(2):
        with app.serving() as uri, wirecall.connect(uri) as c:
            assert c.seven() == 7
    app.stop()
    app.run("tcp://127.0.0.1:0")
    (endpoint,) = endpoints_in(capfd.readouterr().err)
    assert endpoint != uri
    app.stop()
    app.run(port=0)
    assert len(endpoints_in(capfd.readouterr().err)) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["--log-calls", "calc.py", "--port", "0"],
        ["calc.py", "--log-calls", "--port", "0"],
        ["calc.py", "--port", "0", "--log-calls"],
        ["--log-calls", "true", "calc.py", "--port", "0"],
        ["--log-calls=true", "calc.py", "--port", "0"],
    ],
)
def test_a_flag_that_is_true_or_false_needs_no_value(serve, words):
    status, told = said(serve(HEAD + "app.run = lambda: print(sorted(app._options.items()))\n", *words))
    assert (status, told) == (0, "[('log_calls', True), ('port', 0)]\n")


def test_a_flag_that_is_false(serve):
    program = HEAD.replace("'calc'", "'calc', log_calls=True") + "app.run = lambda: print(app._options)\n"
    assert said(serve(program, "--log-calls", "false", "calc.py")) == (0, "{'log_calls': False}\n")


def test_where_it_listens_is_a_record_of_a_log_as_json(serve):
    status, told = said(serve(stopping(""), "calc.py", "--port", "0", "--log-format", "json"))
    records = [json.loads(line) for line in told.splitlines()]
    (listens,) = [record for record in records if record["message"] == "the server listens"]
    assert status == 0
    assert listens["level"] == "info"
    assert listens["listen"].startswith("tcp://127.0.0.1:")
    assert (listens["name"], listens["methods"], listens["workers"]) == ("calc", 1, 1)
    assert listens["serves"] == "whoever can connect"
    assert listens["version"] == wirecall.__version__
    assert listens["tls"] == "off"


def test_the_fingerprint_of_a_certificate_is_in_a_log_as_json(serve):
    status, told = said(serve(stopping(""), "calc.py", "--port", "0", "--log-format", "json", "--tls-self-signed"))
    records = [json.loads(line) for line in told.splitlines()]
    (listens,) = [record for record in records if record["message"] == "the server listens"]
    assert (status, listens["tls"]) == (0, "on")
    assert re.fullmatch("sha256:[0-9a-f]{64}", listens["fingerprint"])


def test_the_record_of_a_wrong_result_has_the_method(capfd):
    app = wirecall.Server(log_format="json")

    @app
    def size() -> int:
        return "large"  # type: ignore[return-value]

    app.handle('{"jsonrpc":"2.0","method":"size","id":1}')
    record = json.loads(capfd.readouterr().err)
    assert (record["level"], record["method"]) == ("error", "size")
    assert record["message"] == 'the result is not of the declared type: expected integer, got "large"'


FAILS = """\
import collections.abc, sys
import wirecall
if "own" in sys.argv: import logging; logging.basicConfig(format="own %(message)s")
app = wirecall.Server("fails", log_format="json")
@app
def half(x):
    return x / 2
@app
async def ticks() -> collections.abc.AsyncIterator[int]:
    yield 1
    yield "two"
with app.serving() as uri, wirecall.connect(uri) as c:
    for call in (lambda: c.half("one"), lambda: list(c.ticks.stream()), lambda: c.notify("half", "\\u2028")):
        try: call()
        except wirecall.InternalError: pass
    c["rpc.ping"]()
"""


def test_what_handlers_raise_is_a_record_of_a_log_as_json(serve):
    status, told = said(serve(FAILS, "calc.py", command=(sys.executable,)))
    assert status == 0
    assert told.isascii()
    records = [json.loads(line) for line in told.splitlines()]
    (raised,) = [record for record in records if record["method"] == "half" and "id" in record]
    (item,) = [record for record in records if record["method"] == "ticks"]
    (notification,) = [record for record in records if "id" not in record]
    assert list(raised) == ["time", "level", "message", "method", "id", "traceback"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", raised["time"])
    assert (raised["level"], raised["method"], raised["message"]) == (
        "error", "half", f"method half (id {raised['id']}) failed"
    )  # fmt: skip
    assert isinstance(raised["id"], int)
    assert raised["traceback"].startswith("Traceback (most recent call last):\n")
    assert raised["traceback"].splitlines()[-2:] == [
        "TypeError: unsupported operand type(s) for /: 'str' and 'int'",
        "hint: x of half has no type hint: with one, such a call is answered -32602",
    ]
    assert (item["method"], item["message"]) == ("ticks", f"method ticks (id {item['id']}) failed")
    assert item["traceback"] == (
        'TypeError: an item of the stream is not of the declared type: expected integer, got "two"'
    )
    assert notification["message"] == "method half (a notification) failed"


def test_a_program_s_own_logging_has_what_handlers_raise(serve):
    status, told = said(serve(FAILS, "calc.py", "own", command=(sys.executable,)))
    assert status == 0
    assert "\nTypeError: unsupported operand type(s) for /: 'str' and 'int'\n" in told
    assert told.startswith("own method half (id ")
    assert '{"time"' not in told


def test_a_log_for_people_shows_what_handlers_raise_as_python_does(serve):
    status, told = said(serve(FAILS.replace(', log_format="json"', ""), "calc.py", command=(sys.executable,)))
    assert (status, told.splitlines()[1]) == (0, "Traceback (most recent call last):")


def test_the_flag_makes_records_of_them_too(serve):
    program = FAILS.replace(', log_format="json"', "") + "app.stop()\n"
    status, told = said(serve(program, "calc.py", "--port", "0", "--log-format", "json"))
    assert status == 0
    messages = [json.loads(line)["message"].split(" (")[0] for line in told.splitlines()]
    assert sorted(messages) == ["method half", "method half", "method ticks", "the server listens"]


def test_print_config_prints_the_options_in_force(serve, tmp_path):
    program = "import wirecall\napp = wirecall.Server('calc', limits={'batch': 7})\napp.listen()\napp.run()\n"
    status, told = said(serve(program, "calc.py", "--print-config", "--limits-depth", "9"))
    assert status == 0
    assert "\nbatch = 7\n" in told
    assert "\ndepth = 9\n" in told
    (tmp_path / "all.toml").write_text(told)
    assert said(serve(program, "calc.py", "-c", "all.toml", "--print-config")) == (0, told)


def test_the_broker_s_own_flag(serve):
    line = "wirecall: --demo is for the broker: wirecall serve --demo serves methods of its own, and no program\n"
    for words in (["--demo", "calc.py"], ["calc.py", "--demo"]):
        assert said(serve(HEAD, *words)) == (2, line)


# ---- SIGHUP ----

GUARDED = HEAD.replace("'calc'", "'calc', principals_file='principals.json'")


def principals(**tokens: str) -> str:
    return json.dumps([{"name": name, "tokens": [token], "call": [">"]} for name, token in tokens.items()])


def replace(file: pathlib.Path, text: str) -> None:
    """At once, so that a worker which is still starting reads the one or the other."""
    other = file.with_suffix(".new")
    other.write_text(text)
    other.chmod(0o600)
    other.replace(file)


def calls_with(endpoint: str, token: str) -> Any:
    with wirecall.connect(endpoint, token=token) as c:
        return c.twice(4)


def is_known(endpoint: str, token: str) -> bool:
    try:
        return bool(calls_with(endpoint, token) == 8)
    except wirecall.Unauthenticated:
        return False


def lines_until(process: subprocess.Popen[str], words: str, times: int = 1) -> list[str]:
    assert process.stderr is not None
    lines: list[str] = []
    while sum(words in line for line in lines) < times:
        line = process.stderr.readline()
        assert line, lines
        lines.append(line)
    return lines


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("by", ["serve", "python"])
def test_a_hang_up_makes_it_read_the_principals_anew(serve, tmp_path, workers, by):
    file = tmp_path / "principals.json"
    file.write_text(principals(ann="a-token-of-ann"))
    file.chmod(0o600)
    if by == "serve":
        process = serve(GUARDED, "calc.py", "--port", "0", "--workers", str(workers))
    else:
        runs = f"app.run('tcp://127.0.0.1:0', workers={workers})\n"
        process = serve(GUARDED + runs, "calc.py", command=(sys.executable,))
    (endpoint,) = endpoints_in(lines_until(process, " at ")[-1])
    assert is_known(endpoint, "a-token-of-ann")
    assert not is_known(endpoint, "a-token-of-bob")
    replace(file, principals(bob="a-token-of-bob"))
    process.send_signal(signal.SIGHUP)
    lines_until(process, "the configuration is in force", workers)
    assert is_known(endpoint, "a-token-of-bob")
    assert not is_known(endpoint, "a-token-of-ann")
    file.write_text("{")  # refused as a whole, and all stays
    process.send_signal(signal.SIGHUP)
    lines_until(process, "the configuration is refused", workers)
    assert is_known(endpoint, "a-token-of-bob")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=300) == 0


def test_a_hang_up_makes_it_read_its_configuration_anew(serve, tmp_path):
    file = tmp_path / "calc.toml"
    file.write_text("[limits]\nbatch = 5\n")
    process = serve(HEAD, "calc.py", "--port", "0", "-c", "calc.toml", "--limits-depth", "9")
    (endpoint,) = endpoints_in(lines_until(process, " at ")[-1])
    file.write_text("[limits]\nbatch = 2\ndepth = 100\n")
    process.send_signal(signal.SIGHUP)
    told = lines_until(process, "the configuration is in force")
    assert any("limits.batch" in line for line in told)
    assert not any("limits.depth" in line for line in told), "a flag goes over the file"
    with wirecall.connect(endpoint) as c, c.batch() as b:
        three = [b.twice(1) for _ in range(3)]
    with pytest.raises(wirecall.Error, match="batch"):
        three[0].result()
    file.write_text("[limits]\nbach = 2\n")
    process.send_signal(signal.SIGHUP)
    assert "calc.toml: line 2: there is no option limits.bach" in lines_until(process, "is refused")[-1]


def certify(folder: pathlib.Path) -> None:
    words = ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-days", "30"]
    words += ["-subj", "/CN=calc", "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(words, check=True, capture_output=True)


@pytest.mark.parametrize("by", ["command", "program"])
def test_a_hang_up_makes_it_read_its_certificates_anew(serve, tmp_path, by):
    certify(tmp_path)
    head, words = HEAD, ("--tls-cert", "cert.pem", "--tls-key", "key.pem")
    if by == "program":
        head, words = HEAD.replace("'calc'", "'calc', tls={'cert': ['cert.pem'], 'key': ['key.pem']}"), ()
    process = serve(head, "calc.py", "--port", "0", *words)
    (endpoint,) = endpoints_in(lines_until(process, " at ")[-1])
    address = ("127.0.0.1", int(endpoint.rpartition(":")[2]))
    assert ssl.get_server_certificate(address) == (tmp_path / "cert.pem").read_text()
    certify(tmp_path)
    process.send_signal(signal.SIGHUP)
    lines_until(process, "the certificates are read anew")
    assert ssl.get_server_certificate(address) == (tmp_path / "cert.pem").read_text()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=300) == 0


def test_without_a_file_a_hang_up_ends_it(serve):
    process = serve(HEAD, "calc.py", "--port", "0")
    lines_until(process, " at ")
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=300) == -signal.SIGHUP


def test_a_program_s_own_handler_of_hang_ups_stays(serve, tmp_path):
    (tmp_path / "principals.json").write_text(principals(ann="a-token-of-ann"))
    own = "import signal\nsignal.signal(signal.SIGHUP, lambda *_: app.stop())\n"
    process = serve(GUARDED + own, "calc.py", "--port", "0")
    (endpoint,) = endpoints_in(lines_until(process, " at ")[-1])
    assert calls_with(endpoint, "a-token-of-ann") == 8
    os.kill(process.pid, signal.SIGHUP)
    # Python's handlers run with its next function, which this may be; unless that has been and all is over.
    with contextlib.suppress(wirecall.Error):
        calls_with(endpoint, "a-token-of-ann")
    assert process.wait(timeout=300) == 0


ALSO_BOB = "import json, os, pathlib, signal\nfile = pathlib.Path('principals.json')\n" + (
    "file.write_text(file.read_text().replace('ann', 'bob'))\n"
)
HANGS_UP = "import os, signal\nos.kill(os.getpid(), signal.SIGHUP)\n"


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("where", ["before", "behind"])
def test_a_hang_up_while_the_program_loads_is_for_the_server_that_it_makes(serve, tmp_path, where, workers):
    (tmp_path / "principals.json").write_text(principals(ann="a-token-of-ann"))
    program = HANGS_UP + GUARDED + ALSO_BOB if where == "before" else GUARDED + ALSO_BOB + HANGS_UP
    process = serve(program, "calc.py", "--port", "0", "--workers", str(workers))
    (endpoint,) = endpoints_in(lines_until(process, " at ")[-1])
    if workers == 1:
        lines_until(process, "the configuration is in force")
    assert is_known(endpoint, "a-token-of-bob")
    assert not is_known(endpoint, "a-token-of-ann")
    process.send_signal(signal.SIGHUP)  # and those that follow are as ever
    lines_until(process, "the configuration is in force", workers)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=300) == 0


def test_a_hang_up_while_a_program_without_a_file_loads_ends_it_when_it_would_serve(serve):
    process = serve(HANGS_UP + HEAD + "print('loaded', flush=True)\n", "calc.py", "--port", "0")
    status, told = said(process)
    assert (status, told) == (-signal.SIGHUP, "loaded\n")


def test_a_hang_up_ends_a_program_whose_server_runs_in_another_thread(serve, tmp_path):
    (tmp_path / "principals.json").write_text(principals(ann="a-token-of-ann"))
    runs = "import threading\nthread = threading.Thread(target=app.run)\nthread.start()\nthread.join()\n"
    process = serve(GUARDED + runs, "calc.py", "--port", "0")
    lines_until(process, " at ")
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=300) == -signal.SIGHUP
    process = serve(HANGS_UP + GUARDED + runs, "calc.py", "--port", "0")
    assert process.wait(timeout=300) == -signal.SIGHUP


def test_a_program_s_own_handler_has_the_hang_ups_that_come_while_it_loads(serve, tmp_path):
    (tmp_path / "principals.json").write_text(principals(ann="a-token-of-ann"))
    own = "import signal\nsignal.signal(signal.SIGHUP, lambda *_: print('its own', flush=True))\n"
    process = serve(own + HANGS_UP + GUARDED + "app.stop()\n", "calc.py", "--port", "0")
    status, told = said(process)
    assert status == 0
    assert "its own\n" in told


def test_the_command_holds_hang_ups_until_the_package_takes_them(tmp_path):
    command = shutil.copy(TOOL, tmp_path / "wirecall")
    python = tmp_path / "python3"  # beside the command, so it is the one that is run
    python.write_text(f"#!{sys.executable}\nimport signal\nprint(signal.pthread_sigmask(signal.SIG_BLOCK, []))\n")
    python.chmod(0o755)
    told = subprocess.run([command, "serve", "calc.py"], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "SIGHUP" in told


def test_a_token_that_was_removed_before_the_server_ran_ends_with_a_hang_up(serve, tmp_path):
    (tmp_path / "principals.json").write_text(principals(ann="a-token-of-ann"))
    process = serve(GUARDED + ALSO_BOB, "calc.py", "--port", "0")
    (endpoint,) = endpoints_in(lines_until(process, " at ")[-1])
    with wirecall.connect(endpoint, token="a-token-of-ann") as ann:
        assert ann.twice(4) == 8, "as the server was made"
        process.send_signal(signal.SIGHUP)
        lines_until(process, "the configuration is in force")
        with pytest.raises(wirecall.Error):
            ann.twice(4)
    assert not is_known(endpoint, "a-token-of-ann")
    assert is_known(endpoint, "a-token-of-bob")


def test_workers_know_no_token_that_was_removed_before_they_ran(serve, tmp_path):
    (tmp_path / "principals.json").write_text(principals(ann="a-token-of-ann"))
    process = serve(GUARDED + ALSO_BOB, "calc.py", "--port", "0", "--workers", "2")
    (endpoint,) = endpoints_in(lines_until(process, " at ")[-1])
    assert is_known(endpoint, "a-token-of-bob")
    assert not is_known(endpoint, "a-token-of-ann")
