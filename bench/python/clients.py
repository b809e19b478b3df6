"""What our own clients do against a server, in a process of their own: clients.py WHICH URI; prints one figure.

    gather      calls a second of the asyncio client, 1,000 gathered at a time, on the stock loop
    workers     the same by 1,000 tasks, each with one call after the other
    blocking    microseconds of a blocking call, the median
    array       microseconds to send a MiB of float32 and have it back, in MessagePack
    socket      the same bytes by a plain socket
"""

import asyncio
import socket
import statistics
import sys
import threading
import time

SECONDS = 2.0
ARRAYS = 150


async def gather(uri: str) -> float:
    import wirecall

    async with wirecall.aconnect(uri) as c:
        made, begun = 0, time.perf_counter()
        while time.perf_counter() - begun < SECONDS:
            await asyncio.gather(*(c.sum(i, 1) for i in range(1000)))
            made += 1000
        return made / (time.perf_counter() - begun)


async def workers(uri: str) -> float:
    import wirecall

    async with wirecall.aconnect(uri) as c:
        made, begun = 0, time.perf_counter()

        async def work() -> None:
            nonlocal made
            while time.perf_counter() - begun < SECONDS:
                await c.sum(2, 3)
                made += 1

        await asyncio.gather(*(work() for _ in range(1000)))
        return made / (time.perf_counter() - begun)


def median_us(act, count: int) -> float:
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        act()
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1e6


def blocking(uri: str) -> float:
    import wirecall

    with wirecall.connect(uri) as c:
        median_us(lambda: c.sum(2, 3), 2000)
        return median_us(lambda: c.sum(2, 3), 20_000)


def array(uri: str) -> float:
    import numpy as np

    import wirecall

    values = np.random.default_rng(1).random(1 << 18, dtype=np.float32)
    with wirecall.connect(uri, encoding="msgpack") as c:
        assert (c.echo(values) == values).all()
        return median_us(lambda: c.echo(values), ARRAYS)


def plain(uri: str) -> float:
    host, port = uri.removeprefix("tcp://").split(":")
    data = bytes(1 << 20)
    came = memoryview(bytearray(1 << 20))
    with socket.create_connection((host, int(port))) as connection:

        def there_and_back() -> None:
            sending = threading.Thread(target=connection.sendall, args=(data,))
            sending.start()
            got = 0
            while got < len(came):
                got += connection.recv_into(came[got:])
            sending.join()

        return median_us(there_and_back, ARRAYS)


WAYS = {
    "gather": lambda uri: asyncio.run(gather(uri)),
    "workers": lambda uri: asyncio.run(workers(uri)),
    "blocking": blocking,
    "array": array,
    "socket": plain,
}
print(WAYS[sys.argv[1]](sys.argv[2]))
