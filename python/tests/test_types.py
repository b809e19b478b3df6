"""Values of every type, there and back, and what is said of those that do not fit."""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import io
import json
import math
import pathlib
import typing
import uuid
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict, Union

import annotated_types
import msgspec
import numpy as np
import numpy.typing as npt
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import wirecall
from wirecall import _shapes
from wirecall._native import dumps, loads


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: int
    y: float = 0.0


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


@dataclasses.dataclass
class Node:
    """A tree."""

    name: str
    children: list[Node] = dataclasses.field(default_factory=list)
    color: Color | None = None


@dataclasses.dataclass(frozen=True)
class Range:
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is more than high")


class Model(pydantic.BaseModel):
    name: str
    sizes: list[int] = []


def read(hint: Any, text: str | bytes, msgpack: bool = False) -> Any:
    return loads(text.encode() if isinstance(text, str) else text, _shapes.shape_of(hint), msgpack)


def round_trip(hint: Any, value: Any, msgpack: bool = False) -> Any:
    return read(hint, dumps(value, msgpack), msgpack)


CODECS = pytest.mark.parametrize("msgpack", [False, True], ids=["JSON", "MessagePack"])


# ---- there and back, for all values of a type ----

INTEGERS = st.integers(-(2**63), 2**64 - 1)  # what MessagePack can express; JSON takes all

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)

TYPES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (Any, JSON_VALUES),
    (int, INTEGERS),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (str, st.text()),
    (bytes, st.binary()),
    (bytearray, st.binary().map(bytearray)),
    (bool, st.booleans()),
    (None, st.none()),
    (list[int], st.lists(INTEGERS)),
    (list, st.lists(JSON_VALUES)),
    (dict[str, float], st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False))),
    (dict[int, str], st.dictionaries(INTEGERS, st.text())),
    (dict[Color, int], st.dictionaries(st.sampled_from(Color), INTEGERS)),
    (dict[uuid.UUID, int], st.dictionaries(st.uuids(), INTEGERS)),
    (dict[dt.date, int], st.dictionaries(st.dates(), INTEGERS)),
    (tuple[int, str], st.tuples(INTEGERS, st.text())),
    (tuple[int, ...], st.lists(INTEGERS).map(tuple)),
    (tuple[()], st.just(())),
    (set[str], st.sets(st.text())),
    (frozenset[int], st.frozensets(INTEGERS)),
    (collections.deque[int], st.lists(INTEGERS).map(collections.deque)),
    (Color, st.sampled_from(Color)),
    (Level, st.sampled_from(Level)),
    (Access, st.sampled_from([Access.READ, Access.WRITE, Access.READ | Access.WRITE])),
    (dt.datetime, st.datetimes(timezones=st.none() | st.just(dt.UTC))),
    (dt.date, st.dates()),
    (dt.time, st.times()),
    (dt.timedelta, st.timedeltas()),
    (uuid.UUID, st.uuids()),
    (decimal.Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    (pathlib.Path, st.text(st.characters(codec="utf-8", exclude_characters="\0")).map(pathlib.Path)),
    (Literal["a", 1, True, None], st.sampled_from(["a", 1, True, None])),
    (Optional[int], st.none() | INTEGERS),  # noqa: UP045 - both ways to say it
    (int | str | None, st.none() | INTEGERS | st.text()),
    (Union[list[int], dict[str, int]], st.lists(INTEGERS) | st.dictionaries(st.text(), INTEGERS)),  # noqa: UP007
    (Point, st.builds(Point, INTEGERS, st.floats(allow_nan=False, allow_infinity=False))),
    (Movie, st.fixed_dictionaries({"title": st.text()}, optional={"year": INTEGERS})),
    (Range, st.tuples(INTEGERS, INTEGERS).map(sorted).map(lambda pair: Range(*pair))),
    (
        Node,
        st.recursive(
            st.builds(Node, st.text(), color=st.none() | st.sampled_from(Color)),
            lambda inner: st.builds(Node, st.text(), st.lists(inner, max_size=3)),
            max_leaves=5,
        ),
    ),
    (Model, st.builds(Model, name=st.text(), sizes=st.lists(st.integers(-(2**63), 2**63 - 1)))),
]


@CODECS
@pytest.mark.parametrize(("hint", "values"), TYPES, ids=[str(hint) for hint, _ in TYPES])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_there_and_back(hint, values, msgpack, data):
    value = data.draw(values)
    came = round_trip(hint, value, msgpack)
    assert came == value
    assert type(came) is type(value)


