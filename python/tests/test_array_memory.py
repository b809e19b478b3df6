"""The memory of large arrays that batched functions are given: a later one takes it when an array, and all that refers
to it, has gone. What is kept in a process is one for all tests, so each asks for what holds with any of it."""

import gc
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wirecall
from wirecall import _batching, _native

MIB = 1 << 20
LENT_BYTES_MIN = 8 * MIB
KEPT_BYTES_MAX = 128 * MIB
LARGE = MIB // 2  # float64: 4 MiB, and two of them 8


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """What goes, goes by its references."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def nothing_kept() -> None:
    """But one of the smallest blocks: for it the greatest goes, for which all others have gone."""
    lent(KEPT_BYTES_MAX)
    assert _native.kept_array_bytes() == KEPT_BYTES_MAX
    lent(LENT_BYTES_MIN)
    assert _native.kept_array_bytes() == LENT_BYTES_MIN


def lent(size: int) -> Any:
    memory = _native.array_memory(size)
    assert memory is not None
    return memory


def rows(value: float, count: int = 2, length: int = LARGE) -> list[Any]:
    return [np.full(length, value) for _ in range(count)]


def address(array: Any) -> int:
    return int(array.ctypes.data)


def answers(c: wirecall.Client, method: str, arrays: list[Any]) -> list[Any]:
    with c.batch() as b:
        made = [b[method](array) for array in arrays]
    return [one.result() for one in made]


@pytest.fixture(params=["plain", "async"])
def served(request) -> Iterator[tuple[wirecall.Client, list[int], list[Any]]]:
    """A client of methods that note where their arrays are: `total` also spoils them, `keep` keeps a view, and `fail`
    raises."""
    app = wirecall.Server()
    seen: list[int] = []
    kept: list[Any] = []

    def total(rows: NDArray[np.float64]) -> list[float]:
        seen.append(address(rows))
        sums = [float(row.sum()) for row in rows]
        rows[:] = -1
        return sums

    def keep(rows: NDArray[np.float64]) -> list[float]:
        seen.append(address(rows))
        kept.append(rows[1:, ::2])
        return [float(row.sum()) for row in rows]

    def fail(rows: NDArray[np.float64]) -> list[float]:
        seen.append(address(rows))
        raise wirecall.Error(7, "it fails")

    async def async_total(rows: NDArray[np.float64]) -> list[float]:
        return total(rows)

    async def async_keep(rows: NDArray[np.float64]) -> list[float]:
        return keep(rows)

    async def async_fail(rows: NDArray[np.float64]) -> list[float]:
        return fail(rows)

    plain, asynchronous = (total, keep, fail), (async_total, async_keep, async_fail)
    for function in plain if request.param == "plain" else asynchronous:
        app.add(function, name=function.__name__.removeprefix("async_"), batch=2, wait_ms=60_000)
    app.add(total, name="padded", batch=2, wait_ms=60_000, pad=True)
    with app.serving() as uri, wirecall.connect(uri, encoding="msgpack") as c:
        yield c, seen, kept


def test_the_next_batch_takes_the_memory_of_an_array_that_has_gone(served):
    c, seen, _ = served
    for value in range(4):
        assert answers(c, "total", rows(value)) == [value * LARGE] * 2
    assert len(seen) == 4
    assert len(set(seen)) == 1


def test_an_array_of_which_there_is_a_view_keeps_its_memory(served):
    c, seen, kept = served
    for value in range(4):
        assert answers(c, "keep", rows(value)) == [value * LARGE] * 2
    assert len(set(seen)) == 4
    assert [view.shape for view in kept] == [(1, LARGE // 2)] * 4
    assert all((view == value).all() for value, view in enumerate(kept))
    kept.clear()
    assert answers(c, "total", rows(7)) == [7 * LARGE] * 2
    assert seen[-1] in seen[:4]


def test_the_array_of_a_function_that_fails_goes(served):
    c, seen, _ = served
    for value in range(3):
        with pytest.raises(wirecall.Error, match="it fails"):
            answers(c, "fail", rows(value))
    assert len(set(seen)) == 1


def test_padding_is_zero_in_memory_that_was_used(served):
    c, seen, _ = served
    for shorter in [1, LARGE // 2, LARGE]:
        longest, short = np.full(LARGE, 2.0), np.full(shorter, 3.0)
        assert answers(c, "padded", [longest, short]) == [2 * LARGE, 3 * shorter]
    assert len(set(seen)) == 1


def test_groups_of_one_batch_take_the_same_memory():
    app = wirecall.Server()
    seen: list[int] = []

    @app(batch=2, wait_ms=60_000, pad=True, buckets=[MIB], batch_bytes=8 * MIB)
    def total(rows: NDArray[np.float64]) -> list[float]:
        seen.append(address(rows))
        return [float(row.sum()) for row in rows]

    with app.serving() as uri, wirecall.connect(uri, encoding="msgpack") as c:
        assert answers(c, "total", rows(1, length=3)) == [3, 3]
    assert len(seen) == 2
    assert len(set(seen)) == 1


def test_an_array_of_a_few_rows_less_takes_the_same_memory():
    large = _batching._stacked(rows(1, count=8))
    at = address(large)
    del large
    small = _batching._stacked(rows(2, count=5))
    assert address(small) == at
    assert small.shape == (5, LARGE)
    assert (small == 2).all()
    assert small.flags.c_contiguous
    assert small.flags.writeable


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(-1,), (3, -1, 5)])
def test_arrays_are_aligned_and_as_numpy_stacks_them(dtype, shape):
    values = np.random.default_rng(1).integers(0, 2, 15 * 200_000 // np.dtype(dtype).itemsize).astype(dtype)
    arrays = [np.roll(values, number).reshape(shape) for number in range(3)]
    stacked, expected = _batching._stacked(arrays), np.stack(arrays)
    assert isinstance(stacked.base, _native.ArrayMemory)
    assert address(stacked) % 64 == 0
    assert stacked.dtype == expected.dtype
    np.testing.assert_array_equal(stacked, expected)


@pytest.mark.parametrize(
    "arrays",
    [
        rows(1, length=LARGE - 1),
        [np.full(LARGE, 1, ">f8"), np.full(LARGE, 2, ">f8")],
        [np.full(LARGE, "2026-01-02", "M8[D]")] * 2,
        [np.full(LARGE, "a text", "S8")] * 2,
    ],
    ids=["small", "swapped", "dates", "texts"],
)
def test_what_is_small_or_has_no_numbers_has_memory_of_its_own(arrays):
    stacked, expected = _batching._stacked(arrays), np.stack(arrays)
    assert stacked.flags.owndata
    assert stacked.dtype == expected.dtype
    np.testing.assert_array_equal(stacked, expected)
    assert _batching._padded(arrays, 0).flags.owndata


def test_memory_is_lent_between_two_bounds():
    for outside in [0, LENT_BYTES_MIN - 1, KEPT_BYTES_MAX + 1]:
        assert _native.array_memory(outside) is None
    for within in [LENT_BYTES_MIN, LENT_BYTES_MIN + 1, KEPT_BYTES_MAX]:
        assert memoryview(lent(within)).nbytes == within


def test_what_is_kept_is_bounded():
    held = [lent(32 * MIB) for _ in range(6)]
    held += [lent(LENT_BYTES_MIN) for _ in range(6)]
    while held:
        held.pop()
        assert _native.kept_array_bytes() <= KEPT_BYTES_MAX
    assert _native.kept_array_bytes() > KEPT_BYTES_MAX - 32 * MIB


def test_no_more_of_one_size_is_kept_than_was_lent_at_once(nothing_kept):
    for count in [1, 2, 3, 2, 1]:
        held = [lent(16 * MIB) for _ in range(count)]
        held.clear()
    assert _native.kept_array_bytes() == 3 * 16 * MIB + LENT_BYTES_MIN


def test_what_64_arrays_have_not_used_is_freed(nothing_kept):
    lent(32 * MIB)
    for _ in range(64):
        lent(16 * MIB)
    assert _native.kept_array_bytes() == 32 * MIB + 16 * MIB
    lent(16 * MIB)
    assert _native.kept_array_bytes() == 16 * MIB


def test_memory_does_not_grow():
    arrays = rows(1, count=31, length=MIB // 8)

    def resident_kib() -> int:
        found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
        assert found
        return int(found[1])

    def stack(times: int) -> None:
        for turn in range(times):
            assert _batching._stacked(arrays[: 8 + turn % 24]).shape[0] >= 8
            assert _batching._padded(arrays[: 8 + turn % 24], MIB // 8 + 1).shape[0] >= 8

    stack(24)
    before = resident_kib()
    stack(48)
    assert resident_kib() - before < 16 * 1024


def test_threads_have_memory_of_their_own():
    wrong: list[int] = []

    def stack(number: int) -> None:
        for turn in range(25):
            made = _batching._stacked(rows(number * 1000 + turn))
            if not (made == number * 1000 + turn).all():
                wrong.append(number)

    threads = [threading.Thread(target=stack, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


KEEPS = """
import threading
import numpy as np
from wirecall import _batching

kept = _batching._stacked([np.ones(300_000)] * 4)
of_thread = threading.local()
of_thread.kept = _batching._stacked([np.ones(300_000)] * 4)

class Last:
    def __init__(self):
        self.kept = _batching._stacked([np.ones(300_000)] * 4)
        self.itself = self

last = Last()
del last
print(kept.sum())
"""


def test_a_process_may_end_with_arrays():
    done = subprocess.run([sys.executable, "-c", KEEPS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1200000.0\n", "")
