"""A generator that is called once for many calls, each of which has a stream of its own: how the calls are gathered,
and how what the generator yields is distributed. A call is served by an async generator that is made here, as any
stream is, so its params, credit, deadline and cancellation are those of every stream. What a class here does, it does
in one event loop."""

from __future__ import annotations

import asyncio
import inspect
import math
import types
import typing
import weakref
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from ._batching import (
    BatchOptions,
    Bounds,
    _bounds,
    _element_of_result,
    _Gather,
    _gather_of,
    _Group,
    _without_notes,
)
from ._methods import _STREAMS, ASYNCIO_STREAM, LEAVE, POOL_STREAM, _hints, _runs_on, as_described, closing
from .errors import Error, InternalError, LimitExceeded, LocalError

# For so long calls come, which may have been in middleware, after a server has begun to stop: its drain_ms at most.
_LEAVING_S = 60.0


def is_stream(function: Callable[..., Any], name: str, options: BatchOptions) -> bool:
    """Whether the batched function is a generator of streams. A plain generator is one where the option `stream` says
    so: it may yield the calls' results as well."""
    runs_on = _runs_on(function, blocking=False)
    said = options.get("stream", runs_on == ASYNCIO_STREAM)
    if not isinstance(said, bool):
        raise TypeError(f"wirecall: {name}: stream={said!r}: give True or False")
    if said and runs_on not in (ASYNCIO_STREAM, POOL_STREAM):
        raise TypeError(f"wirecall: {name}: stream is for a generator, and it does not yield")
    if not said and runs_on == ASYNCIO_STREAM:
        raise TypeError(f"wirecall: {name}: what an async generator yields are streams: leave stream=False away")
    return said


