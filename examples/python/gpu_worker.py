"""A worker at a broker that computes on a GPU: with PyTorch where that finds one, else on the CPU, with PyTorch or
NumPy, whose numbers are the same within a tolerance.

    wirecall serve &
    python gpu_worker.py --url tcp://127.0.0.1:8545 &
    wirecall call vectorize description='a cat' image=@cat.png > vector.npy

Calls of several callers go through the model together: in one transfer from page-locked memory, one launch of each of
its kernels, and one transfer back.
"""

import argparse
import asyncio
import contextlib
import time
import zlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import numpy as np
import wirecall
from numpy.typing import NDArray
from PIL import Image

try:
    import torch
except ImportError:
    torch = None

BATCH = 32  # calls
WORDS, PIXELS, HIDDEN, SIZE = 4096, 32 * 32 * 3, 256, 64
SEED = np.uint64(7)


def weights() -> dict[str, NDArray[np.float32]]:
    """Of a network of three layers; equal on all machines, and in examples/gpu/network_cpu.cpp."""
    shapes = {"words": (WORDS, HIDDEN), "pixels": (PIXELS, HIDDEN), "out": (2 * HIDDEN, SIZE)}
    sizes = [rows * columns for rows, columns in shapes.values()]
    # SplitMix64, of whose numbers the upper 24 bits become a float from -1 to 1; scaled to a variance of 1 / rows.
    bits = SEED + np.arange(1, sum(sizes) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ bits >> 30) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ bits >> 27) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> 31
    drawn = np.split(np.float32(bits >> 40) * np.float32(2**-23) - 1, np.cumsum(sizes)[:-1])
    return {
        name: matrix.reshape(shape) * np.float32((3 / shape[0]) ** 0.5)
        for (name, shape), matrix in zip(shapes.items(), drawn, strict=True)
    }


class NumpyModel:
    device = "cpu, by NumPy"

    def __init__(self) -> None:
        self._weights = weights()
        self._words, self._pixels = np.zeros((BATCH, WORDS), np.float32), np.zeros((BATCH, PIXELS), np.float32)

    def inputs(self, count: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Where the next batch is to be written: `count` rows of zeros each."""
        for array in (self._words, self._pixels):
            array[:count] = 0
        return self._words[:count], self._pixels[:count]

    def forward(self, count: int) -> NDArray[np.float32]:
        """Unit vectors of SIZE for what has been written to `inputs`."""
        w = self._weights
        hidden = [np.tanh(self._words[:count] @ w["words"]), np.tanh(self._pixels[:count] @ w["pixels"])]
        out = np.concatenate(hidden, axis=1) @ w["out"]
        return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12)

    def matrix(self, x: NDArray[np.float32]) -> Any:
        return x

    def step(self, matrix: Any, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """One step of the power iteration, normalised."""
        product = matrix.T @ (matrix @ vector)
        return product / np.linalg.norm(product)


class TorchModel:
    def __init__(self) -> None:
        on_gpu = torch.cuda.is_available()
        self._to = torch.device("cuda" if on_gpu else "cpu")
        self.device = torch.cuda.get_device_name() if on_gpu else "cpu, by PyTorch"
        self._weights = {name: torch.from_numpy(array).to(self._to) for name, array in weights().items()}
        # Page-locked: the GPU reads it by itself, while the processor goes on.
        self._words = torch.zeros((BATCH, WORDS), pin_memory=on_gpu)
        self._pixels = torch.zeros((BATCH, PIXELS), pin_memory=on_gpu)

    def inputs(self, count: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        for tensor in (self._words, self._pixels):
            tensor[:count] = 0
        return self._words[:count].numpy(), self._pixels[:count].numpy()

    def forward(self, count: int) -> NDArray[np.float32]:
        with torch.inference_mode():
            words, pixels = (one[:count].to(self._to, non_blocking=True) for one in (self._words, self._pixels))
            w = self._weights
            hidden = torch.cat([torch.tanh(words @ w["words"]), torch.tanh(pixels @ w["pixels"])], dim=1)
            out = torch.nn.functional.normalize(hidden @ w["out"], dim=1)
            return out.cpu().numpy()

    def matrix(self, x: NDArray[np.float32]) -> Any:
        return torch.from_numpy(x).to(self._to)

    def step(self, matrix: Any, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.inference_mode():
            product = matrix.T @ (matrix @ torch.from_numpy(vector).to(self._to))
            return (product / product.norm()).cpu().numpy()


class Worker:
    """The methods. The model is used by one thread at a time."""

    def __init__(self, model: NumpyModel | TorchModel) -> None:
        self._model = model
        self._lock = asyncio.Lock()
        self._calls = self._batches = 0
        begun = time.perf_counter()
        for _ in range(2):  # the first launch of a kernel loads it
            self._vectors(["warm"] * BATCH, [None] * BATCH)
        self._warm_up_ms = (time.perf_counter() - begun) * 1000
        self._calls = self._batches = 0

    def _vectors(self, texts: Sequence[str], images: Sequence[Image.Image | None]) -> NDArray[np.float32]:
        words, pixels = self._model.inputs(len(texts))
        for row, text in zip(words, texts, strict=True):
            for word in text.lower().split():
                row[zlib.crc32(word.encode()) % WORDS] += 1
        for row, image in zip(pixels, images, strict=True):
            if image is not None:
                row[:] = np.asarray(image.convert("RGB").resize((32, 32)), np.float32).ravel() / 255
        self._calls += len(texts)
        self._batches += 1
        return self._model.forward(len(texts))

    async def vectorize(self, description: list[str], image: list[Image.Image | None]) -> list[NDArray[np.float32]]:
        """The unit vector of a text, or of a text and an image"""
        async with self._lock:
            return list(await asyncio.to_thread(self._vectors, description, image))

    async def principal(self, x: NDArray[np.float32], steps: int = 10) -> AsyncIterator[NDArray[np.float32]]:
        """The principal direction of the rows of x: better estimates with each step"""
        if x.ndim != 2 or 0 in x.shape:
            raise wirecall.InvalidParams("x is a matrix")
        vector = np.ones(x.shape[1], np.float32) / np.float32(x.shape[1] ** 0.5)
        matrix = self._model.matrix(x)
        for _ in range(steps):
            async with self._lock:
                vector = await asyncio.to_thread(self._model.step, matrix, vector)
            yield vector

    def health(self) -> dict[str, Any]:
        """On what it computes, and how much it has done"""
        return {
            "device": self._model.device,
            "warm_up_ms": round(self._warm_up_ms, 1),
            "calls": self._calls,
            "batches": self._batches,
        }


async def serve(url: str, model: NumpyModel | TorchModel) -> None:
    worker = Worker(model)
    async with wirecall.aconnect(url, encoding="msgpack") as c:
        # The broker keeps what two batches do not take; so a quicker worker gets more of it.
        await c.provide("vectorize", worker.vectorize, batch=BATCH)
        await c.provide("principal", worker.principal, concurrency=1, queue=100)
        await c.provide("gpu.health", worker.health)
        print(f"serving on {model.device}", flush=True)
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--url", default="tcp://127.0.0.1:8545", help="of the broker")
    parser.add_argument("--numpy", action="store_true", help="compute with NumPy, also where there is PyTorch")
    words = parser.parse_args()
    model = NumpyModel() if torch is None or words.numpy else TorchModel()
    asyncio.run(serve(words.url, model))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
