"""Type hints as shapes: what the native decoder (src/shape.cpp) is to make of a value, and how a mistake is worded.

`shape_of(hint)` understands the built-in types and their generics, typing's, enums, dataclasses, TypedDicts, named
tuples, dates and the other types that have a usual text form, NumPy arrays, PIL images, pydantic and msgspec models,
and messages of protobuf, where these are installed. A hint that it does not understand is a TypeError that says so,
when the method is added.
"""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import re
import sys
import threading
import types
import typing
import uuid
import weakref
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from . import _bootstrap  # noqa: F401 - sets up the native module
from ._native import Shape

(
    ANY, NONE, BOOLEAN, INTEGER, NUMBER, STRING, BYTES, LIST, SET, FROZENSET, TUPLE, RECORD, MAP, CHOICE, LITERAL,
    OBJECT, CONVERTED, RAW, EXTENSION,
) = range(19)  # fmt: skip

# By hint, as long as a method needs them: classes may be made over and over. And what has just been made.
_made: weakref.WeakValueDictionary[Any, Shape] = weakref.WeakValueDictionary()
_fresh: list[Any] = []
_making = threading.RLock()

_SIMPLE: dict[Any, tuple[int, str]] = {
    Any: (ANY, ""),
    object: (ANY, ""),
    None: (NONE, ""),
    type(None): (NONE, ""),
    bool: (BOOLEAN, ""),
    int: (INTEGER, ""),
    float: (NUMBER, ""),
    str: (STRING, ""),
    bytes: (BYTES, ""),
}

_SEQUENCES: dict[Any, int] = {
    list: LIST,
    set: SET,
    frozenset: FROZENSET,
    collections.abc.Sequence: LIST,
    collections.abc.MutableSequence: LIST,
    collections.abc.Iterable: LIST,
    collections.abc.Collection: LIST,
    collections.abc.Set: FROZENSET,
    collections.abc.MutableSet: SET,
}
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def shape_of(hint: Any) -> Shape:
    """The shape of a hint; made once for each hint that can be looked up."""
    with _making:
        key = _key(hint)
        try:
            known = _made.get(key)
        except TypeError:  # Annotated with something that cannot be hashed
            return _make(hint)
        if known is not None:
            return known
        before = len(_fresh)
        try:
            return _remember(key, _make(hint))
        except BaseException:
            # What has been made meanwhile may hold what could not be: a class that holds itself by way of another one.
            for made in _fresh[before:]:
                _made.pop(made, None)
            raise
        finally:
            if before == 0:
                _fresh.clear()


def _remember(key: Any, shape: Shape) -> Shape:
    _made[key] = shape
    _fresh.append(key)
    return shape


def _key(hint: Any) -> Any:
    """What a hint is looked up by. To Python `A | B` equals `B | A`, and so does all that holds them."""
    origin = get_origin(hint)
    if origin is None or origin is Literal:
        return hint
    return (origin, *(_key(part) for part in get_args(hint)))


def _make(hint: Any) -> Shape:
    if isinstance(hint, typing.NewType):
        return shape_of(hint.__supertype__)
    if isinstance(hint, typing.TypeVar):
        return _union(hint.__constraints__) if hint.__constraints__ else shape_of(hint.__bound__ or Any)
    if hasattr(typing, "TypeAliasType") and isinstance(hint, typing.TypeAliasType):
        return shape_of(hint.__value__)
    simple = _SIMPLE.get(hint) if _hashable(hint) else None
    if simple is not None:
        return Shape(simple[0], simple[1], None)
    origin = get_origin(hint)
    if origin is Annotated:
        from ._constraints import annotated

        return annotated(hint)
    if origin in (Union, types.UnionType):
        return _union(get_args(hint))
    if origin is Literal:
        return _literal(get_args(hint))
    if origin in (typing.Required, typing.NotRequired, typing.Final):
        return shape_of(get_args(hint)[0])
    kind = origin if origin is not None else hint
    if kind is collections.abc.Buffer if hasattr(collections.abc, "Buffer") else False:
        return Shape(BYTES, "", None)
    if kind in (bytearray, memoryview):
        return converted(bytes, kind, "", exact=kind)
    if kind is tuple:
        return _tuple(get_args(hint))
    if kind in _SEQUENCES:
        return with_parts(Shape(_SEQUENCES[kind], "", None), shape_of((get_args(hint) or (Any,))[0]))
    if kind is collections.deque:
        return converted(list[(get_args(hint) or (Any,))[0]], collections.deque, "", exact=collections.deque)  # type: ignore[misc]
    if kind in _MAPPINGS:
        return _mapping(*(get_args(hint) or (str, Any)))
    if isinstance(kind, type):
        shape = _class(kind, hint)
        if shape is not None:
            return shape
    raise TypeError(
        f"wirecall: {name_of(hint)} cannot be put on the wire: hint a built-in type, a dataclass, an enum, a "
        "TypedDict, or typing.Any"
    )


