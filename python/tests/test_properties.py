"""Random values go there and come back as they were: by calls in each encoding, and packed by random layouts."""

from __future__ import annotations

import math
import random
import struct
from typing import Any

import pytest

import wirecall
from wirecall import _native

LETTERS = 'ab"\\\n\x01é漢🙂 '


class Values:
    """Values that every encoding has, led by a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self) -> str:
        return "".join(self.random.choices(LETTERS, k=self.random.choice([0, 1, 3, 7, 31, 32, 300])))

    def integer(self, low: int = -(2**63), high: int = 2**64 - 1) -> int:
        bits = self.random.randrange(65)
        near = self.random.choice([1, -1]) * (2**bits + self.random.randrange(-2, 3))
        return min(max(near, low), high)

    def number(self) -> float:
        bits = self.random.getrandbits(64)
        number: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
        if not math.isfinite(number):
            return -0.0
        single: float = struct.unpack("<f", struct.pack("<f", bits % 700 / 100))[0]
        return self.random.choice([number, float(bits % 1000), single])

    def value(self, depth: int = 0) -> Any:
        kind = self.random.randrange(8 if depth < 5 else 6)
        if kind == 6:
            return [self.value(depth + 1) for _ in range(self.random.randrange(5))]
        if kind == 7:
            return {self.text(): self.value(depth + 1) for _ in range(self.random.randrange(5))}
        makers = [lambda: None, lambda: self.random.random() < 0.5, self.integer, self.number, self.text,
                  lambda: self.random.randbytes(self.random.randrange(40))]  # fmt: skip
        return makers[kind]()

    # ---- of layouts ----

    def layout(self, depth: int = 0) -> tuple[str, Any]:
        """A layout and a value of it."""
        kind = self.random.randrange(9 if depth < 4 else 5)
        if kind == 0:
            bits = self.random.choice([8, 16, 32, 64])
            return f"i{bits}", self.integer(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if kind == 1:
            bits = self.random.choice([8, 16, 32, 64])
            return f"u{bits}", self.integer(0, 2**bits - 1)
        if kind == 2:
            return "f64", self.number()
        if kind == 3:
            return "str", self.text()
        if kind == 4:
            return self.random.choice([("bool", True), ("bytes", self.random.randbytes(9)), ("any", self.value(3))])
        layout, value = self.layout(depth + 1)
        if kind == 5:
            return f"[{layout}]", [value] * self.random.randrange(4)
        if kind == 6 and value is not None:
            return f"optional<{layout}>", self.random.choice([value, None])
        others = [self.layout(depth + 1) for _ in range(self.random.randrange(3))]
        members = [(layout, value), *others]
        if kind == 7:
            return f"({','.join(one for one, _ in members)})", [value for _, value in members]
        named = {f"m{at}": member for at, member in enumerate(members)}
        layout = ",".join(f"{name}:{one}" for name, (one, _) in named.items())
        return f"{{{layout}}}", {name: value for name, (_, value) in named.items()}


# A client that packs sends what cannot be packed as it does with "protobuf".
@pytest.mark.parametrize("encoding", ["json", "msgpack", "cbor", "protobuf", "packed"])
def test_values_come_back_as_they_were_in_each_encoding(app, encoding):
    @app
    def echo(value: Any) -> Any:
        return value

    with app.serving() as uri, wirecall.connect(uri, encoding=encoding) as c:
        for seed in range(150):
            value = Values(seed).value()
            # The representation tells True from 1, 1.0 from 1 and -0.0 from 0.0, and the order of members.
            assert repr(c.echo(value)) == repr(value), f"seed {seed}"


def fnv(text: str) -> bytes:
    hash = 0xCBF29CE484222325
    for byte in text.encode():
        hash = (hash ^ byte) * 0x100000001B3 % 2**64
    return struct.pack("<Q", hash)


def test_values_come_back_as_they_were_packed_by_any_layout():
    for seed in range(400):
        layout, value = Values(seed).layout()
        described = {
            "name": "f",
            "params": [{"name": "x"}],
            "result": {"x-packed": {"params": f"({layout})", "result": layout}},
        }
        method = _native.method_packing(_native.dumps(described, "msgpack"))
        packed = method.pack((value,), {})
        assert packed.startswith(fnv(f"({layout})")), f"seed {seed}"
        result = fnv(layout) + packed[8:]
        # An optional member that is empty is left out.
        assert repr(without_empty(method.unpack(result))) == repr(without_empty(value)), f"seed {seed}: {layout}"
        for cut in range(0, len(result), max(1, len(result) // 40)):
            with pytest.raises(wirecall.LocalError):
                method.unpack(result[:cut])


def without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_empty(one) for name, one in value.items() if one is not None}
    return [without_empty(one) for one in value] if isinstance(value, list) else value
