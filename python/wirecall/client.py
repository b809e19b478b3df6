"""Client: calls methods of a server, and waits for the answers.

with wirecall.connect("tcp://127.0.0.1:8545") as c:
    c.sum(2, 3)
    c.sum(a=2, b=3)
    c["sum"](2, 3, _timeout=0.2)
"""

from __future__ import annotations

from ._base_client import BaseBatch, BaseClient, BaseMethod, BatchMethod, call_all_params, check_call, publish_params
from ._bootstrap import DEFAULT_URI
from .errors import LocalError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Any, NoReturn

    from ._base_client import Endpoints
    from ._methods import Described
    from ._native import Context, Subscription

__all__ = ["Batch", "BatchMethod", "Client", "Method", "Outcome", "connect"]


class Client(BaseClient):
    """The blocking client. Thread-safe; calls of several threads share the connection."""

    if TYPE_CHECKING:

        def __getitem__(self, name: str) -> Method: ...
        def __getattr__(self, name: str) -> Method: ...

    def _method(self, name: str) -> Method:
        return Method(self._native, name)

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
        return Batch(self._native)

    def call_all(self, method: str, /, *args: Any, _timeout: float | None = None, **kwargs: Any) -> Any:
        """At a broker: calls a method at every client that provides it. Returns a list of outcomes, one per provider:
        `{"client": name, "result": …}` or `{"client": name, "error": …}`. `_timeout`: seconds."""
        return self._native.call("rpc.call_all", (), call_all_params(method, args, kwargs), _timeout, "", None)

    def publish(self, topic: str, value: Any = None, *, retain: bool = False) -> int:
        """At a broker: publishes an event; returns the number of connections to which the broker queued it. `retain`:
        the broker keeps the value for clients that subscribe later with `last`."""
        count: Any = self._native.call("rpc.publish", (), publish_params(topic, value, retain), None, "", None)
        return int(count)

    def provide(self, name: str, function: Callable[..., Any], *, check_results: bool = True, **options: Any) -> None:
        """At a broker: provides a method to its other clients. `options`: `concurrency` (the most calls here at once),
        `queue` (the most that wait at the broker beyond that), `policy` ("least_inflight", "round_robin", …),
        `idempotent`, `safe`. The function runs on the thread that drives the client. `async def` needs `aconnect`.
        `check_results` as for `Server`. Raises the broker's refusal."""
        self._provide(name, function, check_results, options)
        self._native.connect()

    def provide_subscription(self, subscribe: str, /, *_: object, **__: object) -> NoReturn:
        """TypeError: what can be subscribed to is an async generator, which a client of wirecall.aconnect provides."""
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
    ) -> Subscription:
        """At a broker: calls `handler(topic, value)` with each event, on the thread that drives the client. In the
        topic `*` stands for one word, a last `>` for one or more. `group`: each event goes to one member of the group;
        `echo`: events that this client publishes come too; `last`: the retained event comes first."""
        subscription = self._native.subscribe(topic, handler, group, echo, last, None)
        self._native.connect()
        return subscription

    def tap(self, pattern: str, handler: Callable[[dict[str, Any]], object]) -> Subscription:
        """At a broker, as an admin: calls `handler(shown)` with each call, reply and event of the methods and topics
        that match the pattern (docs/broker.md "Looking on"), on the thread that drives the client. A client has one
        pattern."""
        subscription = self._native.tap(pattern, handler, None)
        self._native.connect()
        return subscription

    def close(self) -> None:
        """Ends what has not ended, with ConnectionLost. Again: no effect."""
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
        self, /, *args: Any, _timeout: float | None = None, _to: str = "", _within: Context | None = None, **kwargs: Any
    ) -> Any:
        """Calls it and returns its result. `_timeout`: seconds (default: the client's). `_to`: at a broker, only the
        client of that name serves it. `_within`: the `Context` of the call that this one is part of; it ends with that
        call, and within its time."""
        try:
            return self._target.call(self._name, args, kwargs, _timeout, _to, _within)
        except TypeError:
            check_call(args, kwargs, _timeout, _to, _within)
            raise

    def stream(
        self, /, *args: Any, _timeout: float | None = None, _to: str = "", _within: Context | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        """Calls it for its results as they come. `_timeout`: seconds for the whole stream; the client's `timeout`
        bounds the wait for each result."""
        check_call(args, kwargs, _timeout, _to, _within)
        stream = self._target.stream(self._name, args, kwargs, _timeout, _to, _within)
        while True:
            try:
                item = stream.next()
            except StopIteration:
                return
            yield item


class Outcome:
    """What a call of a batch comes to."""

    __slots__ = ("_outcome",)

    def __init__(self) -> None:
        self._outcome: tuple[bool, Any] | None = None

    def result(self) -> Any:
        """Its result; or raises what it was answered with. LocalError before the batch has been sent."""
        if self._outcome is None:
            raise LocalError("the batch has not been sent: it is when its `with` ends")
        good, value = self._outcome
        if good:
            return value
        raise value


class Batch(BaseBatch):
    """Several calls in one message, which is sent when its `with` ends. `b.name(…)` and `b["name"](…)` are calls, as of
    a client."""

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
    """A client of a server at an endpoint such as "tcp://127.0.0.1:8545", "unix:///run/wc.sock", "http://host/rpc" or
    "ws://host/", connected; of several endpoints the next is tried where one does not answer. `timeout`: seconds for each call
    (default: 30); `wait`: seconds for which connecting is retried while there is no server, and each call while nobody
    provides its method (default: 0); `options`: those of a client in docs/options.md. ConnectionLost (-32001) when
    there is no server."""
    client = Client(uri, timeout=timeout, wait=wait, **options)
    try:
        client._native.connect()
    except BaseException:
        client.close()
        raise
    return client
