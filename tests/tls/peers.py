#!/usr/bin/env python3
"""What a server by TLS does with peers that keep to no rule, and what openssl s_client finds out about it; exit status 1
where that is something else than RFC 5246, 8446 and docs/tls.md say.

A conversation is made of PyPI's tlslite-ng, in the manner of tlsfuzzer: it ends with the alert that is expected, or with
an answer. After each one the server has to serve a peer that keeps to the rules.
"""
import argparse
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "websocket"))
import environment  # noqa: E402

TLSLITE = "tlslite-ng==0.8.2"
TIMEOUT = 60  # of one that hangs; no result depends on it
PING = b'{"jsonrpc":"2.0","method":"rpc.ping","id":1}\n'
PONG = b'{"jsonrpc":"2.0","result":"pong","id":1}\n'

# RFC 8446 section 6.
CLOSE_NOTIFY, UNEXPECTED_MESSAGE, BAD_RECORD_MAC, RECORD_OVERFLOW = 0, 10, 20, 22
HANDSHAKE_FAILURE, ILLEGAL_PARAMETER, DECODE_ERROR, DECRYPT_ERROR = 40, 47, 50, 51
PROTOCOL_VERSION, INAPPROPRIATE_FALLBACK, NO_RENEGOTIATION = 70, 86, 100
MISSING_EXTENSION, UNRECOGNIZED_NAME, NO_APPLICATION_PROTOCOL = 109, 112, 120


def make_certificates(folder):
    """An ECDSA certificate for localhost and 127.0.0.1, an RSA twin of it, and one for other.example: flags of a server."""
    flags = []
    for name, key, names in (("ecdsa", ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], "DNS:localhost,IP:127.0.0.1"),
                             ("rsa", ["rsa:2048"], "DNS:localhost,IP:127.0.0.1"),
                             ("other", ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], "DNS:other.example")):
        command = ["openssl", "req", "-x509", "-nodes", "-newkey", *key, "-days", "30", "-subj", f"/CN={name}",
                   "-addext", f"subjectAltName={names}", "-out", f"{folder}/{name}.pem", "-keyout", f"{folder}/{name}.key"]
        subprocess.run(command, check=True, capture_output=True)
        Path(f"{folder}/{name}.key").chmod(0o600)
        flags += ["--tls-cert", f"{folder}/{name}.pem", "--tls-key", f"{folder}/{name}.key"]
    return flags


class Server:
    def __init__(self, tool, flags):
        self.process = subprocess.Popen([tool, "serve", "--port", "0", *flags], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "tcp://127.0.0.1:" in line:
                self.port = int(line.split("tcp://127.0.0.1:")[1].split()[0].rstrip("/"))
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), TIMEOUT)

    def is_serving(self):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(self.connect(), server_hostname="localhost") as peer:
            peer.sendall(PING)
            return self.process.poll() is None and peer.recv(4096) == PONG


# ---- bytes of a peer that has no keys ----

def record(kind, payload, version=b"\x03\x01"):
    return bytes([kind]) + version + len(payload).to_bytes(2, "big") + payload


def records(kind, payload, size):
    return b"".join(record(kind, payload[at:at + size]) for at in range(0, len(payload), size))


def extension(kind, payload):
    return kind.to_bytes(2, "big") + len(payload).to_bytes(2, "big") + payload


def listed(payload, bytes_of_length=2):
    return len(payload).to_bytes(bytes_of_length, "big") + payload


GROUPS = extension(10, listed(bytes.fromhex("001d00170018")))
SIGNATURES = extension(13, listed(bytes.fromhex("0403080404010503")))
POINTS = extension(11, b"\x01\x00")
VERSIONS = extension(43, b"\x02\x03\x04")
MODES = extension(45, b"\x01\x01")
# A point of X25519 as good as any: nobody ever computes with it.
SHARE = extension(51, listed(b"\x00\x1d" + listed(bytes(range(9, 41)))))
BY_1_2 = [GROUPS, SIGNATURES, POINTS]
BY_1_3 = [VERSIONS, GROUPS, SIGNATURES, MODES, SHARE]


