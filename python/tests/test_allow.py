"""@app(allow=…): who may call a method."""

import contextlib
import json
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated

import pytest

import wirecall

NAMES = ("alice", "bob", "carl")


def principals(*names: str, call: str = ">") -> str:
    return json.dumps([{"name": name, "tokens": [f"token-of-{name}"], "call": [call]} for name in names])


@pytest.fixture
def file(tmp_path) -> pathlib.Path:
    path = tmp_path / "principals.json"
    path.write_text(principals(*NAMES))
    path.chmod(0o600)
    return path


@pytest.fixture
def guarded(file) -> wirecall.Server:
    return wirecall.Server(principals_file=str(file))


def as_each(uri: str, call: Callable[[wirecall.Client], object]) -> dict[str, object]:
    """What it comes to for each principal; of an error its code and data."""
    found: dict[str, object] = {}
    for name in NAMES:
        with wirecall.connect(uri, token=f"token-of-{name}") as c:
            try:
                found[name] = call(c)
            except wirecall.Error as error:
                found[name] = (error.code, error.data)
    return found


NO_METHOD = (-32601, None)


@pytest.mark.parametrize(
    "allow",
    [
        ["alice", "bob"],
        ("alice", "bob"),
        {"alice", "bob"},
        frozenset({"alice", "bob"}),
        lambda name: name != "carl",
        {"alice": True, "bob": True, "carl": False}.__getitem__,
    ],
)
def test_those_who_are_named_may_call_and_for_others_there_is_no_such_method(guarded, allow):
    guarded.add(lambda: 1, name="one", allow=allow)
    with guarded.serving() as uri:
        assert as_each(uri, lambda c: c.one()) == {"alice": 1, "bob": 1, "carl": NO_METHOD}


def every_kind(app: wirecall.Server, ran: list[object]) -> None:
    @app(allow="alice")
    def plain() -> int:
        ran.append("plain")
        return 1

    @app(allow="alice")
    async def later() -> int:
        ran.append("later")
        return 1

    @app(allow="alice", blocking=True)
    def blocks() -> int:
        ran.append("blocks")
        return 1

    @app(allow="alice")
    def stream() -> Iterator[int]:
        ran.append("stream")
        yield 1

    @app(allow="alice")
    async def later_stream() -> AsyncIterator[int]:
        ran.append("later_stream")
        yield 1

    @app(allow="alice")
    def reads(items: Iterator[int]) -> int:
        ran.append("reads")
        return sum(items)

    @app.subscription("subscribe", unsubscribe="end_of_events", notification="event", allow="alice")
    async def events() -> AsyncIterator[int]:
        ran.append("subscribe")
        yield 1


def without_middleware(app: wirecall.Server, ran: list[object]) -> None:
    @app(allow="alice", batch=4)
    def batched(numbers: list[int]) -> list[int]:
        ran.append("batched")
        return numbers

    @app(allow="alice", cache=4)
    def cached() -> int:
        ran.append("cached")
        return 1


KINDS = ["plain", "later", "blocks", "stream", "later_stream", "reads", "subscribe"]


def ask(name: str) -> Callable[[wirecall.Client], object]:
    short = name.rpartition(".")[2]
    if short.endswith("stream"):
        return lambda c: list(c[name].stream())
    if short == "reads":
        return lambda c: c[name](_input=[1])
    if short == "batched":
        return lambda c: c[name](1)
    if short == "subscribe":
        return lambda c: len(c[name]()) and 1
    return lambda c: c[name]()


@pytest.mark.parametrize("mounted", ["", "inner."])
def test_it_holds_for_methods_of_every_kind_and_for_mounted_ones(guarded, mounted):
    ran: list[object] = []
    app = guarded
    if mounted:
        app = wirecall.Server()
    every_kind(app, ran)
    without_middleware(app, ran)
    if mounted:
        guarded.mount("inner", app)
    kinds = [*KINDS, "batched", "cached"]
    with guarded.serving() as uri:
        for kind in kinds:
            answers = as_each(uri, ask(mounted + kind))
            assert answers.pop("alice") in (1, [1]), kind
            assert answers == {"bob": NO_METHOD, "carl": NO_METHOD}, kind
    assert ran == kinds


