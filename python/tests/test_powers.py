"""What a client in C++ can do at a broker and elsewhere, by both faces: taps, news, several endpoints,
calls within calls, names, sessions."""

from __future__ import annotations

import asyncio
import gc
import queue
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

import wirecall

NOWHERE = "tcp://127.0.0.1:1"


def test_a_tap_shows_what_passes(broker):
    shown: queue.Queue[dict[str, Any]] = queue.Queue()
    with (
        wirecall.connect(broker, client_id="admin") as admin,
        wirecall.connect(broker, client_id="worker") as worker,
        wirecall.connect(broker, client_id="caller") as caller,
    ):
        worker.provide("py.upper", str.upper)
        tap = admin.tap("py.>", shown.put)
        assert caller.py.upper("abc") == "ABC"
        call, reply = shown.get(timeout=300), shown.get(timeout=300)
        assert (call["kind"], call["client"], call["provider"], call["params"]) == ("call", "caller", "worker", ["abc"])
        assert (reply["kind"], reply["id"], reply["result"]) == ("reply", call["id"], "ABC")
        with pytest.raises(ValueError, match="another pattern"):
            admin.tap("news", shown.put)
        tap.unsubscribe()
        admin.tap("news", shown.put)
        caller.publish("news", 7)
        event = shown.get(timeout=300)
        assert (event["kind"], event["method"], event["params"]) == ("event", "news", [7])


def test_a_tap_from_asyncio(broker):
    async def main() -> None:
        async with wirecall.aconnect(broker) as admin, wirecall.aconnect(broker) as caller:
            shown: asyncio.Queue[Any] = asyncio.Queue()
            await admin.tap(">", shown.put)  # a coroutine function
            await caller.publish("news", {"a": 1})
            assert (await asyncio.wait_for(shown.get(), 300))["params"] == {"a": 1}

    asyncio.run(main())


def test_who_is_no_admin_may_not_look_on(tmp_path):
    principals = tmp_path / "principals.json"
    principals.write_text('[{"name": "user", "tokens": ["t-user"], "call": [">"]}]')
    app = wirecall.Server("broker", broker=True, principals_file=str(principals))
    with app.serving() as uri, wirecall.connect(uri, token="t-user") as c, pytest.raises(wirecall.Forbidden):
        c.tap(">", print)


def test_a_call_waits_for_who_is_about_to_provide(broker):
    with wirecall.connect(broker, wait=30.0) as c, wirecall.connect(broker) as worker:
        answers: list[str] = []
        calling = threading.Thread(target=lambda: answers.append(c["py.late"]("a")))
        calling.start()
        while not worker["rpc.stats"]()["counters"]["errors"]["method_not_found"]:
            pass
        worker.provide("py.late", str.upper)
        calling.join(timeout=60)
        assert answers == ["A"]
    with wirecall.connect(broker, wait=0.05) as c, pytest.raises(wirecall.MethodNotFound):
        c["py.never"]()
    with pytest.raises(TypeError, match="number of seconds"):
        wirecall.connect(broker, wait="long")


def test_a_refusal_is_told(broker):
    refused: queue.Queue[tuple[str, Exception]] = queue.Queue()
    with wirecall.connect(broker) as first, wirecall.connect(broker) as second:
        first.provide("taken", str.upper, policy="exclusive")

        @second.on_refused
        def on_refused(name: str, error: Exception) -> None:
            refused.put((name, error))

        with pytest.raises(wirecall.Conflict):
            second.provide("taken", str.lower, policy="exclusive")
        name, error = refused.get(timeout=300)
        assert name == "taken"
        assert isinstance(error, wirecall.Conflict)


