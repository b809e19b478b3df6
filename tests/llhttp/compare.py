#!/usr/bin/env python3
"""Compares our HTTP parser with llhttp on written, generated and mutated texts; exit status 1 where they differ otherwise
than is listed here.

What we take, llhttp has to take with the same meaning: the same methods, targets and bodies, and the same answer to
whether another request may follow, but that with HTTP/1.0 we never let one. What llhttp takes and we refuse has to be
refused for a reason that is in STRICTER. The random texts are of a seed that is printed.
"""
import argparse
import os
import random
import re
import struct
import subprocess
import sys
from pathlib import Path

HTTPTOOLS = "httptools==0.6.4"

# Why we refuse what llhttp takes. Each is a rule of RFC 9112 or RFC 9110 that leaves no choice, or a choice of docs/wire.md.
STRICTER = {
    "no Host": "RFC 9112 3.2, and in 1.0 as well, or Host would be no check",
    "this method is not one of HTTP": "501 of a method that we have not, on a line that is malformed besides",
    "the request line does not end in a version of HTTP": "RFC 9112 3: two spaces",
    "a header field twice that may stand there once": "RFC 9112 3.2 for Host; two that differ would let us guess",
    "a Host that is not the target's": "RFC 9112 3.2.2: two names for one thing",
    "this is HTTP/1.1 and HTTP/1.0 only": "505",
    "a tab in Transfer-Encoding": "taken by some for a part of the value",
    "a Transfer-Encoding other than chunked": "501",
    "a Transfer-Encoding whose last coding is not chunked": "RFC 9112 6.3",
    "a Transfer-Encoding that ends in a comma": "RFC 9112 6.1",
    "chunked is not the last coding, or is there twice": "RFC 9112 6.1",
    "Transfer-Encoding in HTTP/1.0": "RFC 9112 6.1",
    "the request's target is neither a path nor an http URI": "RFC 9112 3.2",
    "the request's target has no path": "RFC 9112 3.2.2",
    "the request's target is not made of visible ASCII and one space": "RFC 3986 2: a # or a byte over 126",
    "only OPTIONS has the target *": "RFC 9112 3.2.4",
    "a byte that cannot stand there": "RFC 9110 5.5: control bytes in a field's value",
    "an LF without CR": "RFC 9112 2.2: bare LF",
    "a CR without LF": "RFC 9112 2.2: bare CR, or one in front of the request line",
    "the request line does not begin with a method and a space": "bare LF in front of the request line",
    "a chunk that is malformed": "RFC 9112 7.1: white space, bare LF, control bytes or a long size in a chunk's head",
    "a header field without a name and a colon": "RFC 9112 5: a byte that is no token",
    "white space before a field's colon, or a folded line": "RFC 9112 5.1 and 5.2",
    "a Content-Length that is not decimal digits": "RFC 9110 8.6: empty",
    "both Content-Length and Transfer-Encoding": "RFC 9112 6.1",
}
# What we take and llhttp does not, though the RFC has it so; by the text of llhttp's error.
LAXER = {
    "Invalid method encountered": "any token is a method: 501",
    "Expected space after method": "as above",
    "Unexpected char in url host": "CONNECT is refused later, whatever it names",
    "Unexpected char in url server": "as above",
    "Invalid character in chunk extensions": "they are passed over, whatever they say, and decide nothing",
    "Invalid `Transfer-Encoding` header value": "of a trailer, which decides nothing",
    "Content-Length can't be present with Transfer-Encoding": "as above: a head with both is refused (see STRICTER)",
    "Invalid character in Content-Length": "a tab behind the number, which RFC 9110 5.6.3 allows",
    "Content-Length overflow": "cut at 2^60, which is 413",
}
# Where we and llhttp part over whether another request may follow: whether we let one, and what the text then has.
ANOTHER_END = {
    # White space behind an option, which RFC 9110 5.6.3 allows; or both options in 1.0, where RFC 9112 9.3 has close first.
    False: re.compile(rb"close\t|http/1\.0\r\n(?:[^\r\n]+\r\n)*?connection:[^\n]*(?:close|keep-alive)", re.I),
    True: re.compile(rb"\r\n0[^\n]*\n(?:[^\n]+\n)*connection:", re.I),  # in a trailer, which decides nothing
}

CORPUS = [
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /rpc HTTP/1.1\r\nHost: a:1\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\nhello",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    b"GET http://a/x HTTP/1.1\r\nHost: a\r\nX: \xc3\xa9\t\r\nEmpty:\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, x\r\n\r\n",
    b"HEAD /a?b=c&d HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
    b"GET HTTP://a:80/x?y/z HTTP/1.1\r\nHost: a:80\r\nConnection: x,Close\r\n\r\n",
    b"GET http://a HTTP/1.1\r\nHost: a\r\nConnection: closed\r\nConnection: keep-alive\r\n\r\n",
    b"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n",
    b"GET / HTTP/1.1\nHost: a\n\n",
    b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"DELETE /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n",
]
PIECES = [b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b"\0", b"\x7f", b"\x80", b",", b";", b"0", b"1", b"5", b"F", b"-", b"+",
          b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"transfer-encoding:\tchunked\r\n", b"Host: a\r\n",
          b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"close", b"chunked", b"HTTP/1.0", b"HTTP/1.1", b"HTTP/2.0",
          b"GET ", b"POST ", b"0\r\n\r\n", b"5\r\nhello\r\n", b"Content-Length: ", b"\r\n\r\n", b"99999999999999999999",
          b"X: y\r\n", b"*", b"/", b"#", b"\""]


