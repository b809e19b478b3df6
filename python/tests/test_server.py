"""Functions as methods: what arrives, what goes back, and what a caller learns when it does not fit."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
import logging
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest

import wirecall


def answer(app: wirecall.Server, method: str, params: Any = None) -> Any:
    """What a call comes to: its result, or its error object."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method}
    if params is not None:
        request["params"] = params
    reply = json.loads(app.handle(json.dumps(request)))
    assert reply["id"] == 1
    return reply["error"] if "error" in reply else reply["result"]


def test_positions_names_and_defaults(app):
    @app
    def sub(minuend: int, subtrahend: int = 1) -> int:
        return minuend - subtrahend

    assert answer(app, "sub", [42, 23]) == 19
    assert answer(app, "sub", {"subtrahend": 23, "minuend": 42}) == 19
    assert answer(app, "sub", [42]) == 41
    assert answer(app, "sub", {"minuend": 42}) == 41
    assert sub(42, 2) == 40  # it stays the function that it was


def test_a_default_is_the_object_itself(app):
    nothing = object()

    @app
    def same(value: int = nothing) -> bool:  # type: ignore[assignment]
        return value is nothing

    assert answer(app, "same") is True
    assert answer(app, "same", [1]) is False


def test_all_kinds_of_parameters(app):
    @app
    def f(a, /, b: int, *rest: int, c: str = "c", **others: float):
        return [a, b, list(rest), c, others]

    assert answer(app, "f", [1, 2]) == [1, 2, [], "c", {}]
    assert answer(app, "f", [1, 2, 3, 4]) == [1, 2, [3, 4], "c", {}]
    assert answer(app, "f", {"a": 1, "b": 2, "c": "x", "d": 1.5}) == [1, 2, [], "x", {"d": 1.5}]
    assert answer(app, "f", [1, 2, "3"])["data"]["loc"] == [2]
    assert answer(app, "f", {"a": 1, "b": 2, "d": "x"})["data"]["loc"] == ["d"]


def test_what_is_given_by_name_only_takes_no_position(app):
    @app
    def f(a: int, *, b: int = 0) -> int:
        return a - b

    assert answer(app, "f", [5]) == 5
    assert answer(app, "f", {"a": 5, "b": 2}) == 3
    assert answer(app, "f", [5, 2])["data"] == {"loc": [1], "expected": "nothing", "got": "2"}


@pytest.mark.parametrize(
    ("params", "loc", "expected", "got"),
    [
        ([1, "x"], ["b"], "integer", '"x"'),
        ([1], ["b"], "integer", "nothing"),
        ([1, 2, 3], [2], "nothing", "3"),
        ({"a": 1, "b": 2, "c": 3}, ["c"], "nothing", "3"),
        ([1.5, 2], ["a"], "integer", "1.5"),
        ([True, 2], ["a"], "integer", "true"),
        ([None, 2], ["a"], "integer", "null"),
    ],
)
def test_what_does_not_fit_is_said_with_its_location(app, params, loc, expected, got):
    @app
    def add(a: int, b: int) -> int:
        return a + b

    error = answer(app, "add", params)
    assert error["code"] == -32602
    assert error["data"] == {"loc": loc, "expected": expected, "got": got}


def test_nobody_but_the_server_gives_a_context(app):
    @app
    def by_name(*, ctx: wirecall.Context, **rest: str) -> list[str]:
        return [ctx.method, *rest]

    @app
    def by_position(ctx: wirecall.Context, **rest: str) -> list[str]:
        return [ctx.method, *rest]

    @app
    def alone(ctx: wirecall.Context) -> str:
        return ctx.method

    assert answer(app, "by_name", {"a": "x"}) == ["by_name", "a"]
    assert answer(app, "by_position", {"a": "x"}) == ["by_position", "a"]
    for method in ("by_name", "by_position", "alone"):
        error = answer(app, method, {"ctx": "evil"})
        assert error["code"] == -32602
        assert error["data"] == {"loc": ["ctx"], "expected": "nothing", "got": '"evil"'}


def test_a_context_may_be_hinted_in_other_words(app):
    @app
    def optional(x: int, ctx: wirecall.Context | None = None) -> str:
        return "" if ctx is None else ctx.method

    @app
    def annotated(x: int, *, ctx: Annotated[wirecall.Context, "the call"]) -> str:
        return ctx.method

    assert answer(app, "optional", [1]) == "optional"
    assert answer(app, "annotated", [1]) == "annotated"
    assert answer(app, "optional", {"x": 1, "ctx": None})["code"] == -32602


def test_integers_of_any_size(app):
    @app
    def double(n: int) -> int:
        return 2 * n

    for n in (0, -1, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63), 2**64, 10**100, -(10**100)):
        assert answer(app, "double", [n]) == 2 * n
    assert answer(app, "double", [1e3]) == 2000
    reply = app.handle('{"jsonrpc":"2.0","id":1,"method":"double","params":[1e400]}')
    assert json.loads(reply)["error"]["code"] == -32602


