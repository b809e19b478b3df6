"""The blocking client, against servers of this process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator

import pytest

import wirecall


@pytest.fixture
def uri(app) -> Iterator[str]:
    @app
    def sum(a: int, b: int) -> int:
        return a + b

    @app(name="gpu.add")
    def gpu_add(a: int, b: int) -> int:
        return a + b

    @app
    def call(x: int) -> int:
        return x

    @app
    def notify(x: int) -> int:
        return -x

    @app
    def close() -> str:
        return "closed?"

    @app
    def count(n: int) -> Iterator[int]:
        yield from range(n)

    @app
    def echo(value):
        return value

    released = threading.Event()

    @app(blocking=True)
    def wait() -> bool:
        return released.wait(300)

    with app.serving() as uri:
        yield uri
        released.set()


def test_positions_names_and_paths(uri):
    with wirecall.connect(uri) as c:
        assert c.sum(2, 3) == 5
        assert c.sum(a=2, b=3) == 5
        assert c["sum"](2, 3, _timeout=300) == 5
        assert c.gpu.add(1, 2) == 3
        assert c["gpu.add"](1, 2) == 3


def test_no_remote_name_is_hidden(uri):
    with wirecall.connect(uri) as c:
        assert c.call(1) == c["call"](1) == 1
        assert c["notify"](1) == -1
        assert c["close"]() == "closed?"


def test_a_client_is_no_container(uri):
    named = [wirecall.Client(uri), wirecall.AsyncClient(uri)]
    for each in [*named, *(client.batch() for client in named)]:
        with pytest.raises(TypeError, match="not iterable"):
            iter(each)
        with pytest.raises(TypeError, match="not a container"):
            _ = "sum" in each
        with pytest.raises(TypeError, match="a method is a string, not int"):
            each[0]


def test_what_is_said_of_a_call_is_checked(uri):
    with wirecall.connect(uri) as c:
        for call in (c.sum, c.count.stream, c.batch().sum):
            for manner, words in (
                ({"_timeout": "x"}, "^a timeout is a number of seconds, not 'x'$"),
                ({"_to": 7}, "^_to is the name of a client, a string, not 7$"),
                ({"_within": 7}, "^_within is a wirecall.Context, not 7$"),
            ):
                with pytest.raises(TypeError, match=words):
                    list(call(1, 2, **manner))
    with pytest.raises(TypeError, match="a timeout is a number of seconds, not '1'"):
        wirecall.connect(uri, timeout="1")  # type: ignore[arg-type]

    async def main() -> None:
        async with wirecall.aconnect(uri) as c:
            with pytest.raises(TypeError, match="a timeout is a number of seconds, not 'x'"):
                await c.sum(1, 2, _timeout="x")

    asyncio.run(main())


def test_options_of_what_is_provided_are_checked(broker):
    with wirecall.connect(broker) as c:
        with pytest.raises(TypeError, match="no option 'concurency' of a method; there are concurrency, queue"):
            c.provide("a", len, concurency=1)
        with pytest.raises(TypeError, match="the option concurrency is of type int, not 'x'"):
            c.provide("a", len, concurrency="x")
        with pytest.raises(ValueError, match="the option queue is between 0 and 4294967295, not -1"):
            c.provide("a", len, queue=-1)
        c.provide("a", len, concurrency=1, queue=2, policy="round_robin", idempotent=True, safe=True)


def test_a_published_tuple_is_the_params(broker):
    heard: list[object] = []
    with wirecall.connect(broker) as c:
        c.subscribe("news", lambda topic, value: heard.append(value), echo=True)
        for value in ((1, 2), [1, 2]):
            c.publish("news", value)
        while len(heard) < 2:
            c["rpc.ping"]()
    assert heard == [[1, 2], [1, 2]]


def test_positions_and_names_do_not_mix(uri):
    with wirecall.connect(uri) as c, pytest.raises(TypeError, match="by position or by name"):
        c.sum(1, b=2)


def test_what_cannot_be_sent_is_a_type_error_with_its_location(uri):
    with wirecall.connect(uri) as c:
        with pytest.raises(TypeError, match=r"at 0\.a: builtins\.object has no form"):
            c.echo({"a": object()})
        with pytest.raises(TypeError, match="not finite"):
            c.echo(float("inf"))
        assert c.echo(1) == 1


def test_errors_are_one_tree(uri):
    with wirecall.connect(uri) as c:
        with pytest.raises(wirecall.MethodNotFound, match="did you mean 'sum'") as caught:
            c.smu(1, 2)
        assert isinstance(caught.value, wirecall.Error)
        assert caught.value.code == -32601
        with pytest.raises(wirecall.InvalidParams, match="at b, expected integer, got"):
            c.sum(1, "x")


def test_a_timeout_is_also_pythons(uri):
    with wirecall.connect(uri) as c:
        with pytest.raises(TimeoutError) as caught:
            c.wait(_timeout=0.05)
        assert isinstance(caught.value, wirecall.Timeout)
        assert c.sum(1, 2) == 3
        with pytest.raises(ValueError, match="timeout"):
            c.sum(1, 2, _timeout=-1)


def test_no_server():
    with pytest.raises(ConnectionError, match=r"127\.0\.0\.1:1\b") as caught:
        wirecall.connect("tcp://127.0.0.1:1")
    assert isinstance(caught.value, wirecall.ConnectionLost)
    assert "\n" not in str(caught.value)


def test_what_is_no_endpoint():
    with pytest.raises(ValueError, match="nonsense"):
        wirecall.connect("nonsense://x")


def test_streams(uri):
    with wirecall.connect(uri) as c:
        assert list(c.count.stream(1000)) == list(range(1000))
        assert c.count(5) == [0, 1, 2, 3, 4]
        first = iter(c.count.stream(10**9))
        assert [next(first) for _ in range(3)] == [0, 1, 2]
        del first  # ends the generator over there
        assert c.sum(1, 2) == 3
        with pytest.raises(wirecall.InvalidParams):
            list(c.count.stream("x"))


def test_notifications(app):
    came = threading.Event()
    app.add(came.set, name="log")
    with app.serving() as uri, wirecall.connect(uri) as c:
        c.notify("log")
        assert came.wait(300)


def test_many_threads_share_one_client(uri):
    wrong = []

    def work(c: wirecall.Client, n: int) -> None:
        wrong.extend(i for i in range(200) if c.sum(n, i) != n + i)

    with wirecall.connect(uri) as c:
        threads = [threading.Thread(target=work, args=(c, n)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_after_close(uri):
    c = wirecall.connect(uri)
    c.close()
    c.close()
    with pytest.raises(wirecall.LocalError, match="closed"):
        c.sum(1, 2)
    with pytest.raises(RuntimeError, match="closed"):  # what it is to Python
        c.sum(1, 2)


class Answering:
    """A server that answers every request with the same result or error, as JSON text."""

    def __init__(self, outcome: str) -> None:
        self.outcome = outcome

    def __enter__(self) -> str:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        return f"tcp://127.0.0.1:{self.listening.getsockname()[1]}"

    def serve(self) -> None:
        self.connection, _ = self.listening.accept()
        with self.connection as connection:
            while came := connection.recv(65536):  # one message, for such short ones as they are here
                asked = json.loads(came)
                answers = [
                    f'{{"jsonrpc":"2.0",{self.outcome},"id":{json.dumps(one["id"])}}}'
                    for one in (asked if isinstance(asked, list) else [asked])
                ]
                text = f"[{','.join(answers)}]" if isinstance(asked, list) else answers[0]
                connection.sendall(text.encode() + b"\n")

    def __exit__(self, *failure: object) -> None:
        with contextlib.suppress(OSError):  # the client has gone already
            self.connection.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listening.close()


def test_an_error_says_nothing_twice():
    error = wirecall.ConnectionLost("connection lost: reset by peer", {"reason": "reset by peer", "delivered": "maybe"})
    assert str(error) == "connection lost: reset by peer (-32001)"


@pytest.mark.parametrize("result", ["1e999", "[" + "9" * 5000 + "]"])
def test_a_result_that_python_cannot_hold_is_a_local_error(result):
    with Answering(f'"result":{result}') as endpoint, wirecall.connect(endpoint) as c:
        with pytest.raises(wirecall.LocalError, match="the result cannot be read: expected"):
            c.anything()
        with c.batch() as b:
            one = b.anything()
        with pytest.raises(wirecall.LocalError, match="the result cannot be read"):
            one.result()

    async def main(endpoint: str) -> None:
        async with wirecall.aconnect(endpoint) as c:
            with pytest.raises(wirecall.LocalError, match="the result cannot be read: expected"):
                await c.anything()

    with Answering(f'"result":{result}') as endpoint:
        asyncio.run(main(endpoint))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ('{"loc":5}', "at 5"),
        ('{"loc":["a",1],"expected":7,"got":null}', "at a.1, expected 7, got null"),
        ('{"loc":null,"did_you_mean":[]}', "at null, did you mean '[]'?"),
        ("[1]", "[1]"),
        ('{"account":7}', '{"account":7}'),
        ('"why"', '"why"'),
        ('{"reason":{}}', "{}"),
    ],
)
def test_an_error_can_be_told_whatever_its_data(data, words):
    error = f'"error":{{"code":7,"message":"seven","data":{data}}}'
    with Answering(error) as endpoint, wirecall.connect(endpoint) as c, pytest.raises(wirecall.Error) as caught:
        c.anything()
    assert str(caught.value) == f"seven (7): {words}"


@pytest.mark.parametrize(
    "data",
    [
        "null",
        '{"loc":["b"],"expected":"integer","got":"\\"three\\""}',
        '{"loc":["aa"],"expected":"nothing","got":"1","did_you_mean":"a",'
        '"also":[{"loc":["a",0,"b"],"expected":"integer","got":"nothing"}]}',
        '{"reason":"needs_connection"}',
        '{"reason":"many","origin":"local","delivered":"no","limit":"rate","retry_after_ms":20}',
        '{"reason":"seven","delivered":"maybe"}',
        '{"account":7}',
        '{"reason":5,"also":7}',
        '[1,{"a":null}]',
        '"why"',
        "1.5",
        "false",
    ],
)
def test_an_error_reads_as_the_command_tells_it(data):
    tool = pathlib.Path(sys.executable).with_name("wirecall")
    with Answering(f'"error":{{"code":7,"message":"it is seven","data":{data}}}') as endpoint:
        told = subprocess.run(
            [tool, "call", "anything", "--url", endpoint], capture_output=True, text=True, timeout=300, check=False
        ).stderr
    again = Answering(f'"error":{{"code":7,"message":"it is seven","data":{data}}}')
    with again as endpoint, wirecall.connect(endpoint) as c, pytest.raises(wirecall.Error) as caught:
        c.anything()
    assert told == str(caught.value).replace("it is seven (7)", "error 7: it is seven") + "\n"


def test_http(uri):
    with wirecall.connect(uri.replace("tcp://", "http://")) as c:
        assert c.sum(2, 3) == 5
        with pytest.raises(wirecall.MethodNotFound):
            c.nothing()


def test_websocket(uri):
    endpoint = uri.replace("tcp://", "ws://")
    with wirecall.connect(endpoint) as c:
        assert c.sum(2, 3) == 5
        assert list(c.count.stream(1000)) == list(range(1000))
        with c.batch() as batch:
            outcomes = [batch.sum(n, 1) for n in range(10)]
        assert [outcome.result() for outcome in outcomes] == list(range(1, 11))
        assert c.echo("κ" * 100_000) == "κ" * 100_000
        with pytest.raises(wirecall.MethodNotFound):
            c.nothing()
    with pytest.raises(wirecall.ConnectionLost, match="404 Not Found; check the path"):
        wirecall.connect(endpoint + "/nowhere")


async def calls_by_websocket(uri: str) -> list[int]:
    async with wirecall.aconnect(uri.replace("tcp://", "ws://")) as c:
        return await asyncio.gather(*(c.sum(n, 1) for n in range(100)))


def test_websocket_with_asyncio(uri):
    assert asyncio.run(calls_by_websocket(uri)) == list(range(1, 101))


def test_a_forked_child_is_told_to_make_its_own(uri):
    with wirecall.connect(uri) as c:
        assert c.sum(1, 2) == 3
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                c.sum(1, 2)
                said = "nothing"
            except RuntimeError as failure:
                said = str(failure)
            os.write(writing, said.encode())
            os._exit(0)
        os.close(writing)
        said = os.read(reading, 1000).decode()
        os.close(reading)
        os.waitpid(child, 0)
        assert "before fork" in said
        assert c.sum(1, 2) == 3


def test_ctrl_c_in_a_blocking_call(uri):
    # Who starts the tests in the background of a shell hands on that SIGINT is ignored.
    program = """
        import signal, sys, time, wirecall
        signal.signal(signal.SIGINT, signal.default_int_handler)
        c = wirecall.connect(sys.argv[1])
        try:
            print("calling", flush=True)
            c.wait()
        except KeyboardInterrupt:
            print("interrupted", time.monotonic(), flush=True)
        print(c.sum(1, 2), flush=True)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), uri], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "calling\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline().startswith("interrupted")
        assert process.stdout.readline() == "3\n"
        assert process.wait() == 0


