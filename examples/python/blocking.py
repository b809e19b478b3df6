"""Handlers that wait or compute for long run on a pool; async ones wait together on one thread."""

import asyncio
import threading

import wirecall

app = wirecall.Server("blocking")
opened = threading.Event()


@app(blocking=True)
def wait_for_it() -> str:
    opened.wait()  # holds up nobody else
    return "opened"


@app
async def wait_a_little(n: int) -> int:
    await asyncio.sleep(0.01)
    return n


@app
def open_it() -> None:
    opened.set()


async def main(uri: str) -> None:
    async with wirecall.aconnect(uri) as c:
        waiting = c.wait_for_it()
        print(await asyncio.gather(*(c.wait_a_little(i) for i in range(5))))
        await c.open_it()
        print(await waiting)


with app.serving() as uri:
    asyncio.run(main(uri))
