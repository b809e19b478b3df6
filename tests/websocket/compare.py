#!/usr/bin/env python3
"""Compares our framing of WebSocket with PyPI's wsproto on generated and damaged frames, for both ends, with and without
permessage-deflate, in random pieces; and ours with itself, the bytes cut in two at each place. Exit status 1 where they
differ otherwise than is listed here. The seed is printed.

We refuse earlier: a frame by its head alone, where wsproto waits for the payload, or for the rest of the head. And later:
what is compressed once its message has come whole.
"""
import argparse
import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import environment

WSPROTO = "wsproto==1.3.2"
MESSAGE_BYTES_MAX = 100_000

# What wsproto refuses and we take: registered since (RFC 6455 7.4.2 leaves codes to a registry).
LAXER = {"remote 1014": "Bad Gateway"}
# What we refuse and wsproto takes.
STRICTER = {"1009": "a message over the limit, of which wsproto has none"}
# The same of a message that is compressed: wsproto takes one whose last block has no end.
STRICTER_PACKED = {**STRICTER, "1007": "a message that cannot be unpacked as a whole"}

TEXTS = ["", "Hello", "κόσμε", "\U0001F600" * 3, "x" * 125, "x" * 126, "ä" * 300, '{"jsonrpc":"2.0"}', "x" * 70_000]
BYTES = [b"", b"\0", b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"b" * 126, b"b" * 65_536]
CODES = [0, 999, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1011, 1012, 1013, 1014, 1015, 1016, 2999, 3000, 4999, 5000]


def frame(rng, server, first, payload, length_form=None):
    size = len(payload)
    form = length_form or (0 if size < 126 else 2 if size < 65_536 else 8)
    head = {0: bytes([size & 127]), 2: b"\x7e" + struct.pack(">H", size & 0xFFFF), 8: b"\x7f" + struct.pack(">Q", size)}[form]
    masked = server if rng.random() > 0.01 else not server
    if not masked:
        return bytes([first]) + head + payload
    mask = rng.randbytes(4)
    repeated = mask * (size // 4 + 1)
    body = (int.from_bytes(payload, "big") ^ int.from_bytes(repeated[:size], "big")).to_bytes(size, "big")
    return bytes([first, head[0] | 0x80]) + head[1:] + mask + body


def packed(rng, payload):
    """As RFC 7692 7.2.1 has it, and sometimes damaged."""
    compressor = zlib.compressobj(rng.choice((0, 1, 6, 9)), zlib.DEFLATED, -rng.choice((9, 12, 15)), 8, rng.choice((0, zlib.Z_FIXED)))
    half = len(payload) // 2 if rng.random() < 0.3 else 0
    out = compressor.compress(payload[:half]) + (compressor.flush(zlib.Z_SYNC_FLUSH) if half else b"")
    out += compressor.compress(payload[half:])
    # The last block may say that it is the last (7.2.3.4).
    out += compressor.flush(zlib.Z_SYNC_FLUSH)[:-4] if rng.random() < 0.9 else compressor.flush(zlib.Z_FINISH) + b"\0"
    if rng.random() < 0.15:
        at = rng.randrange(len(out))
        out = out[:at] + (b"" if rng.random() < 0.5 else rng.randbytes(1)) + out[at + 1:]
    return out


def messages(rng, server, deflate):
    """A run of frames, mostly right."""
    out = b""
    for _ in range(rng.randrange(1, 6)):
        kind = rng.random()
        if kind < 0.45:
            text = rng.random() < 0.6
            payload = rng.choice(TEXTS).encode() if text else rng.choice(BYTES)
            if text and rng.random() < 0.15:
                payload = payload[:100] + rng.choice(BYTES) + payload[100:]
            squeezed = deflate and rng.random() < 0.7
            if squeezed:
                payload = packed(rng, payload)
            pieces = rng.choice((1, 1, 2, 3))
            cuts = sorted(rng.randrange(len(payload) + 1) for _ in range(pieces - 1))
            for i, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(payload)])):
                first = (0 if i else 1 if text else 2) | (0x80 if i == pieces - 1 else 0) | (0x40 if squeezed and not i else 0)
                out += frame(rng, server, first, payload[begin:end])
                # wsproto forgets by a control frame that the message around it is compressed.
                if rng.random() < 0.2 and not squeezed:
                    out += frame(rng, server, rng.choice((0x89, 0x8A)), rng.randbytes(rng.randrange(126)))
        elif kind < 0.6:
            out += frame(rng, server, rng.choice((0x89, 0x8A)), rng.randbytes(rng.choice((0, 5, 125, 126))))
        elif kind < 0.75:
            reason = rng.choice((b"", b"bye", "κ".encode(), b"\xce"))
            out += frame(rng, server, 0x88, struct.pack(">H", rng.choice(CODES)) + reason)
        elif kind < 0.8:
            out += frame(rng, server, 0x88, rng.choice((b"", b"\x03")))
        elif kind < 0.9:
            out += frame(rng, server, rng.randrange(256), rng.randbytes(rng.randrange(20)))
        else:
            out += frame(rng, server, 0x82, rng.randbytes(rng.choice((3, 125, 126, 200))), rng.choice((2, 8)))
    if rng.random() < 0.3 and out:
        at = rng.randrange(len(out))
        out = out[:at] + (b"" if rng.random() < 0.5 else rng.randbytes(1)) + out[at + 1:]
    return out


