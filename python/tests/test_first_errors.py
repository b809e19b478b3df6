"""The first mistakes of a newcomer: each is one line, with the cause and the cure."""

from __future__ import annotations

import asyncio
import logging
import pathlib
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator

import pytest

import wirecall

WIRECALL = str(pathlib.Path(sys.executable).with_name("wirecall"))

CALC = """\
import wirecall

app = wirecall.Server("calc")


@app
def sum(a: int, b: int = 1) -> int:
    return a + b


if __name__ == "__main__":
    app.run("{endpoint}")
"""


@pytest.fixture
def taken() -> Iterator[str]:
    """An endpoint where another program listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"tcp://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def c(app) -> Iterator[wirecall.Client]:
    @app
    def sum(a: int, b: int = 1) -> int:
        return a + b

    @app
    def half(x):
        return x / 2

    with app.serving() as uri, wirecall.connect(uri) as c:
        yield c


def run(*command: object, folder: pathlib.Path) -> tuple[int, str]:
    """The exit status, and all that was said; the folder's name is left out."""
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, (done.stdout + done.stderr).replace(f"{folder}/", "")


def last_line(what: Callable[[], object]) -> str:
    """With which Python's traceback ends."""
    with pytest.raises(Exception) as caught:
        what()
    lines = traceback.format_exception_only(caught.value)
    assert len(lines) == 1
    return lines[0].rstrip("\n")


def in_use(endpoint: str) -> str:
    return (
        f"wirecall: cannot listen on {endpoint}: Address already in use; another program listens there: stop it, or "
        "listen on another port\n"
    )


def test_the_port_is_busy(tmp_path, taken):
    (tmp_path / "calc.py").write_text(CALC.format(endpoint=taken))
    assert run(sys.executable, "calc.py", folder=tmp_path) == (3, in_use(taken))
    assert run(WIRECALL, "serve", "calc.py", "--listen", taken, folder=tmp_path) == (3, in_use(taken))
    workers = run(WIRECALL, "serve", "calc.py", "--listen", taken, "--workers", "2", folder=tmp_path)
    assert workers == (3, in_use(taken))


def test_the_port_is_busy_for_who_wants_to_do_something_about_it(app, taken):
    with pytest.raises(OSError, match="stop it, or listen on another port"):
        app.listen(taken)


OPEN = (
    "tcp://0.0.0.0:0 can be reached from other machines, and nobody has to authenticate; listen on 127.0.0.1, name a "
    "principals_file, or say {} if that is meant"
)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_endpoint_that_other_machines_reach(tmp_path, workers):
    (tmp_path / "calc.py").write_text(CALC.format(endpoint="tcp://127.0.0.1:0"))
    said = f"wirecall: {OPEN.format('--insecure')}\n"
    for words in (
        ["--host", "0.0.0.0", "--port", "0"],
        ["--listen", "tcp://127.0.0.1:0", "--listen", "tcp://0.0.0.0:0"],
    ):
        command = [WIRECALL, "serve", "calc.py", *words, "--workers", workers]
        assert run(*command, folder=tmp_path) == (2, said)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_program_that_listens_where_other_machines_reach(tmp_path, workers):
    run_anywhere = f'app.run("tcp://0.0.0.0:0", workers={workers}'
    program = CALC.format(endpoint="{endpoint}").replace('app.run("{endpoint}"', run_anywhere)
    (tmp_path / "calc.py").write_text(program)
    status, said = run(sys.executable, "calc.py", folder=tmp_path)
    assert (status, said.splitlines()[-1]) == (1, f"ValueError: wirecall: {OPEN.format('insecure=True')}")


@pytest.mark.parametrize("uri", ["tcp://0.0.0.0:0", "tcp://[::]:0", "tcp://127.example.com:0", "tcp://192.0.2.1:0"])
def test_a_server_that_listens_for_all_says_so(uri):
    with pytest.raises(ValueError, match="insecure=True"):
        wirecall.Server().listen(uri)
    with pytest.raises(ValueError, match="insecure=True"):
        wirecall.Server().run(uri)
    with pytest.raises(ValueError, match="insecure=True"), wirecall.Server().serving(uri):
        pass
    host = uri.removeprefix("tcp://").removesuffix(":0").strip("[]")
    with pytest.raises(ValueError, match="insecure=True"):
        wirecall.Server(host=host, port=0).run()