def _hashable(hint: Any) -> bool:
    try:
        hash(hint)
    except TypeError:
        return False
    return True


def name_of(hint: Any) -> str:
    return hint.__qualname__ if isinstance(hint, type) else str(hint)


def with_parts(shape: Shape, *parts: Shape) -> Shape:
    shape.set_parts(list(parts))
    return shape


def converted(base: Any, convert: Any, name: str, text_format: str = "", *, exact: type | None = None) -> Shape:
    """`exact`: what is of just this type is written as what it is read from."""
    shape = Shape(CONVERTED, name, convert)
    shape.set_result(exact, None)
    if text_format:
        shape.set_format(text_format)
    return with_parts(shape, base if isinstance(base, Shape) else shape_of(base))


def _tuple(parts: tuple[Any, ...]) -> Shape:
    if not parts:
        return with_parts(Shape(TUPLE, "", None), shape_of(Any))
    if len(parts) == 2 and parts[1] is Ellipsis:
        return with_parts(Shape(TUPLE, "", None), shape_of(parts[0]))
    if parts == ((),):
        parts = ()
    return with_parts(Shape(RECORD, "", None), *(shape_of(part) for part in parts))


def _mapping(key: Any, value: Any) -> Shape:
    convert = None
    if key not in (str, Any):
        shape = shape_of(key)
        convert = _key_reader(key, shape)
    return with_parts(Shape(MAP, "", convert), shape_of(key), shape_of(value))


def _key_reader(key: Any, shape: Shape) -> Any:
    """Keys are strings in JSON; one of another type is read as if it stood there by itself."""
    from ._native import dumps, loads

    def read(text: str) -> Any:
        try:
            return loads(dumps(text), shape)
        except ValueError:
            return loads(text.encode(), shape)

    if (isinstance(key, type) and issubclass(key, bool | float)) or key in (bool, float):
        raise TypeError(
            f"wirecall: a dict with {name_of(key)} for keys cannot be put on the wire: its keys are strings"
        )
    return read


def _union(parts: tuple[Any, ...]) -> Shape:
    """The first that fits. But what takes all of a kind leaves to the others what they take of it: an integer is no
    float, and a date no string, wherever they stand."""
    ordered = [part for part in parts if part not in (None, type(None))]
    if float in ordered:
        at = ordered.index(float)
        later = [part for part in ordered[at:] if _is_integral(part)]
        ordered = ordered[:at] + later + [part for part in ordered[at:] if part not in later]
    ordered.sort(key=lambda part: 2 if part in (Any, object) else 1 if part is str else 0)
    shapes = [shape_of(part) for part in ordered]
    if len(ordered) != len(parts):
        shapes.append(shape_of(None))
    return with_parts(Shape(CHOICE, "", None), *shapes)


def _is_integral(part: Any) -> bool:
    if get_origin(part) is Annotated:
        return _is_integral(get_args(part)[0])
    if get_origin(part) is Literal:
        return all(isinstance(value, int) for value in get_args(part))
    return isinstance(part, type) and issubclass(part, int)


def _literal(values: tuple[Any, ...]) -> Shape:
    members = {(type(v.value if isinstance(v, enum.Enum) else v), v.value if isinstance(v, enum.Enum) else v): v
               for v in values}  # fmt: skip
    return _one_of(members)


