"""Generators, plain and async, are streams: their values go out as they come, as fast as the reader takes them."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import wirecall

app = wirecall.Server("streams")


@app
def squares(n: int) -> Iterator[int]:
    for i in range(n):
        yield i * i


@app
async def ticks(ctx: wirecall.Context) -> AsyncIterator[int]:
    tick = 0
    while not ctx.cancelled:  # until the reader has seen enough
        yield tick
        tick += 1
        await asyncio.sleep(0)


async def main(uri: str) -> None:
    async with wirecall.aconnect(uri) as c:
        print([square async for square in c.squares.stream(5)])


with app.serving() as uri:
    with wirecall.connect(uri) as c:
        for tick in c.ticks.stream():
            if tick == 3:
                break
            print(tick)
    asyncio.run(main(uri))
