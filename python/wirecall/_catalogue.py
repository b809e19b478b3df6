"""Catalogue: what a client knows of its server's methods, as rpc.discover tells it, for dir(), help() and notebooks.
Calls do not need it."""

from __future__ import annotations

import contextlib
import keyword
import time

from ._packing import DISCOVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import _native
    from ._packing import Layouts

    # Of a method: its object in the OpenRPC document. Nothing in it is checked.
    Description = dict[str, Any]


class Catalogue:
    """The methods of one server. Threads may share it."""

    # Seconds for which an answer, or the lack of one, counts.
    kept_for = 10.0
    # Seconds for which dir() or help() waits for the server.
    timeout = 1.0

    def __init__(self, native: _native.Client, layouts: Layouts | None) -> None:
        self._native = native
        self.layouts = layouts
        self._asked_at = float("-inf")
        # By name, as far as it is known. It is replaced, never changed.
        self.known: dict[str, Description] = {}

    def methods(self) -> dict[str, Description]:
        """The descriptions by name. Asks the server for them where nothing is known, or what is known is old; raises
        nothing when that fails."""
        if time.monotonic() - self._asked_at >= self.kept_for:
            self._asked_at = time.monotonic()  # for other threads, which do not wait for this one
            with contextlib.suppress(Exception):
                self._ask()
            self._asked_at = time.monotonic()
        return self.known

    def _ask(self) -> None:
        self.learn(self._native.call(*DISCOVER, self.timeout, "", None, False, None))

    def learn(self, document: object) -> None:
        """From the result of rpc.discover."""
        self.known = descriptions_in(document)

    def words_after(self, path: str) -> list[str]:
        """The words that follow `path`, which is empty or ends with a dot, in the names of methods: those that can be
        written as attributes."""
        words = {name[len(path) :].partition(".")[0] for name in self.methods() if name.startswith(path)}
        return [word for word in words if word.isidentifier() and not keyword.iskeyword(word) and word[0] != "_"]


def descriptions_in(document: object) -> dict[str, Description]:
    """The methods' descriptions by name. Ignores what is not an OpenRPC document, or not a method in it."""
    methods = document.get("methods") if isinstance(document, dict) else None
    return {
        method["name"]: method
        for method in (methods if isinstance(methods, list) else [])
        if isinstance(method, dict) and isinstance(method.get("name"), str)
    }
