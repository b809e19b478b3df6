"""Type hints as shapes: what the native decoder (src/shape.cpp) is to make of a value, and how a mistake is worded.

`shape_of(hint)` understands the built-in types and their generics, typing's, enums, dataclasses, TypedDicts, named
tuples, dates and the other types that have a usual text form, NumPy arrays, PIL images, and pydantic and msgspec models
where these are installed. A hint that it does not understand is a TypeError that says so, when the method is added.
"""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import dataclasses
import datetime
import decimal
import enum
import functools
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

from . import _bootstrap, _values  # noqa: F401 - which tells the native module of _values
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
        return _annotated(hint)
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
        return _converted(bytes, kind, "", exact=kind)
    if kind is tuple:
        return _tuple(get_args(hint))
    if kind in _SEQUENCES:
        return _with_parts(Shape(_SEQUENCES[kind], "", None), shape_of((get_args(hint) or (Any,))[0]))
    if kind is collections.deque:
        return _converted(list[(get_args(hint) or (Any,))[0]], collections.deque, "", exact=collections.deque)  # type: ignore[misc]
    if kind in _MAPPINGS:
        return _mapping(*(get_args(hint) or (str, Any)))
    if isinstance(kind, type):
        shape = _class(kind, hint)
        if shape is not None:
            return shape
    raise TypeError(
        f"wirecall: {_name(hint)} cannot be put on the wire: hint a built-in type, a dataclass, an enum, a TypedDict, "
        "or typing.Any"
    )


def _hashable(hint: Any) -> bool:
    try:
        hash(hint)
    except TypeError:
        return False
    return True


def _name(hint: Any) -> str:
    return hint.__qualname__ if isinstance(hint, type) else str(hint)


def _with_parts(shape: Shape, *parts: Shape) -> Shape:
    shape.set_parts(list(parts))
    return shape


def _converted(base: Any, convert: Any, name: str, text_format: str = "", *, exact: type | None = None) -> Shape:
    """`exact`: what is of just this type is written as what it is read from."""
    shape = Shape(CONVERTED, name, convert)
    shape.set_result(exact, None)
    if text_format:
        shape.set_format(text_format)
    return _with_parts(shape, base if isinstance(base, Shape) else shape_of(base))


def _tuple(parts: tuple[Any, ...]) -> Shape:
    if not parts:
        return _with_parts(Shape(TUPLE, "", None), shape_of(Any))
    if len(parts) == 2 and parts[1] is Ellipsis:
        return _with_parts(Shape(TUPLE, "", None), shape_of(parts[0]))
    if parts == ((),):
        parts = ()
    return _with_parts(Shape(RECORD, "", None), *(shape_of(part) for part in parts))


def _mapping(key: Any, value: Any) -> Shape:
    convert = None
    if key not in (str, Any):
        shape = shape_of(key)
        convert = _key_reader(key, shape)
    return _with_parts(Shape(MAP, "", convert), shape_of(key), shape_of(value))


def _key_reader(key: Any, shape: Shape) -> Any:
    """Keys are strings in JSON; one of another type is read as if it stood there by itself."""
    from ._native import dumps, loads

    def read(text: str) -> Any:
        try:
            return loads(dumps(text), shape)
        except ValueError:
            return loads(text.encode(), shape)

    if (isinstance(key, type) and issubclass(key, bool | float)) or key in (bool, float):
        raise TypeError(f"wirecall: a dict with {_name(key)} for keys cannot be put on the wire: its keys are strings")
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
    return _with_parts(Shape(CHOICE, "", None), *shapes)


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
        _set_schema(shape, "", {"enum": values})
    return shape


def _enum(kind: type[enum.Enum]) -> Shape:
    if issubclass(kind, enum.Flag):
        return _converted(int, kind, f"a {kind.__name__}", exact=kind)
    if not all(isinstance(member.value, bool | int | float | str | types.NoneType) for member in kind):
        return _enum_by_form(kind)
    return _one_of({(type(member.value), member.value): member for member in kind})


