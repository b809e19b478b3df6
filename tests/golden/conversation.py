"""Conversations of several connections with a server, and of clients with a script that serves them; golden.py says how
they are written. Each has processes, ports and a folder of its own, so several can be had at once."""

import contextlib
import json
import os
import pathlib
import re
import select
import shlex
import signal
import socket
import struct
import subprocess
import tempfile
import time

PATIENCE_S = 60
QUIET_S = 0.2  # what is recorded ends when nothing has come for so long; what is checked waits for what it expects
TOLD = {
    "session": rb'(?:"session":"|\xa7session\xd90)([0-9a-f]{48})',
    "id": rb'(?m)^(?=.*"method")(?=.*"id" ?: ?(\d+|"[^"]*"))',
    "subscription": rb"(0x[0-9a-f]{32})",
    "event": rb"(?m)^id: ([0-9a-f]{16}-\d+)$",
}
PACKED_ID = rb"(?s)\xa2id(?:(?P<b>[\x00-\x7f])|\xcc(?P<B>.)|\xcd(?P<H>..)|\xce(?P<I>....))"
MASKS = [
    (rb'("session":"|\xa7session\xd90)[0-9a-f]{48}', rb"\1<session>"),
    (TOLD["subscription"], b"<subscription>"),
    (rb"(?m)^id: [0-9a-f]{16}-", b"id: <epoch>-"),
    (rb'("version":"|\xa7version\xa5|\bwirecall )\d+\.\d+\.\d+', rb"\1<version>"),
    (rb"(?m)^Date: [^\r\n]*", b"Date: <date>"),
    (rb"(version=0\.0\.4[^\n]*\nContent-Length: )\d+", rb"\1<number>"),
    (rb"(?m)^(wirecall_\w+(?:\{[^\n]*\})?) (?:[\d.e+-]+|NaN)$", rb"\1 <number>"),
    (rb'"(connected_ms|uptime_ms|bytes_in|bytes_out|pid|ms|retry_after_ms)":[\d.]+', rb'"\1":<number>'),
    (rb'("time":")[^"]+', rb"\1<time>"),
    # The time that is left, in a request that a broker hands on.
    (rb'("timeout_ms": )\d+', rb"\1<number>"),
    (rb"(?s)(\xaatimeout_ms\xcd)..(\xa5extra)", rb"\1<number>\2"),
]
# What a client says of the time that is left.
CLIENT_MASKS = [
    *MASKS,
    (rb'("timeout_ms":|(?m:^)Wirecall-Timeout-Ms: )\d+', rb"\1<number>"),
    (rb'("seconds":)[\d.]+', rb"\1<number>"),
    (rb"(?s)(\xaatimeout_ms)(?:\xcc.|\xcd..|\xce....|[\x00-\x7f])", rb"\1<number>"),
]


def escaped(data):
    """One line of ASCII; bytes other than printable ASCII are escapes."""
    return data.decode("latin-1").replace("\\", "\\\\").translate(
        {c: f"\\x{c:02x}" for c in [*range(32), *range(127, 256)]} | {9: "\\t", 10: "\\n", 13: "\\r"})


def unescaped(text):
    return text.encode("latin-1").decode("unicode_escape").encode("latin-1")


def packed(value):
    """MessagePack of what JSON has, in its shortest form."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, float):
        return struct.pack(">Bd", 0xCB, value)
    if isinstance(value, int):
        if -32 <= value < 128:
            return struct.pack("b", value)
        for first, form in enumerate("BHIQ", 0xCC) if value > 0 else enumerate("bhiq", 0xD0):
            with contextlib.suppress(struct.error):
                return struct.pack(">B" + form, first, value)
    if isinstance(value, str):
        data = value.encode()
        return packed_size(len(data), 0xA0, 32, 0xDA, 0xD9) + data
    if isinstance(value, list):
        return packed_size(len(value), 0x90, 16, 0xDC) + b"".join(map(packed, value))
    parts = [packed(part) for member in value.items() for part in member]
    return packed_size(len(value), 0x80, 16, 0xDE) + b"".join(parts)


def packed_size(size, short, short_end, long, byte=None):
    if size < short_end:
        return bytes([short + size])
    return bytes([byte, size]) if byte and size < 256 else struct.pack(">BH", long, size)


class Process:
    """One of the command's, or of Python, in a folder that is all it knows of the machine."""

    def __init__(self, words, folder, environment=None, **streams):
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("WIRECALL_", "XDG_"))}
        variables |= {"HOME": folder, "XDG_CONFIG_HOME": folder, "LC_ALL": "C", "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, cwd=folder, env=variables | (environment or {}), **streams)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Server(Process):
    """With the principals that a conversation gives it."""

    def __init__(self, tool, flags, folder, principals=None):
        self.principals = pathlib.Path(folder) / "principals.json"
        words = [tool, "serve", "--host", "127.0.0.1", "--port", "0", *flags]
        if principals is not None:
            self.set_principals(principals)
            words += ["--principals-file", str(self.principals)]
        super().__init__(words, folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.log = b""
        self.port = int(self.read_log_until(rb"127\.0\.0\.1:(\d+)")[1])

    def read_log_until(self, pattern):
        while not (found := re.search(pattern, self.log)):
            line = self.process.stderr.readline()
            assert line, f"the server has ended:\n{self.log.decode()}"
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
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)

    def reset(self, connection):
        """Returns when the server has closed its end, and so has seen it."""
        ends = [f"0100007F:{port:04X}" for port in (connection.getpeername()[1], connection.getsockname()[1])]
        rows = [row.split() for row in pathlib.Path("/proc/net/tcp").read_text().splitlines()]
        inode, = {row[9] for row in rows if row[1:3] == ends} - {"0"}  # of an earlier connection of these ports
        reset(connection)
        limit = time.monotonic() + PATIENCE_S
        while f"socket:[{inode}]" in self.descriptors():
            assert time.monotonic() < limit, "the server does not close a connection that is reset"
            os.sched_yield()

    def descriptors(self):
        folder = f"/proc/{self.process.pid}/fd"
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):  # closed since
                yield os.readlink(f"{folder}/{name}")


