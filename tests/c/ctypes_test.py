#!/usr/bin/env python3
"""The C interface from Python's ctypes, which knows nothing of the header: a server whose handlers are in Python, and a
client.

usage: ctypes_test.py LIBRARY
"""

import ctypes
import json
import sys
import threading
import typing
import unittest

LIBRARY = ctypes.CDLL(sys.argv.pop(1))
Pointer, Text, Size, I64 = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64
Handler = ctypes.CFUNCTYPE(None, Pointer, Pointer)
Done = ctypes.CFUNCTYPE(None, Pointer, Pointer)


def function(name: str, result: typing.Any, *arguments: typing.Any) -> typing.Any:
    found = LIBRARY[name]
    found.restype, found.argtypes = result, arguments
    return found


abi_version = function("wc_abi_version", ctypes.c_uint32)
last_error = function("wc_last_error", Text)
server_new = function("wc_server_new", Pointer, Text)
server_free = function("wc_server_free", None, Pointer)
server_method = function("wc_server_method", ctypes.c_int, Pointer, Text, Handler, Pointer)
server_listen = function("wc_server_listen", ctypes.c_int, Pointer, Text)
server_endpoint = function("wc_server_endpoint", Text, Pointer, Size)
server_run = function("wc_server_run_without_signals", ctypes.c_int, Pointer)
server_stop = function("wc_server_stop", None, Pointer)
server_handle = function(
    "wc_server_handle", ctypes.c_int, Pointer, Text, Size, ctypes.POINTER(Text), ctypes.POINTER(Size)
)
param_i64 = function("wc_param_i64", ctypes.c_bool, Pointer, Size, Text, ctypes.POINTER(I64))
param_json = function(
    "wc_param_json", ctypes.c_bool, Pointer, Size, Text, ctypes.POINTER(Pointer), ctypes.POINTER(Size)
)
result_i64 = function("wc_result_i64", None, Pointer, I64)
result_json = function("wc_result_json", None, Pointer, Text, Size)
call_defer = function("wc_call_defer", Pointer, Pointer)
call_release = function("wc_call_release", None, Pointer)
client_new = function("wc_client_new", Pointer, Text, Text)
client_free = function("wc_client_free", None, Pointer)
client_call = function("wc_client_call", Pointer, Pointer, Text, Text, Pointer)
client_start = function("wc_client_start", ctypes.c_int, Pointer, Text, Text, Pointer, Done, Pointer, Pointer)
reply_error = function("wc_reply_error", ctypes.c_int, Pointer)
reply_json = function("wc_reply_json", Text, Pointer, Pointer)
reply_free = function("wc_reply_free", None, Pointer)


@Handler
def add(call: int, _user: int) -> None:
    a, b = I64(), I64()
    if param_i64(call, 0, b"a", a) and param_i64(call, 1, b"b", b):
        result_i64(call, a.value + b.value)


@Handler
def reverse(call: int, _user: int) -> None:
    """Answers from a thread of its own."""
    later = call_defer(call)

    def answer() -> None:
        text, size = Pointer(), Size()
        if param_json(later, 0, b"values", text, size):
            values = json.loads(ctypes.string_at(text.value, size.value))
            out = json.dumps(values[::-1]).encode()
            result_json(later, out, len(out))
            result_json(later, b"1", 1)
        call_release(later)

    threading.Thread(target=answer).start()


class Interface(unittest.TestCase):
    def setUp(self) -> None:
        self.server = server_new(None)
        self.assertEqual(server_method(self.server, b"add", add, None), 0)
        self.assertEqual(server_method(self.server, b"reverse", reverse, None), 0)

    def tearDown(self) -> None:
        server_free(self.server)

    def test_version(self) -> None:
        self.assertEqual(abi_version(), 1)

    def test_text_in_text_out(self) -> None:
        reply, size = Text(), Size()
        message = b'{"jsonrpc":"2.0","method":"add","params":{"b":2,"a":1},"id":7}'
        self.assertEqual(server_handle(self.server, message, len(message), reply, size), 0)
        self.assertEqual(reply.value, b'{"jsonrpc":"2.0","result":3,"id":7}')
        self.assertEqual(size.value, len(reply.value))

    def test_failures_have_a_code_and_a_text(self) -> None:
        self.assertEqual(server_method(self.server, b"add", add, None), -32007)
        self.assertIn(b"add is registered already", last_error())
        self.assertIsNone(server_new(b"{"))
        self.assertEqual(server_listen(self.server, b"nonsense"), -2)

    def test_server_and_client(self) -> None:
        self.assertEqual(server_listen(self.server, b"tcp://127.0.0.1:0"), 0)
        running = threading.Thread(target=server_run, args=(self.server,))
        running.start()
        client = client_new(server_endpoint(self.server, 0), None)
        for method, params, wanted in (
            (b"add", b"[40, 2]", 42),
            (b"reverse", b'[[1, "x", null]]', [None, "x", 1]),
        ):
            reply = client_call(client, method, params, None)
            self.assertEqual(reply_error(reply), 0)
            self.assertEqual(json.loads(reply_json(reply, None)), wanted)
            reply_free(reply)
        reply = client_call(client, b"reverse", b"[]", None)
        self.assertEqual(reply_error(reply), -32602)
        reply_free(reply)
        outcomes, came = [], threading.Event()

        @Done
        def done(outcome: int, _user: int) -> None:
            outcomes.append(reply_json(outcome, None))
            came.set()

        self.assertEqual(client_start(client, b"add", b"[1, 2]", None, done, None, None), 0)
        self.assertTrue(came.wait(60))
        self.assertEqual(outcomes, [b"3"])
        client_free(client)
        server_stop(self.server)
        running.join()


if __name__ == "__main__":
    unittest.main()
