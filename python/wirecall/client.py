"""Client: calls methods of a server, and waits for the answers.

with wirecall.connect("tcp://127.0.0.1:8545") as c:
    c.sum(2, 3)
    c.sum(a=2, b=3)
    c["sum"](2, 3, _timeout=0.2)
"""

from __future__ import annotations

import json

from . import _bootstrap, _native
from ._bootstrap import DEFAULT_URI, check_endpoint
from .errors import LocalError, _of_the_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Any, NoReturn, TypeVar

    from ._methods import Described

    # One endpoint, or several of one service: the next is tried where one does not answer.
    Endpoints = str | list[str] | tuple[str, ...]
    OnRefused = TypeVar("OnRefused", bound=Callable[[str, Exception], object])
    OnLagged = TypeVar("OnLagged", bound=Callable[[str, int], object])
    OnConnection = TypeVar("OnConnection", bound=Callable[[_native.ConnectionNews], object])


class _Named:
    """What has methods by their names, and is no container of them. Python would look through whatever has
    `__getitem__` by numbers, to which there is no end here."""

    __iter__: None = None
    __contains__: None = None


def _check_timeout(timeout: object) -> None:
    if isinstance(timeout, bool) or (timeout is not None and not isinstance(timeout, int | float)):
        raise TypeError(f"a timeout is a number of seconds, not {timeout!r}") from None


def _check_manner(timeout: object, to: object, within: object) -> None:
    """What the native side says of these is about its own functions."""
    _check_timeout(timeout)
    if not isinstance(to, str):
        raise TypeError(f"_to is the name of a client, a string, not {to!r}") from None
    if within is not None and not isinstance(within, _native.Context):
        raise TypeError(f"_within is a wirecall.Context, not {within!r}") from None


def _check_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """TypeError for arguments by position and by name, of which one may be meant for the call itself."""
    if not args or not kwargs:
        return
    both = "JSON-RPC has arguments by position or by name, not both in one call"
    for name in kwargs:
        if cure := _of_the_call(name):
            mistake = f"there is no option {name} of a call" if name.startswith("_") else both
            raise TypeError(f"{mistake}; {cure}") from None
    raise TypeError(both) from None


def _cure_of_option(failure: str, options: dict[str, Any]) -> str:
    """For an option that the native side does not know, and finds no name near: what connect has beside options."""
    for name in options:
        if failure != f"there is no option {name}":
            continue
        if name in ("host", "port"):
            host = str(options.get("host", "localhost"))
            endpoint = f"{f'[{host}]' if ':' in host else host}:{options.get('port', 8545)}"
            return f'; the address is the first argument: connect("{endpoint}")'
        if nearest := _native.nearest(name, ["timeout", "wait", "uri"]):
            return f"; did you mean {nearest}?"
    return ""