def stream_of_one(
    function: Callable[..., Any], name: str, options: BatchOptions, *, stops_once: bool = True
) -> Callable[..., AsyncIterator[Any]]:
    """The async generator that serves one call. `stops_once`: who is told that no others are to be expected stops, as a
    server does; a client goes on at another broker. TypeError or ValueError as of `describe_batched`."""
    bounds = _bounds(name, options)
    if options.get("wait_ms") == "auto":
        raise TypeError(
            f'wirecall: {name}: wait_ms="auto" is found out by how long batches run, which says nothing of streams: '
            "give a number"
        )
    if "batch_bytes" in options and not options.get("pad", False):
        raise TypeError(f"wirecall: {name}: of streams batch_bytes bounds the arrays that are padded: give pad=True")
    for option in ("batch_rows", "batch_priority", "batch_queue_bytes"):
        if option in options:
            raise TypeError(f"wirecall: {name}: {option} is for functions that return results, not for streams")
    parameters, _, gather = _gather_of(function, name, options, bounds)
    hint = _stream_hint(_hints(function, name).get("return", Any), name)
    begin = function if _runs_on(function, blocking=False) == ASYNCIO_STREAM else _on_threads(function)
    signature = inspect.Signature(parameters)
    # A server may run again, and one that is mounted may run by itself as well: each time in another loop.
    batchers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Batcher] = weakref.WeakKeyDictionary()

    def batcher_here() -> _Batcher:
        loop = asyncio.get_running_loop()
        if (batcher := batchers.get(loop)) is None:
            batcher = batchers[loop] = _Batcher(begin, gather, bounds, _LEAVING_S if stops_once else 0.0)
        return batcher

    async def one(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        batcher = batcher_here()
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        call = batcher.add(tuple(bound.arguments.values()))
        given: Any = None
        try:
            while True:
                given = await call.given.get()
                if isinstance(given, StopIteration):
                    return
                if isinstance(given, BaseException):
                    raise given
                yield given
                call.has_read()
        finally:
            batcher.remove(call)
            if isinstance(given, Error):
                given.__traceback__ = None  # it may be used again, and has this call's frames

    def leave() -> None:
        batcher_here().leave()

    hints = {parameter.name: parameter.annotation for parameter in parameters} | {"return": hint}
    setattr(one, LEAVE, leave)
    return as_described(one, function, parameters, hints)


def provided_stream(
    function: Callable[..., Any], name: str, options: dict[str, Any]
) -> Callable[..., AsyncIterator[Any]] | None:
    """What a client provides of a generator of streams, when what says how it is batched has been taken out of
    `options`; None for another function. The broker is asked for the batches that run, and one that is gathered."""
    said: Any = {option: options[option] for option in BatchOptions.__annotations__ if option in options}
    if not is_stream(function, name, said):
        return None
    one = stream_of_one(function, name, said, stops_once=False)
    for option in said:
        del options[option]
    options.setdefault("concurrency", said["batch"] * (said.get("max_concurrent_batches", 1) + 1))
    return one


def _stream_hint(hint: Any, name: str) -> Any:
    """The hint of one call's stream, by that of the generator."""
    hint = _without_notes(hint)
    if hint is not Any and getattr(typing.get_origin(hint) or hint, "__name__", "") not in (*_STREAMS, "Iterable"):
        raise TypeError(f"wirecall: {name}: a generator of streams returns AsyncIterator[list[…]], not {hint!r}")
    (step, *_) = typing.get_args(hint) or (Any,)
    element = _element_of_result(step, name)
    is_union = typing.get_origin(element) in (typing.Union, types.UnionType)
    items = [one for one in (typing.get_args(element) if is_union else (element,)) if not _is_no_item(one)]
    if not items:
        raise TypeError(f"wirecall: {name}: a generator of streams yields an item for each call, list[…], not {step!r}")
    return AsyncIterator[typing.Union[tuple(items)]]  # type: ignore[misc]  # noqa: UP007


def _is_no_item(hint: Any) -> bool:
    return hint in (None, type(None)) or (isinstance(hint, type) and issubclass(hint, BaseException))


def _on_threads(function: Callable[..., Iterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
    """The generator with its steps on threads, one after another. A step that runs is waited for, also by who is
    cancelled."""
    end = object()

    async def run(*called: Any) -> Any:
        step = asyncio.ensure_future(asyncio.to_thread(*called))
        try:
            return await asyncio.shield(step)
        except asyncio.CancelledError:
            await asyncio.wait([step])
            raise

    async def steps(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        generator: Any = function(*args, **kwargs)
        try:
            while (step := await run(next, generator, end)) is not end:
                yield step
        finally:
            await run(generator.close)

    return steps


class _Call:
    """A call, until its stream has ended."""

    def __init__(self, arguments: tuple[Any, ...], due: float) -> None:
        self.arguments = arguments
        self.due = due  # when it has waited long enough for others
        self.given: asyncio.Queue[Any] = asyncio.Queue()  # an item, or the exception by which the stream ends
        self.batch: _Batch | None = None

    def end(self, how: BaseException) -> None:
        self.given.put_nowait(how)

    def has_read(self) -> None:
        if self.batch is not None:
            self.batch.has_read(self)


class _Batch:
    """Calls for which the generator is called once."""

    def __init__(self, calls: Sequence[_Call], key: tuple[Any, ...]) -> None:
        self.key = key
        self.active = dict.fromkeys(calls)  # those whose streams have not ended
        self.task: asyncio.Task[None] | None = None
        self._unread: set[_Call] = set()  # those that have not read what the last step has given them
        self._all_read = asyncio.Event()
        for call in calls:
            call.batch = self

    async def give(self, calls: Sequence[_Call], items: Sequence[Any]) -> None:
        """Gives each call its item, and waits until all have read theirs, or have left."""
        for call, item in zip(calls, items, strict=True):
            if item is not None and call in self.active:
                call.given.put_nowait(item)
                self._unread.add(call)
        if self._unread:
            self._all_read.clear()
            await self._all_read.wait()
        else:
            await asyncio.sleep(0)  # a generator that never awaits must not keep the loop

    def end(self, how: BaseException) -> None:
        """Ends the streams. An exception that is no caller's error is logged once, by the first of them."""
        for call in self.active:
            call.end(how)
            if not isinstance(how, StopIteration | Error) or isinstance(how, LocalError):
                how = InternalError()

    def has_read(self, call: _Call) -> None:
        self._unread.discard(call)
        if not self._unread:
            self._all_read.set()

    def remove(self, call: _Call) -> None:
        del self.active[call]
        self.has_read(call)
        if not self.active and self.task is not None:
            self.task.cancel()


class _Batcher:
    """Gathers the calls of one event loop, and runs their batches in it."""

    def __init__(
        self, begin: Callable[..., AsyncIterator[Any]], gather: _Gather, bounds: Bounds, leaving_s: float
    ) -> None:
        self._begin = begin
        self._gather = gather
        self._size = bounds.size
        self._wait_s = bounds.wait_us / 1_000_000
        self._concurrent = bounds.concurrent
        self._waiting_max = bounds.queue or 16 * bounds.size
        self._waiting: OrderedDict[_Call, None] = OrderedDict()
        self._leaving_s = leaving_s
        self._leaving_until = 0.0  # in the loop's time: until then nobody waits
        self._timer: asyncio.TimerHandle | None = None  # of the first that waits; None when it has waited long enough
        self._ready: deque[_Batch] = deque()  # gathered, for the next place that becomes free
        self._running = 0
        self._run_time_s = 0.0

    def add(self, arguments: tuple[Any, ...]) -> _Call:
        if len(self._waiting) == self._waiting_max:
            raise self._refusal()
        now = asyncio.get_running_loop().time()
        call = _Call(arguments, now if now < self._leaving_until else now + self._wait_s)
        self._waiting[call] = None
        if len(self._waiting) == 1:
            self._set_timer()
        self._start()
        return call

    def remove(self, call: _Call) -> None:
        if call.batch is not None:
            return call.batch.remove(call)
        del self._waiting[call]
        return self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if (first := next(iter(self._waiting), None)) is not None:
            self._timer = asyncio.get_running_loop().call_at(first.due, self._ripen)

    def leave(self) -> None:
        """Those that wait have waited long enough, and so has who comes while a server stops: no others are to be
        expected."""
        self._leaving_until = asyncio.get_running_loop().time() + self._leaving_s
        for call in self._waiting:
            call.due = 0
        self._set_timer()

    def _ripen(self) -> None:
        self._timer = None
        self._start()

    def _start(self) -> None:
        """Starts the batches that are due, as many as may run at once."""
        while self._running < self._concurrent:
            if self._ready:
                self._run(self._ready.popleft())
            elif len(self._waiting) >= self._size or (self._waiting and self._timer is None):
                self._take()
            else:
                break

    def _take(self) -> None:
        """Makes batches of those that have waited longest: several where not all may go together."""
        calls = [self._waiting.popitem(last=False)[0] for _ in range(min(self._size, len(self._waiting)))]
        self._set_timer()
        errors: list[Any] = [None] * len(calls)
        for group in self._gather._groups([call.arguments for call in calls], errors):
            self._ready.append(_Batch([calls[i] for i in group.taken], group.key))
        for call, error in zip(calls, errors, strict=True):
            if error is not None:
                _Batch([call], ()).end(error)  # a batch of its own, which has ended

    def _run(self, batch: _Batch) -> None:
        if not batch.active:
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._running += 1
        batch.task = loop.create_task(self._serve(batch))
        batch.task.add_done_callback(lambda _: self._has_run(loop.time() - began))

    def _has_run(self, time_s: float) -> None:
        # It follows a quicker run at once, so that the first one, in which a model is loaded, is soon forgotten.
        slower = self._run_time_s + (time_s - self._run_time_s) / 8
        self._run_time_s = min(time_s, slower) if self._run_time_s else time_s
        self._running -= 1
        self._start()

    async def _serve(self, batch: _Batch) -> None:
        calls = list(batch.active)
        try:
            group = _Group(range(len(calls)), batch.key)
            args, kwargs = self._gather._arguments([call.arguments for call in calls], group)
            async with closing(self._begin(*args, **kwargs)) as steps:
                async for step in steps:
                    await batch.give(calls, self._gather._list_of(step, len(calls)))
                    if not batch.active:
                        break  # it goes on although it was cancelled
        except BaseException as error:  # it is the calls' answer, whatever it is
            batch.end(error)
        else:
            batch.end(StopIteration())

    def _refusal(self) -> LimitExceeded:
        batches = math.ceil(len(self._waiting) / self._size)
        wait_ms = math.ceil(1000 * self._run_time_s * batches / self._concurrent)
        return LimitExceeded(
            data={
                "reason": "too many calls wait for a batch",
                "origin": "local",
                "limit": "queue",
                "retry_after_ms": max(wait_ms, 1),
            }
        )