def test_connections_are_told_of(app):
    news: queue.Queue[wirecall.ConnectionEvent] = queue.Queue()
    with app.serving() as uri:
        c = wirecall.Client(uri)
        c.on_connection(news.put)
        with pytest.raises(wirecall.MethodNotFound):
            c.nothing()
        made = news.get(timeout=300)
        assert (made.connected, made.endpoint, made.cause) == (True, uri, "")
    with pytest.raises(wirecall.Error):
        c.nothing(_timeout=0.1)  # somebody has to look at the connection
    ended = news.get(timeout=300)
    assert not ended.connected
    assert ended.cause
    c.close()


def test_connections_are_told_of_in_asyncio(app):
    async def main() -> None:
        came = asyncio.Event()
        with app.serving() as uri:
            c = wirecall.aconnect(uri)

            @c.on_connection
            async def on_connection(news: wirecall.ConnectionEvent) -> None:
                assert news.connected
                came.set()

            async with c:
                await asyncio.wait_for(came.wait(), 300)
                c.on_connection(lambda news: None)

    asyncio.run(main())


def test_dropped_events_are_told_of():
    lagged: queue.Queue[tuple[str, int]] = queue.Queue()
    begun, go_on = threading.Event(), threading.Event()

    def slow(topic: str, value: object) -> None:
        begun.set()
        go_on.wait(300)

    app = wirecall.Server("broker", broker=True, limits={"soft_output": 65536})
    with app.serving() as uri, wirecall.connect(uri) as reader, wirecall.connect(uri) as writer:
        reader.on_lagged(lambda topic, count: lagged.put((topic, count)))
        reader.subscribe("news", slow)
        writer.publish("news", "first")
        assert begun.wait(300)
        text = "x" * 100_000
        for _ in range(400):  # more than the sockets between them hold
            writer.publish("news", text)
        go_on.set()
        topic, count = lagged.get(timeout=300)
        assert topic == "news"
        assert count > 0


def test_the_next_endpoint_is_tried(app):
    app.add(abs, name="abs")

    async def asynchronous(uri: str) -> None:
        async with wirecall.aconnect([NOWHERE, uri]) as c:
            assert await c.abs(-1) == 1

    with app.serving() as uri:
        with wirecall.connect([NOWHERE, uri]) as c:
            assert c.abs(-1) == 1
        asyncio.run(asynchronous(uri))
    with pytest.raises(ValueError, match="at least one URI"):
        wirecall.connect([])


def test_a_call_within_a_call_ends_with_it(app):
    states: queue.Queue[str] = queue.Queue()
    inner = wirecall.Server("inner")

    @inner
    async def forever(ctx: wirecall.Context) -> None:
        states.put(f"{ctx.hops} {ctx.remaining is not None and ctx.remaining <= 3600}")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            states.put(f"cancelled {ctx.cancelled}")

    with inner.serving() as inner_uri:
        client = wirecall.connect(inner_uri, timeout=7200)

        @app(blocking=True)
        def blocking(ctx: wirecall.Context) -> None:
            client.forever(_within=ctx)

        @app(blocking=True)
        def batched(ctx: wirecall.Context) -> None:
            with client.batch() as b:
                b.forever(_within=ctx)

        @app
        async def asynchronous(ctx: wirecall.Context) -> None:
            async with wirecall.aconnect(inner_uri, timeout=7200) as c:
                await c.forever(_within=ctx)

        @app
        async def streamed(ctx: wirecall.Context) -> AsyncIterator[Any]:
            async with wirecall.aconnect(inner_uri, timeout=7200) as c:
                async for value in c.forever.stream(_within=ctx):
                    yield value

        async def main(uri: str) -> None:
            async with wirecall.aconnect(uri) as c:
                for name in ("blocking", "batched", "asynchronous", "streamed"):
                    reply = c[name](_timeout=3600)
                    assert await asyncio.to_thread(states.get, timeout=300) == "1 True", name
                    reply.cancel()
                    assert await asyncio.to_thread(states.get, timeout=300) == "cancelled True", name

        with app.serving() as uri:
            asyncio.run(main(uri))
        client.close()


