"""Calls of gRPC by its own client, 32 at a time: grpc_load.py PLACE SECONDS; prints how many."""

import asyncio
import struct
import sys
import time

import grpc


async def main(endpoint: str, seconds: float) -> None:
    async with grpc.aio.insecure_channel(endpoint) as channel:
        call = channel.unary_unary(
            "/bench.Calc/sum",
            request_serializer=lambda pair: struct.pack("<qq", *pair),
            response_deserializer=lambda answer: struct.unpack("<q", answer)[0],
        )
        assert await call((2, 3), wait_for_ready=True) == 5
        end = time.monotonic() + seconds
        made = 0

        async def work() -> None:
            nonlocal made
            while time.monotonic() < end:
                await call((2, 3))
                made += 1

        await asyncio.gather(*(work() for _ in range(32)))
        print(made)


asyncio.run(main(sys.argv[1], float(sys.argv[2])))
