"""ASGI without a framework: what is the least that a server in Python does for such a call. Nothing is validated."""

import orjson

HEADERS = [(b"content-type", b"application/json")]


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    call = orjson.loads(body)
    params = call["params"]
    answer = orjson.dumps({"jsonrpc": "2.0", "result": params["a"] + params["b"], "id": call["id"]})
    headers = [*HEADERS, (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})
