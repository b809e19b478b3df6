"""Messages of protobuf as hints: read from proto3 JSON, written as it, documented."""

from __future__ import annotations

import base64
import json
import socket
from typing import Any

import pytest
from hinted import CODECS, read, round_trip

import wirecall
from wirecall import _shapes
from wirecall._native import dumps

pytest.importorskip("google.protobuf")

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)


def made() -> tuple[Any, Any]:
    """Of message Tree { int64 big_count = 1; optional bool flag = 2; Tree next = 3; map<string, Tree> by = 4; }"""
    file = descriptor_pb2.FileDescriptorProto(name="forest.proto", package="forest", syntax="proto3")
    tree = file.message_type.add(name="Tree")
    kinds = descriptor_pb2.FieldDescriptorProto
    tree.field.add(name="big_count", number=1, type=kinds.TYPE_INT64, label=1, json_name="bigCount")
    tree.field.add(name="flag", number=2, type=kinds.TYPE_BOOL, label=1, proto3_optional=True, oneof_index=0)
    tree.oneof_decl.add(name="_flag")
    tree.field.add(name="next", number=3, type=kinds.TYPE_MESSAGE, label=1, type_name=".forest.Tree")
    tree.field.add(name="by", number=4, type=kinds.TYPE_MESSAGE, label=3, type_name=".forest.Tree.ByEntry")
    entry = tree.nested_type.add(name="ByEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=kinds.TYPE_MESSAGE, label=1, type_name=".forest.Tree")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("forest.Tree")), pool


# The pool has to outlive its class.
Tree, POOL = made()


def nested(levels: int) -> str:
    return '{"next":' * (levels - 1) + "{}" + "}" * (levels - 1)


@CODECS
def test_a_message_comes_back_as_it_was(encoding):
    tree = Tree(big_count=2**62, flag=False, next=Tree(big_count=-1), by={"a": Tree()})
    assert round_trip(Tree, tree, encoding) == tree
    for message in [
        timestamp_pb2.Timestamp(seconds=1, nanos=500_000_000),
        duration_pb2.Duration(seconds=-3),
        wrappers_pb2.StringValue(value="ü"),
        struct_pb2.Value(null_value=struct_pb2.NULL_VALUE),
    ]:
        assert round_trip(type(message), message, encoding) == message


def test_it_has_the_forms_of_proto3_json():
    assert dumps(Tree(big_count=7, flag=False)) == b'{"bigCount":"7","flag":false}'
    assert read(Tree, '{"bigCount":7}') == read(Tree, '{"big_count":"7"}') == Tree(big_count=7)
    assert not read(Tree, '{"flag":null}').HasField("flag")
    assert dumps([duration_pb2.Duration(seconds=1, nanos=500_000_000)]) == b'["1.500s"]'
    packed = any_pb2.Any()
    packed.Pack(duration_pb2.Duration(seconds=1))
    assert json.loads(dumps(packed)) == {"@type": "type.googleapis.com/google.protobuf.Duration", "value": "1s"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"bigCount":"x"}', "bigCount"),
        ('{"bigCount":9223372036854775808}', "bigCount"),
        ('{"unknown":1}', "unknown"),
        ('{"flag":1}', "flag"),
        ('{"flag":true,"flag":true}', "duplicate"),
        ("[]", "object"),
    ],
)
def test_what_does_not_fit_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        read(Tree, text)


def own_bytes(data: bytes) -> str:
    return json.dumps({"$message": base64.b64encode(data).decode()})


def test_its_own_bytes_are_a_message_with_what_nobody_knows():
    tree = Tree(big_count=2**62, next=Tree(flag=True))
    unknown = b"\xc0\x3e\x07"  # the field 1000
    message = read(Tree, own_bytes(tree.SerializeToString() + unknown))
    assert message.next.flag and message.big_count == 2**62
    assert message.SerializeToString().endswith(unknown)
    spaced = own_bytes(tree.SerializeToString()).replace("{", " { \n").replace(":", " : ")
    assert read(Tree, spaced) == tree
    nobody = any_pb2.Any(type_url="a/nobody.Knows", value=b"\xff")
    assert read(any_pb2.Any, own_bytes(nobody.SerializeToString())) == nobody


def test_a_method_takes_its_own_bytes_in_json_and_in_messagepack():
    app = wirecall.Server()

    @app
    def count(tree: Tree) -> int:
        return tree.big_count

    def packed(text: str) -> bytes:
        return bytes([0xA0 + len(text)]) + text.encode()

    data = Tree(big_count=7).SerializeToString()
    members = [packed("jsonrpc"), packed("2.0"), packed("method"), packed("count"), packed("id"), b"\x01"]
    params = packed("params") + b"\x91" + bytes([0xC7, len(data), 77]) + data
    message = b"\x84" + b"".join(members) + params
    text = f'{{"jsonrpc":"2.0","method":"count","params":[{own_bytes(data)}],"id":1}}\n'.encode()
    asked = {text: b'"result":7', len(message).to_bytes(4) + message: packed("result") + b"\x07"}
    with app.serving() as uri:
        host, _, port = uri.removeprefix("tcp://").partition(":")
        for request, answer in asked.items():
            with socket.create_connection((host, int(port))) as peer:
                peer.sendall(request)
                assert answer in peer.recv(1000)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (own_bytes(b"\xff"), "the bytes of a forest.Tree"),
        ('{"$message":"?"}', "base64"),
        ('{"$message":"","big_count":1}', "no field"),
        ('{"$message":1}', "no field"),
    ],
)
def test_bytes_of_no_message_are_refused(text, words):
    with pytest.raises(ValueError, match=words):
        read(Tree, text)


