"""What a peer of a broker speaks, without any client library: each framing writes messages as bytes and reads bytes as
messages. A reader raises ValueError for bytes that are no message of its framing; above all, each line that a reader of
lines receives is one JSON value."""

import json
import struct


class Lines:
    """JSON texts, one a line."""
    name = "lines"
    connected = True  # may register, subscribe and be called

    def __init__(self):
        self.received = b""

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


ALL = [Lines, Headers, Lengths, Msgpack, Http]


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
