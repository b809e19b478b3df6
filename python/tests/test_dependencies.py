"""Parameters that other functions make, what runs around a server's life, and servers within servers."""

import asyncio
import contextlib
import dataclasses
import functools
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest

import wirecall
from wirecall import Depends

events: list[str] = []


@pytest.fixture(autouse=True)
def _no_events():
    events.clear()


class Database:
    def __init__(self, name: str = "real") -> None:
        self.name = name


def database() -> Iterator[Database]:
    events.append("open")
    try:
        yield Database()
    except wirecall.Error as error:
        events.append(f"error {error.code}")
        raise
    finally:
        events.append("close")


Db = Annotated[Database, Depends(database)]


def tenant(tenant: str, db: Db) -> str:
    return f"{db.name}:{tenant}"


Tenant = Annotated[str, Depends(tenant)]


async def session(db: Db) -> AsyncIterator[str]:
    await asyncio.sleep(0)
    events.append("begin")
    yield f"session of {db.name}"
    await asyncio.sleep(0)
    events.append("end")


async def user(session: Annotated[str, Depends(session)]) -> str:
    await asyncio.sleep(0)
    return f"user by {session}"


def call(app: wirecall.Server, method: str, *args: Any, **kwargs: Any) -> Any:
    with app.serving() as uri, wirecall.connect(uri) as c:
        return c[method](*args, **kwargs)


def test_a_dependency_is_made_for_the_call_and_cleaned_up_after_it():
    app = wirecall.Server()

    @app
    def read(key: str, db: Db, times: int = 1) -> str:
        events.append("read")
        return f"{key}@{db.name}" * times

    assert call(app, "read", "a") == "a@real"
    assert events == ["open", "read", "close"]
    assert call(app, "read", "a", 2) == "a@reala@real"
    assert call(app, "read", times=2, key="b") == "b@realb@real"


def test_what_a_dependency_takes_from_the_call_is_named_after_what_the_function_takes():
    app = wirecall.Server()

    @app
    def read(key: str, tenant: Tenant, db: Db) -> list[str]:
        return [key, tenant, db.name]

    @app
    def by_name(tenant: Tenant, key: str = "k", *more: int) -> list[Any]:
        return [key, tenant, list(more)]

    with app.serving() as uri, wirecall.connect(uri) as c:
        assert c.by_name(tenant="acme") == ["k", "real:acme", []]
        events.clear()
        assert c.read("a", "acme") == ["a", "real:acme", "real"]
        assert events == ["open", "close"], "two need it, and share it"
        with pytest.raises(wirecall.InvalidParams, match="tenant"):
            c.read("a")
        with pytest.raises(wirecall.InvalidParams, match="at tenant, expected string"):
            c.read(key="a", tenant=1)
        assert events == ["open", "close"], "nothing is made for a wrong call"
        (method,) = [one for one in c.rpc.discover()["methods"] if one["name"] == "read"]
        assert [one["name"] for one in method["params"]] == ["key", "tenant"]


def test_without_a_cache_each_has_its_own():
    app = wirecall.Server()
    numbers = iter(range(10))

    def number() -> int:
        return next(numbers)

    @app
    def three(
        a: Annotated[int, Depends(number)],
        b: Annotated[int, Depends(number)],
        c: Annotated[int, Depends(number, use_cache=False)],
    ) -> list[int]:
        return [a, b, c]

    assert call(app, "three") == [0, 0, 1]


def test_async_functions_await_theirs():
    app = wirecall.Server()

    @app
    async def who(greeting: str, user: Annotated[str, Depends(user)], db: Db) -> str:
        events.append("who")
        return f"{greeting} {user}, {db.name}"

    assert call(app, "who", "hello") == "hello user by session of real, real"
    assert events == ["open", "begin", "who", "end", "close"]


@pytest.mark.parametrize("blocking", [False, True])
def test_an_error_is_seen_by_what_is_cleaned_up(blocking):
    app = wirecall.Server()

    @app(blocking=blocking)
    def fail(db: Db) -> None:
        raise wirecall.Error(5, "no")

    with pytest.raises(wirecall.Error, match="no"):
        call(app, "fail")
    assert events == ["open", "error 5", "close"]


def test_a_dependency_may_refuse_the_call():
    app = wirecall.Server()

    def admin(token: str) -> str:
        if token != "secret":
            raise wirecall.Forbidden("no")
        return "admin"

    @app
    def drop(table: str, by: Annotated[str, Depends(admin)]) -> str:
        events.append("drop")
        return f"{table} by {by}"

    with app.serving() as uri, wirecall.connect(uri) as c:
        assert c.drop("a", "secret") == "a by admin"
        with pytest.raises(wirecall.Forbidden):
            c.drop(table="a", token="guess")
    assert events == ["drop"]