def test_one_client_alone_is_called_by_its_name(broker):
    with (
        wirecall.connect(broker, client_id="one") as one,
        wirecall.connect(broker, client_id="other") as other,
        wirecall.connect(broker) as caller,
    ):
        one.provide("who", lambda: "one")
        other.provide("who", lambda: "other")
        assert {caller.who(_to="one") for _ in range(10)} == {"one"}
        assert caller.who(_to="other") == "other"
        with caller.batch() as b:
            outcome = b.who(_to="other")
        assert outcome.result() == "other"
        with pytest.raises(wirecall.ConnectionLost) as caught:
            caller.who(_to="third")
        assert caught.value.data["delivered"] == "no"
        assert sorted(entry["result"] for entry in caller.call_all("who", _timeout=300)) == ["one", "other"]


def test_one_client_alone_and_all_from_asyncio(broker):
    async def main() -> None:
        async with (
            wirecall.aconnect(broker, client_id="one") as one,
            wirecall.aconnect(broker, client_id="other") as other,
            wirecall.aconnect(broker) as caller,
        ):
            await one.provide("who", lambda: "one")
            await other.provide("who", lambda: "other")
            assert await caller.who(_to="other") == "other"
            async with caller.batch() as b:
                outcome = b.who(_to="one")
            assert await outcome == "one"
            assert sorted(entry["result"] for entry in await caller.call_all("who")) == ["one", "other"]

    asyncio.run(main())


def test_handlers_go_with_their_client(broker):
    class Handler:
        def __call__(self, *_: object) -> None: ...

    kept = [Handler() for _ in range(4)]
    seen = [weakref.ref(handler) for handler in kept]
    with wirecall.connect(broker) as c:
        c.tap(">", kept[0])
        c.on_lagged(kept[1])
        c.on_refused(kept[2])
        c.on_connection(kept[3])
        kept.clear()
        assert all(reference() is not None for reference in seen)
    del c
    gc.collect()
    assert [reference() for reference in seen] == [None] * 4


def test_more_connections_serve_more_calls_at_a_time_by_http(app):
    arrived = threading.Barrier(3)

    @app(blocking=True)
    def meet() -> bool:
        arrived.wait(300)
        return True

    async def main(uri: str) -> None:
        async with wirecall.aconnect(uri.replace("tcp", "http", 1), connections=3) as c:
            assert await asyncio.gather(c.meet(), c.meet(), c.meet()) == [True] * 3

    with app.serving() as uri:
        asyncio.run(main(uri))


def test_retained_and_grouped_events(broker):
    async def main() -> None:
        async with wirecall.aconnect(broker) as one, wirecall.aconnect(broker) as other:
            got: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

            def into(name: str) -> Callable[[str, Any], Awaitable[None]]:
                return lambda topic, value: got.put((name, value))

            await other.publish("state", 1, retain=True)
            await one.subscribe("state", into("retained"), last=True)
            assert await got.get() == ("retained", 1)
            await one.subscribe("work", into("one"), group="g")
            await other.subscribe("work", into("other"), group="g", echo=True)
            assert await other.publish("work", 2) == 1
            assert (await got.get())[1] == 2
            assert got.empty()

    asyncio.run(main())


def test_a_client_has_its_name_again_when_it_comes_back(broker):
    """The session is resumed: the broker does not take the name for another's."""
    news: queue.Queue[wirecall.ConnectionEvent] = queue.Queue()
    with wirecall.connect(broker) as admin:
        worker = wirecall.connect(broker, client_id="worker")
        worker.provide("py.upper", str.upper)  # connected: the news that follow are of the reconnection
        worker.on_connection(news.put)
        assert admin["rpc.kick"]("worker")
        assert [news.get(timeout=300).connected for _ in range(2)] == [False, True]
        worker.provide("py.lower", str.lower)  # it returns when the broker has accepted all that the client provides
        assert admin.py.upper("a", _to="worker", _timeout=300) == "A"
        worker.close()
