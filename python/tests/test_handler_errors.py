"""What a handler raises: what its caller is told, and what the log alone."""

from __future__ import annotations

import dataclasses
import json
import logging
import pickle
from collections.abc import AsyncIterator
from typing import Annotated

import annotated_types
import pytest
from test_server import answer

import wirecall


def test_an_error_of_the_handlers_own_is_passed_on(app):
    @app
    def pay(account: int) -> None:
        raise wirecall.Error(1001, "No such account", {"account": account})

    @app
    def taken() -> None:
        raise wirecall.Conflict("taken already")

    assert answer(app, "pay", [7]) == {"code": 1001, "message": "No such account", "data": {"account": 7}}
    assert answer(app, "taken") == {"code": -32007, "message": "taken already"}


def test_an_error_without_a_code(app, caplog):
    @app
    def plain() -> None:
        raise wirecall.Error("no beds left")

    @app
    def named() -> None:
        raise wirecall.Error(message="no beds left", data={"left": 0})

    assert answer(app, "plain") == {"code": -32000, "message": "no beds left"}
    assert answer(app, "named") == {"code": -32000, "message": "no beds left", "data": {"left": 0}}
    assert answer(app, "plain") == json.loads(json.dumps(answer(app, "plain")))
    again = pickle.loads(pickle.dumps(wirecall.Error("no beds left", data=1)))
    assert (again.code, again.message, again.data) == (-32000, "no beds left", 1)
    assert not caplog.records


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ((2**31, "m"), ValueError, "has 32 bits: 2147483648"),
        ((-(2**31) - 1, "m"), ValueError, "has 32 bits"),
        (("x", "m"), TypeError, "is an integer, not str"),
        ((1.5, "m"), TypeError, "is an integer, not float"),
        ((True, "m"), TypeError, "is an integer, not bool"),
        ((1, b"m"), TypeError, "is a string, not bytes"),
        ((1,), TypeError, "is a string, not NoneType"),
        ((), TypeError, "is a string, not NoneType"),
    ],
)
def test_what_is_no_error(arguments, kind, words):
    with pytest.raises(kind, match=words):
        wirecall.Error(*arguments)


def test_what_cannot_be_sent_of_an_error_is_told_to_the_log(app, caplog):
    @app
    def unsendable(part: str) -> None:
        error = wirecall.Error(7, "seven", {"a": [1, object()]} if part == "data" else None)
        if part == "message":
            error.message = "\ud800 seven"
        if part == "code":
            error.code = 2**40
        raise error

    for part, expected, words in (
        (
            "data",
            {"code": 7, "message": "seven"},
            "the data of an error cannot be sent: at a.1: ",
        ),
        ("message", {"code": 7, "message": "? seven"}, "whose message is no Unicode"),
        ("code", {"code": -32603, "message": "Internal error"}, "has 32 bits"),
    ):
        caplog.clear()
        assert answer(app, "unsendable", [part]) == expected
        assert words in caplog.text
        assert "method unsendable (id 1)" in caplog.text


def test_a_local_error_that_a_handler_lets_go_is_its_failure(app, caplog):
    @app
    def calls_on() -> None:
        client = wirecall.Client("tcp://127.0.0.1:1")
        client.close()
        client.anything()

    assert answer(app, "calls_on") == {"code": -32603, "message": "Internal error"}
    assert "the client is closed" in caplog.text


def test_any_other_exception_is_told_to_the_log_alone(app, caplog):
    @app
    def boom(secret: str) -> None:
        raise ValueError(f"not for callers: {secret}")

    with caplog.at_level(logging.ERROR, logger="wirecall"):
        assert answer(app, "boom", ["hush"]) == {"code": -32603, "message": "Internal error"}
    (record,) = caplog.records
    assert record.method == "boom"
    assert record.id == "1"
    assert "Traceback" in record.getMessage()
    assert "ValueError: not for callers: hush" in record.getMessage()


@dataclasses.dataclass
class Fussy:
    """Does not like what it is told to dislike."""

    dislikes: str

    def __post_init__(self) -> None:
        raise {
            "value": ValueError("be nicer"),
            "key": KeyError("/etc/secret"),
            "type": TypeError("/etc/secret"),
            "overflow": OverflowError("/etc/secret"),
            "interrupt": KeyboardInterrupt("/etc/secret"),
            "own": wirecall.Error(7, "seven"),
        }[self.dislikes]


def dislike(value: int) -> bool:
    raise KeyError("/etc/secret")


@pytest.mark.parametrize("execution", ["loop", "pool", "async", "stream", "choice", "list"])
def test_of_what_a_validator_raises_only_value_errors_are_told(app, caplog, execution):
    def take(value: Fussy) -> None: ...

    async def take_async(value: Fussy) -> None: ...

    async def stream(value: Fussy) -> AsyncIterator[int]:
        yield 1

    def choose(value: Fussy | list[int] | dict[str, int]) -> None: ...

    def take_all(value: list[Fussy]) -> None: ...

    function = {"async": take_async, "stream": stream, "choice": choose, "list": take_all}.get(execution, take)
    app.add(function, name="take") if execution != "pool" else app(name="take", blocking=True)(function)
    with app.serving() as uri, wirecall.connect(uri) as c:

        def call(dislikes: str) -> None:
            value = {"dislikes": dislikes}
            c.take([value] if execution == "list" else value)

        with pytest.raises(wirecall.InvalidParams, match=None if execution == "choice" else "be nicer"):
            call("value")
        assert not caplog.records
        for other in ("key", "type", "overflow", "interrupt"):
            caplog.clear()
            with pytest.raises(wirecall.InternalError) as caught:
                call(other)
            assert caught.value.data is None
            assert "/etc/secret" in caplog.text
            assert "take" in caplog.text
        with pytest.raises(wirecall.Error, match="seven"):
            call("own")


def test_a_predicate_that_fails_is_not_the_callers_mistake(app, caplog):
    @app
    def take(value: Annotated[int, annotated_types.Predicate(dislike)]) -> None: ...

    assert answer(app, "take", [1])["code"] == -32603
    assert "/etc/secret" in caplog.text
