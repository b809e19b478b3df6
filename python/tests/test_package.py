"""The package as such: what it shows, that its types are true, and what it costs to load."""

from __future__ import annotations

import importlib.metadata
import pathlib
import subprocess
import sys

import pytest

import wirecall

PYTHON = pathlib.Path(__file__).parent.parent
PACKAGE = pathlib.Path(wirecall.__file__).parent


def run(*command: str, cwd: pathlib.Path = PYTHON) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=cwd)


def test_the_public_list_is_what_there_is():
    assert sorted(wirecall.__all__) == wirecall.__all__
    assert dir(wirecall) == sorted(wirecall.__all__)
    for name in wirecall.__all__:
        assert getattr(wirecall, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = wirecall.nothing


def test_errors_are_one_tree():
    errors = [getattr(wirecall, name) for name in wirecall.__all__]
    for error in errors:
        if isinstance(error, type) and issubclass(error, Exception):
            assert issubclass(error, wirecall.Error)
            assert error.__module__ == "wirecall.errors"


def test_it_is_marked_as_typed():
    assert (PACKAGE / "py.typed").exists()


def test_the_wheel_is_for_this_python_and_carries_all():
    """A wheel for 3.11, and one for all versions from 3.12 on; tools/check_wheels.sh builds and tries both."""
    installed = importlib.metadata.distribution("wirecall")
    tag = "cp311-cp311" if sys.version_info < (3, 12) else "cp312-abi3"
    assert f"Tag: {tag}-" in (installed.read_text("WHEEL") or "")
    files = {str(file) for file in installed.files or []}
    assert {"wirecall/py.typed", "wirecall/_native.pyi"} <= files
    assert any(file.endswith("bin/wirecall") for file in files)


def test_the_stub_is_the_one_of_the_module(tmp_path):
    made = tmp_path / "_native.pyi"
    done = run(sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "wirecall._native", "-o", str(made), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert made.read_text() == (PYTHON / "wirecall/_native.pyi").read_text()


def test_mypy_is_content():
    done = run(sys.executable, "-m", "mypy", "--no-incremental")
    assert done.returncode == 0, done.stdout


def test_ruff_is_content():
    for command in ("check", "format"):
        done = run(sys.executable, "-m", "ruff", command, *(["--check"] if command == "format" else []), ".")
        assert done.returncode == 0, done.stdout


def test_importing_loads_nothing_that_is_not_needed():
    program = "import sys, wirecall; print(sorted(sys.modules))"
    loaded = run(sys.executable, "-c", program, cwd=PYTHON.parent).stdout
    for heavy in ("asyncio", "inspect", "numpy", "pydantic", "msgspec", "logging", "typing", "wirecall._native"):
        assert f"'{heavy}'" not in loaded, heavy
