"""Servers and brokers for the tests: each on a port of its own, in the background of the test's process."""

from __future__ import annotations

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
