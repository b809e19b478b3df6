"""Who may call a method: what `@app(allow=…)` says, as a function of a principal's name. The server asks it once for
each principal, whenever it reads the principals; calls ask nothing (docs/access.md)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from . import _methods

Allows = Callable[[str], bool]
# Names of principals, or a function that is given one.
Allow = str | list[str] | tuple[str, ...] | set[str] | frozenset[str] | Allows

_CURE = 'give the names of principals, allow=["alice", "bob"], or a function, allow=lambda name: name in ADMINS'


def allows_of(allow: Allow, called: str) -> Allows:
    """TypeError or ValueError for what can allow nobody."""
    if callable(allow):
        if inspect.iscoroutinefunction(_methods._underlying(allow)):
            raise TypeError(
                f"wirecall: {called}: allow is asked before anything runs, and cannot be awaited: make it a plain "
                "function, or have a dependency raise wirecall.Forbidden"
            )
        return _asking(allow, called)
    names: Any = [allow] if isinstance(allow, str) else allow
    if not isinstance(names, list | tuple | set | frozenset) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"wirecall: {called}: allow={allow!r}: {_CURE}")
    if not names or "" in names:
        raise ValueError(f"wirecall: {called}: allow={allow!r} allows nobody: {_CURE}")
    for name in names:
        if "*" in name or ">" in name:
            raise ValueError(
                f"wirecall: {called}: {name!r} is no name of a principal, and allow has no patterns: {_CURE}"
            )
    return frozenset(names).__contains__


def _asking(allow: Callable[[str], Any], called: str) -> Allows:
    def allows(name: str) -> bool:
        answer = allow(name)
        if not isinstance(answer, bool):
            raise TypeError(f"wirecall: {called}: allow({name!r}) has returned {answer!r}: return True or False")
        return answer

    return allows