def hello(extensions, ciphers="130113021303c02bc02fcca9", compressions=b"\x00", version=b"\x03\x03", session=b"", size=None):
    body = (version + bytes(range(32)) + listed(session, 1) + listed(bytes.fromhex(ciphers)) + listed(compressions, 1) +
            listed(b"".join(extensions)))
    return b"\x01" + (len(body) if size is None else size).to_bytes(3, "big") + body


def padded(extensions, size):
    """A client hello of that many bytes."""
    return hello([*extensions, extension(21, b"\x00" * (size - len(hello([*extensions, extension(21, b"")]))))])


def answer_to(server, sent):
    """The first alert's number, "hello" for a server hello that comes before one, "nothing" for an end without either, and
    whether the connection has ended."""
    with server.connect() as peer:
        try:
            for at in range(0, len(sent), 65536):
                peer.sendall(sent[at:at + 65536])
        except OSError:
            pass  # it has seen enough
        got = b""
        try:
            while True:
                while len(got) < 5 or len(got) < 5 + int.from_bytes(got[3:5], "big"):
                    more = peer.recv(65536)
                    if not more:
                        return "nothing"
                    got += more
                if got[0] == 21:
                    return got[6]
                if got[0] == 22 and got[5] == 2:
                    return "hello"
                got = got[5 + int.from_bytes(got[3:5], "big"):]
        except OSError:
            return "nothing"


