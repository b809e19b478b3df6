"""FastAPI as its users write it: a model for what comes, one for what goes. The same requests as for the others."""

from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()


class Params(BaseModel):
    a: int
    b: int


class Call(BaseModel):
    jsonrpc: str
    method: str
    params: Params
    id: int


class Answer(BaseModel):
    jsonrpc: str = "2.0"
    result: int
    id: int


@app.post("/rpc")
def sum(call: Call) -> Answer:
    return Answer(result=call.params.a + call.params.b, id=call.id)


@app.post("/async")
async def sum_async(call: Call) -> Answer:
    return Answer(result=call.params.a + call.params.b, id=call.id)
