"""Workers: forks processes that serve the same endpoints, replaces one that crashes, and ends them all."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable
from typing import NoReturn

from . import _native

# A worker that has lived no longer than this is replaced so much later.
PAUSE_S = 1.0

Serve = Callable[[list[_native.Listeners], int], None]


class Workers:
    """`serve(listeners, number)` runs in each of `count` processes. Until one of them returns from it, or SIGINT or
    SIGTERM comes: then each is sent SIGTERM, and again with the second signal; the third ends them at once.
    `sighup`: SIGHUP is sent to each as well, unless the program has a handler for it; each has it blocked until it can
    take it. `owns_sighup`: the handler that is set is ours. In the main thread alone."""

    def __init__(
        self, uris: list[str], count: int, serve: Serve, *, sighup: bool = False, owns_sighup: bool = False
    ) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("wirecall: workers are started in the main thread alone: call run there")
        self._listeners = [_native.Listeners(uri, count) for uri in uris]
        self._serve = serve
        self._signals = [signal.SIGINT, signal.SIGTERM, signal.SIGCHLD]
        has_none = owns_sighup or signal.getsignal(signal.SIGHUP) in (signal.SIG_DFL, signal.SIG_IGN)
        if sighup and has_none:
            self._signals.append(signal.SIGHUP)
        if signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL:
            self._signals.append(signal.SIGUSR2)
        self._numbers: dict[int, int] = {}  # by process id
        self._begun: dict[int, float] = {}  # by number: when it was forked
        self._due: dict[int, float] = dict.fromkeys(range(count), 0.0)  # by number: when the next one is
        self._stops = 0
        self._is_to_stop = False  # said before it runs
        self._waker: socket.socket | None = None  # a byte sent there is a signal
        self._parent = os.getpid()
        self._log = logging.getLogger("wirecall")

    @property
    def uris(self) -> list[str]:
        """Where they listen, with the actual ports."""
        return [listeners.uri for listeners in self._listeners]

    def run(self) -> None:
        """Returns when all have ended."""
        reader, writer = socket.socketpair()
        with reader, writer, contextlib.ExitStack() as after:
            reader.setblocking(False)
            writer.setblocking(False)
            self._handlers = {number: signal.signal(number, lambda *_: None) for number in self._signals}
            self._wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
            after.callback(self._restore_signals)
            self._waker = writer
            after.callback(self._drop_waker)
            if self._is_to_stop:
                self._stop()
            while self._numbers or self._due:
                self._fork_due()
                for arrived in self._wait(reader):
                    if arrived in (signal.SIGINT, signal.SIGTERM):
                        self._stop()
                    elif arrived == signal.SIGHUP:
                        for pid in self._numbers:
                            os.kill(pid, signal.SIGHUP)
                    elif arrived == signal.SIGUSR2:
                        self._log.error("no other process takes over, and this one goes on: it has workers")
                self._reap()

    def stop(self) -> None:
        """As SIGTERM does, from any thread."""
        self._is_to_stop = True
        if (waker := self._waker) is not None:
            with contextlib.suppress(OSError):  # it is about to end
                waker.send(bytes([signal.SIGTERM]))

    def _drop_waker(self) -> None:
        self._waker = None

    def _wait(self, reader: socket.socket) -> bytes:
        """For a signal, or until another process is due."""
        left = min((due - time.monotonic() for due in self._due.values()), default=None)
        select.select([reader], [], [], None if left is None else max(left, 0))
        try:
            return reader.recv(4096)
        except BlockingIOError:
            return b""

    def _fork_due(self) -> None:
        now = time.monotonic()
        for number in [number for number, due in self._due.items() if due <= now]:
            del self._due[number]
            self._begun[number] = now
            # A signal is held until the child has its own handlers.
            signal.pthread_sigmask(signal.SIG_BLOCK, self._handlers)
            pid = os.fork()
            if pid == 0:
                self._live(number)
            self._numbers[pid] = number
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._handlers)

    def _live(self, number: int) -> NoReturn:
        """In the child. Ctrl-C reaches the parent alone, which tells all; a child ends with its parent."""
        code = 1
        try:
            os.setpgid(0, 0)
            self._restore_signals()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._handlers.keys() - {signal.SIGHUP})
            _native.end_with_parent()
            if os.getppid() == self._parent:
                self._serve(self._listeners, number)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                logging.shutdown()
            os._exit(code)

    def _restore_signals(self) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _stop(self) -> None:
        self._stops += 1
        self._due.clear()
        self._listeners.clear()
        for pid in self._numbers:
            os.kill(pid, signal.SIGKILL if self._stops > 2 else signal.SIGTERM)

    def _reap(self) -> None:
        for pid in list(self._numbers):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended == 0:
                continue
            number = self._numbers.pop(pid)
            if self._stops:
                continue
            code = os.waitstatus_to_exitcode(status)
            if code == 0:  # it was told to stop, and the program with it
                self._stop()
                continue
            cause = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
            self._log.error("worker %d (process %d) has ended %s; another takes its place", number, pid, cause)
            now = time.monotonic()
            self._due[number] = now if now - self._begun[number] > PAUSE_S else now + PAUSE_S
