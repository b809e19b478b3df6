"""Values of all kinds: dataclasses, enumerations, dates, bounds. What does not fit is refused with the way to it."""

import dataclasses
import datetime
import enum
from typing import Annotated, NamedTuple

import wirecall

app = wirecall.Server("types")


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Point(NamedTuple):
    x: float
    y: float


@dataclasses.dataclass
class Box:
    name: str
    size: Size
    corners: list[Point] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class AtMost:
    """A bound, as the package annotated_types has it."""

    le: float


@app
def pack(box: Box, when: datetime.date, weight: Annotated[float, AtMost(20)] = 1.0) -> dict[str, str]:
    return {"label": f"{box.name} ({box.size.name}, {len(box.corners)} corners)", "due": when.isoformat()}


with app.serving() as uri, wirecall.connect(uri) as c:
    print(c.pack(Box("cups", Size.LARGE, [Point(0, 0), Point(1, 2)]), datetime.date(2026, 2, 27)))
    print(c.pack({"name": "cups", "size": "small"}, "2026-02-27"))
    for wrong in (
        {"box": {"name": "cups", "size": "huge"}, "when": "2026-02-27"},
        {"box": {"name": "cups", "size": "small", "corners": [[0, 0], [1, "two"]]}, "when": "2026-02-27"},
        {"box": {"name": "cups", "size": "small"}, "when": "2026-02-27", "weight": 30},
    ):
        try:
            c.pack(**wrong)
        except wirecall.InvalidParams as error:
            print(error)
