"""CBOR beside that of others (PyPI's cbor2): what each writes the other reads, and what one refuses the other does."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hinted import read
from hypothesis import given, settings
from hypothesis import strategies as st

import wirecall
from wirecall._native import dumps

cbor2 = pytest.importorskip("cbor2")

INTEGERS = st.integers(-(2**63), 2**64 - 1)
SCALARS = st.none() | st.booleans() | INTEGERS | st.floats() | st.text() | st.binary()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)


def plain(value: Any) -> Any:
    """Without what differs only in its type, NaN as a word, and times as ours."""
    if value is cbor2.undefined:
        return None
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    if isinstance(value, Mapping):
        return {plain(key): plain(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(one) for one in value]
    return value


@settings(max_examples=600, deadline=None)
@given(VALUES)
def test_what_we_write_is_what_others_read(value):
    assert plain(cbor2.loads(dumps(value, "cbor"))) == plain(value)


@settings(max_examples=600, deadline=None)
@given(VALUES)
def test_what_others_write_is_what_we_read(value):
    assert plain(read(Any, cbor2.dumps(value), "cbor")) == plain(value)


@settings(max_examples=600, deadline=None)
@given(st.recursive(SCALARS, st.lists, max_leaves=20))
def test_both_write_the_same_preferred_serialization(value):
    assert dumps(value, "cbor") == cbor2.dumps(value, canonical=True)


@pytest.mark.parametrize("timestamps", [False, True], ids=["tag 0", "tag 1"])
@settings(max_examples=200, deadline=None)
@given(moment=st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2200, 1, 1), timezones=st.just(dt.UTC)))
def test_times(timestamps, moment):
    written = cbor2.dumps(moment, datetime_as_timestamp=timestamps)
    assert read(dt.datetime, written, "cbor") == moment


@settings(max_examples=300, deadline=None)
@given(number=st.integers(-(2**70), 2**70), zeros=st.integers(0, 3))
def test_bignums(number, zeros):
    size = number if number >= 0 else -1 - number
    digits = bytes(zeros) + size.to_bytes((size.bit_length() + 7) // 8, "big")
    tagged = bytes([0xC2 if number >= 0 else 0xC3]) + cbor2.dumps(digits)
    if -(2**63) <= number < 2**64:
        assert read(int, tagged, "cbor") == number
    else:
        with pytest.raises(ValueError, match="64 bits"):
            read(int, tagged, "cbor")


class Maker:
    """Values in forms of all kinds, as RFC 8949 allows them: longer heads, chunks, indefinite lengths, tags."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def head(self, major: int, size: int) -> bytes:
        forms = [(24, "B"), (25, ">H"), (26, ">I"), (27, ">Q")]
        fitting = [form for form, bits in zip(forms, (8, 16, 32, 64), strict=True) if size < 2**bits]
        if size < 24 and self.random.random() < 0.7:
            return bytes([major << 5 | size])
        info, form = self.random.choice(fitting[:2])
        return bytes([major << 5 | info]) + struct.pack(form, size)

    def chunks(self, major: int, pieces: list[bytes]) -> bytes:
        if self.random.random() < 0.5:
            return self.head(major, len(b"".join(pieces))) + b"".join(pieces)
        return bytes([major << 5 | 31]) + b"".join(self.head(major, len(one)) + one for one in pieces) + b"\xff"

    def container(self, major: int, parts: list[bytes]) -> bytes:
        if self.random.random() < 0.5:
            return self.head(major, len(parts)) + b"".join(parts)
        return bytes([major << 5 | 31]) + b"".join(parts) + b"\xff"

    def value(self, depth: int = 0) -> bytes:
        pick = self.random.randrange(10 if depth < 4 else 7)
        if pick == 0:
            return self.head(0, self.random.getrandbits(self.random.randrange(1, 64)))
        if pick == 1:
            return self.head(1, self.random.getrandbits(self.random.randrange(1, 63)))
        if pick == 2:
            return self.chunks(2, [self.random.randbytes(self.random.randrange(4)) for _ in range(3)])
        if pick == 3:
            return self.text()
        if pick == 4:
            return self.random.choice([b"\xf4", b"\xf5", b"\xf6", b"\xf7"])
        if pick == 5:
            size = self.random.choice([2, 4, 8])
            return {2: b"\xf9", 4: b"\xfa", 8: b"\xfb"}[size] + self.random.randbytes(size)
        if pick == 6:
            return self.head(6, 55799) + self.value(depth + 1)
        if pick == 7:
            return self.container(4, [self.value(depth + 1) for _ in range(self.random.randrange(5))])
        names = sorted({self.random.choice("abcdefgh") for _ in range(self.random.randrange(5))})
        return self.container(5, [self.text(name) + self.value(depth + 1) for name in names])

    def text(self, text: str | None = None) -> bytes:
        whole = text if text is not None else "".join(self.random.choices('aé漢🙂\n"', k=self.random.randrange(5)))
        cut = self.random.randrange(len(whole) + 1)
        return self.chunks(3, [whole[:cut].encode(), whole[cut:].encode()])


def ours(data: bytes) -> Any:
    try:
        return plain(read(Any, data, "cbor"))
    except ValueError as error:
        return f"refused: {error}"


def theirs(data: bytes) -> Any:
    try:
        return plain(cbor2.loads(data))
    except Exception as error:  # of several kinds
        return f"refused: {error}"


def test_values_in_every_form():
    for seed in range(3000):
        data = Maker(seed).value()
        assert ours(data) == theirs(data), data.hex()


def test_what_is_changed_or_cut_is_refused_by_both_or_read_alike():
    """Of tags 55799 alone: what others mean is theirs; and of keys text, since others are texts to us."""
    both = 0
    for seed in range(6000):
        maker = Maker(seed)
        data = bytearray(maker.value())
        for _ in range(maker.random.randrange(1, 3)):
            at = maker.random.randrange(len(data))
            if maker.random.random() < 0.3:
                del data[at:]
            else:
                data[at] = maker.random.randrange(256)
            data = data or bytearray(b"\xf6")
        mine, other = ours(bytes(data)), theirs(bytes(data))
        if isinstance(mine, str) and mine.startswith("refused"):
            well_formed = not mine.startswith("refused: not cbor")
            assert well_formed or (isinstance(other, str) and other.startswith("refused")), (bytes(data).hex(), mine)
            continue
        if not has_tags(bytes(data)) and has_text_keys(other):
            both += 1
            assert mine == other, bytes(data).hex()
    assert both > 1000


def has_text_keys(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and has_text_keys(one) for key, one in value.items())
    return all(map(has_text_keys, value)) if isinstance(value, list) else True


def has_tags(data: bytes) -> bool:
    """Whether a byte of it could be the head of a tag other than 55799."""
    return any(0xC0 <= byte < 0xDC for byte in data.replace(b"\xd9\xd9\xf7", b""))


def test_a_client_speaks_it_with_a_server(app):
    @app
    def echo(value: Any) -> Any:
        return value

    with app.serving() as uri, wirecall.connect(uri, encoding="cbor") as client:
        value = {"a": [1, -1, 2**64 - 1, 1.5, b"\0\xff", None, "é"], "$x": {"$y": 1}}
        assert client.echo(value) == value
        assert math.isnan(client.echo(math.nan))
        with client.batch() as batch:
            one, two = batch.echo(1), batch.echo([2])
        assert (one.result(), two.result()) == (1, [2])
