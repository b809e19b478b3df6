"""Whatever is gathered, and however its callers give up, each call has one outcome, and that is its own. The function
waits at a gate, so that what waits for a batch when a caller gives up is known and nothing depends on time."""

import asyncio
import contextlib
import dataclasses
import json
import socket
import threading
from collections import Counter
from collections.abc import Awaitable, Iterator
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wirecall
from wirecall import Shared

WATCHDOG_S = 60  # of what never takes so long
# More than ever wait.
AMPLE_CALLS, AMPLE_BYTES = 1000, 1 << 20
ALL_FAIL, ONE_FAILS = 5, 7
LOST, TIMEOUT, REFUSED, WRONG, CANCELLED = -32001, -32002, -32005, -32602, -32800


@dataclasses.dataclass(frozen=True)
class Bounds:
    batch: int
    wait_ms: float | Literal["auto"]
    batch_bytes: int
    max_concurrent_batches: int


@dataclasses.dataclass(frozen=True)
class Element:
    """What the function does with a call, and how its caller gives up."""

    does: Literal["return", "fail", "fail all", "wrong"]
    group: Literal["a", "b"]
    pad: int
    gives_up: Literal["never", "never", "cancel", "timeout"]

    def params(self, number: int) -> list[Any]:
        return ["wrong" if self.does == "wrong" else number, self.does, "x" * self.pad, self.group]


@dataclasses.dataclass(frozen=True)
class Message:
    elements: list[Element]
    is_batch: bool

    def parts(self) -> list[list[Element]]:
        """What is sent at once."""
        return [self.elements] if self.is_batch else [[element] for element in self.elements]


@dataclasses.dataclass(frozen=True)
class Peer:
    messages: list[Message]
    leaves: bool


BOUNDS = st.builds(
    Bounds,
    batch=st.integers(1, 6),
    wait_ms=st.sampled_from([0, 0.5, "auto"]),
    batch_bytes=st.sampled_from([100, 200, AMPLE_BYTES]),
    max_concurrent_batches=st.integers(1, 3),
)
ELEMENTS = st.builds(
    Element,
    does=st.sampled_from(["return", "return", "return", "fail", "fail all", "wrong"]),
    group=st.sampled_from(["a", "a", "a", "b"]),
    pad=st.sampled_from([0, 0, 60, 150]),
    gives_up=st.sampled_from(["never", "never", "never", "cancel", "timeout"]),
)
PEERS = st.lists(
    st.builds(
        Peer,
        messages=st.lists(
            st.builds(Message, elements=st.lists(ELEMENTS, min_size=1, max_size=6), is_batch=st.booleans()), max_size=5
        ),
        leaves=st.sampled_from([False, False, False, True]),
    ),
    min_size=1,
    max_size=4,
)


@dataclasses.dataclass
class Run:
    numbers: list[int]
    fails: bool
    bytes: int


