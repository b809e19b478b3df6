"""One method in every encoding, by TCP and through shared memory: what is sent differs, what is called does not."""

import wirecall

app = wirecall.Server("encodings")


@app
def checksum(data: bytes, weights: list[float]) -> dict[str, float]:
    return {"bytes": sum(data), "weights": sum(weights)}


for endpoint in ["tcp://127.0.0.1:0", "shm://encodings-example"]:
    with app.serving(endpoint) as uri:
        for encoding in ["json", "msgpack", "cbor", "protobuf", "packed"]:
            with wirecall.connect(uri, encoding=encoding) as c:
                print(uri.split(":")[0], encoding, c.checksum(b"\x01\x02\xff", [0.5, 2]))
