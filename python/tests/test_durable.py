"""Durable topics and queues at a broker, by the blocking client and the asyncio client."""

import asyncio
import pathlib
import queue
from collections.abc import Iterator
from typing import Any

import pytest

import wirecall

WAIT_S = 30


@pytest.fixture
def broker(tmp_path: pathlib.Path) -> Iterator[str]:
    options = {"path": str(tmp_path / "data"), "fsync": "everysec"}
    with wirecall.Server("broker", broker=True, durable=options).serving() as uri:
        yield uri


def test_an_event_is_kept_and_acknowledged_when_its_handler_returns(broker: str) -> None:
    with wirecall.connect(broker) as c:
        assert c.publish_durable("orders.new", {"id": 1}, msg_id="one") == {"seq": 1}
        assert c.publish_durable("orders.new", {"id": 1}, msg_id="one") == {"seq": 1, "duplicate": True}
        came: queue.Queue[tuple[str, Any]] = queue.Queue()
        failed = []

        def handle(topic: str, value: Any) -> None:
            if not failed:
                failed.append(value)
                raise wirecall.Error(7, "not yet")
            came.put((topic, value))

        subscription = c.subscribe("orders.>", handle, durable="billing", start="first")
        assert came.get(timeout=WAIT_S) == ("orders.new", {"id": 1})
        assert failed == [{"id": 1}]
        c.publish_durable("orders.new", 2)
        assert came.get(timeout=WAIT_S) == ("orders.new", 2)
        subscription.unsubscribe()


def test_options_of_a_consumer_need_its_name(broker: str) -> None:
    with wirecall.connect(broker) as c:
        with pytest.raises(ValueError, match="give durable"):
            c.subscribe("a", print, start="first")
        with pytest.raises(ValueError, match="no group"):
            c.subscribe("a", print, durable="billing", last=True)
        with pytest.raises(wirecall.InvalidParams):
            c.subscribe("a", print, durable="no name")


def test_a_task_acknowledges_when_it_is_done_and_several_are_at_work(broker: str) -> None:
    async def run() -> None:
        async with wirecall.aconnect(broker) as c:
            for i in range(3):
                await c.publish_durable("orders.new", i)
            began: asyncio.Queue[int] = asyncio.Queue()
            release = asyncio.Event()

            async def handle(_: str, value: int) -> None:
                await began.put(value)
                await release.wait()

            await c.subscribe("orders.>", handle, durable="billing", start="first")
            got = [await asyncio.wait_for(began.get(), WAIT_S) for _ in range(3)]
            assert got == [0, 1, 2]
            listing = await c.rpc.durable.ls()
            assert listing["consumers"][0]["position"] == 0
            release.set()
            while (await c.rpc.durable.ls())["consumers"][0]["position"] != 3:
                await asyncio.sleep(0.01)

    asyncio.run(run())


def test_a_task_that_fails_has_the_event_again(broker: str) -> None:
    async def run() -> None:
        async with wirecall.aconnect(broker) as c:
            seen: asyncio.Queue[int] = asyncio.Queue()

            async def handle(_: str, value: int) -> None:
                await seen.put(value)
                if seen.qsize() == 1:
                    raise RuntimeError("the first time")

            await c.subscribe("a", handle, durable="one")
            await c.publish_durable("a", 5)
            while seen.qsize() < 2:
                await asyncio.sleep(0.01)

    asyncio.run(run())


def test_a_pushed_job_runs_when_a_provider_comes(broker: str) -> None:
    with wirecall.connect(broker) as c:
        job = c.push("report", 2024, _msg_id="r", _timeout_ms=60_000)
        assert c.push("report", 2024, _msg_id="r") == job
        assert c.rpc.queue.result(job)["state"] == "waiting"
        done: queue.Queue[Any] = queue.Queue()
        c.subscribe("queue.done.report", lambda _, value: done.put(value))
        with wirecall.connect(broker) as worker:
            worker.provide("report", lambda year: year + 1)
            assert done.get(timeout=WAIT_S) == {"id": job, "deliveries": 1, "result": 2025}
        assert c.rpc.queue.result(job)["result"] == 2025

    async def run() -> int:
        async with wirecall.aconnect(broker) as a:
            return await a.push("report", year=1)

    assert asyncio.run(run()) == job + 1
