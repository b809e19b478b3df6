"""The same from asyncio: calls are futures. For first_server.py."""

import asyncio
import sys

import wirecall


async def main(uri: str) -> None:
    async with wirecall.aconnect(uri) as c:
        print(await c.sum(2, 3))
        print(len(await asyncio.gather(*(c.sum(i, 1) for i in range(1000)))))
        try:
            async with asyncio.timeout(1):
                print(await c.greet(name="Ada", loud=True))
        except TimeoutError:
            print("too late")  # and the server has been told


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "tcp://127.0.0.1:8545"))
