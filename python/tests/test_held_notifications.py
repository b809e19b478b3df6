"""ctx.notify from other tasks and threads than the handler's own, and where nobody can be told."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

import wirecall


class Raw:
    """A connection that keeps the order in which messages come."""

    def __init__(self, uri: str) -> None:
        host, port = uri.removeprefix("tcp://").split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=20)
        self.lines = self.socket.makefile("r", encoding="utf-8")

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.lines.close()
        self.socket.close()

    def send(self, method: str, *params: object, id: int = 1) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params, "id": id}
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def read(self) -> dict:
        return json.loads(self.lines.readline())

    def ask(self, method: str, *params: object, id: int = 1) -> dict:
        self.send(method, *params, id=id)
        return self.read()


kept: set[asyncio.Task] = set()


def background(coroutine) -> None:
    task = asyncio.get_running_loop().create_task(coroutine)
    kept.add(task)
    task.add_done_callback(kept.discard)


async def tell(ctx: wirecall.Context, word: str = "event") -> None:
    ctx.notify("said", word)


@pytest.fixture
def uri(app) -> Iterator[str]:
    @app
    async def subscribe(fails: bool, ctx: wirecall.Context) -> str:
        background(tell(ctx))
        await asyncio.sleep(0.001)
        if fails:
            raise wirecall.Error(7, "no")
        return "0x1"

    @app
    async def own(ctx: wirecall.Context) -> str:
        ctx.notify("said", "before")
        await asyncio.sleep(0)
        await tell(ctx, "awaited")
        return "done"

    @app(blocking=True)
    def blocking(ctx: wirecall.Context) -> str:
        ctx.notify("said", "own")
        thread = threading.Thread(target=lambda: ctx.notify("said", "other"))
        thread.start()
        thread.join()
        return "done"

    @app
    async def from_a_thread(ctx: wirecall.Context) -> str:
        await asyncio.to_thread(ctx.notify, "said", "other")
        return "done"

    @app
    def generates(ctx: wirecall.Context) -> Iterator[int]:
        ctx.notify("said", "own")
        yield 1

    @app
    async def generates_async(ctx: wirecall.Context) -> AsyncIterator[int]:
        ctx.notify("said", "own")
        background(tell(ctx, "other"))
        await asyncio.sleep(0.001)
        yield 1

    @app
    async def can(ctx: wirecall.Context) -> bool:
        return ctx.can_notify

    @app
    def can_plain(ctx: wirecall.Context) -> bool:
        return ctx.can_notify

    @app
    async def says(ctx: wirecall.Context) -> None:
        ctx.notify("said", "x")

    @app
    def says_plain(ctx: wirecall.Context) -> str:
        try:
            ctx.notify("said", "x")
        except wirecall.ConnectionLost as failure:
            return str(failure)
        return ""

    @app
    def says_plain_uncaught(ctx: wirecall.Context) -> None:
        ctx.notify("said", "x")

    with app.serving() as uri:
        yield uri


def said(word: str) -> dict:
    return {"jsonrpc": "2.0", "method": "said", "params": [word], "hops": 1}


def result(value: object, id: int = 1) -> dict:
    return {"jsonrpc": "2.0", "result": value, "id": id}


def test_those_of_another_task_follow_the_answer(uri):
    with Raw(uri) as peer:
        for i in range(200):
            assert peer.ask("subscribe", False, id=i) == result("0x1", i)
            assert peer.read() == said("event")


def test_and_go_with_an_error(uri):
    with Raw(uri) as peer:
        assert peer.ask("subscribe", True)["error"]["code"] == 7
        assert peer.ask("rpc.ping") == result("pong")


def test_the_handlers_own_leave_at_once(uri):
    with Raw(uri) as peer:
        assert [peer.ask("own"), peer.read(), peer.read()] == [said("before"), said("awaited"), result("done")]
        assert [peer.ask("generates"), peer.read()] == [said("own"), result([1])]


def test_those_of_another_thread_follow_the_answer(uri):
    with Raw(uri) as peer:
        assert [peer.ask("blocking"), peer.read(), peer.read()] == [said("own"), result("done"), said("other")]
        assert [peer.ask("from_a_thread"), peer.read()] == [result("done"), said("other")]


def test_those_of_a_generators_task_follow_the_answer(uri):
    with Raw(uri) as peer:
        assert [peer.ask("generates_async"), peer.read(), peer.read()] == [said("own"), result([1]), said("other")]


def test_a_batch_is_answered_as_a_whole_before_them(uri):
    with Raw(uri) as peer:
        batch = [{"jsonrpc": "2.0", "method": "subscribe", "params": [i == 1], "id": i} for i in range(3)]
        peer.socket.sendall(json.dumps(batch).encode() + b"\n")
        assert [one["id"] for one in peer.read()] == [0, 1, 2]
        assert [peer.read(), peer.read()] == [said("event")] * 2
        assert peer.ask("rpc.ping") == result("pong")


def test_where_nobody_can_be_told_it_raises(uri):
    with wirecall.connect(uri) as c:
        assert c.can() is True
        assert c.can_plain() is False
        assert "the caller cannot be told by a plain handler: make it async def" in c.says_plain()
        with pytest.raises(wirecall.ConnectionLost, match="plain handler") as caught:
            c.says_plain_uncaught()
        assert caught.value.data["delivered"] == "maybe", "the handler has begun: calling again may do it twice"
    with wirecall.connect(uri.replace("tcp://", "http://")) as c:
        assert c.can() is False
        with pytest.raises(wirecall.ConnectionLost, match="cannot be told") as caught:
            c.says()
        assert caught.value.data["delivered"] == "maybe"


def test_it_raises_once_the_call_has_failed_or_the_caller_has_gone(app):
    contexts: list[wirecall.Context] = []

    @app
    async def fails(ctx: wirecall.Context) -> None:
        contexts.append(ctx)
        raise wirecall.Error(7, "no")

    @app
    async def works(ctx: wirecall.Context) -> None:
        contexts.append(ctx)

    with app.serving() as uri:
        with Raw(uri) as peer:
            assert peer.ask("fails")["error"]["code"] == 7
            assert contexts[0].can_notify is False
            with pytest.raises(wirecall.ConnectionLost, match="answered with an error"):
                contexts[0].notify("said")
            assert peer.ask("works") == result(None)
            assert contexts[1].can_notify is True
            contexts[1].notify("said", "late")
            assert peer.read() == said("late")
        with wirecall.connect(uri) as c:
            while contexts[1].can_notify:
                c["rpc.ping"]()
        with pytest.raises(wirecall.ConnectionLost, match="has gone"):
            contexts[1].notify("said")


def test_what_is_held_is_bounded():
    app = wirecall.Server("test", limits={"soft_output": 10_000})
    refused = threading.Event()

    @app
    async def floods(ctx: wirecall.Context) -> int:
        async def flood() -> None:
            try:
                while True:
                    ctx.notify("said", "x" * 1000)
                    await asyncio.sleep(0)
            except wirecall.LimitExceeded:
                refused.set()

        background(flood())
        await asyncio.to_thread(refused.wait, 20)
        return 1

    with app.serving() as uri, Raw(uri) as peer:
        assert peer.ask("floods") == result(1)
        assert refused.is_set()
        assert peer.read()["method"] == "said"