class Batched:
    """A batched function, which waits at the gate and notes its runs."""

    def __init__(self, bounds: Bounds, is_held: bool) -> None:
        self.bounds = bounds
        self.is_held = is_held
        self.runs: list[Run] = []
        self.most_at_once = 0
        self.elements: dict[int, Element] = {}
        self._at_once = 0
        self._lock = threading.Lock()
        self._began = threading.Semaphore(0)
        self._gate = threading.Event()
        if not is_held:
            self.open_gate()

    @contextlib.contextmanager
    def serving(self, is_async: bool, batch_queue: int = AMPLE_CALLS) -> Iterator[str]:
        app = wirecall.Server("batched")
        run = self._run_later if is_async else self._run
        app.add(run, name="work", batch_queue=batch_queue, **dataclasses.asdict(self.bounds))
        with app.serving() as uri:
            try:
                yield uri
            finally:
                self.open_gate()  # whatever has failed

    def _run(self, numbers: list[int], does: list[str], pads: list[str], group: Shared[str]) -> list[Any]:
        run = self._begin(numbers, does, pads, group)
        self._gate.wait(WATCHDOG_S)
        return self._end(run, numbers, does)

    async def _run_later(self, numbers: list[int], does: list[str], pads: list[str], group: Shared[str]) -> list[Any]:
        run = self._begin(numbers, does, pads, group)
        if not self._gate.is_set():
            await asyncio.to_thread(self._gate.wait, WATCHDOG_S)
        await asyncio.sleep(0)
        return self._end(run, numbers, does)

    def _begin(self, numbers: list[int], does: list[str], pads: list[str], group: str) -> int:
        """The number of the run."""
        params = zip(numbers, does, pads, strict=True)
        size = sum(len(json.dumps([*one, group], separators=(",", ":"))) for one in params)
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self.runs.append(Run(numbers, "fail all" in does, size))
            self._began.release()
            return len(self.runs) - 1

    def _end(self, run: int, numbers: list[int], does: list[str]) -> list[Any]:
        with self._lock:
            self._at_once -= 1
        if "fail all" in does:
            raise wirecall.Error(ALL_FAIL, "all fail", run)
        return [
            wirecall.Error(ONE_FAILS, "one fails", number) if what == "fail" else 2 * number
            for number, what in zip(numbers, does, strict=True)
        ]

    def new_number(self, element: Element) -> int:
        """Which no other call has."""
        self.elements[len(self.elements)] = element
        return len(self.elements) - 1

    def blockers(self) -> Iterator[Element]:
        """Calls that fill all runs, each to be made: then those that follow wait for the gate."""
        for _ in range(self.bounds.max_concurrent_batches if self.is_held else 0):
            yield Element("return", "a", 0, "never")
            assert self._began.acquire(timeout=WATCHDOG_S)

    def open_gate(self) -> None:
        self._gate.set()

    # ---- what has to hold ----

    def check_runs(self) -> None:
        assert self.most_at_once <= self.bounds.max_concurrent_batches
        for run in self.runs:
            assert 0 < len(run.numbers) <= self.bounds.batch
            assert len({self.elements[number].group for number in run.numbers}) == 1
            assert run.bytes <= self.bounds.batch_bytes or len(run.numbers) == 1
        seen = Counter(number for run in self.runs for number in run.numbers)
        assert all(count == 1 for count in seen.values())

    def check_outcome(self, number: int, outcome: Any, is_known: bool) -> None:
        """An outcome is the result, or (code, data of the error). `is_known`: who gives it up has done so before the
        gate opened."""
        element = self.elements[number]
        run = next((at for at, run in enumerate(self.runs) if number in run.numbers), None)
        code = outcome[0] if isinstance(outcome, tuple) else None
        if code == REFUSED:  # more than 4 * batch_bytes waited
            assert self.bounds.batch_bytes != AMPLE_BYTES
            assert run is None
            return
        given_up = {"cancel": CANCELLED, "timeout": TIMEOUT}.get(element.gives_up)
        if given_up is not None and code == given_up:
            assert run is None or not is_known  # who has not waited to the end is in no batch
            return
        assert given_up is None or not is_known
        if element.does == "wrong":
            assert (code, run) == (WRONG, None)
            return
        assert run is not None
        if self.runs[run].fails:
            assert outcome == (ALL_FAIL, run)
        else:
            assert outcome == ((ONE_FAILS, number) if element.does == "fail" else 2 * number)