def test_a_server_may_listen_for_all_where_that_is_meant_or_a_token_is_asked_for(app, tmp_path):
    with app.serving("tcp://0.0.0.0:0", insecure=True) as uri, wirecall.connect(uri) as c:
        assert c["rpc.ping"]() == "pong"
    principals = tmp_path / "principals.json"
    principals.write_text('[{"name": "ada", "tokens": ["0123456789abcdef"], "call": [">"]}]')
    principals.chmod(0o600)
    assert wirecall.Server(principals_file=str(principals)).listen("tcp://0.0.0.0:0").startswith("tcp://0.0.0.0:")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "LOCALHOST"])
def test_this_machine_is_served_without_a_word(host):
    assert wirecall.Server().listen(f"tcp://{host}:0")


def test_there_is_no_such_file(tmp_path):
    assert run(WIRECALL, "serve", "clac.py", folder=tmp_path) == (2, "wirecall: there is no file clac.py\n")


def test_there_is_no_server_in_the_file(tmp_path):
    (tmp_path / "empty.py").write_text("import wirecall\n")
    said = "wirecall: there must be a wirecall.Server to serve, and empty.py makes none: app = wirecall.Server()\n"
    assert run(WIRECALL, "serve", "empty.py", folder=tmp_path) == (2, said)


def test_a_hint_that_stands_for_nothing_on_the_wire(tmp_path):
    line = (
        "wirecall: complex cannot be put on the wire: hint a built-in type, a dataclass, an enum, a TypedDict, or "
        "typing.Any  [parameter z of turn]"
    )
    program = "import wirecall\napp = wirecall.Server()\n@app\ndef turn(z: complex): ...\n"
    (tmp_path / "turn.py").write_text(program)
    status, said = run(WIRECALL, "serve", "turn.py", folder=tmp_path)
    assert (status, said) == (2, line.replace("wirecall: ", "wirecall: turn.py:3: ") + "\n")
    status, said = run(sys.executable, "turn.py", folder=tmp_path)
    assert (status, said.splitlines()[-1]) == (1, f"TypeError: {line}")


@pytest.mark.parametrize("runs", ["", "app.run('tcp://127.0.0.1:0')\n"])
def test_a_name_that_stands_for_no_server(tmp_path, runs):
    program = "import wirecall\napp = wirecall.Server()\nother = wirecall.Server()\ndef add(): ...\n" + runs
    (tmp_path / "calc.py").write_text(program)
    said = "wirecall: calc.py has no wirecall.Server named nope: it has app, other\n"
    assert run(WIRECALL, "serve", "calc.py:nope", folder=tmp_path) == (2, said)
    said = "wirecall: calc.py has no wirecall.Server named add, but a function of that name: it has app, other\n"
    assert run(WIRECALL, "serve", "calc.py:add", folder=tmp_path) == (2, said)
    module = [sys.executable, "-m", "wirecall", "serve"]
    assert run(*module, "calc:nope", folder=tmp_path) == (
        2, "wirecall: calc has no wirecall.Server named nope: it has app, other\n"
    )  # fmt: skip
    assert run(*module, "clac:app", folder=tmp_path) == (
        2, "wirecall: there is no module clac: name one, or a file that ends in .py\n"
    )  # fmt: skip


@pytest.mark.parametrize("words", ["calc.py", "calc", "calc:app", "calc.py:app"])
def test_a_program_is_a_file_or_a_module_with_a_name_or_without(tmp_path, words):
    # It ends as soon as it serves, so that nothing has to be waited for.
    (tmp_path / "calc.py").write_text("import wirecall\napp = wirecall.Server('calc')\napp.stop()\n")
    status, said = run(sys.executable, "-m", "wirecall", "serve", words, "--port", "0", folder=tmp_path)
    assert (status, said.split(" at ")[0]) == (0, "calc: 0 methods")