def test_nothing_runs_for_others_neither_middleware_nor_dependencies(guarded):
    ran: list[object] = []

    @guarded.middleware
    def noting(call: wirecall.MethodCall) -> Iterator[None]:
        ran.append("middleware")
        yield

    def resource() -> int:
        ran.append("dependency")
        return 1

    every_kind(guarded, ran)

    @guarded(allow="alice")
    def depends(one: Annotated[int, wirecall.Depends(resource)]) -> int:
        return one

    with guarded.serving() as uri, wirecall.connect(uri, token="token-of-bob") as bob:
        for kind in [*KINDS, "depends"]:
            with pytest.raises(wirecall.MethodNotFound):
                ask(kind)(bob)
        bob.notify("plain")
        with bob.batch() as batch:
            answers = [batch.plain(), batch.depends()]
        for answer in answers:
            with pytest.raises(wirecall.MethodNotFound):
                answer.result()
        assert ran == []
        with wirecall.connect(uri, token="token-of-alice") as alice:
            assert alice.depends() == 1
    assert ran == ["middleware", "dependency"]


def test_params_are_not_looked_at_for_others(guarded):
    @guarded(allow="alice")
    def half(number: int) -> int:
        return number // 2

    with guarded.serving() as uri:
        answers = as_each(uri, lambda c: c.half("two"))
        assert answers["alice"][0] == -32602
        assert answers["bob"] == NO_METHOD


def test_others_are_not_told_of_it(guarded):
    guarded.add(lambda: 1, name="resets", allow="alice", safe=True)
    guarded.add(lambda: 1, name="sees", safe=True)
    with guarded.serving() as uri:
        names = as_each(uri, lambda c: [one["name"] for one in c["rpc.methods"]() if one["name"] in ("resets", "sees")])
        assert names == {"alice": ["resets", "sees"], "bob": ["sees"], "carl": ["sees"]}
        near = as_each(uri, lambda c: c.resetz())
        assert near == {"alice": (-32601, {"did_you_mean": "resets"}), "bob": NO_METHOD, "carl": NO_METHOD}
        for name, status in [("alice", 200), ("bob", 404)]:
            at = urllib.request.Request(
                uri.replace("tcp:", "http:") + "/rpc/resets", headers={"Authorization": f"Bearer token-of-{name}"}
            )
            try:
                with urllib.request.urlopen(at, timeout=20) as answer:
                    assert answer.status == status
            except urllib.error.HTTPError as error:
                assert error.code == status
                error.close()


def test_who_has_no_grant_does_not_get_one(file):
    file.write_text(principals(*NAMES, call="other"))
    app = wirecall.Server(principals_file=str(file))
    app.add(lambda: 1, name="one", allow="alice")
    with app.serving() as uri:
        assert as_each(uri, lambda c: c.one())["alice"] == NO_METHOD


def test_a_method_that_nobody_may_call_is_in_the_log(guarded, capfd):
    guarded.add(lambda: 1, name="one", allow="alicia")
    with guarded.serving() as uri:
        assert set(as_each(uri, lambda c: c.one()).values()) == {NO_METHOD}
    assert "nobody may call a method" in capfd.readouterr().err


def test_a_method_without_it_is_for_all_and_one_of_a_broker_may_have_it(file):
    hub = wirecall.Server("hub", broker=True, principals_file=str(file))
    hub.add(lambda: 1, name="all")
    hub.add(lambda: 1, name="one", allow="alice")
    with hub.serving() as uri:
        assert as_each(uri, lambda c: c.all()) == dict.fromkeys(NAMES, 1)
        assert as_each(uri, lambda c: c.one()) == {"alice": 1, "bob": NO_METHOD, "carl": NO_METHOD}


