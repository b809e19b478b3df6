"""websockets: calls in both directions, batches, errors, pings, compression and both closes, by WebSocket."""

import asyncio
import json
import os

import websockets

URL = f"ws://127.0.0.1:{os.environ['TCP_PORT']}"


def request(method, params, number):
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": number}


async def ask(connection, message):
    await connection.send(json.dumps(message))
    return json.loads(await connection.recv())


async def check(connection) -> None:
    assert (await ask(connection, request("subtract", [42, 23], 1)))["result"] == 19
    answers = await ask(connection, [request("subtract", [n, 1], n) for n in range(100)])
    assert [answer["result"] for answer in answers] == [n - 1 for n in range(100)]
    error = (await ask(connection, request("fail", [7, "as asked"], 2)))["error"]
    assert (error["code"], error["message"]) == (7, "as asked"), error
    for size in (0, 125, 126, 65_535, 65_536, 1_000_000):
        assert (await ask(connection, request("echo", ["κ" * size], 3)))["result"] == "κ" * size
    # In fragments, and with a ping of ours on the way.
    text = json.dumps(request("echo", ["in fragments"], 4))
    await connection.send([text[:10], text[10:20], "", text[20:]])
    assert json.loads(await connection.recv())["result"] == "in fragments"
    await (await connection.ping(b"still there"))
    # The server calls its caller.
    question = await ask(connection, request("ask", ["a question"], 5))
    assert (question["method"], question["params"]) == ("answer", ["a question"]), question
    reply = {"jsonrpc": "2.0", "result": "an answer", "id": question["id"]}
    assert (await ask(connection, reply))["result"] == "an answer"


async def main() -> None:
    for path in ("/", "/rpc", "/ws"):
        async with websockets.connect(URL + path, subprotocols=["jsonrpc"], max_size=None) as connection:
            assert connection.subprotocol == "jsonrpc"
            await check(connection)
        assert connection.close_code == 1000, connection.close_code
    async with websockets.connect(URL, compression=None, max_size=None) as connection:
        await check(connection)
    async with websockets.connect(URL) as connection:
        await connection.send(b"\xc1")
        assert json.loads(await connection.recv())["error"]["code"] == -32700
    try:
        async with websockets.connect(URL, origin="http://elsewhere"):
            raise AssertionError("a page of another site was let in")
    except websockets.InvalidStatus as refused:
        assert refused.response.status_code == 403, refused


asyncio.run(main())
