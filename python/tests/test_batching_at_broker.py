"""Workers that take the calls of one method together, at a broker: which of them has a call, and what becomes of calls
whose worker leaves."""

from __future__ import annotations

import asyncio

import wirecall


class Worker:
    """Provides `work`, whose result is who has done it. A batch waits for `gate`."""

    def __init__(self, name: str, *, is_open: bool) -> None:
        self.name = name
        self.batches: list[list[int]] = []
        self.began = asyncio.Event()
        self.gate = asyncio.Event()
        if is_open:
            self.gate.set()

    async def work(self, numbers: list[int]) -> list[str]:
        self.batches.append(numbers)
        self.began.set()
        await self.gate.wait()
        return [self.name] * len(numbers)

    @property
    def taken(self) -> int:
        return sum(map(len, self.batches))


def test_the_worker_with_the_fewest_calls_has_the_next_one(broker):
    async def main() -> None:
        slow, quick = Worker("slow", is_open=False), Worker("quick", is_open=True)
        async with wirecall.aconnect(broker) as a, wirecall.aconnect(broker) as b, wirecall.aconnect(broker) as c:
            await a.provide("work", slow.work, batch=64)
            await b.provide("work", quick.work, batch=64)
            first = [c.work(0), c.work(1)]  # one each
            done, held = await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            assert [reply.result() for reply in done] == ["quick"]
            assert [await c.work(number) for number in range(2, 52)] == ["quick"] * 50
            slow.gate.set()
            assert [await reply for reply in held] == ["slow"]
        assert (slow.taken, quick.taken) == (1, 51)

    asyncio.run(main())


def test_a_slow_worker_holds_up_two_batches_and_the_quick_one_has_all_other_calls(broker):
    async def main() -> None:
        slow, quick = Worker("slow", is_open=False), Worker("quick", is_open=True)
        async with wirecall.aconnect(broker) as a, wirecall.aconnect(broker) as b, wirecall.aconnect(broker) as c:
            await a.provide("work", slow.work, batch=4)
            held = {c.work(number) for number in range(10)}
            await c.rpc.ping()  # the broker has had them all
            await b.provide("work", quick.work, batch=4)  # which takes those that wait at the broker
            calls = held | {c.work(number) for number in range(10, 100)}
            while len(calls) > 8:
                done, calls = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
                assert {reply.result() for reply in done} == {"quick"}
            slow.gate.set()
            assert await asyncio.gather(*calls) == ["slow"] * 8
        assert (slow.taken, quick.taken) == (8, 92)
        assert all(len(batch) <= 4 for batch in slow.batches + quick.batches)

    asyncio.run(main())


def test_calls_whose_worker_leaves_in_mid_batch_end_once_and_may_have_been_delivered(broker):
    async def main() -> None:
        worker = Worker("worker", is_open=False)
        async with wirecall.aconnect(broker) as c:
            async with wirecall.aconnect(broker) as a:
                await a.provide("work", worker.work, batch=3, wait_ms=60_000)
                calls = [c.work(number) for number in range(8)]
                await worker.began.wait()
                await c.rpc.ping()  # the broker has had them all
                assert worker.batches == [[0, 1, 2]]
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [wirecall.ConnectionLost] * 8
        # One batch ran and one was gathered; the broker had not sent the others.
        assert [outcome.data["delivered"] for outcome in outcomes] == ["maybe"] * 6 + ["no"] * 2
        assert worker.batches == [[0, 1, 2]]

    asyncio.run(main())