@settings(max_examples=200, deadline=None)
@given(JSON_VALUES)
def test_as_pythons_own_json(value):
    text = dumps(value)
    assert repr(json.loads(text)) == repr(value)  # a float stays one
    assert repr(read(Any, text)) == repr(value)
    assert read(Any, json.dumps(value)) == value


@settings(max_examples=100, deadline=None)
@given(st.integers(2**64) | st.integers(max_value=-(2**63) - 1))
def test_integers_beyond_64_bits(value):
    assert round_trip(int, value) == value
    assert round_trip(Any, [value]) == [value]
    with pytest.raises(TypeError, match="beyond 64 bits"):
        dumps(value, True)


@CODECS
@settings(max_examples=100, deadline=None)
@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_floats_to_the_last_bit(msgpack, value):
    came = round_trip(float, value, msgpack)
    assert math.copysign(1, came) == math.copysign(1, value)
    assert came == value


# ---- arrays and images ----


@CODECS
@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<i2", "<u8", "?", "<c16", "S3"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3, 4)])
def test_arrays(dtype, shape, msgpack):
    array = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    for hint in (np.ndarray, Any):
        came = round_trip(hint, array, msgpack)
        assert came.dtype == array.dtype
        assert came.shape == array.shape
        assert (came == array).all()


def test_what_stands_for_a_value_is_that_value_without_a_hint_too():
    assert read(Any, '[{"$bytes":"aGk="}]') == [b"hi"]
    assert read(Any, dumps({"a": np.arange(3)}))["a"].tolist() == [0, 1, 2]
    for text in (
        '{"$bytes":"!"}',
        '{"$bytes":"aGk=","a":1}',
        '{"$npy":"aGk="}',
        '{"$image":"aGk="}',
        '{"a":1,"$bytes":"aGk="}',
    ):
        assert read(Any, text) == json.loads(text)


def test_arrays_may_come_as_lists():
    assert read(npt.NDArray[np.float64], "[[1,2],[3,4]]").tolist() == [[1, 2], [3, 4]]
    for text in ("[[1],[2,3]]", '{"$npy":"!"}', '{"$npy":""}', '{"a":1}', "7"):
        with pytest.raises(ValueError, match="an array"):
            read(np.ndarray, text)


def test_numbers_of_numpy():
    assert dumps([np.int32(7), np.float32(0.5), np.bool_(True), np.float64(1.5)]) == b"[7,0.5,true,1.5]"
    assert read(np.int32, "7") == np.int32(7)
    assert type(read(np.float32, "0.5")) is np.float32
    with pytest.raises(TypeError, match="Python objects"):
        dumps(np.array([object()]))


ARRAYS = [
    np.arange(6).astype(kind).reshape(2, 3)
    for kind in ("?", "i1", "u8", ">i4", "f2", "f4", "f8", "c16", "S3", "U2", "M8[ns]", "m8[s]")
] + [
    np.array(2.5),
    np.zeros((0, 3)),
    np.zeros((2, 0), "S0"),
    np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    np.arange(24).reshape(2, 3, 4)[:, ::2, ::-1],
    np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2),
    np.zeros(2, [("x", "f4"), ("name", "U3")]),
    np.zeros(2, [("größe", "i2"), ("大", "i2")]),
    np.zeros(3, [(f"member{i:05}", "i1") for i in range(300)]),
    np.array([[float("nan"), float("inf")], [-0.0, 1e300]]),
    np.broadcast_to(np.float32(1.5), (2, 2)),
]


@CODECS
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype.str[:9]}{array.shape}")
def test_arrays_of_every_kind(array, msgpack):
    came = round_trip(np.ndarray, array, msgpack)
    assert (came.dtype, came.shape) == (array.dtype, array.shape)
    assert came.tobytes() == array.tobytes()
    assert came.flags.writeable
    assert came.flags.aligned
    # NumPy reads it as well.
    assert np.load(io.BytesIO(base64.b64decode(json.loads(dumps(array))["$npy"]))).tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "npy",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\xff\xff{",
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
        b"\x93NUMPY\x09\x00\x02\x00{}",
        b"\x93NUMPY\x03\x00\x02\x00\x00\x00{}",
        *(
            b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 16
            for header in (
                b"{'descr': '<f4', 'fortran_order': False, 'shape': (9,), }",
                b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
                b"{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976, 16), }",
                b"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
                b"{'descr': '<f4', 'fortran_order': False}",
                b"{'descr': 'nonsense', 'fortran_order': False, 'shape': (1,), }",
                b"__import__('os').abort()",
            )
        ),
    ],
)
def test_what_is_no_array(npy):
    text = json.dumps({"$npy": base64.b64encode(npy).decode()})
    with pytest.raises(ValueError, match="an array"):
        read(np.ndarray, text)


