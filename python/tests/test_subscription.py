"""@app.subscription: Ethereum-style subscriptions to async generators."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
from test_held_notifications import Raw, result

import wirecall


class Kinds:
    """What the generators have come to."""

    def __init__(self) -> None:
        self.ended = threading.Semaphore(0)
        self.yielded = 0


@pytest.fixture
def kinds() -> Kinds:
    return Kinds()


@pytest.fixture
def uri(app, kinds) -> Iterator[str]:
    @app.subscription("eth_subscribe", unsubscribe="eth_unsubscribe", notification="eth_subscription")
    async def events(kind: str, ctx: wirecall.Context) -> AsyncIterator[int]:
        """What there is to hear of."""
        if kind == "unknown":
            raise wirecall.InvalidParams("no such kind")
        try:
            if kind == "later":
                await asyncio.sleep(0.001)
                raise wirecall.Error(7, "lost it", {"at": 1})
            if kind == "quiet":
                await asyncio.sleep(3600)
            for i in range({"three": 3}.get(kind, 10**9)):
                kinds.yielded += 1
                yield i
                if kind != "flood":
                    await asyncio.sleep(0)
        finally:
            kinds.ended.release()

    with app.serving() as uri:
        yield uri


def event(id: str, value: object) -> dict:
    return {"jsonrpc": "2.0", "method": "eth_subscription", "params": {"subscription": id, "result": value}}


def test_the_answer_comes_before_the_first_event(uri):
    with Raw(uri) as peer:
        ids = set()
        for _ in range(100):
            answer = peer.ask("eth_subscribe", "three")
            id = answer["result"]
            assert id.startswith("0x")
            ids.add(id)
            assert [peer.read() for _ in range(3)] == [event(id, i) for i in range(3)]
        assert len(ids) == 100


def test_unsubscribing_ends_it(uri, kinds):
    with Raw(uri) as peer, Raw(uri) as other:
        id = peer.ask("eth_subscribe", "quiet")["result"]
        assert other.ask("eth_unsubscribe", id) == result(False)
        assert peer.ask("eth_unsubscribe", id) == result(True)
        assert kinds.ended.acquire(timeout=20)
        assert peer.ask("eth_unsubscribe", id) == result(False)


def test_the_end_of_the_connection_ends_all(uri, kinds):
    with Raw(uri) as peer:
        for _ in range(3):
            peer.ask("eth_subscribe", "quiet")
    for _ in range(3):
        assert kinds.ended.acquire(timeout=20)


def test_what_it_raises_first_is_the_answer_and_later_an_event(uri):
    with Raw(uri) as peer:
        assert peer.ask("eth_subscribe", "unknown")["error"]["code"] == -32602
        assert peer.ask("eth_subscribe", 1)["error"]["code"] == -32602
        id = peer.ask("eth_subscribe", "later")["result"]
        assert peer.read()["params"] == {
            "subscription": id, "error": {"code": 7, "message": "lost it", "data": {"at": 1}},
        }  # fmt: skip
        assert peer.ask("eth_unsubscribe", id) == result(False)


def test_it_waits_for_who_reads_little(app, kinds):
    app = wirecall.Server("test", limits={"soft_output": 4096})

    @app.subscription("subscribe", unsubscribe="unsubscribe", notification="event")
    async def flood() -> AsyncIterator[str]:
        while True:
            kinds.yielded += 1
            yield "x" * 100_000
            await asyncio.sleep(0)

    @app
    def yielded() -> int:
        return kinds.yielded

    with app.serving() as uri, Raw(uri) as peer, wirecall.connect(uri) as c:
        peer.send("subscribe")
        before = -1
        while (now := c.yielded()) != before or now == 0:  # until it stands still for a hundred calls
            before = now
            for _ in range(100):
                c.yielded()
        assert now < 1000, "some buffers' worth"
        assert peer.read()["result"].startswith("0x")
        for _ in range(now + 10):
            assert peer.read()["method"] == "event"


def test_by_http_it_needs_a_connection(uri):
    with wirecall.connect(uri.replace("tcp://", "http://")) as c, pytest.raises(wirecall.Error) as caught:
        c.eth_subscribe("quiet")
    assert (caught.value.code, caught.value.data) == (-32600, {"reason": "needs_connection"})


def test_over_messagepack(app):
    @app.subscription("subscribe", unsubscribe="unsubscribe", notification="event")
    async def once() -> AsyncIterator[bytes]:
        yield b"\x00\xff"
        await asyncio.sleep(3600)

    heard: list[object] = []
    came = threading.Event()

    def event(subscription: str, result: bytes) -> None:
        heard.extend((subscription, result))
        came.set()

    with app.serving() as uri, wirecall.connect(uri, encoding="msgpack") as c:
        c.offer("event", event)
        id = c["subscribe"]()
        assert came.wait(20)
        assert heard == [id, b"\x00\xff"]


def test_it_is_described(uri):
    with wirecall.connect(uri) as c:
        methods = {method["name"]: method for method in c["rpc.discover"]()["methods"]}
    assert methods["eth_subscribe"]["summary"] == "What there is to hear of."
    assert [param["name"] for param in methods["eth_subscribe"]["params"]] == ["kind"]
    told = methods["eth_subscribe"]["x-subscription"]
    assert (told["unsubscribe"], told["notification"]) == ("eth_unsubscribe", "eth_subscription")
    assert told["schema"]["type"] == "integer"
    assert methods["eth_subscribe"]["result"]["schema"]["type"] == "string"
    assert "eth_unsubscribe" in methods


def test_only_async_generators(app):
    def plain() -> int:
        return 1

    with pytest.raises(TypeError, match="async def with yield"):
        app.subscription("s", unsubscribe="u", notification="n")(plain)


def test_a_name_that_is_taken_is_a_conflict(app):
    @app
    def s() -> int:
        return 1

    async def events() -> AsyncIterator[int]:
        yield 1

    with pytest.raises(wirecall.Conflict):
        app.subscription("s", unsubscribe="u", notification="n")(events)


# ---- that clients provide at a broker ----

ETHEREUM = {"unsubscribe": "eth_unsubscribe", "notification": "eth_subscription"}


@contextlib.asynccontextmanager
async def provided(generator) -> AsyncIterator[tuple[str, wirecall.AsyncClient]]:
    """Where a broker is at which a client provides it, and that client."""
    with wirecall.Server("broker", broker=True).serving() as uri:
        async with wirecall.aconnect(uri) as worker:
            await worker.provide_subscription("eth_subscribe", generator, **ETHEREUM)
            yield uri, worker


def ask(peer: Raw, method: str, *params: object) -> dict:
    """Its answer, behind any number of events."""
    answer = peer.ask(method, *params)
    while "id" not in answer:
        answer = peer.read()
    return answer


def test_a_client_provides_one_and_the_broker_gives_each_its_events():
    ended = threading.Semaphore(0)

    async def numbers(kind: str) -> AsyncIterator[int]:
        """What there is to hear of."""
        if kind == "unknown":
            raise wirecall.InvalidParams("no such kind")
        try:
            for number in range(10**9):
                yield number
                await asyncio.sleep(0.001)
        finally:
            ended.release()

    def subscribe_and_leave(uri: str) -> None:
        with Raw(uri) as peer, Raw(uri) as other:
            ids = [one.ask("eth_subscribe", "all")["result"] for one in (peer, other)]
            assert ids[0] != ids[1]
            for one, id in zip((peer, other), ids, strict=True):
                assert [one.read() for _ in range(3)] == [event(id, number) for number in range(3)]
            assert ask(peer, "eth_unsubscribe", ids[1]) == result(False), "another's"
            assert ask(peer, "eth_unsubscribe", ids[0]) == result(True)
            assert ended.acquire(timeout=300)
            assert ask(peer, "eth_subscribe", "unknown")["error"]["code"] == -32602
            methods = {method["name"]: method for method in ask(peer, "rpc.discover")["result"]["methods"]}
            assert methods["eth_subscribe"]["summary"] == "What there is to hear of."
            assert methods["eth_subscribe"]["x-subscription"] == ETHEREUM
        assert ended.acquire(timeout=300), "its caller has gone"

    async def main() -> None:
        async with provided(numbers) as (uri, _):
            await asyncio.to_thread(subscribe_and_leave, uri)

    asyncio.run(main())


def test_a_client_provides_it_no_more_and_anew():
    async def one() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(3600)

    async def main() -> None:
        async with provided(one) as (uri, worker):
            with Raw(uri) as peer:

                def subscribed() -> str:
                    id = ask(peer, "eth_subscribe")["result"]
                    assert peer.read() == event(id, 1)
                    return id

                id = await asyncio.to_thread(subscribed)
                assert worker.unprovide("eth_subscribe")
                told = await asyncio.to_thread(peer.read)
                assert told["params"]["subscription"] == id
                assert told["params"]["error"]["code"] == -32001
                await worker.provide_subscription("eth_subscribe", one, **ETHEREUM)
                assert await asyncio.to_thread(subscribed) != id

    asyncio.run(main())


def test_only_asyncio_clients_provide_one():
    async def one() -> AsyncIterator[int]:
        yield 1

    with (
        wirecall.Server("broker", broker=True).serving() as uri,
        wirecall.connect(uri) as c,
        pytest.raises(TypeError, match="aconnect"),
    ):
        c.provide_subscription("s", one, unsubscribe="u", notification="n")
