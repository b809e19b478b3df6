"""NumPy arrays and bytes as parameters and results; in MessagePack they travel as they are."""

import numpy as np

import wirecall

app = wirecall.Server("arrays")


@app
def normalize(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x)


@app
def reverse(data: bytes) -> bytes:
    return data[::-1]


with app.serving() as uri:
    for encoding in ("json", "msgpack"):
        with wirecall.connect(uri, encoding=encoding) as c:
            print(encoding, c.normalize(np.array([3.0, 4.0])), c.reverse(b"abc"))
