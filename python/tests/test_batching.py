"""Functions that are called once for many calls. Nothing here waits: a batch leaves when it is full, or as soon as the
function is free."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import threading
import typing
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

import wirecall
from wirecall import Shared


def together(c: wirecall.Client, method: str, *calls: Any) -> list[Any]:
    """Calls the method in one message, and returns each result or error. Several arguments stand in a tuple."""
    with c.batch() as b:
        made = [b[method](*(call if isinstance(call, tuple) else (call,))) for call in calls]
    outcomes: list[Any] = []
    for one in made:
        try:
            outcomes.append(one.result())
        except wirecall.Error as error:
            outcomes.append(error)
    return outcomes


def test_the_calls_of_a_batch_go_together():
    app = wirecall.Server()
    batches: list[list[str]] = []

    @app(batch=8)
    def shout(texts: list[str]) -> list[str]:
        batches.append(texts)
        return [text.upper() for text in texts]

    with app.serving() as uri, wirecall.connect(uri) as c:
        assert together(c, "shout", "a", "b", "c") == ["A", "B", "C"]
        assert c.shout(texts="by name") == "BY NAME"
    assert batches == [["a", "b", "c"], ["by name"]]


def test_a_full_batch_does_not_wait():
    app = wirecall.Server()
    sizes: list[int] = []

    @app(batch=2, wait_ms=60_000)
    def echo(numbers: list[int]) -> list[int]:
        sizes.append(len(numbers))
        return numbers

    with app.serving() as uri, wirecall.connect(uri) as c:
        assert together(c, "echo", *range(6)) == list(range(6))
    assert sizes == [2, 2, 2]


def test_with_an_adaptive_wait_a_lone_call_is_answered():
    app = wirecall.Server()

    @app(batch=64, wait_ms="auto")
    def echo(numbers: list[int]) -> list[int]:
        return numbers

    with app.serving() as uri, wirecall.connect(uri) as c:
        assert [c.echo(number) for number in range(20)] == list(range(20))


def test_calls_of_different_connections_go_together():
    app = wirecall.Server()
    sizes: list[int] = []

    @app(batch=4, wait_ms=60_000)
    def echo(numbers: list[int]) -> list[int]:
        sizes.append(len(numbers))
        return numbers

    answers: list[int] = []
    with app.serving() as uri:

        def call(number: int) -> None:
            with wirecall.connect(uri) as c:
                answers.append(c.echo(number))

        threads = [threading.Thread(target=call, args=[number]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(answers) == [0, 1, 2, 3]
    assert sizes == [4]


def test_a_wrong_call_is_in_no_batch():
    app = wirecall.Server()
    batches: list[list[int]] = []

    @app(batch=3, wait_ms=60_000)
    def double(numbers: list[int]) -> list[int]:
        batches.append(numbers)
        return [2 * number for number in numbers]

    with app.serving() as uri, wirecall.connect(uri) as c:
        one, wrong, three = together(c, "double", 1, "x", 3)
        assert (one, three) == (2, 6)
        assert isinstance(wrong, wirecall.InvalidParams)
        assert wrong.data["loc"] == ["numbers"]
    assert batches == [[1, 3]]


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
def test_errors_are_those_of_one_or_of_all(encoding):
    app = wirecall.Server()

    @app(batch=2, wait_ms=60_000)
    def check(numbers: list[int]) -> list[int]:
        if 100 in numbers:
            raise wirecall.Error(5, "all of them")
        if 200 in numbers:
            raise ValueError("secret")
        if 300 in numbers:
            return [1]
        return [wirecall.Error(7, "negative") if number < 0 else number for number in numbers]  # type: ignore[misc]

    with app.serving() as uri, wirecall.connect(uri, encoding=encoding) as c:
        one, negative = together(c, "check", 1, -1)
        assert one == 1
        assert (negative.code, negative.message) == (7, "negative")
        assert [outcome.code for outcome in together(c, "check", 1, 100)] == [5, 5]
        assert [outcome.code for outcome in together(c, "check", 1, 200)] == [-32603, -32603]
        assert [outcome.code for outcome in together(c, "check", 300, 1)] == [-32603, -32603]
        assert together(c, "check", 3, 4) == [3, 4]


def test_only_equal_shared_parameters_go_together():
    app = wirecall.Server()
    runs: list[tuple[list[str], str]] = []

    @app(batch=3, wait_ms=60_000)
    def translate(texts: list[str], language: Shared[str]) -> list[str]:
        runs.append((texts, language))
        return [f"{language}:{text}" for text in texts]

    with app.serving() as uri, wirecall.connect(uri) as c:
        assert together(c, "translate", ("a", "de"), ("b", "en"), ("c", "de")) == ["de:a", "en:b", "de:c"]
    assert runs == [(["a", "c"], "de"), (["b"], "en")]


def test_what_fails_one_group_fails_no_other():
    app = wirecall.Server()

    def translate(texts: list[str], language: Shared[str]) -> list[str]:
        if language == "xx":
            raise wirecall.Error(9, "no such language")
        return texts

    async def translate_later(texts: list[str], language: Shared[str]) -> list[str]:
        return translate(texts, language)

    app.add(translate, batch=3, wait_ms=60_000)
    app.add(translate_later, batch=3, wait_ms=60_000)
    with app.serving() as uri, wirecall.connect(uri) as c:
        for method in ["translate", "translate_later"]:
            a, b, third = together(c, method, ("a", "de"), ("b", "xx"), ("c", "de"))
            assert (a, b.code, third) == ("a", 9, "c")


def test_who_fills_a_batch_by_bytes_without_being_in_it_is_answered_in_time():
    app = wirecall.Server()

    @app(batch=8, wait_ms=1, batch_bytes=1000)
    def size(texts: list[str]) -> list[int]:
        return [len(text) for text in texts]

    with app.serving() as uri, wirecall.connect(uri) as c:
        assert together(c, "size", "a" * 600, "b" * 700) == [600, 700]


def test_what_one_group_awaits_in_vain_is_its_own_error():
    app = wirecall.Server()

    @app(batch=3, wait_ms=60_000)
    async def wait(numbers: list[int], kind: Shared[str]) -> list[int]:
        if kind == "cancelled":
            future = asyncio.get_running_loop().create_future()
            future.cancel()
            await future
        return numbers

    with app.serving() as uri, wirecall.connect(uri) as c:
        one, two, three = together(c, "wait", (1, "a"), (2, "cancelled"), (3, "a"))
        assert (one, two.code, three) == (1, -32603, 3)


def test_a_client_may_go_while_its_batch_runs():
    ended: list[str] = []

    async def main(uri: str) -> None:
        begun = asyncio.Event()
        go_on = asyncio.Event()

        async def stubborn(numbers: list[int]) -> list[int]:
            begun.set()
            while not go_on.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await go_on.wait()
            ended.append("stubborn")
            return numbers

        async with wirecall.aconnect(uri) as caller:
            async with wirecall.aconnect(uri) as worker:
                await worker.provide("stubborn", stubborn, batch=1)
                call = caller.stubborn(1)
                await begun.wait()
            with pytest.raises(wirecall.ConnectionLost):
                await call
            go_on.set()
            while not ended:
                await asyncio.sleep(0)
            await asyncio.sleep(0)

    with wirecall.Server(broker=True).serving() as uri:
        asyncio.run(main(uri))
    assert ended == ["stubborn"]


def test_a_failure_is_logged_once(caplog):
    app = wirecall.Server()

    @app(batch=3, wait_ms=60_000)
    def fail(texts: list[str], language: Shared[str]) -> list[str]:
        raise ValueError(f"secret {language}")

    with app.serving() as uri, wirecall.connect(uri) as c:
        outcomes = together(c, "fail", ("a", "de"), ("b", "xx"), ("c", "de"))
        assert [outcome.code for outcome in outcomes] == [-32603] * 3
    told = [record.getMessage() for record in caplog.records if "secret" in record.getMessage()]
    assert len(told) == 2


def test_shared_numbers_that_json_cannot_express_go_together():
    app = wirecall.Server()
    runs: list[list[int]] = []

    @app(batch=3, wait_ms=60_000)
    def scale(numbers: list[int], by: Shared[float]) -> list[int]:
        runs.append(numbers)
        return numbers

    nan = float("nan")
    with app.serving() as uri, wirecall.connect(uri, encoding="msgpack") as c:
        assert together(c, "scale", (1, nan), (2, 1.0), (3, nan)) == [1, 2, 3]
    assert runs == [[1, 3], [2]]


def test_any_iterable_of_results_will_do_and_nothing_that_merely_can_be_iterated():
    app = wirecall.Server()
    returned: dict[str, Any] = {
        "tuple": (1, 2), "dict": {"a": 1, "b": 2}, "str": "ab", "set": {1, 2}, "number": 7, "endless": iter(int, 1),
    }  # fmt: skip

    def returns(kinds: list[str]) -> list[int]:
        return returned[kinds[0]]  # type: ignore[no-any-return]

    def generates(numbers: list[int]):  # type: ignore[no-untyped-def]
        yield from numbers

    class Callable:
        async def __call__(self, numbers: list[int]) -> list[int]:
            return numbers

    app.add(returns, batch=2, wait_ms=60_000)
    app.add(generates, batch=2, wait_ms=60_000)
    app.add(Callable(), name="asynchronous", batch=2, wait_ms=60_000)
    with app.serving() as uri, wirecall.connect(uri) as c:
        assert together(c, "generates", 1, 2) == [1, 2]
        assert together(c, "asynchronous", 1, 2) == [1, 2]
        assert together(c, "returns", "tuple", "tuple") == [1, 2]
        for kind in ["dict", "str", "set", "number", "endless"]:
            assert [outcome.code for outcome in together(c, "returns", kind, kind)] == [-32603, -32603], kind


def test_results_outlive_the_list_in_which_they_were_returned():
    app = wirecall.Server()
    results: list[Any] = []

    @dataclasses.dataclass
    class Clears:
        value: int

        def __getattribute__(self, name: str) -> Any:
            if name == "value":
                results.clear()  # while this one is written
            return object.__getattribute__(self, name)

    @app(batch=2, wait_ms=60_000)
    def clear(numbers: list[int]) -> list[Any]:
        results[:] = [Clears(number) for number in numbers]
        return results

    with app.serving() as uri, wirecall.connect(uri) as c:
        assert together(c, "clear", 1, 2) == [{"value": 1}, {"value": 2}]


def test_async_functions_run_on_asyncio():
    app = wirecall.Server()
    sizes: list[int] = []

    @app(batch=3, wait_ms=60_000)
    async def later(numbers: list[int]) -> list[int]:
        await asyncio.sleep(0)
        sizes.append(len(numbers))
        if 9 in numbers:
            raise wirecall.Error(4, "nine")
        return numbers

    with app.serving() as uri, wirecall.connect(uri) as c:
        for numbers in [[1, 2, 3], [4, 5, 6]]:
            assert together(c, "later", *numbers) == numbers
        assert [outcome.code for outcome in together(c, "later", 7, 8, 9)] == [4, 4, 4]
    assert sizes == [3, 3, 3]


def test_a_batch_of_wrong_calls_alone_is_none():
    app = wirecall.Server()
    batches: list[list[int]] = []

    @app(batch=1)
    async def later(numbers: list[int]) -> list[int]:
        batches.append(numbers)
        return numbers

    with app.serving() as uri, wirecall.connect(uri) as c:
        for _ in range(20):
            with pytest.raises(wirecall.InvalidParams):
                c.later("x")
        assert c.later(1) == 1
    assert batches == [[1]]


def test_clients_provide_batched_functions_at_a_broker():
    batches: list[list[int]] = []

    def double(numbers: list[int]) -> list[int]:
        batches.append(numbers)
        return [2 * number for number in numbers]

    with wirecall.Server(broker=True).serving() as uri, wirecall.connect(uri) as worker, wirecall.connect(uri) as c:
        worker.provide("double", double, batch=3, wait_ms=60_000)
        assert together(c, "double", 1, 2, 3) == [2, 4, 6]
        with pytest.raises(TypeError, match="aconnect"):
            worker.provide("later", _later, batch=3)
    assert batches == [[1, 2, 3]]


async def _later(numbers: list[int]) -> list[int]:
    return numbers


def test_clients_in_asyncio_provide_them_in_their_event_loop():
    threads: set[int] = set()

    async def later(numbers: list[int]) -> list[int]:
        threads.add(threading.get_ident())
        return numbers

    def at_once(numbers: list[int]) -> list[int]:
        threads.add(threading.get_ident())
        return numbers

    async def main(uri: str) -> None:
        async with wirecall.aconnect(uri) as worker:
            await worker.provide("later", later, batch=2, wait_ms=60_000)
            await worker.provide("at_once", at_once, batch=2, wait_ms=60_000, concurrency=8)
            async with worker.batch() as b:
                made = [b.later(1), b.later(2), b.at_once(3), b.at_once(4)]
            assert [await one for one in made] == [1, 2, 3, 4]
        assert threads == {threading.get_ident()}

    with wirecall.Server(broker=True).serving() as uri:
        asyncio.run(main(uri))


def test_contexts_come_as_a_list():
    app = wirecall.Server()

    @app(batch=2, wait_ms=60_000)
    def who(contexts: list[wirecall.Context], numbers: list[int]) -> list[bool]:
        return [
            context.remaining is None or context.remaining > number
            for context, number in zip(contexts, numbers, strict=True)
        ]

    with app.serving() as uri, wirecall.connect(uri) as c:
        assert together(c, "who", 0, 1_000_000) == [True, False]


def test_the_document_shows_one_call():
    app = wirecall.Server()

    @app(batch=2)
    def embed(texts: list[str], model: Shared[str]) -> list[float]:
        """Embeds a text"""
        return [0.0 for _ in texts]

    with app.serving() as uri, wirecall.connect(uri) as c:
        (method,) = [one for one in c.rpc.discover()["methods"] if one["name"] == "embed"]
    assert [(one["name"], one["schema"]["type"]) for one in method["params"]] == [
        ("texts", "string"),
        ("model", "string"),
    ]
    assert method["result"]["schema"]["type"] == "number"
    assert method["summary"] == "Embeds a text"


def test_what_says_nothing_of_a_batch_is_refused():
    app = wirecall.Server()
    for function, words in [
        (lambda text: text, "hint it list"),
        (_one_text, "hint it list"),
        (_one_result, "returns list"),
        (_default, "default"),
        (_gathers, "takes no"),
    ]:
        with pytest.raises(TypeError, match=words):
            app.add(function, name="x", batch=2)
    for options in [{"batch": 0}, {"batch": 65_537}, {"wait_ms": -1}, {"max_concurrent_batches": 0}]:
        with pytest.raises(ValueError, match="give a number"):
            app.add(_texts, name="x", **{"batch": 2, **options})
    with pytest.raises(ValueError, match="a whole batch has to wait"):
        app.add(_texts, name="x", batch=8, batch_queue=7)
    with pytest.raises(ValueError, match="a whole batch has to wait"):
        app.add(_texts, name="x", batch=8, batch_bytes=1000, batch_queue_bytes=999)
    with pytest.raises(TypeError, match="give a function"):
        app.add(_texts, name="x", batch=8, batch_priority=3)  # type: ignore[arg-type]
    for huge in [{"batch_bytes": 2**62}, {"batch_queue": 2**70}]:
        with pytest.raises(ValueError, match="give a number"):
            app.add(_texts, name="x", batch=2, **huge)
    for alone in [{"wait_ms": 5}, {"pad": True}, {"max_concurrent_batches": 3}]:
        with pytest.raises(TypeError, match="give batch as well"):
            app.add(_texts, name="x", **alone)
    with pytest.raises(TypeError, match="batchsize is no option"):
        app.add(_texts, name="x", batchsize=3)  # type: ignore[call-arg]
    for buckets in [[0], ["a"], [3.5], [True]]:
        with pytest.raises(TypeError, match="give lengths"):
            app.add(_texts, name="x", batch=2, pad=True, buckets=buckets)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="give pad=True"):
        app.add(_texts, name="x", batch=2, buckets=[4])
    with pytest.raises(TypeError, match="neither cached"):
        app.add(_texts, name="x", batch=2, cache=10)
    with pytest.raises(TypeError, match="pad is for arrays"):
        app.add(_texts, name="x", batch=2, pad=True)


def test_hints_may_have_notes_and_be_of_any_iterable():
    app = wirecall.Server()

    @app(batch=2)
    def one(
        texts: Annotated[list[str], "what"], language: Annotated[Shared[str], "of what"] = "de"
    ) -> Annotated[list[str], "those"]:
        return [f"{text} {language}" for text in texts]

    @app(batch=2)
    def two(numbers: typing.List) -> Iterator[int]:  # type: ignore[type-arg]  # noqa: UP006
        yield from numbers

    @app(batch=2)
    def three(numbers: list) -> tuple[int, ...]:  # type: ignore[type-arg]
        return tuple(numbers)

    with app.serving() as uri, wirecall.connect(uri) as c:
        assert (c.one("a"), c.one("a", "en"), c.two(3), c.three(4)) == ("a de", "a en", 3, 4)


def _one_text(text: str) -> list[str]:
    return [text]


def _one_result(texts: list[str]) -> str:
    return texts[0]


def _default(texts: list[str] = []) -> list[str]:  # noqa: B006
    return texts


def _gathers(*texts: list[str]) -> list[str]:
    return texts[0]


def _texts(texts: list[str]) -> list[str]:
    return texts


class TestArrays:
    numpy = pytest.importorskip("numpy")

    def arrays(self) -> Any:
        import numpy as np
        from numpy.typing import NDArray

        return np, NDArray

    def test_they_are_stacked_by_shape(self):
        np, NDArray = self.arrays()
        shapes: list[tuple[int, ...]] = []
        app = wirecall.Server()

        def total(rows):
            shapes.append(rows.shape)
            return rows.sum(axis=1)

        total.__annotations__ = {"rows": NDArray[np.float64], "return": NDArray[np.float64]}
        app.add(total, batch=3, wait_ms=60_000)
        with app.serving() as uri, wirecall.connect(uri, encoding="msgpack") as c:
            rows = [np.array(row) for row in [[1.0, 2.0], [1.0, 2.0, 3.0], [3.0, 4.0]]]
            assert [float(outcome) for outcome in together(c, "total", *rows)] == [3, 6, 7]
        assert shapes == [(2, 2), (1, 3)]

    def test_they_are_padded_to_a_bucket_and_their_lengths_are_given(self):
        np, NDArray = self.arrays()
        seen: list[tuple[tuple[int, ...], list[int]]] = []
        app = wirecall.Server()

        def score(tokens, lengths):
            seen.append((tokens.shape, lengths.tolist()))
            return [float(row[:length].sum()) for row, length in zip(tokens, lengths, strict=True)]

        score.__annotations__ = {
            "tokens": NDArray[np.int64], "lengths": NDArray[np.int64], "return": list[float],
        }  # fmt: skip
        app.add(score, batch=4, wait_ms=60_000, pad=True, buckets=[4, 8])
        with app.serving() as uri, wirecall.connect(uri, encoding="msgpack") as c:
            two, five, four, nine = together(c, "score", *(np.ones(length, np.int64) for length in [2, 5, 4, 9]))
            assert (two, five, four) == (2, 5, 4)
            assert isinstance(nine, wirecall.InvalidParams)
        assert seen == [((2, 4), [2, 4]), ((1, 8), [5])]

    def test_each_padded_array_has_lengths_of_its_own(self):
        np, NDArray = self.arrays()
        seen: list[Any] = []
        app = wirecall.Server()

        def pair(a, a_lengths, b, b_lengths):
            seen.append((a.shape, a_lengths.tolist(), b.shape, b_lengths.tolist()))

        ints = NDArray[np.int64]
        pair.__annotations__ = {"a": ints, "a_lengths": ints, "b": ints, "b_lengths": ints, "return": None}
        app.add(pair, batch=2, wait_ms=60_000, pad=True)

        def unclear(a, b, lengths): ...

        unclear.__annotations__ = {"a": ints, "b": ints, "lengths": ints, "return": None}
        with pytest.raises(TypeError, match="which array"):
            app.add(unclear, batch=2, pad=True)

        def ones(length: int) -> Any:
            return np.ones(length, np.int64)

        with app.serving() as uri, wirecall.connect(uri, encoding="msgpack") as c:
            assert together(c, "pair", (ones(2), ones(5)), (ones(3), ones(1))) == [None, None]
        assert seen == [((2, 3), [2, 3], (2, 5), [5, 1])]

    def test_one_number_is_no_array_that_can_be_padded(self):
        np, NDArray = self.arrays()
        app = wirecall.Server()

        def total(rows):
            return [float(row.sum()) for row in rows]

        total.__annotations__ = {"rows": NDArray[np.float64], "return": list[float]}
        app.add(total, batch=2, wait_ms=60_000, pad=True)
        with app.serving() as uri, wirecall.connect(uri, encoding="msgpack") as c:
            one, number = together(c, "total", np.ones(3), np.array(1.0))
            assert one == 3
            assert isinstance(number, wirecall.InvalidParams)

    def test_little_that_is_much_when_padded_is_refused(self):
        np, NDArray = self.arrays()
        app = wirecall.Server()

        def total(rows):
            return [float(row.sum()) for row in rows]

        total.__annotations__ = {"rows": NDArray[Any], "return": list[float]}
        app.add(total, batch=4, wait_ms=1, pad=True, buckets=[512])
        with app.serving() as uri, wirecall.connect(uri, encoding="msgpack") as c:
            one, wide, long = together(c, "total", np.ones(3), np.zeros((0, 1_000_000)), np.zeros(1, dtype="S1000000"))
            assert one == 3
            assert isinstance(wide, wirecall.InvalidParams)
            assert isinstance(long, wirecall.InvalidParams)

    def test_padding_keeps_within_the_bytes_of_a_batch(self):
        np, NDArray = self.arrays()
        shapes: list[tuple[int, ...]] = []
        app = wirecall.Server()

        def total(rows):
            shapes.append(rows.shape)
            return [float(row.sum()) for row in rows]

        total.__annotations__ = {"rows": NDArray[np.float64], "return": list[float]}
        app.add(total, batch=4, wait_ms=60_000, pad=True, batch_bytes=8 * 1000)
        with app.serving() as uri, wirecall.connect(uri, encoding="msgpack") as c:
            sums = together(c, "total", *(np.ones(length) for length in [1, 2, 700, 3]))
            assert sums == [1, 2, 700, 3]
        assert shapes == [(2, 2), (1, 700), (1, 3)]


def test_rows_fill_a_batch():
    app = wirecall.Server()
    seen: list[list[list[int]]] = []

    @app(batch=8, wait_ms=60_000, batch_rows=4)
    def lengths(lists: list[list[int]]) -> list[int]:
        seen.append(lists)
        return [len(one) for one in lists]

    with app.serving() as uri, wirecall.connect(uri) as c:
        assert together(c, "lengths", [1, 2], [3, 4], [5] * 9, [6, 7, 8], [9], [1, 2, 3, 4]) == [2, 2, 9, 3, 1, 4]
        with pytest.raises(wirecall.InvalidParams):
            c.lengths("no list")
    assert seen == [[[1, 2], [3, 4]], [[5] * 9], [[6, 7, 8], [9]], [[1, 2, 3, 4]]]


def test_a_call_of_a_higher_priority_leaves_first():
    app = wirecall.Server()
    runs, all_came = threading.Event(), threading.Event()
    order: list[str] = []

    @app(batch=1, batch_priority=lambda ctx: -round(ctx.remaining or 0))
    def note(names: list[str]) -> None:
        runs.set()
        all_came.wait()
        order.extend(names)

    @app
    def come() -> None:
        all_came.set()

    with app.serving() as uri, wirecall.connect(uri) as c:
        c.notify("note", "runs")
        runs.wait()
        with c.batch() as calls:
            for name, timeout in [("last", 90), ("second", 20), ("first", 10)]:
                calls.note(name, _timeout=timeout)
            calls.come()
    assert order == ["runs", "first", "second", "last"]


def test_a_priority_that_cannot_be_told_fails_its_own_call():
    app = wirecall.Server()

    @app(batch=2, batch_priority=lambda ctx: 1 // round(ctx.remaining - 10))
    def echo(numbers: list[int]) -> list[int]:
        return numbers

    with app.serving() as uri, wirecall.connect(uri) as c:
        with pytest.raises(wirecall.Error) as failed:
            c.echo(1, _timeout=10)
        assert failed.value.code == -32603
        assert c.echo(2, _timeout=100) == 2


def test_bytes_that_wait_are_bounded():
    app = wirecall.Server()
    all_came = threading.Event()

    @app(batch=2, batch_bytes=1000, batch_queue_bytes=1000)
    def size(texts: list[str]) -> list[int]:
        all_came.wait()
        return [len(text) for text in texts]

    @app
    def come() -> None:
        all_came.set()

    with app.serving() as uri, wirecall.connect(uri) as c:
        with c.batch() as calls:
            made = [calls.size("a" * 900) for _ in range(3)]
            calls.come()
        with pytest.raises(wirecall.LimitExceeded) as refused:
            for one in made:
                one.result()
        assert refused.value.data["limit"] == "queue"


def test_a_quick_function_runs_on_the_thread_of_the_loop():
    app = wirecall.Server()
    threads: list[int] = []

    @app
    def loop() -> int:
        return threading.get_ident()

    @app(batch=8)
    def echo(numbers: list[int]) -> list[int]:
        threads.append(threading.get_ident())
        if numbers[0] < 0:
            raise ValueError("no")
        return numbers

    with app.serving() as uri, wirecall.connect(uri) as c:
        while not threads or threads[-1] != c.loop():
            assert c.echo(1) == 1
        assert together(c, "echo", 1, 2, 3) == [1, 2, 3]
        mixed = together(c, "echo", 5, "x", 6)
        assert mixed[0] == 5
        assert isinstance(mixed[1], wirecall.InvalidParams)
        assert mixed[2] == 6
        assert {type(one) for one in together(c, "echo", -1, 2)} == {wirecall.InternalError}
