"""Client: calls methods of a server, and waits for the answers.

with wirecall.connect("tcp://127.0.0.1:8545") as c:
    c.sum(2, 3)
    c.sum(a=2, b=3)
    c["sum"](2, 3, _timeout=0.2)
"""

from __future__ import annotations

import time

from ._base_client import (
    BaseBatch,
    BaseClient,
    BaseMethod,
    BatchMethod,
    call_all_params,
    check_call,
    consumer_options,
    durable_params,
    publish_params,
    push_params,
    refuse_by,
)
from ._bootstrap import DEFAULT_URI
from ._progress import progress_bar
from .errors import LocalError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType
    from typing import Any, NoReturn

    from ._base_client import Endpoints
    from ._methods import Described
    from ._native import Context, EventReply, Subscription

__all__ = ["Batch", "BatchMethod", "Client", "Method", "Outcome", "connect"]


def _acknowledging(handler: Callable[[str, Any], object]) -> Callable[[str, Any, EventReply], None]:
    def called(topic: str, value: Any, reply: EventReply) -> None:
        try:
            handler(topic, value)
        except BaseException as error:
            refuse_by(reply, error)
            raise
        reply.acknowledge()

    return called


class Client(BaseClient):
    """The blocking client: a call blocks until its answer. Thread-safe; calls of several threads share the
    connection."""

    if TYPE_CHECKING:

        def __getitem__(self, name: str) -> Method: ...
        def __getattr__(self, name: str) -> Method: ...

    def _method(self, name: str) -> Method:
        return (Method if self._layouts is None else PackingMethod)(self._native, name, self._catalogue)

    def _describe(self, function: Callable[..., Any], name: str, check_results: bool) -> Described:
        from ._methods import LOOP, describe

        described = describe(function, name, check_results=check_results)
        if described.runs_on != LOOP:
            raise TypeError(
                f"wirecall: {name} is asynchronous or yields: a client of wirecall.aconnect takes async def"
            )
        return described

    def batch(self) -> Batch:
        """Several calls in one message: `with c.batch() as b: x = b.sum(1, 2)`; then `x.result()`."""
        return Batch(self._native, self._catalogue)

    def call_all(self, method: str, /, *args: Any, _timeout: float | None = None, **kwargs: Any) -> Any:
        """At a broker: calls a method at every client that provides it. Returns a list of outcomes, one per provider:
        `{"client": name, "result": …}` or `{"client": name, "error": …}`. `_timeout`: seconds."""
        return self._native.call(
            "rpc.call_all", (), call_all_params(method, args, kwargs), _timeout, "", None, False, None
        )

    def publish(self, topic: str, value: Any = None, *, retain: bool = False) -> int:
        """At a broker: publishes an event; returns the number of connections to which the broker queued it. `retain`:
        the broker keeps the value for clients that subscribe later with `last`."""
        count: Any = self._native.call(
            "rpc.publish", (), publish_params(topic, value, retain), None, "", None, False, None
        )
        return int(count)

    def publish_durable(self, topic: str, value: Any = None, *, msg_id: str = "") -> dict[str, Any]:
        """At a broker with a durable store: publishes an event, and returns once it is safe: `{"seq": n}`, with
        `"duplicate": True` where the event had been kept before by the same `msg_id`. See docs/durable.md."""
        kept: Any = self._native.call(
            "rpc.publish", (), durable_params(topic, value, msg_id), None, "", None, False, None
        )
        return dict(kept)

    def push(
        self,
        method: str,
        /,
        *args: Any,
        _msg_id: str | None = None,
        _delay_ms: int | None = None,
        _max_deliver: int | None = None,
        _timeout_ms: int | None = None,
        **kwargs: Any,
    ) -> int:
        """At a broker with a durable store: pushes a call that the broker makes when a client provides the method, and
        returns the job's id once it is safe. `c.rpc.queue.result(id)` tells what has become of it. `_msg_id`: a job of
        the same method and id is pushed once. `_delay_ms`: the call is made no sooner. `_max_deliver`: it is made so
        often at most (default 5; 0 for no limit). `_timeout_ms`: a provider has to answer in that time (default one
        hour)."""
        params = push_params(
            method,
            args,
            kwargs,
            msg_id=_msg_id,
            delay_ms=_delay_ms,
            max_deliver=_max_deliver,
            timeout_ms=_timeout_ms,
        )
        pushed: Any = self._native.call("rpc.queue.push", (), params, None, "", None, False, None)
        return int(pushed["id"])

    def provide(self, name: str, function: Callable[..., Any], *, check_results: bool = True, **options: Any) -> None:
        """At a broker: provides a method to its other clients. Returns when the broker has accepted it; raises the
        broker's refusal, such as `Conflict`. `options`:

        - `concurrency`: the most calls that the broker sends to this client at once (default: no limit)
        - `queue`: the most further calls that wait at the broker (default: 1000)
        - `policy`: how the broker chooses among several providers, "least_inflight" (default), "round_robin", …
        - `idempotent`: the broker sends a call once more, to another provider, when this client is lost
        - `safe`: the method changes nothing
        - `batch`, `wait_ms`, …: it takes batches of calls, as of `Server.add`; unless `concurrency` says otherwise, the
          broker sends as many calls at once as two batches have

        The function runs on the thread that drives the client: a background thread, or one that is blocked in a call.
        `async def` needs `aconnect`. `check_results` as for `Server`."""
        self._provide(name, function, check_results, options)
        self._native.connect()

    def provide_subscription(self, subscribe: str, /, *_: object, **__: object) -> NoReturn:
        """Raises TypeError: a subscription is an async generator, which only a client of wirecall.aconnect provides."""
        raise TypeError(
            f"wirecall: {subscribe}: what can be subscribed to is an async generator: a client of wirecall.aconnect "
            "provides it"
        )

    def subscribe(
        self,
        topic: str,
        handler: Callable[[str, Any], object],
        *,
        group: str = "",
        echo: bool = False,
        last: bool = False,
        durable: str = "",
        start: str | int = "",
        ack_wait_ms: int | None = None,
        max_deliver: int | None = None,
        max_in_flight: int | None = None,
    ) -> Subscription:
        """At a broker: calls `handler(topic, value)` with each event, one after the other, on the thread that drives
        the client: a background thread, or one that is blocked in a call. What the handler raises goes to the log. In
        the topic `*` stands for one word, a last `>` for one or more. Raises the broker's refusal.

        - `group`: the name of a group of clients; each event goes to one of its members
        - `echo`: the handler also receives the events that this client publishes
        - `last`: the handler first receives the retained event of each topic
        - `durable`: the name of a consumer at the broker's durable store (docs/durable.md). Each event is kept for it
          until the handler has returned; where that raises, and where it has not returned within `ack_wait_ms` (30,000
          by default), the event comes again, `max_deliver` times at most (5; 0 for no limit). `start`: where a new
          consumer begins, "first", "new" or the seq of an event. `max_in_flight`: of all who have joined it (64)"""
        options = consumer_options(durable, start, ack_wait_ms, max_deliver, max_in_flight)
        if durable:
            if group or echo or last:
                raise ValueError("wirecall: a subscription with durable has no group, echo and last")
            subscription = self._native.consume(topic, _acknowledging(handler), options, None)
        else:
            subscription = self._native.subscribe(topic, handler, group, echo, last, None)
        self._native.connect()
        return subscription

    def tap(self, pattern: str, handler: Callable[[dict[str, Any]], object]) -> Subscription:
        """At a broker, as an admin: calls `handler(shown)` with each call, reply and event of the methods and topics
        that match the pattern (docs/broker.md "Tapping traffic"), on the thread that drives the client: a background
        thread, or one that is blocked in a call. A client has one pattern."""
        subscription = self._native.tap(pattern, handler, None)
        self._native.connect()
        return subscription

    def close(self) -> None:
        """Closes the connections. Calls that are not answered yet raise ConnectionLost, later calls LocalError. A
        second `close` has no effect."""
        self._closed = True
        self._native.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class Method(BaseMethod):
    """A method of a server, by name. Calling it calls it there; `c.gpu.add` is the method `gpu.add`."""

    __slots__ = ()

    def __call__(
        self,
        /,
        *args: Any,
        _timeout: float | None = None,
        _to: str = "",
        _within: Context | None = None,
        _idempotent: bool = False,
        _input: Iterable[Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Calls the method and returns its result; raises the `Error` of the answer.

        - `_timeout`: seconds until the call raises Timeout (default: the client's `timeout`)
        - `_to`: at a broker, the name of the client that serves the call
        - `_within`: the `Context` of the call that this one is part of; the call is cancelled with that call, and has
          its deadline
        - `_idempotent`: the method may run several times for the call, which by UDP is sent again until it is
          answered
        - `_input`: an iterable, such as a generator or a range: the stream that the call sends to a handler that takes
          one. The thread that drives the client asks it for each item, when the server has room for that. What it
          raises, the call raises"""
        source = None if _input is None else _iterator(_input)
        try:
            return self._target.call(self._name, args, kwargs, _timeout, _to, _within, _idempotent, source)
        except TypeError:
            check_call(args, kwargs, _timeout, _to, _within, _idempotent)
            raise

    def stream(
        self,
        /,
        *args: Any,
        _timeout: float | None = None,
        _to: str = "",
        _within: Context | None = None,
        _input: Iterable[Any] | None = None,
        _progress: bool | int = False,
        **kwargs: Any,
    ) -> Iterator[Any]:
        """Calls the method, and yields the results of its stream as they arrive. `_timeout`: seconds for the whole
        stream (default: no limit); the client's `timeout` limits the wait for each result. `_progress`: True shows a
        bar of tqdm that counts the results; a number is how many there will be. The other options as of a call. Closing
        the generator cancels the call."""
        check_call(args, kwargs, _timeout, _to, _within)
        source = None if _input is None else _iterator(_input)
        with progress_bar(_progress, self._name) as bar:
            stream = self._target.stream(self._name, args, kwargs, _timeout, _to, _within, source)
            while True:
                try:
                    item = stream.next()
                except StopIteration:
                    return
                bar.update()
                yield item


class PackingMethod(Method):
    """The same of a client with encoding="packed": params and result are packed where the method takes them so."""

    __slots__ = ()

    def __call__(
        self,
        /,
        *args: Any,
        _timeout: float | None = None,
        _to: str = "",
        _within: Context | None = None,
        _idempotent: bool = False,
        _input: Iterable[Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """As `Method`. The first call of a client asks the server for the layouts (rpc.discover), which counts for the
        call's own `_timeout`."""
        from ._packing import DISCOVER, call_steps

        layouts = self._catalogue.layouts
        if layouts is None or _input is not None or self._name.startswith("rpc."):
            options: dict[str, Any] = {"_timeout": _timeout, "_to": _to, "_within": _within, "_idempotent": _idempotent}
            return super().__call__(*args, _input=_input, **options, **kwargs)
        check_call(args, kwargs, _timeout, _to, _within, _idempotent)
        deadline = None if _timeout is None else time.monotonic() + _timeout

        def call(name: str, args: Any, kwargs: Any) -> Any:
            left = None if deadline is None else max(deadline - time.monotonic(), 0.001)
            if name == DISCOVER[0]:
                return self._target.call(name, args, kwargs, left, "", _within, False, None)
            return self._target.call(name, args, kwargs, left, _to, _within, _idempotent, None)

        steps = call_steps(layouts, self._name, args, kwargs)
        try:
            step = next(steps)
            while True:
                try:
                    result = call(*step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            return end.value


def _iterator(items: Iterable[Any]) -> Iterator[Any]:
    try:
        return iter(items)
    except TypeError:
        if hasattr(items, "__aiter__"):
            raise TypeError("_input is an asynchronous iterator: it needs a client of wirecall.aconnect") from None
        raise TypeError(f"_input is an iterable of the items to send, not {items!r}") from None


class Outcome:
    """The result or the error of one call of a batch."""

    __slots__ = ("_outcome",)

    def __init__(self) -> None:
        self._outcome: tuple[bool, Any] | None = None

    def result(self) -> Any:
        """Returns the result of the call, or raises the error of its answer. LocalError before the batch is sent."""
        if self._outcome is None:
            raise LocalError("the batch has not been sent: it is when its `with` ends")
        good, value = self._outcome
        if good:
            return value
        raise value


class Batch(BaseBatch):
    """Several calls in one message, which is sent when its `with` ends; that blocks until all are answered. `b.name(…)`
    and `b["name"](…)` add a call and return its `Outcome`."""

    _make_outcome = Outcome

    def __enter__(self) -> Batch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            return
        for outcome, came in zip(self._outcomes, self._native.send(), strict=True):
            outcome._outcome = came


def connect(
    uri: Endpoints = DEFAULT_URI, *, timeout: float | None = None, wait: float | None = None, **options: Any
) -> Client:
    """Connects to a server, and returns the client.

    - `uri`: an endpoint such as "tcp://127.0.0.1:8545" (default), "unix:///run/wc.sock", "udp://host",
      "http://host/rpc" or "ws://host/", by TLS "tls://host:8545", "https://host/rpc" or "wss://host/"; or a list of
      endpoints, of which the next is tried when one does not answer
    - `timeout`: seconds until a call raises Timeout (default: 30)
    - `wait`: seconds for which connecting is retried while there is no server, and a call while nobody provides its
      method (default: 0)
    - `options`: the options of a client in docs/options.md

    Raises ConnectionLost (-32001) when there is no server, and ValueError for an invalid endpoint or option."""
    client = Client(uri, timeout=timeout, wait=wait, **options)
    try:
        client._native.connect()
    except BaseException:
        client.close()
        raise
    return client