def without_keys():
    """What is sent, and what comes: an alert's number, or one of several."""
    yield "a hello by 1.2", record(22, hello(BY_1_2)), "hello"
    yield "a hello by 1.3", record(22, hello(BY_1_3)), "hello"
    for size in (1, 2, 3, 5, 50, 100):
        yield f"a hello in fragments of {size}", records(22, hello(BY_1_3), size), "hello"
    yield "a hello of 16 KiB", record(22, padded(BY_1_3, 16384)), "hello"
    yield "a hello of 60,000 bytes in records", records(22, padded(BY_1_3, 60_000), 16384), "hello"
    yield "a hello that says it is 16 MiB long", record(22, hello(BY_1_3, size=0xFFFFFF)), (ILLEGAL_PARAMETER, DECODE_ERROR, HANDSHAKE_FAILURE)
    yield "a hello cut off within", record(22, hello(BY_1_3)[:40].replace(hello(BY_1_3)[1:4], b"\x00\x00\x24")), DECODE_ERROR
    for version in (b"\x03\x01", b"\x03\x02", b"\x02\x00"):
        yield f"version {version.hex()}", record(22, hello(BY_1_2, version=version)), PROTOCOL_VERSION
    yield "SSL 3", record(22, hello(BY_1_2, version=b"\x03\x00")), HANDSHAKE_FAILURE  # which knows no other alert
    yield "version 3.4 without its extension", record(22, hello(BY_1_2, version=b"\x03\x04")), "hello"
    yield "versions that do not exist", record(22, hello([extension(43, b"\x04\x7f\x1c\x04\x00"), *BY_1_3[1:]])), PROTOCOL_VERSION
    yield "a fallback that need not be", record(22, hello(BY_1_2, ciphers="c02bc02f5600")), INAPPROPRIATE_FALLBACK
    for name, cipher in (("RSA key exchange", "009c"), ("CBC", "c009c013"), ("RC4", "0005c007"), ("3DES", "000ac012"),
                         ("NULL", "00020001003b"), ("export", "00030006"), ("anonymous", "0018c018"), ("DHE", "009e"),
                         ("PSK", "00a8")):
        yield f"only ciphers of {name}", record(22, hello(BY_1_2, ciphers=cipher)), HANDSHAKE_FAILURE
    yield "no ciphers", record(22, hello(BY_1_2, ciphers="")), (DECODE_ERROR, ILLEGAL_PARAMETER, HANDSHAKE_FAILURE)
    yield "no group in common", record(22, hello([VERSIONS, extension(10, listed(b"\x01\x00")), SIGNATURES, MODES])), (HANDSHAKE_FAILURE, MISSING_EXTENSION)
    yield "no signature in common", record(22, hello([GROUPS, extension(13, listed(b"\x02\x01")), POINTS])), HANDSHAKE_FAILURE
    yield "compression beside none, by 1.2", record(22, hello(BY_1_2, compressions=b"\x01\x00")), "hello"
    yield "compression beside none, by 1.3", record(22, hello(BY_1_3, compressions=b"\x01\x00")), ILLEGAL_PARAMETER
    yield "compression alone", record(22, hello(BY_1_2, compressions=b"\x01")), (ILLEGAL_PARAMETER, DECODE_ERROR)
    yield "an extension twice", record(22, hello([*BY_1_3, SIGNATURES])), (ILLEGAL_PARAMETER, DECODE_ERROR)
    yield "an unknown extension", record(22, hello([*BY_1_3, extension(0x0A0A, b"\x00" * 9)])), "hello"
    yield "extensions that are too long", record(22, hello(BY_1_3)[:-1]), "more"
    sni = extension(0, listed(b"\x00" + listed(b"localhost")))
    yield "a name", record(22, hello([*BY_1_3, sni])), "hello"
    yield "an unknown name", record(22, hello([*BY_1_3, extension(0, listed(b"\x00" + listed(b"nobody.example")))])), "hello"
    yield "no name where one is to be", record(22, hello([*BY_1_3, extension(0, listed(b""))])), DECODE_ERROR
    yield "an empty name", record(22, hello([*BY_1_3, extension(0, listed(b"\x00\x00\x00"))])), (DECODE_ERROR, UNRECOGNIZED_NAME, "hello")
    yield "a name with a byte of zero", record(22, hello([*BY_1_3, extension(0, listed(b"\x00" + listed(b"a\x00b")))])), (DECODE_ERROR, UNRECOGNIZED_NAME)
    yield "a name of 60,000 bytes", records(22, hello([*BY_1_3, extension(0, listed(b"\x00" + listed(b"a" * 60_000)))]), 16384), (DECODE_ERROR, UNRECOGNIZED_NAME)
    alpn = lambda *names: extension(16, listed(b"".join(listed(name, 1) for name in names)))  # noqa: E731
    yield "a protocol that is spoken", record(22, hello([*BY_1_3, alpn(b"h2", b"wirecall")])), "hello"
    yield "protocols that are not", record(22, hello([*BY_1_3, alpn(b"h2", b"smtp")])), NO_APPLICATION_PROTOCOL
    yield "the same by 1.2", record(22, hello([*BY_1_2, alpn(b"h2", b"smtp")])), NO_APPLICATION_PROTOCOL
    yield "no protocol where one is to be", record(22, hello([*BY_1_3, extension(16, listed(b""))])), DECODE_ERROR
    yield "a protocol without a name", record(22, hello([*BY_1_3, alpn(b"")])), DECODE_ERROR
    yield "a renegotiation that has not begun", record(22, hello([*BY_1_2, extension(0xFF01, b"\x01x")])), HANDSHAKE_FAILURE
    yield "early data without a ticket", record(22, hello([*BY_1_3, extension(42, b"")])), (DECODE_ERROR, ILLEGAL_PARAMETER, MISSING_EXTENSION, "hello")
    yield "a ticket that is none", record(22, hello([*BY_1_2, extension(35, b"x" * 200)])), "hello"
    identity = listed(listed(b"x" * 100) + b"\x00" * 4) + listed(listed(b"y" * 32, 1))
    yield "a session that is none", record(22, hello([*BY_1_3, extension(41, identity)])), "hello"
    yield "a session that is not last", record(22, hello([extension(41, identity), *BY_1_3])), ILLEGAL_PARAMETER
    yield "a record that is too long", record(22, hello(BY_1_3)[:1].ljust(16385, b"\0")), RECORD_OVERFLOW
    yield "empty records before a hello", record(22, b"") * 3 + record(22, hello(BY_1_3)), (UNEXPECTED_MESSAGE, "hello")
    yield "a flood of empty records", record(22, b"") * 100_000, (UNEXPECTED_MESSAGE, "nothing")
    yield "a flood of warnings", record(22, hello(BY_1_3)[:1]) + record(21, b"\x01\x5a") * 100_000, (UNEXPECTED_MESSAGE, DECODE_ERROR, "nothing", HANDSHAKE_FAILURE)
    yield "a hello that dribbles without an end", record(22, b"\x01\x01\xff\xfc") + record(22, b"x") * 200_000, ("nothing", ILLEGAL_PARAMETER, DECODE_ERROR, UNEXPECTED_MESSAGE, HANDSHAKE_FAILURE)
    for name, first in (("data", 23), ("an alert", 21), ("a change of ciphers", 20)):
        payload = b"\x02\x28" if first == 21 else b"\x01"
        sent = record(22, b"")[:0] + record(first, payload)
        # What begins like that is no TLS: one line says so.
        yield f"{name} before a hello", sent, "no TLS"
    for kind in (0, 2, 4, 8, 11, 12, 13, 14, 15, 16, 20, 24, 99):
        yield f"handshake message {kind} first", record(22, bytes([kind]) + b"\x00\x00\x04abcd"), UNEXPECTED_MESSAGE
    yield "TLS behind white space", b" \r\n\t" + record(22, hello(BY_1_3)), "hello"


