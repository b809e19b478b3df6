#!/usr/bin/env python3
"""A storm of clients of all framings, in plain text and by TLS, at one broker, which is best built with sanitizers:

    storm.py [WIRECALL] [--seconds S] [--engine epoll|uring] [--threads N] [--peers N] [--seed N]

Each client connects, does what a random sequence says (calls, batches, streams with credit, cancels, registrations,
subscriptions, events that are retained and cleared, looking on, coming back by resume, junk, slow reading) and leaves in
order, by half-close or by reset, while SIGHUP changes the principals. Each call ends once, at its own connection, with its
own nonce; items come in order and within their credit; each line is one JSON value; in the end the broker has its
descriptors back, nothing in flight, and drains with exit status 0. --break has the answers lost, doubled or swapped before
they are looked at: then the storm has to fail."""

import argparse
import asyncio
import contextlib
import itertools
import json
import logging
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

from peers import reset
import certificates
import framings

ROOT = pathlib.Path(__file__).resolve().parents[2]
METHODS = ["storm.work", "storm.other", "storm.gpu.>", "storm.gpu.add"]
CALLED = ["storm.work", "storm.other", "storm.gpu.mul", "storm.gpu.add", "storm.none"]
TOPICS = ["news.a", "news.b", "news.a.b", "weather"]
PATTERNS = ["news.*", "news.>", ">", "weather", "*.a.*"]
TEXTS = ["a\nb\r\n", '{"jsonrpc":"2.0","result":1,"id":1}\n', "\u2028\x01", "x" * 3000, ""]
CALL_MS = 3000
PATIENCE = 60  # seconds that an answer may take beyond that, on a busy machine with sanitizers
PATIENCE_WITH_BROKEN = 2  # there nobody has to wait for long to see that an answer does not come


class Call:
    def __init__(self, nonce, credit=None):
        self.nonce = nonce
        self.credit = credit
        self.items = 0


