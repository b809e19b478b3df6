"""A broker of a cluster is replaced again and again, by SIGUSR2 and with --replace, while clients of three brokers
call providers of all three over a real nats-server. Each call ends once; what its error says of its delivery agrees
with what the providers have been asked; of a method that was provided a moment ago none is told that nobody provides
it; calls between the two other brokers fail never; and neither of these takes the replaced one for gone. Calls
between nodes that are in progress when one is replaced are all answered, both ways, and so are those that a client
makes later which stays with the process that was replaced. Needs `nats-server`; exits with 77 where there is none.
`check.py WIRECALL`."""

import collections
import functools
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

SKIPPED = 77
REPLACED = "two"
NODES = ("one", REPLACED, "three")
RESTARTS = 4
CALLS_BETWEEN = 50  # of each caller, that are answered
CALLS_HELD = 20  # of each pair of nodes, that are in progress when one is replaced
SECONDS = 60.0
EXPECTED_SECONDS = 2.5  # less than the 3 s for which a method is expected to come back that was provided before


def until(what, condition):
    """Waits for a condition, whose value it returns."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.005)
    raise AssertionError(f"not within {SECONDS} s: {what}")


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


class Broker:
    """A node, whichever process it is."""

    def __init__(self, program, folder, url, node):
        self.socket = folder / f"{node}.sock"
        self.log_file = folder / f"{node}.log"
        self.command = [program, "serve", "--listen", f"unix://{self.socket}", "--cluster", url, "--realm", "shop"]
        self.command += ["--node", node, "--drain-ms", "60000"]
        self.processes = []
        self.pid = self.start()
        until(f"{node} listens", self.socket.exists)

    def start(self, *more):
        with open(self.log_file, "ab") as log:
            process = subprocess.Popen(
                [*self.command, *more], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self.processes.append(process)
        return process.pid

    def log(self):
        return self.log_file.read_text()

    def replace(self, by_signal):
        """Returns when another process has taken over, which is running from then on."""
        known = len(re.findall("another process has taken over", self.log()))
        if by_signal:
            subprocess.run(["kill", "-USR2", str(self.pid)], check=True)
        else:
            self.start("--replace")
        until("another process has taken over", lambda: len(self.taken_over()) > known)
        self.pid = self.taken_over()[-1]

    def taken_over(self):
        return [int(pid) for pid in re.findall(r"another process has taken over.* pid=(\d+)", self.log())]

    def kill(self):
        for pid in {self.pid, *self.taken_over(), *(one.pid for one in self.processes)}:
            if str(self.socket) in command_of(pid):  # and nobody else has its number by now
                subprocess.run(["kill", "-KILL", str(pid)], check=False)

    def end(self):
        subprocess.run(["kill", "-TERM", str(self.pid)], check=False)
        for process in self.processes:
            assert process.wait(SECONDS) == 0, self.log()


class Connection:
    """Of a client that leaves when it is told to, and then connects anew; or, without a greeting, of one that stays."""

    def __init__(self, broker, greets=True):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(SECONDS)
        self.socket.connect(str(broker.socket))
        self.received = b""
        self.is_asked_to_leave = False
        if greets:
            self.send(method="rpc.hello", id=0)
            assert "result" in self.receive()

    def send(self, **message):
        self.socket.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def receive(self):
        """The next message but that it is to leave; None where that is all."""
        while True:
            while b"\n" not in self.received:
                block = self.socket.recv(1 << 16)
                if not block:
                    return None
                self.received += block
            line, self.received = self.received.split(b"\n", 1)
            message = json.loads(line)
            if message.get("method") != "rpc.draining":
                return message
            self.is_asked_to_leave = True
            return None

    def close(self):
        self.socket.close()


class Asked:
    """Which calls providers were asked, by number."""

    def __init__(self):
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.is_over = False  # the brokers end

    def add(self, number):
        with self.lock:
            self.counts[number] += 1

    def count(self, number):
        with self.lock:
            return self.counts[number]


def provide(broker, method, asked, ready):
    """Until the broker has gone."""
    while not asked.is_over:
        connection = Connection(broker)
        connection.send(method="rpc.register", params={"method": method}, id=1)
        while (message := connection.receive()) is not None:
            if message.get("id") == 1 and "method" not in message:
                assert message["result"] == 1, message
                ready.set()
            elif message.get("method") == method:
                asked.add(message["params"][0])
                connection.send(result=message["params"][0], id=message["id"])
        is_to_come_back = connection.is_asked_to_leave
        connection.close()
        if not is_to_come_back:
            return


class Caller:
    """Calls one method all the time, one call after the other."""

    numbers = iter(range(1, 1 << 60))
    lock = threading.Lock()

    def __init__(self, broker, method, asked):
        self.broker, self.method, self.asked = broker, method, asked
        self.results = 0
        self.last_result = time.monotonic()
        self.errors = collections.Counter()
        self.failure = None
        self.is_over = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            connection = Connection(self.broker)
            while not self.is_over:
                with self.lock:
                    number = next(self.numbers)
                connection.send(method=self.method, params=[number], id=number)
                answer = connection.receive()
                if answer is None and connection.is_asked_to_leave:  # the answer comes all the same
                    answer = connection.receive()
                self.take(number, answer)
                if connection.is_asked_to_leave:
                    connection.close()
                    connection = Connection(self.broker)
            connection.close()
        except BaseException as failure:
            self.failure = failure

    def take(self, number, answer):
        assert answer is not None, f"call {number} has got no answer"
        assert answer["id"] == number, answer
        if "result" in answer:
            assert answer["result"] == number and self.asked.count(number) == 1, (answer, self.asked.count(number))
            self.results += 1
            self.last_result = time.monotonic()
            return
        error = answer["error"]
        if error["code"] == -32601:  # on a machine that has no time for anything
            assert time.monotonic() - self.last_result > EXPECTED_SECONDS, (
                self.method,
                self.broker.socket.name,
                answer,
            )
            assert self.asked.count(number) == 0, answer
            self.errors["-32601 no"] += 1
            return
        assert error["code"] in (-32001, -32009), (self.method, self.broker.socket.name, answer)
        delivered = error["data"]["delivered"]
        assert self.asked.count(number) <= 1, answer
        assert delivered == "maybe" or self.asked.count(number) == 0, f"a provider was asked: {answer}"
        self.errors[f"{error['code']} {delivered}"] += 1

    def go_on(self, calls):
        """So many more are answered with a result when this returns."""
        goal = self.results + calls
        until(f"{calls} more results of {self.method} at {self.broker.socket.name}", lambda: self.reaches(goal))

    def reaches(self, goal):
        if self.failure is not None:
            raise self.failure
        return self.results >= goal

    def end(self):
        self.is_over = True
        self.thread.join()
        if self.failure is not None:
            raise self.failure


class Held:
    """Calls of a client at one node, which a provider at another one answers when told to. Both stay where they are."""

    def __init__(self, at, to, method, knows):
        self.provider, self.caller = Connection(to, greets=False), Connection(at, greets=False)
        self.method = method
        self.provider.send(method="rpc.register", params={"method": method}, id=1)
        assert self.provider.receive()["result"] == 1
        until(f"{method} is known", knows)
        self.asked = []
        self.numbers = []
        self.call(CALLS_HELD)

    def call(self, count):
        """Returns when the provider has been asked all of them."""
        for number in range(len(self.numbers), len(self.numbers) + count):
            self.caller.send(method=self.method, params=[number], id=number)
            self.numbers.append(number)
        while len(self.asked) != len(self.numbers):
            request = self.provider.receive()
            assert request["method"] == self.method, request
            self.asked.append(request)

    def finish(self):
        """All are answered with their results."""
        for request in self.asked:
            self.provider.send(result=request["params"][0], id=request["id"])
        answers = [self.caller.receive() for _ in self.numbers]
        assert [(one["id"], one["result"]) for one in answers] == [(number, number) for number in self.numbers], answers
        self.caller.close()
        self.provider.close()


def check(program, folder, url):
    brokers = {node: Broker(program, folder, url, node) for node in NODES}
    try:
        check_calls(program, brokers)
    finally:
        for broker in brokers.values():
            broker.kill()


def check_calls(program, brokers):
    asked = Asked()
    providers = []
    for node, broker in brokers.items():
        ready = threading.Event()
        arguments = (broker, f"work.{node}", asked, ready)
        providers.append(threading.Thread(target=provide, args=arguments, daemon=True))
        providers[-1].start()
        assert ready.wait(SECONDS)

    def methods(node):
        told = subprocess.run(
            [program, "ls", "--json", "--url", f"unix://{brokers[node].socket}"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return {one["name"] for one in json.loads(told.stdout)}

    all_methods = {f"work.{node}" for node in NODES}
    for node in NODES:
        until(f"{node} knows all methods", lambda node=node: all_methods <= methods(node))
    callers = {(at, to): Caller(brokers[at], f"work.{to}", asked) for at in NODES for to in NODES}
    for restart in range(RESTARTS):
        for caller in callers.values():
            caller.go_on(CALLS_BETWEEN)
        held = []
        for at, to in ((REPLACED, "one"), (REPLACED, "three"), ("one", REPLACED), ("three", REPLACED)):
            method = f"held.{restart}.{at}.{to}"
            knows = functools.partial(lambda at, method: method in methods(at), at, method)
            held.append(Held(brokers[at], brokers[to], method, knows))
        brokers[REPLACED].replace(by_signal=restart != RESTARTS // 2)
        for one in held[:2]:  # whose callers are still with the process that was replaced
            one.call(CALLS_HELD)
        for one in held:
            one.finish()
    for caller in callers.values():
        caller.go_on(CALLS_BETWEEN)
    errors = {names: dict(caller.errors) for names, caller in callers.items()}
    for caller in callers.values():  # when all is quiet no call fails
        caller.go_on(CALLS_BETWEEN)
        caller.end()
    assert errors == {names: dict(caller.errors) for names, caller in callers.items()}
    for names, told in errors.items():
        assert REPLACED in names or not told, (names, told)
        assert all(what.endswith("no") for what in told), (names, told)
    for node in NODES:
        if node != REPLACED:
            log = brokers[node].log()
            assert f"node {REPLACED} has gone" not in log, log
            assert log.count(f"node {REPLACED} is replaced by another process") == RESTARTS, log
    asked.is_over = True
    for broker in brokers.values():
        broker.end()
    for thread in providers:
        thread.join(SECONDS)
    print(f"  {sum(caller.results for caller in callers.values())} results, and "
          f"{6 * RESTARTS * CALLS_HELD} of calls in progress meanwhile; errors: "
          f"{ {' to '.join(names): told for names, told in errors.items() if told} }")  # fmt: skip


def main():
    nats = shutil.which("nats-server")
    if nats is None:
        print("skipped: there is no nats-server; tools/install_packages.sh test installs it")
        return SKIPPED
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        server = subprocess.Popen(
            [nats, "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", name],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            path = until("nats-server listens", lambda: next(iter(folder.glob("*.ports")), None))
            url = json.loads(until("its ports file", path.read_text))["nats"][0]
            check(sys.argv[1], folder, url)
        except BaseException:
            for log in sorted(folder.glob("*.log")):
                print(f"---- {log.name}\n{log.read_text()}", file=sys.stderr)
            raise
        finally:
            server.kill()
            server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
