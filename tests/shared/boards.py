"""The committed dashboards, and what Grafana makes of their queries."""

import json
import re
from pathlib import Path

from real_prometheus import Prometheus

FOLDER = Path(__file__).parents[2] / "dashboards"


def read_boards() -> dict[str, dict]:
    """Every dashboard by the name of its file."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("grafana/dashboards/*/*")}


def panels_of(*boards: dict) -> list[dict]:
    """Every panel that shows data: all but the titles of rows, those of closed rows among them."""
    return [panel for board in boards for panel in boxes_of(board) if panel["type"] != "row"]


def boxes_of(board: dict) -> list[dict]:
    """Everything that has a place in the grid, as it is where all rows are open."""
    return [each for one in board["panels"] for each in (one, *one.get("panels", []))]


def fill(expr: str, run: str = "demo/0001", trial: str = ".+", **others: str) -> str:
    """A query with values in place of Grafana's variables."""
    values = {
        "run": run, "trial": trial, "device_class": ".+", "worker": ".+", "shard": ".+", "host": ".*",
        "trial_a": "asgd", "run_b": run, "trial_b": "adacomp", "shift": "-30000", "target": "0.5", "measure": "loss",
        "__rate_interval": "20s", "__range": "15m", "__interval": "5s",
    }  # fmt: skip
    return re.sub(r"\$\{?(\w+)\}?", lambda found: (values | others)[found[1]], expr)


def name_of(panel: dict, target: dict) -> str:
    """A panel's title, with the query's letter where it has several; a column's name of a table."""
    if panel["type"] == "table":
        names = panel["transformations"][-1]["options"]["renameByName"]
        return names.get(f"Value #{target['refId']}", panel["title"])
    return panel["title"] if len(panel["targets"]) == 1 else f"{panel['title']} {target['refId']}"


def queries_of(*boards: dict) -> list[tuple[str, str, bool]]:
    """(what it is called, PromQL, whether it is asked at the end alone) of all that they ask."""
    marks = [("mark", one["expr"], False) for board in boards for one in board["annotations"]["list"]]
    shown = [
        (name_of(panel, one), one["expr"], one["instant"]) for panel in panels_of(*boards) for one in panel["targets"]
    ]
    return marks + shown


def unanswered(
    prometheus: Prometheus, boards: list[dict], begin_s: float, end_s: float, **values: str
) -> list[tuple[str, str]]:
    """(what it is called, PromQL) of what Grafana would ask, over that time or at its end, and has no answer."""
    when = {"start": str(begin_s), "end": str(end_s), "step": "5"}
    empty = []
    for title, expr, instant in queries_of(*boards):
        query = fill(expr, **values)
        if instant:
            result = prometheus.get("query", query=query, time=str(end_s))["result"]
        else:
            result = prometheus.get("query_range", query=query, **when)["result"]
        if not result:
            empty.append((title, query))
    return empty