def _one_of(members: dict[tuple[type, Any], Any]) -> Shape:
    values = [value for _, value in members]
    shape = Shape(LITERAL, "one of " + ", ".join(map(repr, values)), members)
    if all(isinstance(value, str) for value in values):
        shape.set_names(values)
    else:
        set_schema(shape, "", {"enum": values})
    return shape


def _enum(kind: type[enum.Enum]) -> Shape:
    if issubclass(kind, enum.Flag):
        return converted(int, kind, f"a {kind.__name__}", exact=kind)
    if not all(isinstance(member.value, bool | int | float | str | types.NoneType) for member in kind):
        return _enum_by_form(kind)
    return _one_of({(type(member.value), member.value): member for member in kind})


def _enum_by_form(kind: type[enum.Enum]) -> Shape:
    """Of values that are another thing when they come back, as tuples are lists."""
    from ._native import dumps

    members = {dumps(member.value): member for member in kind}
    shape = converted(Any, lambda value: members[dumps(value)], f"one of {', '.join(f.decode() for f in members)}",
                       exact=kind)  # fmt: skip
    set_schema(shape, "", {"enum": [json.loads(form) for form in members]})
    return shape


# ---- classes ----


def _class(kind: type, hint: Any) -> Shape | None:
    if issubclass(kind, enum.Enum):
        return _enum(kind)
    if typing.is_typeddict(kind):
        return _typed_dict(kind, hint)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        hints = _hints_of(kind, hint)
        parts = [shape_of(hints.get(name, Any)) for name in kind._fields]
        return with_parts(Shape(RECORD, "", kind), *parts)
    text = _texts().get(kind)
    if text is not None:
        return converted(*text, exact=kind)
    if issubclass(kind, pathlib.PurePath):
        return converted(str, kind, "", "path", exact=kind)
    from ._library_types import array_shape, model_shape

    model = model_shape(kind, hint)
    if model is not None:
        return model
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, hint)
    array = array_shape(kind, hint)
    if array is not None:
        return array
    if kind in (int, float, str, bytes, bool):
        return None
    for base in (bool, int, float, str, bytes):
        if issubclass(kind, base):
            return converted(base, kind, f"a {kind.__name__}", exact=kind)
    return None


def _dataclass(kind: type, hint: Any) -> Shape:
    shape = Shape(OBJECT, kind.__name__, kind)
    _remember(_key(hint), shape)  # it may hold itself
    hints = _hints_of(kind, hint)
    shape.set_fields([
        (
            sys.intern(field.name),
            field.name,
            shape_of(hints[field.name]),
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
            str(field.metadata.get("doc", "")),
        )
        for field in dataclasses.fields(kind)
        if field.init
    ])  # fmt: skip
    docs = (kind.__doc__ or "").strip()
    if docs and not docs.startswith(kind.__name__ + "("):  # which dataclass itself has written
        shape.set_docs(docs)
    return shape


def _typed_dict(kind: Any, hint: Any) -> Shape:
    shape = Shape(OBJECT, kind.__name__, None)
    _remember(_key(hint), shape)
    hints = _hints_of(kind, hint)
    shape.set_fields([
        (sys.intern(name), name, shape_of(hints[name]), _is_required(kind, name, hints[name]), "") for name in hints
    ])  # fmt: skip
    if kind.__doc__:
        shape.set_docs(kind.__doc__.strip())
    return shape


def _hints_of(kind: Any, hint: Any) -> dict[str, Any]:
    """Those of a class; of a generic one with what stands for its type variables in `hint`."""
    try:
        hints = get_type_hints(kind, include_extras=True)
    except Exception as failure:  # a hint that is a string may be anything
        raise TypeError(
            f"wirecall: the hints of {kind.__qualname__} cannot be read: {type(failure).__name__}: {failure}"
        ) from None
    known = _variables(kind, get_args(hint))
    return {name: _with_variables(part, known) for name, part in hints.items()} if known else hints


