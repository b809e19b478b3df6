"""CommandLine: what `wirecall serve FILE.py` is given; it overrides what the program says. `current` is set before the
program is loaded; outside that command it is empty, and changes nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._deferred_sighup import DeferredSighup
    from .server import Server


@dataclasses.dataclass
class CommandLine:
    listen: list[str] = dataclasses.field(default_factory=list)
    workers: int = 0
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    insecure: bool = False
    print_config: bool = False
    # How to allow a server that other machines can reach.
    insecure_hint: str = "insecure=True"
    # Reads the options again where a file has some of them; ValueError for what is wrong with it.
    read_options: Callable[[], dict[str, Any]] | None = None
    # Whether the command line names another server than this one, which is about to run.
    runs_another: Callable[[Server], bool] = lambda _: False
    # The same for a server that listens, perhaps before the named one is made.
    names_another: Callable[[Server], bool] = lambda _: False
    has_run: bool = False
    # SIGHUP that comes before the server runs; None where nobody defers it.
    sighup: DeferredSighup | None = None

    def over(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options of a server with these over them."""
        return merged(options, self.options)

    def says_where(self) -> bool:
        """Whether it names whole endpoints, not only a host or a port."""
        return bool(self.listen or self.options.get("listen"))


current = CommandLine()


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """The options `below` with those `above` over them. A host or a port above replaces a list of endpoints below."""
    if above.keys() & {"host", "port"} and "listen" not in above:
        below = {name: value for name, value in below.items() if name != "listen"}
    return _merged_groups(below, above)


def _merged_groups(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = dict(below)
    for name, value in above.items():
        inner = both.get(name)
        both[name] = _merged_groups(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return both
