"""The example worker that computes on a GPU: here on whatever there is."""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import wirecall

np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")
PATH = pathlib.Path(__file__).parents[2] / "examples" / "python" / "gpu_worker.py"


def _module() -> Any:
    spec = importlib.util.spec_from_file_location("gpu_worker", PATH)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


gpu_worker = _module()


TORCH = pytest.mark.skipif(gpu_worker.torch is None, reason="torch is not installed: its numbers are those of NumPy")


@pytest.fixture(scope="module", params=["NumpyModel", pytest.param("TorchModel", marks=TORCH)])
def client(request: pytest.FixtureRequest) -> Iterator[wirecall.Client]:
    model = getattr(gpu_worker, request.param)()
    words = ["--numpy"] if request.param == "NumpyModel" else []
    with (
        wirecall.Server(broker=True).serving() as uri,
        subprocess.Popen([sys.executable, PATH, *words, "--url", uri], stdout=subprocess.PIPE, text=True) as worker,
    ):
        assert worker.stdout is not None
        assert worker.stdout.readline() == f"serving on {model.device}\n"
        with wirecall.connect(uri, encoding="msgpack") as c:
            yield c
        worker.terminate()


def images(count: int) -> list[Any]:
    random = np.random.default_rng(1)
    return [Image.fromarray(random.integers(0, 255, (40, 50, 3), np.uint8)) for _ in range(count)]


def test_vectors_are_those_of_the_model_whoever_else_calls(client):
    texts = [f"a cat number {i}" for i in range(100)]
    pictures: list[Any] = [None if i % 3 == 0 else image for i, image in enumerate(images(100))]
    with client.batch() as b:
        made = [b.vectorize(description=text, image=image) for text, image in zip(texts, pictures, strict=True)]
    model = gpu_worker.NumpyModel()
    for i in range(0, 100, 13):
        vector = made[i].result()
        words, pixels = model.inputs(1)
        for word in texts[i].split():
            words[0, gpu_worker.zlib.crc32(word.encode()) % gpu_worker.WORDS] += 1
        if pictures[i] is not None:
            pixels[0] = np.asarray(pictures[i].resize((32, 32)), np.float32).ravel() / 255
        assert vector.dtype == np.float32
        assert np.allclose(vector, model.forward(1)[0], atol=1e-5)
    health = client.gpu.health()
    assert health["calls"] == 100
    assert health["batches"] < 50


def test_a_wrong_call_is_its_own_error(client):
    with client.batch() as b:
        right, wrong = b.vectorize("a dog", None), b.vectorize(7, None)
    assert right.result().shape == (gpu_worker.SIZE,)
    with pytest.raises(wirecall.InvalidParams, match="at description"):
        wrong.result()


def test_estimates_come_one_by_one(client):
    rows = np.random.default_rng(2).standard_normal((50, 8)).astype(np.float32) * np.float32([9, 1, 1, 1, 1, 1, 1, 1])
    estimates = list(client.principal.stream(rows, 20))
    assert len(estimates) == 20
    _, _, directions = np.linalg.svd(rows)
    assert abs(float(estimates[-1] @ directions[0])) > 0.9999
    with pytest.raises(wirecall.InvalidParams, match="x is a matrix"):
        list(client.principal.stream(rows[0]))


def test_vectors_are_those_of_the_example_in_cpp(client):
    first = [-0.0979317, 0.0234864, -0.030965, -0.0738766]  # examples/gpu/caller.cpp expects the same
    assert np.allclose(client.vectorize("a cat", None)[:4], first, atol=1e-5)


def test_the_vector_of_nothing_is_of_zeros(client):
    assert not client.vectorize("", None).any()


@TORCH
def test_torch_computes_what_numpy_computes():
    models = gpu_worker.NumpyModel(), gpu_worker.TorchModel()
    random = np.random.default_rng(3)
    words, pixels = random.integers(0, 3, (5, gpu_worker.WORDS)), random.random((5, gpu_worker.PIXELS))
    vectors = []
    for model in models:
        for array, values in zip(model.inputs(5), (words, pixels), strict=True):
            array[:] = values
        vectors.append(model.forward(5))
    assert np.allclose(*vectors, atol=1e-4)
