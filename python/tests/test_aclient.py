"""The asyncio client, against servers of this process."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import wirecall


@pytest.fixture
def uri(app) -> Iterator[str]:
    @app
    def sum(a: int, b: int) -> int:
        return a + b

    @app
    async def later(n: int) -> int:
        await asyncio.sleep(0)
        return n

    @app
    async def count(n: int) -> AsyncIterator[int]:
        for i in range(n):
            yield i

    @app
    async def fails() -> None:
        await asyncio.sleep(0)
        raise wirecall.Error(7, "no")

    with app.serving() as uri:
        yield uri


def test_calls_are_futures(uri):
    async def main() -> None:
        async with wirecall.aconnect(uri) as c:
            assert await c.sum(2, 3) == 5
            assert await c["sum"](a=2, b=3) == 5
            assert await c.later(7, _timeout=300) == 7
            reply = c.sum(1, 1)
            assert asyncio.isfuture(reply)
            assert await reply == 2
            assert await asyncio.gather(*(c.sum(i, 1) for i in range(1000))) == list(range(1, 1001))

    asyncio.run(main())


def test_errors(uri):
    async def main() -> None:
        async with wirecall.aconnect(uri) as c:
            with pytest.raises(wirecall.Error, match=r"no \(7\)"):
                await c.fails()
            with pytest.raises(wirecall.InvalidParams):
                await c.later("x")
            with pytest.raises(wirecall.MethodNotFound):
                await c.nothing()
            with pytest.raises(TypeError):
                c.sum(object(), 1)

    asyncio.run(main())


def test_streams(uri):
    async def main() -> None:
        async with wirecall.aconnect(uri) as c:
            assert [v async for v in c.count.stream(500)] == list(range(500))
            assert await c.count(3) == [0, 1, 2]
            seen = []
            async for v in c.count.stream(10**9):
                seen.append(v)
                if v == 2:
                    break
            assert seen == [0, 1, 2]
            assert await c.sum(1, 2) == 3
            with pytest.raises(wirecall.InvalidParams):
                _ = [v async for v in c.count.stream("x")]

    asyncio.run(main())


def test_to_cancel_cancels_over_there(app, caplog):
    states: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        begun, ended = asyncio.Event(), asyncio.Event()

        @app
        async def forever(ctx: wirecall.Context) -> None:
            states.append("begun")
            loop.call_soon_threadsafe(begun.set)
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                states.append(f"cancelled {ctx.cancelled}")
                loop.call_soon_threadsafe(ended.set)

        with app.serving() as uri:
            async with wirecall.aconnect(uri) as c:
                reply = c.forever()
                await begun.wait()
                assert reply.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reply
                await asyncio.wait_for(ended.wait(), 300)

                begun.clear()
                ended.clear()
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(c.forever(), 0.05)
                await asyncio.wait_for(ended.wait(), 300)

                begun.clear()
                ended.clear()
                with pytest.raises(wirecall.Timeout):
                    await c.forever(_timeout=0.05)
                await asyncio.wait_for(ended.wait(), 300)

                begun.clear()
                ended.clear()
                batch = asyncio.create_task(in_a_batch(c))
                await begun.wait()
                batch.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await batch
                await asyncio.wait_for(ended.wait(), 300)

    async def in_a_batch(c: wirecall.AsyncClient) -> None:
        async with c.batch() as b:
            b.forever()

    asyncio.run(main())
    assert states == ["begun", "cancelled True"] * 4
    assert not caplog.records  # it is no error of the handler's


def test_a_batch_that_is_left_by_an_exception_is_not_sent(uri):
    async def main() -> None:
        async with wirecall.aconnect(uri) as c:
            with pytest.raises(ZeroDivisionError):
                async with c.batch() as b:
                    one = b.sum(1, 2)
                    _ = 1 // 0
            with pytest.raises(wirecall.LocalError, match="has not been sent"):
                await one

    asyncio.run(main())


def test_a_reader_that_leaves_ends_a_generator_that_waits(app, caplog):
    async def main() -> None:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        @app
        async def one_and_no_more() -> AsyncIterator[int]:
            try:
                yield 1
                await asyncio.get_running_loop().create_future()
            finally:
                loop.call_soon_threadsafe(ended.set)

        with app.serving() as uri:
            async with wirecall.aconnect(uri) as c:
                for _ in range(200):  # each is another race between the threads
                    ended.clear()
                    async for item in c.one_and_no_more.stream():
                        assert item == 1
                        break
                    await asyncio.wait_for(ended.wait(), 300)

    asyncio.run(main())
    assert caplog.messages == []


def test_a_reader_that_is_cancelled_ends_the_call_although_its_task_is_kept(app):
    begun, closed = threading.Event(), threading.Event()

    @app
    async def endless() -> AsyncIterator[int]:
        begun.set()
        try:
            await asyncio.Event().wait()
            yield 1
        finally:
            closed.set()

    async def main(uri: str) -> asyncio.Task[Any]:
        async with wirecall.aconnect(uri) as c:
            task: asyncio.Task[Any] = asyncio.create_task(anext(c.endless.stream()))
            await asyncio.to_thread(begun.wait)
            task.cancel()
            await asyncio.wait([task])
            await asyncio.to_thread(closed.wait)
            return task

    with app.serving() as uri:
        assert asyncio.run(main(uri)).cancelled()


def test_a_caller_that_goes_cancels_its_calls(app):
    async def main() -> None:
        loop = asyncio.get_running_loop()
        begun, ended = asyncio.Event(), asyncio.Event()

        @app
        async def forever() -> None:
            loop.call_soon_threadsafe(begun.set)
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                loop.call_soon_threadsafe(ended.set)

        with app.serving() as uri:
            async with wirecall.aconnect(uri) as c:
                reply = c.forever()
                await begun.wait()
            with pytest.raises(wirecall.ConnectionLost):
                await reply
            await asyncio.wait_for(ended.wait(), 300)

    asyncio.run(main())


def test_one_loop_each(uri):
    c = wirecall.aconnect(uri)

    async def use() -> None:
        assert await c.sum(1, 2) == 3

    async def use_elsewhere() -> None:
        await use()
        with pytest.raises(wirecall.LocalError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, use())

    asyncio.run(use())
    asyncio.run(use())  # the first one has gone
    asyncio.run(use_elsewhere())
    asyncio.run(c.close())


def test_no_server():
    async def main() -> None:
        with pytest.raises(wirecall.ConnectionLost):
            async with wirecall.aconnect("tcp://127.0.0.1:1"):
                pass

    asyncio.run(main())


def test_providing_and_events(broker):
    async def main() -> None:
        async with wirecall.aconnect(broker) as provider, wirecall.aconnect(broker) as caller:

            async def slow_upper(text: str, ctx: wirecall.Context) -> str:
                await asyncio.sleep(0)
                return text.upper() + ctx.method

            await provider.provide("py.upper", str.upper)
            await provider.provide("py.slow", slow_upper, concurrency=2)
            assert await caller.py.upper("abc") == "ABC"
            assert await caller.py.slow("abc") == "ABCpy.slow"
            with pytest.raises(wirecall.InvalidParams):
                await caller.py.slow(1)

            events: asyncio.Queue[tuple[str, object]] = asyncio.Queue()
            subscription = await provider.subscribe("news", lambda topic, value: events.put_nowait((topic, value)))

            async def asynchronous(topic: str, value: object) -> None:
                await events.put((topic, value))

            await provider.subscribe("other", asynchronous)
            assert await caller.publish("news", 1) == 1
            assert await events.get() == ("news", 1)
            assert await caller.publish("other", [1, 2]) == 1
            assert await events.get() == ("other", [1, 2])
            subscription.unsubscribe()

    asyncio.run(main())


def test_a_batch_is_one_message(uri):
    async def main() -> None:
        async with wirecall.aconnect(uri) as c:
            async with c.batch() as b:
                five = b.sum(2, 3)
                later = b.later(7)
                wrong = b["fails"]()
                b.notify("sum", 1, 2)
            assert five.done()
            assert (await five, await later) == (5, 7)
            with pytest.raises(wirecall.Error, match="no"):
                await wrong
            async with c.batch():
                pass

    asyncio.run(main())


def test_a_provided_stream(broker):
    async def main() -> None:
        async with wirecall.aconnect(broker) as provider, wirecall.aconnect(broker) as caller:
            ended = asyncio.Event()

            async def count(n: int) -> AsyncIterator[int]:
                try:
                    for i in range(n):
                        yield i
                finally:
                    ended.set()

            await provider.provide("count", count)
            assert [i async for i in caller.count.stream(500)] == list(range(500))
            assert await caller.count(3) == [0, 1, 2]
            ended.clear()
            async for i in caller.count.stream(1_000_000):
                if i == 3:
                    break
            await asyncio.wait_for(ended.wait(), 300)
            with pytest.raises(TypeError, match="plain generator"):
                await provider.provide("plain", lambda: (yield 1))

    asyncio.run(main())


def test_an_event_that_cannot_be_read_costs_no_other(broker, caplog):
    async def main() -> None:
        async with wirecall.aconnect(broker) as c:
            heard: list[Any] = []
            all_heard = asyncio.Event()

            def hear(topic: str, value: Any) -> None:
                heard.append(value)
                if len(heard) == 3:
                    all_heard.set()

            await c.subscribe("news", hear)
            await c.provide("upper", str.upper)
            host, port = broker.removeprefix("tcp://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            event = '{{"jsonrpc":"2.0","method":"news","params":[{}]}}'
            call = '{"jsonrpc":"2.0","method":"upper","params":["x"],"id":1}'
            writer.write("\n".join([*(event.format(n) for n in ("1e400", 1, 2, 3)), call, ""]).encode())
            answer = json.loads(await asyncio.wait_for(reader.readline(), 300))
            assert answer["result"] == "X"
            await asyncio.wait_for(all_heard.wait(), 300)
            assert heard == [1, 2, 3]
            writer.close()

    asyncio.run(main())
    assert "news" in caplog.text


def test_waiting_for_an_item_that_is_given_up_leaves_nothing(app):
    @app
    async def never() -> AsyncIterator[int]:
        await asyncio.sleep(3600)
        yield 1

    async def main(uri: str) -> None:
        async with wirecall.aconnect(uri) as c:
            waited = []
            for _ in range(20):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.001):
                        await anext(c.never.stream())
                gc.collect()
                waited.append(len([one for one in gc.get_objects() if isinstance(one, asyncio.Future)]))
            assert waited[-1] <= waited[0] + 2, waited

    with app.serving() as uri:
        asyncio.run(main(uri))