def test_an_error_that_a_dependency_keeps_to_itself_is_no_result():
    app = wirecall.Server()

    def swallows() -> Iterator[int]:
        with contextlib.suppress(wirecall.Error):
            yield 1

    @app
    def fail(one: Annotated[int, Depends(swallows)]) -> None:
        raise wirecall.Error(5, "no")

    with pytest.raises(wirecall.InternalError):
        call(app, "fail")


def test_a_class_is_a_method_that_has_some():
    app = wirecall.Server()

    @dataclasses.dataclass
    class Point:
        x: int
        name: Annotated[str, Depends(lambda: "p")] = ""

    app.add(Point, name="point")
    assert call(app, "point", 1) == {"x": 1, "name": "p"}


def test_what_a_dependency_raises_is_the_answer_whatever_it_is():
    app = wirecall.Server()

    def exhausted() -> int:
        return next(iter([]))  # type: ignore[call-overload,no-any-return]

    @app
    def plain(one: Annotated[int, Depends(exhausted)]) -> int:
        return one

    @app
    async def asynchronous(one: Annotated[int, Depends(exhausted)]) -> int:
        return one

    with app.serving() as uri, wirecall.connect(uri) as c:
        for method in ["plain", "asynchronous"]:
            with pytest.raises(wirecall.InternalError):
                c[method]()


def test_that_of_a_stream_lasts_until_its_end():
    app = wirecall.Server()

    @app
    def rows(count: int, db: Db) -> Iterator[str]:
        for i in range(count):
            events.append(str(i))
            yield f"{i}@{db.name}"

    @app
    async def later(count: int, session: Annotated[str, Depends(session)]) -> AsyncIterator[int]:
        for i in range(count):
            events.append(str(i))
            yield i

    with app.serving() as uri, wirecall.connect(uri) as c:
        assert list(c.rows.stream(2)) == ["0@real", "1@real"]
        assert list(c.later.stream(1)) == [0]
    assert events == ["open", "0", "1", "close", "open", "begin", "0", "end", "close"]


def test_a_dependency_is_given_the_context():
    app = wirecall.Server()

    def method(ctx: wirecall.Context) -> str:
        return ctx.method

    @app
    def one(name: Annotated[str, Depends(method)]) -> str:
        return name

    @app
    def two(ctx: wirecall.Context, x: int, name: Annotated[str, Depends(method)]) -> list[Any]:
        return [x, name, ctx.method]

    with app.serving() as uri, wirecall.connect(uri) as c:
        assert c.one() == "one"
        assert c.two(1) == [1, "two", "two"]


def test_any_callable_makes_one():
    app = wirecall.Server()

    def larger(a: int, b: int) -> int:
        return max(a, b)

    class Page:
        def __init__(self, size: int = 10) -> None:
            self.size = size

    class Adds:
        def __call__(self, offset: int = 1) -> int:
            return offset + 1

    @app
    def page(
        page: Annotated[Page, Depends()],
        adds: Annotated[int, Depends(Adds())],
        partial: Annotated[int, Depends(functools.partial(larger, 3, 4))],
        *rest: int,
        **more: int,
    ) -> list[Any]:
        return [page.size, adds, partial, list(rest), more]

    with app.serving() as uri, wirecall.connect(uri) as c:
        assert c.page() == [10, 2, 4, [], {}]
        assert c.page(5, 6) == [10, 2, 4, [5, 6], {}]
        assert c.page(size=3, offset=4, x=7) == [3, 5, 4, [], {"x": 7}]


def test_no_caller_gives_what_a_dependency_makes():
    app = wirecall.Server()

    def who() -> str:
        return "nobody"

    @app
    def by_name(*, user: Annotated[str, Depends(who)], **more: Any) -> list[Any]:
        return [user, more]

    @app
    async def by_position(user: Annotated[str, Depends(who)], **more: Any) -> list[Any]:
        return [user, more]

    def by_default(x: int, user: str = Depends(who)) -> str:  # type: ignore[assignment]
        return user

    def batched(x: list[int], user: Annotated[list[str], Depends(who)]) -> list[str]:
        return user

    with app.serving() as uri, wirecall.connect(uri) as c:
        for method in ["by_name", "by_position"]:
            assert c[method](x=1) == ["nobody", {"x": 1}]
            with pytest.raises(wirecall.InvalidParams, match="at user, expected nothing"):
                c[method](user="admin")
    with pytest.raises(TypeError, match=r"user: Annotated\[…, Depends\(who\)\]"):
        app.add(by_default)
    with pytest.raises(TypeError, match="a batched function has no dependencies"):
        app.add(batched, batch=2)
    with pytest.raises(TypeError, match="a cached function has no dependencies"):
        app.add(by_position, name="cached", cache=10)


