"""to_frame: results that are arrays of objects, as a frame of pandas or polars. Neither is needed by the package."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

if TYPE_CHECKING:
    import pandas
    import polars


@overload
def to_frame(rows: Iterable[Any], library: Literal["pandas"] = "pandas") -> pandas.DataFrame: ...
@overload
def to_frame(rows: Iterable[Any], library: Literal["polars"]) -> polars.DataFrame: ...
def to_frame(rows: Iterable[Any], library: str = "pandas") -> Any:
    """Returns a frame with a row for each object and a column for each of their fields, in the order in which they
    come: `wirecall.to_frame(c.orders())`, `wirecall.to_frame(c.orders.stream())`.

    - `rows`: the result of a call, a stream, or any iterable of dicts, dataclasses, named tuples, and models of msgspec
      and pydantic
    - `library`: "pandas" or "polars"

    A field that is missing or None is NA in pandas and null in polars; integers beside one stay integers. A column of
    several types is one of objects in pandas; polars makes one type of them. Raises TypeError for what is no array of
    objects, and ImportError where the library is not installed."""
    make = {"pandas": _pandas, "polars": _polars}.get(library)
    if make is None:
        raise ValueError(f'wirecall: to_frame makes frames of "pandas" and "polars", not of {library!r}')
    if isinstance(rows, AsyncIterable):
        raise TypeError("wirecall: a frame is made of what has come: [row async for row in c.rows.stream()]")
    if isinstance(rows, Mapping):
        raise TypeError("wirecall: a frame is made of an array of objects, not of one object; of one, [result]")
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes | bytearray):
        raise TypeError(f"wirecall: a frame is made of an array of objects, not of {_kind_of(rows)}")
    records = [_record_of(row, at) for at, row in enumerate(rows)]
    names = dict.fromkeys(name for record in records for name in record)
    try:
        return make({name: [record.get(name) for record in records] for name in names}, len(records))
    except ModuleNotFoundError as failure:
        if failure.name != library:
            raise
        raise ImportError(f"wirecall: {library} is not installed: pip install {library}") from None


def _record_of(row: Any, at: int) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    for names in ("__struct_fields__", "model_fields", "_fields"):  # of msgspec, pydantic, and a named tuple
        if (fields := getattr(type(row), names, None)) is not None:
            return {name: getattr(row, name) for name in fields}
    raise TypeError(f"wirecall: a frame is made of an array of objects; row {at} is {_kind_of(row)}")


def _kind_of(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _pandas(columns: dict[str, list[Any]], count: int) -> Any:
    import pandas

    def column(values: list[Any]) -> Any:
        if all(value is not None for value in values):
            return pandas.Series(values)
        try:
            return pandas.Series(pandas.array(values))  # whose types have NA, so that integers do not become floats
        except (TypeError, ValueError, OverflowError):
            return pandas.Series([pandas.NA if value is None else value for value in values], dtype=object)

    return pandas.DataFrame({name: column(values) for name, values in columns.items()}, index=range(count))


def _polars(columns: dict[str, list[Any]], count: int) -> Any:
    import polars

    def column(values: list[Any]) -> Any:
        with contextlib.suppress(TypeError, ValueError, OverflowError):  # as for NumPy's arrays of which one is missing
            series = polars.Series(values, strict=False)
            if series.null_count() == sum(value is None for value in values):  # else one was too large for its type
                return series
        return polars.Series(values, dtype=polars.Object)

    return polars.DataFrame({name: column(values) for name, values in columns.items()})
