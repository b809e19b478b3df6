"""aiorpcX: calls in both directions, notifications, batches and errors, as lines over TCP and unix."""

import asyncio
import os

import aiorpcx


class Session(aiorpcx.RPCSession):
    async def handle_request(self, request):
        assert request.method == "answer", request
        return f"to {request.args[0]}"


async def check(connect) -> None:
    async with connect as session:
        assert await session.send_request("subtract", [42, 23]) == 19
        assert await session.send_request("subtract", {"subtrahend": 23, "minuend": 42}) == 19
        await session.send_notification("echo", ["nobody waits"])
        assert await asyncio.gather(*(session.send_request("echo", [i]) for i in range(100))) == list(range(100))
        async with session.send_batch() as batch:
            batch.add_request("subtract", [5, 3])
            batch.add_notification("echo", [1])
            batch.add_request("sum", [1, 2, 3])
        assert batch.results == (2, 6), batch.results
        assert await session.send_request("ask", ["a question"]) == "to a question"
        try:
            await session.send_request("fail", [7, "as asked"])
            raise AssertionError("fail did not fail")
        except aiorpcx.RPCError as error:
            assert (error.code, error.message) == (7, "as asked"), error


async def main() -> None:
    await check(aiorpcx.connect_rs("127.0.0.1", int(os.environ["TCP_PORT"]), session_factory=Session))
    await check(aiorpcx.connect_us(os.environ["UNIX_PATH"], session_factory=Session))


asyncio.run(main())
