"""Dependencies of a function: parameters that are made for each call by other functions, as in FastAPI. A function that
has some becomes one that takes what it and they take from the call, and makes them before it runs."""

from __future__ import annotations

import contextlib
import functools
import inspect
import typing
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

from . import _methods
from .errors import InvalidParams


class Overrides:
    """Of a server: by which functions the dependencies of its methods are made."""

    def __init__(self) -> None:
        self.mounted: list[Overrides] = []  # of servers that are mounted
        self._known: dict[Callable[..., Any], bool] = {}  # and whether a plain function needs it
        self._layers: list[dict[Callable[..., Any], Dependency]] = []  # the last one counts

    def know(self, method: Dependency) -> None:
        for one in method.all():
            if one is not method:
                self._known[one.function] = self._known.get(one.function, False) or not method.is_async

    def of(self, dependency: Dependency) -> Dependency:
        for layer in reversed(self._layers):
            replaced: Dependency | None = layer.get(dependency.function)
            if replaced is not None:
                return replaced
        return dependency

    @contextlib.contextmanager
    def replacing(self, functions: Mapping[Callable[..., Any], Callable[..., Any]]) -> Iterator[None]:
        """Functions stand for others, by those that they replace."""
        made = {replaced: self._override(replaced, function) for replaced, function in functions.items()}
        everybody = list(self.all())
        for one in everybody:
            one._layers.append(made)
        try:
            yield
        finally:
            for one in everybody:
                one._layers = [layer for layer in one._layers if layer is not made]

    def _override(self, replaced: Callable[..., Any], function: Callable[..., Any]) -> Dependency:
        name = f"the override of {_name_of(replaced)}"
        uses = [one._known[replaced] for one in self.all() if replaced in one._known]
        if not uses:
            raise ValueError(f"wirecall: {_name_of(replaced)} is no dependency of a method of this server")
        made = Dependency(function, name)
        before = {taken.parameter.name for one in Dependency(replaced, name).all() for taken in one.takes}
        for one in made.all():
            if one.is_async and any(uses):
                raise TypeError(f"wirecall: {name} is async, and plain functions need it")
            if one.function is replaced:
                raise TypeError(f"wirecall: {name} depends on what it replaces")
            for parameter, dependency, _ in one.takes:
                has_default = parameter.default is not parameter.empty
                if dependency is None and not has_default and parameter.name not in before:
                    raise TypeError(f"wirecall: {name} takes {parameter.name}, which that one does not")
        return made

    def all(self) -> Iterator[Overrides]:
        """Its own, and those of all servers that are mounted."""
        yield self
        for one in self.mounted:
            yield from one.all()


class Depends:
    """In a hint: the parameter is what `dependency` returns, which is called for each call of the method. A generator
    yields it, and goes on when the method has returned, or its stream has ended. `dependency` has parameters of its
    own: dependencies, the Context, and what the call gives, which the method's document then names. `use_cache=False`:
    not shared with others of the same call that need the same.

        def database() -> Iterator[Database]:
            with Database() as one:
                yield one

        @app
        def user(id: int, db: Annotated[Database, wirecall.Depends(database)]) -> User: ...
    """

    def __init__(self, dependency: Callable[..., Any] | None = None, *, use_cache: bool = True) -> None:
        if dependency is not None and not callable(dependency):
            raise TypeError(f"wirecall: Depends({dependency!r}): give a function")
        self.dependency = dependency
        self.use_cache = use_cache

    def __repr__(self) -> str:
        return f"Depends({getattr(self.dependency, '__name__', self.dependency)})"


class Taken(typing.NamedTuple):
    """A parameter of a function, and whence its value comes: a dependency, the call's Context, or else the call."""

    parameter: inspect.Parameter
    dependency: Dependency | None
    is_context: bool


