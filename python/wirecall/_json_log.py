"""What wirecall tells `logging`, as records of a log that is JSON, where the program has set up no logging of its own.

Without a handler `logging` writes plain text to stderr: a traceback there has many lines, between the records of the
server, which are one line each. They have the members of those (src/base/log.cpp).
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any


class JsonRecords(logging.Formatter):
    """A line for each record: `message` is its first line, `traceback` all that follows."""

    def format(self, record: logging.LogRecord) -> str:
        message, _, traceback = super().format(record).partition("\n")
        level = "error" if record.levelno >= logging.ERROR else record.levelname.lower()
        second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        moment = f"{second}.{int(record.msecs):03d}Z"
        members: dict[str, Any] = {"time": moment, "level": level, "message": message}
        if method := getattr(record, "method", None):  # _log of errors.py says of which call it is
            members["method"] = method
        if request_id := getattr(record, "id", None):
            members["id"] = _value_of(request_id)
        if traceback:
            members["traceback"] = traceback
        return json.dumps(members, separators=(",", ":"))


def _value_of(request_id: str) -> Any:
    """Of JSON text what it stands for; a number that Python would write in another way stays text."""
    try:
        return json.loads(request_id, parse_float=str)
    except ValueError:
        return request_id


class LastResort(logging.Handler):
    """Writes to stderr what no handler of the program's takes, as `logging.lastResort` does otherwise."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(JsonRecords())

    def emit(self, record: logging.LogRecord) -> None:
        if self._is_alone():
            try:
                sys.stderr.write(self.format(record) + "\n")
                sys.stderr.flush()
            except Exception:  # as every handler of logging
                self.handleError(record)

    def _is_alone(self) -> bool:
        """Whether the program has configured no logging. It may do so at any time."""
        logger: logging.Logger | None = logging.getLogger("wirecall")
        while logger is not None:
            if any(handler is not self for handler in logger.handlers):
                return False
            logger = logger.parent if logger.propagate else None
        return True


_last_resort = LastResort()


def take_over() -> None:
    """From now on; once is enough."""
    logging.getLogger("wirecall").addHandler(_last_resort)
