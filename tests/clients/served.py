"""What served.cpp serves, from Python: served.py URI... says on stderr, a line each, where it listens; served.py --tls
CERTIFICATE KEY URI... the same with TLS as well; served.py --broker URI, the same of a broker at which a client provides
it."""

import asyncio
import dataclasses
import sys
from collections.abc import AsyncIterator
from typing import Any, Literal

import wirecall

with_tls = sys.argv[1] == "--tls"
tls = {"cert": [sys.argv[2]], "key": [sys.argv[3]]} if with_tls else {}
# jsonrpclib-pelix takes any other status for an error.
app = wirecall.Server("served", http_notification_status=200, tls=tls)
ETHEREUM = {"unsubscribe": "eth_unsubscribe", "notification": "eth_subscription"}


@app
def subtract(minuend: int, subtrahend: int) -> int:
    return minuend - subtrahend


@app
def sum(*numbers: int | float) -> int | float:
    total: int | float = 0
    for number in numbers:
        total += number
    return total


@app
def echo(value: Any) -> Any:
    return value


@app
async def sleep(ms: int) -> None:
    await asyncio.sleep(ms / 1000)


@app
def fail(code: int, message: str) -> None:
    raise wirecall.Error(code, message)


@app
async def count(n: int) -> AsyncIterator[int]:
    for i in range(n):
        yield i


@app
async def ask(question: str, ctx: wirecall.Context) -> str:
    answer: str = await ctx.call("answer", question)
    return answer


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0
    label: str | None = None
    tags: list[str] = dataclasses.field(default_factory=list)


@app
def move(point: Point, by: int | str | None = None, scale: Literal[1, 2, "auto"] = "auto") -> Point | None:
    """For its types, which a document describes."""
    return point if by is not None else None


@app
def eth_chainId() -> str:
    return "0x1"


@app
def eth_blockNumber() -> str:
    return "0x10"


@app.subscription("eth_subscribe", **ETHEREUM)
async def heads(kind: str) -> AsyncIterator[dict[str, str]]:
    if kind != "newHeads":
        raise wirecall.InvalidParams("no such kind: " + kind)
    number = 0
    while True:
        number += 1
        yield {"number": hex(number), "hash": "0x" + "a" * 64}
        if number % 3 == 0:
            await asyncio.sleep(0.005)


async def provide(uri: str) -> None:
    async with wirecall.aconnect(uri) as worker:
        for method in (subtract, echo, fail, move, eth_chainId, eth_blockNumber):
            await worker.provide(method.__name__, method)
        await worker.provide_subscription("eth_subscribe", heads, **ETHEREUM)
        print("listening", uri, file=sys.stderr, flush=True)
        await asyncio.Event().wait()


if sys.argv[1] == "--broker":
    broker = wirecall.Server("broker", broker=True, log_level="warning")
    with broker.serving(sys.argv[2]) as uri:
        asyncio.run(provide(uri))
else:
    for uri in sys.argv[4 if with_tls else 1:]:
        print("listening", app.listen(uri), file=sys.stderr, flush=True)
    app.run(quiet=True)
