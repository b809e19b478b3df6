"""DeferredSighup: keeps a SIGHUP that comes while `wirecall serve FILE.py` loads its program. The server that the
program makes reads its files anew then; where there is nothing to read, the signal ends the process as usual. Main
thread, but for `leave_to_program`."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from typing import Any


class DeferredSighup:
    """Defers SIGHUP from its making until `release`. A handler that the program sets replaces it."""

    def __init__(self) -> None:
        self._is_pending = False
        self._is_left = False
        self._previous = signal.signal(signal.SIGHUP, self._defer)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})  # which the command has blocked until here

    def _defer(self, *_: Any) -> None:
        if not self._is_left:
            self._is_pending = True
        else:
            self.release()
            signal.raise_signal(signal.SIGHUP)

    def is_installed(self) -> bool:
        """Whether the program has set no handler of its own."""
        return signal.getsignal(signal.SIGHUP) == self._defer

    def take(self) -> bool:
        """Whether one has come since the last call."""
        pending, self._is_pending = self._is_pending, False
        return pending

    def release(self) -> None:
        """SIGHUP does again what it did before. A deferred one is delivered now."""
        if self.is_installed():
            signal.signal(signal.SIGHUP, self._previous)
        if self.take():
            signal.raise_signal(signal.SIGHUP)

    def leave_to_program(self) -> None:
        """Called on another thread, where a server is about to run: there signals are the program's."""
        if self.is_installed() and self._previous == signal.SIG_DFL:
            # Python sets and runs handlers in the main thread alone. That thread may be about to wait for a lock, and
            # would run the handler at the next signal only; so the disposition is set without Python.
            ctypes.CDLL(None).signal(int(signal.SIGHUP), None)
            if self._is_pending:
                os.kill(os.getpid(), signal.SIGHUP)
        self._is_left = True
        if self._is_pending:
            main = threading.main_thread().ident
            assert main is not None
            signal.pthread_kill(main, signal.SIGHUP)
