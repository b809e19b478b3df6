from collections.abc import Sequence
from typing import Any


class Shape:
    def __init__(self, kind: int, name: str, type: object | None) -> None: ...

    def set_parts(self, arg: list, /) -> None: ...

    def set_fields(self, arg: list, /) -> None: ...

    def set_format(self, arg: str, /) -> None: ...

    def set_names(self, arg: Sequence[str], /) -> None: ...

    def set_docs(self, arg: str, /) -> None: ...

    def set_result(self, type: object | None, check: object | None) -> None: ...

    def set_definitions(self, arg: list, /) -> None: ...

    @property
    def schema(self) -> str: ...

    def __repr__(self) -> str: ...

def dumps(value: object | None, msgpack: bool = False) -> bytes: ...

def loads(text: bytes, shape: Shape, msgpack: bool = False) -> object: ...

def set_planner(arg: object, /) -> None: ...

def set_error_functions(arg0: object, arg1: object, /) -> None: ...

def set_extension_reader(arg: object, /) -> None: ...

def end_waits() -> None: ...

def end_threads() -> None: ...

class Context:
    """
    One call, as its handler sees it: a parameter with this hint is given it, and is none of the method's. Any thread.
    """

    @property
    def method(self) -> str:
        """The name by which it was called."""

    @property
    def id(self) -> str | None:
        """The request's id as JSON text; None for a notification."""

    @property
    def cancelled(self) -> bool:
        """
        Nobody waits for the answer any more: the call was cancelled, its time is up, or its caller has gone.
        """

    @property
    def deadline(self) -> float | None:
        """
        When the call is answered with a timeout, in seconds of time.monotonic(); None for never.
        """

    @property
    def remaining(self) -> float | None:
        """Seconds until then, negative once it has passed; None for no end."""

    @property
    def caller(self) -> str | None:
        """
        The caller's name at a broker, where that tells it (option disclose_callers); else None.
        """

    @property
    def hops(self) -> int:
        """
        How many calls this one was made within: 0 for one that its caller has made of itself.
        """

    def call(self, method: str, /, *args: Any, **kwargs: Any) -> Any:
        """
        Calls a method of whoever calls this one: in an async def to be awaited, in blocking methods and generators it returns the result. It has what remains of this call's time, ends with it, and raises wirecall.Error. A method that a client provides calls its broker, and so all that is there.
        """

    def notify(self, method: str, /, *args: Any, **kwargs: Any) -> None:
        """
        The same without an answer. From the handler itself it leaves at once; from a task or thread that the handler has started it is held until the call's answer has been written, and dropped if that is an error. Raises where nobody can be told: see can_notify.
        """

    @property
    def can_notify(self) -> bool:
        """
        Whether notify can reach the caller: not one by HTTP POST or one that has gone, not from a plain def, and not after the call was answered with an error.
        """

class Feed:
    def push(self, item: object | None) -> bool: ...

    def started(self) -> None: ...

    def run_by_none(self) -> None: ...

    def end(self) -> None: ...

    def end_with(self, arg: object, /) -> None: ...

    def when_room(self, arg: object, /) -> None: ...

    @property
    def wanted(self) -> bool: ...

class Listeners:
    """A place on which several processes listen together."""

    def __init__(self, arg0: str, arg1: int, /) -> None: ...

    @property
    def uri(self) -> str: ...

def is_local(arg: str, /) -> bool: ...

class Server:
    def __init__(self, options_json: str, broker: bool = False) -> None: ...

    def add(self, name: str, function: object, place: int, parameters: list, result: object, checked: object | None, summary: str, safe: bool) -> None: ...

    def add_subscription(self, names: tuple, function: object, parameters: list, event: object, checked: object | None, summary: str) -> None: ...

    def listen(self, arg: str, /) -> str: ...

    def places(self) -> list[str]: ...

    def listen_shared(self, arg0: Listeners, arg1: int, /) -> None: ...

    def run(self, signals: bool) -> bool: ...

    def stop(self) -> None: ...

    def stop_at_once(self) -> None: ...

    def handle(self, arg: str, /) -> str: ...

    def fileno(self) -> int: ...

    def drain(self, arg: object, /) -> None: ...

def options_of_flags(arg: Sequence[str], /) -> list[tuple[str, str]]: ...

def end_with_parent() -> None: ...

class Replies:
    def __init__(self) -> None: ...

    def fileno(self) -> int: ...

    def drain(self) -> None: ...

class Calls:
    def __init__(self) -> None: ...

    def fileno(self) -> int: ...

    def drain(self, arg: object, /) -> None: ...

class Subscription:
    """Events come until `unsubscribe`, or as long as the client."""

    def unsubscribe(self) -> None:
        """No call of the handler begins any more. Any thread; again: no effect."""

class ConnectionNews:
    """What has become of a connection of a client's."""

    @property
    def connected(self) -> bool:
        """It has been made; else it has ended."""

    @property
    def place(self) -> str:
        """The URI."""

    @property
    def cause(self) -> str:
        """Why it has ended; empty for one that has been made."""

class Stream:
    def next(self) -> object: ...

    def poll(self, arg0: Replies, arg1: object, /) -> object: ...

class CallHandle:
    def cancel(self) -> bool: ...

class BatchHandle:
    def cancel(self) -> bool: ...

class Batch:
    def add(self, arg0: str, arg1: object, arg2: object, arg3: float | None, arg4: str, arg5: Context | None, /) -> None: ...

    def add_notification(self, arg0: str, arg1: object, arg2: object, /) -> None: ...

    def send(self) -> list: ...

    def start(self, arg0: Replies, arg1: list, /) -> BatchHandle: ...

class Client:
    def __init__(self, arg0: Sequence[str], arg1: str, /) -> None: ...

    def connect(self) -> None: ...

    def call(self, arg0: str, arg1: object, arg2: object, arg3: float | None, arg4: str, arg5: Context | None, /) -> object: ...

    def notify(self, arg0: str, arg1: object, arg2: object, /) -> None: ...

    def start(self, arg0: str, arg1: object, arg2: object, arg3: float | None, arg4: str, arg5: Context | None, arg6: Replies, arg7: object, /) -> CallHandle: ...

    def batch(self) -> Batch: ...

    def stream(self, arg0: str, arg1: object, arg2: object, arg3: float | None, arg4: str, arg5: Context | None, /) -> Stream: ...

    def offer(self, arg0: str, arg1: object, arg2: int, arg3: list, arg4: object, arg5: object | None, arg6: Calls | None, /) -> None: ...

    def provide(self, arg0: str, arg1: object, arg2: int, arg3: list, arg4: object, arg5: object | None, arg6: str, arg7: dict, arg8: Calls | None, /) -> None: ...

    def unprovide(self, arg: str, /) -> bool: ...

    def subscribe(self, arg0: str, arg1: object, arg2: str, arg3: bool, arg4: bool, arg5: Calls | None, /) -> Subscription: ...

    def tap(self, arg0: str, arg1: object, arg2: Calls | None, /) -> Subscription: ...

    def on_refused(self, arg0: object, arg1: Calls | None, /) -> None: ...

    def on_lagged(self, arg0: object, arg1: Calls | None, /) -> None: ...

    def on_connection(self, arg0: object, arg1: Calls | None, /) -> None: ...

    def end(self) -> None: ...

    def close(self) -> None: ...
