"""What a peer of a broker speaks, without any client library: each framing writes messages as bytes and reads bytes as
messages. A reader raises ValueError for bytes that are no message of its framing; above all, each line that a reader of
lines receives is one JSON value."""

import base64
import hashlib
import json
import struct


class Lines:
    """JSON texts, one a line."""
    name = "lines"
    connected = True  # may register, subscribe and be called
    opening = b""     # what is sent first

    def __init__(self):
        self.received = b""
        self.due = b""  # to be sent by whoever has read

    def write(self, message):
        return json.dumps(message).encode() + b"\n"

    def read(self, some):
        """The messages that these bytes complete."""
        self.received += some
        *lines, self.received = self.received.split(b"\n")
        return [json.loads(line) for line in lines]


class Headers(Lines):
    """JSON texts behind Content-Length."""
    name = "headers"

    def write(self, message):
        body = json.dumps(message).encode()
        return b"Content-Length: %d\r\n\r\n" % len(body) + body

    def read(self, some):
        self.received += some
        messages = []
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            name, _, value = self.received[:end].partition(b":")
            if name != b"Content-Length":
                raise ValueError(f"header {self.received[:end]!r}")
            last = end + 4 + int(value)
            if len(self.received) < last:
                break
            messages.append(json.loads(self.received[end + 4:last]))
            self.received = self.received[last:]
        return messages


class Lengths(Lines):
    """JSON texts behind their length."""
    name = "lengths"

    def encode(self, message):
        return json.dumps(message).encode()

    def decode(self, payload):
        return json.loads(payload)

    def write(self, message):
        payload = self.encode(message)
        return struct.pack(">I", len(payload)) + payload

    def read(self, some):
        self.received += some
        messages = []
        while len(self.received) >= 4:
            last = 4 + int.from_bytes(self.received[:4], "big")
            if len(self.received) < last:
                break
            messages.append(self.decode(self.received[4:last]))
            self.received = self.received[last:]
        return messages


class Msgpack(Lengths):
    """MessagePack behind its length."""
    name = "msgpack"

    def encode(self, message):
        return pack(message)

    def decode(self, payload):
        value, end = unpack(payload, 0)
        if end != len(payload):
            raise ValueError(f"{len(payload) - end} bytes behind a message")
        return value


class Http(Lines):
    """HTTP/1.1, kept alive; a response without a body is None."""
    name = "http"
    connected = False

    def write(self, message):
        body = json.dumps(message).encode()
        return b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    def read(self, some):
        self.received += some
        messages = []
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = self.received[:end].decode("ascii").split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in head[1:])
            last = end + 4 + int(fields.get("content-length", 0))
            if len(self.received) < last:
                break
            body = self.received[end + 4:last]
            messages.append(json.loads(body) if body else None)
            self.received = self.received[last:]
        return messages


