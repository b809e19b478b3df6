"""How a Python object that is no int, str, list, … is written on the wire: a plan for its type, made once.

The native encoder (src/encode.cpp) asks `plan_for` for each type that it has not met, and follows what it is told.
"""

from __future__ import annotations

import functools
import math
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MEMBERS, REPLACE, ELEMENTS, JSON, REFUSE, MAPPING, BINARY, EXTENSION = range(8)

# MessagePack's extension types; in JSON {"$image":"<base64>"}, {"$npy":"<base64>"} and {"$packed":"<base64>"}.
IMAGE, NPY, PACKED, TIMESTAMP = 73, 78, 80, -1


class Packed:
    """A packed value: bytes that only a layout explains (docs/packed.md)."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Packed) and other.data == self.data

    def __hash__(self) -> int:
        return hash(self.data)

    def __repr__(self) -> str:
        return f"Packed({self.data!r})"

    def _bytes(self) -> bytes:
        return self.data


def plan_for(kind: Any) -> tuple[int, Any]:
    """The plan for objects of that type: what to do, and with what."""
    import datetime
    import decimal
    import enum
    import pathlib
    import uuid
    from collections.abc import Iterable, Mapping

    if issubclass(kind, enum.Enum):
        return REPLACE, _value_of
    if issubclass(kind, bool | int):
        return REPLACE, int
    if issubclass(kind, float):
        return REPLACE, float.__float__
    if issubclass(kind, str):
        return REPLACE, _plain_str
    if issubclass(kind, bytearray | memoryview | bytes):
        return BINARY, None
    if issubclass(kind, Packed):
        return EXTENSION, (PACKED, kind._bytes)
    model = _model_plan(kind)
    if model is not None:
        return model
    if hasattr(kind, "__dataclass_fields__"):
        import dataclasses

        return MEMBERS, tuple((sys.intern(field.name), field.name) for field in dataclasses.fields(kind))
    if issubclass(kind, datetime.datetime | datetime.date | datetime.time):
        return REPLACE, kind.isoformat
    if issubclass(kind, datetime.timedelta):
        return REPLACE, format_duration
    if issubclass(kind, uuid.UUID | decimal.Decimal | pathlib.PurePath):
        return REPLACE, str
    array = _array_plan(kind)
    if array is not None:
        return array
    if issubclass(kind, Mapping):
        return MAPPING, None
    if issubclass(kind, tuple | list | set | frozenset):
        return ELEMENTS, None
    if issubclass(kind, Iterable) and not _is_lazy(kind):
        return ELEMENTS, None
    if hasattr(kind, "__await__"):
        return REPLACE, _refuse_awaitable
    name = f"{kind.__module__}.{kind.__qualname__}"
    return REFUSE, f"{name} has no form on the wire: make it a dataclass, a dict or a list"


def _is_lazy(kind: Any) -> bool:
    """Iterators are used up by reading them: to send one is mostly a mistake."""
    return hasattr(kind, "__next__")


def _refuse_awaitable(value: Any) -> Any:
    close = getattr(value, "close", None)
    if close is not None:  # a coroutine, which Python would warn of as well
        close()
    raise TypeError(f"a {type(value).__name__} has no form on the wire, it is to be awaited: make the method async def")


def _value_of(member: Any) -> Any:
    return member.value


def _plain_str(text: str) -> str:
    return str.__str__(text)


def _model_plan(kind: Any) -> tuple[int, Any] | None:
    """Models of libraries that may be there, if they are in use at all."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and issubclass(kind, pydantic.BaseModel):
        return JSON, _pydantic_json
    msgspec = sys.modules.get("msgspec")
    if msgspec is not None and issubclass(kind, msgspec.Struct):
        return JSON, msgspec.json.encode
    protobuf = sys.modules.get("google.protobuf.message")
    if protobuf is not None and issubclass(kind, protobuf.Message):
        from . import _protobuf

        return JSON, _protobuf.write
    return None


def _pydantic_json(model: Any) -> bytes:
    text: str = model.model_dump_json(by_alias=True)
    return text.encode()


def _array_plan(kind: Any) -> tuple[int, Any] | None:
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if issubclass(kind, numpy.ma.MaskedArray):
            return REFUSE, "a masked array has no form on the wire, which has no masks: send filled() or its parts"
        if issubclass(kind, numpy.longdouble):  # whose `item` is one of its own kind
            return REPLACE, float
        if issubclass(kind, numpy.clongdouble):
            return REPLACE, complex
        if issubclass(kind, numpy.ndarray):
            return EXTENSION, (NPY, npy_bytes)
        if issubclass(kind, numpy.generic):
            return REPLACE, kind.item
    image = sys.modules.get("PIL.Image")
    if image is not None and issubclass(kind, image.Image):
        return EXTENSION, (IMAGE, png_bytes)
    return None


def npy_bytes(array: Any) -> bytes | tuple[bytes, Any]:
    """What a .npy file holds: its header, and the array's own memory where that is as it is in the file."""
    import numpy

    if array.dtype.hasobject:
        raise TypeError("an array of Python objects has no form on the wire")
    array = numpy.asarray(array)
    by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
    try:
        header = _header(array.dtype, by_columns, array.shape)
        rows = array.T if by_columns else numpy.ascontiguousarray(array)
        return header, rows.reshape(-1).view(numpy.uint8)
    except (ValueError, TypeError):  # a header of another version, or elements of no bytes
        import io

        file = io.BytesIO()
        numpy.lib.format.write_array(file, array, allow_pickle=False)
        return file.getvalue()