def httptools_of(environment):
    """Imports httptools, from `environment` where it is not installed."""
    try:
        import httptools  # noqa: PLC0415
    except ImportError:
        python = environment / "bin" / "python"
        if os.path.realpath(sys.executable) == os.path.realpath(python) and sys.prefix == str(environment):
            raise
        ready = environment / "ready"
        if not ready.exists():
            for command in ([sys.executable, "-m", "venv", environment], [python, "-m", "pip", "install", "-q", HTTPTOOLS]):
                done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
                if done.returncode:
                    print(f"skipped: {HTTPTOOLS} cannot be installed: {(done.stderr or done.stdout).strip()[-300:]}")
                    sys.exit(77)
            ready.touch()
        os.execv(python, [str(python), *sys.argv])
    return httptools


def path_of(method, url):
    """What we keep of a target: of a URI its path and query, of CONNECT's nothing."""
    if method == b"CONNECT":
        return b""
    scheme = b"http://"
    if url[:len(scheme)].lower() != scheme:
        return url
    path = re.search(rb"[/?]", url[len(scheme):])
    return url[len(scheme) + path.start():] if path else b"/"


def theirs(httptools, text):
    """The requests that llhttp finds complete, and how it ends: "more", "done" or its error."""
    requests = []

    class Protocol:
        def on_message_begin(self):
            self.url, self.body = b"", b""

        def on_url(self, url):
            self.url += url

        def on_body(self, body):
            self.body += body

        def on_message_complete(self):
            method = parser.get_method()
            keep = parser.should_keep_alive()
            requests.append((method, path_of(method, self.url), self.body, keep))

    parser = httptools.HttpRequestParser(Protocol())
    try:
        parser.feed_data(text)
    except httptools.HttpParserUpgrade:
        return requests, "done"
    except httptools.HttpParserError as error:
        return requests, str(error)
    return requests, "more"


def ours(line):
    *requests, end = line.split(" | ")
    parsed = []
    for request in requests:
        method, target, body, keep = request.rsplit(" ", 3)
        data = [b"" if word == "-" else bytes.fromhex(word) for word in (target, body)]
        parsed.append((method.encode(), *data, keep == "keep"))
    return parsed, end


def difference(text, our, their):
    """None, or what is wrong."""
    (our_requests, our_end), (their_requests, their_end) = our, their
    if their_requests and their_requests[-1][0] == b"CONNECT":
        # llhttp looks no further; we look for the body that its head announces, as RFC 9112 6.3 has it for any method.
        connect = len(their_requests) - 1
        if our_requests[connect:] and our_requests[connect][:2] != their_requests[connect][:2]:
            return "another meaning"
        our_requests, their_requests = our_requests[:connect], their_requests[:connect]
    for (*our_request, our_keep), (*their_request, their_keep) in zip(our_requests, their_requests):
        if our_request != their_request:
            return "another meaning"
        if our_keep != their_keep:
            # What follows is looked at by one of us only.
            return None if ANOTHER_END[our_keep].search(text) else "another end"
    if len(our_requests) > len(their_requests):
        if not any(known in their_end for known in LAXER) and their_end != "done":
            return f"we take what llhttp refuses: {their_end}"
    elif len(our_requests) < len(their_requests):
        cause = our_end.partition(" ")[2]
        if our_end == "done":
            return None  # llhttp goes on behind a request that was the last
        if cause not in STRICTER:
            return f"we refuse what llhttp takes: {our_end}"
    return None


def mutated(rng):
    text = rng.choice(CORPUS)
    if rng.random() < 0.3:
        text += rng.choice(CORPUS)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 5))):
        at = rng.randrange(len(text) + 1)
        kind = rng.random()
        if kind < 0.5:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        elif kind < 0.7:
            text = text[:at] + text[at + rng.randrange(1, 6):]
        elif kind < 0.8:
            text = text[:at] + bytes([rng.randrange(256)]) + text[at + 1:]
        elif kind < 0.9:
            lines = text.split(b"\r\n")
            lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
            text = b"\r\n".join(lines)
        else:
            text = text[:at].swapcase() + text[at:]
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("opinion", type=Path)
    parser.add_argument("--environment", type=Path, required=True)
    parser.add_argument("--cases", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    httptools = httptools_of(args.environment)

    rng = random.Random(args.seed)
    texts = CORPUS + [mutated(rng) for _ in range(args.cases)]
    sent = b"".join(struct.pack(">I", len(text)) + text for text in texts)
    done = subprocess.run([args.opinion], input=sent, capture_output=True, check=True)
    lines = done.stdout.decode("latin-1").splitlines()
    assert len(lines) == len(texts), "an answer for each text"
    found, alike, taken = 0, 0, 0
    for text, line in zip(texts, lines):
        our, their = ours(line), theirs(httptools, text)
        wrong = difference(text, our, their)
        alike += len(our[0]) == len(their[0])
        taken += bool(our[0])
        if wrong:
            found += 1
            if found <= 20:
                print(f"{wrong}\n  text:   {text!r}\n  ours:   {our}\n  llhttp: {their}")
    print(f"{len(texts)} texts of seed {args.seed}: {taken} taken, {alike} with as many requests as llhttp, "
          f"{found} differences that are not listed")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
