"""Types of all makes, and how a value of one is read and sent: what the tests of types share."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, NamedTuple, NotRequired, TypedDict

import pydantic
import pytest

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


def read(hint: Any, text: str | bytes, encoding: str = "json") -> Any:
    return loads(text.encode() if isinstance(text, str) else text, _shapes.shape_of(hint), encoding)


def round_trip(hint: Any, value: Any, encoding: str = "json") -> Any:
    return read(hint, dumps(value, encoding), encoding)


CODECS = pytest.mark.parametrize("encoding", ["json", "msgpack", "cbor"])
