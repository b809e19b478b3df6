"""Middleware of a server: generators that run around each call of a method, and see what it is and what comes of it."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from typing import Any

from . import _methods
from ._native import Context

Middleware = Callable[["MethodCall"], Any]

_NOTHING: Any = object()
_CONTEXT = "wirecall_context"  # the parameter of functions that take none


class MethodCall:
    """A call, as middleware sees it: `params` by name, the `context`, and after its `yield` the `result`, which it may
    replace; of a stream there is none."""

    __slots__ = ("_args", "_kwargs", "_names", "_rest", "context", "result")

    def __init__(
        self, context: Context, names: Sequence[str], rest: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.context = context
        self.result: Any = _NOTHING
        self._names = names
        self._rest = rest
        self._args = args
        self._kwargs = kwargs

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.context.method

    @property
    def principal(self) -> str | None:
        """The name of the principal that calls; None where nobody has to authenticate."""
        return self.context.principal

    @property
    def params(self) -> dict[str, Any]:
        """The arguments by name, defaults included; those of `*args` as a tuple by that name. Made when it is asked
        for."""
        named = dict(zip(self._names, self._args, strict=False))
        if self._rest:
            named[self._rest] = self._args[len(self._names) :]
        return {name: value for name, value in (named | self._kwargs).items() if not isinstance(value, Context)}

    def _outcome(self) -> Any:
        if self.result is _NOTHING:
            raise RuntimeError(
                f"wirecall: {self.method} has no result: middleware has kept its error, or returned instead of "
                "yielding, and set no call.result"
            )
        return self.result


def check_middleware(function: Middleware) -> Middleware:
    inner = _methods._underlying(function)
    if not inspect.isgeneratorfunction(inner) and not inspect.isasyncgenfunction(inner):
        name = getattr(function, "__name__", repr(function))
        raise TypeError(
            f"wirecall: middleware is a generator, which yields once where the method runs: {name} does not yield"
        )
    return function


def with_middleware(
    function: Callable[..., Any], name: str, middleware: Sequence[Middleware], blocking: bool = False
) -> Callable[..., Any]:
    """A function around which the middleware runs, the first outermost."""
    runs_on = _methods._runs_on(function, blocking)
    is_async = runs_on in (_methods.ASYNCIO, _methods.ASYNCIO_STREAM)
    for one in middleware:
        if inspect.isasyncgenfunction(_methods._underlying(one)) and not is_async:
            raise TypeError(
                f"wirecall: {name} is a plain function, and cannot wait for middleware that is async: write "
                f"{getattr(one, '__name__', repr(one))} as `def`, which is around both kinds"
            )
    parameters = list(_methods._signature(function, name).parameters.values())
    hints = _methods._hints(function, name)
    positional = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    rest = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), "")
    own = next((one for one in parameters if _methods._is_context(hints.get(one.name))), None)

    def call_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> MethodCall:
        if own is None:
            context = kwargs.pop(_CONTEXT)
        else:
            context = kwargs[own.name] if own.name in kwargs else args[positional.index(own.name)]
        return MethodCall(context, positional, rest, args, kwargs)

    def plain(*args: Any, **kwargs: Any) -> Any:
        call = call_of(args, kwargs)
        with contextlib.ExitStack() as stack:
            if _enter(middleware, call, stack):
                call.result = function(*args, **kwargs)
        return call._outcome()

    async def asynchronous(*args: Any, **kwargs: Any) -> Any:
        call = call_of(args, kwargs)
        async with contextlib.AsyncExitStack() as stack:
            if await _enter_async(middleware, call, stack):
                call.result = await function(*args, **kwargs)
        return call._outcome()

    def stream(*args: Any, **kwargs: Any) -> Any:
        call = call_of(args, kwargs)
        with contextlib.ExitStack() as stack:
            if _enter(middleware, call, stack):
                yield from function(*args, **kwargs)
                call.result = None
        call._outcome()

    async def asynchronous_stream(*args: Any, **kwargs: Any) -> Any:
        call = call_of(args, kwargs)
        async with contextlib.AsyncExitStack() as stack:
            if await _enter_async(middleware, call, stack):
                async with _methods.closing(function(*args, **kwargs)) as items:
                    async for item in items:
                        yield item
                call.result = None
        call._outcome()

    if own is None:
        added = inspect.Parameter(_CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=Context)
        at = next((i for i, one in enumerate(parameters) if one.kind is one.VAR_KEYWORD), len(parameters))
        parameters.insert(at, added)
        hints = hints | {_CONTEXT: Context}
    wrappers = {
        _methods.ASYNCIO: asynchronous, _methods.POOL_STREAM: stream, _methods.ASYNCIO_STREAM: asynchronous_stream,
    }  # fmt: skip
    return _methods.as_described(wrappers.get(runs_on, plain), function, parameters, hints)


def _enter(middleware: Sequence[Middleware], call: MethodCall, stack: contextlib.ExitStack) -> bool:
    """False where one has returned instead of yielding: the method is not called."""
    for one in middleware:
        running = one(call)
        if next(running, _NOTHING) is _NOTHING:
            return False
        stack.push(_leaving(running))
    return True


async def _enter_async(middleware: Sequence[Middleware], call: MethodCall, stack: contextlib.AsyncExitStack) -> bool:
    for one in middleware:
        running = one(call)
        if not inspect.isasyncgen(running):
            if next(running, _NOTHING) is _NOTHING:
                return False
            stack.push(_leaving(running))
        elif await anext(running, _NOTHING) is _NOTHING:
            return False
        else:
            stack.push_async_exit(_leaving_async(running))
    return True


def _leaving(running: Generator[Any, Any, Any]) -> Callable[..., bool]:
    def leave(_: Any, error: BaseException | None, __: Any) -> bool:
        try:
            if error is None:
                next(running)
            else:
                running.throw(error)
        except StopIteration:
            return error is not None  # it has kept the error
        except BaseException as raised:
            if raised is error:
                return False
            raise
        running.close()
        raise RuntimeError("wirecall: middleware yields once")

    return leave


def _leaving_async(running: AsyncGenerator[Any, Any]) -> Callable[..., Any]:
    async def leave(_: Any, error: BaseException | None, __: Any) -> bool:
        try:
            if error is None:
                await anext(running)
            else:
                await running.athrow(error)
        except StopAsyncIteration:
            return error is not None
        except BaseException as raised:
            if raised is error:
                return False
            raise
        await running.aclose()
        raise RuntimeError("wirecall: middleware yields once")

    return leave
