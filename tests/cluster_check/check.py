"""Brokers over a real nats-server: three processes of the command, clients by TCP, and what happens when each of them is
killed, or one takes over from another. Then calls go on while one thing after another is killed or stopped: each ends
once, in time, at its own caller, and what its error says of its delivery agrees with what the providers have been asked;
so does each outcome of a call that is asked of all of them. Needs `nats-server`; exits with 77
where there is none. `check.py [--seconds N] [--seed N] WIRECALL`."""

import argparse
import json
import os
import pathlib
import random
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
# Every call across what failed ends within these (docs/cluster.md "What fails").
KILLED_SECONDS = 1.0
STOPPED_SECONDS = 3.5
TRAFFIC_SECONDS = 10.0
# The example that ships, which so is known to work.
CONFIGURATION = pathlib.Path(__file__).parents[2] / "examples" / "deploy" / "nats.conf"


def until(what, condition, seconds=60.0):
    """Waits for a condition, whose value it returns."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.01)
    raise AssertionError(f"not within {seconds} s: {what}")


class Nats:
    """A nats-server on a port that the system has chosen, and that stays its own when it begins anew."""

    BROKER_PASSWORD = "of-brokers"
    PLAIN_PASSWORD = "of-plain-clients"
    OTHERS_PASSWORD = "of-others"

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        self.port = -1
        self.start()

    def start(self):
        for old in self.folder.glob("*.ports"):
            old.unlink()
        command = [self.program, "-c", str(CONFIGURATION), "-a", "127.0.0.1", "-p", str(self.port)]
        command += ["--ports_file_dir", str(self.folder)]
        passwords = {
            "BROKER_PASSWORD": self.BROKER_PASSWORD,
            "PLAIN_PASSWORD": self.PLAIN_PASSWORD,
            "OTHERS_PASSWORD": self.OTHERS_PASSWORD,
        }
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **passwords}
        )
        path = until("nats-server listens", lambda: next(iter(self.folder.glob("*.ports")), None))
        ports = until("its ports file", lambda: path.read_text())
        self.url = json.loads(ports)["nats"][0]
        self.port = int(self.url.rsplit(":", 1)[1])

    def url_of(self, node):
        return f"nats://{node}:{self.BROKER_PASSWORD}@127.0.0.1:{self.port}"

    def answer_to(self, user, password, command):
        """What the server says to a user who gives a command."""
        with socket.create_connection(("127.0.0.1", self.port), 10) as connection:
            options = {"verbose": True, "user": user, "pass": password}
            connection.sendall(f"CONNECT {json.dumps(options)}\r\n{command}\r\nPING\r\n".encode())
            said = ""
            while "PONG" not in said and (block := connection.recv(4096)):
                said += block.decode()
            return said

    def kill(self):
        self.process.kill()
        self.process.wait()


class Broker:
    def __init__(self, program, folder, nats, node, options=()):
        self.program = program
        self.node = node
        self.socket = folder / f"{node}.sock"
        self.log = open(folder / f"{node}.log", "ab")
        self.process = subprocess.Popen(
            [
                program,
                "serve",
                "--listen",
                f"unix://{self.socket}",
                "--cluster",
                nats.url_of(node),
                "--realm",
                "shop",
                "--node",
                node,
                *options,
            ],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env={**os.environ, "XDG_RUNTIME_DIR": str(folder)},
        )
        until(f"{node} listens", self.socket.exists)

    def tool(self, *words, status=0, token=None):
        done = subprocess.run(
            [self.program, *words, "--url", f"unix://{self.socket}", *(["--token", token] if token else [])],
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def methods(self, token=None):
        return {one["name"]: one for one in json.loads(self.tool("ls", "--json", token=token))}

    def cluster(self, token=None):
        return json.loads(self.tool("cluster", "--json", token=token))

    def knows(self, node, token=None):
        return any(one["node"] == node and one["state"] == "up" for one in self.cluster(token)["nodes"])

    def epoch_of(self, node):
        """The epoch of another node that is up, else nothing."""
        nodes = self.cluster()["nodes"]
        return next((one["epoch"] for one in nodes if one["node"] == node and one["state"] == "up"), None)

    def end(self, signal_number=signal.SIGTERM):
        self.process.send_signal(signal_number)
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            self.log.close()


class Client:
    """A connection that sends and receives messages, one a line."""

    def __init__(self, broker):
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(str(broker.socket))
        self.received = b""
        self.last = 0

    def send(self, **message):
        self.connection.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def receive(self, seconds=20):
        self.connection.settimeout(seconds)
        while b"\n" not in self.received:
            block = self.connection.recv(1 << 20)
            assert block, "the broker has closed the connection"
            self.received += block
        line, self.received = self.received.split(b"\n", 1)
        return json.loads(line)

    def begin(self, method, *params, **more):
        self.last += 1
        self.send(method=method, params=list(params), id=self.last, **more)
        return self.last

    def call(self, method, *params, **more):
        identity = self.begin(method, *params, **more)
        answer = self.receive()
        assert answer["id"] == identity, answer
        return answer

    def is_called(self, name):
        self.last += 1
        self.send(method="rpc.hello", params={"name": name}, id=self.last)
        assert self.receive()["result"]["name"] == name

    def provide(self, method, **terms):
        self.last += 1
        self.send(method="rpc.register", params={"method": method, **terms}, id=self.last)
        assert self.receive()["result"] == 1

    def close(self):
        self.connection.close()


def error_of(answer):
    error = answer["error"]
    return error["code"], error.get("data", {}).get("origin"), error.get("data", {}).get("delivered")


class Traffic:
    """Calls of clients of all brokers to providers at all brokers. Each carries a number, and providers write down which
    numbers they were asked."""

    METHODS = {"one": "work.one", "two": "work.two", "three": "work.three"}  # by the provider's node
    OF_ALL = "work.all"  # which each of them provides
    OF_ALL_SHARE = 0.2  # of the calls
    IN_FLIGHT = 8
    HELD_SECONDS = 0.05  # at most, by a provider

    def __init__(self, check, chance):
        self.check = check
        self.chance = chance
        self.selector = selectors.DefaultSelector()
        self.number = 0
        self.asked = {}  # by number, or, of one that is asked of all, by number and node: how often
        self.of_all = set()  # the numbers of such
        self.pending = {}  # by number: its caller and since when
        self.failed_at = 0.0  # when something failed last
        self.sends = True
        self.ends = {"result": 0, "no": 0, "maybe": 0, "unknown": 0}  # unknown: the method, while its provider is away
        self.slowest = {"killed": 0.0, "stopped": 0.0}
        self.outcomes = 0
        self.held = []
        self.clients = {}
        for node in check.brokers:
            self.connect(node)

    def connect(self, node):
        caller, provider = Client(self.check.broker(node)), Client(self.check.broker(node))
        provider.provide(self.METHODS[node])
        provider.provide(self.OF_ALL)
        caller.node = provider.node = node
        self.clients[node] = (caller, provider)
        for client, role in ((caller, self.take_end), (provider, self.take_request)):
            client.connection.setblocking(False)
            self.selector.register(client.connection, selectors.EVENT_READ, (client, role))

    def disconnect(self, node):
        """Its broker has gone, and with it what is in flight of its own caller."""
        for client in self.clients.pop(node):
            self.selector.unregister(client.connection)
            self.pending = {n: one for n, one in self.pending.items() if one[0] is not client}
            self.held = [one for one in self.held if one[1] is not client]
            client.close()

    def take_request(self, provider, message):
        method = message.get("method")
        if method not in self.METHODS.values() and method != self.OF_ALL:
            return  # a cancellation
        number = message["params"][0]
        key = (number, provider.node) if method == self.OF_ALL else number
        self.asked[key] = self.asked.get(key, 0) + 1
        due = time.monotonic() + self.chance.random() * self.HELD_SECONDS
        self.held.append((due, provider, {"id": message["id"], "result": number}))

    def take_end(self, caller, message):
        number = message["id"]
        owner, since = self.pending.pop(number, (None, 0.0))
        assert owner is caller, f"not a call of this client's in flight: {message}"
        took = time.monotonic() - max(since, self.failed_at) - self.HELD_SECONDS
        self.slowest[self.kind] = max(self.slowest[self.kind], took)
        if number in self.of_all:
            self.of_all.remove(number)
            self.take_outcomes(caller, number, message)
            return
        if "result" in message:
            assert message["result"] == number and self.asked.get(number) == 1, (message, self.asked.get(number))
            self.ends["result"] += 1
            return
        unknown = message["error"]["code"] == -32601
        delivered = "no" if unknown else message["error"]["data"]["delivered"]
        self.ends["unknown" if unknown else delivered] += 1
        assert self.asked.get(number, 0) <= 1, f"asked twice: {message}"
        assert delivered == "maybe" or number not in self.asked, f"a provider was asked: {message}"

    def take_outcomes(self, caller, number, message):
        if "error" in message:
            data = message["error"].get("data", {})
            assert message["error"]["code"] == -32601 or data["delivered"] == "no", message
            assert not any((number, node) in self.asked for node in self.METHODS), f"a provider was asked: {message}"
            return
        nodes = [outcome.get("node", caller.node) for outcome in message["result"]]
        assert len(set(nodes)) == len(nodes), f"two outcomes of one provider: {message}"
        for node, outcome in zip(nodes, message["result"], strict=True):
            asked = self.asked.pop((number, node), 0)
            self.outcomes += 1
            if "result" in outcome:
                assert (outcome["result"], asked) == (number, 1), (outcome, asked)
                continue
            unknown = outcome["error"]["code"] == -32601
            delivered = "no" if unknown else outcome["error"]["data"]["delivered"]
            assert asked <= 1, f"asked twice: {message}"
            assert delivered == "maybe" or not asked, f"a provider was asked: {message}"

    def turn(self):
        for caller, _ in self.clients.values() if self.sends else ():
            own = sum(1 for one in self.pending.values() if one[0] is caller)
            for _ in range(self.IN_FLIGHT - own):
                self.number += 1
                self.pending[self.number] = (caller, time.monotonic())
                if self.chance.random() < self.OF_ALL_SHARE:
                    self.of_all.add(self.number)
                    params = {"method": self.OF_ALL, "params": [self.number]}
                    self.write(caller, method="rpc.call_all", params=params, id=self.number)
                    continue
                method = self.chance.choice(list(self.METHODS.values()))
                self.write(caller, method=method, params=[self.number], id=self.number)
        now = time.monotonic()
        for one in [one for one in self.held if one[0] <= now]:
            self.held.remove(one)
            self.write(one[1], **one[2])
        for key, _ in self.selector.select(0.005):
            client, role = key.data
            try:
                block = client.connection.recv(1 << 20)
            except BlockingIOError:
                continue
            client.received += block
            *lines, client.received = client.received.split(b"\n")
            for line in lines:
                role(client, json.loads(line))
            if not block:
                return  # its broker has gone, which is said by whoever has killed it
        limit = KILLED_SECONDS if self.kind == "killed" else STOPPED_SECONDS
        late = {n: one for n, one in self.pending.items() if now - max(one[1], self.failed_at) > limit}
        late = {n: one for n, one in late.items() if one[0] not in self.clients.get(self.stopped, ())}
        assert not late, f"no end within {limit} s after something was {self.kind}: {sorted(late)}"

    @staticmethod
    def write(client, **message):
        try:
            client.send(**message)
        except (BrokenPipeError, ConnectionResetError):
            pass  # its broker has gone

    def go_on(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.turn()

    def fail(self, kind, stopped=None):
        self.kind, self.stopped, self.failed_at = kind, stopped, time.monotonic()

    def run(self, seconds):
        self.fail("killed")
        end = time.monotonic() + seconds
        self.go_on(0.5)
        failures = [self.kill_broker, self.kill_nats, self.kill_provider, self.stop_broker]
        while time.monotonic() < end:
            for failure in self.chance.sample(failures, len(failures)):
                failure(self.chance.choice(["one", "two", "three"]))
                self.go_on(0.3)
        self.sends = False
        while self.pending:
            self.turn()
        for node in list(self.clients):
            self.disconnect(node)
        assert self.ends["result"] and self.ends["maybe"] and self.ends["no"] and self.outcomes, self.ends
        print(f"  {self.number} calls: {self.ends}; outcomes of calls of all: {self.outcomes}; slowest: {self.slowest}")

    def kill_broker(self, node):
        self.check.broker(node).end(signal.SIGKILL)
        self.fail("killed")
        self.disconnect(node)
        self.go_on(KILLED_SECONDS + 0.2)
        self.check.begin_broker(node)
        self.connect(node)

    def stop_broker(self, node):
        process = self.check.broker(node).process
        process.send_signal(signal.SIGSTOP)
        self.fail("stopped", node)
        self.go_on(STOPPED_SECONDS + 0.2)
        process.send_signal(signal.SIGCONT)
        self.fail("stopped")
        self.go_on(1.0)

    def kill_nats(self, _):
        self.check.nats.kill()
        self.fail("killed")
        self.go_on(0.5)
        self.check.nats.start()
        self.go_on(1.0)

    def kill_provider(self, node):
        self.disconnect(node)
        self.fail("killed")
        self.go_on(0.2)
        self.connect(node)


class Check:
    def __init__(self, program, folder):
        self.folder = folder
        self.nats = Nats(shutil.which("nats-server"), folder)
        self.brokers = {node: Broker(program, folder, self.nats, node) for node in ("one", "two", "three")}

    def broker(self, node):
        return self.brokers[node]

    def begin_broker(self, node):
        """Anew under its name, after it has been killed."""
        old = self.broker(node)
        old.socket.unlink(missing_ok=True)
        self.brokers[node] = Broker(old.program, self.folder, self.nats, node)

    def all_know_each_other(self):
        for broker in self.brokers.values():
            for other in self.brokers.values():
                if other is not broker:
                    until(f"{broker.node} knows {other.node}", lambda: broker.knows(other.node))

    def answer_one(self, provider, result):
        asked = provider.receive()
        provider.send(result=result, id=asked["id"])
        return asked

    def calls(self):
        provider = Client(self.broker("two"))
        provider.provide("gpu.add", summary="Adds")
        for node in ("one", "three"):
            until(f"{node} lists it", lambda: "gpu.add" in self.broker(node).methods())
        listed = self.broker("one").methods()["gpu.add"]
        assert (listed["providers"], listed["summary"]) == (1, "Adds"), listed
        caller = Client(self.broker("one"))
        identity = caller.begin("gpu.add", 1, 2)
        asked = self.answer_one(provider, 3)
        assert asked["params"] == [1, 2], asked
        assert caller.receive() == {"jsonrpc": "2.0", "result": 3, "id": identity}
        # Cancelled at one, and so at two.
        identity = caller.begin("gpu.add", 1, 2)
        asked = provider.receive()
        caller.send(method="$/cancelRequest", params={"id": identity})
        assert caller.receive()["error"]["code"] == -32800
        assert provider.receive()["params"]["id"] == asked["id"]
        # Many at once, and each its own answer.
        first = [caller.begin("gpu.add", number) for number in range(500)]
        for _ in first:
            asked = provider.receive()
            provider.send(result=asked["params"], id=asked["id"])
        answers = {}
        for _ in first:
            answer = caller.receive()
            answers[answer["id"]] = answer["result"]
        assert answers == {identity: [number] for number, identity in enumerate(first)}
        # A message larger than the bus takes at once.
        long_text = "x" * 3_000_000
        identity = caller.begin("gpu.add", long_text)
        assert self.answer_one(provider, long_text)["params"] == [long_text]
        assert caller.receive()["result"] == long_text
        # The provider is killed.
        caller.begin("gpu.add", 1)
        provider.receive()
        begun = time.monotonic()
        provider.close()
        assert error_of(caller.receive()) == (-32001, "remote", "maybe")
        assert time.monotonic() - begun < KILLED_SECONDS
        until("the method is gone", lambda: "gpu.add" not in self.broker("one").methods())
        caller.close()

    def addressed(self):
        named = {}
        for node, name in (("two", "alpha"), ("three", "beta"), ("three", "gamma")):
            named[name] = Client(self.broker(node))
            named[name].is_called(name)
            named[name].provide("who.are_you")
        until("one lists them", lambda: self.broker("one").methods().get("who.are_you", {}).get("providers") == 3)
        caller = Client(self.broker("one"))
        for name, client in named.items():
            for _ in range(3):
                identity = caller.begin("who.are_you", to=name)
                assert "to" not in self.answer_one(client, name)
                assert caller.receive() == {"jsonrpc": "2.0", "result": name, "id": identity}
        # Nobody else is asked for one who is not there, has gone, or goes meanwhile.
        assert error_of(caller.call("who.are_you", to="delta")) == (-32001, "local", "no")
        named["beta"].close()
        until("beta has gone", lambda: self.broker("one").methods()["who.are_you"]["providers"] == 2)
        code, _, delivered = error_of(caller.call("who.are_you", to="beta"))
        assert (code, delivered) == (-32001, "no")
        caller.begin("who.are_you", to="gamma")
        named["gamma"].receive()
        named["gamma"].close()
        assert error_of(caller.receive()) == (-32001, "remote", "maybe")
        for client in (caller, named["alpha"]):
            client.close()

    def asked_of_all(self):
        providers = {node: Client(self.broker(node)) for node in ("one", "two", "three")}
        for provider in providers.values():
            provider.provide("version")
        until("one lists them", lambda: self.broker("one").methods().get("version", {}).get("providers") == 3)
        caller = Client(self.broker("one"))
        caller.begin("rpc.call_all", "version")
        for node, provider in providers.items():
            self.answer_one(provider, node)
        outcomes = caller.receive()["result"]
        assert {one.get("node", "one"): one["result"] for one in outcomes} == {node: node for node in providers}, (
            outcomes
        )
        # A node is killed that has not answered.
        caller.begin("rpc.call_all", "version")
        for node in ("one", "two"):
            self.answer_one(providers[node], node)
        providers["three"].receive()
        begun = time.monotonic()
        self.broker("three").end(signal.SIGKILL)
        outcomes = {one.get("node", "one"): one for one in caller.receive()["result"]}
        assert time.monotonic() - begun < KILLED_SECONDS, time.monotonic() - begun
        assert error_of(outcomes.pop("three")) == (-32001, "remote", "maybe")
        assert {node: one["result"] for node, one in outcomes.items()} == {"one": "one", "two": "two"}
        self.begin_broker("three")
        self.all_know_each_other()
        # Cancelled at one, and so at two.
        caller.begin("rpc.call_all", "version")
        asked = providers["two"].receive()
        caller.send(method="$/cancelRequest", params={"id": caller.last})
        assert caller.receive()["error"]["code"] == -32800
        assert providers["two"].receive()["params"]["id"] == asked["id"]
        for client in (caller, *providers.values()):
            client.close()

    def replaced(self):
        """A new process takes the place of a broker, whose clients stay with the old one as long as they like."""
        old = self.broker("two")
        staying = Client(old)
        staying.provide("stays.add")
        until("one lists it", lambda: "stays.add" in self.broker("one").methods())
        caller = Client(self.broker("one"))
        identity = caller.begin("stays.add", 1)
        asked = staying.receive()
        assert asked["params"] == [1]
        epoch = self.broker("one").epoch_of("two")
        self.brokers["two"] = Broker(old.program, self.folder, self.nats, "two", ["--replace"])
        # The new process is the node, and what is in progress across it is answered.
        until("the new one is up", lambda: self.broker("one").epoch_of("two") not in (None, epoch))
        staying.send(result=2, id=asked["id"])
        assert caller.receive() == {"jsonrpc": "2.0", "result": 2, "id": identity}
        # Who has stayed is called from other nodes through the new process.
        until("one lists it again", lambda: "stays.add" in self.broker("one").methods())
        identity = caller.begin("stays.add", 2)
        assert self.answer_one(staying, 3)["params"] == [2]
        assert caller.receive() == {"jsonrpc": "2.0", "result": 3, "id": identity}
        staying.close()
        assert old.process.wait(20) == 0
        old.log.close()
        until("it is gone", lambda: "stays.add" not in self.broker("one").methods())
        coming = Client(self.broker("two"))
        coming.provide("stays.add")
        until("one lists it at last", lambda: "stays.add" in self.broker("one").methods())
        identity = caller.begin("stays.add", 6)
        assert self.answer_one(coming, 7)["params"] == [6]
        assert caller.receive() == {"jsonrpc": "2.0", "result": 7, "id": identity}
        for client in (caller, coming):
            client.close()

    def events(self):
        subscriber = Client(self.broker("three"))
        subscriber.send(method="rpc.subscribe", params={"topic": "orders.>"}, id=1)
        assert subscriber.receive()["result"] is True
        publisher = Client(self.broker("one"))

        def told():
            publisher.send(method="orders.new", params={"id": 1})
            try:
                return subscriber.receive(0.1)
            except TimeoutError:
                return None

        event = until("three is told", told)
        assert event == {"jsonrpc": "2.0", "method": "orders.new", "params": {"id": 1}}, event
        publisher.close()
        subscriber.close()

    def only_brokers_speak(self):
        stored = "PUB $JS.API.STREAM.MSG.GET.wirecall_shop_events_other 0\r\n"
        for command in ("PUB wc.shop.n.one.call 1\r\nx", "SUB wc.shop.n.one.call 1", "PUB wc.shop.hb 1\r\nx", "SUB _INBOX.> 1", stored):
            said = self.nats.answer_to("others", self.nats.OTHERS_PASSWORD, command)
            assert "Permissions Violation" in said, (command, said)
        for command in ("SUB wc.shop.n.one.call 1", "PUB $JS.API.INFO 0\r\n", "PUB wc.shop.m.rpc.ping 0\r\n"):
            said = self.nats.answer_to("two", self.nats.BROKER_PASSWORD, command)
            assert "Permissions Violation" in said, (command, said)
        for command in ("PUB wc.shop.t.orders.new 1\r\nx", "PUB wc.shop.n.one.call 1\r\nx", "SUB wc.shop.m.> 1"):
            said = self.nats.answer_to("plain", self.nats.PLAIN_PASSWORD, command)
            assert "Permissions Violation" in said, (command, said)

    def broker_is_killed(self):
        provider = Client(self.broker("three"))
        provider.provide("gpu.mul")
        until("one lists it", lambda: "gpu.mul" in self.broker("one").methods())
        caller = Client(self.broker("one"))
        caller.begin("gpu.mul", 1)
        provider.receive()
        begun = time.monotonic()
        self.broker("three").end(signal.SIGKILL)
        assert error_of(caller.receive()) == (-32001, "remote", "maybe")
        assert time.monotonic() - begun < KILLED_SECONDS, time.monotonic() - begun
        assert caller.call("gpu.mul", 1)["error"]["code"] == -32601
        provider.close()
        self.begin_broker("three")
        self.all_know_each_other()
        caller.close()

    def broker_is_stopped(self):
        provider = Client(self.broker("three"))
        provider.provide("gpu.div")
        until("one lists it", lambda: "gpu.div" in self.broker("one").methods())
        caller = Client(self.broker("one"))
        caller.begin("gpu.div", 1)
        provider.receive()
        begun = time.monotonic()
        self.broker("three").process.send_signal(signal.SIGSTOP)
        assert error_of(caller.receive()) == (-32001, "remote", "maybe")
        assert time.monotonic() - begun < STOPPED_SECONDS, time.monotonic() - begun
        self.broker("three").process.send_signal(signal.SIGCONT)
        self.all_know_each_other()
        caller.close()
        provider.close()

    def nats_is_killed(self):
        provider = Client(self.broker("two"))
        provider.provide("far.add")
        own = Client(self.broker("one"))
        own.provide("near.add")
        until("one lists it", lambda: "far.add" in self.broker("one").methods())
        caller = Client(self.broker("one"))
        caller.begin("far.add", 1)
        provider.receive()
        begun = time.monotonic()
        self.nats.kill()
        assert error_of(caller.receive()) == (-32001, "bus", "maybe")
        assert time.monotonic() - begun < KILLED_SECONDS
        assert error_of(caller.call("far.add", 1)) == (-32001, "bus", "no")
        assert self.broker("one").cluster()["state"] == "degraded"
        identity = caller.begin("near.add", 1)
        self.answer_one(own, 4)
        assert caller.receive() == {"jsonrpc": "2.0", "result": 4, "id": identity}
        self.nats.start()
        self.all_know_each_other()
        until("one lists it again", lambda: "far.add" in self.broker("one").methods())
        identity = caller.begin("far.add", 7)
        asked = provider.receive()
        while asked.get("method") != "far.add":  # what was cancelled when the bus went
            asked = provider.receive()
        assert asked["params"] == [7], asked  # and not the first call once more
        provider.send(result=8, id=asked["id"])
        assert caller.receive() == {"jsonrpc": "2.0", "result": 8, "id": identity}
        for client in (provider, own, caller):
            client.close()

    def drained(self):
        provider = Client(self.broker("two"))
        provider.provide("slow.add")
        until("one lists it", lambda: "slow.add" in self.broker("one").methods())
        caller = Client(self.broker("one"))
        identity = caller.begin("slow.add", 1)
        asked = provider.receive()
        self.broker("two").process.send_signal(signal.SIGTERM)
        until("it is provided no more", lambda: "slow.add" not in self.broker("one").methods())
        provider.send(result=5, id=asked["id"])
        assert caller.receive() == {"jsonrpc": "2.0", "result": 5, "id": identity}
        self.broker("two").process.wait(20)
        caller.close()
        provider.close()

    def traffic(self):
        print(f"  seed {self.seed}")
        Traffic(self, random.Random(self.seed)).run(self.seconds)

    def run(self, seconds, seed):
        self.seconds, self.seed = seconds, seed
        self.all_know_each_other()
        for step in (
            self.calls,
            self.addressed,
            self.asked_of_all,
            self.events,
            self.only_brokers_speak,
            self.broker_is_killed,
            self.broker_is_stopped,
            self.nats_is_killed,
            self.replaced,
            self.traffic,
            self.drained,
        ):
            begun = time.monotonic()
            step()
            print(f"{step.__name__}: {time.monotonic() - begun:.2f} s")

    def end(self):
        for broker in self.brokers.values():
            if broker.process.poll() is None:
                broker.end(signal.SIGKILL)
        self.nats.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wirecall")
    parser.add_argument("--seconds", type=float, default=TRAFFIC_SECONDS, help="of calls while things fail")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    if shutil.which("nats-server") is None:
        print("skipped: there is no nats-server; tools/install_packages.sh test installs it")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="wirecall-cluster-") as folder:
        check = Check(os.path.abspath(options.wirecall), pathlib.Path(folder))
        try:
            check.run(options.seconds, options.seed)
        except BaseException:
            for log in sorted(pathlib.Path(folder).glob("*.log")):
                print(f"---- {log.name}\n{log.read_text()}", file=sys.stderr)
            raise
        finally:
            check.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
