"""Restart: at SIGUSR2 the program of a server starts again, and the new process takes over from this one. It is given
the listening sockets, loads the program, and says when it is about to serve; then this process tells it to, accepts
nothing more, and ends once its clients have gone. Until then this one goes on as before. A broker sends the new one its
state as well, in the same words as `wirecall serve` (restart_protocol.hpp)."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from . import _native, _service_manager

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import TracebackType

# Tells the new process who has started it, the descriptor of a socket to that one, the number of its node, and the
# listening sockets.
_VARIABLE = "WIRECALL_PYTHON_RESTART"
# That the new process has to come up, and to end when it is told to.
START_S = 30.0
END_S = 5.0
# That a process has to be gone once its end of the connection is.
DEATH_S = 1.0
# Why one that was started does not take over.
NOT_UP = "has not come up"
NO_BROKER = "is no broker any more: stop this one, and start the program again"
LATE = f"has not come up within {START_S:g} s"
CANNOT_LET_GO = "has come up, but this one cannot let go"
_GOES_ON = "wirecall: the process that was to be replaced goes on, and this one ends"
# What a process says that is about to serve.
_UP = b"1"
_UP_AS_BROKER = b"b"
# What it is told that serves from then on; a broker is sent its state instead by one that was a broker.
_SERVE = b"1"


class Predecessor:
    """The process that this one takes over from. Its sockets are for the first server that listens."""

    def __init__(self, pid: int, channel: socket.socket, sockets: list[tuple[int, str]]) -> None:
        self._pid = pid
        self._channel: socket.socket | None = channel
        self._sockets = sockets
        self._process = -1
        with contextlib.suppress(OSError, AttributeError):  # where the system or this Python has none
            self._process = os.pidfd_open(pid)

    def take_sockets(self) -> list[tuple[int, str]]:
        sockets, self._sockets = self._sockets, []
        return sockets

    def give_sockets(self, engine: _native.Server) -> None:
        if sockets := self.take_sockets():
            engine.inherit(sockets)

    def is_served(self) -> bool:
        """Whether that process serves, as far as this one knows."""
        return self._channel is not None

    def come_up(self) -> int:
        """This process is about to serve. Returns a descriptor that is readable once `settle` knows more. Once."""
        return self._say(_UP)

    def _say(self, word: bytes) -> int:
        assert self._channel is not None
        with contextlib.suppress(OSError):
            self._channel.send(word)
        return self._channel.fileno()

    def settle(self) -> None:
        """Returns where the other process does not serve any more; SystemExit where it goes on, or has not answered."""
        import socket

        told = b""
        assert self._channel is not None
        with self._channel as channel, contextlib.suppress(OSError):
            told = channel.recv(1, socket.MSG_DONTWAIT)
        self._channel = None
        if told != _SERVE and not self._has_died():
            raise SystemExit(_GOES_ON)
        self.leave()

    def leave(self) -> None:
        """In a process that has been forked: another one takes over."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process >= 0:
            os.close(self._process)
            self._process = -1

    def replace(self, engine: _native.Server, is_broker: bool) -> None:
        """The server is about to serve. Returns once the other one does not any more. Once."""
        if not self.is_served():
            return
        _is_readable(self._say(_UP_AS_BROKER if is_broker else _UP), START_S)
        if is_broker and self._is_sent_state():
            self._receive_state(engine)
        else:
            self.settle()
        engine.take_over()

    def _is_sent_state(self) -> bool:
        import socket

        assert self._channel is not None
        with contextlib.suppress(OSError):
            return self._channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) not in (b"", _SERVE)
        return False

    def _receive_state(self, engine: _native.Server) -> None:
        """As `settle`, of two brokers."""
        assert self._channel is not None
        with self._channel as channel:
            failure = engine.take_over_broker(channel.fileno())
        self._channel = None
        if failure and not self._has_died():
            raise SystemExit(f"{_GOES_ON}: {failure}")
        self.leave()

    def _has_died(self) -> bool:
        """Nobody else has the sockets then."""
        if self._process >= 0:
            return _is_readable(self._process, DEATH_S)
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