def test_the_interpreter_ends_with_calls_in_flight(uri):
    program = """
        import sys, threading, wirecall
        c = wirecall.connect(sys.argv[1])
        for _ in range(3):
            threading.Thread(target=lambda: c.wait(), daemon=True).start()
        c.sum(1, 2)
        print("ends", flush=True)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), uri], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, "ends\n"), done.stderr


def test_providing_and_events(broker):
    events: list[tuple[str, object]] = []
    came = threading.Event()

    def news(topic: str, value: object) -> None:
        events.append((topic, value))
        came.set()

    with wirecall.connect(broker) as provider, wirecall.connect(broker) as caller:
        provider.provide("py.upper", str.upper, concurrency=1)
        provider.subscribe("news.*", news)
        assert caller.py.upper("abc") == "ABC"
        assert caller.publish("news.today", {"n": 1}) == 1
        assert came.wait(300)
        assert events == [("news.today", {"n": 1})]
        assert caller.call_all("py.upper", "x")[0]["result"] == "X"
        assert provider.unprovide("py.upper")
        assert not provider.unprovide("py.upper")
        with pytest.raises(TypeError, match="aconnect"):

            async def later() -> None: ...

            provider.provide("later", later)


def test_a_batch_is_one_message(uri):
    with wirecall.connect(uri) as c:
        with c.batch() as b:
            five = b.sum(2, 3)
            nine = b["sum"](a=4, b=5)
            wrong = b.sum(1, "x")
            b.notify("sum", 1, 2)
            with pytest.raises(wirecall.LocalError, match="has not been sent"):
                five.result()
        assert (five.result(), nine.result()) == (5, 9)
        with pytest.raises(wirecall.InvalidParams):
            wrong.result()
        with c.batch():
            pass
        with pytest.raises(ZeroDivisionError), c.batch() as b:
            b.sum(1, 2)
            1 / 0  # noqa: B018


def test_messagepack(uri):
    with wirecall.connect(uri, encoding="msgpack") as c:
        assert c.sum(2, 3) == 5
        with pytest.raises(wirecall.InvalidParams, match="at b, expected integer"):
            c.sum(1, "x")