class Peer:
    """One end of a connection, or what reads an output of a process."""

    def __init__(self, connection, masked):
        self.connection, self.masked = connection, masked
        self.connection.settimeout(PATIENCE_S)
        self.received = b""
        self.ended = False
        self.told = dict.fromkeys(TOLD, "")

    def send(self, data):
        with contextlib.suppress(ConnectionError):  # what it has closed it is not to receive
            self.connection.sendall(data)

    def receive(self):
        """False at the end of the connection."""
        try:
            some = self.connection.recv(1 << 16)
        except ConnectionError:
            some = b""
        self.received += some
        self.ended = not some
        return bool(some)

    def take(self, size):
        taken, self.received = self.received[:size], self.received[size:]
        for word, pattern in TOLD.items():
            if found := re.search(pattern, taken):
                self.told[word] = found[1].decode()
        if b"\xa6method" in taken and (found := re.search(PACKED_ID, taken)):
            self.told["id"] = str(struct.unpack(">" + found.lastgroup, found[found.lastgroup])[0])
        return self.masked(taken)

    def line_size(self):
        return self.received.find(b"\n") + 1

    def message_size(self):
        """Of one behind its length; 0 while it has not come."""
        size = 4 + int.from_bytes(self.received[:4])
        return size if 4 <= len(self.received) and size <= len(self.received) else 0

    def first(self, size_of):
        """The next of them, or what is left at the end of the connection."""
        while not (size := size_of()) and self.receive():
            pass
        return self.take(size or len(self.received))

    def unended(self, expected):
        """What is as long as that, or what is left at the end of the connection."""
        while len(self.masked(self.received)) < len(expected) and self.receive():
            pass
        return self.take(len(expected) if self.received.startswith(expected) else len(self.received))

    def get(self, arrows, expected):
        if arrows == "<#":
            return self.first(self.message_size)[4:]
        return self.first(self.line_size).removesuffix(b"\n") if arrows == "<" else self.unended(expected)

    def what_has_come(self):
        """Each with its arrows."""
        while self.received:
            if self.received.startswith(b"\0") and (size := self.message_size()):
                yield "<#", self.take(size)[4:]
            elif size := self.line_size():
                yield "<", self.take(size).removesuffix(b"\n")
            else:
                yield "<<", self.take(len(self.received))


