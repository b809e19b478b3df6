"""Streams of batched methods that a test asks for at once, and gates at which these wait for each other."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import wirecall

NEVER_MS = 60_000


async def items_of(c: wirecall.AsyncClient, method: str, *args: Any, **options: Any) -> Any:
    """The items of a stream, or the items and the error by which it ended."""
    items: list[Any] = []
    try:
        async for item in c[method].stream(*args, **options):
            items.append(item)
    except wirecall.Error as error:
        return items, error
    return items


async def together(c: wirecall.AsyncClient, method: str, *calls: Any) -> list[Any]:
    """Streams of one method at once. Several arguments stand in a tuple."""
    return await asyncio.gather(
        *(items_of(c, method, *(call if isinstance(call, tuple) else (call,))) for call in calls)
    )


def serve(app: wirecall.Server, main: Callable[[wirecall.AsyncClient], Awaitable[None]]) -> None:
    async def with_client(uri: str) -> None:
        async with wirecall.aconnect(uri) as c:
            await main(c)

    with app.serving() as uri:
        asyncio.run(with_client(uri))


class Gates:
    """Gates in the event loop of a server, which its methods `open` and `passed` open and wait for."""

    def __init__(self, app: wirecall.Server) -> None:
        self._gates: dict[str, asyncio.Event] = {}
        app.add(self._open, name="open")
        app.add(self.passed, name="passed")

    def open(self, name: str) -> None:
        self._gates.setdefault(name, asyncio.Event()).set()

    async def _open(self, name: str) -> None:
        self.open(name)

    async def passed(self, name: str) -> None:
        await self._gates.setdefault(name, asyncio.Event()).wait()
