"""Restart: at SIGUSR2 the program of a server starts again, and the new process takes over from this one. It is given
the listening sockets, loads the program, and says when it is about to serve; then this process tells it to, accepts
nothing more, and ends once its clients have gone. Until then this one goes on as before."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from . import _native, _service_manager

if TYPE_CHECKING:
    import socket
    import subprocess
    from types import TracebackType

# Tells the new process who has started it, the descriptor of a socket to that one, the number of its node, and the
# listening sockets.
_VARIABLE = "WIRECALL_PYTHON_RESTART"
# That the new process has to come up, and to end when it is told to.
START_S = 30.0
END_S = 5.0
# That a process has to be gone once its end of the connection is.
DEATH_S = 1.0


class Predecessor:
    """The process that this one takes over from. Its sockets are for the first server that listens."""

    def __init__(self, pid: int, channel: socket.socket, sockets: list[tuple[int, str]]) -> None:
        self._pid = pid
        self._channel: socket.socket | None = channel
        self._sockets = sockets
        self._process = -1
        with contextlib.suppress(OSError, AttributeError):  # where the system or this Python has none
            self._process = os.pidfd_open(pid)

    def give_sockets(self, engine: _native.Server) -> None:
        sockets, self._sockets = self._sockets, []
        if sockets:
            engine.inherit(sockets)

    def replace(self, engine: _native.Server) -> None:
        """The server is about to serve. Returns once the other one does not any more. Once."""
        if self._channel is None:
            return
        told = b""
        with self._channel as channel, contextlib.suppress(OSError):
            channel.settimeout(START_S)
            channel.send(b"1")
            told = channel.recv(1)
        self._channel = None
        if told != b"1" and not self._has_died():
            raise SystemExit("wirecall: the process that was to be replaced goes on, and this one ends")
        if self._process >= 0:
            os.close(self._process)
        engine.take_over()

    def _has_died(self) -> bool:
        """Nobody else has the sockets then."""
        import select

        if self._process >= 0:
            return bool(select.select([self._process], [], [], DEATH_S)[0])
        return os.getppid() != self._pid


def _find() -> Predecessor | None:
    text = os.environ.pop(_VARIABLE, "")
    if not text:
        return None
    import json
    import socket

    pid, channel, node, sockets = json.loads(text)
    try:
        is_open = os.fstat(channel).st_ino == node
    except OSError:
        is_open = False
    if not is_open:
        return None  # that was for another process, which has handed its environment on
    for descriptor in (channel, *(one for one, _ in sockets)):
        os.set_inheritable(descriptor, False)
    return Predecessor(pid, socket.socket(fileno=channel), [(one, uri) for one, uri in sockets])


_predecessor = _find()


def predecessor() -> Predecessor | None:
    return _predecessor


class OnSigusr2:
    """While it is entered, SIGUSR2 has another process take over from this one, which runs `engine`; or is logged,
    where `refusal` says why that cannot be. A handler that the program has set stays. In the main thread."""

    def __init__(self, engine: _native.Server, refusal: str = "") -> None:
        self._engine = engine
        self._refusal = refusal
        self._waker = -1
        self._is_replaced = False
        self._is_over = False
        self._channel: socket.socket | None = None  # to one that is to take over

    def __enter__(self) -> None:
        if signal.getsignal(signal.SIGUSR2) != signal.SIG_DFL:
            _release()
            return
        reader, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._wakeup = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        # The byte that the signal sends wakes the thread below; this one may be at work for long.
        signal.signal(signal.SIGUSR2, lambda *_: None)
        _release()
        self._thread = threading.Thread(target=self._wait, args=(reader,), name="wirecall-restart", daemon=True)
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._waker < 0:
            return
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._waker)
        # One that is to take over does not outlive a process that has been told to end: the thread ends it.
        self._is_over = True
        if (channel := self._channel) is not None:
            with contextlib.suppress(OSError):
                channel.shutdown(0)  # SHUT_RD
        self._thread.join(2 * END_S)
        signal.signal(signal.SIGUSR2, signal.SIG_DFL if not self._is_replaced else signal.SIG_IGN)

    def _wait(self, reader: int) -> None:
        with open(reader, "rb", buffering=0) as pipe:
            while arrived := pipe.read(4096):
                if signal.SIGUSR2 not in arrived or self._is_replaced or self._is_over:
                    continue
                try:
                    if self._refusal:
                        raise RuntimeError(self._refusal)
                    self._restart()
                except Exception as failure:
                    _log().error("no other process takes over, and this one goes on: %s", failure)

    def _restart(self) -> None:
        import socket
        import subprocess

        sockets = self._engine.share()
        own, others = socket.socketpair()
        with own:
            self._channel = own
            try:
                with others:
                    if self._is_over:
                        raise RuntimeError("it has been told to end")
                    process = self._start(others.fileno(), sockets)
            finally:
                for descriptor, _ in sockets:
                    os.close(descriptor)
            _log().info("process %d is started to take over", process.pid)
            own.settimeout(START_S)
            late = ""
            try:
                is_up = own.recv(1) == b"1"
            except OSError as failure:
                is_up = False
                late = f" within {START_S:g} s" if isinstance(failure, TimeoutError) else ""
            if is_up:  # before it says anything itself: the manager listens to the main process alone
                _service_manager.notify_main_process(process.pid)
            self._is_replaced = is_up and self._engine.hand_over(own.fileno())
            if is_up and not self._is_replaced:
                _service_manager.notify_main_process(os.getpid())
        if self._is_replaced:
            _log().info("process %d has taken over, and this one ends when its clients have gone", process.pid)
            return
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
        process.kill()
        what = "has not come up" + late if not is_up else "has come up, but this one cannot let go"
        raise RuntimeError(f"process {process.pid} {what}; its exit status is {process.wait()}")

    @staticmethod
    def _start(channel: int, sockets: list[tuple[int, str]]) -> subprocess.Popen[Any]:
        import json
        import subprocess

        # It holds SIGUSR2 from the start, as this thread does meanwhile: who sends that to both must not end it.
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
        try:
            return subprocess.Popen(
                [sys.executable, *sys.orig_argv[1:]],
                pass_fds=[channel, *(one for one, _ in sockets)],
                env={**os.environ, _VARIABLE: json.dumps([os.getpid(), channel, os.fstat(channel).st_ino, sockets])},
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _release() -> None:
    """A process that was started to take over has held the signal up to now."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR2})


def _log() -> Any:
    import logging

    return logging.getLogger("wirecall")
