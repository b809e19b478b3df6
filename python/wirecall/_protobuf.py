"""Messages of protobuf as values, in proto3 JSON: how they are read and written, by protobuf's own json_format, and
their schemas. Imported when a type is one of them, and so after protobuf itself."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from google.protobuf import descriptor_pool, json_format, message_factory
from google.protobuf.message import DecodeError

from ._library_types import at_place

DEPTH_MAX = 100
_TOO_MANY = f"no more than {DEPTH_MAX} levels of messages"

# By FieldDescriptor.type, as the descriptors of .proto files number them.
_BY_NUMBERS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((5, 15, 17), {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}),
    ((7, 13), {"type": "integer", "minimum": 0, "maximum": 2**32 - 1}),
    ((3, 16, 18), {"type": "string", "format": "int64"}),
    ((4, 6), {"type": "string", "format": "uint64"}),
    ((1, 2), {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}),
    ((8,), {"type": "boolean"}),
    ((9,), {"type": "string"}),
    ((12,), {"type": "string", "contentEncoding": "base64"}),
]
_SCALARS = {number: schema for numbers, schema in _BY_NUMBERS for number in numbers}
_WELL_KNOWN: dict[str, dict[str, Any]] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string", "pattern": "^-?[0-9]+([.][0-9]{1,9})?s$"},
    "google.protobuf.FieldMask": {"type": "string"},
    "google.protobuf.Any": {"type": "object", "properties": {"@type": {"type": "string"}}},
    "google.protobuf.Struct": {"type": "object"},
    "google.protobuf.ListValue": {"type": "array"},
    "google.protobuf.Value": {},
}
_WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ["Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes"]
)


_OWN_BYTES = re.compile(rb'\s*\{\s*"\$message"\s*:')
# What json_format puts before the words of an error, once for each level.
_STEP = re.compile(r"Failed to parse (\w+) field: ")


def _has_form_of_its_own(full_name: str) -> bool:
    return full_name in _WELL_KNOWN or full_name in _WRAPPERS


def read(kind: Any, text: bytes) -> Any:
    """From proto3 JSON, or from the message's own bytes, as `{"$message":"<base64>"}`. ValueError with protobuf's own
    words."""
    if (own := _own_bytes(text)) is not None:
        try:
            message = kind.FromString(own)
        except DecodeError:
            raise ValueError(f"the bytes of a {kind.DESCRIPTOR.full_name}") from None
        _check_levels(message, DEPTH_MAX)
        return message
    if not _has_form_of_its_own(kind.DESCRIPTOR.full_name) and not text.lstrip().startswith(b"{"):
        raise ValueError("an object")  # json_format takes an empty array
    try:
        message = json_format.Parse(text, kind(), max_recursion_depth=DEPTH_MAX)
    except json_format.ParseError as failure:
        words, place = str(failure), []
        while step := _STEP.match(words):
            place.append(step[1])
            words = words[step.end() :]
        raise at_place(ValueError(words.partition("\n")[0].rstrip(".")), tuple(place)) from None
    _check_depth(message, text)
    return message


def _own_bytes(text: bytes) -> bytes | None:
    if _OWN_BYTES.match(text) is None:
        return None
    held = json.loads(text)
    own = held["$message"]
    if len(held) != 1 or not isinstance(own, str):
        return None
    try:
        return base64.b64decode(own, validate=True)
    except ValueError:
        raise ValueError("base64") from None


def _check_depth(message: Any, text: bytes) -> None:
    """ValueError where the message, whose JSON that is, nests deeper than DEPTH_MAX levels."""
    # A level of JSON is three of protobuf's at most.
    if text.count(b"{") + text.count(b"[") > DEPTH_MAX // 3:
        _check_levels(message, DEPTH_MAX)


def _check_levels(message: Any, left: int) -> None:
    """ValueError where there are more than `left` levels, as protobuf counts them in bytes: an entry of a map is one,
    and what an Any holds counts as well. So no call is deeper within the others than that."""
    if left <= 0:
        raise ValueError(_TOO_MANY)
    if message.DESCRIPTOR.full_name == "google.protobuf.Any" and message.type_url:
        try:
            held = descriptor_pool.Default().FindMessageTypeByName(message.type_url.rpartition("/")[2])
        except KeyError:
            return None  # nobody here looks into it
        try:
            return _check_levels(message_factory.GetMessageClass(held).FromString(message.value), left - 1)
        except DecodeError:  # protobuf counts as well
            raise ValueError(f"the bytes of a {held.full_name} in an Any, {_TOO_MANY}") from None
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if not field.message_type.GetOptions().map_entry:
            for one in value if _is_repeated(field) else [value]:
                _check_levels(one, left - 1)
        elif field.message_type.fields_by_name["value"].message_type is not None:
            for one in value.values():
                _check_levels(one, left - 2)
    return None


def write(message: Any) -> bytes:
    """ValueError where it nests deeper than whoever is to read it may take."""
    try:
        fields = json_format.MessageToDict(message)
    except RecursionError:  # some three calls a level
        raise ValueError(_TOO_MANY) from None
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
    _check_depth(message, text)
    return text


def schema_of(descriptor: Any, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of a message, and by their full names those of the others that it refers to as `#/$defs/name.full`."""
    found: dict[str, Any] = {}

    def use(type_: Any) -> dict[str, Any]:
        full: str = type_.full_name
        if full in _WELL_KNOWN:
            return dict(_WELL_KNOWN[full])
        if full in _WRAPPERS:
            return value(type_.fields_by_name["value"])
        if full not in found:
            found[full] = {}  # it may hold itself
            found[full] = {
                "title": full,
                "type": "object",
                "properties": {field.json_name: field_schema(field) for field in type_.fields},
                "additionalProperties": False,
            }
        return {"$ref": f"#/$defs/{name}.{full}"}

    def field_schema(field: Any) -> dict[str, Any]:
        if not _is_repeated(field):
            return value(field)
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            return {"type": "object", "additionalProperties": value(entry.fields_by_name["value"])}
        return {"type": "array", "items": value(field)}

    def value(field: Any) -> dict[str, Any]:
        if field.message_type is not None:
            return use(field.message_type)
        if field.enum_type is None:
            return dict(_SCALARS[field.type])
        if field.enum_type.full_name == "google.protobuf.NullValue":
            return {"type": "null"}
        return {
            "title": field.enum_type.full_name,
            "type": "string",
            "enum": [one.name for one in field.enum_type.values],
        }

    return use(descriptor), found


def _is_repeated(field: Any) -> bool:
    if hasattr(field, "is_repeated"):
        return bool(field.is_repeated)
    return bool(field.label == field.LABEL_REPEATED)  # before protobuf 6.31
