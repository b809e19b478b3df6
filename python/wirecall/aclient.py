"""AsyncClient: calls methods of a server from asyncio.

async with wirecall.aconnect("unix:///run/wc.sock") as c:
    await asyncio.gather(*(c.sum(i, 1) for i in range(1000)))
    async for v in c.count.stream(10): ...
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterable, AsyncIterator
from typing import TYPE_CHECKING, Any

from . import _native
from ._base_client import (
    BaseBatch,
    BaseClient,
    BaseMethod,
    call_all_params,
    check_call,
    check_provide_options,
    consumer_options,
    durable_params,
    publish_params,
    push_params,
    refuse_by,
)
from ._bootstrap import DEFAULT_URI
from ._catalogue import Catalogue
from ._packing import DISCOVER
from ._progress import progress_bar
from .errors import Error, LocalError, Timeout

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from types import TracebackType

    from ._base_client import Endpoints
    from ._methods import Described
    from ._native import Context, EventReply, Subscription
    from ._packing import Step


class Reply(asyncio.Future[Any]):
    """The answer to a call: an asyncio future. Cancelling it cancels the call, and notifies the server."""

    _handle: _native.CallHandle | None = None
    _sender: asyncio.Task[None] | None = None

    def cancel(self, msg: Any | None = None) -> bool:
        if not super().cancel(msg):
            return False
        if self._handle is not None:
            self._handle.cancel()
        return True


async def _send(
    queue: _native.InputQueue, items: Iterable[Any] | AsyncIterable[Any], failed: Callable[..., None]
) -> None:
    """Puts what a call sends into its queue, as the server has room for it; cancelled when the call has ended."""
    loop = asyncio.get_running_loop()
    iterator: Any = aiter(items) if isinstance(items, AsyncIterable) else iter(items)
    try:
        room = False
        while queue.wanted:
            if not room:
                writable = loop.create_future()
                queue.on_writable(writable)
                await writable
                if not queue.wanted:
                    break
            if isinstance(iterator, AsyncIterator):
                try:
                    item = await anext(iterator)
                except StopAsyncIteration:
                    break
            else:
                try:
                    item = next(iterator)
                except StopIteration:
                    break
            room = queue.push(item)
        queue.end()
    except asyncio.CancelledError:
        queue.fail()
        raise
    except BaseException as failure:
        failed(failure)
        queue.fail()
    finally:
        if (aclose := getattr(iterator, "aclose", None)) is not None:
            await aclose()


class AsyncClient(BaseClient):
    """The asyncio client, for one event loop at a time. Calling a method sends the call; `await` waits for the
    answer."""

    _loop: asyncio.AbstractEventLoop | None = None
    _learning: Reply | None = None

    def __init__(
        self, uri: Endpoints = DEFAULT_URI, *, timeout: float | None = None, wait: float | None = None, **options: Any
    ) -> None:
        super().__init__(uri, timeout=timeout, wait=wait, **options)
        self._replies = _native.Replies()
        self._calls: _native.Calls = _native.Calls()
        self._catalogue = LoopCatalogue(self)

    if TYPE_CHECKING:

        def __getitem__(self, name: str) -> AsyncMethod: ...
        def __getattr__(self, name: str) -> AsyncMethod: ...

    def _method(self, name: str) -> AsyncMethod:
        return (AsyncMethod if self._layouts is None else PackingAsyncMethod)(self, name, self._catalogue)

    def _learn_layouts(self, timeout: float | None) -> asyncio.Future[Any]:
        """The answer to rpc.discover, which is asked for once for all who wait for it. Each may be cancelled."""
        if self._learning is None or self._learning.done() or self._learning.get_loop() is not self._join():
            self._learning = self._start("rpc.discover", (), {})
        learning = asyncio.shield(self._learning)
        if timeout is None:
            return learning

        async def wait() -> Any:
            try:
                return await asyncio.wait_for(learning, timeout)
            except TimeoutError:
                raise Timeout() from None

        return self._join().create_task(wait())

    def _join(self) -> asyncio.AbstractEventLoop:
        """The running loop, which is told of answers from the first use on."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return loop
        if self._loop is not None and not self._loop.is_closed():
            raise LocalError("the client is used by another event loop: make one for each")
        loop.add_reader(self._replies.fileno(), self._replies.drain)
        loop.add_reader(self._calls.fileno(), self._calls.drain, loop)
        self._loop = loop
        return loop

    def _start(
        self,
        method: str,
        args: Any,
        kwargs: Any,
        timeout: float | None = None,
        to: str = "",
        within: Context | None = None,
        idempotent: bool = False,
        items: Iterable[Any] | AsyncIterable[Any] | None = None,
    ) -> Reply:
        reply = Reply(loop=self._join())
        queue = self._queue(items)
        try:
            reply._handle = self._native.start(
                method, args, kwargs, timeout, to, within, idempotent, queue, self._replies, reply
            )
        except TypeError:
            check_call(args, kwargs, timeout, to, within, idempotent)
            raise
        if items is not None and queue is not None:

            def failed(failure: BaseException) -> None:
                if not reply.done():
                    reply.set_exception(failure)

            reply._sender = sender = self._join().create_task(_send(queue, items, failed))
            reply.add_done_callback(lambda _: sender.cancel())
        return reply

    def _queue(self, items: object) -> _native.InputQueue | None:
        """Of what a call sends; None for nothing."""
        if items is None:
            return None
        check_call((), {}, None, "", None, False, items)
        return _native.InputQueue(self._replies)

    async def connect(self) -> None:
        """Connects now instead of with the first call. Raises ConnectionLost when there is no server."""
        await self._join().run_in_executor(None, self._native.connect)

    def batch(self) -> AsyncBatch:
        """Several calls in one message: `async with c.batch() as b: x = b.sum(1, 2)`; then `await x`."""
        return AsyncBatch(self)

    def call_all(self, method: str, /, *args: Any, _timeout: float | None = None, **kwargs: Any) -> Reply:
        """At a broker: calls a method at every client that provides it. The reply is a list of outcomes, one per
        provider: `{"client": name, "result": …}` or `{"client": name, "error": …}`. `_timeout`: seconds."""
        return self._start("rpc.call_all", (), call_all_params(method, args, kwargs), _timeout)

    def publish(self, topic: str, value: Any = None, *, retain: bool = False) -> Reply:
        """At a broker: publishes an event. The reply is the number of connections to which the broker queued it.
        `retain`: the broker keeps the value for clients that subscribe later with `last`."""
        return self._start("rpc.publish", (), publish_params(topic, value, retain))

    def publish_durable(self, topic: str, value: Any = None, *, msg_id: str = "") -> Reply:
        """At a broker with a durable store: publishes an event. The reply, once it is safe, is `{"seq": n}`, as of
        `Client.publish_durable`."""
        return self._start("rpc.publish", (), durable_params(topic, value, msg_id))

    async def push(
        self,
        method: str,
        /,
        *args: Any,
        _msg_id: str | None = None,
        _delay_ms: int | None = None,
        _max_deliver: int | None = None,
        _timeout_ms: int | None = None,
        **kwargs: Any,
    ) -> int:
        """At a broker with a durable store: pushes a call that is made later; as `Client.push`."""
        params = push_params(
            method,
            args,
            kwargs,
            msg_id=_msg_id,
            delay_ms=_delay_ms,
            max_deliver=_max_deliver,
            timeout_ms=_timeout_ms,
        )
        pushed: Any = await self._start("rpc.queue.push", (), params)
        return int(pushed["id"])

    async def provide(
        self, name: str, function: Callable[..., Any], *, check_results: bool = True, **options: Any
    ) -> None:
        """At a broker: provides a method to its other clients. The function (plain, `async def`, or an async generator
        for a stream) runs in this event loop. `options` as of `Client.provide`, `check_results` as for `Server`. Raises
        the broker's refusal."""
        self._join()
        self._provide(name, function, check_results, options)
        await self.connect()

    async def provide_subscription(
        self,
        subscribe: str,
        function: Callable[..., AsyncIterator[Any]],
        *,
        unsubscribe: str,
        notification: str,
        check_results: bool = True,
        **options: Any,
    ) -> None:
        """At a broker: provides a subscription to its other clients: an async generator, as for `Server.subscription`,
        which runs in this event loop once for each subscriber. The broker sends each subscriber its own events, and
        cancels the generator of a subscriber that disconnects. `unprovide(subscribe)` ends it. `options` as of
        `provide`."""
        from ._methods import describe_subscription

        check_provide_options(options)
        self._join()
        described = describe_subscription(function, subscribe, check_results=check_results)
        names = (subscribe, unsubscribe, notification)
        self._native.provide_subscription(names, described.function, described, options, self._calls)
        await self.connect()

    def _describe(self, function: Callable[..., Any], name: str, check_results: bool) -> Described:
        from ._methods import ASYNCIO, ASYNCIO_STREAM, POOL_STREAM, describe

        self._join()
        described = describe(function, name, check_results=check_results)
        if described.runs_on == POOL_STREAM:
            raise TypeError(f"wirecall: {name} is a plain generator, which would hold up the loop: make it async def")
        if described.takes_input and described.runs_on not in (ASYNCIO, ASYNCIO_STREAM):
            raise TypeError(f"wirecall: {name} waits for its caller, which would hold up the loop: make it async def")
        return described if described.runs_on == ASYNCIO_STREAM else described._replace(runs_on=ASYNCIO)

    async def subscribe(
        self,
        topic: str,
        handler: Callable[[str, Any], Any],
        *,
        group: str = "",
        echo: bool = False,
        last: bool = False,
        durable: str = "",
        start: str | int = "",
        ack_wait_ms: int | None = None,
        max_deliver: int | None = None,
        max_in_flight: int | None = None,
    ) -> Subscription:
        """At a broker: calls `handler(topic, value)` with each event, in this event loop; a handler that is `async def`
        runs as a task. The topic and the options are as of `Client.subscribe`; with `durable` an event is acknowledged
        when the handler, or its task, is done."""
        self._join()
        options = consumer_options(durable, start, ack_wait_ms, max_deliver, max_in_flight)
        if durable:
            if group or echo or last:
                raise ValueError("wirecall: a subscription with durable has no group, echo and last")
            subscription = self._native.consume(topic, self._acknowledging(handler), options, self._calls)
        else:
            subscription = self._native.subscribe(topic, self._task_of(handler), group, echo, last, self._calls)
        await self.connect()
        return subscription

    async def tap(self, pattern: str, handler: Callable[[dict[str, Any]], Any]) -> Subscription:
        """At a broker, as an admin: calls `handler(shown)`, plain or `async def`, in this event loop with each call,
        reply and event of the methods and topics that match the pattern (docs/broker.md "Tapping traffic"). A client
        has one pattern."""
        self._join()
        subscription = self._native.tap(pattern, self._task_of(handler), self._calls)
        await self.connect()
        return subscription

    def _acknowledging(self, handler: Callable[[str, Any], Any]) -> Callable[[str, Any, EventReply], None]:
        async def ended(outcome: Any, reply: EventReply) -> None:
            try:
                await outcome
            except BaseException as error:
                refuse_by(reply, error)
                raise
            reply.acknowledge()

        def called(topic: str, value: Any, reply: EventReply) -> Any:
            try:
                outcome = handler(topic, value)
            except BaseException as error:
                refuse_by(reply, error)
                raise
            if asyncio.iscoroutine(outcome):
                return ended(outcome, reply)
            reply.acknowledge()
            return None

        return self._task_of(called)

    def _task_of(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        tasks: set[asyncio.Task[Any]] = set()

        def called(*args: Any) -> None:
            outcome = handler(*args)
            if asyncio.iscoroutine(outcome):
                task = asyncio.get_running_loop().create_task(outcome)
                tasks.add(task)
                task.add_done_callback(tasks.discard)

        return called

    async def close(self) -> None:
        """Closes the connections. Calls that are not answered yet raise ConnectionLost, later calls LocalError. A
        second `close` has no effect."""
        self._closed = True
        loop, self._loop = self._loop, None
        await asyncio.get_running_loop().run_in_executor(None, self._native.close)
        if loop is not None and not loop.is_closed():
            self._replies.drain()
            loop.remove_reader(self._replies.fileno())
            loop.remove_reader(self._calls.fileno())

    async def __aenter__(self) -> AsyncClient:
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


class LoopCatalogue(Catalogue):
    """That of an asyncio client. In an event loop, which must not wait here, it asks and returns: the answer is there
    the next time."""

    def __init__(self, client: AsyncClient) -> None:
        super().__init__(client._native, client._layouts)
        self._client = weakref.ref(client)

    def _ask(self) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return super()._ask()
        client = self._client()
        if client is not None:
            client._start(*DISCOVER, self.timeout).add_done_callback(self._take)
        return None

    def _take(self, reply: asyncio.Future[Any]) -> None:
        if not reply.cancelled() and reply.exception() is None:
            self.learn(reply.result())


class AsyncBatch(BaseBatch):
    """Several calls in one message, which is sent when its `async with` ends; that waits for all answers. `b.name(…)`
    and `b["name"](…)` add a call and return a future."""

    def __init__(self, client: AsyncClient) -> None:
        super().__init__(client._native, client._catalogue)
        self._client = client

    def _make_outcome(self) -> asyncio.Future[Any]:
        return self._client._join().create_future()

    async def __aenter__(self) -> AsyncBatch:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            for future in self._outcomes:
                future.set_exception(LocalError("the batch has not been sent: its `with` has ended by an exception"))
                future.exception()  # which nobody has to ask for
            return
        handle = self._native.start(self._client._replies, self._outcomes)
        try:
            await asyncio.gather(*self._outcomes, return_exceptions=True)
        except asyncio.CancelledError:
            handle.cancel()
            raise


class AsyncMethod(BaseMethod):
    """A method of a server, by name. Calling it makes the call, and returns the reply to await."""

    __slots__ = ()

    def __call__(
        self,
        /,
        *args: Any,
        _timeout: float | None = None,
        _to: str = "",
        _within: Context | None = None,
        _idempotent: bool = False,
        _input: Iterable[Any] | AsyncIterable[Any] | None = None,
        **kwargs: Any,
    ) -> Reply:
        """Sends the call, and returns a future of its result, which raises the `Error` of the answer.

        - `_timeout`: seconds until the call raises Timeout (default: the client's `timeout`)
        - `_to`: at a broker, the name of the client that serves the call
        - `_within`: the `Context` of the call that this one is part of; the call is cancelled with that call, and has
          its deadline
        - `_idempotent`: the method may run several times for the call, which by UDP is sent again until it is
          answered
        - `_input`: an asynchronous iterator or generator, or a plain iterable: the stream that the call sends to a
          handler that takes one. A task of this event loop asks it for items, up to 16 more than the server has taken.
          What it raises, the reply raises"""
        reply: Reply = self._target._start(self._name, args, kwargs, _timeout, _to, _within, _idempotent, _input)
        return reply

    async def stream(
        self,
        /,
        *args: Any,
        _timeout: float | None = None,
        _to: str = "",
        _within: Context | None = None,
        _input: Iterable[Any] | AsyncIterable[Any] | None = None,
        _progress: bool | int = False,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """Calls the method, and yields the results of its stream as they arrive. `_timeout`: seconds for the whole
        stream (default: no limit); the client's `timeout` limits the wait for each result. `_progress`: True shows a
        bar of tqdm that counts the results; a number is how many there will be. The other options as of a call. Closing
        the generator cancels the call."""
        client: AsyncClient = self._target
        loop = client._join()
        check_call(args, kwargs, _timeout, _to, _within)
        bar = progress_bar(_progress, self._name)
        queue = client._queue(_input)
        stream = client._native.stream(self._name, args, kwargs, _timeout, _to, _within, queue)
        failures: list[BaseException] = []
        sender = None
        if _input is not None and queue is not None:
            sender = loop.create_task(_send(queue, _input, failures.append))
        try:
            with bar:
                while True:
                    news = loop.create_future()
                    came: Any = stream.poll(client._replies, news)
                    if came is None:
                        await news
                        continue
                    more, item = came
                    if not more:
                        return
                    bar.update()
                    yield item
        except Error:
            if failures:
                raise failures[0] from None
            raise
        finally:
            del stream  # which cancels the call; the traceback of what is raised keeps this frame
            if sender is not None:
                sender.cancel()


class PackingAsyncMethod(AsyncMethod):
    """The same of a client with encoding="packed": params and result are packed where the method takes them so."""

    __slots__ = ()

    def __call__(
        self,
        /,
        *args: Any,
        _timeout: float | None = None,
        _to: str = "",
        _within: Context | None = None,
        _idempotent: bool = False,
        _input: Iterable[Any] | AsyncIterable[Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """As `AsyncMethod`, but returns any future, which is no `Reply`. The first call of a client asks the server for
        the layouts (rpc.discover), which counts for the call's own `_timeout`; others are sent at once."""
        from ._packing import DISCOVER, call_steps

        client: AsyncClient = self._target
        if client._layouts is None or _input is not None or self._name.startswith("rpc."):
            return client._start(self._name, args, kwargs, _timeout, _to, _within, _idempotent, _input)
        check_call(args, kwargs, _timeout, _to, _within, _idempotent)
        loop = client._join()
        deadline = None if _timeout is None else loop.time() + _timeout

        def call(name: str, args: Any, kwargs: Any) -> asyncio.Future[Any]:
            left = None if deadline is None else max(deadline - loop.time(), 0.001)
            if name == DISCOVER[0]:
                return client._learn_layouts(left)
            return client._start(name, args, kwargs, left, _to, _within, _idempotent)

        async def finish(steps: Generator[Step, Any, Any], reply: asyncio.Future[Any]) -> Any:
            try:
                while True:
                    try:
                        result = await reply
                    except Exception as error:
                        step = steps.throw(error)
                    else:
                        step = steps.send(result)
                    reply = call(*step)
            except StopIteration as end:
                return end.value

        steps = call_steps(client._layouts, self._name, args, kwargs)
        try:
            reply = call(*next(steps))
        except Error as error:  # what the server would answer
            reply = loop.create_future()
            reply.set_exception(error)
            return reply
        task = loop.create_task(finish(steps, reply))
        task.add_done_callback(lambda _: reply.cancel())  # one that is cancelled before its first step never awaits it
        return task


def aconnect(
    uri: Endpoints = DEFAULT_URI, *, timeout: float | None = None, wait: float | None = None, **options: Any
) -> AsyncClient:
    """Returns an asyncio client of a server: `async with wirecall.aconnect(uri) as c:`. It connects at `async with`, at
    `connect`, or with its first call. `async with` and `connect` raise ConnectionLost (-32001) when there is no server;
    a call waits for one within its timeout.

    - `uri`: an endpoint such as "tcp://127.0.0.1:8545" (default), "unix:///run/wc.sock" or "http://host/rpc"; or a list
      of endpoints, of which the next is tried when one does not answer
    - `timeout`: seconds until a call raises Timeout (default: 30)
    - `wait`: seconds for which connecting is retried while there is no server, and a call while nobody provides its
      method (default: 0)
    - `options`: the options of a client in docs/options.md

    Raises ValueError for an invalid endpoint or option."""
    return AsyncClient(uri, timeout=timeout, wait=wait, **options)
