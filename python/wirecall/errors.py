"""The exceptions of wirecall. `Error` is their base: a JSON-RPC error object, with `code`, `message` and `data`. A
handler raises one to answer its caller with it. A call raises the error of its answer, or one that this client makes
itself, such as ConnectionLost.

The codes are those of JSON-RPC 2.0 section 5.1 and wirecall's own (docs/errors.md).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar


SERVER_ERROR = -32000


class Error(Exception):
    """An error with any code: `raise wirecall.Error(1001, "No such account", {"account": 7})`. Without a code, as
    `wirecall.Error("No such account")`, the code is -32000. The code is an integer of 32 bits and the message a string,
    else TypeError or ValueError."""

    code: int
    message: str
    data: Any

    def __init__(self, code: int | str = SERVER_ERROR, message: str | None = None, data: Any = None) -> None:
        if message is None and isinstance(code, str):
            message, code = code, SERVER_ERROR
        wrong = _wrong_with(code, message)
        if wrong is not None:
            raise wrong
        super().__init__(code, message, data)
        self.code = code  # type: ignore[assignment]
        self.message = message  # type: ignore[assignment]
        self.data = data

    def __str__(self) -> str:
        text = f"{self.message} ({self.code})"
        details = _details(self.data, self.message)
        return f"{text}: {details}" if details else text


_BY_CODE: dict[int, type[_Coded]] = {}


class _Coded(Error):
    """An error whose class has the code: a handler raises `Conflict("taken")`."""

    default_code: ClassVar[int]
    default_message: ClassVar[str]

    def __init_subclass__(cls, *, code: int | None = None, message: str = "", **others: Any) -> None:
        super().__init_subclass__(**others)
        if code is not None:
            cls.default_code, cls.default_message = code, message
            _BY_CODE.setdefault(code, cls)

    def __init__(self, message: str | None = None, data: Any = None) -> None:
        super().__init__(self.default_code, self.default_message if message is None else message, data)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.message, self.data))


class LocalError(Error, RuntimeError):
    """An error of this program, not an answer of a peer: the use of a client that is closed, or was made before a fork;
    an answer that Python cannot represent. If a handler raises it, its caller is answered -32603, and the log has the
    text."""

    def __init__(self, code: int | str = -32603, message: str | None = None, data: Any = None) -> None:
        if message is None and isinstance(code, str):
            message, code = code, -32603
        super().__init__(code, message, data)

    def __str__(self) -> str:
        return self.message


class ParseError(_Coded, code=-32700, message="Parse error"):
    """The message is not JSON, not UTF-8, or nests too deep."""


class InvalidRequest(_Coded, code=-32600, message="Invalid Request"):
    """The message is JSON, but no JSON-RPC 2.0 request."""


class MethodNotFound(_Coded, code=-32601, message="Method not found"):
    """The server has no method of that name, or the caller may not call it. `data["did_you_mean"]` is a similar
    name."""

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.data else f"{text}: no name is near it; `wirecall ls` lists what there is"


class InvalidParams(_Coded, code=-32602, message="Invalid params"):
    """An argument is missing, unknown or of another type. `data` has its path (`loc`), the expected type (`expected`)
    and the value received (`got`)."""


class InternalError(_Coded, code=-32603, message="Internal error"):
    """The handler failed. The server's log has the cause."""


class ConnectionLost(_Coded, ConnectionError, code=-32001, message="Connection lost"):
    """The connection could not be made, or was lost before the answer; at a broker also when the provider is lost.
    `data["delivered"]` is "no" when no handler can have started: then a retry is safe."""


class Timeout(_Coded, TimeoutError, code=-32002, message="Timeout"):
    """The call exceeded its timeout."""


class Forbidden(_Coded, code=-32003, message="Forbidden"):
    """The caller has no grant to publish, register, subscribe, tap or kick as requested."""


class Unauthenticated(_Coded, code=-32004, message="Unauthenticated"):
    """The caller has not authenticated, or its token or session is unknown."""

    def __str__(self) -> str:
        return f'{super().__str__()}; give the server\'s token: connect(token="…")'


class LimitExceeded(_Coded, code=-32005, message="Limit exceeded"):
    """A limit of the server is reached; `data["limit"]` names it. Retry later."""


class TooLarge(_Coded, code=-32006, message="Too large"):
    """The message, or the answer, exceeds `max_message_size`."""


class Conflict(_Coded, code=-32007, message="Conflict"):
    """The name is taken, or another provider of the method has another policy."""


class NoSubscription(_Coded, code=-32008, message="No subscription"):
    """The client has no such subscription."""


