#!/usr/bin/env python3
"""What goes over the wire, byte for byte, held against what went over it before:

    golden.py WIRECALL [--write] [--flags FLAGS] [--python PYTHON] [NAME ...]

replies.txt has the reply to each input of fuzz/corpus, sent to the demo server by a connection of its own that ends
its side. conversations/*.txt are conversations of several connections with one broker or demo server; commands/*.txt is
what the command sends to a script that serves it, and what it prints; python/*.txt the same of the Python package, for
which --python names an interpreter that has it. texts.txt has each text of more than one word in the source: those that
tell of an error are among them. --write records all anew: whoever changes what a peer sees reads the difference,
`git diff tests/golden`, and commits it.

A conversation is a file of lines. `#` begins a comment, `server` the flags of the server, `principals` what its file of
principals has, and the rest is done in order:

    open A            a TCP connection to the server, called A
    A> TEXT           sent by A, with a line feed
    A>> TEXT          sent by A, without
    A># JSON          sent by A as MessagePack, behind its length
    A< TEXT           a line that A receives; A<< TEXT what no line feed ends; A<# TEXT a message behind its length
    end A             A ends its side of the connection, and receives up to the end of the other
    reset A           A resets the connection, and the server, where there is one, closes its end
    hangup            the server reads its principals anew: those of the last line `principals`

    listen KIND       a server that the file plays itself, of KIND tcp or unix ({folder}/socket); closed: a port on which
                      nobody listens
    accept A          the next connection to it is called A
    run WORDS         the command with these words, as a shell parts them; `out` and `err` receive what it prints
    | TEXT            a line of a Python program
    python            that program, as above
    env NAME TEXT     a variable of what is run from now on
    file NAME TEXT    a file in the folder in which everything runs
    signal SIGINT     to what is run
    wait              until it has ended; `status` receives its exit status

In TEXT a backslash begins an escape, as in Python's bytes. {port} is the server's port, {folder} the folder, {length}
how much is behind the empty line, {session A} the session that A was told, {id A} the id of the request that A has
received last, {subscription A} the id of its last subscription, {event A} the last id of a server-sent event. Other
things that differ from run to run are received as <...>."""

import argparse
import ast
import concurrent.futures
import contextlib
import difflib
import pathlib
import re
import socket
import sys
import tempfile

from conversation import MASKS, PATIENCE_S, Conversation, Server, escaped

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORPUS = ROOT / "fuzz" / "corpus"
CUT_BY_PREFIX = ["session", "http", "frames"]  # their first two bytes say how the fuzzer cuts the rest
AT_ONCE = 4
# Small limits, so that small inputs reach them.
DEMO = ["--demo", "--max-message-size", "4096", "--limits-batch", "5", "--limits-depth", "32"]


# ---- replies ----


def inputs():
    for folder in ["handle", "message", "json_scan", "session", "http", "frames", "msgpack", "cbor"]:
        for file in sorted((CORPUS / folder).iterdir()):
            data = file.read_bytes()
            yield f"{folder}/{file.name}", data[2:] if folder in CUT_BY_PREFIX else data


def reply_to(server, data):
    with server.connect() as connection:
        connection.settimeout(PATIENCE_S)
        received = b""
        with contextlib.suppress(ConnectionError):  # the server may have closed before it has read all
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while some := connection.recv(1 << 16):
                received += some
    received = re.sub(rb"(?<!\d)%d(?!\d)" % server.port, b"{port}", received)
    for pattern, instead in MASKS:
        received = re.sub(pattern, instead, received)
    return received


def replies(tool, extra):
    text = ["# The reply to each input of fuzz/corpus; golden.py writes this.\n"]
    with tempfile.TemporaryDirectory() as folder, Server(tool, DEMO + extra, folder) as server:
        for name, data in inputs():
            text.append(f"\n== {name}\n> {escaped(data)}\n")
            text += [f"< {escaped(line)}\n" for line in reply_to(server, data).splitlines(keepends=True)]
    return "".join(text)


# ---- texts ----

COMMENT = r"//[^\n]*"
RAW = r'R"(?P<end>[^(\s]*)\((?P<raw>.*?)\)(?P=end)"'
PLAIN = r'"(?P<plain>(?:[^"\\\n]|\\.)*)"'
LITERAL = re.compile(rf"(?s){COMMENT}|(?:{RAW}|{PLAIN}|'(?:[^'\\\n]|\\.)')")


def texts_of(source):
    """The literals, as a compiler joins them."""
    joined, end = None, 0
    for found in LITERAL.finditer(source):
        part = found["raw"]
        if found["plain"] is not None and not source[:found.start()].endswith("#include "):
            part = ast.literal_eval(f'b"{re.sub(r"[^ -~]", "", found["plain"])}"').decode("latin-1")
        if joined is not None and source[end:found.start()].strip():
            yield joined
            joined = None
        if part is None:
            continue
        joined, end = (joined or "") + part, found.end()
    if joined is not None:
        yield joined


def texts():
    files = [file for folder in ["include", "src", "python/src"] for file in (ROOT / folder).rglob("*.[ch]pp")]
    found = {text for file in files for text in texts_of(file.read_text()) if re.search(r"[a-z] [a-z]", text)}
    lines = [escaped(text.encode()) + "\n" for text in sorted(found)]
    return "".join(["# Each text of more than one word in the source; golden.py writes this.\n", *lines])


# ---- all ----


def differs(name, now, writes):
    """Whether what is recorded there is something else; with `writes` it is recorded."""
    file = HERE / f"{name}.txt"
    if writes:
        file.write_text(now, "utf-8")
        return False
    if now == (before := file.read_text("utf-8")):
        return False
    print(f"the {name} differ; where that is meant, record them by --write:")
    sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), now.splitlines(True), "before", "now"))
    return True


def had(path, arguments):
    """Whether it was as it has been."""
    try:
        extra = arguments.flags.split()
        said = Conversation(path, arguments.tool, arguments.python, arguments.write, extra).have()
    except AssertionError as error:
        print(error, flush=True)
        return False
    if arguments.write:
        path.write_text(said, "utf-8")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", metavar="WIRECALL", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--flags", default="", help="more flags of every server")
    parser.add_argument("--python", help="an interpreter that has the package")
    parser.add_argument("names", nargs="*", help="of conversations; all, the replies and the texts, unless given")
    arguments = parser.parse_args()

    folders = ["conversations", "commands"] + (["python"] if arguments.python else [])
    paths = [path for folder in folders for path in sorted((HERE / folder).glob("*.txt"))]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        chosen = [path for path in paths if not arguments.names or path.stem in arguments.names]
        outcomes = [pool.submit(had, path, arguments) for path in chosen]
        failed = False
        if not arguments.names:
            failed = differs("replies", replies(arguments.tool, arguments.flags.split()), arguments.write)
            failed |= differs("texts", texts(), arguments.write)
        failed |= not all([outcome.result() for outcome in outcomes])
    sys.exit(failed)


if __name__ == "__main__":
    main()
