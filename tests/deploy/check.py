"""Checks examples/deploy and packaging by the tools of those who read them: check.py BUILD.

The compose file by the schema of compose-spec (check-jsonschema of PyPI), the manifests by those of Kubernetes
(kubernetes-validate of PyPI), the units by systemd-analyze; and that each stops a server only after it may have
drained. What is not installed is left out, and named; where nothing else has failed the exit status is 77 then.
"""

import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).parents[2]
DEPLOY = FOLDER / "examples" / "deploy"
SKIPPED = 77

failures = []
left_out = []


def run(*words):
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        failures.append(f"{' '.join(map(str, words))}:\n{ended.stdout}{ended.stderr}")
    return ended


def tools(build):
    """The interpreter of an environment that has the schema tools; None where they cannot be had."""
    if importlib.util.find_spec("kubernetes_validate") and importlib.util.find_spec("check_jsonschema"):
        return sys.executable
    folder = build / "tests" / "deploy" / "venv"
    python = folder / "bin" / "python"
    wanted = pathlib.Path(__file__).with_name("requirements.txt")
    done = folder / wanted.name
    if not done.exists() or done.read_text() != wanted.read_text():
        for words in (
            (sys.executable, "-m", "venv", str(folder)),
            (str(python), "-m", "pip", "install", "--quiet", "--requirement", str(wanted)),
        ):
            if subprocess.run(words, capture_output=True, check=False).returncode != 0:
                left_out.append(f"the schema tools cannot be installed: pip install -r {wanted.relative_to(FOLDER)}")
                return None
        done.write_text(wanted.read_text())
    return str(python)


def require(condition, what):
    if not condition:
        failures.append(what)


def check_compose(python):
    path = DEPLOY / "compose.yaml"
    if python is not None:
        run(python, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path))
    text = path.read_text()
    drain = int(re.search(r'"--drain-ms", "(\d+)"', text)[1])
    grace = int(re.search(r"stop_grace_period: (\d+)s", text)[1])
    require(drain < grace * 1000, "compose.yaml: drain_ms is not within stop_grace_period")


def check_kubernetes(python):
    paths = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    manifests = [path for path in paths if path.name != "kustomization.yaml"]
    if python is not None:
        run(python, "-m", "kubernetes_validate", "--strict", *map(str, manifests))
    listed = re.findall(r"- (\S+\.yaml)", (DEPLOY / "kubernetes" / "kustomization.yaml").read_text())
    require(sorted(listed) == [path.name for path in manifests], "kustomization.yaml does not list all manifests")
    text = (DEPLOY / "kubernetes" / "wirecall.yaml").read_text()
    drain = int(re.search(r"drain_ms = (\d+)", text)[1])
    pause = int(re.search(r'command: \["sleep", "(\d+)"\]', text)[1])
    grace = int(re.search(r"terminationGracePeriodSeconds: (\d+)", text)[1])
    require(pause * 1000 + drain < grace * 1000, "wirecall.yaml: preStop and drain_ms are not within the grace period")
    for path in ("/readyz", "/healthz"):
        require(f"path: {path}" in text, f"wirecall.yaml: nothing asks for {path}")


def check_systemd():
    units = [*(DEPLOY / "systemd").glob("wirecall.*"), FOLDER / "packaging" / "wirecall.service"]
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        left_out.append("systemd-analyze is not installed: apt-get install systemd")
    for folder in {unit.parent for unit in units}:
        with tempfile.TemporaryDirectory() as there:
            copies = []
            for unit in folder.glob("wirecall.*"):
                # The command is not installed where this runs.
                text = unit.read_text().replace("/usr/local/bin/wirecall", "/bin/true")
                copy = pathlib.Path(there) / unit.name
                copy.write_text(text)
                copies.append(str(copy))
            if analyze is not None and copies:
                run(analyze, "verify", "--man=no", *sorted(copies))


def check_principals(build):
    """A server takes each of them: its first line is no error."""
    kept = (DEPLOY / "principals.json").read_text()
    manifest = (DEPLOY / "kubernetes" / "wirecall.yaml").read_text()
    secret = re.search(r"principals\.json: \|\n((?:    .*\n)+)", manifest)[1]
    for text in (kept, secret):
        with tempfile.TemporaryDirectory() as there:
            path = pathlib.Path(there) / "principals.json"
            path.write_text(text)
            path.chmod(0o600)
            words = ["serve", "--listen", f"unix://{there}/socket", "--principals-file", str(path)]
            with subprocess.Popen([str(build / "wirecall"), *words], stderr=subprocess.PIPE, text=True) as server:
                first = server.stderr.readline()
                server.terminate()
                server.communicate()
            require("passes on calls" in first, f"principals: {first}")


def check_options(build):
    """The command takes the flags and the file of the examples."""
    wirecall = str(build / "wirecall")
    text = (DEPLOY / "compose.yaml").read_text()
    flags = re.findall(r'"([^"]*)"', re.search(r"command: \[([^\]]*)\]", text)[1])
    printed = run(wirecall, *flags, "--print-config").stdout
    require('url = "nats://nats:4222"' in printed, "compose.yaml: its flags name no cluster")
    manifest = (DEPLOY / "kubernetes" / "wirecall.yaml").read_text()
    lines = re.search(r"wirecall\.toml: \|\n((?:    .*\n|\n)+)", manifest)[1]
    with tempfile.TemporaryDirectory() as there:
        path = pathlib.Path(there) / "wirecall.toml"
        path.write_text(re.sub(r"^    ", "", lines, flags=re.MULTILINE))
        printed = run(wirecall, "serve", "-c", str(path), "--print-config").stdout
    require('url = "nats://nats:4222"' in printed, "wirecall.yaml: its file names no cluster")
    require("drain_ms = 20000" in printed, "wirecall.yaml: its file has no drain_ms")


def main():
    build = pathlib.Path(sys.argv[1])
    python = tools(build)
    check_compose(python)
    check_kubernetes(python)
    check_systemd()
    check_principals(build)
    check_options(build)
    for failure in failures:
        print(failure)
    for reason in left_out:
        print(f"skipped: {reason}")
    if failures:
        return 1
    return SKIPPED if left_out else 0


if __name__ == "__main__":
    sys.exit(main())
