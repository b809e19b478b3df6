"""Python packages of others for the tests here: installed once, into the build folder."""
import os
import subprocess
import sys


def run_in(environment, packages):
    """Goes on as this very program in `environment`, with the packages installed; exit status 77 where they cannot be."""
    python = environment / "bin" / "python"
    if sys.prefix == str(environment):
        return
    ready = environment / ("ready-" + "-".join(packages))
    if not ready.exists():
        for command in ([sys.executable, "-m", "venv", environment], [python, "-m", "pip", "install", "-q", *packages]):
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
            if done.returncode:
                print(f"skipped: {packages} cannot be installed: {(done.stderr or done.stdout).strip()[-300:]}")
                sys.exit(77)
        ready.touch()
    os.execv(python, [str(python), *sys.argv])
