"""What a service manager is told of this process, by the datagrams of sd_notify(3): nothing where $NOTIFY_SOCKET names
no socket. Nobody waits for an answer."""

from __future__ import annotations

import os


def notify_ready() -> None:
    """The server serves."""
    _notify("READY=1\n")


def notify_main_process(pid: int) -> None:
    """The process of that id serves in place of this one from now on."""
    _notify(f"MAINPID={pid}\n")


def _notify(state: str) -> None:
    import contextlib
    import socket

    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path.startswith(("/", "@")):
        return
    address = "\0" + path[1:] if path.startswith("@") else path
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.sendto(state.encode(), socket.MSG_DONTWAIT, address)