def _variables(kind: Any, arguments: tuple[Any, ...]) -> dict[Any, Any]:
    """What stands for the type variables of a class and of those it comes from."""
    known = dict(zip(getattr(kind, "__parameters__", ()), arguments, strict=False))
    for base in getattr(kind, "__orig_bases__", ()):
        origin = get_origin(base)
        if isinstance(origin, type) and origin is not kind:
            known |= _variables(origin, tuple(_with_variables(part, known) for part in get_args(base)))
    return known


def _with_variables(hint: Any, known: dict[Any, Any]) -> Any:
    if isinstance(hint, typing.TypeVar):
        return known.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ())
    if not parameters or isinstance(hint, type):
        return hint
    return hint[tuple(known.get(parameter, parameter) for parameter in parameters)]


def _is_required(kind: Any, name: str, hint: Any) -> bool:
    """What the class itself says is not true of hints that are strings."""
    origin = get_origin(hint)
    if origin in (typing.Required, typing.NotRequired):
        return origin is typing.Required
    return name in kind.__required_keys__


def _texts() -> dict[type, tuple[Any, Any, str, str]]:
    """Types that have a usual form as text: what they are read from, how, what they are called, and the format."""
    return {
        kind: (base, convert, name, name)
        for kind, base, convert, name in (
            (datetime.datetime, str, datetime.datetime.fromisoformat, "date-time"),
            (datetime.date, str, datetime.date.fromisoformat, "date"),
            (datetime.time, str, datetime.time.fromisoformat, "time"),
            (datetime.timedelta, str | float, parse_duration, "duration"),
            (uuid.UUID, str, uuid.UUID, "uuid"),
            (decimal.Decimal, str | int | float, _decimal, "decimal"),
            (pathlib.Path, str, pathlib.Path, "path"),
            (re.Pattern, str, re.compile, "regex"),
        )
    }


def _decimal(value: Any) -> decimal.Decimal:
    try:
        return decimal.Decimal(str(value))
    except decimal.InvalidOperation:
        raise ValueError from None


_DURATION = re.compile(r"([+-]?)P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d+))?S)?)?", re.ASCII)


def parse_duration(value: str | float) -> datetime.timedelta:
    """ISO 8601 ("PT1.5S"), or a number of seconds."""
    if not isinstance(value, str):
        return datetime.timedelta(seconds=value)
    found = _DURATION.fullmatch(value)
    if found is None or value.rstrip("T").endswith("P"):
        raise ValueError
    sign, weeks, days, hours, minutes, seconds, fraction = found.groups()
    amount = datetime.timedelta(
        weeks=int(weeks or 0),
        days=int(days or 0),
        hours=int(hours or 0),
        minutes=int(minutes or 0),
        seconds=int(seconds or 0),
        microseconds=int((fraction or "")[:6].ljust(6, "0")),
    )
    return -amount if sign == "-" else amount


# ---- schemas ----


def set_schema(shape: Shape, name: str, schema: dict[str, Any], definitions: dict[str, Any] | None = None) -> None:
    """Documents a shape by a schema that refers to the definitions as `#/$defs/name.key`."""
    others = dict(definitions or {})
    reference = schema.get("$ref", "")
    if reference and json.dumps(reference) not in json.dumps(others):  # it is not within itself
        schema = others.pop(reference.removeprefix(f"#/$defs/{name}."))
    _to_draft_07([schema, others])
    with contextlib.suppress(TypeError, ValueError):  # JSON has no form for a limit or a default in it
        shape.set_definitions([
            (name, json.dumps(schema, allow_nan=False)),
            *((f"{name}.{key}", json.dumps(value, allow_nan=False)) for key, value in others.items()),
        ])  # fmt: skip


def _to_draft_07(schema: Any) -> None:
    """Says of tuples what OpenRPC 1 understands, whose schemas are those of draft 07; in place."""
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    for value in inner:
        _to_draft_07(value)
    if isinstance(schema, dict) and isinstance(first := schema.get("prefixItems"), list):
        del schema["prefixItems"]
        others = schema.pop("items", len(first) != schema.get("maxItems"))
        if first:  # a list of schemas is never empty
            schema |= {"items": first, "additionalItems": others}
        elif others is not True:
            schema["items"] = others