def check_without_keys(server):
    failures = 0
    for name, sent, expected in without_keys():
        if expected == "no TLS":
            with server.connect() as peer:
                peer.sendall(sent)
                peer.shutdown(socket.SHUT_WR)
                got = b"".join(iter(lambda: peer.recv(65536), b""))
            came, right = got, b"-32700" in got or got == b""
        elif expected == "more":
            with server.connect() as peer:
                peer.sendall(sent)
                peer.shutdown(socket.SHUT_WR)
                came = b"".join(iter(lambda: peer.recv(65536), b""))
            right = came == b"" or came[:1] == b"\x15"
        else:
            came = answer_to(server, sent)
            right = came in (expected if isinstance(expected, tuple) else (expected,))
        if not right:
            print(f"{name}: expected {expected}, came {came!r}")
            failures += 1
        if not server.is_serving():
            print(f"{name}: the server serves no more")
            return failures + 1
    return failures


# ---- a peer that has keys, by tlslite-ng ----

def check_with_keys(server):
    from tlslite.api import HandshakeSettings, TLSConnection
    from tlslite.errors import TLSAbruptCloseError, TLSError, TLSLocalAlert, TLSRemoteAlert
    from tlslite.messages import Message

    def connect(version, **settings):
        chosen = HandshakeSettings()
        chosen.minVersion = chosen.maxVersion = version
        for name, value in settings.items():
            setattr(chosen, name, value)
        peer = TLSConnection(server.connect())
        peer.closeSocket = True
        peer.ignoreAbruptClose = False
        peer.handshakeClientCert(settings=chosen, serverName="localhost")
        return peer

    def send(peer, kind, payload):
        """A record, encrypted, with that type and content."""
        for _ in peer._recordLayer.sendRecord(Message(kind, bytearray(payload))):
            pass

    def outcome(peer):
        """An alert's number, "pong" for an answer to PING, "end" for an end without either."""
        try:
            peer.write(PING)
            return "pong" if bytes(peer.read(min=len(PONG), max=len(PONG))) == PONG else "end"
        except TLSRemoteAlert as alert:
            return alert.description
        except TLSLocalAlert as alert:
            return f"ours: {alert}"
        except (TLSAbruptCloseError, OSError):
            return "end"
        except TLSError as error:
            return repr(error)

    handshake = lambda kind, body: bytes([kind]) + len(body).to_bytes(3, "big") + body  # noqa: E731
    new_key = handshake(24, b"\x00")

    def conversations():
        by_2, by_3 = (3, 3), (3, 4)
        for version in (by_2, by_3):
            for cipher in ("aes128gcm", "aes256gcm", "chacha20-poly1305"):
                yield f"{cipher} by {version}", version, {"cipherNames": [cipher]}, lambda peer: None, "pong"
            yield f"data in records of one byte by {version}", version, {}, lambda peer: [send(peer, 23, bytes([b])) for b in b" " * 60], "pong"
            yield f"a record of nothing by {version}", version, {}, lambda peer: send(peer, 23, b""), "pong"
            yield f"a flood of records of nothing by {version}", version, {}, lambda peer: [send(peer, 23, b"") for _ in range(400)], (UNEXPECTED_MESSAGE, "end")
            yield f"a fatal alert by {version}", version, {}, lambda peer: send(peer, 21, b"\x02\x28"), "end"
            yield f"an alert of one byte by {version}", version, {}, lambda peer: send(peer, 21, b"\x02"), (UNEXPECTED_MESSAGE, DECODE_ERROR, ILLEGAL_PARAMETER)
            yield f"a heartbeat by {version}", version, {}, lambda peer: send(peer, 24, b"\x01\x40\x00abcd"), UNEXPECTED_MESSAGE
            yield f"a record of a type that is none by {version}", version, {}, lambda peer: send(peer, 99, b"x"), UNEXPECTED_MESSAGE
            for kind in (2, 8, 11, 14, 15, 16, 20):
                yield f"handshake message {kind} afterwards by {version}", version, {}, lambda peer, kind=kind: send(peer, 22, handshake(kind, b"abcd")), UNEXPECTED_MESSAGE
        yield "a flood of warnings by 1.2", by_2, {}, lambda peer: [send(peer, 21, b"\x01\x5a") for _ in range(400)], (UNEXPECTED_MESSAGE, "end")
        yield "a warning by 1.3", by_3, {}, lambda peer: send(peer, 21, b"\x01\x28"), ("end", UNEXPECTED_MESSAGE, ILLEGAL_PARAMETER, DECODE_ERROR)
        yield "a hello once more by 1.3", by_3, {}, lambda peer: send(peer, 22, hello(BY_1_3)), UNEXPECTED_MESSAGE
        yield "a new key", by_3, {}, lambda peer: [None for _ in peer.send_keyupdate_request(0)], "pong"
        yield "a new key that is answered", by_3, {}, lambda peer: [None for _ in peer.send_keyupdate_request(1)], "pong"
        yield "a new key of a kind that is none", by_3, {}, lambda peer: send(peer, 22, handshake(24, b"\x02")), ILLEGAL_PARAMETER
        yield "a new key without its kind", by_3, {}, lambda peer: send(peer, 22, handshake(24, b"")), DECODE_ERROR
        yield "a new key within a record that goes on", by_3, {}, lambda peer: send(peer, 22, new_key + b"\x18"), UNEXPECTED_MESSAGE
        yield "new keys without an end", by_3, {}, lambda peer: [[None for _ in peer.send_keyupdate_request(0)] for _ in range(80)], "end"
        yield "a change of ciphers by 1.3, encrypted", by_3, {}, lambda peer: send(peer, 20, b"\x01"), UNEXPECTED_MESSAGE

    failures = 0
    for name, version, settings, act, expected in conversations():
        try:
            peer = connect(version, **settings)
            try:
                act(peer)
            except (TLSAbruptCloseError, OSError):
                pass  # it has seen enough
            came = outcome(peer)
            peer.sock.close()
        except Exception as error:  # of a handshake
            came = repr(error)
        if came not in (expected if isinstance(expected, tuple) else (expected,)):
            print(f"{name}: expected {expected}, came {came}")
            failures += 1
        if not server.is_serving():
            print(f"{name}: the server serves no more")
            return failures + 1

    # A second hello within 1.2 is refused by a warning, and the connection goes on.
    peer = connect((3, 3))
    send(peer, 22, hello(BY_1_2))
    kind, body = None, None
    for result in peer._recordLayer.recvRecord():
        if result not in (0, 1):
            kind, body = result
            break
    if kind.type != 21 or bytes(body.bytes) != bytes([1, NO_RENEGOTIATION]):
        print(f"a hello once more by 1.2: came {kind.type} {bytes(body.bytes)!r}")
        failures += 1
    if (came := outcome(peer)) != "pong":
        print(f"a hello once more by 1.2: afterwards {came}")
        failures += 1
    return failures


