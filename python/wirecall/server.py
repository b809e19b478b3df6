"""Server: Python functions become JSON-RPC methods on a port.

app = wirecall.Server("calc")

@app
def sum(a: int, b: int) -> int:
    "Add two integers"
    return a + b

app.run()
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from . import _adding, _bootstrap, _command_line, _native, _restart, _service_manager
from ._bootstrap import check_endpoint

if TYPE_CHECKING:
    from typing import Unpack

    from ._access import Allow, Allows
    from ._asyncio_thread import AsyncioThread
    from ._batching import BatchOptions
    from ._middleware import Middleware
    from ._workers import Turn, Workers

F = TypeVar("F", bound=Callable[..., Any])
# A context manager, or a generator that becomes one.
Lifespan = Callable[["Server"], Any]


class Server:
    """The methods of one program, and the port that serves them.

    `options` are those of docs/options.md, by the same names: `Server("calc", limits={"batch": 10})`.
    Methods are added before `run`. Plain functions run on the loop's thread. While one takes longer than
    `takeover_ms` (20 ms), another thread serves further calls, so plain functions may then run concurrently.
    `async def` runs on one asyncio thread, `blocking=True` on a thread pool.
    `check_results`: results, and a stream's items, are checked against the declared type. One of another type fails
    with internal error (-32603), and the log says where it differs and what was expected.
    `lifespan`: a function of the server that is a context manager, asynchronous or not, or a generator: what stands
    before its `yield` runs before the first call is served, in each worker, and the rest once the last has ended.
    """

    def __init__(
        self,
        name: str = "wirecall",
        *,
        broker: bool = False,
        check_results: bool = True,
        lifespan: Lifespan | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(name, str):
            cure = 'make one, app = wirecall.Server("calc"), and decorate with @app' if callable(name) else "a string"
            what = "wirecall.Server is no decorator" if callable(name) else f"the name of a server is not {name!r}"
            raise TypeError(f"wirecall: {what}: {cure}")
        for word in _SAID_OF_RUN.keys() & options.keys():
            raise TypeError(f"wirecall: {word} is no option of a server: {_SAID_OF_RUN[word]}")
        self.name = name
        self._check_results = check_results
        self._own_options = options
        self._options = _command_line.current.over(options)
        if self._options.get("log_format") == "json":
            from . import _json_log

            _json_log.take_over()
        self._broker = broker
        from ._dependencies import Overrides

        self._overrides = Overrides()
        self._middleware: list[Middleware] = []
        # Each describes one of its functions for another server, with a prefix, and returns what adds it there.
        self._added: list[Callable[[Server, str], Callable[[], None]]] = []
        self._lifespans: list[tuple[Lifespan, Server]] = [] if lifespan is None else [(lifespan, self)]
        self._methods: dict[str, tuple[Any, ...]] = {}  # by name: what the native server is given again
        self._batched: dict[str, tuple[Any, ...]] = {}
        self._subscriptions: dict[str, tuple[Any, ...]] = {}
        self._allowed: dict[str, Allows] = {}
        self._made: _native.Server | None = self._make_native()
        self._workers: Workers | None = None  # while they run
        self._is_to_stop = False  # since the last run has ended
        self._asynchronous = False
        self._listening: list[str] = []
        self._unsubscribing: dict[str, list[Allows | None]] = {}
        self._ended = threading.Event()
        self._ended.set()
        _bootstrap.at_exit(self._end)

    def _make_native(self) -> _native.Server:
        predecessor = _restart.predecessor()
        takes_over = predecessor is not None and predecessor.is_served()
        native = _native.Server(json.dumps({"name": self.name, **self._options}), self._broker, takes_over)
        for told in self._methods.values():
            native.add(*told)
        for told in self._batched.values():
            native.add_batched(*told)
        for told in self._subscriptions.values():
            native.add_subscription(*told)
        for allowed in self._allowed.items():
            native.allow(*allowed)
        return native

    @property
    def _engine(self) -> _native.Server:
        """The native server. One that could not be made before is tried again, since its files may be good by now; else
        ValueError."""
        if self._workers is not None:
            raise RuntimeError("wirecall: the server runs in its workers; it can be used here when run has returned")
        if self._made is None:
            self._made = self._make_native()
        return self._made

    @overload
    def __call__(self, function: F, /) -> F: ...
    @overload
    def __call__(
        self,
        /,
        *,
        name: str | None = None,
        blocking: bool = False,
        safe: bool = False,
        cache: int | Mapping[str, float] | None = None,
        check_results: bool | None = None,
        allow: Allow | None = None,
        **batching: Unpack[BatchOptions],
    ) -> Callable[[F], F]: ...
    def __call__(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        blocking: bool = False,
        safe: bool = False,
        cache: int | Mapping[str, float] | None = None,
        check_results: bool | None = None,
        allow: Allow | None = None,
        **batching: Unpack[BatchOptions],
    ) -> Any:
        """Adds a function as a method, as a decorator: `@app`, `@app(name="calc.sum", blocking=True)`.

        - `name`: the method's name (default: the function's)
        - `blocking`: the function runs on a pool of threads (`blocking_threads`, 16), several calls at once, so it must
          be thread-safe; for functions that wait for files, locks or other programs, or compute for long
        - `safe`: the method changes nothing, so HTTP GET may call it as well
        - `cache`: the function's result depends on its arguments alone, and up to so many results are kept; or a dict
          with `entries`, `bytes` (16 MiB) and `ttl`, the seconds that a result is used (no end). Errors are not kept;
          of equal calls in progress the function runs once. Each worker has a cache of its own. Such a function takes
          no Context
        - `check_results`: overrides the server's
        - `allow`: the names of the principals that may call it, of those whose grants cover it: `allow="admin"`,
          `allow=["alice", "bob"]`, or a plain function that is given a name and returns True or False. For all others
          there is no such method. `run` and `listen` raise ValueError where nobody has to authenticate
        - `batch`: the function is called once for up to so many calls, whose arguments it takes as lists or stacked
          arrays, and returns as many results; see `add`
        """
        if function is None:
            return lambda decorated: self.add(
                decorated, name=name, blocking=blocking, safe=safe, cache=cache, check_results=check_results,
                allow=allow, **batching,
            )  # fmt: skip
        return self.add(function)

    def add(
        self,
        function: F,
        *,
        name: str | None = None,
        blocking: bool = False,
        safe: bool = False,
        cache: int | Mapping[str, float] | None = None,
        check_results: bool | None = None,
        allow: Allow | None = None,
        **batching: Unpack[BatchOptions],
    ) -> F:
        """Adds a function, bound method or other callable as the method `name`, and returns it. Raises `Conflict` for a
        name that is taken. The options are those of the decorator, and of a batched function (docs/batching.md):

        - `batch`: the most calls in a batch
        - `wait_ms`: milliseconds that the first call waits for others while the function is free; 0 for those that
          have come at the same time, "auto" to find out whether it pays to wait for those that have been answered
        - `max_concurrent_batches`: how many batches run at once
        - `batch_queue`: the most calls that wait (default: 16 times `batch`); a further one is answered -32005
        - `batch_priority`: a function of a call's Context that returns a number: greater ones leave first, and a call
          that finds no place to wait takes that of a lower one
        - `batch_bytes`: the most bytes of params in a batch
        - `batch_queue_bytes`: the most bytes of params that wait (default: 4 times `batch_bytes`)
        - `batch_rows`: the most rows in a batch; a call has as many as its first array or list has elements
        - `pad`: arrays of different lengths go together, filled up with zeros to the longest, or to the smallest of
          `buckets` that is long enough; a parameter `lengths` is given how long each was, or, of several arrays,
          parameters named as in `tokens_lengths`
        - `stream`: True for a plain generator that yields a list at each step, whose elements go to the calls' streams,
          as those of an async generator do; without it, what a plain generator yields are the calls' results
        """
        if isinstance(function, str):
            raise TypeError(f'wirecall: {function!r} is no function: write @app(name="{function}")')
        called = name if name is not None else getattr(function, "__name__", None) or _name_of(function)
        checks = self._check_results if check_results is None else check_results
        allows = self._allows(allow, called)
        if batching:
            if cache is not None or blocking:
                raise TypeError(
                    f"wirecall: {called}: a batched function is neither cached nor blocking: it has a thread"
                )
            _adding.batched_method(self, (), function, called, safe, checks, allows, batching)()
        else:
            _adding.method(self, self._overrides, (), function, called, blocking, safe, cache, checks, allows)()
        return function

    def subscription(
        self, subscribe: str, /, *, unsubscribe: str, notification: str, allow: Allow | None = None
    ) -> Callable[[F], F]:
        """Adds an async generator as a subscription, as a decorator, in the form of Ethereum's API:
        `@app.subscription("eth_subscribe", unsubscribe="eth_unsubscribe", notification="eth_subscription")`.

        A call of `subscribe` with the generator's arguments is answered with an id, a string; each value that the
        generator then yields is the notification `notification` with the params {"subscription": id, "result": value}.
        An error that it raises before it first awaits or yields is the answer to the call; a later one is sent as a
        last notification, with "error" in place of "result". A call of `unsubscribe`, which several subscriptions may
        share, cancels the generator, and so does the end of the connection. The generator is suspended while its caller
        does not read. `allow`: who may subscribe, as for a method.
        """

        def add(function: F) -> F:
            names = (subscribe, unsubscribe, notification)
            _adding.subscription(
                self, self._overrides, (), function, names, self._check_results, self._allows(allow, subscribe)
            )()
            return function

        return add

    def _allows(self, allow: Allow | None, called: str) -> Allows | None:
        if allow is None:
            return None
        if not self._ended.is_set():
            raise RuntimeError(f"wirecall: {called}: who may call a method is said before the server runs")
        from ._access import allows_of

        return allows_of(allow, called)

    def _allow(self, called: str, allows: Allows | None) -> None:
        if allows is not None:
            self._engine.allow(called, allows)
            self._allowed[called] = allows

    def _allow_unsubscribe(self, called: str, allows: Allows | None) -> None:
        """Who may call none of the subscriptions that it ends may not call it."""
        of_all = self._unsubscribing.setdefault(called, [])
        of_all.append(allows)
        if allows is not None and sum(one is not None for one in of_all) == 1:
            self._engine.allow(called, lambda name: any(one is None or one(name) for one in of_all))

    def add_methods(self, instance: object, prefix: str = "") -> None:
        """Adds all methods of an object whose names do not begin with an underscore, as `prefix` + name."""
        for name in dir(type(instance)):
            member = getattr(type(instance), name)
            if not name.startswith("_") and callable(member):
                self.add(getattr(instance, name), name=prefix + name)

    def middleware(self, function: Middleware) -> Middleware:
        """Adds middleware, as a decorator: a generator that takes a `MethodCall`, and yields once where the method
        runs. What the method raises is raised at the `yield`; its result is `call.result`, which may be replaced.
        Where the generator returns without yielding, the method is not called, and `call.result` is the answer.

            @app.middleware
            def timed(call):
                begun = time.perf_counter()
                yield
                print(call.method, time.perf_counter() - begun)

        It runs where the method does, around all methods, streams and subscriptions that are added later; the one that
        is added first is the outermost. An `async def` generator runs around async functions alone, and a plain one is
        refused then. Raises TypeError when there are methods already."""
        from ._middleware import check_middleware

        if self._added:
            raise TypeError("wirecall: middleware is around the methods that are added after it: add it first")
        self._middleware.append(check_middleware(function))
        return function

    def mount(self, prefix: str, server: Server) -> None:
        """Adds all methods and subscriptions that another server has now, with `prefix` and a dot before their names:
        `app.mount("math", calc)` serves `math.sum`. Their dependencies and middleware go with them, within this one's
        middleware; the other one's lifespan goes with this one's. Its options, such as a principals_file, do not.
        Raises `Conflict` for a name that is taken."""
        if not isinstance(server, Server) or not isinstance(prefix, str) or "/" in prefix:
            raise TypeError('wirecall: mount takes a prefix and a server, as in app.mount("math", calc)')
        if any(one is self._overrides for one in server._overrides.all()):
            raise ValueError("wirecall: a server cannot be mounted in itself")
        if taken := [name for name in server._names() if f"{prefix}.{name}" in self._names()]:
            from .errors import Conflict

            raise Conflict(f"{prefix}.{taken[0]} is taken")
        for add in [describe(self, f"{prefix}.") for describe in server._added]:
            add()
        self._overrides.mounted.append(server._overrides)
        self._lifespans.extend(one for one in server._lifespans if one not in self._lifespans)

    def _names(self) -> list[str]:
        return [*self._methods, *self._batched, *self._subscriptions]

    def listen(self, uri: str | None = None, *, insecure: bool = False) -> str:
        """Binds an endpoint now, so that peers can connect; `run` serves them. Returns the endpoint with its actual
        port, as for `listen("tcp://127.0.0.1:0")`. Under `wirecall serve FILE.py` the endpoints of the command line
        replace those of the program.

        - `uri`: the endpoint; without it, all endpoints of the server's options (`listen`, or `host` and `port`), of
          which it returns the first
        - `insecure`: permits an endpoint that other machines can reach although nobody has to authenticate

        Raises OSError, whose text has the cause and a fix, when the endpoint is not available; ValueError for an
        endpoint that other machines can reach, without `insecure` and without a `principals_file`."""
        if uri is not None:
            check_endpoint(uri, "listen takes where to listen")
        given = self._given_endpoints()
        if given is not None and self._listening:
            return self._listening[0]
        uris = given if given is not None else self._engine.endpoints() if uri is None else [uri]
        self._permit(uris, insecure)
        first, *_ = [self._listen_at(one) for one in uris]
        return first

    def _listen_at(self, uri: str) -> str:
        if (predecessor := _restart.predecessor()) is not None:
            predecessor.give_sockets(self._engine)
        actual: str = self._engine.listen(uri)
        self._listening.append(actual)
        return actual

    def _given_endpoints(self) -> list[str] | None:
        """Where the command line, or its file, has this server listen; None where it says nothing."""
        given = _command_line.current
        if given.names_another(self):
            return None
        if given.print_config:
            listen = {"listen": given.listen} if given.listen else {}
            print(_native.toml_of_options(json.dumps({"name": self.name, **self._options, **listen})), end="")
            sys.exit(0)
        if given.listen:
            return given.listen
        return self._engine.endpoints() if given.options.keys() & _ENDPOINTS else None

    def _at(self, host: str | None, port: int | None) -> str:
        """The TCP endpoint of these. The command line overrides both; the server's options fill what is missing."""
        said = _command_line.current.options
        host, port = said.get("host", host), said.get("port", port)
        host = self._options.get("host", "127.0.0.1") if host is None else host
        port = self._options.get("port", 8545) if port is None else port
        return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"

    def _permit(self, uris: list[str], insecure: bool) -> None:
        """ValueError for what other machines can reach while nobody has to authenticate, and for methods that only some
        may call where nobody says who they are."""
        for called in self._allowed:
            if not self._options.get("principals_file"):
                raise ValueError(
                    f"wirecall: only some may call {called}, and nobody has to authenticate: name a principals_file"
                )
            for uri in (*self._listening, *uris):
                if uri.lower().startswith(("udp:", "xdp:")):
                    raise ValueError(
                        f"wirecall: only some may call {called}, and a datagram cannot show who sends it: do not "
                        f"listen on {uri}"
                    )
        if insecure or self._options.get("principals_file") or _command_line.current.insecure:
            return
        for uri in uris:
            if not _native.is_local(uri):
                raise ValueError(
                    f"wirecall: {uri} can be reached from other machines, and nobody has to authenticate; listen on "
                    f"127.0.0.1, name a principals_file, or say {_command_line.current.insecure_hint} if that is "
                    "meant"
                )

    def run(
        self,
        listen: str | list[str] | None = None,
        *,
        host: str | None = None,
        port: int | None = None,
        workers: int = 1,
        quiet: bool = False,
        insecure: bool = False,
    ) -> None:
        """Serves until `stop`, Ctrl-C or SIGTERM; then finishes the calls in progress, which have `drain_ms` for that.

        - `listen`: an endpoint as a URI, or a list of endpoints (default: those that `listen` has bound, else those of
          the server's options)
        - `host`, `port`: the same as one TCP endpoint; the server's options have the part that is not given
        - `workers`: the number of processes, forked from this one, that share the endpoints (default: 1). A process
          that crashes is replaced. Each has its own copy of the program's state at the time of `run`
        - `quiet`: prints no line with the endpoints
        - `insecure`: as for `listen`

        On the main thread Ctrl-C and SIGTERM end it; on another thread only `stop` does. If an endpoint is not
        available, the program exits with status 3 and one line that says why; on another thread OSError is raised."""
        if listen is not None and (host is not None or port is not None):
            raise TypeError("wirecall: run takes an endpoint, or a host and a port, not both")
        if host is not None or port is not None:
            listen = self._at(host, port)
        uris = list(listen) if isinstance(listen, list | tuple) else [] if listen is None else [listen]
        for uri in uris:
            check_endpoint(uri, "run takes where to listen")
        if workers < 1:
            raise ValueError(f"wirecall: workers={workers}: give the number of processes, at least 1")
        given = _command_line.current
        if given.runs_another(self):
            return None
        workers = given.workers or workers
        given.has_run = True
        given_endpoints = self._given_endpoints()
        if given_endpoints is not None and self._listening:
            uris = []
        elif given_endpoints is not None and (given.says_where() or (host is None and port is None)):
            uris = given_endpoints
        if not uris and not self._listening:
            uris = self._engine.endpoints()
        self._permit(uris, insecure)  # all of them before the first one listens
        if workers > 1:
            return self._run_workers(uris, workers, quiet)
        with _ending_by_a_line():
            for uri in uris:
                self._listen_at(uri)
        with self._handling_sighup(), self._handling_sigusr2():
            if not quiet:
                self._greet(self._listening)
            return self._serve()

    def _serve(self, began: Callable[[], None] = lambda: None, begin: Callable[[], None] | None = None) -> None:
        """Calls `began` when the first call may be served, and then `begin`, which may wait."""
        self._ended.clear()
        runs = False
        try:
            with self._asyncio_thread() as thread, self._within_lifespans(thread):
                runs = True
                began()
                # Elsewhere than in the main thread it is a part of the program, whose signals they are.
                in_main_thread = _in_main_thread()
                if begin is not None:
                    begin()
                elif in_main_thread:
                    if (predecessor := _restart.predecessor()) is not None:
                        predecessor.replace(self._engine, self._broker)
                    _service_manager.notify_ready()
                self._engine.run(in_main_thread)
        finally:
            if not runs:
                self._made = None  # with which it listens no more
            self._listening.clear()  # with its end it listens no more
            self._is_to_stop = False
            self._ended.set()

    def _handling_sigusr2(self) -> contextlib.AbstractContextManager[None]:
        if not _in_main_thread():
            return contextlib.nullcontext()
        return _restart.OnSigusr2(self._engine, self._broker)

    @contextlib.contextmanager
    def _asyncio_thread(self) -> Iterator[AsyncioThread | None]:
        if not self._asynchronous and not self._lifespans:
            yield None
            return
        from ._asyncio_thread import AsyncioThread

        thread = AsyncioThread(self._engine)
        thread.start()
        try:
            yield thread
        finally:
            thread.stop()

    @contextlib.contextmanager
    def _within_lifespans(self, thread: AsyncioThread | None) -> Iterator[None]:
        if thread is None or not self._lifespans:
            yield
            return
        from ._asyncio_thread import entered

        with contextlib.ExitStack() as stack:
            for lifespan, server in self._lifespans:
                stack.enter_context(entered(lifespan, server, thread))
            yield

    def _reloads(self) -> bool:
        """Whether SIGHUP makes it read its files anew, rather than end."""
        if not _in_main_thread():
            return False
        files = self._options.get("principals_file") or self._options.get("tls", {}).get("cert")
        return bool(files) or _command_line.current.read_options is not None

    @contextlib.contextmanager
    def _handling_sighup(self) -> Iterator[None]:
        deferred = _command_line.current.sighup
        if not self._reloads():
            # Before anybody is told that it serves: whoever reads that may send one.
            if deferred is not None and _in_main_thread():
                deferred.release()
            elif deferred is not None:
                deferred.leave_to_program()
            yield
            return
        self._engine.install_sighup(self._read_options, deferred is not None and deferred.is_installed())
        try:
            if deferred is not None and deferred.take():
                signal.raise_signal(signal.SIGHUP)
            yield
        finally:
            self._engine.remove_sighup()
            if deferred is not None:
                deferred.release()

    def _read_options(self) -> tuple[str, str]:
        """The options as JSON, with the command line's file as it is now, and ""; or "", and what is wrong with it."""
        options = self._options
        try:
            if (read := _command_line.current.read_options) is not None:
                options = _command_line.merged(self._own_options, read())
        except ValueError as failure:
            return "", str(failure)
        return json.dumps({"name": self.name, **options}), ""

    def _run_workers(self, uris: list[str], count: int, quiet: bool) -> None:
        from ._workers import Workers

        if self._broker:
            raise ValueError("wirecall: a broker is one process: its clients have to reach each other")
        if self._engine.made_certificate():
            raise ValueError(
                "wirecall: with tls.self_signed each worker would make a certificate of its own: give tls.cert and "
                "tls.key"
            )
        if self._listening:
            raise ValueError("wirecall: workers listen where run is told to: run(listen=…, workers=…) without listen")

        self._engine.narrow()  # what this raises, each worker would
        reloads = self._reloads()
        deferred = _command_line.current.sighup
        if deferred is not None and not reloads:
            deferred.release()

        def serve(listeners: list[_native.Listeners], number: int, turn: Turn) -> None:
            anew, why = self._read_options() if reloads else ("", "")
            if anew and not why:  # which the workers have that run already
                self._options = {name: value for name, value in json.loads(anew).items() if name != "name"}
            self._workers = None
            self._made = self._make_native()
            with self._handling_sighup():
                if reloads:
                    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})  # held until here
                self._serve(begin=lambda: turn.begin(self._engine, listeners, number))

        with _ending_by_a_line():
            owns = deferred is not None and deferred.is_installed()
            workers = Workers(uris, count, serve, sighup=reloads, owns_sighup=owns)
        if not quiet:
            self._greet(workers.uris, count)
        if deferred is not None and deferred.take() and not deferred.is_installed():
            signal.raise_signal(signal.SIGHUP)  # else done: each worker reads the files anew
        self._made = None  # children must not inherit its descriptors and threads
        self._workers = workers
        try:
            if self._is_to_stop:
                workers.stop()
            workers.run()
        finally:
            self._workers = None
            self._is_to_stop = False
            if deferred is not None:
                deferred.release()
            try:
                self._made = self._make_native()
            except ValueError as failure:  # a file that its options name is not what it was
                import logging

                logging.getLogger("wirecall").error("the server has ended, and cannot run again: %s", failure)

    def stop(self) -> None:
        """Makes `run` return, from any thread. Called before `run`, it ends the next one at once."""
        self._is_to_stop = True
        if self._workers is not None:
            self._workers.stop()
        elif self._made is not None:
            self._made.stop()

    def _end(self) -> None:
        """Ends the server with the interpreter, and waits 0.5 s at most for a handler that does not return."""
        if not self._ended.is_set() and self._made is not None:
            self._made.stop_at_once()
            self._ended.wait(0.5)

    @contextlib.contextmanager
    def serving(
        self,
        listen: str = "tcp://127.0.0.1:0",
        *,
        insecure: bool = False,
        overrides: Mapping[Callable[..., Any], Callable[..., Any]] | None = None,
    ) -> Iterator[str]:
        """Serves in the background, for tests and notebooks: `with app.serving() as uri: …`. `insecure` as for
        `listen`. `overrides`: functions that stand for dependencies meanwhile, by these: `{database: FakeDatabase}`."""
        check_endpoint(listen, "serving takes where to listen")
        self._permit([listen], insecure)
        with self._overrides.replacing(overrides or {}):
            uri = self._listen_at(listen)
            began = threading.Event()
            failures: list[BaseException] = []

            def serve() -> None:
                try:
                    self._serve(began.set)
                except BaseException as failure:
                    failures.append(failure)
                finally:
                    began.set()

            thread = threading.Thread(target=serve, name="wirecall-server", daemon=True)
            thread.start()
            began.wait()
            try:
                if not failures:
                    yield uri
            finally:
                if not self._ended.is_set():
                    self.stop()
                thread.join()
            if failures:
                raise failures[0]

    def handle(self, text: str) -> str:
        """Serves one message or batch without a port: takes the JSON text of a request, returns that of the response,
        empty for a notification. Async methods and streams need `run`."""
        answer: str = self._engine.handle(text)
        return answer

    def __repr__(self) -> str:
        uris = self._listening if self._workers is None else self._workers.uris
        where = ", ".join(uris) or "not listening"
        count = len(self._names())
        return f"<wirecall.{type(self).__name__} {self.name!r}, {count} method{'' if count == 1 else 's'}, {where}>"

    def _repr_html_(self) -> str:
        from ._catalogue import descriptions_in
        from ._html import table_of

        with contextlib.suppress(RuntimeError, ValueError):  # it is not made, or serves in its workers
            answer = json.loads(self.handle('{"jsonrpc":"2.0","method":"rpc.discover","id":1}'))
            return table_of(repr(self), descriptions_in(answer.get("result")))
        return table_of(repr(self))

    def _greet(self, uris: list[str], workers: int = 1) -> None:
        from . import __version__

        count = len(self._names())
        if self._engine.log_listening(__version__, ",".join(uris), count, workers):
            return
        how = f", by {workers} workers" if workers > 1 else ""
        print(
            f"{self.name}: {count} method{'' if count == 1 else 's'} at {', '.join(uris)}{how}  (Ctrl-C to stop)",
            file=sys.stderr,
            flush=True,
        )
        if made := self._engine.made_certificate():
            print(f'its certificate: {made}  (clients: tls={{"pin": …}}, or --tls-pin)', file=sys.stderr, flush=True)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def _ending_by_a_line() -> Iterator[None]:
    """An OSError ends the program with one line: a traceback would be about this file. In another thread than the main
    one it is raised, since to exit there ends that thread alone, silently."""
    try:
        yield
    except OSError as failure:
        if not _in_main_thread():
            raise
        print(f"wirecall: {failure}", file=sys.stderr)
        sys.exit(3)


_ENDPOINTS = {"listen", "host", "port"}
# What is none of the server's options, and where it is said.
_SAID_OF_RUN = {
    "insecure": "say where it listens that other machines may connect, app.run(insecure=True)",
    "workers": "say how many processes where it runs, app.run(workers=4)",
    "reload": "say it on the command line, wirecall serve FILE.py --reload",
    "quiet": "say where it runs that it is not to tell where it listens, app.run(quiet=True)",
}


def _name_of(function: Any) -> str:
    inner = getattr(function, "func", None)  # a partial
    name = getattr(inner, "__name__", None)
    if name is None:
        raise TypeError(f'wirecall: {function!r} has no name: give one, as app(name="…") or app.add(…, name="…")')
    return str(name)
