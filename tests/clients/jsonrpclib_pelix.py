"""jsonrpclib-pelix: calls, named parameters, notifications, batches and errors, by HTTP over TCP and unix."""

import os

import jsonrpclib


def check(server: jsonrpclib.ServerProxy) -> None:
    assert server.subtract(42, 23) == 19
    assert server.subtract(subtrahend=23, minuend=42) == 19
    assert server.echo({"nested": [1, None, "ü", 1.5]}) == {"nested": [1, None, "ü", 1.5]}
    assert server._notify.echo("nobody waits") is None
    batch = jsonrpclib.MultiCall(server)
    batch.subtract(5, 3)
    batch._notify.echo(1)
    batch.sum(1, 2, 3)
    assert list(batch()) == [2, 6]
    try:
        server.fail(7, "as asked")
        raise AssertionError("fail did not fail")
    except jsonrpclib.ProtocolError as error:
        assert error.args[0][:2] == (7, "as asked"), error.args
    try:
        server.no_such_method()
        raise AssertionError("no_such_method was found")
    except jsonrpclib.ProtocolError as error:
        assert error.args[0][0] == -32601, error.args


check(jsonrpclib.ServerProxy(f"http://127.0.0.1:{os.environ['TCP_PORT']}/rpc"))
check(jsonrpclib.ServerProxy(f"unix+http://{os.environ['UNIX_PATH']}"))
