"""What notebooks show: methods as a table in HTML. All text in it is escaped."""

from __future__ import annotations

import html

from ._signatures import line_of, summary_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._catalogue import Description

_ROWS_MAX = 200
_CELL = '<td style="text-align: left">'


def table_of(title: str, methods: Mapping[str, Description] | None = None) -> str:
    """The title, if any, and a row for each method: its signature and its summary."""
    methods = methods or {}
    rows = [
        f"<tr>{_CELL}<code>{html.escape(line_of(name, methods[name]))}</code></td>"
        f"{_CELL}{html.escape(summary_of(methods[name]))}</td></tr>"
        for name in sorted(methods)[:_ROWS_MAX]
    ]
    if len(methods) > _ROWS_MAX:
        rows.append(f'<tr><td colspan="2">… and {len(methods) - _ROWS_MAX} more</td></tr>')
    head = f"<code>{html.escape(title)}</code>" if title else ""
    table = f"<table>{''.join(rows)}</table>" if rows else ""
    return f"<div>{head}{table}</div>"
