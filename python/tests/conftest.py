"""Servers and brokers for the tests: each on a port of its own, in the background of the test's process. And what their
programs inherit."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

import wirecall


@pytest.fixture
def app() -> wirecall.Server:
    return wirecall.Server("test")


@pytest.fixture
def broker() -> Iterator[str]:
    with wirecall.Server("broker", broker=True, kick_ms=0).serving() as uri:
        yield uri


@pytest.fixture
def sighup_ends() -> Iterator[None]:
    """Who starts the tests by nohup hands on that SIGHUP is ignored, and programs of theirs would too."""
    inherited = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, inherited)
