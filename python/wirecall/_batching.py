"""A function that is called once for many calls: what one call of it looks like, and how the calls of a batch become
the arguments of one call of the function."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import math
import typing
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Generic, Literal, TypedDict, TypeVar

from ._methods import ASYNCIO, Described, _hints, _is_context, _runs_on, _signature, describe
from ._native import Context, array_memory, dumps
from .errors import InvalidParams

T = TypeVar("T")


class Shared(Generic[T]):
    """The hint of a parameter that the calls of a batch have in common: `Shared[str]` is given one `str`, and only
    calls with equal values run together."""


class BatchOptions(TypedDict, total=False):
    """The options of a batched function (docs/batching.md). `batch` is required."""

    batch: int
    wait_ms: float | Literal["auto"]
    batch_bytes: int
    max_concurrent_batches: int
    batch_queue: int
    batch_queue_bytes: int
    batch_rows: int
    batch_priority: Callable[[Context], int]
    pad: bool
    buckets: Sequence[int]
    stream: bool


class Bounds(typing.NamedTuple):
    """When calls leave and how many may wait, as the native BatchBounds."""

    size: int
    wait_us: int  # -1: to be found out
    bytes: int
    concurrent: int
    queue: int  # 0 for 16 times the size
    queue_bytes: int  # 0 for 4 times the bytes
    rows: int  # 0 for any number


# What a parameter of the function is given: the calls' values as a list, as one array, one value for all, the calls'
# contexts, or how long each of the arrays was before they were padded.
LIST, ARRAY, SHARED, CONTEXTS, LENGTHS = range(5)


class Column(typing.NamedTuple):
    kind: int
    by_name: bool  # it is given by its name
    name: str
    argument: int  # which of a call's arguments it is; of LENGTHS, that of the array


# How many rows a call has, and its priority.
Weigh = Callable[[tuple[Any, ...], Context], tuple[int, int]]


class Batched(typing.NamedTuple):
    described: Described  # one call
    run: Callable[[list[tuple[Any, ...]]], Any]
    # None where neither is asked for.
    weigh: Weigh | None


def describe_batched(
    function: Callable[..., Any], name: str, options: BatchOptions, *, check_results: bool = True
) -> tuple[Batched, Bounds]:
    """TypeError for hints that say nothing of a batch; TypeError or ValueError for options that bound none."""
    bounds = _bounds(name, options)
    parameters, columns, gather = _gather_of(function, name, options, bounds)
    result = _element_of_result(_hints(function, name).get("return", Any), name)
    runs_on = _runs_on(function, blocking=False)
    one = _one(function, parameters, result, runs_on == ASYNCIO)
    described = describe(one, name, blocking=runs_on != ASYNCIO, check_results=check_results)
    run = gather.run_async if runs_on == ASYNCIO else gather.run
    return Batched(described, run, _weigher(columns, options)), bounds


def _gather_of(
    function: Callable[..., Any], name: str, options: BatchOptions, bounds: Bounds
) -> tuple[list[inspect.Parameter], list[Column], _Gather]:
    """The parameters of one call, what the function is given of them, and what makes its arguments of many calls."""
    pad, buckets = options.get("pad", False), _buckets(options, name)
    hints = _hints(function, name)
    if any(typing.get_origin(hint) is typing.Annotated for hint in hints.values()):
        from ._dependencies import refuse_dependencies

        refuse_dependencies(function, name, "batched")
    signature = list(_signature(function, name).parameters.values())
    arrays = _lengths_of(signature, hints, name) if pad else {}
    parameters: list[inspect.Parameter] = []
    columns: list[Column] = []
    for parameter in signature:
        by_name = parameter.kind is parameter.KEYWORD_ONLY
        if parameter.name in arrays:
            columns.append(Column(LENGTHS, by_name, parameter.name, -1))
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"wirecall: {name}: a batched function takes no *{parameter.name}: name its parameters")
        is_shared = typing.get_origin(_without_notes(hints.get(parameter.name))) is Shared
        if parameter.default is not parameter.empty and not is_shared:
            raise TypeError(
                f"wirecall: {name}: {parameter.name} is a whole batch's, so its default cannot be one call's: "
                "leave it away"
            )
        kind, element = _element(hints.get(parameter.name, Any), parameter.name, name)
        columns.append(Column(kind, by_name, parameter.name, len(parameters)))
        parameters.append(parameter.replace(annotation=element))
    if pad and not any(column.kind == ARRAY for column in columns):
        raise TypeError(f"wirecall: {name}: pad is for arrays, and no parameter is one")
    places = {column.name: column.argument for column in columns}
    columns = [
        column._replace(argument=places[arrays[column.name]]) if column.kind == LENGTHS else column
        for column in columns
    ]
    return parameters, columns, _Gather(function, name, columns, pad, buckets, bounds.bytes)


def _weigher(columns: list[Column], options: BatchOptions) -> Weigh | None:
    rows_max, priority = options.get("batch_rows", 0), options.get("batch_priority")
    if rows_max == 0 and priority is None:
        return None
    own = [column.argument for column in columns if column.kind in (LIST, ARRAY)] if rows_max else []

    def weigh(arguments: tuple[Any, ...], context: Context) -> tuple[int, int]:
        rows = next((len(arguments[i]) for i in own if _has_rows(arguments[i])), 1)
        return rows, 0 if priority is None else int(priority(context))

    return weigh


def _has_rows(value: object) -> bool:
    return isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) > 0


def _lengths_of(signature: Sequence[inspect.Parameter], hints: dict[str, Any], name: str) -> dict[str, str]:
    """Of the parameters that are given lengths: whose."""
    names = [parameter.name for parameter in signature]
    arrays = [one for one in names if one != "lengths" and _is_array(_without_notes(hints.get(one, Any)))]
    lengths = {f"{array}_lengths": array for array in arrays if f"{array}_lengths" in names}
    if "lengths" in names:
        arrays = [array for array in arrays if array not in lengths]
        if len(arrays) != 1:
            raise TypeError(f"wirecall: {name}: lengths of which array? Name it as in tokens_lengths")
        lengths["lengths"] = arrays[0]
    return lengths


def _one(function: Any, parameters: list[inspect.Parameter], result: Any, is_async: bool) -> Callable[..., Any]:
    """What one call looks like, for `describe`."""

    async def asynchronous() -> None: ...

    def plain() -> None: ...

    one: Any = asynchronous if is_async else plain
    one.__signature__ = inspect.Signature(parameters, return_annotation=result)
    one.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": result}
    one.__doc__ = inspect.getdoc(function)
    return typing.cast("Callable[..., Any]", one)


def _without_notes(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint


def _element(hint: Any, parameter: str, name: str) -> tuple[int, Any]:
    """What a parameter is given, and the hint of one call's value."""
    plain = _without_notes(hint)
    origin = typing.get_origin(plain)
    if origin is Shared:
        return SHARED, typing.get_args(plain)[0]
    if origin is list or plain is list:
        element = (*typing.get_args(plain), Any)[0]
        return (CONTEXTS if _is_context(element) else LIST), element
    if _is_array(plain):
        return ARRAY, hint
    raise TypeError(
        f"wirecall: {name}: {parameter} is a batch's: hint it list[…] or an array for the calls' values, or "
        f"wirecall.Shared[…] for one that they have in common, not {plain!r}"
    )