class Draining(_Coded, code=-32009, message="Draining"):
    """The server is stopping, and starts no new calls."""


class Cancelled(_Coded, code=-32800, message="Cancelled"):
    """The call was cancelled."""


# Parameters without a type hint, by method. An argument that does not fit there is answered -32603, not -32602.
_unhinted: dict[str, list[str]] = {}


def _wrong_with(code: Any, message: Any) -> Exception | None:
    """An error that could not be sent would reach the caller as another one."""
    if isinstance(code, bool) or not isinstance(code, int):
        return TypeError(f"the code of an error is an integer, not {type(code).__name__}")
    if not -(2**31) <= code < 2**31:
        return ValueError(f"the code of an error has 32 bits: {code} is none")
    if not isinstance(message, str):
        return TypeError(f"the message of an error is a string, not {type(message).__name__}")
    return None


# Options of a call begin with an underscore: without one, an argument is the method's.
_CALL_OPTIONS = {
    "timeout": "_timeout= is the time of the call in seconds",
    "to": "_to= names the client that is to serve the call",
    "within": "_within= is the call that this one is a part of",
    "idempotent": "_idempotent= says that the method may run several times for the call",
    "input": "_input= is the stream that the call sends to its handler",
    "progress": "_progress= shows how far a stream is",
}


def _call_option_hint(name: str) -> str:
    """The option of a call that an argument of this name may have been meant for; empty for none."""
    if not name.startswith("_"):
        return _CALL_OPTIONS.get(name, "")
    from . import _native

    nearest = _native.nearest(name, [f"_{known}" for known in _CALL_OPTIONS])
    return f"did you mean {nearest}?" if nearest not in ("", name) else ""


def _meant_for_the_call(data: Any) -> str:
    if not isinstance(data, dict):
        return ""
    also = data.get("also")
    for wrong in (data, *(also if isinstance(also, list) else ())):
        loc = wrong.get("loc") if isinstance(wrong, dict) and wrong.get("expected") == "nothing" else None
        if isinstance(loc, list) and len(loc) == 1 and isinstance(loc[0], str) and (cure := _call_option_hint(loc[0])):
            return cure
    return ""


def _details(data: Any, message: str) -> str:
    """An error's data as one line, without what the message says already, in the words of the command
    (src/message/error_description.hpp)."""
    if data is None:
        return ""
    from . import _native

    try:
        words = _native.error_description(message.encode(errors="replace").decode(), _native.dumps(data).decode())
    except (TypeError, ValueError):  # an error of this program, with data that cannot be sent
        return repr(data)
    cure = _meant_for_the_call(data)
    return f"{words}; {cure}" if cure else words


# What native code tells of an error besides: detail::ErrorClass.
_LOCAL = 2


def _make(code: int, message: str, data: Any, origin: int) -> Error:
    """The exception of an error that a peer has sent, or that the native module has met."""
    if origin == _LOCAL:
        return LocalError(code, message, data)
    kind = _BY_CODE.get(code)
    return Error(code, message, data) if kind is None else kind(message, data)


def _explain(exception: BaseException, method: str, request_id: str) -> tuple[int, str, Any]:
    """The code, message and data with which an exception of a handler is answered. What is no Error is logged."""
    if isinstance(exception, Error) and not isinstance(exception, LocalError):
        wrong = _wrong_with(exception.code, exception.message)
        if wrong is None:
            return exception.code, _sendable(exception.message, method, request_id), exception.data
        exception = wrong.with_traceback(exception.__traceback__)
    if isinstance(exception, TypeError | AttributeError) and method in _unhinted:
        names = ", ".join(_unhinted[method])
        cure = f"\nhint: {names} of {method} has no type hint: with one, such a call is answered -32602"
    else:
        cure = ""
    import traceback

    _log("failed\n" + "".join(traceback.format_exception(exception)).rstrip() + cure, method, request_id)
    return InternalError.default_code, InternalError.default_message, None


def _sendable(message: str, method: str, request_id: str) -> str:
    """With question marks for lone surrogates, which no encoding has."""
    sent = message.encode(errors="replace").decode()
    if sent != message:
        _log(f"has raised an error whose message is no Unicode: {message!r}", method, request_id)
    return sent


def _log(what: str, method: str, request_id: str) -> None:
    import contextlib
    import logging

    which = f"{method} (id {request_id})" if request_id else f"{method} (a notification)"
    with contextlib.suppress(Exception):  # a log that fails must not change the answer
        extra = {"method": method, "id": request_id or None}
        logging.getLogger("wirecall").error("method %s %s", which, what, extra=extra)
