"""Arrays, images and what else stands for a value beyond JSON."""

from __future__ import annotations

import base64
import io
import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pydantic
import pytest
from hinted import CODECS, read, round_trip
from PIL import Image

from wirecall import _shapes
from wirecall._native import dumps, loads


@CODECS
@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<i2", "<u8", "?", "<c16", "S3"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3, 4)])
def test_arrays(dtype, shape, encoding):
    array = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    for hint in (np.ndarray, Any):
        came = round_trip(hint, array, encoding)
        assert came.dtype == array.dtype
        assert came.shape == array.shape
        assert (came == array).all()


def test_what_stands_for_a_value_is_that_value_without_a_hint_too():
    assert read(Any, '[{"$bytes":"aGk="}]') == [b"hi"]
    assert read(Any, dumps({"a": np.arange(3)}))["a"].tolist() == [0, 1, 2]
    for text in (
        '{"$bytes":"!"}',
        '{"$bytes":"aGk=","a":1}',
        '{"$npy":"aGk="}',
        '{"$image":"aGk="}',
        '{"a":1,"$bytes":"aGk="}',
    ):
        assert read(Any, text) == json.loads(text)


def test_arrays_may_come_as_lists():
    assert read(npt.NDArray[np.float64], "[[1,2],[3,4]]").tolist() == [[1, 2], [3, 4]]
    for text in ("[[1],[2,3]]", '{"$npy":"!"}', '{"$npy":""}', '{"a":1}', "7"):
        with pytest.raises(ValueError, match="an array"):
            read(np.ndarray, text)


def test_numbers_of_numpy():
    assert dumps([np.int32(7), np.float32(0.5), np.bool_(True), np.float64(1.5)]) == b"[7,0.5,true,1.5]"
    assert read(np.int32, "7") == np.int32(7)
    assert type(read(np.float32, "0.5")) is np.float32
    with pytest.raises(TypeError, match="Python objects"):
        dumps(np.array([object()]))


ARRAYS = [
    np.arange(6).astype(kind).reshape(2, 3)
    for kind in ("?", "i1", "u8", ">i4", "f2", "f4", "f8", "c16", "S3", "U2", "M8[ns]", "m8[s]")
] + [
    np.array(2.5),
    np.zeros((0, 3)),
    np.zeros((2, 0), "S0"),
    np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    np.arange(24).reshape(2, 3, 4)[:, ::2, ::-1],
    np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2),
    np.zeros(2, [("x", "f4"), ("name", "U3")]),
    np.zeros(2, [("größe", "i2"), ("大", "i2")]),
    np.zeros(3, [(f"member{i:05}", "i1") for i in range(300)]),
    np.array([[float("nan"), float("inf")], [-0.0, 1e300]]),
    np.broadcast_to(np.float32(1.5), (2, 2)),
]


@CODECS
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype.str[:9]}{array.shape}")
def test_arrays_of_every_kind(array, encoding):
    came = round_trip(np.ndarray, array, encoding)
    assert (came.dtype, came.shape) == (array.dtype, array.shape)
    assert came.tobytes() == array.tobytes()
    assert came.flags.writeable
    assert came.flags.aligned
    # NumPy reads it as well.
    assert np.load(io.BytesIO(base64.b64decode(json.loads(dumps(array))["$npy"]))).tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "npy",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\xff\xff{",
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
        b"\x93NUMPY\x09\x00\x02\x00{}",
        b"\x93NUMPY\x03\x00\x02\x00\x00\x00{}",
        *(
            b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 16
            for header in (
                b"{'descr': '<f4', 'fortran_order': False, 'shape': (9,), }",
                b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
                b"{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976, 16), }",
                b"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
                b"{'descr': '<f4', 'fortran_order': False}",
                b"{'descr': 'nonsense', 'fortran_order': False, 'shape': (1,), }",
                b"__import__('os').abort()",
            )
        ),
    ],
)
def test_what_is_no_array(npy):
    text = json.dumps({"$npy": base64.b64encode(npy).decode()})
    with pytest.raises(ValueError, match="an array"):
        read(np.ndarray, text)


MARKED = [
    {"$bytes": "aGk="},
    {"$bytes": 1},
    {"$npy": "x"},
    {"$image": None},
    {"$": 1},
    {"$": {"$bytes": "aGk="}},
    {"$": {"$": {"$x": 1}}},
    {"$foo": 1},
    {"$ref": "#/definitions/a"},
    {"$bytes": "aGk=", "b": 1},
    [{"$bytes": {"$npy": b"x"}}],
]


@CODECS
@pytest.mark.parametrize("value", MARKED, ids=str)
def test_user_data_that_looks_like_more_is_what_it_was(value, encoding):
    assert round_trip(Any, value, encoding) == value
    if isinstance(value, dict):
        assert round_trip(dict[str, Any], value, encoding) == value


def test_only_what_would_be_taken_for_more_is_wrapped():
    assert dumps({"$bytes": 1}) == b'{"$":{"$bytes":1}}'
    assert dumps({"$ref": "a"}) == b'{"$ref":"a"}'
    assert read(Any, '{"$":{"$ref":"a"}}') == {"$ref": "a"}
    assert read(dict[str, int], '{"$":{"$bytes":1}}') == {"$bytes": 1}
    assert read(Any, '{"$":{"$a":1,"b":2}}') == {"$": {"$a": 1, "b": 2}}
    assert read(Any, '{"$":{"$a":1},"b":2}') == {"$": {"$a": 1}, "b": 2}