def test_methods_that_are_added_between_two_runs_have_it(guarded):
    guarded.add(lambda: 1, name="one", allow="alice")
    with guarded.serving() as uri:
        assert as_each(uri, lambda c: c.one())["bob"] == NO_METHOD
    guarded.add(lambda: 2, name="two", allow="bob")
    with guarded.serving() as uri:
        assert as_each(uri, lambda c: c.one()) == {"alice": 1, "bob": NO_METHOD, "carl": NO_METHOD}
        assert as_each(uri, lambda c: c.two()) == {"alice": NO_METHOD, "bob": 2, "carl": NO_METHOD}


def test_a_function_is_asked_once_for_each_principal_and_not_for_calls(guarded):
    asked: list[str] = []

    def allow(name: str) -> bool:
        asked.append(name)
        return True

    guarded.add(lambda: 1, name="one", allow=allow)
    assert asked == []
    with guarded.serving() as uri:
        assert as_each(uri, lambda c: c.one()) == dict.fromkeys(NAMES, 1)
    assert asked == list(NAMES)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_function_that_does_not_say_ends_the_server_before_it_serves(guarded, workers):
    guarded.add(lambda: 1, name="one", allow=lambda name: name)
    with pytest.raises(TypeError, match=r"one: allow\('alice'\) has returned 'alice': return True or False"):
        guarded.run("tcp://127.0.0.1:0", workers=workers, quiet=True)


@pytest.mark.parametrize("thread_count", [1, 2])
def test_it_holds_for_calls_that_come_before_the_server_runs(file, thread_count):
    app = wirecall.Server(principals_file=str(file), thread_count=thread_count)
    ran: list[int] = []
    app.add(lambda: ran.append(1), name="one", allow="alice")
    hello = b'{"jsonrpc":"2.0","method":"rpc.hello","params":{"token":"token-of-bob"},"id":1}'
    port = int(app.listen("tcp://127.0.0.1:0").rpartition(":")[2])
    with contextlib.ExitStack() as stack:
        early = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)) for _ in range(8)]
        for peer in early:
            peer.sendall(hello + b'{"jsonrpc":"2.0","method":"one","id":2}')
        running = threading.Thread(target=app.run, kwargs={"quiet": True})
        running.start()
        for peer in early:
            lines = stack.enter_context(peer.makefile("r", encoding="utf-8"))
            assert "result" in json.loads(lines.readline())
            assert json.loads(lines.readline())["error"]["code"] == -32601
        app.stop()
        running.join()
    assert ran == []


@pytest.mark.parametrize(
    ("allow", "error", "why"),
    [
        ([], ValueError, "allows nobody"),
        ("", ValueError, "allows nobody"),
        (["alice", ""], ValueError, "allows nobody"),
        (5, TypeError, "give the names of principals"),
        (True, TypeError, "give the names of principals"),
        ([1], TypeError, "give the names of principals"),
        ([None], TypeError, "give the names of principals"),
        ({"alice": True}, TypeError, "give the names of principals"),
        (b"alice", TypeError, "give the names of principals"),
        ("*", ValueError, "no patterns"),
        (["ops.>"], ValueError, "no patterns"),
    ],
)
def test_what_can_allow_nobody_is_refused_where_it_stands(app, allow, error, why):
    with pytest.raises(error, match=rf"^wirecall: reset: .*{why}.*allow="):
        app.add(lambda: 1, name="reset", allow=allow)
    with pytest.raises(error, match=why):

        @app.subscription("s", unsubscribe="u", notification="n", allow=allow)
        async def events() -> AsyncIterator[int]:
            yield 1

    assert "reset" not in app.handle('{"jsonrpc":"2.0","method":"rpc.methods","id":1}')


def test_an_async_function_is_refused(app):
    async def allow(name: str) -> bool:
        return True

    with pytest.raises(TypeError, match="cannot be awaited: make it a plain function"):
        app.add(lambda: 1, name="reset", allow=allow)


