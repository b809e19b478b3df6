"""A Python function as a method: its parameters as shapes, where it runs, and what documents it."""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
import typing
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from . import errors
from ._native import Context, Shape, dumps
from ._out import Outputs, outputs_of, with_outputs
from ._shapes import shape_of

if typing.TYPE_CHECKING:
    from ._dependencies import Overrides
    from ._middleware import Middleware

POSITIONAL, KEYWORD, VAR_POSITIONAL, VAR_KEYWORD, CONTEXT, CONTEXT_KEYWORD, INPUT, INPUT_KEYWORD = range(8)
LOOP, POOL, ASYNCIO, POOL_STREAM, ASYNCIO_STREAM = range(5)

_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: POSITIONAL,
    inspect.Parameter.POSITIONAL_OR_KEYWORD: POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY: KEYWORD,
    inspect.Parameter.VAR_POSITIONAL: VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD: VAR_KEYWORD,
}

# A parameter: name, kind, shape, whether it has a default, the default, its docs, and the default as JSON.
Row = tuple[str, int, Shape | None, bool, Any, str, str]


# The attribute by which a function that gathers its calls has them leave.
LEAVE = "__wirecall_leave__"


class Described(typing.NamedTuple):
    """What the native side is told of a function."""

    runs_on: int  # LOOP, POOL, …
    parameters: list[Row]
    result: Shape
    checked: Shape | None  # what a result, or an item of a stream, is held against
    summary: str
    gives_back: bool  # whether parameters come back, as the result says
    function: Callable[..., Any]  # what is called; it gives results as they are on the wire
    leave: Callable[[], None] | None  # has streams leave that wait for others, to be in one batch with them

    @property
    def takes_input(self) -> bool:
        return any(row[1] in (INPUT, INPUT_KEYWORD) for row in self.parameters)


def describe_subscription(function: Callable[..., Any], name: str, **options: Any) -> Described:
    """The same for an async generator, whose values are events; `result` is the shape of an event. `options` are those
    of `describe`."""
    described = describe(function, name, **options)
    if described.runs_on != ASYNCIO_STREAM:
        raise TypeError(f"wirecall: {name}: what can be subscribed to is an async generator: async def with yield")
    if described.takes_input:
        raise TypeError(f"wirecall: {name}: a subscription is answered at once, so it takes no stream of its caller")
    return described._replace(result=_item(_hints(function, name)))


def describe(
    function: Callable[..., Any],
    name: str,
    *,
    blocking: bool = False,
    check_results: bool = True,
    overrides: Overrides | None = None,
    middleware: Sequence[Middleware] = (),
) -> Described:
    """Looks at a function once. TypeError for hints that cannot be put on the wire, and for what is no function."""
    if not callable(function):
        raise TypeError(f"wirecall: {name} is no function, but {type(function).__name__}")
    hints = _hints(function, name)
    if any(typing.get_origin(hint) is typing.Annotated for hint in hints.values()):
        from . import _dependencies

        function = _dependencies.with_dependencies(function, name, overrides or _dependencies.Overrides(), blocking)
        hints = _hints(function, name)
    if middleware:
        from . import _middleware

        function = _middleware.with_middleware(function, name, middleware, blocking)
        hints = _hints(function, name)
    rows: list[Row] = []
    unhinted: list[str] = []
    docs = _parameter_docs(hints)
    inputs: list[str] = []
    for parameter in _signature(function, name).parameters.values():
        hint = hints.get(parameter.name, Any)
        if _is_context(hint):
            by_name = parameter.kind is parameter.KEYWORD_ONLY
            rows.append((parameter.name, CONTEXT_KEYWORD if by_name else CONTEXT, None, False, None, "", ""))
            continue
        if _is_of(hint, *_INPUTS):
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or inputs:
                raise TypeError(
                    f"wirecall: {name}: a call brings one stream: {parameter.name} is one parameter too many"
                )
            inputs.append(typing.get_origin(hint).__name__)
            by_name = parameter.kind is parameter.KEYWORD_ONLY
            shape = _shape(typing.get_args(hint)[0], parameter.name, name)
            rows.append((parameter.name, INPUT_KEYWORD if by_name else INPUT, shape, False, None, "", ""))
            continue
        if parameter.name not in hints:
            unhinted.append(parameter.name)
        kind = _KINDS[parameter.kind]
        has_default = parameter.default is not parameter.empty
        if type(parameter.default).__module__ == "wirecall._dependencies":
            raise TypeError(
                f"wirecall: {name}: {parameter.name} = {parameter.default!r}: say it in the hint, "
                f"{parameter.name}: Annotated[…, {parameter.default!r}]"
            )
        shape = _shape(hint, parameter.name, name)
        rows.append((
            parameter.name, kind, shape, has_default, parameter.default if has_default else None,
            docs.get(parameter.name, ""), _default_json(parameter.default) if has_default else "",
        ))  # fmt: skip
    if unhinted:
        errors._unhinted[name] = unhinted
    runs_on = _runs_on(function, blocking)
    if inputs:
        runs_on = _runs_with_input(runs_on, inputs[0], name)
    outputs = _outputs(hints, name)
    result = _result(function, hints) if outputs is None else shape_of(outputs.hint)
    checked = None
    if check_results:
        checked = _item(hints) if runs_on in (POOL_STREAM, ASYNCIO_STREAM) else result
        if checked is _shape_of_anything():
            checked = None
    called = function if outputs is None else with_outputs(function, outputs, name, is_async=runs_on == ASYNCIO)
    return Described(
        runs_on, rows, result, checked, _summary(function), outputs is not None, called, getattr(function, LEAVE, None)
    )


