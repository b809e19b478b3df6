"""The server that is measured."""

import sys

import numpy as np

import wirecall

app = wirecall.Server("bench")


@app
def sum(a: int, b: int) -> int:
    return a + b


@app
def echo(x: np.ndarray) -> np.ndarray:
    return x


app.run(sys.argv[1])
