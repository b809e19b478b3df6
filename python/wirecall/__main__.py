"""`wirecall serve FILE.py`, to which the command comes for Python; also `python -m wirecall serve FILE.py`."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import pathlib
import sys
import threading
import tomllib
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NoReturn

from . import _command_line, _native, server
from ._deferred_sighup import DeferredSighup
from .errors import Error

DESCRIPTION = """\
Serves the methods of a Python program: of its wirecall.Server, which is the one named app where there are several, or
NAME. What is said here overrides the program."""
EPILOG = """\
Every option of a server is a flag as well, such as --limits-batch 10; wirecall serve --help lists them."""


# More processes than any machine has processors: a mistype.
WORKERS_MAX = 1024


def main(words: list[str] | None = None) -> int:
    """The exit status: 0 done, 1 the program raises, 2 what is asked for cannot be, 3 nothing can be listened on."""
    parser = Parser(prog="wirecall serve", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False)
    parser.add_argument("program", metavar="FILE.py[:NAME]", help="the program; a module's name will do as well")
    parser.add_argument("--listen", action="append", default=[], metavar="URI", help="where, once for each endpoint")
    parser.add_argument("--print-config", action="store_true", help="print the options in force as TOML, and exit")
    parser.add_argument("--workers", metavar="N", help="processes that share the endpoints")
    parser.add_argument(
        "--reload", action="store_true", help="start the program anew when a Python file in its folder changes"
    )
    parser.add_argument(
        "--insecure", action="store_true", help="listen where other machines can connect without authentication"
    )
    parser.add_argument("-c", "--config", metavar="FILE", help="options as TOML, which flags override")
    words = sys.argv[1:] if words is None else words
    if words[:1] != ["serve"]:
        _refuse("python -m wirecall is for serve FILE.py; the command `wirecall` has all the rest")
    own_words, flags = _split_words(words[1:])
    flag_options = _options_of_flags(flags)  # one that is none may have taken the program for its value
    parsed, more = parser.parse_known_args(own_words)
    if more:
        _refuse(f"serve takes one program, which is {parsed.program}: start another wirecall serve for {more[0]}")
    if parsed.listen and flag_options.keys() & {"host", "port"}:
        _refuse("--listen says where to listen, so leave --host and --port out")
    program, _, name = parsed.program.partition(":")
    workers = 0 if parsed.workers is None else _worker_count(parsed.workers)

    def options() -> dict[str, Any]:
        file_options = {} if parsed.config is None else _options_of_file(parsed.config)
        return _command_line.merged(file_options, flag_options)

    try:
        at_start = options()
    except ValueError as failure:
        _refuse(str(failure))
    if parsed.reload and (status := _reload_program(words, program)) is not None:
        return status
    # From now on it is for the server, which has yet to be loaded.
    sighup = DeferredSighup() if threading.current_thread() is threading.main_thread() else None
    given = _command_line.current = _command_line.CommandLine(
        parsed.listen, workers, at_start, parsed.insecure, parsed.print_config, "--insecure", sighup=sighup
    )
    if parsed.config is not None:
        given.read_options = options
    given.names_another = lambda listening: (
        isinstance(named := vars(_module_being_loaded(program)).get(name or "app"), server.Server)
        and named is not listening
    )
    if name:
        # A program that runs its server at once, while it is loaded, runs the one that the command names.
        given.runs_another = lambda running: _server_named(_module_being_loaded(program), program, name) is not running
    module = _load(program)
    if not given.has_run:
        served = _server_in(module, program, name)
        try:
            served.run()
        except ValueError as failure:  # of an endpoint, which this command line or a file names
            _refuse(str(failure).removeprefix("wirecall: "))
    return 0


def _reload_program(words: list[str], program: str) -> int | None:
    """The exit status of a Reloader; None in the process that it has started."""
    from . import _reload

    if _reload.become_reloaded():
        return None
    path = pathlib.Path(program)
    if path.suffix == ".py" and not path.is_file():
        _refuse(f"there is no file {program}")
    folder = path.parent if path.suffix == ".py" else pathlib.Path()
    return _reload.Reloader(words, folder.resolve()).run()


class Parser(argparse.ArgumentParser):
    """What is wrong with a command line is told in a line, as everywhere."""

    def error(self, message: str) -> NoReturn:
        _refuse(f"{message}; {self.prog} --help tells what there is")


def _worker_count(workers: str) -> int:
    count = int(workers) if workers.isascii() and workers.isdigit() and len(workers) <= len(str(WORKERS_MAX)) else 0
    if not 1 <= count <= WORKERS_MAX:
        _refuse(f"--workers {workers}: give a number of processes from 1 to {WORKERS_MAX}")
    return count


def _split_words(words: list[str]) -> tuple[list[str], list[str]]:
    """The words that are for this command alone, and the flags of options, each with its value."""
    alone = ("-h", "--help", "--insecure", "--print-config", "--reload")
    with_value = ("-c", "--config", "--listen", "--workers")
    own: list[str] = []
    flags: list[str] = []
    left = list(reversed(words))
    while left:
        word = left.pop()
        name, equals, _ = word.partition("=")
        into = own if not word.startswith("-") or name in alone + with_value else flags
        into.append(word)
        if not word.startswith("-") or equals or name in alone or not left:
            continue
        if left[-1] in ("true", "false") or not _native.is_boolean_flag(name):
            into.append(left.pop())
    return own, flags


def _refuse(line: str, status: int = 2) -> NoReturn:
    print(f"wirecall: {line}", file=sys.stderr)
    sys.exit(status)


def _options_of_flags(flags: list[str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    try:
        for name, value in _native.options_of_flags(flags):
            _set_option(options, name, json.loads(value))
    except ValueError as failure:
        _refuse(str(failure))
    return options


def _options_of_file(config: str) -> dict[str, Any]:
    """Those of a TOML file. ValueError with what is wrong with them, and its lines."""
    try:
        text = pathlib.Path(config).read_bytes()
    except OSError as failure:
        raise ValueError(f"cannot read the file {config}: {failure.strerror}") from None
    if wrong := _native.wrong_with_toml(text):
        raise ValueError(f"{config}: {wrong}")
    options: dict[str, Any] = {}
    for name, value in _leaves(tomllib.loads(text.decode())):
        _set_option(options, name, value)
    return options


def _leaves(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _set_option(options: dict[str, Any], name: str, value: Any) -> None:
    """Of "limits.batch", that of its group."""
    *groups, last = name.split(".")
    for group in groups:
        options = options.setdefault(group, {})
    options[last] = value


def _load(program: str) -> ModuleType:
    if not program.endswith(".py"):
        sys.path.insert(0, "")
        try:
            return importlib.import_module(program)
        except ModuleNotFoundError as failure:
            if failure.name is None or not program.startswith(failure.name):
                _exit_with_traceback(failure)
            _refuse(f"there is no module {program}: name one, or a file that ends in .py")
        except Exception as failure:
            _exit_with_traceback(failure)
    path = pathlib.Path(program)
    if not path.is_file():
        _refuse(f"there is no file {program}")
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as failure:
        _exit_with_traceback(failure)
    return module


def _exit_with_traceback(failure: Exception) -> NoReturn:
    """What the program has raised, as if it ran by itself; what wirecall has to say to it, in a line with the place."""
    import traceback

    told = traceback.TracebackException.from_exception(failure)
    ours = str(pathlib.Path(__file__).parent)
    ways_there = (ours, "<frozen", "<string>")  # "<string>" is how the command starts Python
    begun = next((i for i, frame in enumerate(told.stack) if not frame.filename.startswith(ways_there)), None)
    frames = [] if begun is None else told.stack[begun:]
    if (
        frames
        and frames[-1].filename.startswith(ours)
        and isinstance(failure, TypeError | ValueError | OSError | Error)
    ):
        last = next(frame for frame in reversed(frames) if not frame.filename.startswith(ours))
        line = f"{last.filename}:{last.lineno}: {str(failure).removeprefix('wirecall: ')}"
        _refuse(line, 3 if isinstance(failure, OSError) else 2)
    told.stack = traceback.StackSummary.from_list(frames)
    print("".join(told.format()), end="", file=sys.stderr)
    sys.exit(1)


def _module_being_loaded(program: str) -> ModuleType:
    return sys.modules[pathlib.Path(program).stem if program.endswith(".py") else program]


def _server_named(module: ModuleType, program: str, name: str) -> server.Server:
    known = vars(module)
    if isinstance(served := known.get(name), server.Server):
        return served
    servers = [key for key, value in known.items() if isinstance(value, server.Server)]
    has = f"it has {', '.join(servers)}" if servers else "make one, app = wirecall.Server()"
    other = f", but a {type(served).__name__} of that name" if name in known else ""
    _refuse(f"{program} has no wirecall.Server named {name}{other}: {has}")


def _server_in(module: ModuleType, program: str, name: str) -> server.Server:
    servers = {key: value for key, value in vars(module).items() if isinstance(value, server.Server)}
    if name:
        return _server_named(module, program, name)
    if "app" in servers:
        return servers["app"]
    if len(servers) != 1:
        several = f"has several: say which, {program}:{next(iter(servers), '')}"
        none = "makes none: app = wirecall.Server()"
        _refuse(f"there must be a wirecall.Server to serve, and {program} {several if servers else none}")
    return next(iter(servers.values()))


if __name__ == "__main__":
    sys.exit(main())
