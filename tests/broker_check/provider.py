"""A provider as a process of its own, to be killed and stopped: provider.py PORT NAME FRAMING [CAFILE [CERT KEY]]. It speaks
JSON-RPC over a socket, by TLS where an authority is named, with a certificate of its own where that is. It provides
work.echo, work.batched (the same, which other programs take many of at once), work.nested (which calls work.echo through the
broker), work.stream (three items, as the caller's credit allows), and hold.NAME and hold_batched.NAME, which are never
answered; it prints a line when it has the latter."""

import socket
import sys

import certificates
import framings

port, name, spoken, *files = sys.argv[1:]
framing = next(one for one in framings.ALL if one.name == spoken)()
connection = socket.create_connection(("127.0.0.1", int(port)))
if files:
    connection = certificates.context(*files).wrap_socket(connection, server_hostname="localhost")
connection.sendall(framing.opening)
calls = {}      # of ours, by id: the request that is served by it
streams = {}    # by request id: [request, next item, credit]
sequence = 0


def send(message):
    connection.sendall(framing.write({"jsonrpc": "2.0", **message}))


def advance(request_id):
    stream = streams[request_id]
    while stream[1] < 3 and stream[2] > 0:
        value = {**stream[0]["params"], "item": stream[1]}
        send({"method": "rpc.item", "params": {"id": request_id, "seq": stream[1], "value": value}})
        stream[1] += 1
        stream[2] -= 1
    if stream[1] == 3:
        del streams[request_id]
        send({"result": stream[0]["params"], "id": request_id})


def serve(request):
    global sequence
    method = request["method"]
    if method in ("work.echo", "work.batched"):
        send({"result": request["params"], "id": request["id"]})
    elif method == "work.nested":
        sequence += 1
        calls[sequence] = request
        send({"method": "work.echo", "params": request["params"], "id": sequence, "timeout_ms": request["timeout_ms"],
              "hops": request.get("hops", 0) + 1})
    elif method == "work.stream":
        streams[request["id"]] = [request, 0, request.get("stream", 3)]
        advance(request["id"])
    elif method == f"hold_batched.{name}":
        print("holding", flush=True)


def receive(message):
    if "method" not in message:
        request = calls.pop(message["id"], None)
        if request:
            send({"id": request["id"], **{key: message[key] for key in ("result", "error") if key in message}})
    elif message["method"] == "rpc.credit":
        if message["params"]["id"] in streams:
            streams[message["params"]["id"]][2] += message["params"]["n"]
            advance(message["params"]["id"])
    elif message["method"] == "$/cancelRequest":
        streams.pop(message["params"]["id"], None)
        send({"error": {"code": -32800, "message": "cancelled"}, "id": message["params"]["id"]})
    elif message["method"] == "rpc.ping":
        send({"result": "pong", "id": message["id"]})
    elif "id" in message:
        serve(message)


send({"method": "rpc.hello", "params": {"name": name}, "id": "hello"})
methods = [{"method": method} for method in ("work.echo", "work.batched", "work.nested", "work.stream", f"hold.{name}",
                                              f"hold_batched.{name}")]
send({"method": "rpc.register", "params": {"methods": methods}, "id": "register"})
while some := connection.recv(1 << 16):
    for message in framing.read(some):
        if message.get("id") == "register":
            print("ready", flush=True)
        receive(message)
    if framing.due:
        connection.sendall(framing.due)
        framing.due = b""
