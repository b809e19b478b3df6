"""Workers: forks processes that serve the same endpoints, replaces one that crashes, and ends them all. At SIGUSR2 the
program starts again with their sockets, and the workers of that process take over from these."""

from __future__ import annotations

import contextlib
import dataclasses
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

from . import _native, _restart, _service_manager

# A worker that has lived no longer than this is replaced so much later.
PAUSE_S = 1.0
# What a worker tells its parent, and what that tells it.
_UP = b"1"
_SERVE = b"2"
_REPLACED = b"3"


class Turn:
    """When a worker begins to serve, and when others do in its place, as its parent says."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    def begin(self, engine: _native.Server, listeners: list[_native.Listeners], number: int) -> None:
        """The worker is about to serve. Returns once it may, and listens; once others serve in its place, `engine.run`
        returns when its clients have gone."""
        self._channel.send(_UP)
        if self._channel.recv(1) != _SERVE:
            os._exit(1)  # the parent has gone
        for endpoint in listeners:
            engine.listen_shared(endpoint, number)
        listeners.clear()
        threading.Thread(target=self._end, args=(engine,), name="wirecall-replaced", daemon=True).start()

    def _end(self, engine: _native.Server) -> None:
        if self._channel.recv(1) != _REPLACED:
            return
        while not engine.hand_over():  # a handler may hold up the loop for longer than that waits
            pass


Serve = Callable[[list[_native.Listeners], int, Turn], None]


@dataclasses.dataclass
class Worker:
    """As its parent sees it."""

    number: int
    begun: float  # when it was forked
    channel: socket.socket
    is_up: bool = False

    def hear(self) -> None:
        """Something is readable. One that has ended says nothing, and is reaped."""
        with contextlib.suppress(OSError):
            self.is_up = self.channel.recv(1) == _UP
        if not self.is_up:
            self.channel.close()

    def tell(self, what: bytes) -> None:
        with contextlib.suppress(OSError):  # it has ended
            self.channel.send(what)


class Workers:
    """`serve(listeners, number, turn)` runs in each of `count` processes. Until one of them returns from it, or SIGINT
    or SIGTERM comes: then each is sent SIGTERM, and again with the second signal; the third ends them at once.
    `sighup`: SIGHUP is sent to each as well, unless the program has a handler for it; each has it blocked until it can
    take it. `owns_sighup`: the handler that is set is ours. In the main thread alone."""

    def __init__(
        self, uris: list[str], count: int, serve: Serve, *, sighup: bool = False, owns_sighup: bool = False
    ) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("wirecall: workers are started in the main thread alone: call run there")
        predecessor = _restart.predecessor()
        self._listeners = _native.listen_together(uris, count, predecessor.take_sockets() if predecessor else [])
        # While it serves; the workers do once it does not.
        self._predecessor = predecessor if predecessor is not None and predecessor.is_served() else None
        self._told = -1  # readable once that has answered
        self._settle_at = 0.0  # when it must have
        self._serve = serve
        self._count = count
        self._signals = [signal.SIGINT, signal.SIGTERM, signal.SIGCHLD]
        has_none = owns_sighup or signal.getsignal(signal.SIGHUP) in (signal.SIG_DFL, signal.SIG_IGN)
        if sighup and has_none:
            self._signals.append(signal.SIGHUP)
        if signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL:
            self._signals.append(signal.SIGUSR2)
        self._workers: dict[int, Worker] = {}  # by process id
        self._due: dict[int, float] = dict.fromkeys(range(count), 0.0)  # by number: when the next one is
        self._is_ready = False  # all of them have been up
        self._stops = 0
        self._is_to_stop = False  # said before it runs
        self._waker: socket.socket | None = None  # a byte sent there is a signal
        self._readable: set[int] = set()
        self._parent = os.getpid()
        self._is_to_restart = False  # another one is to take over
        self._successor: _restart.Successor | None = None  # until it has taken over, or ended
        self._start_until = 0.0  # when it must have come up
        self._is_replaced = False
        self._failure: SystemExit | None = None
        self._log = logging.getLogger("wirecall")

    @property
    def uris(self) -> list[str]:
        """Where they listen, with the actual ports."""
        return [listeners.uri for listeners in self._listeners]

    def run(self) -> None:
        """Returns when all have ended. SystemExit where the process that was to be replaced goes on."""
        reader, writer = socket.socketpair()
        with reader, writer, contextlib.ExitStack() as after:
            reader.setblocking(False)
            writer.setblocking(False)
            self._handlers = {number: signal.signal(number, lambda *_: None) for number in self._signals}
            self._wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
            _restart.release()
            after.callback(self._restore_signals)
            self._waker = writer
            after.callback(self._drop_waker)
            if self._is_to_stop:
                self._stop()
            while self._workers or self._due or self._successor is not None:
                self._fork_due()
                for arrived in self._wait(reader):
                    if arrived in (signal.SIGINT, signal.SIGTERM):
                        self._stop()
                    elif arrived == signal.SIGHUP:
                        for pid in self._workers:
                            os.kill(pid, signal.SIGHUP)
                    elif arrived == signal.SIGUSR2:
                        self._is_to_restart = True
                self._reap()
                self._take_over()
                self._tell_ready()
                self._start_successor()
                self._hand_over()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """As SIGTERM does, from any thread."""
        self._is_to_stop = True
        if (waker := self._waker) is not None:
            with contextlib.suppress(OSError):  # it is about to end
                waker.send(bytes([signal.SIGTERM]))

    def _drop_waker(self) -> None:
        self._waker = None

    def _wait(self, reader: socket.socket) -> bytes:
        """For a signal, for what another process says, or until something is due."""
        waiting = select.poll()
        waiting.register(reader, select.POLLIN)
        times = list(self._due.values())
        for worker in self._workers.values():
            if not worker.is_up and worker.channel.fileno() >= 0:
                waiting.register(worker.channel, select.POLLIN)
        if (successor := self._successor) is not None:
            times.append(successor.kill_at or self._start_until)
            if not successor.kill_at:
                waiting.register(successor.channel, select.POLLIN)
        if self._told >= 0:
            times.append(self._settle_at)
            waiting.register(self._told, select.POLLIN)
        left = min((until - time.monotonic() for until in times), default=None)
        self._readable = {one for one, _ in waiting.poll(None if left is None else max(left, 0) * 1000)}
        for worker in self._workers.values():
            if worker.channel.fileno() in self._readable:
                worker.hear()
        try:
            return reader.recv(4096)
        except BlockingIOError:
            return b""

    def _fork_due(self) -> None:
        now = time.monotonic()
        for number in [number for number, due in self._due.items() if due <= now]:
            del self._due[number]
            own, others = socket.socketpair()
            # A signal is held until the child has its own handlers.
            signal.pthread_sigmask(signal.SIG_BLOCK, self._handlers)
            pid = os.fork()
            if pid == 0:
                own.close()
                self._live(number, others)
            others.close()
            own.setblocking(False)
            self._workers[pid] = Worker(number, now, own)
            if self._predecessor is None:
                self._workers[pid].tell(_SERVE)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._handlers)

    def _live(self, number: int, channel: socket.socket) -> NoReturn:
        """In the child. Ctrl-C reaches the parent alone, which tells all; a child ends with its parent."""
        code = 1
        try:
            os.setpgid(0, 0)
            self._leave_to_parent()
            self._restore_signals()
            if signal.SIGUSR2 in self._handlers:  # which is for the parent alone
                signal.signal(signal.SIGUSR2, lambda *_: None)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._handlers.keys() - {signal.SIGHUP})
            _native.end_with_parent()
            if os.getppid() == self._parent:
                self._serve(self._listeners, number, Turn(channel))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                logging.shutdown()
            os._exit(code)

    def _leave_to_parent(self) -> None:
        """Whoever is at the other end of these sees the parent go."""
        for worker in self._workers.values():
            worker.channel.close()
        if self._successor is not None:
            self._successor.channel.close()
        if self._predecessor is not None:
            self._predecessor.leave()

    def _restore_signals(self) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _stop(self) -> None:
        self._stops += 1
        self._due.clear()
        self._listeners.clear()
        for pid in self._workers:
            os.kill(pid, signal.SIGKILL if self._stops > 2 else signal.SIGTERM)
        if self._successor is not None and not self._successor.kill_at:
            self._successor.give_up(_restart.NOT_UP)

    def _reap(self) -> None:
        for pid in list(self._workers):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended == 0:
                continue
            worker = self._workers.pop(pid)
            worker.channel.close()
            code = os.waitstatus_to_exitcode(status)
            if self._stops or (self._is_replaced and code in (0, -signal.SIGTERM)):
                continue
            if code == 0:  # it was told to stop, and the program with it
                self._stop()
                continue
            cause = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
            what = f"worker {worker.number} (process {pid}) has ended {cause}"
            if self._predecessor is not None:
                self._fail(SystemExit(f"wirecall: {what}; the process that was to be replaced goes on"))
            elif self._is_replaced:
                self._log.error("%s", what)
            else:
                self._log.error("%s; another takes its place", what)
                now = time.monotonic()
                self._due[worker.number] = now if now - worker.begun > PAUSE_S else now + PAUSE_S

    # ---- this process takes over from another one ----

    def _take_over(self) -> None:
        """Once all workers are about to serve. They do when the other one has let go."""
        if self._predecessor is None or self._stops:
            return
        if self._told < 0:
            if self._are_up():
                self._told = self._predecessor.come_up()
                self._settle_at = time.monotonic() + _restart.START_S
            return
        if self._told not in self._readable and time.monotonic() < self._settle_at:
            return
        self._told = -1
        try:
            self._predecessor.settle()
            self._predecessor = None
            for listeners in self._listeners:
                listeners.own_file()
            for worker in self._workers.values():
                worker.tell(_SERVE)
        except SystemExit as failure:
            self._fail(failure)

    def _are_up(self) -> bool:
        return sum(worker.is_up for worker in self._workers.values()) == self._count

    def _tell_ready(self) -> None:
        """A service manager, once."""
        if not self._is_ready and self._predecessor is None and not self._stops and self._are_up():
            self._is_ready = True
            _service_manager.notify_ready()

    def _fail(self, failure: SystemExit) -> None:
        self._failure = failure
        self._stop()

    # ---- another one takes over from this process ----

    def _start_successor(self) -> None:
        """Where that is due, and this process has taken over itself."""
        if not self._is_to_restart or self._predecessor is not None:
            return
        self._is_to_restart = False
        if self._successor is not None or self._is_replaced or self._stops:
            return
        try:
            with contextlib.ExitStack() as closing:
                sockets = []
                for listeners in self._listeners:
                    for descriptor, uri in listeners.share():
                        closing.callback(os.close, descriptor)
                        sockets.append((descriptor, uri))
                self._successor = _restart.Successor(sockets)
            self._readable.clear()  # its descriptor may be one that was readable before
            self._start_until = time.monotonic() + _restart.START_S
        except Exception as failure:
            self._tell_failure(failure)

    def _hand_over(self) -> None:
        """To the other process, once it has come up; or that is ended."""
        successor = self._successor
        if successor is None:
            return
        if not successor.kill_at:
            self._look_at(successor)
        if successor.kill_at and (how := successor.ended()):
            self._successor = None
            self._tell_failure(how)

    def _look_at(self, successor: _restart.Successor) -> None:
        if successor.channel.fileno() not in self._readable:
            if time.monotonic() >= self._start_until:
                successor.give_up(_restart.LATE)
        elif not successor.has_come_up():
            successor.give_up(_restart.NOT_UP)
        elif not successor.takes_over(successor.tell_to_serve):
            successor.give_up(_restart.CANNOT_LET_GO)
        else:
            self._successor = None
            self._let_go()
            successor.has_taken_over()

    def _let_go(self) -> None:
        self._is_replaced = True
        self._due.clear()
        for listeners in self._listeners:
            listeners.keep_file()
        self._listeners.clear()
        for pid, worker in self._workers.items():
            if worker.is_up:
                worker.tell(_REPLACED)
            else:
                os.kill(pid, signal.SIGTERM)

    def _tell_failure(self, why: object) -> None:
        if not self._stops:
            self._log.error("no other process takes over, and this one goes on: %s", why)