def _enum_by_form(kind: type[enum.Enum]) -> Shape:
    """Of values that are another thing when they come back, as tuples are lists."""
    from ._native import dumps

    members = {dumps(member.value): member for member in kind}
    shape = _converted(Any, lambda value: members[dumps(value)], f"one of {', '.join(f.decode() for f in members)}",
                       exact=kind)  # fmt: skip
    _set_schema(shape, "", {"enum": [json.loads(form) for form in members]})
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
        return _with_parts(Shape(RECORD, "", kind), *parts)
    text = _texts().get(kind)
    if text is not None:
        return _converted(*text, exact=kind)
    if issubclass(kind, pathlib.PurePath):
        return _converted(str, kind, "", "path", exact=kind)
    model = _model(kind, hint)
    if model is not None:
        return model
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, hint)
    array = _array(kind, hint)
    if array is not None:
        return array
    if kind in (int, float, str, bytes, bool):
        return None
    for base in (bool, int, float, str, bytes):
        if issubclass(kind, base):
            return _converted(base, kind, f"a {kind.__name__}", exact=kind)
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


# ---- constraints ----


def _annotated(hint: Any) -> Shape:
    base, *extras = get_args(hint)
    checks: list[tuple[Any, str]] = []
    for part in (part for extra in extras for part in _unpacked(extra)):
        understood = _checks(part)
        if understood is None:
            return _by_library(hint, part)
        checks += understood
    shape = shape_of(base)
    if not checks:
        return shape

    def convert(value: Any) -> Any:
        for fits, words in checks:
            if not fits(value):
                raise ValueError(words)
        return value

    limited = _converted(shape, convert, "")
    limited.set_result(None, convert)
    schema = json.loads(shape.schema)
    if schema.get("type") == "integer" and schema.get("minimum") == -(2**63) and schema.get("maximum") == 2**64 - 1:
        del schema["minimum"], schema["maximum"]  # what some encodings have room for is no bound of the hint's
    definitions = schema.pop("$defs", {})
    if "$ref" not in schema and not definitions:  # those say themselves what there is to say
        _set_schema(limited, "", schema | _keywords(extras, schema.get("type", "")))
    return limited


def _by_library(hint: Any, part: Any) -> Shape:
    """Of what a hint is annotated with, which is another library's to understand. To leave it aside would let through
    what it is there to refuse."""
    if type(part).__module__.partition(".")[0] == "msgspec":
        return _by_msgspec(hint, "")
    if type(part).__module__.partition(".")[0] == "pydantic" or hasattr(part, "__get_pydantic_core_schema__"):
        import pydantic

        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(hint)
        # Strict: no coercion between bool, number and string, as everywhere.
        return _by_pydantic(lambda text: adapter.validate_json(text, strict=True), adapter.json_schema, "")
    raise TypeError(
        f"wirecall: {part!r} in {hint} is nothing that is understood here: bounds of annotated_types, pydantic and "
        "msgspec are, and strings"
    )


_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}


def _keywords(extras: list[Any], kind: str) -> dict[str, Any]:
    """What JSON Schema says of the constraints."""
    words = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}
    words |= {"multiple_of": "multipleOf", "pattern": "pattern"}
    if kind in _LENGTHS:
        words |= {"min_length": "min" + _LENGTHS[kind], "max_length": "max" + _LENGTHS[kind]}
    found: dict[str, Any] = {}
    for extra in extras:
        for part in _unpacked(extra):
            found |= {
                word: getattr(part, name) for name, word in words.items() if getattr(part, name, None) is not None
            }
    return found


def _unpacked(extra: Any) -> list[Any]:
    """pydantic's Field holds its constraints as metadata; annotated_types groups some."""
    metadata = getattr(extra, "metadata", None)
    if isinstance(metadata, list | tuple):
        return list(metadata)
    if getattr(extra, "__is_annotated_types_grouped_metadata__", False):
        return list(extra)
    return [extra]


