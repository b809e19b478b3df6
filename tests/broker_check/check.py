"""Holds a broker to its word while its clients are killed, stopped, reset and slow:

    check.py build/wirecall [--seconds 10] [--idle 1000] [--callers 50] [--provider PROGRAM.py]

Every call has to end exactly once, at its own caller, with its own nonce; who waits for a provider that is killed, also in
mid-batch, is told before the broker has answered MESSAGES_MAX others; who reads events by HTTP, is cut off and comes back has
each value that is retained, once; and the broker has its descriptors and memory back in the end. No clock decides, since a
busy machine stops any process for seconds: what it takes is printed. WATCHDOG_S ends what hangs. Callers and providers speak
JSON lines, WebSocket and the other framings; some of them, and some of those who speak HTTP, do so by TLS, with a certificate
of their own or without."""

import argparse
import asyncio
import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

from certificates import Certificates, context
from ledger import Ledger
from peers import Caller, EventReader, HttpCaller, connect
import framings

PROVIDERS = 8
# The framings of the providers by turns, and whether they speak TLS or show a certificate besides.
PROVIDED_BY = [("lines", "plain"), ("websocket", "certificate"), ("websocket msgpack", "plain"), ("msgpack", "tls")]
CONNECTED = [framing for framing in framings.ALL if framing.connected]
PUBLISHERS = [framings.Lines, framings.WebSocket, framings.WebSocketMsgpack]
TOPICS = 50  # of each publisher
READERS = 6
LOST = -32001
# What a broker may answer before it has told of a provider that has gone; with several threads these are told apart.
MESSAGES_MAX = 100
WATCHDOG_S = 240


