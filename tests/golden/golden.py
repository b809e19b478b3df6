#!/usr/bin/env python3
"""What goes over the wire, byte for byte, held against what went over it before:

    golden.py WIRECALL [--write] [--flags FLAGS] [NAME ...]

replies.txt has the reply to each input of fuzz/corpus, sent to the demo server by a connection of its own that ends
its side. conversations/*.txt are conversations of several connections with one broker or demo server. --write records
both anew: whoever changes what a peer sees reads the difference, `git diff tests/golden`, and commits it.

A conversation is a file of lines. `#` begins a comment, `server` the flags of the server, `principals` what its file of
principals has, and the rest is done in order:

    open A            a TCP connection, called A
    A> TEXT           sent by A, with a line feed
    A>> TEXT          sent by A, without
    A< TEXT           a line that A receives; A<< TEXT what no line feed ends
    end A             A ends its side of the connection, and receives up to the end of the other
    reset A           A resets the connection
    hangup            the server reads its principals anew: those of the last line `principals`

In TEXT a backslash begins an escape, as in Python's bytes. {port} is the server's port, {session A} the session that A
was told, {id A} the id of the request that A has received last, {subscription A} the id of its last subscription.
Other things that differ from run to run are received as <...>."""

import argparse
import contextlib
import difflib
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE.parents[1] / "fuzz" / "corpus"
CUT_BY_PREFIX = ["session", "http", "frames"]  # their first two bytes say how the fuzzer cuts the rest
PATIENCE_S = 60
LINE_FEED = b"\n"
QUIET_S = 0.15  # what is recorded ends when nothing has come for so long; what is checked waits for what it expects
# Small limits, so that small inputs reach them.
DEMO = ["--demo", "--max-message-size", "4096", "--limits-batch", "5", "--limits-depth", "32"]
TOLD = {
    "session": rb'"session":"([^"]+)"',
    "id": rb'(?m)^(?=.*"method")(?=.*"id" ?: ?(\d+))',
    "subscription": rb'"(0x[0-9a-f]{32})"',
}
MASKS = [
    (TOLD["session"], b'"session":"<session>"'),
    (TOLD["subscription"], b'"<subscription>"'),
    (rb'"version":"\d+\.\d+\.\d+"', b'"version":"<version>"'),
    (rb"(?m)^Date: [^\r\n]*", b"Date: <date>"),
    (rb"(version=0\.0\.4[^\n]*\nContent-Length: )\d+", rb"\1<number>"),
    (rb"(?m)^(wirecall_\w+(?:\{[^\n]*\})?) (?:[\d.e+-]+|NaN)$", rb"\1 <number>"),
    (rb'"(connected_ms|uptime_ms|bytes_in|bytes_out|pid|ms|retry_after_ms)":[\d.]+', rb'"\1":<number>'),
]


def escaped(data):
    """One line of ASCII; bytes other than printable ASCII are escapes."""
    return data.decode("latin-1").replace("\\", "\\\\").translate(
        {c: f"\\x{c:02x}" for c in [*range(32), *range(127, 256)]} | {9: "\\t", 10: "\\n", 13: "\\r"})


def unescaped(text):
    return text.encode("latin-1").decode("unicode_escape").encode("latin-1")


