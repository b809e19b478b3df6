"""Parameters that come back: methods that return them, and callers that take them out of the answer."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import pickle
from typing import Annotated, Any, NamedTuple, TypedDict

import pytest

import wirecall
from wirecall import Out


class Division(NamedTuple):
    quotient: int
    remainder: int


@dataclasses.dataclass
class Statistics:
    mean: float
    size: int


class Counted(TypedDict):
    n: int


class Taken(TypedDict):
    count: int


def add_divisions(app: wirecall.Server) -> None:
    @app
    def by_name(a: int, b: int) -> Out[Division]:
        return Out(remainder=a % b, quotient=a // b)

    @app
    def in_order(a: int, b: int) -> Out[Division]:
        return Out(a // b, a % b)

    @app
    def named_tuple(a: int, b: int) -> Out[Division]:
        return Division(a // b, a % b)  # type: ignore[return-value]

    @app
    def plain_tuple(a: int, b: int) -> Out[Division]:
        return divmod(a, b)  # type: ignore[return-value]

    @app
    def mapping(a: int, b: int) -> Out[Division]:
        return {"remainder": a % b, "quotient": a // b}  # type: ignore[return-value]

    @app(blocking=True)
    def blocking(a: int, b: int) -> Out[Division]:
        return Out(*divmod(a, b))

    @app
    async def asynchronous(a: int, b: int) -> Out[Division]:
        await asyncio.sleep(0)
        return Out(*divmod(a, b))


def test_every_form_of_a_result_is_one_on_the_wire(app: wirecall.Server) -> None:
    add_divisions(app)
    names = ("by_name", "in_order", "named_tuple", "plain_tuple", "mapping", "blocking", "asynchronous")
    with app.serving() as uri, wirecall.connect(uri) as client:
        for name in names:
            assert client[name](7, 2) == {"return": None, "out": {"quotient": 3, "remainder": 1}}, name
            assert list(client[name](b=2, a=7)["out"]) == ["quotient", "remainder"], name


def test_an_object_that_is_called_asynchronously(app: wirecall.Server) -> None:
    class Divide:
        async def __call__(self, a: int, b: int) -> Out[Division]:
            return Out(*divmod(a, b))

    app.add(Divide(), name="divide")
    with app.serving() as uri, wirecall.connect(uri) as client:
        assert client.divide(7, 2)["out"] == {"quotient": 3, "remainder": 1}


def test_a_result_beside(app: wirecall.Server) -> None:
    @app
    def statistics(values: list[float]) -> tuple[str, Out[Statistics]]:
        return "good", Statistics(sum(values) / len(values), len(values))  # type: ignore[return-value]

    @app
    def count(n: int) -> tuple[None, Out[Counted]]:
        return None, Out(n=n + 1)

    with app.serving() as uri, wirecall.connect(uri) as client:
        assert client.statistics([1, 2]) == {"return": "good", "out": {"mean": 1.5, "size": 2}}
        assert client.count(1) == {"return": None, "out": {"n": 2}}


def test_a_caller_takes_them_in_order_or_by_name(app: wirecall.Server) -> None:
    add_divisions(app)
    with app.serving() as uri, wirecall.connect(uri) as client:
        quotient, remainder = Out.of(client.by_name(7, 2))
        assert (quotient, remainder) == (3, 1)
        out = Out.of(client.by_name(7, 2))
        assert (out.quotient, out.remainder, out.returned) == (3, 1, None)
        assert out.asdict() == {"quotient": 3, "remainder": 1}
        assert repr(out) == "Out(quotient=3, remainder=1)"
        assert pickle.loads(pickle.dumps(out)).remainder == 1
        assert copy.deepcopy(out) == out == (3, 1)
        with pytest.raises(AttributeError, match="no parameter 'rest' came back; there are quotient, remainder"):
            _ = out.rest
        with client.batch() as batch:
            several = [batch.by_name(n, 2) for n in (4, 5)]
        assert [tuple(Out.of(one.result())) for one in several] == [(2, 0), (2, 1)]

    async def run() -> None:
        async with wirecall.aconnect(uri) as client:
            assert tuple(Out.of(await client.asynchronous(7, 2))) == (3, 1)

    with app.serving() as uri:
        asyncio.run(run())


@pytest.mark.parametrize("result", [None, 3, [3, 1], {"return": 1}, {"out": [3, 1]}, {"out": 3}])
def test_a_result_without_any(result: Any) -> None:
    with pytest.raises(ValueError, match="no parameters came back"):
        Out.of(result)


def test_a_result_beside_is_taken_too() -> None:
    out = Out.of({"return": "good", "out": {"mean": 1.5, "count": 2}})
    assert (out.returned, out.mean) == ("good", 1.5)
    assert Out.of({"out": {}}).returned is None
    with pytest.raises(TypeError, match="in order or by name, not both"):
        Out(1, b=2)
    with pytest.raises(ValueError, match="made without names"):
        Out(1, 2).asdict()


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (Out(1), "gives quotient, remainder back: 2 values, not 1"),
        (Out(quotient=1), "gives quotient, remainder back, not quotient"),
        (Out(quotient=1, remainder=2, rest=3), "not quotient, remainder, rest"),
        ({"quotient": 1}, "gives quotient, remainder back, not quotient"),
        (7, "gives quotient, remainder back, not int"),
        (Statistics(1.0, 1), "gives quotient, remainder back, not Statistics"),
    ],
)
def test_what_does_not_fit_the_hint_is_an_internal_error(
    app: wirecall.Server, returned: Any, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    @app
    def divide() -> Out[Division]:
        return returned  # type: ignore[no-any-return]

    with app.serving() as uri, wirecall.connect(uri) as client, pytest.raises(wirecall.InternalError):
        client.divide()
    assert message in caplog.text


def test_values_are_checked(app: wirecall.Server) -> None:
    @app
    def divide() -> Out[Division]:
        return Out("three", 1)

    @app
    def pair() -> tuple[int, Out[Division]]:
        return Out(3, 1)  # type: ignore[return-value]

    with app.serving() as uri, wirecall.connect(uri) as client:
        with pytest.raises(wirecall.InternalError):
            client.divide()
        with pytest.raises(wirecall.InternalError):
            client.pair()


def test_hints_that_name_nothing_are_refused(app: wirecall.Server) -> None:
    def nothing() -> Out:  # type: ignore[type-arg]
        return Out()

    def no_names() -> Out[int]:
        return Out(1)

    def items():  # type: ignore[no-untyped-def]
        yield Out(1)

    def taken() -> Out[Taken]:
        return Out(count=1)

    for hint in (Out[Division] | None, list[Out[Division]], tuple[Out[Division], int], tuple[int, str, Out[Division]]):

        def elsewhere():  # type: ignore[no-untyped-def]
            return Out(1, 2)

        elsewhere.__annotations__["return"] = hint
        with pytest.raises(TypeError, match=r"Out is the whole hint of a result.*the result of elsewhere"):
            app.add(elsewhere)
    with pytest.raises(TypeError, match="Out has a 'count' of its own"):
        app.add(taken)
    for function in (nothing, no_names):
        with pytest.raises(TypeError, match=r"NamedTuple, dataclass or TypedDict.*the result of"):
            app.add(function)
    from collections.abc import Iterator

    items.__annotations__["return"] = Iterator[Out[Division]]
    with pytest.raises(TypeError, match="nothing comes back with it"):
        app.add(items)


def test_documents_show_what_comes_back(app: wirecall.Server) -> None:
    @app
    def step(n: Annotated[int, "a number"], by: int = 1) -> tuple[bool, Out[Counted]]:
        return True, Out(n=n + by)

    with app.serving() as uri, wirecall.connect(uri) as client:
        document = client.rpc.discover()
    method = next(one for one in document["methods"] if one["name"] == "step")
    assert [param.get("x-out", False) for param in method["params"]] == [True, False]
    assert method["result"]["x-out"] is True
    text = str(method["result"]["schema"]) + str(document.get("components"))
    assert "'return'" in text
    assert "'out'" in text


def test_functions_that_a_client_offers(app: wirecall.Server) -> None:
    @app(blocking=True)
    def ask(ctx: wirecall.Context) -> int:
        out = Out.of(ctx.call("divide", 7, 2))
        return int(out.quotient * 10 + out.remainder)

    def divide(a: int, b: int) -> Out[Division]:
        return Out(*divmod(a, b))

    with app.serving() as uri, wirecall.connect(uri) as client:
        client.offer("divide", divide)
        assert client.ask() == 31
