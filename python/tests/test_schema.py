"""What documents say of Python's types: rpc.discover, and `wirecall describe` for people."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import pathlib
import subprocess
import sys
from typing import Annotated, Any, Literal

import annotated_types
import msgspec
import pydantic
import pytest

import wirecall
from wirecall._shapes import shape_of

TOOL = pathlib.Path(sys.executable).with_name("wirecall")


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


@dataclasses.dataclass
class Item:
    name: str
    size: Size = Size.SMALL


class Flat(pydantic.BaseModel):
    "What is flat."

    count: int = pydantic.Field(1, ge=1, description="how many")
    due: datetime.date


class Order(pydantic.BaseModel):
    items: list[Item]
    gift: Item | None = None


class Node(pydantic.BaseModel):
    children: list[Node] = []


class Point(msgspec.Struct):
    x: int
    y: int = 0


class Path(msgspec.Struct):
    points: list[Point]
    then: Path | None = None


def schema_of(hint: Any) -> Any:
    return json.loads(shape_of(hint).schema)


def test_a_model_has_the_schema_that_its_library_has_for_it():
    assert schema_of(Flat) == Flat.model_json_schema()
    (_,), components = msgspec.json.schema_components([Point])
    assert schema_of(Point) == components["Point"]


def references(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        own = {schema["$ref"]} if "$ref" in schema else set()
        return own.union(*(references(value) for value in schema.values()))
    return set().union(*(references(value) for value in schema)) if isinstance(schema, list) else set()


@pytest.mark.parametrize(
    "hint", [Order, Node, Path, list[Order], dict[str, Node | Path], tuple[Order, Order, Flat], Order | None]
)
def test_what_a_schema_refers_to_is_in_it(hint):
    schema = schema_of(hint)
    assert references(schema) == {f"#/$defs/{name}" for name in schema["$defs"]}


def test_models_of_one_name_are_told_apart():
    def made(member: str) -> Any:
        class Pair(pydantic.BaseModel):
            one: Flat
            other: Flat

        return pydantic.create_model("Pair", __base__=Pair, **{member: (int, ...)})

    first, second = schema_of(tuple[made("a"), made("b")])["items"]
    assert first != second


def test_tuples_are_those_of_draft_07_which_openrpc_1_has():
    pair = {"items": [{"type": "integer"}, {"type": "string"}], "additionalItems": False, "minItems": 2, "maxItems": 2}
    assert schema_of(tuple[int, str]) == {"type": "array", **pair}

    class Held(pydantic.BaseModel):
        pair: tuple[int, str]

    assert {key: schema_of(Held)["properties"]["pair"][key] for key in pair} == pair
    assert "prefixItems" not in json.dumps(schema_of(Held))


def test_constraints_are_keywords():
    assert schema_of(Annotated[float, pydantic.Field(ge=0, lt=1)]) == {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
    }
    assert schema_of(Annotated[str, annotated_types.Len(1, 3)]) == {"type": "string", "minLength": 1, "maxLength": 3}
    assert schema_of(Annotated[list[int], msgspec.Meta(max_length=3)])["maxItems"] == 3
    assert schema_of(Annotated[datetime.date, annotated_types.Ge(datetime.date(2026, 1, 1))])["format"] == "date"
    assert schema_of(Literal[1, 2, "b"]) == {"enum": [1, 2, "b"]}


def test_defaults_are_told_where_they_have_a_form(app):
    @app
    def many(
        a: int,
        size: Size = Size.SMALL,
        due: datetime.date = datetime.date(2026, 2, 27),
        item: Item = Item("cup"),  # noqa: B008
        flat: Flat | None = None,
        share: float = 0.5,
        unlike: float = float("nan"),
        mark: Any = object(),  # noqa: B008
        long: str = "x" * 2000,
    ) -> None: ...

    with app.serving() as uri, wirecall.connect(uri) as c:
        method = next(entry for entry in c["rpc.discover"]()["methods"] if entry["name"] == "many")
    schemas = {param["name"]: param["schema"] for param in method["params"]}
    defaults = {name: schema["default"] for name, schema in schemas.items() if "default" in schema}
    assert defaults == {
        "size": "small",
        "due": "2026-02-27",
        "item": {"name": "cup", "size": "small"},
        "flat": None,
        "share": 0.5,
    }
    assert [param["name"] for param in method["params"] if param["required"]] == ["a"]


def test_describe_shows_members_and_defaults(app):
    @app
    def order(order: Order, count: int = 1) -> Flat: ...

    with app.serving() as uri:
        done = subprocess.run(
            [TOOL, "describe", "order", "--url", uri], capture_output=True, text=True, timeout=300, check=True
        )
    assert [" ".join(line.split()) for line in done.stdout.splitlines()[:5]] == [
        "order(order, count?) -> {count?: integer, due: string}",
        "",
        "PARAM TYPE",
        'order Order{items: [Item{name: string, size?: "small" | "large"}], gift?: Item | null}',
        "count integer = 1",
    ]


def test_a_broker_tells_what_its_clients_provide(broker):
    with wirecall.connect(broker) as provider, wirecall.connect(broker) as caller:

        def paint(share: Annotated[float, "how much of it"] = 0.5) -> Flat: ...

        provider.provide("paint", paint)
        method = next(entry for entry in caller["rpc.discover"]()["methods"] if entry["name"] == "paint")
    assert method["params"] == [
        {
            "name": "share",
            "schema": {"type": "number", "default": 0.5},
            "description": "how much of it",
            "required": False,
        }
    ]
    assert method["result"]["schema"] == Flat.model_json_schema()