class Dependency:
    """A function that makes a parameter, or the method itself: what it takes."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        *,
        within: tuple[Any, ...] = (),
        shared: bool = True,
        blocking: bool = False,
    ) -> None:
        if any(one is function for one in within):
            raise TypeError(f"wirecall: {name}: {_name_of(function)} depends on itself")
        self.function = function
        self.shared = shared
        self.runs_on = _methods._runs_on(function, blocking)
        if within and self.runs_on == _methods.LOOP and _is_decorated_generator(function):
            raise TypeError(
                f"wirecall: {name}: {_name_of(function)} is a generator with a decorator, such as contextmanager: "
                "give the generator itself"
            )
        self.takes = [self._taken(one, name, within) for one in self._parameters(name)]

    def _parameters(self, name: str) -> list[inspect.Parameter]:
        hints = _methods._hints(self.function, name)
        return [
            one.replace(annotation=hints.get(one.name, Any))
            for one in _methods._signature(self.function, name).parameters.values()
        ]

    def _taken(self, parameter: inspect.Parameter, name: str, within: tuple[Any, ...]) -> Taken:
        depends = _depends_of(parameter.annotation)
        if depends is None:
            return Taken(parameter, None, _methods._is_context(parameter.annotation))
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"wirecall: {name}: *{parameter.name} is no one value that a function could make")
        made_by = depends.dependency
        if made_by is None:
            made_by = typing.get_args(parameter.annotation)[0]
        made = Dependency(made_by, name, within=(*within, self.function), shared=depends.use_cache)
        return Taken(parameter, made, False)

    @property
    def is_async(self) -> bool:
        return self.runs_on in (_methods.ASYNCIO, _methods.ASYNCIO_STREAM)

    def all(self) -> Iterator[Dependency]:
        """Itself and those that it has, in reading order."""
        yield self
        for taken in self.takes:
            if taken.dependency is not None:
                yield from taken.dependency.all()


def _depends_of(hint: Any) -> Depends | None:
    if typing.get_origin(hint) is not typing.Annotated:
        return None
    return next((note for note in typing.get_args(hint)[1:] if isinstance(note, Depends)), None)


def _is_decorated_generator(function: Any) -> bool:
    inner = inspect.unwrap(_methods._underlying(function))
    return inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner)


def _name_of(function: Any) -> str:
    return getattr(function, "__name__", None) or repr(function)


def refuse_dependencies(function: Callable[..., Any], name: str, kind: str) -> None:
    """Of a function that does not run once for each call, as one that is `kind`."""
    for parameter, hint in _methods._hints(function, name).items():
        if _depends_of(hint):
            raise TypeError(f"wirecall: {name}: a {kind} function has no dependencies, as {parameter} is one")


def with_dependencies(
    function: Callable[..., Any], name: str, overrides: Overrides, blocking: bool = False
) -> Callable[..., Any]:
    """The function itself where it has no dependency. Else one that takes from the call what it and its dependencies
    take, and makes these; of `overrides` it goes by those that are in force then."""
    if not any(_depends_of(hint) for hint in _methods._hints(function, name).values()):
        return function
    method = Dependency(function, name, blocking=blocking)
    overrides.know(method)
    for one in method.all():
        if one.is_async and not method.is_async:
            raise TypeError(
                f"wirecall: {name} is a plain function, and cannot wait for {_name_of(one.function)}, which is async: "
                "write async def, or make that one plain"
            )
    return _wrapped(method, _signature_of(method, name), overrides)


def _signature_of(method: Dependency, name: str) -> list[inspect.Parameter]:
    """What the function takes from the call, then what its dependencies take: where that cannot be by position, after
    `*args` or without a default after one with a default, by name alone."""
    kinds: dict[Any, list[inspect.Parameter]] = {kind: [] for kind in sorted(_methods._KINDS)}
    found: dict[str, inspect.Parameter] = {}
    context = False
    for one in method.all():
        for taken, dependency, is_context in one.takes:
            parameter = taken
            if dependency is not None or (is_context and context):
                continue
            context = context or is_context
            if one is not method:
                _check_clash(parameter, found.get(parameter.name), name, _name_of(one.function))
                if parameter.name in found:
                    continue
                parameter = parameter.replace(kind=_kind_after(kinds, parameter))
            found[parameter.name] = parameter
            kinds[parameter.kind].append(parameter)
    return [parameter for of_kind in kinds.values() for parameter in of_kind]


def _check_clash(parameter: inspect.Parameter, other: inspect.Parameter | None, name: str, by: str) -> None:
    """TypeError where a dependency takes what cannot be the method's parameter of that name."""
    variadic = (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    if parameter.kind in variadic:
        raise TypeError(f"wirecall: {name}: {by} takes *{parameter.name}: name what it takes")
    if other is not None and other.kind in variadic:
        raise TypeError(
            f"wirecall: {name}: {by} takes {parameter.name}, which is no such parameter of {name}: rename one"
        )
    if other is None:
        return
    if other.annotation != parameter.annotation:
        raise TypeError(
            f"wirecall: {name}: {parameter.name} is {other.annotation!r}, and {parameter.annotation!r} of {by}: give "
            "one of them another name"
        )
    if other.default != parameter.default:
        raise TypeError(
            f"wirecall: {name}: {parameter.name} has another default in {by}: give one of them another name"
        )


class _Takes:
    """Where a wrapper finds the arguments of a call."""

    def __init__(self, method: Dependency, parameters: list[inspect.Parameter]) -> None:
        of_kind: dict[Any, list[str]] = {}
        for one in parameters:
            of_kind.setdefault(one.kind, []).append(one.name)
        parameter = inspect.Parameter
        self.names = {one.name for one in parameters}
        self.made = {taken.parameter.name for taken in method.takes if taken.dependency is not None}
        self.positional = of_kind.get(parameter.POSITIONAL_ONLY, []) + of_kind.get(parameter.POSITIONAL_OR_KEYWORD, [])
        self.var_positional = "".join(of_kind.get(parameter.VAR_POSITIONAL, []))
        self.var_keyword = "".join(of_kind.get(parameter.VAR_KEYWORD, []))
        self.context = next((one.name for one in parameters if _methods._is_context(one.annotation)), "")


def _kind_after(kinds: dict[Any, list[inspect.Parameter]], parameter: inspect.Parameter) -> Any:
    before = [*kinds[parameter.POSITIONAL_ONLY], *kinds[parameter.POSITIONAL_OR_KEYWORD]]
    has_default = parameter.default is not parameter.empty
    follows = has_default or all(one.default is one.empty for one in before)
    by_position = follows and not kinds[parameter.VAR_POSITIONAL]
    return parameter.POSITIONAL_OR_KEYWORD if by_position else parameter.KEYWORD_ONLY


class _Call:
    """What one call gives, and what has been made for it."""

    __slots__ = ("context", "given", "made", "overrides")

    def __init__(self, takes: _Takes, overrides: Overrides, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.given: dict[str, Any] = dict(zip(takes.positional, args, strict=False)) | kwargs
        if takes.var_positional:
            self.given[takes.var_positional] = args[len(takes.positional) :]
        if takes.var_keyword:
            others = {name: value for name, value in kwargs.items() if name not in takes.names}
            for name in takes.made & others.keys():
                raise InvalidParams(f"at {name}, expected nothing")
            self.given[takes.var_keyword] = others
        self.context = self.given.get(takes.context)
        self.made: dict[Any, Any] = {}
        self.overrides = overrides

    def make(self, of: Dependency) -> Generator[Any, Any, tuple[list[Any], dict[str, Any]]]:
        """Yields each dependency that is to be made, as a function without parameters and that Dependency, and is sent
        what it is. Returns the arguments of `of`."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        value: Any
        for parameter, dependency, is_context in of.takes:
            if is_context:
                value = self.context
            elif dependency is not None:
                value = yield from self._made(dependency)
            elif parameter.name in self.given:
                value = self.given[parameter.name]
            elif parameter.default is not parameter.empty:
                value = parameter.default
            elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            else:
                raise TypeError(f"wirecall: {_name_of(of.function)} takes {parameter.name}, which no call gives")
            if parameter.kind is parameter.VAR_POSITIONAL:
                args.extend(value)
            elif parameter.kind is parameter.VAR_KEYWORD:
                kwargs.update(value)
            elif parameter.kind is parameter.KEYWORD_ONLY:
                kwargs[parameter.name] = value
            else:
                args.append(value)
        return args, kwargs

    def _made(self, dependency: Dependency) -> Generator[Any, Any, Any]:
        shared = dependency.shared
        dependency = self.overrides.of(dependency)
        if shared and dependency.function in self.made:
            return self.made[dependency.function]
        args, kwargs = yield from self.make(dependency)
        value = yield functools.partial(dependency.function, *args, **kwargs), dependency
        if shared:
            self.made[dependency.function] = value
        return value


def _enter(call: _Call, method: Dependency, stack: contextlib.ExitStack) -> tuple[list[Any], dict[str, Any]]:
    making = call.make(method)
    value = None
    while True:
        try:
            function, dependency = making.send(value)
        except StopIteration as done:
            arguments: tuple[list[Any], dict[str, Any]] = done.value
            return arguments
        if dependency.runs_on == _methods.POOL_STREAM:
            value = stack.enter_context(contextlib.contextmanager(function)())
        else:
            value = function()


async def _enter_async(
    call: _Call, method: Dependency, stack: contextlib.AsyncExitStack
) -> tuple[list[Any], dict[str, Any]]:
    making = call.make(method)
    value = None
    while True:
        try:
            function, dependency = making.send(value)
        except StopIteration as done:
            arguments: tuple[list[Any], dict[str, Any]] = done.value
            return arguments
        if dependency.runs_on == _methods.POOL_STREAM:
            value = stack.enter_context(contextlib.contextmanager(function)())
        elif dependency.runs_on == _methods.ASYNCIO_STREAM:
            value = await stack.enter_async_context(contextlib.asynccontextmanager(function)())
        else:
            value = await function() if dependency.is_async else function()


def _swallowed(method: Dependency) -> RuntimeError:
    return RuntimeError(
        f"wirecall: a dependency of {_name_of(method.function)} has caught its exception and raised none"
    )


def _wrapped(method: Dependency, parameters: list[inspect.Parameter], overrides: Overrides) -> Callable[..., Any]:
    function = method.function
    takes = _Takes(method, parameters)

    def plain(*args: Any, **kwargs: Any) -> Any:
        with contextlib.ExitStack() as stack:
            args_of, kwargs_of = _enter(_Call(takes, overrides, args, kwargs), method, stack)
            return function(*args_of, **kwargs_of)
        raise _swallowed(method)

    async def asynchronous(*args: Any, **kwargs: Any) -> Any:
        async with contextlib.AsyncExitStack() as stack:
            args_of, kwargs_of = await _enter_async(_Call(takes, overrides, args, kwargs), method, stack)
            return await function(*args_of, **kwargs_of)
        raise _swallowed(method)

    def stream(*args: Any, **kwargs: Any) -> Any:
        with contextlib.ExitStack() as stack:
            args_of, kwargs_of = _enter(_Call(takes, overrides, args, kwargs), method, stack)
            yield from function(*args_of, **kwargs_of)
            return
        raise _swallowed(method)

    async def asynchronous_stream(*args: Any, **kwargs: Any) -> Any:
        async with contextlib.AsyncExitStack() as stack:
            args_of, kwargs_of = await _enter_async(_Call(takes, overrides, args, kwargs), method, stack)
            async with _methods.closing(function(*args_of, **kwargs_of)) as items:
                async for item in items:
                    yield item
            return
        raise _swallowed(method)

    by_kind: Mapping[int, Any] = {
        _methods.ASYNCIO: asynchronous,
        _methods.POOL_STREAM: stream,
        _methods.ASYNCIO_STREAM: asynchronous_stream,
    }
    hints = {one.name: one.annotation for one in parameters if one.annotation is not Any}
    own = _methods._hints(function, "")
    if "return" in own:
        hints["return"] = own["return"]
    return _methods.as_described(by_kind.get(method.runs_on, plain), function, parameters, hints)