class Conversation:
    """One that is had. `writes`: what is received is recorded instead of compared."""

    def __init__(self, path, tool, python=None, writes=False, extra=()):
        self.path, self.tool, self.python, self.writes, self.extra = path, tool, python, writes, list(extra)
        self.lines = path.read_text("utf-8").splitlines()
        self.recorded = []
        self.peers = {}
        self.environment = {}
        self.flags, self.principals = [], None
        self.server = self.listener = self.process = None
        self.port, self.program = "", ""

    def have(self):
        """What is to be recorded. AssertionError where something else comes than what has been."""
        with contextlib.ExitStack() as self.stack:
            self.folder = self.stack.enter_context(tempfile.TemporaryDirectory())
            for number, line in enumerate(self.lines, 1):
                try:
                    self.step(line)
                except (AssertionError, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as error:
                    raise AssertionError(f"{self.path}:{number}: {error}") from error
            self.leave(list(self.peers))
        return "".join(f"{line}\n" for line in self.recorded)

    def step(self, line):
        receives = re.match(r"(\w+)(<[<#]?)(?: (.*))?$", line)
        if receives:
            if not self.writes:
                self.compare(*receives.groups())
            return
        self.recorded.append(line)
        sends = re.match(r"(\w+)(>[>#]?) (.*)$", line)
        word, _, rest = line.partition(" ")
        if word == "server":
            self.flags = rest.split()
        elif word == "principals":
            self.principals = rest
        elif word == "|":
            self.program += rest + "\n"
        elif not line or word == "#":
            return
        else:
            if sends:
                self.send(*sends.groups())
            else:
                self.do(word, rest)
            if self.writes:
                self.record()

    def do(self, word, rest):
        name, _, text = rest.partition(" ")
        match word:
            case "open":
                self.start_server()
                self.join(name, self.server.connect())
            case "end":
                with contextlib.suppress(OSError):  # where the other side has ended all of it
                    self.peers[name].connection.shutdown(socket.SHUT_WR)
            case "reset":
                (self.server.reset if self.server else reset)(self.peers.pop(name).connection)
            case "hangup":
                self.server.set_principals(self.principals)
                self.server.hangup()
            case "listen":
                self.listen(name)
            case "accept":
                self.join(name, self.listener.accept()[0])
            case "file":
                (pathlib.Path(self.folder) / name).write_bytes(unescaped(text))
            case "env":
                self.environment[name] = self.filled(text)
            case "run":
                self.run([self.tool, *(word.encode() for word in shlex.split(self.filled(rest)))])
            case "python":
                self.run([self.python, "-c", self.filled(self.program)])
                self.program = ""
            case "signal":
                self.process.process.send_signal(getattr(signal, name))
            case "wait":
                self.wait()
            case _:
                raise AssertionError(f"{word} is no step")

    # ---- processes ----

    def start_server(self):
        if self.server is None:
            server = Server(self.tool, self.flags + self.extra, self.folder, self.principals)
            self.server = self.stack.enter_context(server)
            self.port = str(self.server.port)

    def listen(self, kind):
        if self.listener is not None:
            self.listener.close()
        self.listener = socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET)
        self.stack.callback(self.listener.close)
        self.listener.bind(f"{self.folder}/socket" if kind == "unix" else ("127.0.0.1", 0))
        self.listener.settimeout(PATIENCE_S)
        if kind != "closed":  # else a place at which nobody listens
            self.listener.listen()
        self.port = "" if kind == "unix" else str(self.listener.getsockname()[1])

    def run(self, words):
        if self.server is None and self.flags:
            self.start_server()
        self.leave([name for name in ("out", "err", "status") if name in self.peers])
        streams = {}
        for name, stream in ("out", "stdout"), ("err", "stderr"):
            here, streams[stream] = socket.socketpair()
            self.join(name, here)
        process = Process(words, self.folder, self.environment, **streams)
        self.process = self.stack.enter_context(process)
        for stream in streams.values():
            stream.close()

    def wait(self):
        """For the end of the process and of all that it has connected to."""
        status = self.process.process.wait(PATIENCE_S)
        here, there = socket.socketpair()
        there.sendall(b"%d\n" % status)
        there.close()
        self.join("status", here)

    # ---- peers ----

    def join(self, name, connection):
        if name in self.peers:
            self.leave([name])
        self.peers[name] = Peer(connection, self.masked)

    def leave(self, names):
        for name in names:
            peer = self.peers.pop(name)
            if not self.writes and name in ("out", "err") and self.process.process.returncode is not None:
                while peer.receive():
                    pass
            peer.connection.close()
            assert self.writes or not peer.received, f"{name} has received {escaped(peer.received)} besides"

    def masked(self, data):
        if self.port:
            data = re.sub(rb"(?<!\d)%s(?!\d)" % self.port.encode(), b"{port}", data)
        data = data.replace(self.folder.encode(), b"{folder}").replace(str(self.tool).encode(), b"{wirecall}")
        for pattern, instead in CLIENT_MASKS if self.listener else MASKS:
            data = re.sub(pattern, instead, data)
        return data

    def filled(self, text):
        text = re.sub(r"\{(session|id|subscription|event) (\w+)\}", lambda match: self.peers[match[2]].told[match[1]], text)
        return text.replace("{port}", self.port).replace("{folder}", self.folder)

    def send(self, name, arrows, text):
        text = self.filled(text)
        data = packed(json.loads(text)) if arrows == ">#" else unescaped(text)
        data = data.replace(b"{length}", b"%d" % len(data.partition(b"\r\n\r\n")[2]))
        if arrows == ">#":
            data = len(data).to_bytes(4) + data
        self.peers[name].send(data + (b"\n" if arrows == ">" else b""))

    def compare(self, name, arrows, text):
        got = escaped(self.peers[name].get(arrows, unescaped(text or "")))
        assert got == (text or ""), f"{name} receives\n  {got}\ninstead of\n  {text}"

    def record(self):
        """All that comes until nothing does."""
        until = time.monotonic() + QUIET_S
        while (left := until - time.monotonic()) > 0:
            open_ones = [peer for peer in self.peers.values() if not peer.ended]
            for connection in select.select([peer.connection for peer in open_ones], [], [], left)[0]:
                next(peer for peer in open_ones if peer.connection is connection).receive()
                until = time.monotonic() + QUIET_S
        for name, peer in self.peers.items():
            for arrows, data in peer.what_has_come():
                self.recorded.append(f"{name}{arrows} {escaped(data)}")
