#!/usr/bin/env python3
"""Holds the binary interface: the library shows the functions that symbols.txt lists, each in its version, and nothing
else; and these are the functions that wirecall.h declares.

usage: symbols.py LIBRARY            exit status 1 where they differ, and the difference
       symbols.py LIBRARY --write    writes symbols.txt anew: only to add to it
"""

import difflib
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LIST = HERE / "symbols.txt"
HEADER = HERE.parents[1] / "include" / "wirecall.h"


def shown(library: str) -> list[str]:
    """As name@version; a version itself is no function."""
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    symbols = [line.split() for line in lines.splitlines()]
    return sorted(name.replace("@@", "@") for _, kind, name in symbols if kind != "A")


def differs(what: str, wanted: list[str], got: list[str]) -> bool:
    lines = list(difflib.unified_diff(wanted, got, "wanted", what, lineterm="", n=0))
    print("\n".join(lines), end="\n" if lines else "")
    return bool(lines)


def main() -> int:
    symbols = shown(sys.argv[1])
    if "--write" in sys.argv:
        LIST.write_text("".join(f"{symbol}\n" for symbol in symbols), encoding="utf-8")
    listed = LIST.read_text(encoding="utf-8").split()
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(encoding="utf-8"), flags=re.S)
    declared = sorted(re.findall(r"^WC_API\b[^;(]*?\b(wc_\w+)\(", text, flags=re.M))
    names = sorted(symbol.split("@")[0] for symbol in listed)
    failed = differs("what the library shows", listed, symbols)
    failed |= differs("what wirecall.h declares", names, declared)
    print(f"{len(listed)} symbols")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
