"""Out: parameters that come back, which a method of Python returns and a caller takes out of the answer.

The result on the wire is {"return": …, "out": {name: value}} (docs/wire.md "Parameters that come back")."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Callable, Mapping
from typing import Any, Generic, Self, TypedDict, TypeVar

T = TypeVar("T")


class Out(tuple[Any, ...], Generic[T]):
    """The parameters of a call that come back: a tuple in their order, which has them by name as well.

    A method returns one, `Out(quotient=3, remainder=1)`, where its hint names a NamedTuple, dataclass or TypedDict:
    `def divide(a: int, b: int) -> Out[Division]`. A caller makes one of the result: `q, r = Out.of(c.divide(7, 2))`.
    Thread-safe, as a tuple is."""

    _names: tuple[str, ...]
    _returned: Any

    def __new__(cls, /, *values: Any, **named: Any) -> Self:
        """`values`: in the order of the hint's members; or `named`: by their names. TypeError for both."""
        if values and named:
            raise TypeError("wirecall: Out takes what comes back in order or by name, not both")
        out = super().__new__(cls, values or named.values())
        out._names = tuple(named)
        out._returned = None
        return out

    @classmethod
    def of(cls, result: Any) -> Self:
        """What came back with a result, as a call has returned it. ValueError for the result of a method that gives no
        parameters back."""
        if not isinstance(result, Mapping) or not isinstance(given := result.get("out"), Mapping):
            raise ValueError('wirecall: no parameters came back: the result is no object with "return" and "out"')
        out = super().__new__(cls, given.values())
        out._names = tuple(given)
        out._returned = result.get("return")
        return out

    @property
    def returned(self) -> Any:
        """What the method has returned beside; None where that is nothing."""
        return self._returned

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._names:
            raise AttributeError(f"no parameter {name!r} came back; there are {', '.join(self._names) or 'no names'}")
        return self[self._names.index(name)]

    def asdict(self) -> dict[str, Any]:
        """The parameters by name. ValueError where they have been given in order only."""
        if len(self._names) != len(self):
            raise ValueError("wirecall: this Out was made without names")
        return dict(zip(self._names, self, strict=True))

    def __reduce__(self) -> Any:
        return (_restore, (self._names, tuple(self), self._returned))

    def __repr__(self) -> str:
        given = [f"{name}={value!r}" for name, value in zip(self._names, self, strict=False)]
        return f"Out({', '.join(given or map(repr, self))})"


def _restore(names: tuple[str, ...], values: tuple[Any, ...], returned: Any) -> Out[Any]:
    out: Out[Any] = Out(*values)
    out._names = names
    out._returned = returned
    return out


class Outputs(typing.NamedTuple):
    """What the hint of a result says of parameters that come back."""

    hint: Any  # the result on the wire, as a TypedDict
    names: tuple[str, ...]
    returns: bool  # whether something is returned beside


def outputs_of(hint: Any) -> Outputs | None:
    """For the hints `Out[D]` and `tuple[R, Out[D]]`; None for any without Out. TypeError where D names no parameters,
    and where Out stands elsewhere."""
    if typing.get_origin(hint) is Out or hint is Out:
        return _outputs(typing.get_args(hint), None, returns=False)
    parts = typing.get_args(hint) if typing.get_origin(hint) is tuple else ()
    if len(parts) == 2 and (typing.get_origin(parts[1]) is Out or parts[1] is Out):
        return _outputs(typing.get_args(parts[1]), parts[0], returns=True)
    if _holds_out(hint):
        raise TypeError("wirecall: Out is the whole hint of a result, Out[D], or the second of two, tuple[R, Out[D]]")
    return None


def _holds_out(hint: Any) -> bool:
    return hint is Out or typing.get_origin(hint) is Out or any(map(_holds_out, typing.get_args(hint)))


def _outputs(arguments: tuple[Any, ...], returned: Any, *, returns: bool) -> Outputs:
    hints = _members(arguments[0]) if arguments else {}
    taken = [name for name in hints if hasattr(Out, name)]
    if taken:
        raise TypeError(f"wirecall: Out has a {taken[0]!r} of its own, so what comes back is to have another name")
    if not hints:
        raise TypeError("wirecall: Out names what comes back by a NamedTuple, dataclass or TypedDict: Out[Division]")
    make: Any = TypedDict  # which is for names that a type checker knows
    out = make(arguments[0].__name__, hints)
    return Outputs(make("Returned", {"return": returned, "out": out}), tuple(hints), returns)


def _members(kind: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    elif isinstance(kind, type) and (typing.is_typeddict(kind) or hasattr(kind, "_fields")):
        names = list(getattr(kind, "_fields", kind.__annotations__))
    else:
        return {}
    hints = typing.get_type_hints(kind, include_extras=True)
    return {name: hints.get(name, Any) for name in names}


def with_outputs(function: Callable[..., Any], outputs: Outputs, name: str, *, is_async: bool) -> Callable[..., Any]:
    """The function with its results as they are on the wire. `is_async`: it returns an awaitable."""

    def wire_form(result: Any) -> dict[str, Any]:
        returned = None
        if outputs.returns:
            if not isinstance(result, tuple) or isinstance(result, Out) or len(result) != 2:
                raise TypeError(f"{name} is to return a tuple of its result and Out, not {type(result).__name__}")
            returned, result = result
        return {"return": returned, "out": _by_name(result, outputs.names, name)}

    if is_async:

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> dict[str, Any]:
            return wire_form(await function(*args, **kwargs))

        return awaited

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> dict[str, Any]:
        return wire_form(function(*args, **kwargs))

    return called


def _by_name(values: Any, names: tuple[str, ...], method: str) -> dict[str, Any]:
    if isinstance(values, Out) and values._names:
        given: Mapping[str, Any] = values.asdict()
    elif isinstance(values, tuple):
        if len(values) != len(names):
            raise TypeError(f"{method} gives {_listed(names)} back: {len(names)} values, not {len(values)}")
        return dict(zip(names, values, strict=True))
    elif isinstance(values, Mapping):
        given = values
    elif dataclasses.is_dataclass(values) and all(hasattr(values, name) for name in names):
        given = {name: getattr(values, name) for name in names}
    else:
        raise TypeError(f"{method} gives {_listed(names)} back, not {type(values).__name__}")
    if given.keys() != set(names):
        raise TypeError(f"{method} gives {_listed(names)} back, not {_listed(tuple(given))}")
    return {name: given[name] for name in names}


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"