class WebSocket(Lines):
    """JSON texts as messages of a WebSocket, some in fragments with a ping between them."""
    name = "websocket"
    subprotocol = "jsonrpc"
    opcode = 1
    KEY = base64.b64encode(b"a broker's check")
    opening = (b"GET /rpc HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
               b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + KEY + b"\r\nSec-WebSocket-Protocol: %s\r\n\r\n")
    ACCEPT = base64.b64encode(hashlib.sha1(KEY + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()

    def __init__(self):
        super().__init__()
        self.opening = self.opening % self.subprotocol.encode()
        self.upgraded = self.closed = False
        self.sent = 0
        self.pings = []

    def encode(self, message):
        return json.dumps(message).encode()

    def decode(self, payload):
        return json.loads(payload.decode())

    def frame(self, first, payload):
        size = len(payload)
        head = struct.pack("!BB", first, 0x80 | size) if size < 126 else struct.pack(
            "!BBH", first, 0x80 | 126, size) if size < 1 << 16 else struct.pack("!BBQ", first, 0x80 | 127, size)
        key = struct.pack("<I", (self.sent + 1) * 2654435761 % (1 << 32))
        mask = (key * (size // 4 + 1))[:size]
        masked = int.from_bytes(payload, "big") ^ int.from_bytes(mask, "big")
        return head + key + masked.to_bytes(size, "big")

    def write(self, message):
        payload = self.encode(message)
        self.sent += 1
        if self.sent % 7 != 3:
            return self.frame(0x80 | self.opcode, payload)
        cut = self.sent % (len(payload) + 1)
        self.pings.append(b"%d" % self.sent)
        return (self.frame(self.opcode, payload[:cut]) + self.frame(0x89, self.pings[-1]) +
                self.frame(0x80, payload[cut:]))

    def take(self):
        """The next whole frame that has come: its first byte and its payload; None as long as it has not."""
        if len(self.received) < 2:
            return None
        first, size = self.received[:2]
        at = 2
        if size >= 126:
            at = 4 if size == 126 else 10
            size = int.from_bytes(self.received[2:at], "big") if size < 128 else size
        if size >= 128 and at == 2:
            raise ValueError("a frame of a server with a mask")
        if len(self.received) < at + size:
            return None
        payload, self.received = self.received[at:at + size], self.received[at + size:]
        return first, payload

    def read(self, some):
        self.received += some
        if not self.upgraded:
            head, end, rest = self.received.partition(b"\r\n\r\n")
            if not end:
                return []
            lines = head.decode("ascii").split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in lines[1:])
            told = (fields.get("sec-websocket-accept"), fields.get("sec-websocket-protocol"))
            if not lines[0].startswith("HTTP/1.1 101 ") or told != (self.ACCEPT.lower(), self.subprotocol):
                raise ValueError(f"no upgrade: {head!r}")
            self.upgraded, self.received = True, rest
        messages = []
        while (frame := self.take()) is not None:
            first, payload = frame
            if self.closed:
                raise ValueError(f"a frame {first:#x} behind the close frame")
            if first == 0x88:
                self.closed = True
                self.due += self.frame(0x88, payload[:2])
            elif first == 0x89:
                self.due += self.frame(0x8a, payload)
            elif first == 0x8a:
                if not self.pings or self.pings.pop(0) != payload:
                    raise ValueError(f"a pong of {payload!r}")
            elif first == 0x80 | self.opcode:
                messages.append(self.decode(payload))
            else:
                raise ValueError(f"a frame {first:#x}")
        return messages


class WebSocketMsgpack(WebSocket):
    """MessagePack as binary messages of a WebSocket."""
    name = "websocket msgpack"
    subprotocol = "jsonrpc.msgpack"
    opcode = 2
    encode = Msgpack.encode
    decode = Msgpack.decode


ALL = [Lines, Headers, Lengths, Msgpack, Http, WebSocket, WebSocketMsgpack]


def pack(value):
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return struct.pack("b", value) if -32 <= value < 128 else b"\xd3" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, bytes):
        return b"\xc6" + struct.pack(">I", len(value)) + value
    if isinstance(value, str):
        text = value.encode()
        return (bytes([0xa0 | len(text)]) if len(text) < 32 else b"\xdb" + struct.pack(">I", len(text))) + text
    if isinstance(value, list):
        head = bytes([0x90 | len(value)]) if len(value) < 16 else b"\xdd" + struct.pack(">I", len(value))
        return head + b"".join(map(pack, value))
    head = bytes([0x80 | len(value)]) if len(value) < 16 else b"\xdf" + struct.pack(">I", len(value))
    return head + b"".join(pack(name) + pack(member) for name, member in value.items())


NUMBERS = {0xca: ">f", 0xcb: ">d", 0xcc: ">B", 0xcd: ">H", 0xce: ">I", 0xcf: ">Q", 0xd0: ">b", 0xd1: ">h", 0xd2: ">i",
           0xd3: ">q"}
SIZES = {0xc4: "B", 0xc5: "H", 0xc6: "I", 0xd9: "B", 0xda: "H", 0xdb: "I", 0xdc: "H", 0xdd: "I", 0xde: "H", 0xdf: "I"}


def unpack(data, at):
    """The value that begins at `at`, and where it ends."""
    try:
        first = data[at]
        at += 1
        if first < 0x80 or first >= 0xe0:
            return first - 256 * (first >= 0xe0), at
        if first in (0xc0, 0xc2, 0xc3):
            return {0xc0: None, 0xc2: False, 0xc3: True}[first], at
        if first in NUMBERS:
            return struct.unpack_from(NUMBERS[first], data, at)[0], at + struct.calcsize(NUMBERS[first])
        if first < 0xc0:
            kind, size = ("str", first & 31) if first >= 0xa0 else ("array", first & 15) if first >= 0x90 else ("map", first & 15)
        else:
            kind = "bin" if first <= 0xc6 else "str" if first <= 0xdb else "array" if first <= 0xdd else "map"
            size = struct.unpack_from(">" + SIZES[first], data, at)[0]
            at += struct.calcsize(SIZES[first])
    except (IndexError, KeyError, struct.error) as error:
        raise ValueError(f"no MessagePack: {error!r}") from None
    if kind in ("bin", "str"):
        if len(data) < at + size:
            raise ValueError("no MessagePack: cut short")
        return (data[at:at + size] if kind == "bin" else data[at:at + size].decode()), at + size
    values = []
    for _ in range(size * (2 if kind == "map" else 1)):
        value, at = unpack(data, at)
        values.append(value)
    return (dict(zip(values[::2], values[1::2])) if kind == "map" else values), at
