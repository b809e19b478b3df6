"""A broker, and clients that provide methods for each other and publish events."""

import asyncio

import wirecall


async def main(uri: str) -> None:
    async with wirecall.aconnect(uri) as worker, wirecall.aconnect(uri) as caller:

        async def shout(text: str) -> str:
            return text.upper()

        await worker.provide("py.shout", shout, concurrency=4)
        print(await caller.py.shout("hello"))

        heard: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
        await worker.subscribe("sensors.*.temp", lambda topic, value: heard.put_nowait((topic, value)))
        print(await caller.publish("sensors.roof.temp", 21.5), "has it")
        print(*await heard.get())


with wirecall.Server("hub", broker=True).serving() as uri:
    asyncio.run(main(uri))
