"""BaseClient, BaseBatch, BaseMethod: what the blocking client (client.py) and the asyncio client (aclient.py) share."""

from __future__ import annotations

import json

from . import _bootstrap, _native
from ._bootstrap import DEFAULT_URI, check_endpoint
from ._catalogue import Catalogue
from .errors import Error, LocalError, _call_option_hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn, Self, TypeVar

    from ._catalogue import Description
    from ._methods import Described
    from ._native import Context, EventReply
    from ._packing import Layouts

    # One endpoint, or several of one service: the next is tried where one does not answer.
    Endpoints = str | list[str] | tuple[str, ...]
    OnRefused = TypeVar("OnRefused", bound=Callable[[str, Exception], object])
    OnLagged = TypeVar("OnLagged", bound=Callable[[str, int], object])
    OnConnection = TypeVar("OnConnection", bound=Callable[[_native.ConnectionEvent], object])


class _MethodDocs:
    """The docstring of a class of methods; of one of its objects, what the server says of that method."""

    def __init__(self, own: str | None) -> None:
        self._own = own

    def __get__(self, method: BaseMethod | None, owner: type) -> str | None:
        return self._own if method is None else method._docs() or self._own


class BaseMethod:
    """A method of a server, by name. `m.part` is the method `name.part`.

    Its signature, docstring and completions are those that the server tells, which is asked when they are needed."""

    __slots__ = ("_catalogue", "_name", "_target")

    def __init__(self, target: Any, name: str, catalogue: Catalogue) -> None:
        self._target = target
        self._name = name
        self._catalogue = catalogue

    def __init_subclass__(cls) -> None:
        cls.__doc__ = _MethodDocs(cls.__doc__)  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Self:
        if name.startswith("_"):
            return self._as_function(name)  # type: ignore[no-any-return]
        return type(self)(self._target, f"{self._name}.{name}", self._catalogue)

    def _as_function(self, name: str) -> Any:
        """What a function has by that name, for inspect and its like."""
        if name == "__qualname__":
            return self._name
        if name == "__name__":
            return self._name.rpartition(".")[2]
        if name == "__signature__" and (description := self._description()) is not None:
            from ._signatures import signature_of

            return signature_of(description)
        return refuse_underscore(name)

    def _description(self) -> Description | None:
        """What the server says of it; None where it is not known."""
        return self._catalogue.methods().get(self._name)

    def _docs(self) -> str:
        description = self._description()
        if description is None:
            return ""
        from ._signatures import docs_of

        return docs_of(description)

    def __dir__(self) -> list[str]:
        return [*dir(type(self)), *self._catalogue.words_after(f"{self._name}.")]

    def __repr__(self) -> str:
        from ._signatures import line_of

        return f"<method {line_of(self._name, self._catalogue.known.get(self._name))}>"

    def _repr_html_(self) -> str:
        from ._html import table_of

        description = self._description()
        return table_of(repr(self)) if description is None else table_of("", {self._name: description})


class MethodsByName:
    """Has methods as attributes, `x.sum`, and as items, `x["sum"]`. It is no container: without `__iter__` Python would
    iterate over `__getitem__`, which has no end here."""

    __iter__: None = None
    __contains__: None = None
    _native: Any
    _catalogue: Catalogue

    def _method(self, name: str) -> Any:
        raise NotImplementedError

    def __getitem__(self, name: str) -> Any:
        """The method of that name; also of one that is a name of this class, or no identifier."""
        if not isinstance(name, str):
            raise TypeError(f"the name of a method is a string, not {type(name).__name__}")
        return self._method(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            refuse_underscore(name)
        return self._method(name)

    def __dir__(self) -> list[str]:
        return [*dir(type(self)), *self._catalogue.words_after("")]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._catalogue.methods())


