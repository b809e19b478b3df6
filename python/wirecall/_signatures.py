"""What a method's description by rpc.discover is to Python: a signature, a line and a docstring.

The description comes from the wire, and may be anything. These functions raise nothing for it, take bounded time and
run nothing that it says."""

from __future__ import annotations

import functools
import inspect
import keyword
import operator
import re
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ._catalogue import Description

# Of a schema: how deep it is looked into, and at how many schemas in it.
_DEPTH_MAX, _SCHEMAS_MAX = 8, 200
_CHOICES_MAX = 12
_DEFAULT_CHARACTERS_MAX = 80
_LINE_CHARACTERS_MAX = 500
_DOCS_CHARACTERS_MAX = 20_000

_PLAIN = {"integer": int, "number": float, "string": str, "boolean": bool, "null": None}


class _Unknown:
    """The default of a parameter that may be missing, where the server does not tell it, or it is too long to show."""

    def __repr__(self) -> str:
        return "..."


_UNKNOWN = _Unknown()


def signature_of(description: Description) -> Signature:
    """Parameters whose names Python cannot take as keywords are positional only, and those that have no default after
    one that has are by keyword only."""
    params = _objects(description.get("params"))
    names, positional_only = _names_of(params)
    parameters: list[Parameter] = []
    optional = False
    for at, (name, param) in enumerate(zip(names, params, strict=True)):
        kind: Any = Parameter.POSITIONAL_ONLY if at < positional_only else Parameter.POSITIONAL_OR_KEYWORD
        default: Any = _default_of(param)
        if param.get("x-rest") is True and at == len(params) - 1:
            kind, default = Parameter.VAR_POSITIONAL, Parameter.empty
        elif default is Parameter.empty and optional:
            if kind is Parameter.POSITIONAL_ONLY:
                default = _UNKNOWN
            else:
                kind = Parameter.KEYWORD_ONLY
        optional = optional or default is not Parameter.empty
        parameters.append(Parameter(name, kind, default=default, annotation=_hint_of(param)))
    returned = _hint_of(description.get("result"))
    return Signature(sorted(parameters, key=lambda one: one.kind), return_annotation=returned)


def line_of(name: str, description: Description | None) -> str:
    """`sum(a: int, b: int = 1) -> int`, or the name alone where nothing is known. Printable."""
    line = name if description is None else f"{name}{signature_of(description)}"
    return shortened(printable(line, " "), _LINE_CHARACTERS_MAX)


def docs_of(description: Description) -> str:
    """Summary and description of the method, and what is said of its parameters and result. Never empty."""
    parts = [text for text in (_text(description, "summary"), _text(description, "description")) if text]
    params = _objects(description.get("params"))
    told = [(name, _text(param, "description")) for name, param in zip(_names_of(params)[0], params, strict=True)]
    if lines := [f"- `{name}`: {text}" for name, text in told if text]:
        parts.append("\n".join(lines))
    if isinstance(result := description.get("result"), dict) and (text := _text(result, "description")):
        parts.append(f"Returns {text}")
    if "x-input" in description:
        hint = _hint_of(description["x-input"])
        of = "" if hint is Parameter.empty else f" of {inspect.formatannotation(hint)}"
        parts.append(f"Takes a stream{of}, as `_input=`.")
    text = "\n\n".join(parts) or "The server does not describe it."
    return shortened(printable(text), _DOCS_CHARACTERS_MAX)


def summary_of(description: Description) -> str:
    """The first line of what is said of it."""
    text = _text(description, "summary") or _text(description, "description")
    return shortened(printable(text.partition("\n")[0], " "), _LINE_CHARACTERS_MAX)


def printable(text: str, line_break: str = "\n") -> str:
    """The text without what would control a terminal."""
    return "".join(line_break if one == "\n" else one if one.isprintable() else "�" for one in text)


def shortened(text: str, characters_max: int) -> str:
    return text if len(text) <= characters_max else text[: characters_max - 1] + "…"


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(of: dict[str, Any], member: str) -> str:
    text = of.get(member)
    return text[:_DOCS_CHARACTERS_MAX].strip() if isinstance(text, str) else ""


