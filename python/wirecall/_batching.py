"""A function that is called once for many calls: what one call of it looks like, and how the calls of a batch become
the arguments of one call of the function."""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

from ._methods import ASYNCIO, Described, _hints, _is_context, _signature, describe
from ._native import dumps
from .errors import Error, InvalidParams

T = TypeVar("T")


class Shared(Generic[T]):
    """The hint of a parameter that the calls of a batch have in common: `Shared[str]` is given one `str`, and only
    calls with equal values run together."""


# What a parameter of the function is given: the calls' values as a list, as one array, one value for all, the calls'
# contexts, or, of padded arrays, their lengths.
LIST, ARRAY, SHARED, CONTEXTS, LENGTHS = range(5)


class Column(typing.NamedTuple):
    kind: int
    by_name: bool  # it is given by its name
    name: str
    argument: int  # which of a call's arguments it is; -1 for LENGTHS


class Batched(typing.NamedTuple):
    described: Described  # one call
    run: Callable[[list[tuple[Any, ...]]], Any]


def describe_batched(
    function: Callable[..., Any],
    name: str,
    *,
    pad: bool = False,
    buckets: Sequence[int] = (),
    check_results: bool = True,
) -> Batched:
    """TypeError for hints that say nothing of a batch."""
    hints = _hints(function, name)
    parameters: list[inspect.Parameter] = []
    columns: list[Column] = []
    for parameter in _signature(function, name).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"wirecall: {name}: a batched function takes no *{parameter.name}: name its parameters")
        if parameter.default is not parameter.empty and typing.get_origin(hints.get(parameter.name)) is not Shared:
            raise TypeError(
                f"wirecall: {name}: {parameter.name} is a whole batch's, so its default cannot be one call's: "
                "leave it away"
            )
        by_name = parameter.kind is parameter.KEYWORD_ONLY
        kind, element = _element(hints.get(parameter.name, Any), parameter.name, name, pad)
        argument = -1 if kind == LENGTHS else len(parameters)
        columns.append(Column(kind, by_name, parameter.name, argument))
        if kind != LENGTHS:
            parameters.append(parameter.replace(annotation=element))
    result = _element_of_result(hints.get("return", Any), name)
    is_async = inspect.iscoroutinefunction(inspect.unwrap(function))
    one = _one(function, parameters, result, is_async)
    described = describe(one, name, blocking=not is_async, check_results=check_results)
    if pad and not any(column.kind == ARRAY for column in columns):
        raise TypeError(f"wirecall: {name}: pad is for arrays, and no parameter is one")
    gather = _Gather(function, name, columns, pad, tuple(sorted(buckets)))
    return Batched(described, gather.run_async if is_async else gather.run)


def _one(function: Any, parameters: list[inspect.Parameter], result: Any, is_async: bool) -> Callable[..., Any]:
    """What one call looks like, for `describe`."""

    async def asynchronous() -> None: ...

    def plain() -> None: ...

    one: Any = asynchronous if is_async else plain
    one.__signature__ = inspect.Signature(parameters, return_annotation=result)
    one.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": result}
    one.__doc__ = inspect.getdoc(function)
    return typing.cast("Callable[..., Any]", one)


def _element(hint: Any, parameter: str, name: str, pad: bool) -> tuple[int, Any]:
    """What a parameter is given, and the hint of one call's value."""
    plain = typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint
    if pad and parameter == "lengths":
        return LENGTHS, None
    origin = typing.get_origin(plain)
    if origin is Shared:
        return SHARED, typing.get_args(plain)[0]
    if origin is list:
        element = typing.get_args(plain)[0]
        return (CONTEXTS if _is_context(element) else LIST), element
    if plain is list:
        return LIST, Any
    if _is_array(plain):
        return ARRAY, hint
    raise TypeError(
        f"wirecall: {name}: {parameter} is a batch's: hint it list[…] or an array for the calls' values, or "
        f"wirecall.Shared[…] for one that they have in common, not {plain!r}"
    )


