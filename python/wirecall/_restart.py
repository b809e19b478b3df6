"""Restart: at SIGUSR2 the program of a server starts again, and the new process takes over from this one. It is given
the listening sockets, loads the program, and says when it is about to serve; then this process accepts nothing more,
and ends once its clients have gone. Until the new one has said so, this one goes on as before."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    import subprocess
    from types import TracebackType

# Tells the new process the descriptor of a pipe, and the sockets.
_VARIABLE = "WIRECALL_PYTHON_RESTART"
# That the new process has to come up, and to end when it is told to.
START_S = 30.0
END_S = 5.0


class Predecessor:
    """The process that this one takes over from. Its sockets are for the first server that listens."""

    def __init__(self, pipe: int, sockets: list[tuple[int, str]]) -> None:
        self._pipe = pipe
        self._sockets = sockets

    def give_sockets(self, engine: _native.Server) -> None:
        sockets, self._sockets = self._sockets, []
        if sockets:
            engine.inherit(sockets)

    def replace(self, engine: _native.Server) -> None:
        """The server is about to serve. Once."""
        if self._pipe < 0:
            return
        engine.take_over()
        os.write(self._pipe, b"1")
        os.close(self._pipe)
        self._pipe = -1


def _find() -> Predecessor | None:
    text = os.environ.pop(_VARIABLE, "")
    if not text:
        return None
    import json

    pipe, sockets = json.loads(text)
    for descriptor in (pipe, *(one for one, _ in sockets)):
        os.set_inheritable(descriptor, False)
    return Predecessor(pipe, [(one, uri) for one, uri in sockets])


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

    def __enter__(self) -> None:
        if signal.getsignal(signal.SIGUSR2) != signal.SIG_DFL:
            return
        reader, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._wakeup = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        # The byte that the signal sends wakes the thread below; this one may be at work for long.
        signal.signal(signal.SIGUSR2, lambda *_: None)
        threading.Thread(target=self._wait, args=(reader,), name="wirecall-restart", daemon=True).start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._waker < 0:
            return
        signal.set_wakeup_fd(self._wakeup)
        signal.signal(signal.SIGUSR2, signal.SIG_DFL if not self._is_replaced else signal.SIG_IGN)
        os.close(self._waker)

    def _wait(self, reader: int) -> None:
        with open(reader, "rb", buffering=0) as pipe:
            while arrived := pipe.read(4096):
                if signal.SIGUSR2 not in arrived or self._is_replaced:
                    continue
                try:
                    if self._refusal:
                        raise RuntimeError(self._refusal)
                    self._restart()
                except Exception as failure:
                    _log().error("no other process takes over, and this one goes on: %s", failure)

    def _restart(self) -> None:
        import select
        import subprocess

        sockets = self._engine.share()
        told, teller = os.pipe()
        try:
            process = self._start(teller, sockets)
        finally:
            for descriptor in (teller, *(one for one, _ in sockets)):
                os.close(descriptor)
        _log().info("process %d is started to take over", process.pid)
        with open(told, "rb", buffering=0) as pipe:
            is_late = not select.select([pipe], [], [], START_S)[0]
            if not is_late and pipe.read(1) == b"1" and self._engine.hand_over():
                self._is_replaced = True
        if self._is_replaced:
            _log().info("process %d has taken over, and this one ends when its clients have gone", process.pid)
            return
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
        process.kill()
        late = f" within {START_S:g} s" if is_late else ""
        raise RuntimeError(f"process {process.pid} has not come up{late}; its exit status is {process.wait()}")

    @staticmethod
    def _start(teller: int, sockets: list[tuple[int, str]]) -> subprocess.Popen[Any]:
        import json
        import subprocess

        return subprocess.Popen(
            [sys.executable, *sys.orig_argv[1:]],
            pass_fds=[teller, *(one for one, _ in sockets)],
            env={**os.environ, _VARIABLE: json.dumps([teller, sockets])},
        )


def _log() -> Any:
    import logging

    return logging.getLogger("wirecall")
