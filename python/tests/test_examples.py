"""The examples run, and say what they say here."""

from __future__ import annotations

import contextlib
import io
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image

TOOL = pathlib.Path(sys.executable).with_name("wirecall")
EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "python"
NEEDS_SERVER = {
    "blocking_client": "5\n5\nHello, Ada!\n[0, 2, 4]\n['b'] integer\n",
    "async_client": "5\n1000\nHELLO, ADA!\n",
}
ALONE = {
    "values": (
        "{'label': 'cups (LARGE, 2 corners)', 'due': '2026-02-27'}\n"
        "{'label': 'cups (SMALL, 0 corners)', 'due': '2026-02-27'}\n"
        'Invalid params (-32602): at box.size, expected one of small, large, got "huge"\n'
        'Invalid params (-32602): at box.corners.1.1, expected number, got "two"\n'
        "Invalid params (-32602): at weight, expected at most 20, got 30\n"
    ),
    "errors": (
        "2.0\n1001 not enough money {'left': 100}\n"
        "an exception, which only the server's log tells of: Internal error (-32603)\n"
        'refused before it was called: Invalid params (-32602): at amount, expected integer, got "ten"\n'
    ),
    "streams": "0\n1\n2\n[0, 1, 4, 9, 16]\n",
    "arrays": "json [0.6 0.8] b'cba'\nmsgpack [0.6 0.8] b'cba'\n",
    "blocking": "[0, 1, 2, 3, 4]\nopened\n",
    "calling_back": "ann wants to be bob\nbob\nann wants to be root\nann\n",
    "inputs": "5050\n{'quotient': 3, 'remainder': 1}\ncomputing the square of 12\n144 144\n[1, 3, 42]\n",
    "encodings": "".join(
        f"{by} {encoding} {{'bytes': 258, 'weights': 2.5}}\n"
        for by in ["tcp", "shm"]
        for encoding in ["json", "msgpack", "cbor", "protobuf", "packed"]
    ),
    "broker": "HELLO\n1 has it\nsensors.roof.temp 21.5\n",
    "../coming-from/murpc": (
        "8 42\n8\nMethod not found (-32601): no name is near it; `wirecall ls` lists what there is\n"
        "told 1 client\nweather.berlin {'temp': 21.5}\ncounted by the broker: True\n"
    ),
    "../coming-from/ucall": "5 5\nb'\\x00\\xff'\n(20, 40)\n[0.6 0.8]\n5\n",
}


def run(name: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *words], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_example_is_run_here():
    there = {path.stem for path in EXAMPLES.glob("*.py")}
    elsewhere = {"gpu_worker"}  # test_gpu_worker.py
    there |= {f"../coming-from/{path.stem}" for path in EXAMPLES.parent.glob("coming-from/*.py")}
    assert there == {"first_server", *NEEDS_SERVER, *ALONE, *elsewhere}


@pytest.mark.parametrize("name", ALONE)
def test_alone(name):
    assert run(name).startswith(ALONE[name])


@contextlib.contextmanager
def served(name: str, *words: str) -> Iterator[str]:
    """Where it is served, until the end of the block."""
    with subprocess.Popen(
        [sys.executable, EXAMPLES / f"{name}.py", *words, "tcp://127.0.0.1:0"], stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        try:
            yield server.stderr.readline().split(" at ")[1].split()[0]
        finally:
            server.terminate()
    assert server.returncode == 0


def test_clients_of_the_first_server():
    with served("first_server") as uri:
        for name, said in NEEDS_SERVER.items():
            assert run(name, uri) == said


def test_functions_of_the_ucall_example_are_called_by_the_command(tmp_path):
    Image.new("RGB", (40, 20), "red").save(tmp_path / "photo.png")
    np.save(tmp_path / "a.npy", np.array([3.0, 4.0]))
    with served("../coming-from/ucall", "--serve") as uri:

        def call(*words: str) -> bytes:
            return subprocess.run(
                [TOOL, "call", "--url", uri, *words], cwd=tmp_path, stdout=subprocess.PIPE, timeout=300, check=True
            ).stdout

        assert call("sum", "a=2", "b=3") == b"5\n"
        assert call("echo", "data:file=photo.png") == (tmp_path / "photo.png").read_bytes()
        assert Image.open(io.BytesIO(call("rotate", "image=@photo.png", "angle=90"))).size == (20, 40)
        assert np.load(io.BytesIO(call("normalize", "x=@a.npy"))).tolist() == [0.6, 0.8]