class Peer:
    numbers = itertools.count(1)
    nonces = itertools.count(7919, 104729)

    def __init__(self, storm, framing):
        self.storm = storm
        self.random = storm.random
        self.framing = framing()
        self.number = next(self.numbers)
        self.principal = self.random.choice(["ada", "bob"])
        self.waiting = {}
        self.posts = []  # by HTTP: the ids of each request that has no response yet
        self.sequence = 0
        self.junk = False
        self.slow = False
        self.last_event = {}
        self.session = None
        self.finished = False  # sends no more
        self.gone = asyncio.Event()

    # ---- out ----

    async def open(self):
        tls = self.random.choice(self.storm.contexts)
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.storm.port, limit=1 << 20, ssl=tls,
                                                                 server_hostname="localhost" if tls else None)
        self.reading = asyncio.create_task(self.read())
        self.writer.write(self.framing.opening)
        if self.framing.connected:
            await self.hello(self.random.choice([None, "ada", "worker"]))

    def send(self, message):
        if self.finished or self.gone.is_set():
            return None
        if self.framing.connected:
            return self.writer.write(self.framing.write(message))
        parts = message if isinstance(message, list) else [message]
        self.posts.append([one.get("id") for one in parts if isinstance(one, dict)])
        head, _, body = self.framing.write(message).partition(b"\r\n\r\n")
        return self.writer.write(head + b"\r\nAuthorization: Bearer token-of-%s\r\n\r\n" % self.principal.encode() + body)

    def request(self, method, params, **more):
        self.sequence += 1
        name = f"{self.number}:{self.sequence}"
        self.waiting[name] = Call(params.get("nonce"), more.get("stream"))
        self.storm.calls += 1
        return {"jsonrpc": "2.0", "method": method, "params": params, "id": name, "timeout_ms": CALL_MS, **more}

    def notify(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def work(self, **more):
        params = {"nonce": next(self.nonces), "text": self.random.choice(TEXTS)}
        return self.request(self.random.choice(CALLED), params, **more)

    async def hello(self, name=None, resume=None):
        params = {"token": f"token-of-{self.principal}", "name": name, "resume": resume}
        self.send(self.request("rpc.hello", {key: value for key, value in params.items() if value}))

    # ---- in ----

    async def read(self):
        try:
            while some := await self.reader.read(1 << 16):
                for message in self.framing.read(some):
                    self.answered_as_a_whole(message)
                    if message is not None:
                        for one in message if isinstance(message, list) else [message]:
                            self.receive(one)
                if self.framing.due and not self.finished:
                    self.writer.write(self.framing.due)
                self.framing.due = b""
                while self.slow:
                    await asyncio.sleep(0.05)
        except (ValueError, KeyError, TypeError) as error:
            if not self.junk:
                self.storm.fault(self, f"received what is no message: {error!r}, in {self.framing.received[:200]}")
        except OSError:
            pass
        finally:
            self.gone.set()

    def answered_as_a_whole(self, message):
        """A batch that a reload of the principals has met on its way is refused by one error without an id."""
        posted = self.posts.pop(0) if self.posts else []
        if isinstance(message, dict) and message.get("id") is None and "error" in message:
            for name in posted:
                if isinstance(name, str):
                    self.waiting.pop(name, None)

    def receive(self, message):
        if "method" in message:
            return self.serve(message) if "id" in message else self.notified(message["method"], message.get("params"))
        broken = self.storm.broken
        if broken and isinstance(message.get("id"), str) and self.random.random() < 0.05:
            if broken == "loses":
                return None
            if broken == "doubles":
                self.outcome(message)
            if broken == "swaps":
                return self.random.choice(self.storm.peers).outcome(message)
        return self.outcome(message)

    def outcome(self, message):
        call = self.waiting.pop(message.get("id"), None) if isinstance(message.get("id"), str) else None
        if call is None:
            if not (self.junk or message.get("id") is None and "error" in message):
                self.storm.fault(self, f"nobody waits for {str(message)[:300]}")
            return
        kind = message["error"]["code"] if "error" in message else "result"
        self.storm.outcomes[kind] = self.storm.outcomes.get(kind, 0) + 1
        result = message.get("result")
        if isinstance(result, dict) and "session" in result:
            self.session = result["session"]
        if call.nonce is not None and "result" in message:
            self.check(call, result)

    def check(self, call, value):
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict) and one.get("nonce") != call.nonce:
                self.storm.fault(self, f"{call.nonce} was answered with {str(one)[:200]}")

    def notified(self, method, params):
        if method == "rpc.item":
            call = self.waiting.get(params["id"])
            if call is None:
                return self.storm.fault(self, f"an item that nobody waits for: {str(params)[:200]}")
            if params["seq"] != call.items or call.items >= call.credit:
                self.storm.fault(self, f"item {params['seq']} after {call.items} with credit for {call.credit}")
            call.items += 1
            self.storm.items += 1
            self.check(call, params["value"])
            if self.random.random() < 0.7:
                call.credit += 2
                self.notify("rpc.credit", {"id": params["id"], "n": 2})
        elif isinstance(params, dict) and "publisher" in params:
            self.storm.events += 1
            if not params["retained"]:
                if self.last_event.get(params["publisher"], 0) >= params["seq"]:
                    self.storm.fault(self, f"event {params} twice or out of order")
                self.last_event[params["publisher"]] = params["seq"]

    def serve(self, request):
        if request["method"] == "rpc.ping":
            return self.send({"jsonrpc": "2.0", "result": "pong", "id": request["id"]})
        value = {"nonce": request["params"].get("nonce"), "text": self.random.choice(TEXTS)}
        if "stream" in request:
            for at in range(min(request["stream"], self.random.randrange(4))):
                self.notify("rpc.item", {"id": request["id"], "seq": at, "value": value})
        chance = self.random.random()
        if chance < 0.1:
            return None  # in its time it ends
        outcome = {"error": {"code": 7, "message": "no\nway", "data": {"text": "a\nb"}}} if chance < 0.2 else {"result": value}
        self.send({"jsonrpc": "2.0", **outcome, "id": request["id"]})
        if chance > 0.95:
            self.send({"jsonrpc": "2.0", **outcome, "id": request["id"]})
        return None

    # ---- what it does ----

    async def act(self):
        chance, connected = self.random, self.framing.connected
        does = chance.randrange(16)
        if does < 4:
            more = {"stream": chance.randrange(1, 4)} if connected and chance.random() < 0.4 else {}
            if chance.random() < 0.1:
                more["to"] = "worker"
            self.send(self.work(**more))
        elif does == 4:
            self.send([self.work() for _ in range(chance.randrange(1, 8))])
        elif does == 5:
            method = chance.choice(["rpc.stats", "rpc.methods", "rpc.clients", "rpc.ping", "rpc.discover", "rpc.health"])
            self.send(self.request(method, {}))
        elif does == 6:
            self.send(self.request("rpc.call_all", {"method": "storm.work", "params": {"nonce": 1}, "timeout_ms": 300}))
        elif does == 7:
            params = {"topic": chance.choice(TOPICS), "retain": chance.random() < 0.5}
            if not params["retain"] or chance.random() < 0.7:
                params["params"] = self.event(params["retain"])
            self.send(self.request("rpc.publish", params))
        elif not connected:
            self.send(self.work())
        elif does in (8, 9):
            self.send(self.request("rpc.register", {"method": chance.choice(METHODS), "idempotent": chance.random() < 0.5,
                                                    "concurrency": chance.randrange(1, 5)}))
        elif does == 10:
            self.send(self.request("rpc.subscribe", {"topic": chance.choice(PATTERNS), "last": chance.random() < 0.5,
                                                     "echo": chance.random() < 0.3}))
        elif does == 11:
            self.send(self.request(chance.choice(["rpc.unregister", "rpc.unsubscribe"]),
                                   {chance.choice(["method", "topic"]): chance.choice(METHODS + PATTERNS)}))
        elif does == 12:
            self.notify(chance.choice(TOPICS + CALLED), self.event(False))
        elif does == 13:
            if self.waiting:
                self.notify(chance.choice(["rpc.cancel", "$/cancelRequest"]), {"id": chance.choice(list(self.waiting))})
        elif does == 14:
            await self.rare()
        else:
            await asyncio.sleep(chance.random() * 0.02)
        with contextlib.suppress(OSError):
            await asyncio.wait_for(self.writer.drain(), 5)

    async def rare(self):
        chance = self.random.randrange(6)
        if chance == 0:
            other = self.random.choice(self.storm.peers)
            if other.session and other.principal == self.principal:
                await self.hello("worker", other.session)
        elif chance == 1:
            self.send(self.request("rpc.tap", {"pattern": ">"}))
        elif chance == 2:
            self.slow = not self.slow
        elif chance == 3:
            self.junk = True
            self.send(self.random.choice([{"jsonrpc": "2.0", "method": "storm.work", "id": []}, [], 5,
                                          {"jsonrpc": "2.0", "result": 1, "id": 3}]))
        elif chance == 4 and self.random.random() < 0.1:
            self.send(self.request("rpc.kick", {"client": "worker"}))

    def event(self, retained):
        self.sequence += 1
        return {"publisher": self.number, "seq": self.sequence, "retained": retained, "text": self.random.choice(TEXTS)}

    async def live(self):
        try:
            await self.open()
            for _ in range(self.random.randrange(5, 80)):
                if self.gone.is_set():
                    break
                await self.act()
        except (OSError, asyncio.TimeoutError):
            pass
        await self.leave(self.random.choice(["wait", "wait", "half", "close", "reset"]))

    async def leave(self, how):
        """By "wait" and "half" everything that was asked has to be answered, unless the broker has closed it."""
        if not hasattr(self, "writer"):
            return
        self.slow = False
        if how == "half" and not self.writer.can_write_eof():  # asyncio's TLS cannot
            how = "wait"
        self.finished = how != "wait"
        if how == "half" and not self.gone.is_set():
            with contextlib.suppress(OSError, RuntimeError):
                self.writer.write_eof()
        if how in ("wait", "half"):
            until = time.monotonic() + CALL_MS / 1000 + (PATIENCE_WITH_BROKEN if self.storm.broken else PATIENCE)
            while not (self.gone.is_set() or self.junk) and time.monotonic() < until and any(
                    how == "half" or call.credit is None for call in self.waiting.values()):
                await asyncio.sleep(0.02)
            open_still = [name for name, call in self.waiting.items() if how == "half" or call.credit is None]
            if open_still and not self.gone.is_set() and not self.junk:
                self.storm.fault(self, f"waits in vain for {open_still[:5]} of {len(open_still)}")
        if how == "reset":
            reset(self.writer)
        self.writer.close()
        self.reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.reading


