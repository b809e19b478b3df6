"""The thread on which a server's async handlers run: one asyncio loop (uvloop's where it is installed)."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from typing import Any

# Seconds for cancelled tasks to end; and for the thread, which may wait for tasks twice.
END_S = 0.5
JOIN_S = 2 * END_S + 0.5


def new_loop() -> asyncio.AbstractEventLoop:
    """The fastest loop that there is."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


# asyncio raises these out of its loop, to end the program. Here a handler has raised them: its call is answered with
# them, and the loop goes on.
_ENDINGS_OF_HANDLERS = contextlib.suppress(SystemExit, KeyboardInterrupt)


class AsyncioThread:
    """Runs the calls of a native queue, which has `fileno` and `drain`, from `start` to `stop`."""

    def __init__(self, calls: Any) -> None:
        self._calls = calls
        self._loop = new_loop()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="wirecall-asyncio", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Cancels what still runs, and waits for it no longer than JOIN_S: a handler that blocks, or goes on when it is
        cancelled, must not keep the server from ending."""
        self._stopping = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(JOIN_S)
        if self._thread.is_alive():
            _log().error("an async handler blocks its thread; the server ends without it")
        else:
            self._calls = None  # a server that is given up goes with it

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """What a coroutine comes to on this thread. Blocks until then."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def end_tasks(self) -> bool:
        """Cancels what still runs, and waits for it as `stop` does. False where a handler blocks the thread."""
        ended = asyncio.run_coroutine_threadsafe(self._end_tasks(), self._loop)
        try:
            ended.result(JOIN_S)
        except TimeoutError:
            return False
        return True

    async def _end_tasks(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        _cancel(tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=END_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.add_reader(self._calls.fileno(), self._calls.drain, self._loop)
        while not self._stopping:
            with _ENDINGS_OF_HANDLERS:
                self._loop.run_forever()
        self._loop.remove_reader(self._calls.fileno())
        tasks = asyncio.all_tasks(self._loop)
        _cancel(tasks)
        self._wait_for(tasks)
        with contextlib.suppress(RuntimeError):  # of a generator that yields when it is closed
            self._wait_for({self._loop.create_task(self._loop.shutdown_asyncgens())})
        self._loop.close()

    def _wait_for(self, tasks: set[asyncio.Task[Any]]) -> None:
        """Until they have ended, or END_S have passed."""
        deadline = self._loop.time() + END_S
        while tasks and (left := deadline - self._loop.time()) > 0:
            with _ENDINGS_OF_HANDLERS:
                _, tasks = self._loop.run_until_complete(asyncio.wait(tasks, timeout=left))
        for task in tasks:
            _log().error("%r goes on although it is cancelled; the server ends without it", task)


def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Those that have been cancelled already may be cleaning up."""
    for task in tasks:
        if not task.cancelling():
            task.cancel()


@contextlib.contextmanager
def entered(lifespan: Callable[[Any], Any], server: Any, thread: AsyncioThread) -> Iterator[None]:
    """Within a server's lifespan. An asynchronous one runs on the thread of its async handlers."""
    made = lifespan(server)
    if inspect.isgenerator(made):
        made = contextlib.contextmanager(lambda: made)()
    elif inspect.isasyncgen(made):
        made = contextlib.asynccontextmanager(lambda: made)()
    if hasattr(made, "__aenter__"):
        stack = contextlib.AsyncExitStack()
        thread.run(stack.enter_async_context(made))
        try:
            yield
        except BaseException as failure:
            if not thread.run(stack.__aexit__(type(failure), failure, failure.__traceback__)):
                raise
        else:
            if not thread.end_tasks():
                _log().error("an async handler blocks its thread; the lifespan is not ended")
                return
            thread.run(stack.aclose())
    elif hasattr(made, "__enter__"):
        with made:
            yield
    else:
        raise TypeError(f"wirecall: lifespan has returned {made!r}: write a generator, or a context manager")


def _log() -> logging.Logger:
    return logging.getLogger("wirecall")


async def items_of(source: Any) -> AsyncIterator[Any]:
    """The items of the stream that the caller of an async handler sends."""
    loop = asyncio.get_running_loop()
    while True:
        came = source.take()
        if came is None:
            readable = loop.create_future()
            source.on_readable(readable)
            await readable
        elif came:
            yield came[0]
        else:
            return


async def feed_from(generator: AsyncIterator[Any], feed: Any, subscription: bool) -> None:
    """Puts what an async generator yields into a feed, as fast as that takes it; cancelled when nobody wants more."""
    loop = asyncio.get_running_loop()
    if subscription:
        loop.call_soon(feed.started)  # when the generator waits for the first time, unless it has ended by then
    try:
        async for item in generator:
            if feed.push(item):
                continue
            if not feed.wanted:
                break
            writable = loop.create_future()
            feed.on_writable(writable)
            await writable
            if not feed.wanted:
                break
        feed.end()
    except asyncio.CancelledError as failure:
        if feed.wanted:
            feed.end_with(failure)
        raise
    except BaseException as failure:  # it is the answer, whatever it is: nothing else would end the call
        feed.end_with(failure)
    finally:
        feed.run_by_none()
        close = getattr(generator, "aclose", None)
        if close is not None:
            with _ENDINGS_OF_HANDLERS, contextlib.suppress(Exception):
                await close()