_RESULTS = ("list", "tuple", "Sequence", "Iterable", "Iterator", "Generator")


def _element_of_result(hint: Any, name: str) -> Any:
    hint = _without_notes(hint)
    if hint is None or hint is type(None):
        return None
    kind, of = typing.get_origin(hint) or hint, typing.get_args(hint)
    if hint is Any or _is_array(hint) or (not of and getattr(kind, "__name__", "") in _RESULTS):
        return Any
    if getattr(kind, "__name__", "") in _RESULTS and (kind is not tuple or of[1:] == (...,)):
        return of[0]
    raise TypeError(f"wirecall: {name}: a batched function returns list[…], an array or None, not {hint!r}")


def _is_array(hint: Any) -> bool:
    kind = typing.get_origin(hint) or hint
    return isinstance(kind, type) and kind.__module__ == "numpy" and kind.__name__ == "ndarray"


BATCH_BYTES = 64 << 20  # unless said


def _bounds(name: str, options: BatchOptions) -> Bounds:
    """TypeError or ValueError for what bounds no batch, by the option's name."""
    for option in options:
        if option not in BatchOptions.__annotations__:
            raise TypeError(
                f"wirecall: {name}: {option} is no option: those are {', '.join(BatchOptions.__annotations__)}"
            )
    if "batch" not in options:
        raise TypeError(
            f"wirecall: {name}: {', '.join(options)}: that is said of a batched function: give batch as well"
        )
    said: dict[str, Any] = {"wait_ms": 0, "batch_bytes": BATCH_BYTES, "max_concurrent_batches": 1}
    said |= {"batch_queue": 0, "batch_queue_bytes": 0, "batch_rows": 0} | options
    priority = said.get("batch_priority")
    if priority is not None and not callable(priority):
        raise TypeError(f"wirecall: {name}: batching: batch_priority={priority!r}: give a function of a Context")
    is_auto = said["wait_ms"] == "auto"
    ranges: dict[str, tuple[float, float]] = {
        "batch": (1, 65_536),
        "wait_ms": (0, 60_000),
        "batch_bytes": (1, 1 << 40),
        "max_concurrent_batches": (1, 1024),
        "batch_queue": (0, 1 << 31),
        "batch_queue_bytes": (0, 1 << 42),
        "batch_rows": (0, 1 << 40),
    }
    for option, (least, most) in ranges.items():
        value = said[option]
        if option == "wait_ms" and is_auto:
            continue
        if isinstance(value, bool) or not isinstance(value, int if option != "wait_ms" else (int, float)):
            raise TypeError(f"wirecall: {name}: batching: {option}={value!r}: give a number")
        if not least <= value <= most:
            raise ValueError(f"wirecall: {name}: batching: {option}={value!r}: give a number from {least} to {most}")
    if 0 < said["batch_queue"] < said["batch"]:
        raise ValueError(f"wirecall: {name}: batching: batch_queue={said['batch_queue']!r}: a whole batch has to wait")
    if 0 < said["batch_queue_bytes"] < said["batch_bytes"]:
        queued = said["batch_queue_bytes"]
        raise ValueError(f"wirecall: {name}: batching: batch_queue_bytes={queued!r}: a whole batch has to wait")
    microseconds = -1 if is_auto else int(said["wait_ms"] * 1000)
    return Bounds(
        size=said["batch"],
        wait_us=microseconds,
        bytes=said["batch_bytes"],
        concurrent=said["max_concurrent_batches"],
        queue=said["batch_queue"],
        queue_bytes=said["batch_queue_bytes"],
        rows=said["batch_rows"],
    )


