"""What the tests of restarts share."""

import pathlib
import select
import socket

# A program that is to take over, and says that it has come up: what it would be told reaches nobody.
DEAF = """
import json, os, socket
_, channel, *_ = json.loads(os.environ["WIRECALL_PYTHON_RESTART"])
with socket.socket(fileno=channel) as told:
    told.shutdown(socket.SHUT_RD)
    told.send(b"1")
os._exit(3)
"""


class Manager:
    """A service manager, as far as it is told of a process."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.path = folder / "notify"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(60)
        self._socket.bind(str(self.path))

    def heard(self) -> str:
        return self._socket.recv(256).decode()

    def has_heard_all(self) -> bool:
        return not select.select([self._socket], [], [], 0)[0]
