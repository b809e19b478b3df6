"""The functions that measure.py and plot.py call. The model is there for batches of each size, and with each wait."""

from __future__ import annotations

import sys
import time
from typing import Any

import wirecall

app = wirecall.Server("batching")
RUN_S, ELEMENT_S = 1e-3, 10e-6  # what the model takes for a batch, and for each of its elements
SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
WAITS_MS = [0, 1, 2, 5, "auto"]


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


ran: dict[str, list[int]] = {}  # by name: how often, and with how many calls


@app
def sizes_of(name: str) -> list[int]:
    return ran[name]


def add_model(name: str, **options: Any) -> None:
    ran[name] = [0, 0]

    def counted(numbers: list[int]) -> list[int]:
        ran[name][0] += 1
        ran[name][1] += len(numbers)
        return model(numbers)

    app.add(counted, name=name, batch_queue=1024, **options)


for size in SIZES:
    add_model(f"size_{size}", batch=size)
for wait_ms in WAITS_MS:
    add_model(f"wait_{wait_ms}", batch=1024, wait_ms=wait_ms)

app.run(sys.argv[1])
