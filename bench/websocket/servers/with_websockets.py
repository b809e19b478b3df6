"""PyPI's websockets on uvloop, without compression."""

import asyncio
import contextlib
import json
import sys

import uvloop
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

METHODS = {"subtract": lambda minuend, subtrahend: minuend - subtrahend}


async def answer(connection):
    with contextlib.suppress(ConnectionClosed):
        async for message in connection:
            call = json.loads(message)
            result = METHODS[call["method"]](*call["params"])
            await connection.send(json.dumps({"jsonrpc": "2.0", "result": result, "id": call["id"]}))


async def main(port):
    async with serve(answer, "127.0.0.1", port, compression=None):
        await asyncio.get_running_loop().create_future()


uvloop.run(main(int(sys.argv[1])))
