"""Pages do what they show."""

from __future__ import annotations

import pathlib

import pytest
from documents import run_page

PROJECT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("page", "section", "least"),
    [("docs/python.md", "", 20), ("README.md", "## In Python", 3), ("python/README.md", "", 2)],
)
def test_pages_do_what_they_show(page, section, least, tmp_path):
    assert run_page(PROJECT / page, tmp_path, section) >= least
