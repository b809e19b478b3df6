"""What a client sends and is given is the same in each encoding of messages."""

from __future__ import annotations

from typing import Any

import pytest

import wirecall

VALUES = [None, True, -(2**63), 2**64 - 1, 1.5, "é\n", [], {}, {"b": [1, {"a": None}], "a": 3.0}, {"$x": 1}]


@pytest.mark.parametrize("encoding", ["json", "msgpack", "cbor", "protobuf"])
def test_values_bytes_errors_and_batches(app, encoding):
    @app
    def echo(value: Any) -> Any:
        return value

    @app
    def listed(data: bytes) -> list[int]:
        return list(data)

    with app.serving() as uri, wirecall.connect(uri, encoding=encoding) as c:
        for value in VALUES:
            assert c.echo(value) == value
        assert c.listed(b"\x00\xff") == [0, 255]
        with pytest.raises(wirecall.MethodNotFound):
            c.nowhere()
        with c.batch() as b:
            one, two = b.echo(1), b.listed(b"a")
        assert (one.result(), two.result()) == (1, [97])