class Server:
    """A process of the command, with the principals that a conversation gives it."""

    def __init__(self, tool, flags, principals=None):
        self.folder = tempfile.TemporaryDirectory()
        self.principals = pathlib.Path(self.folder.name) / "principals.json"
        flags = [tool, "serve", "--host", "127.0.0.1", "--port", "0", *flags]
        if principals is not None:
            self.set_principals(principals)
            flags += ["--principals-file", str(self.principals)]
        self.process = subprocess.Popen(
            flags, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.log = b""
        self.port = int(self.read_log_until(rb"127\.0\.0\.1:(\d+)")[1])

    def read_log_until(self, pattern):
        while not (found := re.search(pattern, self.log)):
            line = self.process.stderr.readline()
            if not line:
                sys.exit(f"the server has ended:\n{self.log.decode()}")
            self.log += line
        return found

    def set_principals(self, text):
        self.principals.touch(mode=0o600)
        self.principals.write_text(text)

    def hangup(self):
        self.log = b""
        self.process.send_signal(signal.SIGHUP)
        self.read_log_until(rb"principals")

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
        connection.settimeout(PATIENCE_S)
        return connection

    def masked(self, data):
        data = data.replace(str(self.port).encode(), b"{port}")
        for pattern, instead in MASKS:
            data = re.sub(pattern, instead, data)
        return data

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        self.folder.cleanup()


# ---- replies ----


def inputs():
    for folder in ["handle", "message", "json_scan", "session", "http", "frames", "msgpack"]:
        for file in sorted((CORPUS / folder).iterdir()):
            data = file.read_bytes()
            yield f"{folder}/{file.name}", data[2:] if folder in CUT_BY_PREFIX else data


def reply_to(server, data):
    with server.connect() as connection:
        received = b""
        with contextlib.suppress(ConnectionError):  # the server may have closed before it has read all
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while some := connection.recv(1 << 16):
                received += some
        return server.masked(received)


def replies(tool, extra):
    text = ["# The reply to each input of fuzz/corpus; golden.py writes this.\n"]
    with Server(tool, DEMO + extra) as server:
        for name, data in inputs():
            text.append(f"\n== {name}\n> {escaped(data)}\n")
            text += [f"< {escaped(line)}\n" for line in reply_to(server, data).splitlines(keepends=True)]
    return "".join(text)


# ---- conversations ----


class Peer:
    def __init__(self, server):
        self.server = server
        self.connection = server.connect()
        self.received = b""
        self.told = {"session": "", "id": "", "subscription": ""}

    def send(self, data):
        self.connection.sendall(data)

    def receive(self):
        """False at the end of the connection."""
        some = self.connection.recv(1 << 16)
        self.received += some
        return bool(some)

    def take(self, size):
        taken, self.received = self.received[:size], self.received[size:]
        for word, pattern in TOLD.items():
            if found := re.search(pattern, taken):
                self.told[word] = found[1].decode()
        return self.server.masked(taken)

    def line(self):
        """The next line, or what is left at the end of the connection."""
        while b"\n" not in self.received and self.receive():
            pass
        return self.take(self.received.find(b"\n") + 1 or len(self.received))

    def unended(self, expected):
        """What is as long as that, or what is left at the end of the connection."""
        while len(self.server.masked(self.received)) < len(expected) and self.receive():
            pass
        return self.take(len(expected) if self.received.startswith(expected) else len(self.received))

    def what_has_come(self):
        """For who records: all that comes until nothing does."""
        self.connection.settimeout(QUIET_S)
        with contextlib.suppress(TimeoutError):
            while self.receive():
                pass
        self.connection.settimeout(PATIENCE_S)
        while self.received:
            yield self.take(self.received.find(b"\n") + 1 or len(self.received))


class Conversation:
    """One that is had. `writes`: what is received is recorded instead of compared."""

    def __init__(self, tool, path, writes, extra):
        self.tool, self.path, self.writes, self.extra = tool, path, writes, extra
        self.lines = path.read_text().splitlines()
        self.recorded = []
        self.peers = {}
        self.flags, self.principals = [], None
        self.server = None

    def have(self):
        with contextlib.ExitStack() as stack:
            for number, line in enumerate(self.lines, 1):
                try:
                    self.step(line, stack)
                except (AssertionError, OSError, KeyError) as error:
                    sys.exit(f"{self.path}:{number}: {error!r}")
            for name, peer in self.peers.items():
                peer.connection.close()
                assert self.writes or not peer.received, f"{name} has received {escaped(peer.received)} besides"
        return "".join(f"{line}\n" for line in self.recorded)

    def step(self, line, stack):
        receives = re.match(r"(\w+)(<<?)(?: (.*))?$", line)
        if receives:
            if not self.writes:
                self.compare(*receives.groups())
            return
        self.recorded.append(line)
        sends = re.match(r"(\w+)(>>?) (.*)$", line)
        word, _, rest = line.partition(" ")
        if word == "server":
            self.flags = rest.split()
        elif word == "principals":
            self.principals = rest
        elif not line or word == "#":
            return
        else:
            if self.server is None:
                self.server = stack.enter_context(Server(self.tool, self.flags + self.extra, self.principals))
            if sends:
                self.send(*sends.groups())
            else:
                self.do(word, rest)
            if self.writes:
                self.record()

    def do(self, word, rest):
        match word:
            case "open":
                self.peers[rest] = Peer(self.server)
            case "end":
                self.peers[rest].connection.shutdown(socket.SHUT_WR)
            case "reset":
                connection = self.peers.pop(rest).connection
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()
            case "hangup":
                self.server.set_principals(self.principals)
                self.server.hangup()
            case _:
                raise AssertionError(f"{word} is no step")

    def send(self, name, arrows, text):
        text = re.sub(r"\{(session|id|subscription) (\w+)\}", lambda match: self.peers[match[2]].told[match[1]], text)
        text = text.replace("{port}", str(self.server.port))
        self.peers[name].send(unescaped(text) + (b"\n" if arrows == ">" else b""))

    def compare(self, name, arrows, text):
        peer = self.peers[name]
        got = escaped(peer.line().removesuffix(b"\n") if arrows == "<" else peer.unended(unescaped(text)))
        assert got == (text or ""), f"{name} receives\n  {got}\ninstead of\n  {text}"

    def record(self):
        for name, peer in self.peers.items():
            for piece in peer.what_has_come():
                arrows = "<" if piece.endswith(b"\n") else "<<"
                self.recorded.append(f"{name}{arrows} {escaped(piece.removesuffix(LINE_FEED))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", metavar="WIRECALL")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--flags", default="", help="more flags of every server")
    parser.add_argument("names", nargs="*", help="of conversations; all, and the replies, unless given")
    arguments = parser.parse_args()

    failed = False
    if not arguments.names:
        now, file = replies(arguments.tool, arguments.flags.split()), HERE / "replies.txt"
        if arguments.write:
            file.write_text(now)
        elif now != (before := file.read_text()):
            failed = True
            print("the replies differ; where that is meant, record them by --write:")
            sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), now.splitlines(True), "before", "now"))
    for path in sorted((HERE / "conversations").glob("*.txt")):
        if arguments.names and path.stem not in arguments.names:
            continue
        said = Conversation(arguments.tool, path, arguments.write, arguments.flags.split()).have()
        if arguments.write:
            path.write_text(said)
    sys.exit(failed)


if __name__ == "__main__":
    main()