def test_where_nobody_has_to_authenticate_it_does_not_listen(app, tmp_path):
    app.add(lambda: 1, name="reset", allow="alice")
    why = "only some may call reset, and nobody has to authenticate: name a principals_file"
    with pytest.raises(ValueError, match=why):
        app.listen("tcp://127.0.0.1:0")
    with pytest.raises(ValueError, match=why):
        app.run("tcp://127.0.0.1:0", insecure=True)
    with pytest.raises(ValueError, match=why):
        app.run("tcp://127.0.0.1:0", workers=2)
    with pytest.raises(ValueError, match=why), app.serving():
        pass
    outer = wirecall.Server()
    outer.mount("inner", app)
    with pytest.raises(ValueError, match=r"only some may call inner\.reset"):
        outer.listen("tcp://127.0.0.1:0")
    # Added after it listens.
    late = wirecall.Server()
    late.listen("tcp://127.0.0.1:0")
    late.add(lambda: 1, name="reset", allow="alice")
    with pytest.raises(ValueError, match=why):
        late.run(quiet=True)


def test_a_datagram_shows_nobody_so_it_does_not_listen_for_them(guarded):
    guarded.add(lambda: 1, name="reset", allow="alice", safe=True)
    with pytest.raises(ValueError, match="only some may call reset, and a datagram cannot show who sends it"):
        guarded.listen("udp://127.0.0.1:0")


PROGRAM = """
import wirecall

app = wirecall.Server(principals_file="principals.json")


@app(allow=lambda name: name != "carl")
def one() -> int:
    return 1


app.run("tcp://127.0.0.1:0", workers={workers})
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_principals_that_are_read_anew_are_asked_about(file, tmp_path, workers):
    file.write_text(principals("alice", "carl"))
    (tmp_path / "program.py").write_text(PROGRAM.replace("{workers}", str(workers)))
    process = subprocess.Popen([sys.executable, "program.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        uri = next(word for word in process.stderr.readline().split() if word.startswith("tcp://")).rstrip(",")
        with pytest.raises(wirecall.Unauthenticated), wirecall.connect(uri, token="token-of-bob") as bob:
            bob.one()
        new = file.with_suffix(".new")
        new.write_text(principals(*NAMES))
        new.chmod(0o600)
        new.replace(file)
        process.send_signal(signal.SIGHUP)
        for _ in range(workers):
            while "the configuration is in force" not in process.stderr.readline():
                assert process.poll() is None
        assert as_each(uri, lambda c: c.one()) == {"alice": 1, "bob": 1, "carl": NO_METHOD}
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.communicate()


def test_the_program_itself_may_call_it(guarded):
    guarded.add(lambda: 1, name="reset", allow="alice")
    assert json.loads(guarded.handle('{"jsonrpc":"2.0","method":"reset","id":1}'))["result"] == 1


def test_it_is_said_before_the_server_runs(app):
    with (
        app.serving(),
        pytest.raises(RuntimeError, match="reset: who may call a method is said before the server runs"),
    ):
        app.add(lambda: 1, name="reset", allow="alice")


def test_who_may_subscribe_to_none_of_them_does_not_see_what_ends_subscriptions(guarded):
    async def events() -> AsyncIterator[int]:
        yield 1

    for name, unsubscribe, allow in [
        ("secret", "end_secret", "alice"),
        ("one", "end", "alice"),
        ("two", "end", ["bob"]),
        ("shut", "end_any", "alice"),
        ("open", "end_any", None),
    ]:
        guarded.subscription(name, unsubscribe=unsubscribe, notification="events", allow=allow)(events)
    with guarded.serving() as uri:
        assert as_each(uri, lambda c: c.end_secret("0x1")) == {"alice": False, "bob": NO_METHOD, "carl": NO_METHOD}
        assert as_each(uri, lambda c: c.end("0x1")) == {"alice": False, "bob": False, "carl": NO_METHOD}
        assert as_each(uri, lambda c: c.end_any("0x1")) == {"alice": False, "bob": False, "carl": False}
