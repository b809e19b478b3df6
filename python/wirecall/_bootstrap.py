"""Sets up the native module, and ends it with the interpreter. Every module that uses `_native` imports this."""

from __future__ import annotations

import atexit
import weakref

from . import _native, _values, errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_URI = "tcp://127.0.0.1:8545"

_native.set_planner(_values.plan_for)
_native.set_extension_reader(_values.of_extension)
_native.set_error_functions(errors._make, errors._explain)

_endings: set[weakref.WeakMethod[Callable[[], object]]] = set()


def check_endpoint(uri: object, what: str) -> None:
    """TypeError for what is no string. `what` begins the sentence: "listen takes where to listen"."""
    if isinstance(uri, str):
        return
    is_port = isinstance(uri, int) and not isinstance(uri, bool) and 0 <= uri < 2**16
    example = f"tcp://127.0.0.1:{uri if is_port else 8545}"
    raise TypeError(f'wirecall: {what} as a URI, "{example}", not {uri!r}')


def at_exit(method: Callable[[], object]) -> None:
    """Calls that bound method when the interpreter ends, if its object is still there."""
    _endings.add(weakref.WeakMethod(method, _endings.discard))


@atexit.register
def _end() -> None:
    _native.end_waits()
    for ending in list(_endings):
        method = ending()
        if method is not None:
            method()
    _native.end_threads()
