"""The functions that measure.py calls: each for one call, and for a batch."""

from __future__ import annotations

import sys
import time

import wirecall

app = wirecall.Server("batching")
RUN_S, ELEMENT_S = 1e-3, 10e-6  # what the model takes for a batch, and for each of its elements


@app
def one(number: int) -> int:
    return number


@app(batch=128)
def many(numbers: list[int]) -> list[int]:
    return numbers


@app(batch=128)
def model(numbers: list[int]) -> list[int]:
    time.sleep(RUN_S + ELEMENT_S * len(numbers))  # as a model on an accelerator, without the GIL
    return numbers


app.run(sys.argv[1])
