"""Annotated[T, …] as a shape: the bounds of annotated_types and of any object with the same attributes. pydantic and
msgspec check what they alone understand."""

from __future__ import annotations

import functools
import json
import re
from typing import Any, get_args

from ._library_types import by_msgspec, by_pydantic
from ._native import Shape
from ._shapes import converted, set_schema, shape_of


def annotated(hint: Any) -> Shape:
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

    limited = converted(shape, convert, "")
    limited.set_result(None, convert)
    schema = json.loads(shape.schema)
    if schema.get("type") == "integer" and schema.get("minimum") == -(2**63) and schema.get("maximum") == 2**64 - 1:
        del schema["minimum"], schema["maximum"]  # what some encodings have room for is no bound of the hint's
    definitions = schema.pop("$defs", {})
    if "$ref" not in schema and not definitions:  # those say themselves what there is to say
        set_schema(limited, "", schema | _keywords(extras, schema.get("type", "")))
    return limited


def _by_library(hint: Any, part: Any) -> Shape:
    """Of what a hint is annotated with, which is another library's to understand. To leave it aside would let through
    what it is there to refuse."""
    if type(part).__module__.partition(".")[0] == "msgspec":
        return by_msgspec(hint, "")
    if type(part).__module__.partition(".")[0] == "pydantic" or hasattr(part, "__get_pydantic_core_schema__"):
        import pydantic

        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(hint)
        # Strict: no coercion between bool, number and string, as everywhere.
        return by_pydantic(lambda text: adapter.validate_json(text, strict=True), adapter.json_schema, "")
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
