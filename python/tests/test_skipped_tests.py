"""`make test` names what it has left out (tools/skipped_tests.py)."""

from __future__ import annotations

import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).parents[2] / "tools" / "skipped_tests.py"

# As ctest 3.25 and GoogleTest 1.12 write it.
LOG = """\
Start testing: Nov 24 22:14 UTC
----------------------------------------------------------
2/9 Testing: codec
2/9 Test: codec
Command: "/build/tests/test_codec" "--gtest_brief=1"
Output:
----------------------------------------------------------
../tests/codec/json_suite_test.cpp:93: Skipped
no JSON test suite: set WIRECALL_VECTORS to a folder in which it is json/
../tests/codec/utf8_test.cpp:58: Skipped
no UTF-8 test cases: set WIRECALL_VECTORS to a folder with utf8tests.txt
../tests/codec/utf8_test.cpp:58: Skipped
no UTF-8 test cases: set WIRECALL_VECTORS to a folder with utf8tests.txt
[==========] 173 tests from 20 test suites ran. (17413 ms total)
[  PASSED  ] 170 tests.
[  SKIPPED ] 3 tests.
<end of output>
Test Passed.
"codec" end time: Nov 24 22:14 UTC
3/9 Testing: clients
Output:
----------------------------------------------------------
skipped: pip install: no network
<end of output>
Test Skipped.
4/9 Testing: base
Output:
----------------------------------------------------------
[  PASSED  ] 90 tests.
<end of output>
"""


def said_of(log: str, folder: pathlib.Path) -> str:
    path = folder / "LastTest.log"
    path.write_text(log)
    done = subprocess.run([sys.executable, SCRIPT, path], capture_output=True, text=True, check=True, timeout=300)
    return done.stdout


def test_skipped_tests_are_named_with_reason_and_program(tmp_path):
    assert said_of(LOG, tmp_path).splitlines() == [
        "Left out here: 4 of the tests in C++ and scripts",
        "    2 of codec: no UTF-8 test cases: set WIRECALL_VECTORS to a folder with utf8tests.txt",
        "    1 of codec: no JSON test suite: set WIRECALL_VECTORS to a folder in which it is json/",
        "    1 of clients: pip install: no network",
    ]


def test_nothing_is_said_where_nothing_was_skipped(tmp_path):
    assert said_of(LOG[LOG.index("4/9") :], tmp_path) == ""
