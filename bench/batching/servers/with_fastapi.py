"""FastAPI as its users write it, without batching: each call is a batch of one, on a thread of its pool."""

import time

from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()


class Params(BaseModel):
    number: int


@app.post("/")
def model(params: Params) -> int:
    time.sleep(1e-3 + 10e-6)
    return params.number
