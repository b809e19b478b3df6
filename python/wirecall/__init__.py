"""wirecall: Python functions as JSON-RPC methods, at the speed of the socket.

app = wirecall.Server("calc")          # serves functions as methods   (wirecall.server)
c = wirecall.connect("tcp://…")        # calls methods                 (wirecall.client)
c = wirecall.aconnect("tcp://…")       # calls methods from asyncio    (wirecall.aclient)
wirecall.Error                         # the base of all exceptions    (wirecall.errors)
"""

from __future__ import annotations

from .errors import (
    Cancelled,
    Conflict,
    ConnectionLost,
    Draining,
    Error,
    Forbidden,
    InternalError,
    InvalidParams,
    InvalidRequest,
    LimitExceeded,
    LocalError,
    MethodNotFound,
    NoSubscription,
    ParseError,
    Timeout,
    TooLarge,
    Unauthenticated,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._batching import Shared
    from ._dependencies import Depends
    from ._frames import to_frame
    from ._middleware import MethodCall
    from ._native import ConnectionEvent, Context
    from ._out import Out
    from ._values import Packed
    from .aclient import AsyncClient, aconnect
    from .client import Client, connect
    from .server import Server

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "Cancelled",
    "Client",
    "Conflict",
    "ConnectionEvent",
    "ConnectionLost",
    "Context",
    "Depends",
    "Draining",
    "Error",
    "Forbidden",
    "InternalError",
    "InvalidParams",
    "InvalidRequest",
    "LimitExceeded",
    "LocalError",
    "MethodCall",
    "MethodNotFound",
    "NoSubscription",
    "Out",
    "Packed",
    "ParseError",
    "Server",
    "Shared",
    "Timeout",
    "TooLarge",
    "Unauthenticated",
    "aconnect",
    "connect",
    "to_frame",
]

# These modules are loaded at the first use of a name: so `import wirecall` takes under 1 ms.
_LAZY = {
    "Server": "server",
    "Client": "client",
    "connect": "client",
    "AsyncClient": "aclient",
    "aconnect": "aclient",
    "ConnectionEvent": "_native",
    "Context": "_native",
    "Depends": "_dependencies",
    "MethodCall": "_middleware",
    "Out": "_out",
    "Packed": "_values",
    "Shared": "_batching",
    "to_frame": "_frames",
}


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'wirecall' has no attribute {name!r}")
    import importlib

    value: object = getattr(importlib.import_module(f"wirecall.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
