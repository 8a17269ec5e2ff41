"""The committed dashboards, and what Grafana makes of their queries."""

from collections.abc import Callable

import pytest
from boards import fill, panels_of, read_boards


@pytest.fixture(scope="session")
def dashboards() -> dict[str, dict]:
    """Every dashboard by the name of its file."""
    return read_boards()


@pytest.fixture(scope="session")
def panels(dashboards) -> list[dict]:
    """Every panel that shows data."""
    return panels_of(*dashboards.values())


@pytest.fixture(scope="session")
def filled() -> Callable[..., str]:
    """Puts values in place of Grafana's variables in a query."""
    return fill