class Successor:
    """The program once more, in a process that is to take over, and has these sockets as well."""

    def __init__(self, sockets: list[tuple[int, str]]) -> None:
        import json
        import socket
        import subprocess

        self.channel, others = socket.socketpair()
        # It holds SIGUSR2 from the start, as this thread does meanwhile: who sends that to both must not end it.
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
        try:
            told = [os.getpid(), others.fileno(), os.fstat(others.fileno()).st_ino, sockets]
            self.process = subprocess.Popen(
                [sys.executable, *sys.orig_argv[1:]],
                pass_fds=[others.fileno(), *(one for one, _ in sockets)],
                env={**os.environ, _VARIABLE: json.dumps(told)},
            )
        except BaseException:
            self.channel.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
            others.close()
        self.kill_at = 0.0  # of one that has been given up
        self.has_gone = False  # its end of the channel has: it ends by itself
        self.is_broker = False  # known once it has come up
        self._what = ""
        log().info("process %d is started to take over", self.process.pid)

    def has_come_up(self) -> bool:
        """What is readable, or what it waits for within the channel's timeout, says so."""
        try:
            said = self.channel.recv(1)
        except OSError:
            return False
        self.has_gone = not said
        self.is_broker = said == _UP_AS_BROKER
        return said in (_UP, _UP_AS_BROKER)

    def takes_over(self, let_go: Callable[[], bool]) -> bool:
        """It has come up. Whether `let_go` lets it serve in place of this process."""
        # Before it says anything itself: a service manager listens to the main process alone.
        _service_manager.notify_main_process(self.process.pid)
        if let_go():
            return True
        _service_manager.notify_main_process(os.getpid())
        return False

    def tell_to_serve(self) -> bool:
        try:
            return self.channel.send(_SERVE) == 1
        except OSError:
            return False

    def has_taken_over(self) -> None:
        self.channel.close()
        log().info("process %d has taken over, and this one ends when its clients have gone", self.process.pid)

    def give_up(self, what: str) -> None:
        """It is told to end, or killed where it does not end by itself in time."""
        self._what = what
        self.kill_at = time.monotonic() + END_S
        self.channel.close()
        if not self.has_gone:
            self.process.terminate()

    def ended(self) -> str:
        """How one has ended that was given up; empty while it has not."""
        if self.process.poll() is None:
            if time.monotonic() < self.kill_at:
                return ""
            self.process.kill()
        return f"process {self.process.pid} {self._what}; its exit status is {self.process.wait()}"

    def end(self) -> str:
        """The same, once it has."""
        import subprocess

        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)
        self.kill_at = 0.0
        return self.ended()


class OnSigusr2:
    """While it is entered, SIGUSR2 has another process take over from this one, which runs `engine`. A handler that the
    program has set stays. In the main thread."""

    def __init__(self, engine: _native.Server, is_broker: bool) -> None:
        self._engine = engine
        self._is_broker = is_broker
        self._waker = -1
        self._is_replaced = False
        self._is_over = False
        self._channel: socket.socket | None = None  # to one that is to take over

    def __enter__(self) -> None:
        if signal.getsignal(signal.SIGUSR2) != signal.SIG_DFL:
            release()
            return
        reader, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._wakeup = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        # The byte that the signal sends wakes the thread below; this one may be at work for long.
        signal.signal(signal.SIGUSR2, lambda *_: None)
        release()
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
                    self._restart()
                except Exception as failure:
                    log().error("no other process takes over, and this one goes on: %s", failure)

    def _restart(self) -> None:
        with contextlib.ExitStack() as closing:
            sockets = self._engine.share()
            for descriptor, _ in sockets:
                closing.callback(os.close, descriptor)
            successor = Successor(sockets)
        with successor.channel as channel:
            self._channel = channel
            channel.settimeout(START_S)
            began = time.monotonic()
            is_up = not self._is_over and successor.has_come_up()
            what = LATE if time.monotonic() - began >= START_S else NOT_UP
            if is_up and self._is_broker and not successor.is_broker:
                what = NO_BROKER
            elif is_up:
                what = CANNOT_LET_GO
                self._is_replaced = successor.takes_over(lambda: self._hand_over(channel.fileno()))
            if self._is_replaced:
                return successor.has_taken_over()
            successor.has_gone = successor.has_gone and not self._is_over  # else it is this end that was shut down
            successor.give_up(what)
        raise RuntimeError(successor.end())

    def _hand_over(self, channel: int) -> bool:
        if not self._is_broker:
            return self._engine.hand_over(channel)
        if failure := self._engine.hand_over_broker(channel):
            log().warning("the other process cannot take over: %s", failure)
        return not failure


def release() -> None:
    """A process that was started to take over has held SIGUSR2 up to now."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR2})


def _is_readable(descriptor: int, seconds: float) -> bool:
    import select

    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


def log() -> Any:
    import logging

    return logging.getLogger("wirecall")
