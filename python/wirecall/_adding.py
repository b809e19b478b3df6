"""What is added to a server: each function here describes one of its functions, or one of a server that is mounted,
whose middleware is then `inner`, and returns what adds it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._access import Allows
    from ._batching import BatchOptions
    from ._dependencies import Overrides
    from ._middleware import Middleware
    from .server import Server


def method(
    server: Server,
    overrides: Overrides,
    inner: Sequence[Middleware],
    function: Callable[..., Any],
    called: str,
    blocking: bool,
    safe: bool,
    cache: int | Mapping[str, float] | None,
    checks: bool,
    allows: Allows | None,
) -> Callable[[], None]:
    from ._dependencies import refuse_dependencies
    from ._methods import ASYNCIO, ASYNCIO_STREAM, POOL_STREAM, describe

    around = (*server._middleware, *inner)
    if around and cache is not None:
        raise TypeError(
            f"wirecall: {called}: middleware runs around each call, and a cached function does not run for each"
        )
    if cache is not None:
        refuse_dependencies(function, called, "cached")
    described = describe(
        function, called, blocking=blocking, check_results=checks, overrides=overrides, middleware=around
    )  # fmt: skip
    kept = _cache_bounds(cache, called)
    if kept is not None and described.runs_on in (ASYNCIO_STREAM, POOL_STREAM):
        raise TypeError(f"wirecall: {called}: the results of a generator are not cached")
    told = (called, described.function, described, safe, kept)

    def add() -> None:
        server._engine.add(*told)
        server._methods[called] = told
        server._allow(called, allows)
        server._asynchronous = server._asynchronous or described.runs_on in (ASYNCIO, ASYNCIO_STREAM)
        server._added.append(
            lambda to, prefix: method(
                to, overrides, around, function, prefix + called, blocking, safe, cache, checks, allows
            )
        )

    return add


def batched_method(
    server: Server,
    inner: Sequence[Middleware],
    function: Callable[..., Any],
    called: str,
    safe: bool,
    checks: bool,
    allows: Allows | None,
    options: BatchOptions,
) -> Callable[[], None]:
    from ._batched_streams import is_stream, stream_of_one
    from ._batching import describe_batched
    from ._methods import ASYNCIO

    if is_stream(function, called, options):
        one = stream_of_one(function, called, options)
        return method(server, server._overrides, inner, one, called, False, safe, None, checks, allows)
    if server._middleware or inner:
        raise TypeError(
            f"wirecall: {called}: middleware runs around one call, and a batched function runs for many"
        )  # fmt: skip
    batched, bounds = describe_batched(function, called, options, check_results=checks)
    told = (called, batched.run, batched.weigh, batched.described, safe, bounds)

    def add() -> None:
        server._engine.add_batched(*told)
        server._batched[called] = told
        server._allow(called, allows)
        server._asynchronous = server._asynchronous or batched.described.runs_on == ASYNCIO
        server._added.append(
            lambda to, prefix: batched_method(to, (), function, prefix + called, safe, checks, allows, options)
        )

    return add


def subscription(
    server: Server,
    overrides: Overrides,
    inner: Sequence[Middleware],
    function: Callable[..., Any],
    names: tuple[str, str, str],
    checks: bool,
    allows: Allows | None,
) -> Callable[[], None]:
    from ._methods import describe_subscription

    around = (*server._middleware, *inner)
    described = describe_subscription(
        function, names[0], check_results=checks, overrides=overrides, middleware=around
    )  # fmt: skip
    told = (names, described.function, described)

    def add() -> None:
        server._engine.add_subscription(*told)
        server._subscriptions[names[0]] = told
        server._allow(names[0], allows)
        server._allow_unsubscribe(names[1], allows)
        server._asynchronous = True
        server._added.append(
            lambda to, prefix: subscription(
                to,
                overrides,
                around,
                function,
                (prefix + names[0], prefix + names[1], prefix + names[2]),
                checks,
                allows,
            )
        )

    return add


def _cache_bounds(cache: int | Mapping[str, float] | None, name: str) -> tuple[int, int, int] | None:
    """The entries, bytes and milliseconds to live that `cache` says for the method `name`. TypeError or ValueError for
    what says none, by the option's name."""
    if cache is None:
        return None
    said: Mapping[str, float] = cache if isinstance(cache, Mapping) else {"entries": cache}
    least = {"entries": 1, "bytes": 1, "ttl": 0.001}
    for option, value in said.items():
        written = f"@app(cache={{{option!r}: {value!r}}})" if isinstance(cache, Mapping) else f"@app(cache={value!r})"
        if option not in least:
            raise TypeError(f"wirecall: {name}: {written}: cache has entries, bytes and ttl, and no {option}")
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise TypeError(
                f"wirecall: {name}: {written}: give a number of entries, or a dict of numbers: "
                '{"entries": 10_000, "bytes": 16 << 20, "ttl": 60}'
            )
        if not least[option] <= value < math.inf:
            unit = " seconds" if option == "ttl" else ""
            raise ValueError(f"wirecall: {name}: {written}: give {least[option]}{unit} or more for {option}")
    if "entries" not in said:
        raise TypeError(f"wirecall: {name}: @app(cache={dict(said)!r}): say how many results are kept: entries")
    ttl = said.get("ttl")
    return int(said["entries"]), int(said.get("bytes", 16 << 20)), 0 if ttl is None else int(ttl * 1000)