def _element_of_result(hint: Any, name: str) -> Any:
    if hint is None or hint is type(None):
        return None
    if hint in (Any, list, inspect.Parameter.empty) or _is_array(hint):
        return Any
    if typing.get_origin(hint) in (list, Sequence) or getattr(typing.get_origin(hint), "__name__", "") == "Sequence":
        return typing.get_args(hint)[0]
    raise TypeError(f"wirecall: {name}: a batched function returns list[…], an array or None, not {hint!r}")


def _is_array(hint: Any) -> bool:
    kind = typing.get_origin(hint) or hint
    return isinstance(kind, type) and kind.__module__ == "numpy" and kind.__name__ == "ndarray"


def batch_bounds(
    name: str,
    size: int,
    wait_ms: float | Literal["auto"] = 0,
    batch_bytes: int = 64 << 20,
    max_concurrent_batches: int = 1,
    batch_queue: int = 0,
) -> tuple[int, int, int, int, int, int]:
    """TypeError or ValueError for what bounds no batch, by the option's name."""
    wait = 0 if wait_ms == "auto" else wait_ms
    ranges: dict[str, tuple[Any, float, float]] = {
        "batch": (size, 1, 65_536),
        "wait_ms": (wait, 0, 60_000),
        "batch_bytes": (batch_bytes, 1, math.inf),
        "max_concurrent_batches": (max_concurrent_batches, 1, 1024),
        "batch_queue": (batch_queue, 0, math.inf),
    }
    for option, (value, least, most) in ranges.items():
        if isinstance(value, bool) or not isinstance(value, int if option != "wait_ms" else (int, float)):
            raise TypeError(f"wirecall: {name}: batching: {option}={value!r}: give a number")
        if not least <= value <= most:
            raise ValueError(f"wirecall: {name}: batching: {option}={value!r}: give a number from {least} to {most}")
    microseconds = -1 if wait_ms == "auto" else int(wait * 1000)
    return size, microseconds, batch_bytes, max_concurrent_batches, batch_queue, 4 * batch_bytes


# Those that a client takes as well.
OPTIONS = ("batch", "wait_ms", "batch_bytes", "max_concurrent_batches", "batch_queue", "pad", "buckets")


def describe_provided(
    function: Callable[..., Any], name: str, options: dict[str, Any], *, in_asyncio: bool, check_results: bool
) -> tuple[Batched, tuple[int, int, int, int, int, int]]:
    """A function that a client provides, with what of `options` says how it is batched, which it takes out. One that
    runs in an event loop is async."""
    said = {option: options.pop(option) for option in OPTIONS if option in options}
    pad, buckets = said.pop("pad", False), said.pop("buckets", ())
    bounds = batch_bounds(name, said.pop("batch"), **said)
    batched = describe_batched(function, name, pad=pad, buckets=buckets, check_results=check_results)
    if in_asyncio and batched.described.runs_on != ASYNCIO:

        async def run(calls: list[tuple[Any, ...]]) -> Any:
            return batched.run(calls)

        return Batched(batched.described._replace(runs_on=ASYNCIO), run), bounds
    if not in_asyncio and batched.described.runs_on == ASYNCIO:
        raise TypeError(f"wirecall: {name} is asynchronous: a client of wirecall.aconnect takes async def")
    return batched, bounds