_BOUNDS: dict[str, tuple[str, Any]] = {
    "gt": ("more than {}", lambda value, bound: value > bound),
    "ge": ("at least {}", lambda value, bound: value >= bound),
    "lt": ("less than {}", lambda value, bound: value < bound),
    "le": ("at most {}", lambda value, bound: value <= bound),
    "multiple_of": ("a multiple of {}", lambda value, step: value % step == 0),
    "min_length": ("a length of at least {}", lambda value, least: len(value) >= least),
    "max_length": ("a length of at most {}", lambda value, most: len(value) <= most),
    "pattern": ("a string that matches {}", lambda value, pattern: re.search(pattern, value) is not None),
}
# What else msgspec.Meta has; the rest of it documents.
_FURTHER = ("tz",)
_WORDS_ONLY = ("Doc", "DocInfo", "Unit", "Meta")


def _checks(part: Any) -> list[tuple[Any, str]] | None:
    """The constraints of annotated_types, and of any object with the same attributes. None for what is neither these
    nor documentation."""
    if isinstance(part, str):
        return []
    kind = type(part)
    if kind.__name__ == "Predicate":
        return [(part.func, f"a value for which {getattr(part.func, '__name__', 'a predicate')} is true")]
    if any(getattr(part, name, None) is not None for name in _FURTHER):
        return None
    found = {name: bound for name in _BOUNDS if (bound := getattr(part, name, None)) is not None}
    if kind.__module__.startswith("pydantic") and set(getattr(part, "__dict__", ())) - set(found):
        return None
    if not found and kind.__name__ not in _WORDS_ONLY:
        return None
    return [
        (functools.partial(lambda fits, bound, value: fits(value, bound), _BOUNDS[name][1], bound),
         _BOUNDS[name][0].format(bound))
        for name, bound in found.items()
    ]  # fmt: skip


# ---- other libraries' types; none is imported that is not there already ----


def _model(kind: Any, hint: Any) -> Shape | None:
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and issubclass(kind, pydantic.BaseModel):
        return _by_pydantic(kind.model_validate_json, kind.model_json_schema, _name_for(kind), kind)
    msgspec = sys.modules.get("msgspec")
    if msgspec is not None and issubclass(kind, msgspec.Struct):
        return _by_msgspec(hint, _name_for(kind) if hint is kind else "", kind)
    return None


def _by_pydantic(validate: Any, schema_of: Any, name: str, exact: type | None = None) -> Shape:
    import pydantic

    def read(text: bytes) -> Any:
        try:
            return validate(text)
        except pydantic.ValidationError as failure:
            first = failure.errors(include_url=False, include_context=False)[0]
            raise _at(ValueError(first["msg"]), first["loc"]) from None

    shape = Shape(RAW, "", read)
    shape.set_result(exact, None)
    with contextlib.suppress(Exception):  # a model of which it makes none has no schema
        schema = schema_of(ref_template=f"#/$defs/{name}.{{model}}")
        _set_schema(shape, name, schema, schema.pop("$defs", {}))
    return shape


def _by_msgspec(hint: Any, name: str, exact: type | None = None) -> Shape:
    import msgspec

    decoder = msgspec.json.Decoder(hint)

    def read(text: bytes) -> Any:
        try:
            return decoder.decode(text)
        except msgspec.ValidationError as failure:
            words, _, where = str(failure).partition(" - at `$")
            raise _at(ValueError(words), _steps(where.rstrip("`"))) from None

    shape = Shape(RAW, "", read)
    shape.set_result(exact, None)
    with contextlib.suppress(Exception):
        (schema,), components = msgspec.json.schema_components([hint], ref_template=f"#/$defs/{name}.{{name}}")
        _set_schema(shape, name, schema, components)
    return shape


_named: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


def _name_for(kind: Any) -> str:
    """Of a definition in documents: each class has one of its own, with a dot in it."""
    plain = re.sub(r"[^\w.]+", "_", f"{kind.__module__}.{kind.__qualname__}")
    name, count = plain, 2
    while _named.setdefault(name, kind) is not kind:
        name, count = f"{plain}{count}", count + 1
    return name


def _set_schema(shape: Shape, name: str, schema: dict[str, Any], definitions: dict[str, Any] | None = None) -> None:
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


def _at(failure: ValueError, loc: tuple[Any, ...]) -> ValueError:
    failure.wirecall_loc = tuple(step if isinstance(step, int) else str(step) for step in loc)  # type: ignore[attr-defined]
    return failure