class Wire:
    """A connection that shows all that the server sends, in lines of JSON."""

    def __init__(self, uri: str, batched: Batched) -> None:
        to = urlsplit(uri)
        self._socket = socket.create_connection((to.hostname or "", to.port or 0), timeout=WATCHDOG_S)
        self._lines = self._socket.makefile("rb")
        self._batched = batched
        self._batches: list[list[int]] = []  # the ids of each
        self._waiting: set[Any] = set()  # ids
        self.outcomes: dict[int, Any] = {}

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

    def send(self, message: Message) -> None:
        numbers = [self._batched.new_number(element) for element in message.elements]
        self._waiting.update(numbers)
        requests = [self._request(number) for number in numbers]
        if message.is_batch:
            self._batches.append(numbers)
        for one in [requests] if message.is_batch else requests:
            self._write(one)

    def _request(self, number: int) -> dict[str, Any]:
        element = self._batched.elements[number]
        request = {"jsonrpc": "2.0", "method": "work", "params": element.params(number), "id": number}
        return request | ({"timeout_ms": 1} if element.gives_up == "timeout" else {})

    def _write(self, message: Any) -> None:
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def give_up(self) -> None:
        """Returns when the server knows of all who do. Nobody is told of an element of a batch alone, so that the time
        of these may be up later."""
        awaited: set[Any] = {"ping"} | {number for number in self._waiting if self._is_told_of_timeout(number)}
        for number in self._waiting:
            if self._batched.elements[number].gives_up == "cancel":
                self._write({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
        self._waiting.add("ping")
        self._write({"jsonrpc": "2.0", "method": "rpc.ping", "id": "ping"})
        while awaited & self._waiting:
            self._read()

    def _is_told_of_timeout(self, number: int) -> bool:
        return self._batched.elements[number].gives_up == "timeout" and not self._is_in_batch(number)

    def _is_in_batch(self, number: int) -> bool:
        return any(number in batch for batch in self._batches)

    def finish(self) -> None:
        """Nothing comes behind the last answer."""
        while self._waiting:
            self._read()
        self._socket.shutdown(socket.SHUT_WR)
        assert self._lines.read() == b""

    def check(self) -> None:
        for number, outcome in self.outcomes.items():
            is_timeout = self._batched.elements[number].gives_up == "timeout"
            is_known = self._batched.is_held and not (is_timeout and self._is_in_batch(number))
            self._batched.check_outcome(number, outcome, is_known)

    def _read(self) -> None:
        message = json.loads(self._lines.readline())
        if isinstance(message, list):
            assert [one["id"] for one in message] in self._batches
        for one in message if isinstance(message, list) else [message]:
            self._waiting.remove(one["id"])  # fails for what nobody waits for
            if one["id"] != "ping":
                self.outcomes[one["id"]] = (
                    (error["code"], error.get("data")) if (error := one.get("error")) else one["result"]
                )


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
@settings(max_examples=40, deadline=None)
@given(bounds=BOUNDS, peers=PEERS, is_held=st.booleans())
def test_each_call_on_the_wire_is_answered_once_and_with_its_own(is_async, bounds, peers, is_held):
    batched = Batched(bounds, is_held)
    with batched.serving(is_async) as uri, contextlib.ExitStack() as stack:
        blocking, *wires = [stack.enter_context(contextlib.closing(Wire(uri, batched))) for _ in range(1 + len(peers))]
        for blocker in batched.blockers():
            blocking.send(Message([blocker], is_batch=False))
        for peer, wire in zip(peers, wires, strict=True):
            for message in peer.messages:
                wire.send(message)
        for wire in wires:
            wire.give_up()
        staying = [blocking]
        for peer, wire in zip(peers, wires, strict=True):
            if peer.leaves:
                wire.close()
            else:
                staying.append(wire)
        batched.open_gate()
        for wire in staying:
            wire.finish()
    for wire in staying:
        wire.check()
    batched.check_runs()


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
@settings(max_examples=20, deadline=None)
@given(bounds=BOUNDS, peers=PEERS, is_held=st.booleans(), encoding=st.sampled_from(["json", "msgpack"]))
def test_each_call_of_an_asyncio_client_has_its_own_outcome(is_async, bounds, peers, is_held, encoding):
    batched = Batched(dataclasses.replace(bounds, batch_bytes=AMPLE_BYTES), is_held)
    outcomes: dict[int, Any] = {}

    async def note(number: int, reply: Awaitable[Any]) -> None:
        try:
            outcomes[number] = await reply
        except wirecall.Error as error:
            outcomes[number] = (error.code, error.data)
        except asyncio.CancelledError:
            outcomes[number] = (CANCELLED, None)

    async def call_together(c: wirecall.AsyncClient, elements: list[Element]) -> None:
        numbers = [batched.new_number(dataclasses.replace(element, gives_up="never")) for element in elements]
        async with c.batch() as b:
            replies = [b.work(*batched.elements[number].params(number)) for number in numbers]
        for number, reply in zip(numbers, replies, strict=True):
            await note(number, reply)

    def call(c: wirecall.AsyncClient, element: Element) -> Awaitable[None]:
        number = batched.new_number(element)
        reply = c.work(*element.params(number), _timeout=0.001 if element.gives_up == "timeout" else None)
        if element.gives_up == "cancel":
            reply.cancel()
        return note(number, reply)

    async def main(uri: str) -> None:
        async with contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(wirecall.aconnect(uri, encoding=encoding)) for _ in peers]
            calls: list[asyncio.Future[Any]] = []
            for blocker in batched.blockers():
                calls.append(asyncio.ensure_future(call(clients[0], blocker)))
            for peer, c in zip(peers, clients, strict=True):
                for message in peer.messages:
                    if message.is_batch:
                        calls.append(asyncio.ensure_future(call_together(c, message.elements)))
                    else:
                        calls += [asyncio.ensure_future(call(c, element)) for element in message.elements]
            await asyncio.gather(*(c.rpc.ping() for c in clients))
            for peer, c in zip(peers, clients, strict=True):
                if peer.leaves:
                    await c.close()
            batched.open_gate()
            await asyncio.gather(*calls)

    with batched.serving(is_async) as uri:
        asyncio.run(main(uri))
    assert outcomes.keys() == batched.elements.keys()
    batched.check_runs()
    for number, outcome in outcomes.items():
        if isinstance(outcome, tuple) and outcome[0] == LOST:
            assert any(peer.leaves for peer in peers)
        else:
            batched.check_outcome(number, outcome, is_held and batched.elements[number].gives_up == "cancel")


@settings(max_examples=20, deadline=None)
@given(batch=st.integers(1, 4), more=st.integers(0, 12), calls=st.integers(1, 30))
def test_as_many_wait_as_the_queue_has_room_for_and_the_others_are_refused(batch, more, calls):
    queue = batch + more
    batched = Batched(Bounds(batch, 0, AMPLE_BYTES, max_concurrent_batches=1), is_held=True)
    with batched.serving(is_async=False, batch_queue=queue) as uri, contextlib.closing(Wire(uri, batched)) as wire:
        for blocker in batched.blockers():
            wire.send(Message([blocker], is_batch=False))
        wire.send(Message([Element("return", "a", 0, "never")] * calls, is_batch=True))
        wire.give_up()
        batched.open_gate()
        wire.finish()
    outcomes = [wire.outcomes[number] for number in range(1, 1 + calls)]
    assert outcomes[:queue] == [2 * number for number in range(1, 1 + min(calls, queue))]
    assert [outcome[0] for outcome in outcomes[queue:]] == [REFUSED] * (calls - queue)
    assert all(outcome[1]["retry_after_ms"] >= 1 for outcome in outcomes[queue:])
    batched.check_runs()