def _names_of(params: list[dict[str, Any]]) -> tuple[list[str], int]:
    """A name for each that is an identifier, and no other's; and how many of the first are positional only, since
    Python has no keyword for the last of them."""
    names: dict[str, None] = {}
    positional_only = 0
    for at, param in enumerate(params):
        said = param.get("name")
        name = said if isinstance(said, str) else ""
        if not name.isidentifier() or name in names:
            name = re.sub(r"\W", "_", name[:50])
            name = name if name.isidentifier() else f"_{name}"
            while name in names:
                name = f"{name}_{at}"
        if name != said or keyword.iskeyword(name):
            positional_only = at + 1
        names[name] = None
    return list(names), positional_only


def _default_of(param: dict[str, Any]) -> Any:
    if param.get("required") is True:
        return Parameter.empty
    schema = param.get("schema")
    if not isinstance(schema, dict) or "default" not in schema or not _is_short(schema["default"]):
        return _UNKNOWN
    return schema["default"]


def _is_short(value: object) -> bool:
    if isinstance(value, str | bytes):
        return len(value) <= _DEFAULT_CHARACTERS_MAX
    try:
        return len(repr(value)) <= _DEFAULT_CHARACTERS_MAX
    except ValueError:  # an int of more digits than Python writes
        return False


def _hint_of(described: object) -> Any:
    """The type by the schema of a parameter, result or stream; no hint where it says none."""
    schema = described.get("schema") if isinstance(described, dict) else None
    kind = _Types(schema).of(schema, _DEPTH_MAX)
    return Parameter.empty if kind is Any else kind


class _Types:
    """The types of one schema, whose definitions are in it."""

    def __init__(self, root: object) -> None:
        definitions = root.get("$defs", root.get("definitions")) if isinstance(root, dict) else None
        self._definitions = definitions if isinstance(definitions, dict) else {}
        self._left = _SCHEMAS_MAX

    def of(self, schema: object, depth: int) -> Any:
        self._left -= 1
        if not isinstance(schema, dict) or depth == 0 or self._left < 0:
            return Any
        depth -= 1
        choices = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(choices, list) and choices:
            return _literal(choices)
        for word in ("anyOf", "oneOf"):
            if isinstance(kinds := schema.get(word), list) and kinds:
                return self._union(kinds, depth)
        if isinstance(kinds := schema.get("allOf"), list) and len(kinds) == 1:
            return self.of(kinds[0], depth)
        if isinstance(reference := schema.get("$ref"), str):
            return self.of(self._definitions.get(reference.rpartition("/")[2]), depth)
        kind = schema.get("type", "object" if "properties" in schema else None)
        if isinstance(kind, list) and kind:
            return self._union([{**schema, "type": one} for one in kind[: _CHOICES_MAX + 1]], depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind == "object":
            return self._object(schema, depth)
        return _PLAIN.get(kind, Any) if isinstance(kind, str) else Any

    def _union(self, schemas: list[Any], depth: int) -> Any:
        if len(schemas) > _CHOICES_MAX:
            return Any
        kinds = dict.fromkeys(self.of(one, depth) for one in schemas)
        return Any if Any in kinds else functools.reduce(operator.or_, kinds)

    def _array(self, schema: dict[str, Any], depth: int) -> Any:
        items = schema.get("items")
        first = items if isinstance(items, list) else schema.get("prefixItems")
        if isinstance(first, list) and 0 < len(first) <= _CHOICES_MAX:
            return tuple[tuple(self.of(one, depth) for one in first)]  # type: ignore[misc]
        if not isinstance(items, dict):
            return list
        return list[self.of(items, depth)]  # type: ignore[misc]

    def _object(self, schema: dict[str, Any], depth: int) -> Any:
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties:
            if "$bytes" in properties:
                return bytes
            return _array_of_numpy() if "$npy" in properties else dict
        others = schema.get("additionalProperties")
        return dict[str, self.of(others, depth)] if isinstance(others, dict) else dict  # type: ignore[misc]


def _literal(values: list[Any]) -> Any:
    if len(values) > _CHOICES_MAX or not all(
        value is None or (isinstance(value, str | int) and _is_short(value)) for value in values
    ):
        return Any
    return Literal[tuple(values)]


def _array_of_numpy() -> Any:
    try:
        import numpy
    except ImportError:
        return Any
    return numpy.ndarray