def test_of_several_servers_the_one_that_is_named_is_served_although_the_program_runs_another(tmp_path):
    program = "import wirecall\none = wirecall.Server('one')\ntwo = wirecall.Server('two')\ntwo.stop()\none.run()\n"
    (tmp_path / "calc.py").write_text(program)
    status, said = run(WIRECALL, "serve", "calc.py:two", "--port", "0", folder=tmp_path)
    assert (status, said.split(" at ")[0]) == (0, "two: 0 methods")


def test_a_server_is_no_decorator():
    def add() -> None: ...

    line = (
        'TypeError: wirecall: wirecall.Server is no decorator: make one, app = wirecall.Server("calc"), and decorate '
    )
    assert last_line(lambda: wirecall.Server(add)) == line + "with @app"  # type: ignore[arg-type]
    assert last_line(lambda: wirecall.Server(5)) == (  # type: ignore[arg-type]
        "TypeError: wirecall: the name of a server is not 5: a string"
    )
    app: object = wirecall.Server()
    assert last_line(lambda: app("calc.sum")) == (  # type: ignore[operator]
        "TypeError: wirecall: 'calc.sum' is no function: write @app(name=\"calc.sum\")"
    )


def test_a_host_and_a_port(capfd):
    app = wirecall.Server("calc", port=0)
    app.stop()
    app.run(host="127.0.0.2")
    assert capfd.readouterr().err.startswith("calc: 0 methods at tcp://127.0.0.2:")
    app = wirecall.Server("calc")
    app.stop()
    app.run(port=0)
    assert capfd.readouterr().err.startswith("calc: 0 methods at tcp://127.0.0.1:")
    with pytest.raises(ValueError, match="insecure=True"):
        app.run(host="::", port=0)
    assert last_line(lambda: app.run("tcp://127.0.0.1:0", port=1)) == (
        "TypeError: wirecall: run takes an endpoint, or a host and a port, not both"
    )
    assert last_line(lambda: app.run(8545)) == (  # type: ignore[arg-type]
        'TypeError: wirecall: run takes where to listen as a URI, "tcp://127.0.0.1:8545", not 8545'
    )


def test_a_number_in_place_of_an_endpoint():
    app: object = wirecall.Server("calc")
    for what, call in (
        ("listen takes where to listen", lambda: app.listen(21102)),  # type: ignore[attr-defined]
        ("serving takes where to listen", lambda: app.serving(21102).__enter__()),  # type: ignore[attr-defined]
        ("run takes where to listen", lambda: app.run(21102)),  # type: ignore[attr-defined]
        ("run takes where to listen", lambda: app.run([21102])),  # type: ignore[attr-defined]
        ("a client takes the endpoint of a server", lambda: wirecall.connect(21102)),  # type: ignore[arg-type]
        ("a client takes the endpoint of a server", lambda: wirecall.connect([21102])),  # type: ignore[list-item]
        ("a client takes the endpoint of a server", lambda: wirecall.aconnect(21102)),  # type: ignore[arg-type]
    ):
        assert last_line(call) == f'TypeError: wirecall: {what} as a URI, "tcp://127.0.0.1:21102", not 21102'


def test_what_is_said_where_it_runs_is_no_option():
    for word, cure in (("insecure", "app.run(insecure=True)"), ("workers", "app.run(workers=4)")):
        line = last_line(lambda word=word: wirecall.Server(**{word: 2}))  # type: ignore[misc]
        assert line.startswith(f"TypeError: wirecall: {word} is no option of a server: ")
        assert line.endswith(cure)


@pytest.mark.parametrize("workers", [0, -1])
def test_no_workers_at_all(workers):
    assert last_line(lambda: wirecall.Server().run(workers=workers)) == (
        f"ValueError: wirecall: workers={workers}: give the number of processes, at least 1"
    )


def test_listen_without_an_endpoint_listens_where_the_options_say(tmp_path):
    app = wirecall.Server(host="127.0.0.2", port=0)
    assert app.listen().startswith("tcp://127.0.0.2:")
    endpoints = [f"unix://{tmp_path}/{name}.sock" for name in "ab"]
    app = wirecall.Server(listen=endpoints)
    assert app.listen() == endpoints[0]
    assert app._listening == endpoints
    with pytest.raises(ValueError, match="can be reached from other machines"):
        wirecall.Server(host="0.0.0.0", port=0).listen()
    assert wirecall.Server(host="0.0.0.0", port=0).listen(insecure=True).startswith("tcp://0.0.0.0:")