class Measured(pydantic.BaseModel, ser_json_inf_nan="constants"):
    value: float


@CODECS
def test_what_a_library_writes_that_is_no_json_is_not_sent(encoding):
    with pytest.raises(TypeError, match="no JSON"):
        dumps([Measured(value=float("nan"))], encoding)
    assert dumps(Measured(value=1.5), encoding) == dumps({"value": 1.5}, encoding)


def test_numbers_in_msgpack():
    for value in (float("nan"), float("inf"), -float("inf"), 1.0, -0.0, 2**63, 2**64 - 1, -(2**63), 1.5):
        came = round_trip(Any, value, encoding="msgpack")
        assert type(came) is type(value)
        assert repr(came) == repr(value)
    assert dumps(1.0, encoding="msgpack") == b"\xcb\x3f\xf0" + b"\0" * 6
    with pytest.raises(TypeError, match="beyond 64 bits"):
        dumps(2**64, encoding="msgpack")


def test_an_array_of_nothing_is_made_of_nobodys_memory():
    header = b"{'descr': '|S0', 'fortran_order': False, 'shape': (3000,), }"
    npy = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with pytest.raises(ValueError, match="an array"):
        read(np.ndarray, json.dumps({"$npy": base64.b64encode(npy).decode()}))


@pytest.mark.parametrize("data", ["c7 00 ff", "d4 ff 00", "d7 ff ff ff ff ff 00 00 00 00"])
def test_what_is_no_point_in_time(data):
    with pytest.raises(ValueError):
        loads(bytes.fromhex(data), _shapes.shape_of(Any), "msgpack")


def test_models_are_given_no_text_meant_for_people():
    class Held(pydantic.BaseModel, extra="allow"):
        pass

    assert loads(bytes.fromhex("81 a1 61 01"), _shapes.shape_of(Held), "msgpack").a == 1
    for data in ("81 01 02", "81 a1 61 d4 05 00", "81 a1 61 cb 7f f8 00 00 00 00 00 00"):
        with pytest.raises(ValueError, match="JSON can express"):
            loads(bytes.fromhex(data), _shapes.shape_of(Held), "msgpack")


@CODECS
def test_images(encoding):
    image = Image.new("RGB", (3, 2), (1, 2, 3))
    came = round_trip(Image.Image, image, encoding)
    assert came.size == (3, 2)
    assert came.getpixel((2, 1)) == (1, 2, 3)
    with pytest.raises(ValueError, match="an image"):
        read(Image.Image, '{"$image":"AAAA"}')


@CODECS
def test_arrays_have_the_elements_that_are_hinted(encoding):
    def read_as(hint: Any, value: Any) -> Any:
        return read(hint, dumps(value, encoding), encoding)

    for hint, value, dtype in (
        (npt.NDArray[np.float32], np.array([1.5], np.float32), np.float32),
        (npt.NDArray[np.float32], np.array([1], np.int16), np.float32),
        (npt.NDArray[np.float32], [1, 2.5], np.float32),
        (npt.NDArray[np.float32], [], np.float32),
        (npt.NDArray[np.uint8], [[1], [255]], np.uint8),
        (npt.NDArray[np.float64], np.array([1], ">f4"), np.float64),
        (npt.NDArray[np.complex64], [1.5], np.complex64),
        (npt.NDArray[np.floating[Any]], np.array([1], np.float32), np.float32),
        (npt.NDArray[np.str_], np.array(["ab"]), np.dtype("<U2")),
        (npt.NDArray[Any], np.array([1], np.int8), np.int8),
        (np.ndarray, np.array([1], np.int8), np.int8),
    ):
        came = read_as(hint, value)
        assert came.dtype == dtype, hint
        assert came.tolist() == (value if isinstance(value, list) else value.tolist())
    for hint, value, words in (
        (npt.NDArray[np.float32], np.array([1]), "expected an array of float32, not of int64"),
        (npt.NDArray[np.float32], np.array([1.0]), "expected an array of float32, not of float64"),
        (npt.NDArray[np.float32], [1e300], "expected an array of float32, not of float64"),
        (npt.NDArray[np.uint8], [256], "expected an array of uint8, not of int64"),
        (npt.NDArray[np.int64], [1.5], "expected an array of int64, not of float64"),
        (npt.NDArray[np.int64], [True], "expected an array of int64, not of bool"),
        (npt.NDArray[np.int64], ["x"], "expected an array of int64, not of <U1"),
        (npt.NDArray[np.floating[Any]], np.array([1]), "expected an array of floating, not of int64"),
        (npt.NDArray[np.float32 | np.float64], np.array([1]), "expected an array of float32 or float64, not of int64"),
        (npt.NDArray[np.float32], {"a": 1}, "expected an array of float32, got"),
    ):
        with pytest.raises(ValueError) as caught:
            read_as(hint, value)
        assert words in str(caught.value)


def test_numbers_that_numpy_has_no_room_for():
    for hint, text in ((np.uint8, "300"), (np.uint8, "-1"), (np.float32, "1e300"), (np.float16, "1e5")):
        with pytest.raises(ValueError, match=f"expected a {hint.__name__}, got"):
            read(hint, text)
    assert dumps(np.longdouble(1.5)) == b"1.5"
