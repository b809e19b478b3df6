"""Reloader: `wirecall serve FILE.py --reload`, in development. It serves the program in a process of its own, which it
ends when a Python file changes, and starts anew once that has ended. It loads nothing of the program itself."""

from __future__ import annotations

import contextlib
import math
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

from . import _native

# Between two looks at the files; of a folder that takes long to look at, ten times as long as that takes.
PAUSE_S = 0.25

# A program that has not ended so long after it was told to is killed.
KILLED_AFTER_S = 60.0

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)
# In the environment of a process that is reloaded: the process id of its Reloader.
_RELOADER = "WIRECALL_RELOADER"
_SKIPPED_FOLDERS = ("__pycache__", "node_modules", "site-packages")


def become_reloaded() -> bool:
    """Has this process end with the Reloader that has started it. False where none has."""
    reloader = os.environ.pop(_RELOADER, "")
    if not reloader:
        return False
    _native.end_with_parent()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (*_SIGNALS, signal.SIGUSR2))
    # It would be taken for that of a source of the same size that is saved within the same second.
    sys.dont_write_bytecode = True
    if str(os.getppid()) != reloader:
        sys.exit(0)  # it had ended before
    return True


class Reloader:
    """Serves by `python -m wirecall` with these words. In the main thread alone."""

    def __init__(self, words: list[str], folder: pathlib.Path) -> None:
        self._command = [sys.executable, "-m", "wirecall", *words]
        self._changes = changed_files(folder)

    def run(self) -> int:
        """Until SIGINT or SIGTERM, or until the program ends by itself without an error. The first and the second of
        these signals are handed on, as SIGTERM; the third ends the program at once. SIGHUP is handed on as it is, and
        ends this process where it ends that one. SIGUSR2 starts the program anew as a change does. Returns the exit
        status."""
        signal.pthread_sigmask(signal.SIG_BLOCK, (*_SIGNALS, signal.SIGHUP, signal.SIGUSR2))
        next(self._changes)  # what is changed from here on has not been loaded
        process = self._start()
        stops = 0
        is_due = is_told = False
        kill_at = math.inf
        while True:
            arrived = signal.sigtimedwait((*_SIGNALS, signal.SIGHUP, signal.SIGUSR2), PAUSE_S)
            if arrived is not None and arrived.si_signo == signal.SIGHUP:
                process.send_signal(signal.SIGHUP)
            elif arrived is not None and arrived.si_signo == signal.SIGUSR2:
                if not is_due:
                    is_due = True
                    _tell("SIGUSR2 has come")
                    process.terminate()
                    kill_at = time.monotonic() + KILLED_AFTER_S
            elif arrived is not None and arrived.si_signo != signal.SIGCHLD:
                stops += 1
                process.send_signal(signal.SIGTERM if stops < 3 else signal.SIGKILL)
            if (changed := next(self._changes)) and not is_due:
                is_due = True
                _tell(f"{os.path.relpath(min(changed))} has changed")
                process.terminate()
                kill_at = time.monotonic() + KILLED_AFTER_S
            status = process.poll()
            if status is None:
                if time.monotonic() >= kill_at:
                    _tell(f"the program has not ended within {KILLED_AFTER_S:g} s, and is killed")
                    process.kill()
                    kill_at = math.inf
                continue
            if status == -signal.SIGHUP and not is_due:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
                signal.raise_signal(signal.SIGHUP)
            if stops or (status == 0 and not is_due):
                return 0 if is_told else max(status, 0)
            if is_due:
                process = self._start()
                is_due = is_told = False
                kill_at = math.inf
            elif not is_told:
                is_told = True
                how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
                _tell(f"the program has ended {how}, and starts again when a file changes")

    def _start(self) -> subprocess.Popen[bytes]:
        # In a group of its own: Ctrl-C is for this process, which hands it on.
        return subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            env={**os.environ, _RELOADER: str(os.getpid())},
            process_group=0,
        )


def _tell(line: str) -> None:
    print(f"wirecall: {line}", file=sys.stderr, flush=True)


def changed_files(folder: pathlib.Path) -> Iterator[set[str]]:
    """The Python files in that absolute folder, and in those below, that have changed since it was asked last; at first
    none. By watchfiles where that is installed, else by looking at their times."""
    try:
        import watchfiles
    except ModuleNotFoundError:
        return _by_looking(folder)

    def folders_below(path: str) -> tuple[str, ...]:
        return pathlib.Path(path).relative_to(folder).parent.parts

    return (
        {path for _, path in changes}
        for changes in watchfiles.watch(
            folder,
            watch_filter=lambda _, path: path.endswith(".py") and not any(map(_skips, folders_below(path))),
            step=10,
            rust_timeout=1,
            yield_on_timeout=True,
        )
    )


def _skips(name: str) -> bool:
    return name.startswith(".") or name in _SKIPPED_FOLDERS


def _by_looking(folder: pathlib.Path) -> Iterator[set[str]]:
    known = dict(_stamps(folder))
    due = 0.0
    yield set()
    while True:
        begun = time.monotonic()
        if begun < due:
            yield set()
            continue
        found = dict(_stamps(folder))
        due = begun + 10 * (time.monotonic() - begun)
        changed = {path for path, _ in known.items() ^ found.items()}
        known = found
        yield changed


def _stamps(folder: pathlib.Path) -> Iterator[tuple[str, tuple[int, int, int]]]:
    left = [str(folder)]
    while left:
        with contextlib.suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if not _skips(entry.name):
                        left.append(entry.path)
                elif entry.name.endswith(".py"):
                    with contextlib.suppress(OSError):
                        stat = entry.stat()
                        yield entry.path, (stat.st_mtime_ns, stat.st_size, stat.st_ino)