def test_all_wrong_parameters_are_told(c):
    wrong = "wirecall.errors.InvalidParams: Invalid params (-32602): "
    assert last_line(lambda: c.sum("a", "b")) == (
        f'{wrong}at a, expected integer, got "a"; at b, expected integer, got "b"'
    )
    assert last_line(lambda: c.sum(aa=1, b="b")) == (
        f'{wrong}at aa, expected nothing, got 1; at b, expected integer, got "b"; at a, expected integer, got nothing'
    )
    assert last_line(lambda: c.sum(b=1, timeout=3)) == (
        f"{wrong}at timeout, expected nothing, got 3; at a, expected integer, got nothing; "
        "_timeout= is the time of the call in seconds"
    )


def test_the_command_goes_over_the_programs_host_and_port(tmp_path):
    program = "import wirecall\napp = wirecall.Server('calc')\napp.stop()\napp.run(host='127.0.0.2', port=1)\n"
    (tmp_path / "calc.py").write_text(program)
    status, said = run(WIRECALL, "serve", "calc.py", "--port", "0", folder=tmp_path)
    assert (status, said.rsplit(":", 1)[0]) == (0, "calc: 0 methods at tcp://127.0.0.2")


def test_what_is_said_of_a_call_itself(c):
    wrong = "wirecall.errors.InvalidParams: Invalid params (-32602): at "
    assert last_line(lambda: c.sum(a=1, timeout=3)) == (
        f"{wrong}timeout, expected nothing, got 3; _timeout= is the time of the call in seconds"
    )
    assert "_to= names the client" in last_line(lambda: c.sum(a=1, to="x"))
    assert "_timeout" not in last_line(lambda: c.sum(a=1, c=3))
    assert last_line(lambda: c.sum(1, 2, timeout=3)) == (
        "TypeError: JSON-RPC has arguments by position or by name, not both in one call; _timeout= is the time of the "
        "call in seconds"
    )


def test_a_misspelt_option_of_a_call(c):
    mistake = "TypeError: there is no option _timout of a call; did you mean _timeout?"
    for call in (
        lambda: c.sum(1, 2, _timout=3),
        lambda: next(c.sum.stream(1, 2, _timout=3)),
        lambda: c.batch().sum(1, 2, _timout=3),
        lambda: c.call_all("sum", 1, 2, _timout=3),
    ):
        assert last_line(call) == mistake
    assert last_line(lambda: c.sum(1, 2, _too="x")).endswith("; did you mean _to?")
    assert last_line(lambda: c.sum(1, 2, to="x")).endswith("; _to= names the client that is to serve the call")
    both = "TypeError: JSON-RPC has arguments by position or by name, not both in one call"
    assert last_line(lambda: c.sum(1, 2, _nothing_near=3)) == both
    # By name it may be a parameter of the method's, so the server is asked.
    assert last_line(lambda: c.sum(a=1, b=2, _timout=3)) == (
        "wirecall.errors.InvalidParams: Invalid params (-32602): at _timout, expected nothing, got 3; "
        "did you mean _timeout?"
    )


def test_a_misspelt_option_of_an_asyncio_call(app):
    async def mistakes(uri: str) -> list[str]:
        async with wirecall.aconnect(uri) as c:
            batch = c.batch()
            return [
                last_line(lambda: c.sum(1, 2, _timout=3)),
                last_line(lambda: batch.sum(1, 2, _timout=3)),
                last_line(lambda: c.call_all("sum", 1, 2, _timout=3)),
            ]

    with app.serving() as uri:
        assert set(asyncio.run(mistakes(uri))) == {
            "TypeError: there is no option _timout of a call; did you mean _timeout?"
        }


