"""pygls: calls in both directions, notifications, cancellation and errors, behind Content-Length over TCP and stdio."""

import asyncio
import os

from pygls.client import JsonRPCClient
from pygls.exceptions import JsonRpcException


async def check(client: JsonRPCClient) -> None:
    @client.feature("answer")
    def answer(params):
        return f"to {params[0]}"

    call = client.protocol.send_request_async
    assert await call("subtract", [42, 23]) == 19
    assert await call("subtract", {"minuend": 42, "subtrahend": 23}) == 19
    client.protocol.notify("echo", ["nobody waits"])
    assert await asyncio.gather(*(call("echo", [i]) for i in range(100))) == list(range(100))
    assert await call("ask", ["a question"]) == "to a question"
    try:
        await call("fail", [7, "as asked"])
        raise AssertionError("fail did not fail")
    except JsonRpcException as error:
        assert (error.code, error.message) == (7, "as asked"), error
    # Giving one up does not disturb the others.
    given_up = asyncio.ensure_future(call("sleep", [100_000]))
    await asyncio.sleep(0)
    given_up.cancel()
    assert await call("subtract", [5, 3]) == 2
    client.protocol.writer.close()  # the server sees the end, and ends what it says
    await client.stop()


async def main() -> None:
    over_tcp = JsonRPCClient()
    await over_tcp.start_tcp("127.0.0.1", int(os.environ["TCP_PORT"]))
    await check(over_tcp)
    over_stdio = JsonRPCClient()
    await over_stdio.start_io(os.environ["SERVED"], "stdio:")
    await check(over_stdio)


asyncio.run(main())
