"""The server that measure.py loads, at the endpoint and with as many workers as its arguments say: `compute`, which takes
so many microseconds of processor."""

import sys
import time

import wirecall

app = wirecall.Server("scaling")


@app
def compute(us: int) -> None:
    end = time.thread_time_ns() + us * 1000
    while time.thread_time_ns() < end:
        pass


app.run(sys.argv[1], workers=int(sys.argv[2]))