class BaseClient(MethodsByName):
    """Calls the methods of a server: `c.name(…)`, or `c["name"](…)` for a name that this class has itself."""

    # The queue to the thread of the asyncio loop, which calls the program's functions; None: the driving thread does.
    _calls: _native.Calls | None = None
    _native: _native.Client
    # How methods are packed; None: nothing is, since the encoding is another than "packed".
    _layouts: Layouts | None = None
    _closed = False

    def __init__(
        self, uri: Endpoints = DEFAULT_URI, *, timeout: float | None = None, wait: float | None = None, **options: Any
    ) -> None:
        if timeout is not None:
            _check_timeout(timeout)
            options["call_timeout_ms"] = max(1, round(timeout * 1000))
        if wait is not None:
            _check_timeout(wait)
            options["wait_ms"] = max(0, round(wait * 1000))
        self._encoding = options.get("encoding", "json")
        if self._encoding == "packed":
            from ._packing import Layouts

            options["encoding"] = "protobuf"  # in whose messages packed values are bytes
            self._layouts = Layouts()
        self._endpoints = list(uri) if isinstance(uri, list | tuple) else [uri]
        for endpoint in self._endpoints:
            check_endpoint(endpoint, "a client takes the endpoint of a server")
        try:
            self._native = _native.Client(self._endpoints, json.dumps(options))
        except ValueError as failure:
            raise ValueError(f"{failure}{_option_hint(str(failure), options)}") from None
        self._catalogue = Catalogue(self._native, self._layouts)
        _bootstrap.at_exit(self._end)

    def __getattr__(self, name: str) -> Any:
        method = self.__dict__[name] = super().__getattr__(name)
        return method

    def _end(self) -> None:
        self._native.end()

    def _describe(self, function: Callable[..., Any], name: str, check_results: bool) -> Described:
        """What the native client is told of a function. TypeError for one that this client cannot run."""
        raise NotImplementedError

    def _task_of(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        """The function that is called for `handler`; of the asyncio client, one that makes tasks of coroutines."""
        return handler

    def notify(self, method: str, /, *args: Any, **kwargs: Any) -> None:
        """Sends a notification: a call without an answer. Blocks until the kernel has accepted its bytes, by HTTP until
        the server has responded; a client of `aconnect` blocks its event loop meanwhile. Raises ConnectionLost when it
        may not have been sent, and Timeout after the client's `timeout`."""
        self._native.notify(method, args, kwargs)

    def offer(self, name: str, function: Callable[..., Any], *, check_results: bool = True) -> None:
        """Adds a function as the method `name` that the server may call while it serves a call of this client
        (`ctx.call`). A blocking client runs the function on the thread that drives the client; a client of `aconnect`
        runs it in its event loop, and it may be `async def`. `check_results` as for `Server`."""
        described = self._describe(function, name, check_results)
        self._native.offer(name, described.function, described, self._calls)

    def _provide(self, name: str, function: Callable[..., Any], check_results: bool, options: dict[str, Any]) -> None:
        if "batch" in options:
            from ._batched_streams import provided_stream
            from ._batching import describe_provided

            one = provided_stream(function, name, options)
            if one is None:
                batched, bounds = describe_provided(
                    function, name, options, in_asyncio=self._calls is not None, check_results=check_results
                )
                check_provide_options(options)
                self._native.provide_batched(
                    name, batched.run, batched.weigh, batched.described, options, bounds, self._calls
                )
                return
            function = one
        check_provide_options(options)
        described = self._describe(function, name, check_results)
        self._native.provide(name, described.function, described, options, self._calls)

    def unprovide(self, name: str) -> bool:
        """Unregisters a method that this client provides; False when it provides none of that name."""
        return bool(self._native.unprovide(name))

    def on_refused(self, function: OnRefused) -> OnRefused:
        """Sets the function that is called as `function(name, error)` when a broker refuses a method that this client
        provides, or a topic that it subscribes to, also after a reconnection. It replaces the one set before. Usable as
        a decorator.

        The function, like those of `on_lagged` and `on_connection`, runs on the thread that drives the client, or in
        the event loop of a client of `aconnect`, where it may be `async def`. What it raises goes to the log."""
        self._native.on_refused(self._task_of(function), self._calls)
        return function

    def on_lagged(self, function: OnLagged) -> OnLagged:
        """Sets the function that is called as `function(topic, count)` when a broker has dropped `count` events of a
        topic, because this client read them too slowly."""
        self._native.on_lagged(self._task_of(function), self._calls)
        return function

    def on_connection(self, function: OnConnection) -> OnConnection:
        """Sets the function that is called as `function(event)`, with a `ConnectionEvent`, when a connection has been
        made or has ended. After a reconnection a subscriber can fetch here what it has missed."""
        self._native.on_connection(self._task_of(function), self._calls)
        return function

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<wirecall.{type(self).__name__} {', '.join(self._endpoints)}, {self._encoding}, {state}>"

    def _repr_html_(self) -> str:
        from ._html import table_of

        return table_of(repr(self), self._catalogue.methods())


class BaseBatch(MethodsByName):
    """Several calls in one message, which is sent when its `with` ends. `b.name(…)` and `b["name"](…)` add a call."""

    def __init__(self, native: _native.Client, catalogue: Catalogue) -> None:
        self._native: _native.Batch = native.batch()
        self._catalogue = catalogue
        self._outcomes: list[Any] = []

    if TYPE_CHECKING:

        def __getitem__(self, name: str) -> BatchMethod: ...
        def __getattr__(self, name: str) -> BatchMethod: ...

        # Makes the object that a call in the batch returns, and that receives the outcome.
        def _make_outcome(self) -> Any: ...

    def _method(self, name: str) -> BatchMethod:
        return BatchMethod(self, name, self._catalogue)

    def notify(self, method: str, /, *args: Any, **kwargs: Any) -> None:
        """Adds a notification."""
        self._native.add_notification(method, args, kwargs)

    def _add(self, name: str, args: Any, kwargs: Any, timeout: float | None, to: str, within: Context | None) -> Any:
        check_call(args, kwargs, timeout, to, within)
        self._native.add(name, args, kwargs, timeout, to, within)
        outcome = self._make_outcome()
        self._outcomes.append(outcome)
        return outcome


class BatchMethod(BaseMethod):
    """A method to be called in a batch."""

    __slots__ = ()

    def __call__(
        self, /, *args: Any, _timeout: float | None = None, _to: str = "", _within: Context | None = None, **kwargs: Any
    ) -> Any:
        """Adds a call of the method. Returns an object that has the outcome once the batch has been sent."""
        return self._target._add(self._name, args, kwargs, _timeout, _to, _within)


def refuse_underscore(name: str) -> NoReturn:
    """AttributeError: Python and its tools look for names with an underscore in everything, so none is a method."""
    raise AttributeError(f"no attribute {name}; a method of that name is an item, [{name!r}]")


def _check_timeout(timeout: object) -> None:
    if isinstance(timeout, bool) or (timeout is not None and not isinstance(timeout, int | float)):
        raise TypeError(f"a timeout is a number of seconds, not {timeout!r}") from None


def check_call(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    timeout: object,
    to: object,
    within: object,
    idempotent: object = False,
    input: object = None,
) -> None:
    """TypeError in the words of this package; the native module's would name its own functions."""
    _check_timeout(timeout)
    if not isinstance(to, str):
        raise TypeError(f"_to is the name of a client, a string, not {to!r}") from None
    if within is not None and not isinstance(within, _native.Context):
        raise TypeError(f"_within is a wirecall.Context, not {within!r}") from None
    if not isinstance(idempotent, bool):
        raise TypeError(f"_idempotent is True or False, not {idempotent!r}") from None
    if input is not None and not hasattr(input, "__iter__") and not hasattr(input, "__aiter__"):
        raise TypeError(f"_input is an iterable of the items to send, not {input!r}") from None
    _check_arguments(args, kwargs)


def _check_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """TypeError for arguments by position and by name. One of them may be meant for the call itself."""
    if not args or not kwargs:
        return
    both = "JSON-RPC has arguments by position or by name, not both in one call"
    for name in kwargs:
        if hint := _call_option_hint(name):
            mistake = f"there is no option {name} of a call" if name.startswith("_") else both
            raise TypeError(f"{mistake}; {hint}") from None
    raise TypeError(both) from None


def _option_hint(failure: str, options: dict[str, Any]) -> str:
    """The parameter of connect that an unknown option was meant for; empty for none."""
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


_PROVIDE_OPTIONS = {"concurrency": int, "queue": int, "policy": str, "idempotent": bool, "safe": bool}


def check_provide_options(options: dict[str, object]) -> None:
    for option, value in options.items():
        kind = _PROVIDE_OPTIONS.get(option)
        if kind is None:
            raise TypeError(f"there is no option {option!r} of a method; there are {', '.join(_PROVIDE_OPTIONS)}")
        if type(value) is not kind:
            raise TypeError(f"the option {option} is of type {kind.__name__}, not {value!r}")
        least = 1 if option == "concurrency" else 0
        if isinstance(value, int) and not least <= value < 2**32:
            raise ValueError(f"the option {option} is between {least} and {2**32 - 1}, not {value}")


def call_all_params(method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    _check_arguments(args, kwargs)
    return {"method": method, "params": kwargs or list(args)} if args or kwargs else {"method": method}


def push_params(method: str, args: tuple[Any, ...], kwargs: dict[str, Any], **options: Any) -> dict[str, Any]:
    _check_arguments(args, kwargs)
    params: dict[str, Any] = {"method": method, **{name: value for name, value in options.items() if value is not None}}
    if args or kwargs:
        params["params"] = kwargs or list(args)
    return params


def consumer_options(
    durable: str, start: str | int, ack_wait_ms: int | None, max_deliver: int | None, max_in_flight: int | None
) -> dict[str, Any]:
    numbers = {"ack_wait_ms": ack_wait_ms, "max_deliver": max_deliver, "max_in_flight": max_in_flight}
    given = {name: value for name, value in numbers.items() if value is not None}
    if not durable and (start or given):
        raise ValueError("wirecall: start, ack_wait_ms, max_deliver and max_in_flight are of a consumer: give durable")
    return {"durable": durable, "start": str(start), **given}


def refuse_by(reply: EventReply, error: BaseException) -> None:
    """Has the event of a consumer again; the broker keeps the error with one that is given up."""
    if isinstance(error, Error) and not isinstance(error, LocalError):
        reply.refuse(error.code, error.message)
    else:
        reply.refuse(-32603, "Internal error")


def durable_params(topic: str, value: Any, msg_id: str) -> dict[str, Any]:
    params = publish_params(topic, value, False)
    params["durable"] = True
    if msg_id:
        params["msg_id"] = msg_id
    return params


def publish_params(topic: str, value: Any, retain: bool) -> dict[str, Any]:
    params: dict[str, Any] = {"topic": topic}
    if value is not None:
        params["params"] = value if isinstance(value, list | tuple | dict) else [value]
    if retain:
        params["retain"] = True
    return params