class _Gather:
    """Makes one call of the function, or one for each group of calls that may go together."""

    def __init__(
        self, function: Callable[..., Any], name: str, columns: list[Column], pad: bool, buckets: tuple[int, ...]
    ) -> None:
        self._function = function
        self._name = name
        self._columns = columns
        self._pad = pad
        self._buckets = buckets
        self._plain = all(column.kind in (LIST, CONTEXTS) and not column.by_name for column in columns)

    def run(self, calls: list[tuple[Any, ...]]) -> list[Any]:
        if self._plain:
            return self._results(self._function(*map(list, zip(*calls, strict=True))), len(calls))
        results: list[Any] = [None] * len(calls)
        for group, taken in self._groups(calls, results):
            args, kwargs = self._arguments([calls[i] for i in taken], group)
            for i, result in zip(taken, self._results(self._function(*args, **kwargs), len(taken)), strict=True):
                results[i] = result
        return results

    async def run_async(self, calls: list[tuple[Any, ...]]) -> list[Any]:
        results: list[Any] = [None] * len(calls)
        for group, taken in self._groups(calls, results):
            args, kwargs = self._arguments([calls[i] for i in taken], group)
            made: Awaitable[Any] = self._function(*args, **kwargs)
            for i, result in zip(taken, self._results(await made, len(taken)), strict=True):
                results[i] = result
        return results

    def _results(self, made: Any, count: int) -> list[Any]:
        if made is None:
            return [None] * count
        results = made if isinstance(made, list) else list(made)
        if len(results) != count:
            raise RuntimeError(f"{self._name}: a batch of {count} calls has {len(results)} results")
        return results

    def _groups(self, calls: list[tuple[Any, ...]], results: list[Any]) -> list[tuple[Any, list[int]]]:
        """The calls that may go together, by what they have in common. One that may go with none has its error in
        `results`."""
        if self._plain:
            return [((), list(range(len(calls))))]
        groups: dict[Any, list[int]] = {}
        for i, call in enumerate(calls):
            try:
                groups.setdefault(self._key(call), []).append(i)
            except Error as error:
                results[i] = error
        return list(groups.items())

    def _key(self, call: tuple[Any, ...]) -> tuple[Any, ...]:
        key: list[Any] = []
        length = -1
        for column in self._columns:
            if column.kind == SHARED:
                key.append(dumps(call[column.argument]))
            elif column.kind == ARRAY:
                array = call[column.argument]
                if self._pad and array.ndim > 0:
                    length = max(length, array.shape[0])
                    key.append((array.dtype, array.shape[1:]))
                else:
                    key.append((array.dtype, array.shape))
        if self._pad:
            key.append(self._bucket(length))
        return tuple(key)

    def _bucket(self, length: int) -> int:
        """How long its arrays become; -1 for as long as the longest of the batch."""
        if not self._buckets:
            return -1
        for bucket in self._buckets:
            if length <= bucket:
                return bucket
        raise InvalidParams(f"an array of {length} elements is longer than {self._buckets[-1]}, the largest bucket")

    def _arguments(self, calls: list[tuple[Any, ...]], group: tuple[Any, ...]) -> tuple[list[Any], Mapping[str, Any]]:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        values = list(zip(*calls, strict=True))
        lengths: Any = None
        for column in self._columns:
            if column.kind == ARRAY and self._pad and values[column.argument][0].ndim > 0:
                value, lengths = _padded(values[column.argument], group[-1])
            elif column.kind == ARRAY:
                value = _stacked(values[column.argument])
            elif column.kind == SHARED:
                value = values[column.argument][0]
            elif column.kind == LENGTHS:
                value = None
            else:
                value = list(values[column.argument])
            if column.by_name:
                kwargs[column.name] = value
            else:
                args.append(value)
        for i, column in enumerate(self._columns):
            if column.kind == LENGTHS and column.by_name:
                kwargs[column.name] = lengths
            elif column.kind == LENGTHS:
                args[i] = lengths
        return args, kwargs


def _stacked(arrays: Sequence[Any]) -> Any:
    import numpy

    return numpy.stack(arrays)


def _padded(arrays: Sequence[Any], length: int) -> tuple[Any, Any]:
    """One array, zero where a call's own ends, and how long each is."""
    import numpy

    lengths = numpy.fromiter((array.shape[0] for array in arrays), numpy.int64, len(arrays))
    if length < 0:
        length = int(lengths.max())
    padded = numpy.zeros((len(arrays), length, *arrays[0].shape[1:]), arrays[0].dtype)
    for row, array in zip(padded, arrays, strict=True):
        row[: array.shape[0]] = array
    return padded, lengths
