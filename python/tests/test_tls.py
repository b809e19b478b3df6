"""Servers and clients by TLS: options of a group, raw peers by the standard library's ssl, clients of every scheme."""

from __future__ import annotations

import asyncio
import hashlib
import json
import pathlib
import queue
import re
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import wirecall

SCHEMES = ("tls", "https", "wss")


@dataclass(frozen=True)
class Files:
    cert: str
    key: str


class Authority:
    """Certificates of one authority, made by the openssl command."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.cafile = str(folder / "ca.pem")
        self._made = 0
        names = ["-subj", "/CN=authority", "-out", self.cafile]
        self._openssl("req", "-x509", *self._new_key("ca"), "-days", "30", *names)

    def issue(self, names: str, usage: str = "serverAuth,clientAuth") -> Files:
        self._made += 1
        path = str(self.folder / f"leaf-{self._made}")
        pathlib.Path(f"{path}.ext").write_text(f"subjectAltName={names}\nextendedKeyUsage={usage}\n")
        self._openssl("req", *self._new_key(f"leaf-{self._made}"), "-subj", "/CN=leaf", "-out", f"{path}.csr")
        self._openssl(
            *("x509", "-req", "-in", f"{path}.csr", "-CA", self.cafile, "-CAkey", str(self.folder / "ca.key")),
            *("-CAcreateserial", "-days", "30", "-extfile", f"{path}.ext", "-out", f"{path}.pem"),
        )
        return Files(f"{path}.pem", f"{path}.key")

    def _new_key(self, name: str) -> tuple[str, ...]:
        key = str(self.folder / f"{name}.key")
        return ("-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-keyout", key)

    @staticmethod
    def _openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def files(authority: Authority) -> Files:
    return authority.issue("DNS:localhost,IP:127.0.0.1")


def add_methods(app: wirecall.Server) -> None:
    @app
    def count(to: int) -> Iterator[int]:
        yield from range(to)

    @app
    def sum(a: int, b: int) -> int:
        return a + b

    @app
    def echo(text: str) -> str:
        return text


@pytest.fixture
def port(files: Files) -> Iterator[int]:
    app = wirecall.Server("by tls", broker=True, tls={"cert": [files.cert], "key": [files.key]})
    add_methods(app)
    with app.serving() as uri:
        yield int(uri.rsplit(":", 1)[1])


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority.cafile)


def test_a_raw_peer_speaks_json_and_both_say_the_end(port: int, authority: Authority) -> None:
    with socket.create_connection(("127.0.0.1", port)) as raw:
        peer = trusting(authority).wrap_socket(raw, server_hostname="localhost", suppress_ragged_eofs=False)
        assert peer.version() == "TLSv1.3"
        peer.sendall(b'{"jsonrpc":"2.0","method":"sum","params":[2,3],"id":1}\n')
        assert peer.recv(4096) == b'{"jsonrpc":"2.0","result":5,"id":1}\n'
        peer.unwrap()


def test_a_raw_peer_that_trusts_nobody_of_ours_goes(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as raw, pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(raw, server_hostname="localhost")


def test_urllib_posts(port: int, authority: Authority) -> None:
    request = urllib.request.Request(
        f"https://localhost:{port}/rpc", data=b'{"jsonrpc":"2.0","method":"sum","params":[2,3],"id":1}'
    )
    with urllib.request.urlopen(request, context=trusting(authority)) as answer:
        assert json.loads(answer.read()) == {"jsonrpc": "2.0", "result": 5, "id": 1}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_clients_call_by_every_scheme(port: int, authority: Authority, scheme: str) -> None:
    with wirecall.connect(f"{scheme}://localhost:{port}", cafile=authority.cafile) as c:
        assert c.sum(2, 3) == 5
        assert c.echo("x" * 1_000_000) == "x" * 1_000_000
        with c.batch() as b:
            five, nine = b.sum(2, 3), b.sum(4, 5)
        assert (five.result(), nine.result()) == (5, 9)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_asynchronous_clients_call_by_every_scheme(port: int, authority: Authority, scheme: str) -> None:
    async def call() -> list[int]:
        async with wirecall.aconnect(f"{scheme}://127.0.0.1:{port}", cafile=authority.cafile) as c:
            return list(await asyncio.gather(*(c.sum(i, i) for i in range(20))))

    assert asyncio.run(call()) == [2 * i for i in range(20)]


@pytest.mark.parametrize(("scheme", "other"), [("tls", "wss"), ("wss", "tls")])
def test_clients_provide_stream_subscribe_and_publish_by_tls(
    port: int, authority: Authority, scheme: str, other: str
) -> None:
    with (
        wirecall.connect(f"{scheme}://localhost:{port}", cafile=authority.cafile, websocket_deflate=True) as one,
        wirecall.connect(f"{other}://localhost:{port}", cafile=authority.cafile) as two,
    ):
        one.provide("product", lambda a, b: a * b)
        assert two.product(6, 7) == 42
        assert list(one.count.stream(100)) == list(range(100))
        heard: queue.Queue[tuple[str, object]] = queue.Queue()
        one.subscribe("news.*", lambda topic, value: heard.put((topic, value)))
        assert two.publish("news.local", {"a": 1}) == 1
        assert heard.get(timeout=60) == ("news.local", {"a": 1})


def test_a_certificate_that_a_server_makes_can_be_pinned(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "calc.py"
    program.write_text(
        "import wirecall\n"
        'app = wirecall.Server("calc", tls={"self_signed": True})\n'
        "@app\n"
        "def sum(a: int, b: int) -> int:\n"
        "    return a + b\n"
        'app.run("tcp://127.0.0.1:0")\n'
    )
    with subprocess.Popen([sys.executable, str(program)], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            port = re.search(r":(\d+)", process.stderr.readline())
            pin = re.search(r"sha256:[0-9a-f]{64}", process.stderr.readline())
            assert port is not None
            assert pin is not None
            with wirecall.connect(f"tls://localhost:{port[1]}", tls={"pin": pin[0]}) as c:
                assert c.sum(2, 3) == 5
        finally:
            process.kill()


def test_workers_do_not_make_a_certificate_each() -> None:
    app = wirecall.Server("calc", tls={"self_signed": True})
    with pytest.raises(ValueError, match=r"tls\.cert and tls\.key"):
        app.run("tcp://127.0.0.1:0", workers=2)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_client_says_what_is_wrong_with_a_server(port: int, authority: Authority, scheme: str) -> None:
    uri = f"{scheme}://localhost:{port}"
    with pytest.raises(wirecall.ConnectionLost, match="unable to get local issuer certificate; name the authority"):
        wirecall.connect(uri, connect_attempts=1).sum(2, 3)
    with pytest.raises(wirecall.ConnectionLost, match=r"the server's certificate is not the one of tls\.pin"):
        wirecall.connect(uri, connect_attempts=1, tls={"pin": "sha256:" + "0" * 64}).sum(2, 3)
    der = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", port)))
    with wirecall.connect(uri, tls={"pin": "sha256:" + hashlib.sha256(der).hexdigest()}) as c:
        assert c.sum(2, 3) == 5
    with wirecall.connect(uri, tls={"no_verify": True}) as c:
        assert c.sum(2, 3) == 5


def test_a_certificate_is_a_principal(files: Files, authority: Authority, tmp_path: pathlib.Path) -> None:
    ada = authority.issue("email:ada@example.com", "clientAuth")
    principals = tmp_path / "principals.json"
    principals.write_text('[{"name": "ada", "certificates": ["email:ada@example.com"], "call": ["sum"]}]')
    principals.chmod(0o600)
    asking = {"cert": [files.cert], "key": [files.key], "client_auth": "optional", "client_ca": authority.cafile}
    app = wirecall.Server("of principals", tls=asking, principals_file=str(principals))
    add_methods(app)
    with app.serving() as plain:
        uri = "tls://localhost:" + plain.rsplit(":", 1)[1]
        shown = {"client_cert": ada.cert, "client_key": ada.key}
        with wirecall.connect(uri, cafile=authority.cafile, tls=shown) as c:
            assert c.sum(2, 3) == 5
            with pytest.raises(wirecall.MethodNotFound):
                c.echo("x")
        with wirecall.connect(uri, cafile=authority.cafile) as c, pytest.raises(wirecall.Error):
            c.sum(2, 3)


@pytest.mark.parametrize(
    ("tls", "said"),
    [
        ({"cert": ["/nonexistent.pem"], "key": ["/nonexistent.key"]}, "tls.cert: /nonexistent.pem cannot be read"),
        ({"cert": ["a.pem"]}, "give a key for each certificate"),
        ({"self_signed": True, "client_auth": "required"}, "tls.client_ca is empty"),
        ({"client_auth": "perhaps"}, "tls.client_auth"),
        ({"certificate": "x"}, "tls.certificate"),
    ],
)
def test_options_of_a_server_are_looked_at(tls: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said.replace(".", r"\.")):
        wirecall.Server("x", tls=tls)


def test_options_of_a_client_are_looked_at() -> None:
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        wirecall.connect("tls://localhost:1", tls={"pin": "sha256:12"})
    with pytest.raises(ValueError, match=r"cafile: /nonexistent\.pem cannot be read"):
        wirecall.connect("tls://localhost:1", cafile="/nonexistent.pem")