def _buckets(options: BatchOptions, name: str) -> tuple[int, ...]:
    given = options.get("buckets", ())
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise TypeError(f"wirecall: {name}: buckets={given!r}: give lengths, as in [128, 256]")
    buckets = tuple(given)
    if any(isinstance(bucket, bool) or not isinstance(bucket, int) or bucket < 1 for bucket in buckets):
        raise TypeError(f"wirecall: {name}: buckets={list(buckets)!r}: give lengths, as in [128, 256]")
    if buckets and not options.get("pad", False):
        raise TypeError(f"wirecall: {name}: buckets are for arrays that are padded: give pad=True")
    return tuple(sorted(buckets))


def describe_provided(
    function: Callable[..., Any], name: str, options: dict[str, Any], *, in_asyncio: bool, check_results: bool
) -> tuple[Batched, Bounds]:
    """A function that a client provides, with what of `options` says how it is batched, which it takes out. One that
    runs in an event loop is async."""
    said: Any = {option: options.pop(option) for option in BatchOptions.__annotations__ if option in options}
    batched, bounds = describe_batched(function, name, said, check_results=check_results)
    if in_asyncio and batched.described.runs_on != ASYNCIO:

        async def run(calls: list[tuple[Any, ...]]) -> Any:
            return batched.run(calls)

        return batched._replace(described=batched.described._replace(runs_on=ASYNCIO), run=run), bounds
    if not in_asyncio and batched.described.runs_on == ASYNCIO:
        raise TypeError(f"wirecall: {name} is asynchronous: a client of wirecall.aconnect takes async def")
    return batched, bounds


