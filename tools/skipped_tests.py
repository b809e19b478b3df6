#!/usr/bin/env python3
"""Names what a run of ctest has left out: skipped_tests.py BUILD/Testing/Temporary/LastTest.log.

ctest says Passed for a program of which some tests were skipped. This prints how many, of which program, and for what
reason, which says what to do where something can be done. It prints nothing where no test was skipped, and always exits with 0.
"""

import collections
import re
import sys

PROGRAM = re.compile(r"^\d+/\d+ Testing: (.+)$")
GTEST = re.compile(r": Skipped$")
SCRIPT = re.compile(r"^skipped: (.+)$")  # a test that is a script, which ends with 77


def skipped_of(log):
    """How often each (reason, program) was skipped."""
    found = collections.Counter()
    program, before = "", ""
    for line in log:
        line = line.rstrip("\n")
        if named := PROGRAM.match(line):
            program = named[1]
        elif GTEST.search(before):
            found[line.strip() or "it does not say why", program] += 1
        elif said := SCRIPT.match(line):
            found[said[1], program] += 1
        before = line
    return found


def main():
    with open(sys.argv[1], encoding="utf-8", errors="replace") as log:
        found = skipped_of(log)
    if not found:
        return
    print(f"Left out here: {sum(found.values())} of the tests in C++ and scripts")
    for (reason, program), count in sorted(found.items(), key=lambda item: (-item[1], item[0])):
        print(f"  {count:3} of {program}: {reason}")


if __name__ == "__main__":
    main()
