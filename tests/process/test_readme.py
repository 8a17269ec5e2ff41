"""Commands of the README and of pages work in the order in which they stand, as `scripts/check-docs` runs them."""

from pathlib import Path

import pytest
from documented_commands import PAGES, follow

LIMIT_S = 400.0


@pytest.mark.timeout(LIMIT_S + 30)
def test_the_commands_of_the_readme_work_in_their_order(data_dir: Path) -> None:
    """In one shell, in a fresh copy of the checkout; each is run, and none fails."""
    said = follow(["README.md"], LIMIT_S)

    assert "\n$ edgebed run scenarios/two-classes.yaml --set stop.updates=2000" in said


@pytest.mark.timeout(LIMIT_S + 30)
def test_the_commands_of_pages_work_in_their_order() -> None:
    """In one shell, in an empty folder; among them a live run that is acted on by hand."""
    said = follow(PAGES, LIMIT_S)

    assert "\n$ edgebed run lte-phones.yaml --runtime simulation" in said
    assert "\n$ edgebed thaw steady-0" in said
    assert "\n$ edgebed reproduce hardy2017 --list" in said
