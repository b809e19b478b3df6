"""Two brokers of the command over a real nats-server with the permissions that ship, and PyPI's nats-py, unmodified: it
calls methods, is told events, and finds the brokers as services. `check.py WIRECALL --environment FOLDER` installs nats-py
into the folder; with --all nats.go is compiled there as well, and does the same. Exits with 77 where there is no
nats-server, or nats-py cannot be had."""

import argparse
import asyncio
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cluster_check"))

from check import SKIPPED, Broker, Client, Nats, until  # noqa: E402

OPTIONS = ["--cluster-plain-principal", "plain", "--cluster-plain-topics", "orders.>"]
PRINCIPALS = [
    {"name": "plain", "tokens": ["of-plain"], "call": ["gpu.*", "!gpu.reset"], "publish": ["jobs.>"]},
    {"name": "all", "tokens": ["of-all"], "call": [">"], "provide": [">"], "publish": [">"], "subscribe": [">"]},
]
WAIT_SECONDS = 20


def interpreter_of(environment):
    """One that has nats-py; None where it cannot be had."""
    python = environment / "bin" / "python"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", environment], check=True, capture_output=True)
        install = [python, "-m", "pip", "install", "--quiet", "--requirement", HERE / "requirements.txt"]
        subprocess.run(install, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        print(f"skipped: nats-py cannot be installed: {(error.stderr or 'no venv')[-300:]}")
        return None
    return python


def go_program(environment):
    """By nats.go; None where it cannot be had."""
    program = environment / "plain_nats"
    if shutil.which("go") is None:
        print("skipped: nats.go: there is no go")
        return None
    download = subprocess.run(["go", "mod", "download"], cwd=HERE / "go", capture_output=True, text=True)
    if download.returncode != 0:
        print(f"skipped: nats.go cannot be had: {download.stderr[-300:]}")
        return None
    subprocess.run(["go", "build", "-o", program, "."], cwd=HERE / "go", check=True)
    return program


def known(client, **hello):
    client.send(method="rpc.hello", params={"token": "of-all", **hello}, id="hello")
    answer = client.receive()
    assert "result" in answer, answer
    return client


class Plain:
    """What nats-py does."""

    def __init__(self, connection, refused, brokers, url, go):
        self.connection = connection
        self.refused = refused  # what nats-py's error callback has been told
        self.brokers = brokers
        self.url = url
        self.go = go

    async def ask(self, subject, text, seconds=WAIT_SECONDS):
        return (await self.connection.request(subject, text.encode(), timeout=seconds)).data.decode()

    async def are_taken(self):
        """Brokers take calls once they know the others."""
        from nats.errors import NoRespondersError

        for _ in range(200):
            try:
                return await self.call("gpu.nothing")
            except NoRespondersError:
                await asyncio.sleep(0.05)
        raise AssertionError("no broker takes calls")

    async def call(self, method, *params, **more):
        message = {"jsonrpc": "2.0", "method": method, "params": list(params), "id": "n", **more}
        return json.loads(await self.ask(f"wc.shop.m.{method}", json.dumps(message)))

    async def serve(self, provider, count, result):
        """Answers so many calls that come to the provider."""

        def answer():
            for _ in range(count):
                asked = provider.receive()
                provider.send(result=result(asked["params"]), id=asked["id"])

        await asyncio.to_thread(answer)

    async def calls(self):
        provider = known(Client(self.brokers["two"]))
        for method in ("gpu.add", "gpu.reset", "other.add"):
            provider.provide(method)
        until("one lists it", lambda: "gpu.add" in self.brokers["one"].methods(token="of-all"))
        serving = asyncio.create_task(self.serve(provider, 100, sum))
        answers = await asyncio.gather(*(self.call("gpu.add", number, 1) for number in range(100)))
        await serving
        assert [answer["result"] for answer in answers] == [number + 1 for number in range(100)], answers
        batch = [{"jsonrpc": "2.0", "method": "gpu.add", "params": [n, n], "id": n} for n in range(3)]
        serving = asyncio.create_task(self.serve(provider, 3, sum))
        answer = json.loads(await self.ask("wc.shop.m.gpu.add", json.dumps(batch)))
        await serving
        assert sorted(one["result"] for one in answer) == [0, 2, 4], answer
        # What the principal may not call is unknown; and what is no message is refused.
        for method in ("gpu.reset", "other.add", "gpu.nothing"):
            assert (await self.call(method))["error"]["code"] == -32601, method
        assert json.loads(await self.ask("wc.shop.m.gpu.add", "{"))["error"]["code"] == -32700
        text = json.dumps({"jsonrpc": "2.0", "method": "gpu.reset", "id": 1})
        assert json.loads(await self.ask("wc.shop.m.gpu.add", text))["error"]["code"] == -32600
        # A deadline.
        late = await self.call("gpu.add", 1, timeout_ms=50)
        assert late["error"]["code"] == -32002, late
        provider.close()

    async def events(self):
        subscriber = known(Client(self.brokers["one"]))
        subscriber.send(method="rpc.subscribe", params={"topic": "jobs.>"}, id=1)
        assert subscriber.receive()["result"] is True
        event = {"jsonrpc": "2.0", "method": "jobs.new", "params": [7]}

        async def until_told(publish, receive):
            for _ in range(200):
                await publish()
                if (told := await receive()) is not None:
                    return told
            raise AssertionError("no event has come")

        async def publish_plainly():
            await self.connection.publish("wc.shop.m.jobs.new", json.dumps(event).encode())

        def receive():
            try:
                return subscriber.receive(0.1)
            except TimeoutError:
                return None

        assert await until_told(publish_plainly, lambda: asyncio.to_thread(receive)) == event
        subscriber.close()
        # And to plain clients.
        subscription = await self.connection.subscribe("wc.shop.t.orders.>")
        await self.connection.flush()
        publisher = known(Client(self.brokers["two"]))

        async def publish():
            publisher.send(method="orders.new", params={"id": 1})

        async def next_event():
            try:
                return await subscription.next_msg(0.1)
            except TimeoutError:
                return None

        told = await until_told(publish, next_event)
        assert told.subject == "wc.shop.t.orders.new", told
        assert json.loads(told.data) == {"jsonrpc": "2.0", "method": "orders.new", "params": {"id": 1}}, told
        publisher.close()

    async def look(self, subject, count):
        """All answers to a search for services."""
        inbox = self.connection.new_inbox()
        answers = await self.connection.subscribe(inbox)
        await self.connection.publish(subject, b"", reply=inbox)
        found = [json.loads((await answers.next_msg(WAIT_SECONDS)).data) for _ in range(count)]
        await answers.unsubscribe()
        return {one["id"]: one for one in found}

    async def services(self):
        provider = known(Client(self.brokers["two"]))
        provider.provide("gpu.add")
        found = await self.look("$SRV.PING", 2)
        assert set(found) == {"one", "two"}, found
        for service in found.values():
            assert service["name"] == "wirecall-shop", service
            assert service["type"] == "io.nats.micro.v1.ping_response", service
        info = (await self.look("$SRV.INFO.wirecall-shop.two", 1))["two"]
        assert [one["subject"] for one in info["endpoints"]] == ["wc.shop.m.gpu.add"], info
        stats = (await self.look("$SRV.STATS.wirecall-shop", 2))["two"]
        assert stats["endpoints"][0]["name"] == "gpu_add", stats
        assert stats["started"].endswith("Z"), stats
        # As nats-py itself reads them, where it has the types.
        from nats.micro.service import ServiceInfo, ServicePing, ServiceStats

        assert ServiceInfo.from_dict(info).endpoints[0].metadata == {"method": "gpu.add"}
        assert ServicePing.from_dict(found["one"]).version
        assert ServiceStats.from_dict(stats).endpoints[0].name == "gpu_add"
        provider.close()

    async def go_client(self):
        """What nats.go and its package micro make of it."""
        provider = known(Client(self.brokers["two"]))
        provider.provide("gpu.go")
        until("one lists it", lambda: "gpu.go" in self.brokers["one"].methods(token="of-all"))
        serving = asyncio.create_task(self.serve(provider, 1, sum))
        words = [str(self.go), self.url, "wirecall-shop", "gpu.go"]
        done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        await serving
        provider.close()

    async def only_what_is_permitted(self):
        """A plain client does not speak for brokers."""
        refused = self.refused
        refused.clear()
        for subject in ("wc.shop.hb", "wc.shop.n.one.call", "wc.shop.t.orders.new"):
            await self.connection.publish(subject, b"{}")
        await self.connection.flush()
        for _ in range(500):
            if len(refused) == 3:
                break
            await asyncio.sleep(0.01)
        assert len(refused) == 3, refused
        assert all("permissions violation" in one.lower() for one in refused), refused

    async def a_broker_that_ends_is_not_asked(self):
        self.brokers["one"].end(signal.SIGTERM)
        for _ in range(20):
            assert (await self.call("gpu.nothing"))["error"]["code"] == -32601


async def run(nats, brokers, go):
    import nats as client

    url = f"nats://plain:{nats.PLAIN_PASSWORD}@127.0.0.1:{nats.port}"
    refused = []

    async def told(error):
        refused.append(str(error))

    connection = await client.connect(url, allow_reconnect=False, error_cb=told)
    plain = Plain(connection, refused, brokers, url, go)
    for step in (
        plain.are_taken,
        plain.calls,
        plain.events,
        plain.services,
        *([plain.go_client] if go else []),
        plain.only_what_is_permitted,
        plain.a_broker_that_ends_is_not_asked,
    ):
        await step()
        print(f"{step.__name__}: passed")
    await connection.close()


def check(program, folder, go):
    (folder / "principals.json").write_text(json.dumps(PRINCIPALS))
    nats = Nats(shutil.which("nats-server"), folder)
    options = [*OPTIONS, "--principals-file", str(folder / "principals.json")]
    brokers = {}
    try:
        for node in ("one", "two"):
            brokers[node] = Broker(program, folder, nats, node, options)
        for node, other in (("one", "two"), ("two", "one")):
            until(f"{node} knows {other}", lambda: brokers[node].knows(other, token="of-all"))
        asyncio.run(run(nats, brokers, go))
    except BaseException:
        for log in sorted(folder.glob("*.log")):
            print(f"---- {log.name}\n{log.read_text()}", file=sys.stderr)
        raise
    finally:
        for broker in brokers.values():
            if broker.process.poll() is None:
                broker.end(signal.SIGKILL)
        nats.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wirecall")
    parser.add_argument("--environment", type=pathlib.Path, required=True)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    if shutil.which("nats-server") is None:
        print("skipped: there is no nats-server; tools/install_packages.sh test installs it")
        return SKIPPED
    python = interpreter_of(options.environment.resolve())
    if python is None:
        return SKIPPED
    if pathlib.Path(sys.prefix).resolve() != options.environment.resolve():
        return subprocess.run([python, "-B", *sys.argv]).returncode
    go = go_program(options.environment.resolve()) if options.all else None
    with tempfile.TemporaryDirectory(prefix="wirecall-plain-") as folder:
        check(os.path.abspath(options.wirecall), pathlib.Path(folder), go)
    return 0


if __name__ == "__main__":
    sys.exit(main())