@pytest.mark.parametrize("connect", [wirecall.connect, wirecall.aconnect])
def test_a_misspelt_option_of_a_client(connect):
    endpoint = "localhost:1"
    said = "ValueError: there is no option "
    for options, words in (
        ({"timout": 3}, "timout; did you mean timeout?"),
        ({"time_out": 3}, "time_out; did you mean timeout?"),
        ({"wiat": 3}, "wiat; did you mean wait?"),
        ({"tokn": "x"}, "tokn; did you mean token?"),
        ({"nothing_near": 3}, "nothing_near"),
    ):
        assert last_line(lambda options=options: connect(endpoint, **options)) == said + words  # type: ignore[misc]
    for options, words in (
        ({"host": "localhost", "port": 1}, 'host; the address is the first argument: connect("localhost:1")'),
        ({"host": "::1"}, 'host; the address is the first argument: connect("[::1]:8545")'),
        ({"port": 1}, 'port; the address is the first argument: connect("localhost:1")'),
        ({"url": endpoint}, "url; did you mean uri?"),
    ):
        assert last_line(lambda options=options: connect(**options)) == said + words  # type: ignore[misc]


@pytest.mark.parametrize("scheme", ["tcp", "http"])
def test_a_server_that_asks_for_a_token(tmp_path, scheme):
    principals = tmp_path / "principals.json"
    principals.write_text('[{"name": "ada", "tokens": ["0123456789abcdef"], "call": [">"]}]')
    principals.chmod(0o600)
    why = {
        "tcp": "Unauthenticated (-32004): say who you are: rpc.hello with a token that is known, or Authorization by "
        "HTTP",
        "http": "the server answered with HTTP status 401 (Unauthorized) (-32004)",
    }[scheme]
    with wirecall.Server(principals_file=str(principals)).serving() as uri:
        endpoint = uri.replace("tcp:", f"{scheme}:")
        for options in ({}, {"token": "another-token-of-ada"}):
            with pytest.raises(wirecall.Unauthenticated) as caught:
                wirecall.connect(endpoint, **options).anything()
            assert str(caught.value) == f'{why}; give the server\'s token: connect(token="…")'
            assert (caught.value.code, "token=" in caught.value.message) == (-32004, False)
            assert caught.value.data["delivered"] == "no"
            assert "token=" not in str(caught.value.data)


def test_an_option_that_there_is_not(tmp_path):
    (tmp_path / "calc.py").write_text('import wirecall\napp = wirecall.Server(limits={"batches": 1})\n')
    said = "wirecall: calc.py:2: there is no option limits.batches; did you mean limits.batch?\n"
    assert run(WIRECALL, "serve", "calc.py", folder=tmp_path) == (2, said)


def test_what_the_program_itself_raises_is_shown_as_python_shows_it(tmp_path):
    (tmp_path / "broken.py").write_text("import wirecall\n\n1 / 0\n")
    status, said = run(WIRECALL, "serve", "broken.py", folder=tmp_path)
    assert status == 1
    assert said == run(sys.executable, "broken.py", folder=tmp_path)[1]
    (tmp_path / "open.py").write_text("print(\n")
    status, said = run(WIRECALL, "serve", "open.py", folder=tmp_path)
    assert (status, said.splitlines()[-1]) == (1, "SyntaxError: '(' was never closed")
    assert "wirecall" not in said


def test_a_wrong_type(c):
    assert last_line(lambda: c.sum(2, "three")) == (
        'wirecall.errors.InvalidParams: Invalid params (-32602): at b, expected integer, got "three"'
    )
    assert last_line(c.sum) == (
        "wirecall.errors.InvalidParams: Invalid params (-32602): at a, expected integer, got nothing"
    )
    assert last_line(lambda: c.sum(object())) == (
        "TypeError: an argument cannot be sent, at 0: builtins.object has no form on the wire: make it a dataclass, "
        "a dict or a list"
    )
    assert last_line(lambda: c.sum(1, b=2)) == (
        "TypeError: JSON-RPC has arguments by position or by name, not both in one call"
    )


def test_a_parameter_without_a_hint(c, caplog):
    with caplog.at_level(logging.ERROR, "wirecall"):
        assert last_line(lambda: c.half("x")) == "wirecall.errors.InternalError: Internal error (-32603)"
    assert caplog.messages[0].splitlines()[-1] == (
        "hint: x of half has no type hint: with one, such a call is answered -32602"
    )