def test_its_own_bytes_have_a_hundred_levels_at_most():
    def chain(levels: int) -> bytes:
        tree = Tree()
        for _ in range(levels - 1):
            tree = Tree(next=tree)
        return tree.SerializePartialToString()

    read(Tree, own_bytes(chain(100)))
    with pytest.raises(ValueError, match=r"100 levels|the bytes of"):
        read(Tree, own_bytes(chain(101)))


def test_a_hundred_levels_are_the_most():
    read(Tree, nested(100))
    with pytest.raises(ValueError):
        read(Tree, nested(101))


def test_no_more_than_a_hundred_levels_are_written():
    tree = Tree()
    for _ in range(99):
        tree = Tree(next=tree)
    assert dumps(tree).decode() == nested(100)
    with pytest.raises(TypeError, match="no more than 100 levels"):
        dumps(Tree(next=tree))
    deep = Tree()
    leaf = deep
    for _ in range(2_000):  # as many as Python cannot go down
        leaf.next.SetInParent()
        leaf = leaf.next
    with pytest.raises(TypeError, match="no more than 100 levels"):
        dumps(deep)


def test_entries_of_maps_are_levels_so_that_what_an_any_holds_can_be_parsed():
    def struct(levels: int) -> str:
        return '{"a":' * (levels - 1) + "{}" + "}" * (levels - 1)

    def packed(levels: int) -> str:
        return f'{{"@type":"a/google.protobuf.Struct","value":{struct(levels)}}}'

    held = struct_pb2.Struct()
    assert read(any_pb2.Any, packed(33)).Unpack(held)
    read(struct_pb2.Struct, struct(34))
    by = '{"by":{"x":' * 50 + "{}" + "}}" * 50
    lists = "[" * 250 + "]" * 250
    too_deep = [(any_pb2.Any, packed(34)), (struct_pb2.Struct, struct(35)), (Tree, by)]
    too_deep += [(struct_pb2.Struct, struct(250)), (struct_pb2.ListValue, lists), (struct_pb2.Value, lists)]
    for kind, text in too_deep:
        with pytest.raises(ValueError, match="100"):  # the words are json_format's own, or ours
            read(kind, text)


def test_the_place_of_a_mistake_is_told():
    with pytest.raises(ValueError) as failure:
        read(Tree, '{"next":{"next":{"bigCount":"x"}}}')
    assert "next.next.bigCount" in str(failure.value)


def test_messages_are_parameters_and_results_within_other_types():
    app = wirecall.Server()

    @app
    def heights(trees: list[Tree], of: wrappers_pb2.Int64Value | None = None) -> dict[str, Tree]:
        return {"highest": max(trees, key=lambda tree: tree.big_count), "of": Tree(big_count=of.value if of else 0)}

    params = '{"trees":[{"bigCount":"1"},{"big_count":2}],"of":"5"}'
    answered = json.loads(app.handle(f'{{"jsonrpc":"2.0","method":"heights","params":{params},"id":1}}'))
    assert answered["result"] == {"highest": {"bigCount": "2"}, "of": {"bigCount": "5"}}
    refused = json.loads(app.handle('{"jsonrpc":"2.0","method":"heights","params":[[{},{"flag":2}]],"id":1}'))
    assert refused["error"]["code"] == -32602
    assert refused["error"]["data"]["loc"][:2] == ["trees", 1]


def test_the_schema_describes_the_message():
    schema = json.loads(_shapes.shape_of(Tree).schema)
    (definition,) = [one for one in schema["$defs"].values() if one.get("title") == "forest.Tree"]
    assert definition["properties"]["bigCount"] == {"type": "string", "format": "int64"}
    assert definition["properties"]["flag"] == {"type": "boolean"}
    reference = definition["properties"]["next"]["$ref"]
    assert definition["properties"]["by"] == {"type": "object", "additionalProperties": {"$ref": reference}}
    assert reference.removeprefix("#/$defs/") in schema["$defs"]
    assert json.loads(_shapes.shape_of(timestamp_pb2.Timestamp).schema) == {"type": "string", "format": "date-time"}
    others = json.loads(_shapes.shape_of(type_pb2.Type).schema)["$defs"]
    (fields,) = [one["properties"] for one in others.values() if one.get("title") == "google.protobuf.Type"]
    assert fields["syntax"]["enum"][:2] == ["SYNTAX_PROTO2", "SYNTAX_PROTO3"]
