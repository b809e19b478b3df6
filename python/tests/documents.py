"""Runs what a Markdown page shows.

- A `python` block whose first line is `# name.py` is that file; any other is run, all of a page in one namespace.
- A `pycon` block is a session at Python's prompt, in the same namespace.
- A `console` block has commands behind `$ ` and what they say; a line of `…` stands for any lines. A command that ends
  in `&` is a server: the next one, or the end of the page, ends it.

Pages name the port 8545; what runs is given another one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import doctest
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

BLOCK = re.compile(r"^```(python|pycon|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BIN = pathlib.Path(sys.executable).parent


@dataclasses.dataclass
class Block:
    kind: str
    text: str
    line: int


def blocks_of(page: pathlib.Path, section: str = "") -> list[Block]:
    """Of the page, or of what stands under one of its headings."""
    text = page.read_text()
    begin, end = 0, len(text)
    if section:
        begin = text.index(section + "\n")
        following = re.search(r"^## ", text[begin + len(section) :], re.MULTILINE)
        end = begin + len(section) + following.start() if following else end
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start()) + 2)
        for found in BLOCK.finditer(text)
        if begin <= found.start() < end
    ]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as endpoint:
        port: int = endpoint.getsockname()[1]
        return port


class Runner:
    """What a page's blocks are run by, in a folder of their own."""

    def __init__(self, folder: pathlib.Path, page: str) -> None:
        self.folder = folder
        self.page = page
        self.port = str(free_port())
        self.names: dict[str, Any] = {"__name__": "page"}
        self.server: subprocess.Popen[str] | None = None
        self.environment = os.environ | {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "WIRECALL_URL": f"tcp://127.0.0.1:{self.port}",
            "PYTHONUNBUFFERED": "1",
        }

    def run(self, block: Block) -> None:
        getattr(self, "_" + block.kind)(block)

    def _moved(self, text: str) -> str:
        text = text.replace("8545", self.port)
        text = text.replace("app.run()", f'app.run("tcp://127.0.0.1:{self.port}")')
        text = text.replace("app.run(workers", f'app.run("tcp://127.0.0.1:{self.port}", workers')
        text = re.sub(r"connect\(\)", f'connect("tcp://127.0.0.1:{self.port}")', text)
        return re.sub(r"(wirecall serve \S+\.py)(?!.*--listen)", rf"\1 --port {self.port}", text)

    def _python(self, block: Block) -> None:
        first = block.text.split("\n", 1)[0]
        if name := re.fullmatch(r"# (\S+\.py)", first):
            (self.folder / name[1]).write_text(self._moved(block.text))
            return
        lines = "\n" * (block.line - 1)
        with contextlib.chdir(self.folder):
            exec(compile(lines + self._moved(block.text), self.page, "exec"), self.names)  # the page's own code

    def _pycon(self, block: Block) -> None:
        options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        test = doctest.DocTestParser().get_doctest(
            self._moved(block.text), self.names, self.page, self.page, block.line - 1
        )
        said: list[str] = []
        with contextlib.chdir(self.folder):
            failed = doctest.DocTestRunner(optionflags=options).run(test, out=said.append, clear_globs=False).failed
        assert not failed, "".join(said)
        self.names = test.globs

    def _console(self, block: Block) -> None:
        for command, expected in commands_of(block.text):
            moved = self._moved(command)
            if command.endswith("&"):
                self.start(moved.removesuffix("&"), expected)
                continue
            done = subprocess.run(
                moved, shell=True, cwd=self.folder, env=self.environment, text=True, timeout=300, check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            self.compare(command, done.stdout, expected)

    def start(self, command: str, expected: str) -> None:
        self.end()
        self.server = subprocess.Popen(
            ["bash", "-c", "exec " + command], cwd=self.folder, env=self.environment, text=True, stderr=subprocess.PIPE
        )
        assert self.server.stderr is not None
        self.compare(command, self.server.stderr.readline(), expected)

    def end(self) -> None:
        if self.server is not None:
            self.server.send_signal(signal.SIGINT)
            self.server.communicate(timeout=300)
        self.server = None

    def compare(self, command: str, said: str, expected: str) -> None:
        said = said.replace(self.port, "8545").replace(str(BIN) + "/", "")
        if said and not said.endswith("\n"):
            said += "\n"
        parts = [re.escape(part) for part in re.split(r"^…\n", expected, flags=re.MULTILINE)]
        assert re.fullmatch(".*?".join(parts), said, re.DOTALL), (
            f"{self.page}: $ {command}\n{said}--- shown is\n{expected}"
        )


def commands_of(text: str) -> Iterator[tuple[str, str]]:
    command, said = "", ""
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, said
            command, said = line[2:], ""
        elif command.endswith("\\"):
            command = command + "\n" + line
        else:
            said += line + "\n"
    yield command, said


def run_page(page: pathlib.Path, folder: pathlib.Path, section: str = "") -> int:
    """How many blocks there were."""
    runner = Runner(folder, page.name)
    blocks = blocks_of(page, section)
    failures = []
    try:
        for block in blocks:
            try:
                runner.run(block)
            except AssertionError as failure:
                failures.append(f"line {block.line}: {failure}")
    finally:
        runner.end()
    assert not failures, "\n".join(failures)
    return len(blocks)