class _Group(typing.NamedTuple):
    """Calls of a batch that go together."""

    taken: Sequence[int]  # which
    key: tuple[Any, ...]


class _Gather:
    """Makes one call of the function, or one for each group of calls that may go together. What fails a group fails no
    other."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        columns: list[Column],
        pad: bool,
        buckets: tuple[int, ...],
        bytes_max: int,
    ) -> None:
        self._function = function
        self._name = name
        self._columns = columns
        self._pad = pad
        self._buckets = buckets
        self._bytes_max = bytes_max
        self._has_one_group = all(column.kind in (LIST, CONTEXTS) for column in columns)

    def run(self, calls: list[tuple[Any, ...]]) -> list[Any]:
        results: list[Any] = [None] * len(calls)
        try:
            for group in self._groups(calls, results):
                try:
                    self._give(results, group, self._call(calls, group))
                except Exception as error:
                    _fail(results, group, error)
            return results
        finally:
            # An error in it has this frame: both, and the arrays, would stay until the collector runs.
            del results

    async def run_async(self, calls: list[tuple[Any, ...]]) -> list[Any]:
        results: list[Any] = [None] * len(calls)
        try:
            for group in self._groups(calls, results):
                try:
                    made: Awaitable[Any] = self._call(calls, group)
                    self._give(results, group, await made)
                except Exception as error:
                    _fail(results, group, error)
                except asyncio.CancelledError as error:
                    task = asyncio.current_task()
                    if task is None or task.cancelling():
                        raise
                    _fail(results, group, RuntimeError(f"{self._name} has awaited what was cancelled: {error!r}"))
            return results
        finally:
            del results  # as in `run`

    def _call(self, calls: list[tuple[Any, ...]], group: _Group) -> Any:
        """Once it has returned, nothing here has the arguments, so that the next group may have their memory."""
        args, kwargs = self._arguments(calls, group)
        return self._function(*args, **kwargs)

    def _give(self, results: list[Any], group: _Group, made: Any) -> None:
        count = len(group.taken)
        if made is None:
            return
        if type(made) is not list or len(made) != count:
            made = self._list_of(made, count)
        if count == len(results):
            results[:] = made
        else:
            for i, result in zip(group.taken, made, strict=True):
                results[i] = result

    def _list_of(self, made: Any, count: int) -> list[Any]:
        if isinstance(made, (str, bytes, bytearray, memoryview, Mapping, Set)) or not isinstance(made, Iterable):
            raise TypeError(f"{self._name}: a batch returns a list of each call's result, not {type(made).__name__}")
        given = list(itertools.islice(made, count + 1))
        if len(given) != count:
            has = str(len(given)) if len(given) < count else "more"
            raise RuntimeError(f"{self._name}: a batch of {count} calls has {has} results")
        return given

    def _groups(self, calls: list[tuple[Any, ...]], results: list[Any]) -> Iterator[_Group]:
        """The calls that may go together. One that may go with none has its error in `results`."""
        if self._has_one_group:
            yield _Group(range(len(calls)), ())
            return
        groups: dict[Any, list[int]] = {}
        for i, call in enumerate(calls):
            try:
                groups.setdefault(self._key(call), []).append(i)
            except Exception as error:  # this call's alone, whatever it is
                results[i] = error
        del results  # as in `run`
        for key, taken in groups.items():
            if self._pad:
                yield from self._parts(calls, taken, key)
            else:
                yield _Group(taken, key)

    def _key(self, call: tuple[Any, ...]) -> tuple[Any, ...]:
        """What calls have in common that may go together: equal shared values, arrays of one type and shape, and of
        those that are padded one bucket."""
        key: list[Any] = []
        for column in self._columns:
            if column.kind == SHARED:
                key.append(bytes(dumps(call[column.argument], "msgpack")))
            elif column.kind == ARRAY:
                array = call[column.argument]
                if self._pad and array.ndim == 0:
                    raise InvalidParams(f"{column.name} is one number: an array that is padded has a length")
                key.append((array.dtype, array.shape[1:] if self._pad else array.shape))
        if self._pad:
            lengths = [len(array) for array in self._arrays(call)]
            key.append(self._bucket(max(lengths)))
            if self._padded_bytes(call, lengths, key[-1]) > self._bytes_max:
                raise InvalidParams(f"padded it is larger than a batch may be, {self._bytes_max} bytes")
        return tuple(key)

    def _arrays(self, call: tuple[Any, ...]) -> list[Any]:
        return [call[column.argument] for column in self._columns if column.kind == ARRAY]

    def _bucket(self, length: int) -> int:
        """How long its arrays become; 0 for as long as the longest of the batch."""
        if not self._buckets:
            return 0
        for bucket in self._buckets:
            if length <= bucket:
                return bucket
        raise InvalidParams(f"an array of {length} elements is longer than {self._buckets[-1]}, the largest bucket")

    def _padded_bytes(self, call: tuple[Any, ...], lengths: list[int], bucket: int) -> int:
        """Of the arrays of a call, when they have these lengths."""
        return sum(
            max(bucket, length) * array.itemsize * math.prod(array.shape[1:])
            for array, length in zip(self._arrays(call), lengths, strict=True)
        )

    def _parts(self, calls: list[tuple[Any, ...]], taken: list[int], key: tuple[Any, ...]) -> Iterator[_Group]:
        """So many at once that their padded arrays have no more bytes than a batch may have."""
        part: list[int] = []
        longest: list[int] = []
        for i in taken:
            lengths = [len(array) for array in self._arrays(calls[i])]
            longer = [max(pair) for pair in zip(longest or lengths, lengths, strict=True)]
            if part and (len(part) + 1) * self._padded_bytes(calls[i], longer, key[-1]) > self._bytes_max:
                yield _Group(part, key)
                part, longer = [], lengths
            part.append(i)
            longest = longer
        yield _Group(part, key)

    def _arguments(self, calls: list[tuple[Any, ...]], group: _Group) -> tuple[list[Any], Mapping[str, Any]]:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        taken = calls if len(group.taken) == len(calls) else [calls[i] for i in group.taken]
        for column in self._columns:
            of_calls = [call[column.argument] for call in taken]
            if column.kind == LENGTHS:
                value = _lengths(of_calls)
            elif column.kind == ARRAY:
                value = _padded(of_calls, group.key[-1]) if self._pad else _stacked(of_calls)
            else:
                value = of_calls[0] if column.kind == SHARED else of_calls
            if column.by_name:
                kwargs[column.name] = value
            else:
                args.append(value)
        return args, kwargs


def _fail(results: list[Any], group: _Group, error: Exception) -> None:
    for i in group.taken:
        results[i] = error


def _lent(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array in memory that is used again, with unspecified values; None where new memory is as good."""
    import numpy

    memory = array_memory(math.prod(shape) * dtype.itemsize) if dtype.isbuiltin and dtype.kind in "biufc" else None
    return None if memory is None else numpy.ndarray(shape, dtype, memory)


def _stacked(arrays: Sequence[Any]) -> Any:
    import numpy

    return numpy.stack(arrays, out=_lent((len(arrays), *arrays[0].shape), arrays[0].dtype))


def _lengths(arrays: Sequence[Any]) -> Any:
    import numpy

    return numpy.fromiter((array.shape[0] for array in arrays), numpy.int64, len(arrays))


def _padded(arrays: Sequence[Any], length: int) -> Any:
    """One array, zero where a call's own ends; `length` 0 for that of the longest."""
    import numpy

    length = length or max(len(array) for array in arrays)
    shape, dtype = (len(arrays), length, *arrays[0].shape[1:]), arrays[0].dtype
    lent = _lent(shape, dtype)
    padded = numpy.zeros(shape, dtype) if lent is None else lent
    for row, array in zip(padded, arrays, strict=True):
        row[: array.shape[0]] = array
        if lent is not None:
            row[array.shape[0] :] = 0
    return padded
