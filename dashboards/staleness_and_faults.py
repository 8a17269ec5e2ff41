"""Staleness and faults: how old updates are, what is lost, and what happened to nodes when."""

from collections.abc import Sequence
from typing import Any

from dashboards.building.frame import events, run_variable, trial_variable, trials_begin, whole
from dashboards.building.panels import (
    PER_SECOND,
    STATE_COLORS,
    colored,
    curves,
    figure,
    heat,
    rows,
    sorted_by,
    stacked,
    steps,
)
from dashboards.building.queries import BY_TRIAL, HERE, WORKERS, latest, latest_total, rate, ratio, total

NAME = "staleness-and-faults"
BUCKETS = "trial_le:edgebed_ps_update_staleness_versions_bucket:rate20s"
HISTOGRAM = "edgebed_ps_update_staleness_versions"
TROUBLED = {state: STATE_COLORS[state] for state in ("unresponsive", "died", "missing")}


def staleness() -> list[Any]:
    """How old updates are."""

    def quantile(share: float) -> str:
        return f"histogram_quantile({share}, sum by (trial, le) ({BUCKETS}{{{HERE}}}))"

    return [
        heat(
            12,
            "Updates by their staleness",
            "How many updates were applied that many versions after the model they were computed from.",
            "none",
            f"sum by (le) (increase({HISTOGRAM}_bucket{{{HERE}}}[$__rate_interval]))",
            of_histogram=True,
        ),
        curves(
            12,
            "Staleness",
            "Versions that half and nine tenths of updates stay below, interpolated between bounds, and their mean.",
            "none",
            (quantile(0.5), "{{trial}} p50"),
            (quantile(0.9), "{{trial}} p90"),
            (ratio(rate(f"{HISTOGRAM}_sum"), rate(f"{HISTOGRAM}_count")), "{{trial}} mean"),
        ).min(0),
    ]


def losses() -> list[Any]:
    """What has no effect."""
    refused = HERE + ',result!="applied"'
    return [
        curves(
            8,
            "Total refused",
            "Joins and pushes that the server refused in its present life, by reason; empty while there is none.",
            "none",
            (total("edgebed_ps_updates_total", "trial, result", refused), "{{trial}} {{result}}"),
        )
        .min(0)
        .decimals(0),
        curves(
            8,
            "Total updates lost",
            "Without an answer that came, or rolled back with the server to its last checkpoint.",
            "none",
            (total("edgebed_updates_lost_total", "trial, how"), "{{trial}} {{how}}"),
        )
        .min(0)
        .decimals(0),
        curves(
            8,
            "Total messages dropped",
            "Messages that could not be read or delivered, at all nodes in their present lives, by the socket.",
            "none",
            (total("edgebed_messages_dropped_total", "trial, socket"), "{{trial}} {{socket}}"),
        )
        .min(0)
        .decimals(0),
    ]


def trouble() -> list[Any]:
    """Who is away."""
    away = f'sum by (state) (edgebed_nodes{{{WORKERS},state=~"unresponsive|died|missing"}})'
    return [
        figure(
            6,
            "Total crashes",
            "Nodes that ended although nobody had told them to; those killed on purpose count.",
            "none",
            (latest_total("edgebed_crashes_total"), BY_TRIAL),
            instant=True,
        ).thresholds(steps(("text", None), ("red", 1))),
        figure(
            6,
            "Total joins",
            "How often workers joined, or came back.",
            "none",
            (latest_total("edgebed_joins_total"), BY_TRIAL),
            instant=True,
        ),
        figure(
            12,
            "Total faults",
            "What was to be done to nodes on purpose: done, failed, or moot since there was nothing to do.",
            "none",
            (latest_total("edgebed_faults_total", "trial, action, result"), "{{trial}} {{action}} {{result}}"),
            instant=True,
        ).no_value("none"),
        colored(
            stacked(
                12,
                "Workers in trouble",
                "Workers that do not answer, died, or never came, in the trial in progress.",
                "none",
                (away, "{{state}}"),
            ).decimals(0),
            TROUBLED,
        ),
        curves(
            12,
            "Updates",
            "What faults cost: updates that the server applied each second.",
            PER_SECOND,
            (total("trial:edgebed_ps_updates:rate20s"), BY_TRIAL),
        ).min(0),
    ]


def log() -> list[Any]:
    """What happened when."""
    fault = latest("edgebed_fault_timestamp_seconds", "trial, node, action")
    crash = latest("edgebed_node_last_crash_timestamp_seconds", "trial, device_class, node")
    return [
        sorted_by(
            rows(
                12,
                10,
                "Faults",
                "What was last done to each node on purpose, of each kind, and when.",
                {"trial": "Trial", "node": "Node", "action": "What"},
                (f"{fault} * 1000", "When", "dateTimeAsIso"),
            ),
            "When",
            descending=True,
        ),
        sorted_by(
            rows(
                12,
                10,
                "Crashes",
                "When each node last ended although nobody had told it to; those killed on purpose are among them.",
                {"trial": "Trial", "device_class": "Class", "node": "Node"},
                (f"{crash} * 1000", "When", "dateTimeAsIso"),
            ),
            "When",
            descending=True,
        ),
    ]


def build() -> str:
    """The dashboard as JSON."""
    panels: dict[str, Sequence[Any]] = {
        "How old updates are": staleness(),
        "What is lost": losses(),
        "Nodes": trouble(),
        "What happened": log(),
    }
    about = "How old are the updates, what is lost, and what happened to nodes when?"
    chosen = [run_variable(), trial_variable()]
    return whole(NAME, "Staleness and faults", about, chosen, [trials_begin(), *events()], panels)
