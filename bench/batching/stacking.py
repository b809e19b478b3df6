"""Stacks arrays of float32 of 1 MiB, as 32 callers have sent them, into the one that a batched function is given. Prints
how long that takes where memcpy of as many bytes into new memory takes 1, and into memory that is there: each is the best
of its rounds."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

import numpy as np

from wirecall import _batching

CALLERS = 32
ELEMENTS = (1 << 20) // 4
ROUNDS = 50

arrays = [np.full(ELEMENTS, number, np.float32) for number in range(CALLERS)]
source = _batching._stacked(arrays)
assert (source == np.arange(CALLERS)[:, np.newaxis]).all()
there = np.zeros_like(source)


def copy_into(target: np.ndarray) -> None:
    ctypes.memmove(target.ctypes.data, source.ctypes.data, source.nbytes)


def seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


ways: list[Callable[[], object]] = [
    lambda: _batching._stacked(arrays), lambda: copy_into(np.empty_like(source)), lambda: copy_into(there),
]  # fmt: skip
rounds = [[seconds(way) for way in ways] for _ in range(ROUNDS)]
stacked, into_new, into_there = map(min, zip(*rounds, strict=True))
print(f"[{stacked / into_new}, {stacked / into_there}]")
