"""The committed dashboards, and what Grafana makes of their queries."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "dashboards"


@pytest.fixture(scope="session")
def dashboards() -> dict[str, dict]:
    """Every dashboard by the name of its file."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("grafana/dashboards/*/*")}


@pytest.fixture(scope="session")
def panels(dashboards) -> list[dict]:
    """Every panel that shows data: all but the titles of rows."""
    return [panel for dashboard in dashboards.values() for panel in dashboard["panels"] if panel["type"] != "row"]


@pytest.fixture(scope="session")
def filled() -> Callable[..., str]:
    """Puts values in place of Grafana's variables in a query."""

    def fill(expr: str, run: str = "demo/0001", trial: str = ".+") -> str:
        values = {"$run": run, "$trial": trial, "$__rate_interval": "20s", "$__range": "15m"}
        for name, value in values.items():
            expr = expr.replace(name, value)
        return expr

    return fill
