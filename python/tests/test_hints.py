"""What is said of values that do not fit their hint, and of hints that cannot be."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import json
import pathlib
import typing
import uuid
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict, Union

import annotated_types
import msgspec
import numpy as np
import pydantic
import pytest
from hinted import Color, Level, Model, Movie, Node, Range, read
from PIL import Image

from wirecall import _shapes
from wirecall._native import dumps


@pytest.mark.parametrize(
    ("hint", "text", "words"),
    [
        (int, '"1"', 'expected integer, got "1"'),
        (int, "1.5", "expected integer, got 1.5"),
        (int, "true", "expected integer, got true"),
        (bool, "1", "expected boolean, got 1"),
        (float, '"x"', 'expected number, got "x"'),
        (str, "7", "expected string, got 7"),
        (list[int], '[1,"x"]', 'at 1: expected integer, got "x"'),
        (list[int], "{}", "expected array of integer, got {}"),
        (dict[str, list[int]], '{"a":[1,null]}', "at a.1: expected integer, got null"),
        (dict[int, str], '{"x":"y"}', "at x: "),
        (tuple[int, str], "[1]", "at 1: expected string, got nothing"),
        (tuple[int, str], '[1,"a",2]', "at 2: expected nothing, got 2"),
        (Color, '"blue"', 'expected one of red, green, got "blue"'),
        (Level, "3", "expected one of 1, 2, got 3"),
        (Literal["a", 1], "2", "expected one of 'a', 1, got 2"),
        (Optional[int], '"x"', 'expected integer or null, got "x"'),  # noqa: UP045
        (int | str, "null", "got null"),
        (dt.date, '"yesterday"', 'expected date, got "yesterday"'),
        (dt.datetime, "7", "expected date-time, got 7"),
        (dt.timedelta, '"1 day"', 'expected duration, got "1 day"'),
        (uuid.UUID, '"x"', 'expected uuid, got "x"'),
        (decimal.Decimal, '"x"', 'expected decimal, got "x"'),
        (Movie, '{"year":1}', "at title: expected string, got nothing"),
        (Node, '{"name":"a","children":[{"name":7}]}', "at children.0.name: expected string, got 7"),
        (Range, '{"low":2,"high":1}', "low is more than high"),
        (Model, '{"name":"a","sizes":[1,"x"]}', "at sizes.1: "),
        (bytes, '"x"', "$bytes"),
    ],
)
def test_what_does_not_fit(hint, text, words):
    with pytest.raises(ValueError) as caught:
        read(hint, text)
    assert words in str(caught.value)


class Bound:
    """As annotated_types has them."""

    def __init__(self, **bounds: Any) -> None:
        self.__dict__.update(bounds)


@pytest.mark.parametrize(
    ("hint", "good", "bad", "words"),
    [
        (Annotated[int, Bound(ge=0)], "0", "-1", "expected at least 0, got -1"),
        (Annotated[int, Bound(lt=10)], "9", "10", "expected less than 10, got 10"),
        (Annotated[int, Bound(multiple_of=3)], "9", "10", "expected a multiple of 3, got 10"),
        (Annotated[str, Bound(min_length=1)], '"a"', '""', "expected a length of at least 1"),
        (Annotated[list[int], Bound(max_length=2)], "[1]", "[1,2,3]", "expected a length of at most 2"),
        (Annotated[str, pydantic.Field(pattern="^a+$")], '"aa"', '"b"', "expected a string that matches ^a+$"),
        (Annotated[int, pydantic.Field(gt=0, le=5)], "5", "6", "expected at most 5, got 6"),
        (Annotated[int, "a number"], "5", '"x"', "expected integer"),
    ],
)
def test_constraints(hint, good, bad, words):
    read(hint, good)
    with pytest.raises(ValueError) as caught:
        read(hint, bad)
    assert words in str(caught.value)


def test_durations():
    for text, seconds in (("PT1.5S", 1.5), ("P1DT2H", 93600), ("-PT1M", -60), ("P2W", 14 * 86400), ("PT0S", 0)):
        assert read(dt.timedelta, f'"{text}"').total_seconds() == seconds
    assert read(dt.timedelta, "90.5") == dt.timedelta(seconds=90.5)
    for text in ("P", "PT", "1S", "PT1"):
        with pytest.raises(ValueError, match="duration"):
            read(dt.timedelta, f'"{text}"')


def test_hints_of_other_makes():
    user_id = typing.NewType("user_id", int)
    variable = typing.TypeVar("variable", bound=int)
    assert read(user_id, "7") == 7
    assert read(variable, "7") == 7
    assert read(typing.Sequence[int], "[1]") == [1]
    assert read(typing.Mapping[str, int], '{"a":1}') == {"a": 1}
    assert read(object, "[1]") == [1]


def test_hints_that_cannot_be():
    for hint in (typing.Callable, type, json.JSONDecoder, dict[bool, int]):
        with pytest.raises(TypeError, match="cannot be put on the wire"):
            _shapes.shape_of(hint)


def test_a_class_that_could_not_be_has_not_been():
    class Wrong(TypedDict):
        inner: json.JSONDecoder

    @dataclasses.dataclass
    class Outer:
        wrong: typing.Any
        other: typing.Any

    @dataclasses.dataclass
    class Inner:
        outer: Outer | None

    Outer.__annotations__.update(other=Inner, wrong=Wrong)
    for field in dataclasses.fields(Outer):
        field.type = Outer.__annotations__[field.name]
    Inner.__annotations__["outer"] = Optional[Outer]  # noqa: UP045
    for _ in range(2):
        for hint in (Wrong, Outer, Inner, list[Inner]):
            with pytest.raises(TypeError, match="JSONDecoder cannot be put on the wire"):
                _shapes.shape_of(hint)


T = typing.TypeVar("T")


Few = typing.TypeVar("Few", int, str)


@dataclasses.dataclass
class Box(typing.Generic[T]):
    v: T
    more: list[T] = dataclasses.field(default_factory=list)
    next: Box[T] | None = None


@dataclasses.dataclass
class Numbers(Box[int]):
    pass


class Labelled(TypedDict, typing.Generic[T]):
    label: Optional[T]  # noqa: UP045


class Couple(NamedTuple, typing.Generic[T]):
    first: T
    second: Box[T]


class Row(msgspec.Struct, typing.Generic[T]):
    v: T


class Form(pydantic.BaseModel, typing.Generic[T]):
    v: T


def test_generic_classes_have_their_arguments():
    for hint, good, bad, where in (
        (Box[int], '{"v":1,"more":[2],"next":{"v":3}}', '{"v":"x"}', "at v"),
        (Box[int], '{"v":1}', '{"v":1,"more":["x"]}', "at more.0"),
        (Box[int], '{"v":1}', '{"v":1,"next":{"v":"x"}}', "at next.v"),
        (Box[str], '{"v":"x"}', '{"v":1}', "at v"),
        (Box, '{"v":"x"}', "{}", "at v"),
        (Numbers, '{"v":1}', '{"v":"x"}', "at v"),
        (Labelled[int], '{"label":1}', '{"label":"x"}', "at label"),
        (Couple[int], '[1,{"v":2}]', '[1,{"v":"x"}]', "at 1.v"),
        (Row[int], '{"v":1}', '{"v":"x"}', "at v"),
        (Form[int], '{"v":1}', '{"v":"x"}', "at v"),
        (list[Few], '[1,"x"]', "[1.5]", "at 0"),
    ):
        read(hint, good)
        with pytest.raises(ValueError) as caught:
            read(hint, bad)
        assert where in str(caught.value), hint


def even(value: int) -> int:
    if value % 2:
        raise ValueError("an even number, please")
    return value


def test_what_hints_are_annotated_with_is_never_left_aside():
    for hint, good, bad, words in (
        (Annotated[int, pydantic.AfterValidator(even)], "2", "3", "an even number, please"),
        (Annotated[list[int], pydantic.BeforeValidator(lambda v: [v])], "2", '"x"', "at 0"),
        (Annotated[int, pydantic.AfterValidator(even)], "2", '"2"', "valid integer"),
        (Annotated[str, pydantic.StringConstraints(to_upper=True, max_length=2)], '"ab"', '"abc"', "2 char"),
        (Annotated[decimal.Decimal, pydantic.Field(max_digits=2)], '"12"', '"123"', "2 digits"),
        (Annotated[dt.datetime, msgspec.Meta(tz=True)], '"2020-01-01T00:00:00Z"', '"2020-01-01T00:00:00"', "timezone"),
        (Annotated[int, msgspec.Meta(gt=1, le=5)], "5", "7", "expected at most 5, got 7"),
        (Annotated[int, msgspec.Meta(gt=1, le=5)], "2", "1", "expected more than 1, got 1"),
        (Annotated[int, pydantic.Field(description="n"), "words"], "5", '"x"', "expected integer"),
        (Annotated[str, annotated_types.LowerCase.__metadata__[0]], '"a"', '"A"', "islower"),
    ):
        read(hint, good)
        with pytest.raises(ValueError) as caught:
            read(hint, bad)
        assert words in str(caught.value), hint
    assert read(Annotated[str, pydantic.StringConstraints(to_upper=True)], '"ab"') == "AB"
    assert read(Annotated[list[int], pydantic.BeforeValidator(lambda v: [v])], "2") == [2]
    for part in (annotated_types.Timezone(None), object(), int):
        with pytest.raises(TypeError, match="nothing that is understood"):
            _shapes.shape_of(Annotated[dt.datetime, part])


@dataclasses.dataclass
class Left:
    x: int


@dataclasses.dataclass
class Right:
    x: int


def test_of_a_union_it_is_the_first_that_fits():
    for first, second in ((Left, Right), (Right, Left), (Left, Right)):
        for hint, text in (
            (first | second, '{"x":1}'),
            (list[first | second], '[{"x":1}]'),  # type: ignore[valid-type]
            (dict[str, list[first | second]], '{"a":[{"x":1}]}'),  # type: ignore[valid-type]
        ):
            came = read(hint, text)
            came = came["a"] if isinstance(came, dict) else came
            assert type(came[0] if isinstance(came, list) else came) is first
    for hint, text, expected in (
        (float | decimal.Decimal, "1.5", 1.5),
        (decimal.Decimal | float, "1.5", decimal.Decimal("1.5")),
        (float | decimal.Decimal | str, '"1.5"', decimal.Decimal("1.5")),
        (str | float | decimal.Decimal, "1.5", 1.5),
        (float | int, "1", 1),
        (float | Level, "1", Level.LOW),
        (float | decimal.Decimal | int, "1.5", 1.5),
        (str | dt.date, '"2026-02-27"', dt.date(2026, 2, 27)),
        (str | Color, '"red"', Color.RED),
        (pathlib.Path | dt.date, '"2026-02-27"', pathlib.Path("2026-02-27")),
        (Union[Any, int, str], '"a"', "a"),  # noqa: UP007
    ):
        came = read(hint, text)
        assert (type(came), came) == (type(expected), expected), hint


def test_what_cannot_be_sent():
    class Held:
        pass

    for value, words in (
        (Held(), "has no form on the wire"),
        ({"a": [1, {2}, Held()]}, r"at a\.2:"),
        (float("nan"), "not finite"),
        ({(1, 2): 3}, "a key that is neither"),
        ({1: 2, "1": 3}, r"at 1: two keys that are the same text"),
        ({"a": {"1": 2, 1: 3}}, r"at a\.1: two keys that are the same text"),
        (np.ma.array([1, 2], mask=[True, False]), "no masks"),
        (Image.new("F", (1, 1)), "an image of mode F is no PNG"),
        (Image.new("CMYK", (1, 1)), "an image of mode CMYK is no PNG"),
        (np.clongdouble(1), "complex has no form"),
        ("\ud800", "surrogates not allowed"),
        (iter([1]), "has no form on the wire"),
    ):
        with pytest.raises(TypeError, match=words):
            dumps(value)
