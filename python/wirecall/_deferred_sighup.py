"""HeldHangUps: SIGHUP while `wirecall serve FILE.py` loads its program. It is for the server that this makes, which
reads its files anew; it ends the process as ever if that turns out to have none. In the main thread, but for
`is_for_none`."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from typing import Any


class HeldHangUps:
    """From its making until `let_go` SIGHUP ends nothing. A program that sets a handler of its own has that instead."""

    def __init__(self) -> None:
        self._came = False
        self._passes_on = False
        self._before = signal.signal(signal.SIGHUP, self._hold)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})  # the command has held it back until here

    def _hold(self, *_: Any) -> None:
        if not self._passes_on:
            self._came = True
        else:
            self.let_go()
            signal.raise_signal(signal.SIGHUP)

    def is_in_place(self) -> bool:
        """Whether the program has set no handler of its own."""
        return signal.getsignal(signal.SIGHUP) == self._hold

    def take(self) -> bool:
        """Whether one has come since the last call."""
        came, self._came = self._came, False
        return came

    def let_go(self) -> None:
        """SIGHUP does again what it did before. One that has come comes now."""
        if self.is_in_place():
            signal.signal(signal.SIGHUP, self._before)
        if self.take():
            signal.raise_signal(signal.SIGHUP)

    def is_for_none(self) -> None:
        """A server runs in another thread, which is this one: signals are the program's."""
        if self.is_in_place() and self._before == signal.SIG_DFL:
            # Not by way of Python, whose handlers are set and run in the main thread alone: one that comes when that is
            # about to wait for a lock would not be run before the next one.
            ctypes.CDLL(None).signal(int(signal.SIGHUP), None)
            if self._came:
                os.kill(os.getpid(), signal.SIGHUP)
        self._passes_on = True
        if self._came:
            main = threading.main_thread().ident
            assert main is not None
            signal.pthread_kill(main, signal.SIGHUP)
