"""What tests/broker_check/provider.py provides, by the package: broker_provider.py PORT NAME [CAFILE [CERT KEY]]. A
program of its own, to be killed and stopped."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import wirecall


def echo(**call: Any) -> dict[str, Any]:
    return call


def batched(connection: list[int], sequence: list[int], nonce: list[int]) -> list[dict[str, int]]:
    calls = zip(connection, sequence, nonce, strict=True)
    return [{"connection": one, "sequence": two, "nonce": three} for one, two, three in calls]


async def nested(ctx: wirecall.Context, **call: Any) -> Any:
    return await ctx.call("work.echo", **call)


async def stream(**call: Any) -> AsyncIterator[dict[str, Any]]:
    for item in range(3):
        yield {**call, "item": item}


async def hold(**call: Any) -> None:
    await asyncio.get_running_loop().create_future()


async def hold_batched(connection: list[int], sequence: list[int], nonce: list[int]) -> None:
    print("holding", flush=True)
    await asyncio.get_running_loop().create_future()


async def main(port: str, name: str, cafile: str = "", *own: str) -> None:
    by_tls: dict[str, Any] = {"cafile": cafile, "tls": dict(zip(("client_cert", "client_key"), own, strict=False))}
    url = f"{'tls' if cafile else 'tcp'}://127.0.0.1:{port}"
    async with wirecall.aconnect(url, client_id=name, **(by_tls if cafile else {})) as c:
        await c.provide("work.echo", echo)
        await c.provide("work.batched", batched, batch=16, wait_ms=1)
        await c.provide("work.nested", nested)
        await c.provide("work.stream", stream)
        await c.provide(f"hold.{name}", hold)
        # Of five calls three are in a batch that runs, and two wait for the next.
        await c.provide(f"hold_batched.{name}", hold_batched, batch=3, wait_ms=60_000)
        print("ready", flush=True)
        await asyncio.get_running_loop().create_future()


asyncio.run(main(*sys.argv[1:]))