class Check:
    def __init__(self, arguments):
        self.arguments = arguments
        self.ledger = Ledger()
        self.random = random.Random(arguments.seed)
        self.providers = {}
        self.slowest = 0.0
        self.kills = {"plain": 0, "tls": 0, "certificate": 0}
        self.stopping = False
        self.readers = [EventReader(self.ledger, "watch.>") for _ in range(READERS)]

    async def start(self, folder):
        self.certificates = Certificates(folder)
        cafile, own = self.certificates.cafile, self.certificates.peer_files()
        self.peer_files = {"plain": [], "tls": [cafile], "certificate": [cafile, *own]}
        self.contexts = {"plain": None, "tls": context(cafile), "certificate": context(cafile, *own)}
        self.opened = dict.fromkeys(self.contexts, 0)
        command = [self.arguments.tool, "serve", "--port", "0", "--log-level", "warning",
                   "--threads", str(self.arguments.threads), *self.certificates.broker_options()]
        # A file, not a pipe: nobody has to read it for the broker to go on.
        log = tempfile.TemporaryFile()
        self.broker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        text = ""
        while not (listening := re.search(r"127\.0\.0\.1:(\d+)", text)):
            assert self.broker.poll() is None, text
            await asyncio.sleep(0.01)
            text = os.pread(log.fileno(), 1 << 16, 0).decode()
        self.port = int(listening[1])

    def tls(self, plain=2):
        """The context of the next connection: by TLS, with or without a certificate, or by plain text, which is as likely as
        `plain` says."""
        way = self.random.choice(["tls", "certificate", *["plain"] * plain])
        self.opened[way] += 1
        return self.contexts[way]

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.broker.pid}/fd"))

    def memory_kb(self):
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{self.broker.pid}/status").read_text())[1])

    async def provide(self, name):
        """By the program whose turn it is; a name keeps its program."""
        number = int(name[1:])
        program = [sys.executable, "-B", "-S", str(pathlib.Path(__file__).with_name("provider.py"))]
        framing, way = PROVIDED_BY[number // 2 % len(PROVIDED_BY)]
        last = [framing, *self.peer_files[way]]
        if self.arguments.provider and number % 2:
            program, last = [sys.executable, str(self.arguments.provider)], self.peer_files[way]
        process = await asyncio.create_subprocess_exec(*program, str(self.port), name, *last,
                                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.providers[name] = process  # from now on it is ended with the others, whether it is ready or not
        assert await process.stdout.readline() == b"ready\n", name

    async def kill_providers(self):
        names = sorted(self.providers)
        while not self.stopping:
            name = self.random.choice(names)
            waiting = await Caller(self.ledger, WATCHDOG_S * 1000, tls=self.tls()).open(self.port)
            process = self.providers[name]
            held = [waiting.ask(f"hold.{name}") for _ in range(5)]
            held += [waiting.ask(f"hold_batched.{name}") for _ in range(5)]
            assert await process.stdout.readline() == b"holding\n", name  # one that batches is at work on some of them
            # Answered by another provider: the broker has handed the held ones on before.
            await waiting.ask("work.echo")
            process.kill()
            killed = time.monotonic()
            await process.wait()  # its connection is closed by then
            answered = 0
            while answered < MESSAGES_MAX and not all(future.done() for future in held):
                await waiting.ask("no.such")  # which the broker answers itself
                answered += 1
                await asyncio.sleep(0.01)
            if not all(future.done() for future in held):
                self.ledger.fault("late", f"{answered} messages after {name} had gone its callers have not been told")
            for response in await asyncio.gather(*held):
                if response.get("error", {}).get("code") != LOST:
                    self.ledger.fault("outcome", f"of a killed provider: {response}")
            self.slowest = max(self.slowest, time.monotonic() - killed)
            self.kills[PROVIDED_BY[int(name[1:]) // 2 % len(PROVIDED_BY)][1]] += 1
            await waiting.leave()
            if self.stopping:
                break
            await self.provide(name)
            await asyncio.sleep(max(0.0, 1 - (time.monotonic() - killed)))

    async def stop_providers(self):
        while not self.stopping:
            process = self.random.choice(list(self.providers.values()))
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGSTOP)
                await asyncio.sleep(0.3)
                process.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.7)

    async def call(self):
        """Calls of all kinds on one connection that is reset or left now and then."""
        while not self.stopping:
            caller = await Caller(self.ledger, framing=self.random.choice(CONNECTED), tls=self.tls()).open(self.port)
            for _ in range(self.random.randrange(5, 40)):
                waiting = caller.batch(["work.echo", "work.batched", "work.nested", "work.stream", "no.such"])
                waiting += [caller.ask("work.echo"), caller.ask("work.nested"), caller.ask("work.stream", {"stream": 1})]
                waiting += [caller.ask("work.batched") for _ in range(3)]
                caller.notify("note.tick", {"connection": caller.number})
                await asyncio.gather(*waiting)
                if self.stopping:
                    break
            if self.random.random() < 0.5:
                caller.ask("work.nested")
                await caller.leave(by_reset=True)
            else:
                await caller.leave()

    async def call_by_http(self):
        while not self.stopping:
            caller = await HttpCaller(self.ledger, tls=self.tls()).open(self.port)
            for _ in range(self.random.randrange(20, 200)):
                await caller.post(caller.request("work.echo"))
                await caller.post([caller.request("work.echo"), caller.request("work.nested"), caller.request("work.echo")])
                if self.stopping:
                    break
            await caller.leave(by_reset=self.random.random() < 0.5)

    async def read_slowly(self):
        while not self.stopping:
            framing = self.random.choice([framings.Lines, framings.WebSocket])
            caller = await Caller(self.ledger, framing=framing, tls=self.tls()).open(self.port, reads=False)
            waiting = [caller.ask("work.echo", pad="x" * 20000) for _ in range(100)]
            await asyncio.sleep(0.5)
            caller.reading = asyncio.create_task(caller.read())
            await asyncio.gather(*waiting)
            await caller.leave()

    async def storm(self):
        while not self.stopping:
            callers = await asyncio.gather(*(Caller(self.ledger, tls=self.tls(plain=18)).open(self.port) for _ in range(100)))
            await asyncio.gather(*(caller.ask("work.echo") for caller in callers))
            for caller in callers:
                caller.ask("work.echo")
                await caller.leave(by_reset=True)
            await asyncio.sleep(0.5)

    async def publish(self, number):
        """Events of many topics, of which each reader of events has to have what is retained."""
        caller = await Caller(self.ledger, framing=PUBLISHERS[number], tls=self.tls()).open(self.port)
        while not self.stopping:
            for _ in range(20):
                topic = f"watch.{number}.{self.random.randrange(TOPICS)}"
                retain = self.random.random() < 0.6
                event = {"topic": topic, "retain": retain}
                if retain and self.random.random() < 0.1:
                    self.ledger.clear(topic)
                else:
                    pad = "x" * self.random.choice([0, 100, 8000])
                    event["params"] = {**self.ledger.publish(topic, retain), "pad": pad}
                caller.notify("rpc.publish", event)
            await caller.ask("no.such")
            await asyncio.sleep(0.002)
        await caller.leave()

    async def read_events(self, reader):
        """Cut off again and again: on its way through what is retained, later, or when it has not read for long."""
        while not self.stopping:
            if self.random.random() < 0.3:
                reader.begin()
            await reader.open(self.port, self.tls())
            chance = self.random.random()
            if chance < 0.2:
                reader.writer.transport.pause_reading()
                await asyncio.sleep(2 * self.random.random())
                reader.writer.transport.resume_reading()
            await asyncio.sleep(self.random.random() * (0.01 if chance > 0.6 else 0.3))
            await reader.leave()

    async def read_all_events(self):
        """Whoever comes back now has to receive all that it has not."""
        for reader in self.readers:
            await reader.open(self.port, self.tls())
            try:
                await asyncio.wait_for(reader.up_to_date.wait(), WATCHDOG_S)
            except asyncio.TimeoutError:
                self.ledger.fault("lost", f"reader {reader.number} has not been sent all that is retained")
            self.ledger.read_all(reader)
            await reader.leave()

    async def returned(self, descriptors):
        """Waits until the broker has noticed that all have left."""
        until = time.monotonic() + WATCHDOG_S
        while self.descriptors() > descriptors and time.monotonic() < until:
            await asyncio.sleep(0.05)
        if self.descriptors() > descriptors:
            self.ledger.fault("descriptors", f"{self.descriptors()} in the end, {descriptors} at the start")

    async def load(self, seconds, idle, callers):
        await asyncio.gather(*(self.provide(f"p{number}") for number in range(PROVIDERS)))
        connections = []
        for _ in range(0, idle, 100):
            connections += await asyncio.gather(*(connect(self.port, self.tls(plain=18)) for _ in range(100)))
        self.stopping = False
        tasks = [asyncio.create_task(work()) for work in
                 [self.kill_providers, self.stop_providers, self.read_slowly, self.storm, self.call_by_http,
                  self.call_by_http] + [self.call] * callers]
        tasks += [asyncio.create_task(self.publish(number)) for number in range(len(PUBLISHERS))]
        tasks += [asyncio.create_task(self.read_events(reader)) for reader in self.readers]
        end = asyncio.create_task(asyncio.sleep(seconds))
        await asyncio.wait([end, *tasks], return_when=asyncio.FIRST_COMPLETED)
        self.stopping = True
        done, late = await asyncio.wait(tasks, timeout=WATCHDOG_S)
        for task in done:
            task.result()
        for task in late:
            self.ledger.fault("lost", f"{task.get_coro().__name__} still waits")
            task.cancel()
        await self.read_all_events()
        for process in self.providers.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        for _, writer in connections:
            writer.close()

    async def run(self):
        with tempfile.TemporaryDirectory() as folder:
            return await self.run_in(folder)

    async def run_in(self, folder):
        arguments = self.arguments
        await self.start(folder)
        try:
            descriptors = self.descriptors()
            # What the broker keeps for its next clients it has after the first crowd.
            await self.load(1, arguments.idle, arguments.callers)
            await self.returned(descriptors)
            memory = self.memory_kb()
            await self.load(arguments.seconds, arguments.idle, arguments.callers)
            await self.returned(descriptors)
            grown = self.memory_kb() - memory
            if grown > arguments.memory_mb * 1024:
                self.ledger.fault("memory", f"{grown} KB more than after the first crowd, {memory} KB")
            if self.broker.poll() is not None:
                self.ledger.fault("broker", f"has ended with {self.broker.returncode}")
        finally:
            for process in self.providers.values():
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            self.broker.kill()
        faults = self.ledger.close()
        print(f"events {self.ledger.events} to {READERS} readers, which came back "
              f"{sum(reader.resumed for reader in self.readers)} times and lost {sum(reader.lost for reader in self.readers)}")
        print(f"calls {sum(self.ledger.outcomes.values())}: {self.ledger.outcomes}, abandoned {len(self.ledger.abandoned)}; "
              f"providers killed {self.kills}, their callers told within {self.slowest * 1000:.0f} ms; connections {self.opened}; "
              f"memory {memory} KB, {grown:+} KB")
        for kind, text in faults[:20]:
            print(f"{kind}: {text}")
        return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--callers", type=int, default=50)
    parser.add_argument("--memory-mb", type=int, default=16, help="how much the broker's memory may have grown")
    parser.add_argument("--provider", type=pathlib.Path, help="a program that provides as provider.py does, for every "
                        "other provider")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    sys.exit(asyncio.run(Check(arguments).run()))


main()
