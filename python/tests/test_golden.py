"""What the clients of this package send, byte for byte, held against what they sent before (tests/golden/golden.py)."""

from __future__ import annotations

import pathlib
import sys

import pytest

GOLDEN = pathlib.Path(__file__).parents[2] / "tests" / "golden"
sys.path.insert(0, str(GOLDEN))

from conversation import Conversation  # noqa: E402


@pytest.mark.parametrize("path", sorted((GOLDEN / "python").glob("*.txt")), ids=lambda path: path.stem)
def test_clients_send_what_they_sent(path: pathlib.Path) -> None:
    Conversation(path, tool=GOLDEN / "wirecall", python=sys.executable).have()  # no command runs