MARKED = [
    {"$bytes": "aGk="},
    {"$bytes": 1},
    {"$npy": "x"},
    {"$image": None},
    {"$": 1},
    {"$": {"$bytes": "aGk="}},
    {"$": {"$": {"$x": 1}}},
    {"$foo": 1},
    {"$ref": "#/definitions/a"},
    {"$bytes": "aGk=", "b": 1},
    [{"$bytes": {"$npy": b"x"}}],
]


@CODECS
@pytest.mark.parametrize("value", MARKED, ids=str)
def test_user_data_that_looks_like_more_is_what_it_was(value, msgpack):
    assert round_trip(Any, value, msgpack) == value
    if isinstance(value, dict):
        assert round_trip(dict[str, Any], value, msgpack) == value


def test_only_what_would_be_taken_for_more_is_wrapped():
    assert dumps({"$bytes": 1}) == b'{"$":{"$bytes":1}}'
    assert dumps({"$ref": "a"}) == b'{"$ref":"a"}'
    assert read(Any, '{"$":{"$ref":"a"}}') == {"$ref": "a"}
    assert read(dict[str, int], '{"$":{"$bytes":1}}') == {"$bytes": 1}
    assert read(Any, '{"$":{"$a":1,"b":2}}') == {"$": {"$a": 1, "b": 2}}
    assert read(Any, '{"$":{"$a":1},"b":2}') == {"$": {"$a": 1}, "b": 2}


class Measured(pydantic.BaseModel, ser_json_inf_nan="constants"):
    value: float


@CODECS
def test_what_a_library_writes_that_is_no_json_is_not_sent(msgpack):
    with pytest.raises(TypeError, match="no JSON"):
        dumps([Measured(value=float("nan"))], msgpack)
    assert dumps(Measured(value=1.5), msgpack) == dumps({"value": 1.5}, msgpack)


def test_numbers_in_msgpack():
    for value in (float("nan"), float("inf"), -float("inf"), 1.0, -0.0, 2**63, 2**64 - 1, -(2**63), 1.5):
        came = round_trip(Any, value, msgpack=True)
        assert type(came) is type(value)
        assert repr(came) == repr(value)
    assert dumps(1.0, msgpack=True) == b"\xcb\x3f\xf0" + b"\0" * 6
    with pytest.raises(TypeError, match="beyond 64 bits"):
        dumps(2**64, msgpack=True)


def test_an_array_of_nothing_is_made_of_nobodys_memory():
    header = b"{'descr': '|S0', 'fortran_order': False, 'shape': (3000,), }"
    npy = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with pytest.raises(ValueError, match="an array"):
        read(np.ndarray, json.dumps({"$npy": base64.b64encode(npy).decode()}))


@pytest.mark.parametrize("data", ["c7 00 ff", "d4 ff 00", "d7 ff ff ff ff ff 00 00 00 00"])
def test_what_is_no_point_in_time(data):
    with pytest.raises(ValueError):
        loads(bytes.fromhex(data), _shapes.shape_of(Any), True)


def test_models_are_given_no_text_meant_for_people():
    class Held(pydantic.BaseModel, extra="allow"):
        pass

    assert loads(bytes.fromhex("81 a1 61 01"), _shapes.shape_of(Held), True).a == 1
    for data in ("81 01 02", "81 a1 61 d4 05 00", "81 a1 61 cb 7f f8 00 00 00 00 00 00"):
        with pytest.raises(ValueError, match="JSON can express"):
            loads(bytes.fromhex(data), _shapes.shape_of(Held), True)


@CODECS
def test_images(msgpack):
    image = Image.new("RGB", (3, 2), (1, 2, 3))
    came = round_trip(Image.Image, image, msgpack)
    assert came.size == (3, 2)
    assert came.getpixel((2, 1)) == (1, 2, 3)
    with pytest.raises(ValueError, match="an image"):
        read(Image.Image, '{"$image":"AAAA"}')


# ---- what does not fit ----


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