def _checked(name: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a method is a string, not {type(name).__name__}")
    return name


class _Base(_Named):
    """What both faces of a client have in common. Its own names are few, and `c["name"]` reaches any method."""

    # Where functions are called of which there are no calls: in asyncio's loop, or on the thread that drives.
    _calls: _native.Calls | None = None
    _native: _native.Client

    def __init__(
        self, uri: Endpoints = DEFAULT_URI, *, timeout: float | None = None, wait: float | None = None, **options: Any
    ) -> None:
        if timeout is not None:
            _check_timeout(timeout)
            options["call_timeout_ms"] = max(1, round(timeout * 1000))
        if wait is not None:
            _check_timeout(wait)
            options["wait_ms"] = max(0, round(wait * 1000))
        for endpoint in uri if isinstance(uri, list | tuple) else [uri]:
            check_endpoint(endpoint, "a client takes the endpoint of a server")
        try:
            self._native = _native.Client([uri] if isinstance(uri, str) else list(uri), json.dumps(options))
        except ValueError as failure:
            raise ValueError(f"{failure}{_cure_of_option(str(failure), options)}") from None
        _bootstrap.at_exit(self._end)

    def _end(self) -> None:
        self._native.end()

    def _task_of(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        """As what it is called: of the asyncio face, what a handler leaves to be awaited becomes a task."""
        return handler

    def on_refused(self, function: OnRefused) -> OnRefused:
        """`function(name, error)` is called when a broker refuses a method that is provided, or a topic that is
        subscribed to, after a reconnection too. One function each; also as a decorator."""
        self._native.on_refused(self._task_of(function), self._calls)
        return function

    def on_lagged(self, function: OnLagged) -> OnLagged:
        """`function(topic, count)` is called when a broker has dropped events, which came faster than they were
        taken."""
        self._native.on_lagged(self._task_of(function), self._calls)
        return function

    def on_connection(self, function: OnConnection) -> OnConnection:
        """`function(news)` is called when a connection has been made or has ended (`news.connected`, `news.endpoint`,
        `news.cause`): who subscribes looks there anew at what it has missed meanwhile."""
        self._native.on_connection(self._task_of(function), self._calls)
        return function

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__}>"


class Client(_Base):
    """The blocking face. Thread-safe; calls of several threads share the connection."""

    def __getitem__(self, name: str) -> Method:
        """The method of that name, whatever it is."""
        return Method(self._native, _checked(name))

    def __getattr__(self, name: str) -> Method:
        if name.startswith("__"):
            raise AttributeError(name)
        method = Method(self._native, name)
        self.__dict__[name] = method
        return method

    def notify(self, method: str, /, *args: Any, **kwargs: Any) -> None:
        """Calls without an answer: a notification."""
        self._native.notify(method, args, kwargs)

    def batch(self) -> Batch:
        """Several calls in one message: `with c.batch() as b: x = b.sum(1, 2)`; then `x.result()`."""
        return Batch(self._native)

    def call_all(self, method: str, /, *args: Any, _timeout: float | None = None, **kwargs: Any) -> Any:
        """At a broker: calls a method at all who provide it; a list of their outcomes."""
        return self._native.call("rpc.call_all", (), _all_params(method, args, kwargs), _timeout, "", None)

    def publish(self, topic: str, value: Any = None, *, retain: bool = False) -> int:
        """At a broker: publishes an event, and returns to how many connections it was queued."""
        count: Any = self._native.call("rpc.publish", (), _event_params(topic, value, retain), None, "", None)
        return int(count)

    def offer(self, name: str, function: Callable[..., Any], *, check_results: bool = True) -> None:
        """Lets the server call a function while it serves a call of this client (`ctx.call`). It runs on the thread
        that drives the client. `async def` needs `aconnect`. `check_results` as for `Server`."""
        told = _plain(function, name, check_results)
        self._native.offer(name, function, told.execution, told.parameters, told.result, told.checked, None)

    def provide(self, name: str, function: Callable[..., Any], *, check_results: bool = True, **options: Any) -> None:
        """At a broker: provides a method to its other clients. `options`: concurrency, queue, policy, idempotent, safe.
        The function runs on the thread that drives the client. `async def` needs `aconnect`. `check_results` as for
        `Server`."""
        from ._methods import LOOP

        _check_provided(options)
        told = _plain(function, name, check_results)
        self._native.provide(
            name, function, LOOP, told.parameters, told.result, told.checked, told.summary, options, None
        )
        self._native.connect()

    def provide_subscription(self, subscribe: str, /, *_: object, **__: object) -> NoReturn:
        """TypeError: what can be subscribed to is an async generator, which a client of wirecall.aconnect provides."""
        raise TypeError(
            f"wirecall: {subscribe}: what can be subscribed to is an async generator: a client of wirecall.aconnect "
            "provides it"
        )

    def unprovide(self, name: str) -> bool:
        """Provides that method no longer; False when it is not provided."""
        return bool(self._native.unprovide(name))

    def subscribe(
        self,
        topic: str,
        handler: Callable[[str, Any], object],
        *,
        group: str = "",
        echo: bool = False,
        last: bool = False,
    ) -> _native.Subscription:
        """At a broker: calls `handler(topic, value)` with each event, on the thread that drives the client."""
        subscription = self._native.subscribe(topic, handler, group, echo, last, None)
        self._native.connect()
        return subscription

    def tap(self, pattern: str, handler: Callable[[dict[str, Any]], object]) -> _native.Subscription:
        """At a broker, for its admins: calls `handler(shown)` with what passes under the methods and topics that the
        pattern stands for, on the thread that drives the client. A client has one pattern."""
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


class Method:
    """A method of a server, by name. Calling it calls it there; `c.gpu.add` is the method `gpu.add`."""

    __slots__ = ("_name", "_native")

    def __init__(self, native: _native.Client, name: str) -> None:
        self._native = native
        self._name = name

    def __call__(
        self,
        /,
        *args: Any,
        _timeout: float | None = None,
        _to: str = "",
        _within: _native.Context | None = None,
        **kwargs: Any,
    ) -> Any:
        """Calls it and returns its result. `_timeout`: seconds; `_to`: the client of that name alone (at a broker);
        `_within`: the call that is served by it, which it ends with, and whose time it has."""
        try:
            return self._native.call(self._name, args, kwargs, _timeout, _to, _within)
        except TypeError:
            _check_manner(_timeout, _to, _within)
            _check_arguments(args, kwargs)
            raise

    def stream(
        self,
        /,
        *args: Any,
        _timeout: float | None = None,
        _to: str = "",
        _within: _native.Context | None = None,
        **kwargs: Any,
    ) -> Iterator[Any]:
        """Calls it for its results as they come."""
        _check_manner(_timeout, _to, _within)
        _check_arguments(args, kwargs)
        stream = self._native.stream(self._name, args, kwargs, _timeout, _to, _within)
        while True:
            try:
                item = stream.next()
            except StopIteration:
                return
            yield item

    def __getattr__(self, name: str) -> Method:
        if name.startswith("__"):
            raise AttributeError(name)
        return Method(self._native, f"{self._name}.{name}")

    def __repr__(self) -> str:
        return f"<method {self._name}>"


_PROVIDED = {"concurrency": int, "queue": int, "policy": str, "idempotent": bool, "safe": bool}


def _check_provided(options: dict[str, object]) -> None:
    for option, value in options.items():
        kind = _PROVIDED.get(option)
        if kind is None:
            raise TypeError(f"there is no option {option!r} of a method; there are {', '.join(_PROVIDED)}")
        if type(value) is not kind:
            raise TypeError(f"the option {option} is of type {kind.__name__}, not {value!r}")
        if isinstance(value, int) and not 0 <= value < 2**32:
            raise ValueError(f"the option {option} is between 0 and {2**32 - 1}, not {value}")


def _plain(function: Callable[..., Any], name: str, check_results: bool) -> Described:
    from ._methods import LOOP, describe

    described = describe(function, name, check_results=check_results)
    if described.execution != LOOP:
        raise TypeError(f"wirecall: {name} is asynchronous or yields: a client of wirecall.aconnect takes async def")
    return described


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


class Batch(_Named):
    """Several calls in one message, which is sent when its `with` ends. `b.name(…)` and `b["name"](…)` are calls, as of
    a client."""

    def __init__(self, native: _native.Client) -> None:
        self._native = native.batch()
        self._outcomes: list[Outcome] = []

    def __getitem__(self, name: str) -> BatchMethod:
        return BatchMethod(self, _checked(name))

    def __getattr__(self, name: str) -> BatchMethod:
        if name.startswith("__"):
            raise AttributeError(name)
        return BatchMethod(self, name)

    def notify(self, method: str, /, *args: Any, **kwargs: Any) -> None:
        """A notification."""
        self._native.add_notification(method, args, kwargs)

    def _add(
        self, name: str, args: Any, kwargs: Any, timeout: float | None, to: str, within: _native.Context | None
    ) -> Outcome:
        _check_manner(timeout, to, within)
        _check_arguments(args, kwargs)
        self._native.add(name, args, kwargs, timeout, to, within)
        outcome = Outcome()
        self._outcomes.append(outcome)
        return outcome

    def __enter__(self) -> Batch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            return
        for outcome, came in zip(self._outcomes, self._native.send(), strict=True):
            outcome._outcome = came


class BatchMethod:
    """A method to be called in a batch."""

    __slots__ = ("_batch", "_name")

    def __init__(self, batch: Any, name: str) -> None:
        self._batch = batch
        self._name = name

    def __call__(
        self,
        /,
        *args: Any,
        _timeout: float | None = None,
        _to: str = "",
        _within: _native.Context | None = None,
        **kwargs: Any,
    ) -> Any:
        """Adds a call of it. Returns what holds its outcome once the batch has been sent."""
        return self._batch._add(self._name, args, kwargs, _timeout, _to, _within)

    def __getattr__(self, name: str) -> BatchMethod:
        if name.startswith("__"):
            raise AttributeError(name)
        return BatchMethod(self._batch, f"{self._name}.{name}")


def _all_params(method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    _check_arguments(args, kwargs)
    return {"method": method, "params": kwargs or list(args)} if args or kwargs else {"method": method}


def _event_params(topic: str, value: Any, retain: bool) -> dict[str, Any]:
    params: dict[str, Any] = {"topic": topic}
    if value is not None:
        params["params"] = value if isinstance(value, list | tuple | dict) else [value]
    if retain:
        params["retain"] = True
    return params


def connect(
    uri: Endpoints = DEFAULT_URI, *, timeout: float | None = None, wait: float | None = None, **options: Any
) -> Client:
    """A client of a server at an endpoint such as "tcp://127.0.0.1:8545", "unix:///run/wc.sock" or "http://host/rpc",
    connected; of several endpoints the next is tried where one does not answer. `timeout`: seconds for each call;
    `wait`: seconds for which it goes on trying while there is no server, or, with each call, while nobody provides its
    method; `options`: those of a client in docs/options.md. ConnectionLost when there is no server."""
    client = Client(uri, timeout=timeout, wait=wait, **options)
    try:
        client._native.connect()
    except BaseException:
        client.close()
        raise
    return client
