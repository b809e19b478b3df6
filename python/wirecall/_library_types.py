"""Types of NumPy, PIL, pydantic, msgspec and protobuf as shapes. None of these is imported that is not there yet."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import types
import typing
import weakref
from typing import Any, Union, get_args, get_origin

from . import _values
from ._native import Shape
from ._shapes import EXTENSION, RAW, converted, name_of, set_schema, shape_of, with_parts


def model_shape(kind: Any, hint: Any) -> Shape | None:
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and issubclass(kind, pydantic.BaseModel):
        return by_pydantic(kind.model_validate_json, kind.model_json_schema, _name_for(kind), kind)
    msgspec = sys.modules.get("msgspec")
    if msgspec is not None and issubclass(kind, msgspec.Struct):
        return by_msgspec(hint, _name_for(kind) if hint is kind else "", kind)
    protobuf = sys.modules.get("google.protobuf.message")
    if protobuf is not None and issubclass(kind, protobuf.Message):
        return _by_protobuf(kind)
    return None


def _by_protobuf(kind: Any) -> Shape:
    from . import _protobuf

    shape = Shape(RAW, "", functools.partial(_protobuf.read, kind))
    shape.set_result(kind, None)
    name = _name_for(kind)
    set_schema(shape, name, *_protobuf.schema_of(kind.DESCRIPTOR, name))
    return shape


def by_pydantic(validate: Any, schema_of: Any, name: str, exact: type | None = None) -> Shape:
    import pydantic

    def read(text: bytes) -> Any:
        try:
            return validate(text)
        except pydantic.ValidationError as failure:
            first = failure.errors(include_url=False, include_context=False)[0]
            raise at_place(ValueError(first["msg"]), first["loc"]) from None

    shape = Shape(RAW, "", read)
    shape.set_result(exact, None)
    with contextlib.suppress(Exception):  # a model of which it makes none has no schema
        schema = schema_of(ref_template=f"#/$defs/{name}.{{model}}")
        set_schema(shape, name, schema, schema.pop("$defs", {}))
    return shape


def by_msgspec(hint: Any, name: str, exact: type | None = None) -> Shape:
    import msgspec

    decoder = msgspec.json.Decoder(hint)

    def read(text: bytes) -> Any:
        try:
            return decoder.decode(text)
        except msgspec.ValidationError as failure:
            words, _, where = str(failure).partition(" - at `$")
            raise at_place(ValueError(words), _steps(where.rstrip("`"))) from None

    shape = Shape(RAW, "", read)
    shape.set_result(exact, None)
    with contextlib.suppress(Exception):
        (schema,), components = msgspec.json.schema_components([hint], ref_template=f"#/$defs/{name}.{{name}}")
        set_schema(shape, name, schema, components)
    return shape


_named: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


def _name_for(kind: Any) -> str:
    """Of a definition in documents: each class has one of its own, with a dot in it."""
    plain = re.sub(r"[^\w.]+", "_", f"{kind.__module__}.{kind.__qualname__}")
    name, count = plain, 2
    while _named.setdefault(name, kind) is not kind:
        name, count = f"{plain}{count}", count + 1
    return name


def at_place(failure: ValueError, loc: tuple[Any, ...]) -> ValueError:
    failure.wirecall_loc = tuple(step if isinstance(step, int) else str(step) for step in loc)  # type: ignore[attr-defined]
    return failure


def _steps(path: str) -> tuple[Any, ...]:
    """msgspec's `.a[1].b` as steps."""
    return tuple(
        int(index) if index.isdigit() else (name or index) for name, index in re.findall(r"\.(\w+)|\[([^]]*)\]", path)
    )


def array_shape(kind: Any, hint: Any) -> Shape | None:
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if issubclass(kind, numpy.ndarray):
            return _array_of(hint)
        if issubclass(kind, numpy.generic):
            base = {"b": bool, "i": int, "u": int, "f": float}.get(numpy.dtype(kind).kind)
            if base is None:
                return None
            return converted(base, functools.partial(_scalar, kind), f"a {kind.__name__}", exact=kind)
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
        return with_parts(shape, shape_of(Any))
    if not all(isinstance(part, type) and issubclass(part, numpy.generic) for part in scalars):
        raise TypeError(f"wirecall: {name_of(hint)} cannot be put on the wire: its elements are no type of NumPy's")
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
    return with_parts(shape, shape_of(Any))


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
