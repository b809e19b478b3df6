"""Peers of a broker over sockets, without any client library: callers of any framing, one by HTTP, and readers of
server-sent events. Whatever they receive they tell the ledger."""

import asyncio
import contextlib
import itertools
import json
import socket
import struct

import framings

connections = itertools.count(1)
addresses = itertools.cycle(f"127.0.0.{last}" for last in range(1, 9))


def reset(writer):
    connection = writer.get_extra_info("socket")  # by TLS there is none where the broker has closed it before
    if connection:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def connect(port, tls=None):
    """By TLS where its context is given."""
    return await asyncio.open_connection("127.0.0.1", port, local_addr=(next(addresses), 0), limit=1 << 20, ssl=tls,
                                         server_hostname="localhost" if tls else None)


class Caller:
    """A connection of messages."""

    def __init__(self, ledger, timeout_ms=2000, framing=framings.Lines, tls=None):
        self.ledger = ledger
        self.framing = framing()
        self.tls = tls
        self.timeout_ms = timeout_ms
        self.number = next(connections)
        self.sequence = 0
        self.waiting = {}
        self.items = {}

    async def open(self, port, reads=True):
        self.reader, self.writer = await connect(port, self.tls)
        self.writer.write(self.framing.opening)
        self.reading = asyncio.create_task(self.read()) if reads else None
        return self

    async def read(self):
        try:
            while some := await self.reader.read(1 << 16):
                for message in self.framing.read(some):
                    for one in message if isinstance(message, list) else [message]:
                        self.receive(one)
                if self.framing.due:
                    self.writer.write(self.framing.due)
                    self.framing.due = b""
        except ValueError as error:
            self.ledger.fault("framing", f"{self.framing.name}: {error}")
        except (OSError, asyncio.CancelledError):
            pass
        for future in self.waiting.values():
            future.cancel()

    def receive(self, message):
        if "method" in message:
            return self.event(message)
        items = self.items.pop(message.get("id"), None)
        if items is not None and message.get("result", items) is None:  # a generator, which has no other result
            message = {**message, "result": items}
        elif items is None and isinstance(message.get("result"), list):
            items = message["result"]
        if items is not None and "result" in message and [value.get("item") for value in items] != [0, 1, 2]:
            self.ledger.fault("stream", f"{message['id']} ended after items {items}")
        self.ledger.end(self.number, message)
        future = self.waiting.pop(message.get("id"), None)
        if future and not future.done():
            future.set_result(message)

    def event(self, message):
        if message["method"] != "rpc.item":
            return
        params = message["params"]
        items = self.items.get(params["id"])
        value = params["value"]
        if items is None or f"{value['connection']}:{value['sequence']}" != params["id"]:
            return self.ledger.fault("misrouted", f"connection {self.number} received {str(message)[:200]}")
        items.append(value)
        self.notify("rpc.credit", {"id": params["id"], "n": 1})

    def request(self, method, more=None, **params):
        self.sequence += 1
        call = self.ledger.call(self.number, self.sequence)
        request_id = f"{self.number}:{self.sequence}"
        self.waiting[request_id] = asyncio.get_running_loop().create_future()
        return {"jsonrpc": "2.0", "method": method, "params": {**call, **params}, "id": request_id,
                "timeout_ms": self.timeout_ms, **(more or {})}

    def send(self, message):
        self.writer.write(self.framing.write(message))

    def notify(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method, more=None, **params):
        request = self.request(method, more, **params)
        if more and "stream" in more:
            self.items[request["id"]] = []
        self.send(request)
        return self.waiting[request["id"]]

    def batch(self, methods):
        requests = [self.request(method) for method in methods]
        self.send(requests + [{"jsonrpc": "2.0", "method": "note.batch"}])
        return [self.waiting[request["id"]] for request in requests]

    async def leave(self, by_reset=False):
        self.ledger.abandon(self.number)
        if by_reset:
            reset(self.writer)
        self.writer.close()
        if self.reading:
            self.reading.cancel()


class HttpCaller(Caller):
    """A connection of HTTP, kept alive, one request after the other."""

    async def open(self, port):
        return await super().open(port, reads=False)

    async def post(self, message):
        body = json.dumps(message).encode()
        self.writer.write(b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        answer = json.loads(await self.reader.readexactly(length))
        answers = answer if isinstance(answer, list) else [answer]
        asked = [one["id"] for one in (message if isinstance(message, list) else [message])]
        if [one.get("id") for one in answers] != asked:
            self.ledger.fault("misrouted", f"HTTP asked {asked} and received {str(answers)[:300]}")
        for one in answers:
            self.receive(one)


class EventReader:
    """A reader of server-sent events that comes back as a browser does, by the id that it has read last."""

    def __init__(self, ledger, topic):
        self.ledger = ledger
        self.topic = topic
        self.number = next(connections)
        self.lost = 0  # events of which it was told that it lost them
        self.resumed = 0
        self.begin()

    def begin(self):
        """As one that has never been there."""
        self.last_id = None
        # By topic the number of the last event: of those that are not retained, and of those that are, on this connection
        # and on all.
        self.live = {}
        self.here = {}
        self.retained = {}
        self.resumed_at = 0  # the number in the id by which it has come back last

    async def open(self, port, tls=None):
        self.reader, self.writer = await connect(port, tls)
        self.up_to_date = asyncio.Event()
        last = f"Last-Event-ID: {self.last_id}\r\n" if self.last_id else ""
        query = "" if self.last_id else "&last=true"
        self.writer.write(f"GET /events?topic={self.topic}{query} HTTP/1.1\r\nHost: localhost\r\n{last}\r\n".encode())
        if self.last_id:
            self.resumed += 1
            self.resumed_at = int(self.last_id.partition("-")[2])
        self.here = {}
        self.reading = asyncio.create_task(self.read())
        return self

    async def read(self):
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200 "):
                return self.ledger.fault("events", f"reader {self.number} received {head!r}")
            while True:
                self.block((await self.reader.readuntil(b"\n\n")).decode())
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return None

    def block(self, text):
        """What stands before an empty line."""
        fields = dict(line.split(": ", 1) for line in text.splitlines() if line and not line.startswith(":"))
        if not fields.keys() <= {"retry", "id", "event", "data"}:
            return self.ledger.fault("events", f"reader {self.number} received {text!r}")
        if "data" in fields:
            message = json.loads(fields["data"])
            if message["method"] != fields["event"]:
                self.ledger.fault("events", f"{message['method']} as {fields['event']}")
            if message["method"] == "rpc.lagged":
                self.lost += message["params"]["dropped"]
            else:
                self.ledger.receive_event(self, message["params"], fields.get("id"))
        if "id" in fields:
            self.last_id = fields["id"]
            self.up_to_date.set()
        return None

    async def leave(self):
        """Cut off, wherever it is."""
        reset(self.writer)
        self.writer.close()
        await self.reading
        self.ledger.read_up_to(self)
