"""How calls are packed (docs/packed.md), for the clients with encoding="packed": `Layouts`, those of a server's methods
as rpc.discover tells them, and `call_steps`, what has to be called for one call."""

from __future__ import annotations

import time

from . import _native
from ._values import Packed
from .errors import InvalidParams, LocalError, MethodNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    # The name of a method, and what it is called with.
    Step = tuple[str, tuple[Any, ...], dict[str, Any]]

DISCOVER: Step = ("rpc.discover", (), {})


class Layouts:
    """Those of the methods of one server, once they are known. Threads may share it."""

    # What may have changed, as a refusal suggests, is asked for again after so many seconds, not with each refusal.
    kept_for = 10.0

    def __init__(self) -> None:
        # Descriptions by name, and what has been made of them; one object, so that no thread sees a half of it.
        self._known: tuple[dict[str, Any], dict[str, _native.MethodPacking | None]] | None = None
        self._learned_at = 0.0
        self._document: Any = None  # of which that is

    def learn(self, document: Any) -> None:
        """From the result of rpc.discover."""
        if self._known is not None and document is self._document:
            return  # as for calls that have asked together
        methods = document.get("methods") if isinstance(document, dict) else None
        if not isinstance(methods, list):
            raise LocalError("the server's answer to rpc.discover is no OpenRPC document")
        described = {str(method.get("name")): method for method in methods if isinstance(method, dict)}
        self._learned_at = time.monotonic()
        self._document = document
        self._known = described, {}

    def lacks(self, name: str) -> bool:
        """There was no such method, and it is time to ask again."""
        if self._known is None:
            return True
        return name not in self._known[0] and time.monotonic() - self._learned_at >= self.kept_for

    def doubt(self) -> None:
        """Something does not fit: perhaps the server's methods are others by now."""
        if time.monotonic() - self._learned_at >= self.kept_for:
            self._known = None

    def packing_of(self, name: str) -> _native.MethodPacking | None:
        """None: the method takes no packed params, as far as is known. LocalError where its layouts are none."""
        if self._known is None:
            return None
        described, made = self._known
        if name not in made:
            try:
                description = _native.dumps(described.get(name), "msgpack")
                made[name] = _native.method_packing(description)
            except ValueError as failure:
                self.doubt()
                raise LocalError(f"{name}: {failure}") from None
        return made[name]


def call_steps(layouts: Layouts, name: str, args: Any, kwargs: Any) -> Generator[Step, Any, Any]:
    """Yields what is to be called next, and is sent its result, or is thrown its error. Returns the result of the call.

    Where the server refuses the params and names the layout that the method has by now, which is another, the call is
    made again: it has not been executed. Where the layout is not known either, the error has both, as "layout" and
    "own"."""
    if layouts.lacks(name):
        yield from _learn(layouts)
    packing = layouts.packing_of(name)
    if packing is None:
        return (yield name, args, kwargs)
    params = _packed(layouts, packing, args, kwargs)
    own = packing.layout
    try:
        result = yield name, params, {}
    except InvalidParams as error:
        theirs = _layout_in(error)
        if theirs in ("", own):
            layouts.doubt()
            raise
        packing = layouts.packing_of(name)  # which another call may have learned meanwhile
        if packing is None or packing.layout != theirs:
            yield from _learn(layouts)
            packing = layouts.packing_of(name)
        if packing is None or packing.layout != theirs:
            error.data["own"] = own
            raise
        try:
            result = yield name, _packed(layouts, packing, args, kwargs), {}
        except InvalidParams as again:
            if _layout_in(again) not in ("", packing.layout):
                again.data["own"] = packing.layout
            raise
    if not isinstance(result, Packed):
        return result
    try:
        return packing.unpack(result.data)
    except LocalError:
        layouts.doubt()
        raise


def _learn(layouts: Layouts) -> Generator[Step, Any, None]:
    try:
        layouts.learn((yield DISCOVER))
    except MethodNotFound:
        layouts.learn({"methods": []})


def _packed(layouts: Layouts, packing: _native.MethodPacking, args: Any, kwargs: Any) -> tuple[Packed]:
    try:
        return (Packed(packing.pack(args, kwargs)),)
    except InvalidParams:
        layouts.doubt()
        raise


def _layout_in(error: InvalidParams) -> str:
    """The layout that a server names which does not know that of the params; empty for any other refusal."""
    layout = error.data.get("layout") if isinstance(error.data, dict) and len(error.data) == 1 else None
    return layout if isinstance(layout, str) else ""