def test_parameters_of_dependencies_come_in_reading_order():
    app = wirecall.Server()

    def a(x: int) -> int:
        return x

    def b(y: int) -> int:
        return 10 * y

    @app
    def both(p: Annotated[int, Depends(a)], q: Annotated[int, Depends(b)]) -> list[int]:
        return [p, q]

    assert call(app, "both", 1, 2) == [1, 20]


def test_what_blocks_is_plain_whatever_it_wraps():
    app = wirecall.Server()

    async def later(x: int, db: Db) -> str:
        await asyncio.sleep(0)
        return f"{x}@{db.name}"

    @functools.wraps(later)
    def at_once(*args: Any, **kwargs: Any) -> str:
        return asyncio.run(later(*args, **kwargs))

    app.add(at_once, name="later", blocking=True)
    assert call(app, "later", 1) == "1@real"


def test_clients_provide_functions_that_have_some():
    def read(key: str, db: Db) -> str:
        return f"{key}@{db.name}"

    with wirecall.Server(broker=True).serving() as uri, wirecall.connect(uri) as worker, wirecall.connect(uri) as c:
        worker.provide("read", read)
        assert c.read("a") == "a@real"
    assert events == ["open", "close"]


def test_what_makes_no_sense_is_refused():
    app = wirecall.Server()

    def needs_async(user: Annotated[str, Depends(user)]) -> str:
        return user

    def is_another(tenant: int, other: Tenant) -> str:
        return other

    def gathers(*dbs: Db) -> None: ...

    def circular(x: int = 0) -> int:
        return x

    circular.__annotations__["x"] = Annotated[int, Depends(circular)]

    def of_any(*values: int) -> int:
        return sum(values)

    def takes_any(total: Annotated[int, Depends(of_any)]) -> int:
        return total

    @contextlib.contextmanager
    def decorated() -> Iterator[int]:
        yield 1

    def takes_decorated(x: Annotated[int, Depends(decorated)]) -> int:
        return x

    def limited(limit: int = 10) -> int:
        return limit

    def another_default(x: Annotated[int, Depends(limited)], limit: int = 20) -> int:
        return x + limit

    def rest(values: int) -> int:
        return values

    def takes_rest(x: Annotated[int, Depends(rest)], *values: int) -> int:
        return x

    for function, words in [
        (takes_decorated, "give the generator itself"),
        (another_default, "another default"),
        (takes_rest, "rename one"),
        (needs_async, "write async def"),
        (is_another, "give one of them another name"),
        (gathers, "no one value"),
        (circular, "depends on itself"),
        (takes_any, "name what it takes"),
    ]:
        with pytest.raises(TypeError, match=words):
            app.add(function)
    with pytest.raises(TypeError, match="give a function"):
        Depends(5)  # type: ignore[arg-type]


def test_tests_override_them():
    app = wirecall.Server()

    @app
    def read(key: str, tenant: Tenant) -> str:
        return f"{key}@{tenant}"

    outer = wirecall.Server()
    outer.mount("inner", app)
    with (
        outer.serving(overrides={database: lambda: Database("fake")}) as uri,
        wirecall.connect(uri) as c,
    ):
        assert c.inner.read(key="a", tenant="acme") == "a@fake:acme"
    assert events == []
    with app.serving(overrides={tenant: lambda: "nobody"}) as uri, wirecall.connect(uri) as c:
        assert c.read(key="a", tenant="acme") == "a@nobody"
    assert call(app, "read", key="a", tenant="acme") == "a@real:acme"
    with pytest.raises(ValueError, match="no dependency of a method"), app.serving(overrides={print: print}):
        pass

    async def later() -> str:
        return "later"

    def takes_more(more: int) -> str:
        return str(more)

    def depends_on_it(before: Tenant) -> str:
        return before

    for function, words in [(later, "is async"), (takes_more, "takes more"), (depends_on_it, "what it replaces")]:
        with pytest.raises(TypeError, match=words), app.serving(overrides={tenant: function}):
            pass