def test_more_digits_than_python_takes(app):
    @app
    def double(n: int) -> int:
        return 2 * n

    error = json.loads(app.handle('{"jsonrpc":"2.0","id":1,"method":"double","params":[' + "9" * 5000 + "]}"))["error"]
    assert error["code"] == -32602


def test_bound_methods_partials_and_objects(app):
    class Account:
        def __init__(self) -> None:
            self.balance = 0

        def deposit(self, amount: int) -> int:
            self.balance += amount
            return self.balance

        def __call__(self, amount: int) -> int:
            return -amount

        def _private(self) -> None: ...

    account = Account()
    app.add(account.deposit)
    app.add(functools.partial(pow, 2), name="power_of_two")
    app.add(account, name="negative")
    app.add_methods(Account(), prefix="other.")
    assert answer(app, "deposit", [5]) == 5
    assert answer(app, "deposit", [5]) == 10
    assert answer(app, "power_of_two", [10]) == 1024
    assert answer(app, "negative", [3]) == -3
    assert answer(app, "negative", ["3"])["code"] == -32602
    assert answer(app, "other.deposit", [1]) == 1
    assert answer(app, "other._private")["code"] == -32601


def passed_on(function: Any) -> Any:
    """As many decorators do it."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def test_a_decorated_async_function_is_awaited(app):
    @app
    @passed_on
    async def twice(x: int) -> int:
        await asyncio.sleep(0)
        return 2 * x

    @app
    @passed_on
    async def count(n: int) -> AsyncIterator[int]:
        for i in range(n):
            yield i

    @app(blocking=True)
    def at_once(x: int) -> int:
        return asyncio.run(twice(x))  # type: ignore[arg-type]

    app.add(functools.partial(twice, 4), name="eight")
    with app.serving() as uri, wirecall.connect(uri) as c:
        assert c.twice(21) == 42
        assert c.eight() == 8
        assert list(c.count.stream(3)) == [0, 1, 2]
        assert c.at_once(4) == 8
        with pytest.raises(wirecall.InvalidParams, match="at x"):
            c.twice("a")


def test_what_is_to_be_awaited_and_comes_unawaited_is_said_so(app, capfd, recwarn):
    async def twice(x: int) -> int:
        return 2 * x

    @app
    def hidden(x: int) -> Any:
        return twice(x)

    with app.serving() as uri, wirecall.connect(uri) as c, pytest.raises(wirecall.InternalError):
        c.hidden(21)
    assert (
        "a coroutine has no form on the wire, it is to be awaited: make the method async def" in capfd.readouterr().err
    )
    assert not recwarn.list


def test_what_cannot_be_in_a_set_is_said_with_its_location(app):
    @app
    def take(value: set[Any]) -> int:
        return len(value)

    assert answer(app, "take", [[1, "a", 1]]) == 2
    error = answer(app, "take", [[1, {}]])
    assert error["code"] == -32602
    assert error["data"]["loc"] == ["value", 1]


def test_a_missing_hint_is_named_where_it_hurts(app, caplog):
    @app
    def add(a, b):
        return a + b

    with caplog.at_level(logging.ERROR, logger="wirecall"):
        assert answer(app, "add", [1, "2"])["code"] == -32603
    assert (
        caplog.records[0]
        .getMessage()
        .endswith("hint: a, b of add has no type hint: with one, such a call is answered -32602")
    )


def test_what_cannot_be_sent_is_an_error_and_the_log_says_where(app, capfd):
    @app
    def bad() -> Any:
        return {"a": [1, object()]}

    @app
    def endless() -> Any:
        held: list[Any] = []
        held.append(held)
        return held

    @app
    def nan() -> float:
        return float("nan")

    for name in ("bad", "endless", "nan"):
        assert answer(app, name) == {"code": -32603, "message": "Internal error"}


def test_the_log_of_a_running_server_says_where(app, capfd):
    @app
    def bad() -> Any:
        return {"a": [1, object()]}

    with app.serving() as uri, wirecall.connect(uri) as c, pytest.raises(wirecall.InternalError):
        c.bad()
    assert "at a.1: builtins.object has no form on the wire" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "exception"),
    [("", ValueError), ("rpc.mine", ValueError), ("a..b", ValueError), ("with space", ValueError)],
)
def test_names_that_cannot_be(app, name, exception):
    with pytest.raises(exception):
        app.add(len, name=name)


def test_a_name_that_is_taken(app):
    app.add(abs)
    with pytest.raises(wirecall.Conflict):
        app.add(abs)


def test_a_hint_that_cannot_be_sent_is_refused_with_its_parameter(app):
    def f(a: int, b: threading.Lock) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(TypeError, match="the hint of b names 'threading', which is not defined"):
        app.add(f)

    def g(a: int, b: logging.Logger) -> None: ...

    with pytest.raises(TypeError, match=r"Logger cannot be put on the wire.*\[parameter b of g\]"):
        app.add(g)


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        ("list | 'Foo'", "TypeError"),
        ("dataclasses.nope", "AttributeError"),
        ("not a hint", "SyntaxError"),
        ("nowhere", "names 'nowhere'"),
    ],
)
def test_a_hint_that_cannot_be_read_is_refused_with_its_parameter(app, hint, words):
    def f(a: int, b: int) -> int:
        return a

    f.__annotations__["b"] = hint
    with pytest.raises(TypeError, match=rf"f: the hint of b .*{words}"):
        app.add(f)

    def g() -> int:
        return 1

    g.__annotations__["return"] = hint
    with pytest.raises(TypeError, match=rf"g: the hint of its result .*{words}"):
        app.add(g)

    @dataclasses.dataclass
    class Held:
        inner: int

    def h(value: Held) -> None: ...

    Held.__annotations__["inner"] = hint
    h.__annotations__["value"] = Held
    with pytest.raises(TypeError, match=r"the hints of .*Held cannot be read.*\[parameter value of h\]"):
        app.add(h)


def test_a_port_that_is_busy_is_said_with_the_cure(app):
    with app.serving() as uri, pytest.raises(OSError, match=r"in use"):
        wirecall.Server().listen(uri)


def test_options_are_those_of_the_documents():
    app = wirecall.Server(limits={"batch": 2})
    app.add(abs, name="f")
    call = {"jsonrpc": "2.0", "id": 1, "method": "f", "params": [1]}
    assert "error" in app.handle(json.dumps([call] * 3))
    with pytest.raises(ValueError, match="batsch"):
        wirecall.Server(limits={"batsch": 2})


def test_batches_and_notifications(app):
    seen = []

    @app
    def note(text: str) -> int:
        seen.append(text)
        return len(seen)

    assert app.handle('{"jsonrpc":"2.0","method":"note","params":["a"]}') == ""
    replies = json.loads(
        app.handle(
            '[{"jsonrpc":"2.0","method":"note","params":["b"]},{"jsonrpc":"2.0","id":7,"method":"note","params":["c"]}]'
        )
    )
    assert replies == [{"jsonrpc": "2.0", "id": 7, "result": 3}]
    assert seen == ["a", "b", "c"]


def test_the_document_describes_the_functions(app):
    @app
    def sum(a: int, b: int = 2) -> int:
        """Add two integers.

        Not more.
        """
        return a + b

    with app.serving() as uri, wirecall.connect(uri) as c:
        method = next(entry for entry in c["rpc.discover"]()["methods"] if entry["name"] == "sum")
    assert method["summary"] == "Add two integers."
    assert [(param["name"], param["required"]) for param in method["params"]] == [("a", True), ("b", False)]
    assert method["params"][0]["schema"]["type"] == "integer"
    assert method["result"]["schema"]["type"] == "integer"


def test_the_document_has_the_name_of_the_server_and_where_it_is():
    import urllib.request

    app = wirecall.Server("calc")

    @app
    def large(n: int) -> int:
        return n * 2**64

    with app.serving("tcp://127.0.0.1:0") as uri:
        url = uri.replace("tcp://", "http://")
        with urllib.request.urlopen(f"{url}/openrpc.json") as response:
            document = json.load(response)
    assert document["info"]["title"] == "calc"
    assert document["servers"] == [{"name": "calc", "url": f"{url}/rpc"}]
    assert document["methods"][0]["result"]["schema"] == {"type": "integer"}


def test_what_nobody_waits_for_any_more_is_not_begun():
    import threading

    app = wirecall.Server(blocking_threads=1)
    gate, begun = threading.Event(), threading.Event()
    ran: list[int] = []

    @app(blocking=True)
    def work(n: int) -> None:
        ran.append(n)
        begun.set()
        gate.wait(300)

    with app.serving() as uri, wirecall.connect(uri) as first, wirecall.connect(uri) as second:
        waiting = threading.Thread(target=first.work, args=(0,))
        waiting.start()
        begun.wait(300)
        for n in range(1, 20):
            with pytest.raises(wirecall.Timeout):
                second.work(n, _timeout=0.005)
        second["rpc.ping"]()  # the server has seen by then that nobody waits
        gate.set()
        second.work(20)
        waiting.join()
        assert ran == [0, 20]


def test_a_server_that_has_been_stopped_within_serving_serves_again():
    app = wirecall.Server()

    @app
    def end() -> None:
        app.stop()

    for _ in range(3):
        with app.serving() as uri:
            with wirecall.connect(uri) as c:
                c.end()
            app._ended.wait()