# ---- what openssl s_client finds out ----

def check_with_openssl(server, folder):
    def ask(*flags, said="", then="Q\n"):
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-servername", "localhost", *flags]
        done = subprocess.run(command, input=said + then, capture_output=True, text=True, timeout=TIMEOUT)
        return done.stdout + done.stderr

    failures = 0

    def expect(name, text, *present, absent=()):
        nonlocal failures
        missing = [one for one in present if one not in text] + [f"no {one}" for one in absent if one in text]
        if missing:
            print(f"openssl s_client, {name}: {missing} in:\n{text}")
            failures += 1

    low = ["-cipher", "ALL:@SECLEVEL=0"]
    expect("by 1.3", ask("-tls1_3"), "TLSv1.3", "Compression: NONE", "Early data was not sent")
    expect("by 1.2", ask("-tls1_2"), "TLSv1.2", "Compression: NONE", "Secure Renegotiation IS supported", "Server Temp Key: X25519")
    for old in ("-tls1", "-tls1_1"):
        expect(old, ask(old, *low), "alert protocol version", "Cipher is (NONE)")
    for cipher in ("AES128-SHA", "ECDHE-RSA-AES256-SHA", "ECDHE-ECDSA-AES128-SHA256", "DHE-RSA-AES128-GCM-SHA256", "AES256-GCM-SHA384"):
        expect(cipher, ask("-tls1_2", "-cipher", f"{cipher}:@SECLEVEL=0"), "handshake failure")
    for cipher in ("ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-CHACHA20-POLY1305"):
        expect(cipher, ask("-tls1_2", "-cipher", cipher), f"Cipher is {cipher}")
    expect("compression", ask("-tls1_2", "-comp"), "Compression: NONE")
    expect("another name", ask("-servername", "other.example"), "CN = other")
    expect("an unknown name", ask("-servername", "nobody.example"), "CN = ecdsa")
    expect("a protocol", ask("-alpn", "h2,http/1.1"), "ALPN protocol: http/1.1")
    expect("no protocol in common", ask("-alpn", "h2"), "alert no application protocol")
    expect("renegotiation", ask("-tls1_2", then="R\n"), "no renegotiation")
    for version in ("-tls1_2", "-tls1_3"):
        session = f"{folder}/session{version}.pem"
        # An answer has to come first: the ticket of 1.3 comes with it.
        process = subprocess.Popen(["openssl", "s_client", version, "-connect", f"127.0.0.1:{server.port}", "-sess_out", session],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdin.write(PING)
        process.stdin.flush()
        while b"pong" not in process.stdout.readline():
            pass
        process.stdin.close()
        process.wait()
        expect(f"resumption {version}", ask(version, "-sess_in", session), "Reused, TLSv1")
    data = Path(folder) / "early"
    data.write_bytes(PING)
    expect("early data", ask("-tls1_3", "-sess_in", f"{folder}/session-tls1_3.pem", "-early_data", str(data)),
           absent=("Early data was accepted",))
    if not server.is_serving():
        print("openssl s_client: the server serves no more")
        failures += 1
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", help="the command wirecall")
    parser.add_argument("--environment", type=Path, required=True, help="where the packages are installed")
    given = parser.parse_args()
    environment.run_in(given.environment, [TLSLITE])
    with tempfile.TemporaryDirectory() as folder:
        server = Server(given.tool, make_certificates(folder))
        try:
            failures = check_without_keys(server) + check_with_keys(server) + check_with_openssl(server, folder)
        finally:
            server.process.terminate()
        if server.process.wait(TIMEOUT) != 0:
            print(f"the server ended with {server.process.returncode}")
            failures += 1
    print(f"{failures} of the peers were answered otherwise than expected" if failures else "every peer was answered as expected")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