def _steps(path: str) -> tuple[Any, ...]:
    """msgspec's `.a[1].b` as steps."""
    return tuple(
        int(index) if index.isdigit() else (name or index) for name, index in re.findall(r"\.(\w+)|\[([^]]*)\]", path)
    )


def _array(kind: Any, hint: Any) -> Shape | None:
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if issubclass(kind, numpy.ndarray):
            return _array_of(hint)
        if issubclass(kind, numpy.generic):
            base = {"b": bool, "i": int, "u": int, "f": float}.get(numpy.dtype(kind).kind)
            if base is None:
                return None
            return _converted(base, functools.partial(_scalar, kind), f"a {kind.__name__}", exact=kind)
    image = sys.modules.get("PIL.Image")
    if image is not None and issubclass(kind, image.Image):
        shape = Shape(EXTENSION, "an image", _read_image)
        shape.set_result(image.Image, None)
        return shape
    return None


def _scalar(kind: Any, value: Any) -> Any:
    """OverflowError for what it cannot hold."""
    import numpy

    with numpy.errstate(over="raise"):
        return kind(value)


def _array_of(hint: Any) -> Shape:
    """NDArray[T] has elements of T: what can become them without loss does, as a list's do."""
    import numpy

    _, dtype = (*get_args(hint), None, None)[:2]
    (scalar,) = get_args(dtype) or (Any,)
    union = get_origin(scalar) in (Union, types.UnionType)
    scalars = tuple(get_origin(part) or part for part in (get_args(scalar) if union else (scalar,)))
    if any(part in (Any, numpy.generic) or isinstance(part, typing.TypeVar) for part in scalars):
        shape = Shape(EXTENSION, "an array", _read_array)
        shape.set_result(numpy.ndarray, None)
        return _with_parts(shape, shape_of(Any))
    if not all(isinstance(part, type) and issubclass(part, numpy.generic) for part in scalars):
        raise TypeError(f"wirecall: {_name(hint)} cannot be put on the wire: its elements are no type of NumPy's")
    name = "an array of " + " or ".join(part.__name__ for part in scalars)
    numbers = len(scalars) == 1 and scalars[0] in numpy.sctypeDict.values() and numpy.dtype(scalars[0]).kind in "iufc"

    def read(kind: int | None, value: Any) -> Any:
        array = _read_array(kind, value)
        if any(numpy.issubdtype(array.dtype, part) for part in scalars):
            return array
        if numbers and array.dtype.kind in "iufc":
            wanted = numpy.dtype(scalars[0])
            if kind is None:
                array = _narrowed(array, wanted)
            if numpy.can_cast(array.dtype, wanted, "safe"):
                return array.astype(wanted)
        raise other(array)

    def other(array: Any) -> ValueError:
        failure = ValueError(f"{name}, not of {array.dtype}")
        failure.wirecall_words = True  # type: ignore[attr-defined]
        return failure

    def check(array: Any) -> None:
        if not any(numpy.issubdtype(array.dtype, part) for part in scalars):
            raise other(array)

    shape = Shape(EXTENSION, name, read)
    shape.set_result(numpy.ndarray, check)
    return _with_parts(shape, shape_of(Any))


def _narrowed(array: Any, wanted: Any) -> Any:
    """Numbers of a list have no type of their own: they become one that holds them. Floats do not become integers."""
    import numpy

    if array.size == 0 or (array.dtype.kind == "f" and wanted.kind in "fc"):
        with numpy.errstate(over="ignore"):
            narrow = array.astype(wanted)
        return narrow if (numpy.isfinite(narrow) | ~numpy.isfinite(array)).all() else array
    if array.dtype.kind in "iu":
        narrow = array.astype(wanted)
        return narrow if wanted.kind in "fc" or (narrow == array).all() else array
    return array


def _read_array(kind: int | None, value: Any) -> Any:
    """Of `.npy` bytes, or of a list of numbers."""
    import numpy

    if kind == _values.NPY:
        return _values.array_of(value)
    if kind is None and isinstance(value, list):
        array = numpy.asarray(value)
        if not array.dtype.hasobject:
            return array
    raise ValueError


def _read_image(kind: int | None, value: Any) -> Any:
    if kind == _values.IMAGE:
        return _values.image_of(value)
    raise ValueError