def test_a_misspelt_method(c):
    assert last_line(lambda: c.smu(2, 3)) == (
        "wirecall.errors.MethodNotFound: Method not found (-32601): did you mean 'sum'?"
    )
    assert last_line(lambda: c.multiply(2, 3)) == (
        "wirecall.errors.MethodNotFound: Method not found (-32601): no name is near it; `wirecall ls` lists what there "
        "is"
    )


def test_there_is_no_server():
    endpoint = "tcp://127.0.0.1:1"
    cure = "nothing listens there: start the server, or check the address"
    why = f"cannot connect to {endpoint}: Connection refused; {cure}"
    assert last_line(lambda: wirecall.connect(endpoint)) == f"wirecall.errors.ConnectionLost: {why} (-32001)"
    assert run(WIRECALL, "call", "sum", 2, 3, "--url", endpoint, folder=pathlib.Path()) == (3, f"wirecall: {why}\n")


def test_what_is_no_endpoint():
    assert last_line(lambda: wirecall.connect("localhost")) == (
        'ValueError: "localhost" is not an endpoint URI: it has no scheme; write host:port, such as localhost:8545, '
        "or a URI, such as tcp://127.0.0.1:8545"
    )


ADDER = "import wirecall\napp = wirecall.Server('calc')\n@app\ndef add(a: int, b: int) -> int:\n    return a + b\n"


def test_a_flag_s_value_is_not_the_program(tmp_path):
    (tmp_path / "calc.py").write_text(ADDER + "app.run = lambda: print(app._options)\n")
    for words in (
        ["--port", "21101", "calc.py"],
        ["calc.py", "--port=21101"],
        ["--insecure", "--port=21101", "calc.py"],
    ):
        done = served(tmp_path, words)
        assert (done.returncode, done.stdout.strip()) == (0, "{'port': 21101}"), done.stderr


def test_an_option_that_there_is_not_is_told_before_a_program_is_missed(tmp_path):
    done = served(tmp_path, ["--prot", "calc.py"])
    assert done.returncode == 2
    assert done.stderr.startswith("wirecall: there is no option --prot; did you mean --port?"), done.stderr


def test_what_is_wrong_with_a_file_is_told_with_its_line(tmp_path):
    (tmp_path / "calc.py").write_text(ADDER)
    (tmp_path / "bad.toml").write_text('port = "80"\nlog_level = "info"\n[limits] # of each\nbatch = 0\nbach = 1\n')
    done = served(tmp_path, ["calc.py", "-c", "bad.toml"])
    assert done.returncode == 2
    first, batch, bach = done.stderr.strip().split("; line ")
    assert first == 'wirecall: bad.toml: line 1: port is "80": give a number from 0 to 65535'
    assert batch == "4: limits.batch is 0: give a number from 1 to 1000000000 (elements)"
    assert bach.startswith("5: there is no option limits.bach")
    # As the broker says it, for every kind of mistake.
    for text, words in (
        ("limits_batch = 5\n", "line 1: there is no option limits_batch; did you mean limits.batch?"),
        ("port = 0\nthis is no TOML\n", "line 2: this is no TOML: "),
        ("prot = 0\n", "line 1: there is no option prot; did you mean port?"),
        ("port = 1979-05-27\n", "line 1: port is 1979-05-27: give a number from 0 to 65535"),
    ):
        (tmp_path / "bad.toml").write_text(text)
        said = served(tmp_path, ["calc.py", "-c", "bad.toml"]).stderr
        assert said.startswith(f"wirecall: bad.toml: {words}"), said
        broker = subprocess.run(
            [WIRECALL, "serve", "-c", "bad.toml"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert broker.stderr == said
    assert served(tmp_path, ["calc.py", "-c", "nosuch.toml"]).stderr == (
        "wirecall: cannot read the file nosuch.toml: No such file or directory\n"
    )
    (tmp_path / "good.toml").write_text("port = 0\nallow_hosts = []\ncpu_affinity = [0]\n[limits]\nbatch = 5\n")
    (tmp_path / "calc.py").write_text(ADDER + "app.run = lambda: print(app._options)\n")
    assert "'batch': 5" in served(tmp_path, ["calc.py", "-c", "good.toml"]).stdout


def served(folder, words):
    command = [sys.executable, "-m", "wirecall", "serve", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