def _outputs(hints: dict[str, Any], name: str) -> Outputs | None:
    """TypeError for a generator: its results are its items, and these have no parameters."""
    hint = hints.get("return", Any)
    try:
        if _is_of(hint, *_STREAMS) and any(outputs_of(part) for part in typing.get_args(hint)):
            raise TypeError("wirecall: what a generator yields is no result, so nothing comes back with it")
        return outputs_of(hint)
    except TypeError as failure:
        raise TypeError(f"{failure}  [the result of {name}]") from None


def _shape(hint: Any, parameter: str, name: str) -> Shape:
    try:
        return shape_of(hint)
    except TypeError as failure:
        raise TypeError(f"{failure}  [parameter {parameter} of {name}]") from None


# Of a parameter that is given the stream that the caller sends.
_INPUTS = ("AsyncIterator", "Iterator")


def _runs_with_input(runs_on: int, hint: str, name: str) -> int:
    """A plain function that iterates waits for its caller, and so has a thread of its own meanwhile."""
    is_async = runs_on in (ASYNCIO, ASYNCIO_STREAM)
    if is_async != (hint == "AsyncIterator"):
        other = "an AsyncIterator" if is_async else "an Iterator, or is async def"
        raise TypeError(
            f"wirecall: {name} takes a stream of its caller: {'async def' if is_async else 'def'} takes {other}"
        )
    return POOL if runs_on == LOOP else runs_on


