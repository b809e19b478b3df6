"""Functions served at a port: numbers, bytes, an image and an array. `ucall.py --serve` serves until Ctrl-C, then

    wirecall call sum a=2 b=3
    wirecall call echo data:file=photo.png > copy.png
    wirecall call rotate image=@photo.png angle=90 > rotated.png
    wirecall call normalize x=@a.npy > b.npy
"""

import json
import sys
import urllib.request

import numpy as np
import wirecall
from numpy.typing import NDArray
from PIL import Image

server = wirecall.Server("calc")


@server
def sum(a: int, b: int) -> int:
    return a + b


@server
def echo(data: bytes) -> bytes:
    return data


@server(blocking=True)
def rotate(image: Image.Image, angle: int) -> Image.Image:
    return image.rotate(angle, expand=True)


@server
def normalize(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return x / np.linalg.norm(x)


def main() -> None:
    if "--serve" in sys.argv:
        server.run(*sys.argv[2:])
        return
    with server.serving() as uri, wirecall.connect(uri, encoding="msgpack") as c:
        print(c.sum(2, 3), c.sum(a=2, b=3))
        print(c.echo(b"\x00\xff"))
        picture = Image.new("RGB", (40, 20), "red")
        print(c.rotate(picture, 90).size)
        print(c.normalize(np.array([3.0, 4.0])))
        # By HTTP as well, at the same port.
        request = {"jsonrpc": "2.0", "method": "sum", "params": {"a": 2, "b": 3}, "id": 1}
        with urllib.request.urlopen(uri.replace("tcp", "http", 1), json.dumps(request).encode()) as response:
            print(json.load(response)["result"])


if __name__ == "__main__":
    main()