@CODECS
def test_arrays_have_the_elements_that_are_hinted(msgpack):
    def read_as(hint: Any, value: Any) -> Any:
        return read(hint, dumps(value, msgpack), msgpack)

    for hint, value, dtype in (
        (npt.NDArray[np.float32], np.array([1.5], np.float32), np.float32),
        (npt.NDArray[np.float32], np.array([1], np.int16), np.float32),
        (npt.NDArray[np.float32], [1, 2.5], np.float32),
        (npt.NDArray[np.float32], [], np.float32),
        (npt.NDArray[np.uint8], [[1], [255]], np.uint8),
        (npt.NDArray[np.float64], np.array([1], ">f4"), np.float64),
        (npt.NDArray[np.complex64], [1.5], np.complex64),
        (npt.NDArray[np.floating[Any]], np.array([1], np.float32), np.float32),
        (npt.NDArray[np.str_], np.array(["ab"]), np.dtype("<U2")),
        (npt.NDArray[Any], np.array([1], np.int8), np.int8),
        (np.ndarray, np.array([1], np.int8), np.int8),
    ):
        came = read_as(hint, value)
        assert came.dtype == dtype, hint
        assert came.tolist() == (value if isinstance(value, list) else value.tolist())
    for hint, value, words in (
        (npt.NDArray[np.float32], np.array([1]), "expected an array of float32, not of int64"),
        (npt.NDArray[np.float32], np.array([1.0]), "expected an array of float32, not of float64"),
        (npt.NDArray[np.float32], [1e300], "expected an array of float32, not of float64"),
        (npt.NDArray[np.uint8], [256], "expected an array of uint8, not of int64"),
        (npt.NDArray[np.int64], [1.5], "expected an array of int64, not of float64"),
        (npt.NDArray[np.int64], [True], "expected an array of int64, not of bool"),
        (npt.NDArray[np.int64], ["x"], "expected an array of int64, not of <U1"),
        (npt.NDArray[np.floating[Any]], np.array([1]), "expected an array of floating, not of int64"),
        (npt.NDArray[np.float32 | np.float64], np.array([1]), "expected an array of float32 or float64, not of int64"),
        (npt.NDArray[np.float32], {"a": 1}, "expected an array of float32, got"),
    ):
        with pytest.raises(ValueError) as caught:
            read_as(hint, value)
        assert words in str(caught.value)


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


class Corner(enum.Enum):
    ORIGIN = (0, 0)
    FAR = (1, 2.5)


@CODECS
def test_enumerations_of_tuples(msgpack):
    assert round_trip(list[Corner], list(Corner), msgpack) == list(Corner)
    with pytest.raises(ValueError, match=r"expected one of \[0,0\], \[1,2.5\]"):
        read(Corner, "[0,1]")
    assert json.loads(_shapes.shape_of(Corner).schema)["enum"] == [[0, 0], [1, 2.5]]


def test_numbers_that_numpy_has_no_room_for():
    for hint, text in ((np.uint8, "300"), (np.uint8, "-1"), (np.float32, "1e300"), (np.float16, "1e5")):
        with pytest.raises(ValueError, match=f"expected a {hint.__name__}, got"):
            read(hint, text)
    assert dumps(np.longdouble(1.5)) == b"1.5"


def test_integers_without_bounds_have_none_in_their_schema():
    assert json.loads(_shapes.shape_of(int).schema) == {"type": "integer"}
    assert json.loads(_shapes.shape_of(list[int]).schema)["items"] == {"type": "integer"}


def test_bounds_of_integers_are_in_their_schema():
    schema = json.loads(_shapes.shape_of(Annotated[int, pydantic.Field(ge=0, lt=10)]).schema)
    assert schema == {"type": "integer", "minimum": 0, "exclusiveMaximum": 10}


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


def test_deep_values():
    value: Any = []
    for _ in range(200):
        value = [value]
    assert round_trip(Any, value) == value
    with pytest.raises(ValueError, match="not JSON"):
        read(Any, "[" * 10_000 + "]" * 10_000)


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (int, {"type": "integer"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (Color, {"type": "string", "enum": ["red", "green"]}),
        (dt.datetime, {"type": "string", "format": "date-time"}),
        (Any, {}),
    ],
)
def test_schemas(hint, schema):
    made = json.loads(_shapes.shape_of(hint).schema)
    for name, value in schema.items():
        assert made[name] == value


def test_by_the_wire(app):
    @app
    def plant(node: Node, when: dt.date, colors: set[Color] = frozenset()) -> Node:  # type: ignore[assignment]
        assert isinstance(node, Node)
        return Node(f"{node.name} {when.year} {len(colors)}", [node], Color.GREEN)

    with app.serving() as uri, wirecall.connect(uri) as c:
        came = c.plant(Node("oak", [Node("twig")]), dt.date(2000, 1, 2), {Color.RED})
    assert came == {
        "name": "oak 2000 1",
        "children": [{"name": "oak", "children": [{"name": "twig", "children": [], "color": None}], "color": None}],
        "color": "green",
    }