def _is_context(hint: Any) -> bool:
    """Also `Annotated[Context, …]` and `Context | None`: it is always given."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return _is_context(typing.get_args(hint)[0])
    if origin in (typing.Union, types.UnionType):
        return all(part is type(None) or _is_context(part) for part in typing.get_args(hint))
    return hint is Context


def _signature(function: Callable[..., Any], name: str) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except ValueError:  # some built-in functions have none
        pass
    except TypeError as failure:
        raise TypeError(f"wirecall: {name}: {failure}") from None
    rest = inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)
    return inspect.Signature([rest])


def _underlying(function: Any) -> Any:
    """The function behind partials and objects that can be called."""
    while isinstance(function, functools.partial):
        function = function.func
    is_itself = inspect.isroutine(function) or inspect.isclass(function)
    return function if is_itself else type(function).__call__


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    inner = _underlying(function)
    inner = inspect.unwrap(inner.__init__ if inspect.isclass(inner) else inner)
    written = getattr(inner, "__annotations__", None)
    if not written:  # as of most functions in C
        return {}
    try:
        return typing.get_type_hints(inner, include_extras=True)
    except Exception as failure:  # a hint that is a string may be anything
        raise TypeError(_bad_hint(inner, written, name, failure)) from None


def _bad_hint(inner: Any, written: dict[str, Any], name: str, failure: Exception) -> str:
    """Which of them it is, and what is wrong with it."""
    which = "a hint"
    for parameter, hint in written.items():
        alone = types.SimpleNamespace(__annotations__={parameter: hint})
        try:
            typing.get_type_hints(alone, getattr(inner, "__globals__", {}), include_extras=True)
        except Exception as own:
            which = "the hint of its result" if parameter == "return" else f"the hint of {parameter}"
            failure = own
            break
    if isinstance(failure, NameError):
        return (
            f"wirecall: {name}: {which} names {failure.name!r}, which is not defined where the function is: "
            "import or define it in that module, also at run time"
        )
    return f"wirecall: {name}: {which} cannot be read: {type(failure).__name__}: {failure}"


def _result(function: Callable[..., Any], hints: dict[str, Any]) -> Shape:
    """The shape of results, for documents: of anything where the hint has no shape."""
    hint = hints.get("return", Any)
    if inspect.isclass(function):
        hint = function
    if _is_of(hint, *_STREAMS):
        hint = list[(typing.get_args(hint) or (Any,))[0]]  # type: ignore[misc]
    try:
        return shape_of(hint)
    except TypeError:
        return _shape_of_anything()


def _item(hints: dict[str, Any]) -> Shape:
    """What a generator yields."""
    hint = hints.get("return", Any)
    if not _is_of(hint, *_STREAMS, "Iterable"):
        return _shape_of_anything()
    try:
        return shape_of((typing.get_args(hint) or (Any,))[0])
    except TypeError:
        return _shape_of_anything()


_STREAMS = ("AsyncIterator", "AsyncGenerator", "AsyncIterable", "Iterator", "Generator")


def _is_of(hint: Any, *names: str) -> bool:
    return getattr(typing.get_origin(hint), "__name__", "") in names


def _shape_of_anything() -> Shape:
    return shape_of(Any)


def _runs_on(function: Callable[..., Any], blocking: bool) -> int:
    inner = _underlying(function)
    if inspect.isgeneratorfunction(inner):
        return POOL_STREAM
    # A decorator around an async function mostly returns what that does.
    for one in (inner,) if blocking else (inner, inspect.unwrap(inner)):
        if inspect.isasyncgenfunction(one):
            return ASYNCIO_STREAM
        if inspect.iscoroutinefunction(one):
            return ASYNCIO
    return POOL if blocking else LOOP


@contextlib.asynccontextmanager
async def closing(items: Any) -> AsyncIterator[Any]:
    """Within it an asynchronous iterator may be left half-way; generators are closed then."""
    try:
        yield items
    finally:
        if hasattr(items, "aclose"):
            await items.aclose()


def as_described(
    wrapped: Any, function: Callable[..., Any], parameters: list[inspect.Parameter], hints: dict[str, Any]
) -> Callable[..., Any]:
    """`wrapped` as a function of these parameters that is called and documented as `function` is, and has its calls
    leave as that does."""
    wrapped.__signature__ = inspect.Signature(parameters)
    wrapped.__annotations__ = hints | {"return": function} if inspect.isclass(function) else hints
    wrapped.__name__ = getattr(function, "__name__", None) or repr(function)
    wrapped.__doc__ = inspect.getdoc(function)
    if (leave := getattr(function, LEAVE, None)) is not None:
        setattr(wrapped, LEAVE, leave)
    return typing.cast("Callable[..., Any]", wrapped)


def _summary(function: Callable[..., Any]) -> str:
    docs = inspect.getdoc(function) or ""
    return docs.split("\n\n", 1)[0].replace("\n", " ").strip()


# A longer default is left out of documents, and of what a provider tells its broker.
DEFAULT_BYTES_MAX = 1024


def _default_json(value: Any) -> str:
    """Empty for what has no form on the wire, such as a sentinel."""
    try:
        text = bytes(dumps(value)).decode()
    except Exception:  # whatever it is, the function goes without it
        return ""
    return text if len(text) <= DEFAULT_BYTES_MAX else ""


def _parameter_docs(hints: dict[str, Any]) -> dict[str, str]:
    """`Annotated[int, "what it is"]` documents a parameter."""
    return {
        name: next((extra for extra in typing.get_args(hint)[1:] if isinstance(extra, str)), "")
        for name, hint in hints.items()
        if typing.get_origin(hint) is typing.Annotated
    }
