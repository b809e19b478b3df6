#!/usr/bin/env python3
"""Holds the rank table (tools/ranks): no include of src/ or include/ goes up or sideways between layers, no pure layer
knows a descriptor or a thread, no I/O layer knows JSON. Prints each offending line; exits with 1 if there is one.

Run it without arguments from anywhere; `--self-test` shows that it finds what it is there to find.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
# System headers that a pure layer has no business with.
SYSTEM = re.compile(
    r"^(sys/(socket|epoll|event|eventfd|timerfd|un|uio|poll|select|mman|stat|types)\.h|netinet/.*|arpa/.*|netdb\.h"
    r"|unistd\.h|poll\.h|fcntl\.h|signal\.h|pthread\.h|thread|mutex|shared_mutex|condition_variable|future)$"
)


class Layer:
    def __init__(self, rank: int, name: str, column: str):
        self.rank, self.name, self.column = rank, name, column


class Ranks:
    def __init__(self, text: str):
        self.layers: dict[str, Layer] = {}
        self.layer_of_header: dict[str, Layer] = {}
        for line in text.splitlines():
            words = line.split("#")[0].split()
            if not words:
                continue
            layer = Layer(int(words[0]), words[1], words[2])
            self.layers[layer.name] = layer
            for header in words[3:]:
                self.layer_of_header[header] = layer

    def layer_of(self, path: str) -> Layer | None:
        """The layer of a file given relative to src/ or include/; None for a file that has none."""
        parts = path.split("/")
        if len(parts) == 1:
            return self.layer_of_header.get(path)  # one in C
        if parts[0] == "wirecall":
            return self.layer_of_header.get(pathlib.PurePath(path).stem)
        return self.layers.get(parts[0])

    def offence(self, source: str, quote: str, target: str) -> str | None:
        """Why `source` must not include `target`, or None if it may."""
        layer = self.layer_of(source)
        if layer is None:
            return None  # said once for the file
        if quote == "<":
            if layer.column == "pure" and SYSTEM.match(target):
                return f"layer {layer.name} is pure, <{target}> is not"
            return f'write "{target}"' if target.startswith("wirecall/") else None
        other = self.layer_of(target)
        if other is None:
            return f'"{target}" belongs to no layer of tools/ranks'
        if other.name == layer.name:
            return None
        if other.rank >= layer.rank:
            return f"layer {layer.name} (rank {layer.rank}) includes layer {other.name} (rank {other.rank})"
        if {layer.column, other.column} == {"pure", "io"}:
            return f"layer {layer.name} is {layer.column}, layer {other.name} is {other.column}"
        return None


def check(ranks: Ranks) -> int:
    files = offences = 0
    for base in (ROOT / "src", ROOT / "include"):
        for path in sorted([*base.rglob("*.[ch]pp"), *base.glob("*.h")]):
            files += 1
            source = path.relative_to(base).as_posix()
            if ranks.layer_of(source) is None:
                offences += 1
                print(f"{path.relative_to(ROOT)}: belongs to no layer of tools/ranks")
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                found = INCLUDE.match(line)
                reason = ranks.offence(source, *found.groups()) if found else None
                if reason:
                    offences += 1
                    print(f"{path.relative_to(ROOT)}:{number}: {reason}")
    print(f"{files} files, {offences} offences against the ranks")
    return 1 if offences else 0


def self_test(ranks: Ranks) -> int:
    cases = [
        ("rpc/dispatch.cpp", '"', "wirecall/message.hpp", True),
        ("codec/json.cpp", '"', "wirecall/limits.hpp", True),
        ("connection/message_connection.cpp", '"', "runtime/epoll.hpp", True),
        ("wirecall/wirecall.hpp", '"', "wirecall/server.hpp", True),
        ("codec/json.cpp", '"', "message/envelope.hpp", False),  # up
        ("codec/json.cpp", '"', "framing/json_text.hpp", False),  # sideways
        ("transport/tcp.cpp", '"', "wirecall/codec.hpp", False),  # JSON beside a socket
        ("rpc/dispatch.cpp", '"', "wirecall/loop.hpp", False),  # a loop in the pure column
        ("framing/json_text.cpp", "<", "sys/socket.h", False),
        ("codec/json.cpp", '"', "nowhere/x.hpp", False),
    ]
    wrong = [case for case in cases if (ranks.offence(*case[:3]) is None) != case[3]]
    for case in wrong:
        print(f"self-test: {case}: {ranks.offence(*case[:3])}")
    print(f"self-test: {len(cases) - len(wrong)} of {len(cases)} cases")
    return 1 if wrong else 0


def main() -> int:
    ranks = Ranks((ROOT / "tools" / "ranks").read_text(encoding="utf-8"))
    return self_test(ranks) if sys.argv[1:] == ["--self-test"] else self_test(ranks) or check(ranks)


if __name__ == "__main__":
    sys.exit(main())