def test_overrides_end_with_their_own_server():
    inner, one, two = wirecall.Server(), wirecall.Server(), wirecall.Server()

    @inner
    def name(db: Db) -> str:
        return db.name

    one.mount("x", inner)
    two.mount("x", inner)
    first = one.serving(overrides={database: lambda: Database("one")})
    second = two.serving(overrides={database: lambda: Database("two")})
    first.__enter__()
    with wirecall.connect(second.__enter__()) as c:
        assert c.x.name() == "two"
        first.__exit__(None, None, None)
        assert c.x.name() == "two"
    second.__exit__(None, None, None)
    assert call(inner, "name") == "real"


def test_servers_are_mounted_with_all_that_they_have():
    inner = wirecall.Server()

    @inner
    async def later(x: int) -> int:
        return x

    @inner(batch=2)
    def batched(numbers: list[int]) -> list[int]:
        return numbers

    @inner.subscription("watch", unsubscribe="unwatch", notification="seen")
    async def watch() -> AsyncIterator[int]:
        yield 1

    outer = wirecall.Server()
    outer.mount("a", inner)
    outer.mount("b", inner)
    with outer.serving() as uri, wirecall.connect(uri) as c:
        assert (c.a.later(1), c.b.later(2), c.a.batched(3)) == (1, 2, 3)
        names = {one["name"] for one in c.rpc.discover()["methods"]}
        assert {"a.later", "b.batched", "a.watch", "b.unwatch"} <= names
    with pytest.raises(wirecall.Conflict):
        outer.mount("a", inner)
    for cycle in [outer, inner]:
        with pytest.raises(ValueError, match="in itself"):
            cycle.mount("c", outer)
    with pytest.raises(TypeError, match="mount takes"):
        outer.mount("/math", inner)
    guarded = wirecall.Server()
    guarded.middleware(by_generator)
    with pytest.raises(TypeError, match="a batched function runs for many"):
        guarded.mount("a", inner)
    assert guarded._names() == [], "all or nothing"


def by_generator(app: wirecall.Server) -> Iterator[None]:
    events.append("start")
    yield
    events.append("stop")


async def by_async_generator(app: wirecall.Server) -> AsyncIterator[None]:
    await asyncio.sleep(0)
    events.append("start")
    yield
    await asyncio.sleep(0)
    events.append("stop")


@pytest.mark.parametrize(
    "lifespan",
    [
        by_generator,
        by_async_generator,
        contextlib.contextmanager(by_generator),
        contextlib.asynccontextmanager(by_async_generator),
    ],
)
def test_a_lifespan_is_around_all_calls(lifespan):
    app = wirecall.Server(lifespan=lifespan)

    @app
    def call_it() -> None:
        events.append("call")

    for _ in range(2):
        call(app, "call_it")
    assert events == ["start", "call", "stop"] * 2
    events.clear()
    outer = wirecall.Server(lifespan=by_generator)
    outer.mount("inner", app)
    outer.mount("again", app)
    call(outer, "inner.call_it")
    assert events == ["start", "start", "call", "stop", "stop"]


def test_a_lifespan_ends_after_what_still_ran():
    begun = threading.Event()

    def resource() -> Iterator[int]:
        yield 1
        events.append("cleaned")

    app = wirecall.Server(lifespan=by_async_generator, drain_ms=1)

    @app
    async def wait(one: Annotated[int, Depends(resource)]) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            events.append("ended")

    with app.serving() as uri, wirecall.connect(uri) as c:
        c.notify("wait")
        begun.wait()
    assert events == ["start", "ended", "stop"]


def test_what_a_lifespan_raises_is_raised_where_the_server_is_run():
    def fails(app: wirecall.Server) -> Iterator[None]:
        raise RuntimeError("no database")
        yield

    def fails_at_the_end(app: wirecall.Server) -> Iterator[None]:
        yield
        raise RuntimeError("not closed")

    for lifespan, words in [(fails, "no database"), (fails_at_the_end, "not closed"), (lambda app: 5, "lifespan has")]:
        app = wirecall.Server(lifespan=lifespan)
        with pytest.raises((RuntimeError, TypeError), match=words), app.serving():
            pass

    failing = [True]

    def fails_at_first(app: wirecall.Server) -> Iterator[None]:
        if failing.pop():
            with socket.create_connection(("127.0.0.1", int(uri.rpartition(":")[2]))) as early:
                early.sendall(b'{"jsonrpc":"2.0","method":"five"}')
            raise RuntimeError("no database")
        yield

    app = wirecall.Server(lifespan=fails_at_first)

    @app
    def five() -> int:
        events.append("five")
        return 5

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        uri = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(RuntimeError), app.serving(uri):
        pass
    assert events == [], "no call is served without the lifespan"
    failing.append(False)
    with app.serving(uri), wirecall.connect(uri) as c:
        assert c.five() == 5