@functools.lru_cache(256)
def _header(dtype: Any, by_columns: bool, shape: tuple[int, ...]) -> bytes:
    """ValueError where version 1.0 has no place for it."""
    import io

    import numpy

    file = io.BytesIO()
    described = {"descr": numpy.lib.format.dtype_to_descr(dtype), "fortran_order": by_columns, "shape": shape}
    numpy.lib.format.write_array_header_1_0(file, described)
    return file.getvalue()


def array_of(npy: bytes | bytearray) -> Any:
    """The array of a .npy file, whose memory becomes the array's. ValueError for what is none."""
    import numpy

    if npy[6:7] == b"\x03":  # names that are not Latin
        import io

        return numpy.lib.format.read_array(io.BytesIO(npy), allow_pickle=False)
    shape, by_columns, dtype, begin = _read_header(bytes(npy[: _header_end(npy)]))
    count = math.prod(shape)
    if count == 0:
        return numpy.zeros(shape, dtype)
    if dtype.itemsize == 0:
        raise ValueError("elements of no bytes")
    array = numpy.frombuffer(npy, dtype, count, begin)
    array = array.reshape(shape[::-1]).T if by_columns else array.reshape(shape)
    return array if array.flags.aligned else array.copy()


def _header_end(npy: bytes | bytearray) -> int:
    """A header says its own size, in two bytes or, from version 2.0 on, in four."""
    wide = npy[6:7] != b"\x01"
    return 12 + int.from_bytes(npy[8:12], "little") if wide else 10 + int.from_bytes(npy[8:10], "little")


@functools.lru_cache(256)
def _read_header(header: bytes) -> tuple[tuple[int, ...], bool, Any, int]:
    """What a header says, which peers mostly repeat, and where it ends."""
    import io

    import numpy

    file = io.BytesIO(header)
    major, minor = numpy.lib.format.read_magic(file)
    if (major, minor) == (1, 0):
        shape, by_columns, dtype = numpy.lib.format.read_array_header_1_0(file)
    elif (major, minor) == (2, 0):
        shape, by_columns, dtype = numpy.lib.format.read_array_header_2_0(file)
    else:
        raise ValueError(f"a .npy file of version {major}.{minor}")
    if dtype.hasobject:
        raise ValueError("an array of Python objects has no form on the wire")
    if min(shape, default=0) < 0:
        raise ValueError("an array of less than nothing")
    return shape, by_columns, dtype, file.tell()


def png_bytes(image: Any) -> bytes:
    import io

    file = io.BytesIO()
    try:
        image.save(file, format="PNG")
    except OSError:
        raise TypeError(f'an image of mode {image.mode} is no PNG: send image.convert("RGB"), or its array') from None
    return file.getvalue()


def image_of(data: bytes | bytearray, *, load: bool = True) -> Any:
    """`load`: all of it, and not its head alone, so that what is wrong with it is told now."""
    import io

    from PIL import Image

    image = Image.open(io.BytesIO(data), formats=("PNG", "JPEG"))
    if load:
        image.load()
    return image


def of_extension(kind: int, data: bytes | bytearray) -> Any:
    """What an extension is where no hint asks for anything: an array, an image, a packed value, a point in time."""
    if kind == NPY:
        return array_of(data)
    if kind == IMAGE:
        return image_of(data, load=False)  # nobody has asked for one yet, and it may be a large one
    if kind == PACKED:
        return Packed(bytes(data))
    if kind == TIMESTAMP:
        return _datetime_of(data)
    raise ValueError(f"no extension of type {kind}")


def _datetime_of(data: bytes | bytearray) -> Any:
    """MessagePack's timestamp: 4, 8 or 12 bytes."""
    import datetime

    if len(data) == 4:
        seconds, nanoseconds = int.from_bytes(data), 0
    elif len(data) == 8:
        both = int.from_bytes(data)
        seconds, nanoseconds = both & ((1 << 34) - 1), both >> 34
    else:
        seconds, nanoseconds = int.from_bytes(data[4:], signed=True), int.from_bytes(data[:4])
    if len(data) not in (4, 8, 12) or nanoseconds >= 1_000_000_000:
        raise ValueError("a point in time of 4, 8 or 12 bytes")
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return epoch + datetime.timedelta(seconds=seconds, microseconds=nanoseconds // 1000)


def format_duration(duration: Any) -> str:
    """ISO 8601: "PT1.5S", "-P1DT2H"."""
    microseconds = (duration.days * 86_400 + duration.seconds) * 1_000_000 + duration.microseconds
    sign = "-" if microseconds < 0 else ""
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    days, seconds = divmod(seconds, 86_400)
    hours, seconds = divmod(seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    text = f"{hours}H" if hours else ""
    text += f"{minutes}M" if minutes else ""
    if seconds or fraction:
        text += f"{seconds}.{fraction:06}".rstrip("0") + "S" if fraction else f"{seconds}S"
    if not text and not days:
        return "PT0S"
    return sign + "P" + (f"{days}D" if days else "") + ("T" + text if text else "")