class Storm:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.broken = getattr(options, "break")
        self.faults = []
        self.outcomes = {}
        self.calls = self.items = self.events = self.reloads = 0
        self.peers = []

    def fault(self, peer, text):
        self.faults.append(f"client {peer.number}, {peer.framing.name}: {text}")

    def write_principals(self):
        """Bob may do less, and nothing at all is changed, by turns."""
        self.reloads += 1
        everything = {name: [">"] for name in ("call", "provide", "publish", "subscribe")}
        ada = {"name": "ada", "tokens": ["token-of-ada"], **everything, "admin": True}
        bob = {"name": "bob", "tokens": ["token-of-bob"], **everything}
        if self.reloads % 4 == 3:
            bob["call"] = ["storm.work"]
        self.principals.write_text(json.dumps([bob, ada] if self.reloads % 2 else [ada, bob]))
        self.principals.chmod(0o600)

    def start(self, folder):
        made = certificates.Certificates(folder)
        own = certificates.context(made.cafile, *made.peer_files())
        self.contexts = [None, None, None, certificates.context(made.cafile), own]
        self.principals = pathlib.Path(folder, "principals.json")
        self.write_principals()
        self.log = open(pathlib.Path(folder, "log"), "w+b")  # a file, which nobody has to read for the broker to go on
        command = [self.options.wirecall, "serve", "--port", "0", "--log-level", "error", "--kick-ms", "0",
                   "--engine", self.options.engine, "--threads", str(self.options.threads),
                   "--principals-file", str(self.principals), *made.broker_options()]
        self.broker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.log)
        while not (listening := re.search(r"127\.0\.0\.1:(\d+)", self.told())):
            if self.broker.poll() is not None:
                sys.exit(f"the broker does not start: {self.told()}")
            time.sleep(0.02)
        self.port = int(listening[1])

    def told(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode(errors="replace")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.broker.pid}/fd"))

    async def one_after_another(self, until):
        while time.monotonic() < until and len(self.faults) < 20 and self.broker.poll() is None:
            peer = Peer(self, self.random.choice(framings.ALL))
            self.peers.append(peer)
            await peer.live()
            self.peers.remove(peer)

    async def reload(self, until):
        while time.monotonic() < until and self.broker.poll() is None:
            await asyncio.sleep(0.5 + self.random.random())
            self.write_principals()
            self.broker.send_signal(signal.SIGHUP)

    async def counters(self):
        """What the broker says of itself when everybody has gone."""
        peer = Peer(self, framings.Lines)
        peer.principal = "ada"
        peer.reader, peer.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
        answers = []
        for number, (method, params) in enumerate([("rpc.hello", {"token": "token-of-ada"}), ("rpc.stats", {})]):
            peer.send({"jsonrpc": "2.0", "method": method, "params": params, "id": number})
            answers.append(json.loads(await peer.reader.readline())["result"])
        peer.writer.close()
        return answers[1]

    async def run(self):
        descriptors = self.descriptors()
        until = time.monotonic() + self.options.seconds
        await asyncio.gather(self.reload(until), *(self.one_after_another(until) for _ in range(self.options.peers)))
        if self.broker.poll() is not None:
            return self.faults.append(f"the broker has ended with {self.broker.returncode}")
        patience = time.monotonic() + PATIENCE
        while True:
            stats = await self.counters()
            left = {"calls in flight": stats["counters"]["calls_in_flight"],
                    "provided methods": len([one for one in stats["methods"] if one["providers"]]),
                    "descriptors": max(0, self.descriptors() - descriptors - 1)}
            if not any(left.values()) or time.monotonic() > patience:
                break
            await asyncio.sleep(0.2)
        if any(left.values()):
            self.faults.append(f"left in the end: {left}")
        return None

    def stop(self):
        """It drains; what the sanitizers have to say they say by then."""
        self.broker.send_signal(signal.SIGTERM)
        try:
            status = self.broker.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.broker.kill()
            status = "no end"
        if status != 0 or "Sanitizer" in self.told() or "runtime error" in self.told():
            self.faults.append(f"the broker has ended with {status}:\n{self.told()[-8000:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wirecall", nargs="?", default=str(ROOT / "build" / "wirecall"))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--engine", default="epoll")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peers", type=int, default=30, help="clients at any time")
    parser.add_argument("--break", choices=["loses", "doubles", "swaps"])
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.engine}", flush=True)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # that a connection has gone is no news here
    storm = Storm(options)
    with tempfile.TemporaryDirectory() as folder:
        storm.start(folder)
        try:
            asyncio.run(storm.run())
        finally:
            storm.stop()
    print(f"{next(Peer.numbers) - 1} clients, {storm.calls} calls, {storm.reloads} reloads; outcomes {storm.outcomes}; "
          f"{storm.items} items, {storm.events} events; {len(storm.faults)} faults", flush=True)
    for fault in storm.faults[:20]:
        print(fault)
    return 1 if storm.faults else 0


if __name__ == "__main__":
    sys.exit(main())
