"""What a caller sends as a stream, what comes back beside a result, and results that are kept."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

import wirecall
from wirecall import Out

app = wirecall.Server("inputs")


@app
def sum_all(numbers: Iterator[int]) -> int:
    return sum(numbers)


@app
async def running_sum(numbers: AsyncIterator[int]) -> AsyncIterator[int]:
    total = 0
    async for number in numbers:
        total += number
        yield total


class Division(NamedTuple):
    quotient: int
    remainder: int


@app
def divide(a: int, b: int) -> Out[Division]:
    return Out(*divmod(a, b))


@app(cache=1000)
def square(n: int) -> int:
    print("computing the square of", n)
    return n * n


async def main(uri: str) -> None:
    async with wirecall.aconnect(uri) as c:
        print([total async for total in c.running_sum.stream(_input=[1, 2, 39])])


with app.serving() as uri:
    with wirecall.connect(uri, encoding="cbor") as c:
        print(c.sum_all(_input=range(1, 101)))
        print(c.divide(7, 2)["out"])
        print(c.square(12), c.square(12))
    asyncio.run(main(uri))