def pieces_of(rng, data):
    pieces = []
    while data:
        size = len(data) if rng.random() < 0.2 else rng.choice((1, 2, 3, 7, 100, 5000))
        pieces.append(data[:size])
        data = data[size:]
    return pieces


def theirs(server, deflate, pieces):
    """As frames_opinion says it, and whether wsproto waits for the rest of something."""
    from wsproto.extensions import PerMessageDeflate  # noqa: PLC0415
    from wsproto.frame_protocol import FrameProtocol, Opcode, ParseFailed  # noqa: PLC0415

    extension = PerMessageDeflate()
    extension.finalize("permessage-deflate; server_no_context_takeover; client_no_context_takeover")
    protocol = FrameProtocol(client=not server, extensions=[extension] if deflate else [])
    events, kept = [], b""
    try:
        for piece in pieces:
            protocol.receive_bytes(piece)
            for got in protocol.received_frames():
                if got.opcode in (Opcode.TEXT, Opcode.BINARY):
                    kept += got.payload.encode() if isinstance(got.payload, str) else bytes(got.payload)
                    if got.message_finished:
                        events.append(("text" if got.opcode is Opcode.TEXT else "binary", kept.hex() or "-"))
                        kept = b""
                elif got.opcode is Opcode.PING:
                    events.append(("ping", bytes(got.payload).hex() or "-"))
                elif got.opcode is Opcode.CLOSE:
                    events.append(("close", str(int(got.payload[0]))))
                    return events
    except ParseFailed as failure:
        events.append(("lost", str(int(failure.code))))
    return events


def difference(deflate, our, their):
    """None, or what is wrong."""
    if our == their:
        return None
    if our and our[-1][0] == "cut":
        return "another meaning to ourselves"
    if our and our[-1][0] == "lost":
        if their == our[:-1]:
            return None  # earlier: its head has come, and not yet its payload
        if our[-1][1] in (STRICTER_PACKED if deflate else STRICTER) and their[: len(our) - 1] == our[:-1]:
            return None
    if our and our[-1] == ("lost", "1007") and their[: len(our) - 1] == our[:-1]:
        # Earlier: by the first byte that ends all hope of UTF-8. Python's decoder waits for another, behind which it may
        # find a control frame, or one that breaks the protocol.
        if their[-1:] in ([("lost", "1007")], [("lost", "1002")]):
            return None
    before = len(their) - 1
    read_since = any(kind in ("text", "binary") for kind, _ in our[before:])
    if deflate and their[-1:] == [("lost", "1007")] and our[:before] == their[:-1] and not read_since:
        return None  # earlier: by a part of a compressed message, which we unpack once all of it has come
    if our and our[-1] == ("close", "1014") and their == [*our[:-1], ("lost", "1002")]:
        return None
    return "another meaning"


def shown(events):
    return "; ".join(f"{kind} {what[:40]}{'…' * (len(what) > 40)}" for kind, what in events)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("opinion", type=Path)
    parser.add_argument("--environment", type=Path, required=True)
    parser.add_argument("--cases", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    environment.run_in(args.environment, [WSPROTO])

    rng = random.Random(args.seed)
    found, alike, refused, unpacked = 0, 0, 0, 0
    with subprocess.Popen([args.opinion], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as opinion:
        for _ in range(args.cases):
            server = rng.random() < 0.6
            deflate = rng.random() < 0.5
            data = messages(rng, server, deflate)
            pieces = pieces_of(rng, data)
            if not pieces:
                continue
            end = ("s" if server else "c") + ("z" if deflate else "")
            opinion.stdin.write(end + " " + ",".join(piece.hex() for piece in pieces) + "\n")
            opinion.stdin.flush()
            line = opinion.stdout.readline().strip()
            our = [tuple(event.split(" ")) for event in line.split(" | ") if event]
            their = theirs(server, deflate, pieces)
            alike += our == their
            unpacked += our == their and deflate and any(event[0] in ("text", "binary") for event in our)
            refused += bool(our) and our[-1][0] == "lost"
            wrong = difference(deflate, our, their)
            if wrong:
                found += 1
                if found <= 10:
                    print(f"{wrong}\n  bytes:   {data[:200].hex()} …{data[-40:].hex()}\n  ours:    {shown(our)}\n  wsproto: {shown(their)}")
        opinion.stdin.close()
    print(f"{args.cases} runs of seed {args.seed}: {alike} read alike, {unpacked} of them with compression, {refused} refused, {found} differences that are not listed")
    sys.exit(1 if found or alike < args.cases // 2 or unpacked < args.cases // 10 else 0)


if __name__ == "__main__":
    main()
