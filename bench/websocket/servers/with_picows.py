"""PyPI's picows on uvloop."""

import json
import sys

import uvloop
from picows import WSListener, WSMsgType, ws_create_server

METHODS = {"subtract": lambda minuend, subtrahend: minuend - subtrahend}


class Connection(WSListener):
    def on_ws_frame(self, transport, frame):
        if frame.msg_type == WSMsgType.CLOSE:
            transport.disconnect()
            return
        call = json.loads(frame.get_payload_as_bytes())
        result = METHODS[call["method"]](*call["params"])
        transport.send(WSMsgType.TEXT, json.dumps({"jsonrpc": "2.0", "result": result, "id": call["id"]}).encode())


async def main(port):
    server = await ws_create_server(lambda request: Connection(), "127.0.0.1", port)
    await server.serve_forever()


uvloop.run(main(int(sys.argv[1])))
