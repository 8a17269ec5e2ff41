"""Staleness and faults: how old updates are, what is lost, and what happened to nodes when."""

from collections.abc import Sequence
from typing import Any

from dashboards.building.frame import (
    events,
    run_variable,
    trial_variable,
    trials_begin,
    whole,
)
from dashboards.building.panels import (
    PER_SECOND,
    STATE_COLORS,
    colored,
    counted,
    curves,
    figure,
    heat,
    linked,
    node_url,
    rows,
    sorted_by,
    stacked,
    steps,
)
from dashboards.building.queries import BY_TRIAL, HERE, WORKERS, latest, latest_total, rate, ratio, total

NAME = "staleness-and-faults"
BUCKETS = "trial_le:edgebed_ps_update_staleness_versions_bucket:rate20s"
HISTOGRAM = "edgebed_ps_update_staleness_versions"
NO_LOG = "no log was told of: durability is off, or it is a simulation"
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
    return [
        counted(
            curves(
                8,
                "Total refused",
                "Joins and pushes that the server refused in all its lives, by reason.",
                "none",
                (total("edgebed_run_refused_total", "trial, result"), "{{trial}} {{result}}"),
            )
        ).no_value("the server refused nothing"),
        counted(
            curves(
                8,
                "Total updates lost",
                "Without an answer that came, or rolled back with the server to its last checkpoint.",
                "none",
                (total("edgebed_updates_lost_total", "trial, how"), "{{trial}} {{how}}"),
            )
        ),
        counted(
            curves(
                8,
                "Total dropped and turned away",
                "Messages that no node could read or deliver, in all lives, and connections without the run's secret.",
                "none",
                (total("edgebed_run_messages_dropped_total", "trial, socket"), "{{trial}} {{socket}} dropped"),
                (total("edgebed_connections_unauthenticated_total"), "{{trial}} turned away"),
            )
        ),
    ]


def durability() -> list[Any]:
    """What it costs that no update is lost with the server."""
    waited = rate("edgebed_ps_log_wait_seconds_total")
    return [
        curves(
            8,
            "Time for the server's log",
            "Share of its time in which the server does nothing but write its log.",
            "percentunit",
            (rate("edgebed_ps_log_seconds_total"), BY_TRIAL),
        )
        .min(0)
        .axis_soft_max(0.01)
        .no_value(NO_LOG),
        curves(
            8,
            "Wait for the disk",
            "How long a message of the server waits until the disk has what it answers, on the mean.",
            "s",
            (ratio(waited, rate("edgebed_ps_log_waited_messages_total")), BY_TRIAL),
        )
        .min(0)
        .no_value("no message waits for the disk: durability is not fsync, or off"),
        curves(
            8,
            "Written to the log",
            "Bytes each second, snapshots of the model included.",
            "Bps",
            (rate("edgebed_ps_log_bytes_total"), BY_TRIAL),
        )
        .min(0)
        .axis_soft_max(1000)
        .no_value(NO_LOG),
    ]


def trouble() -> list[Any]:
    """Who is away."""
    away = f'sum by (state) (edgebed_nodes{{{WORKERS},state=~"unresponsive|died|missing"}})'
    return [
        figure(
            12,
            "Total crashes",
            "Nodes that ended although nobody had told them to; those killed on purpose count.",
            "none",
            (latest_total("edgebed_crashes_total"), BY_TRIAL),
            instant=True,
        ).thresholds(steps(("text", None), ("red", 1))),
        figure(
            12,
            "Total joins",
            "How often workers joined, or came back.",
            "none",
            (latest_total("edgebed_joins_total"), BY_TRIAL),
            instant=True,
        ),
        colored(
            counted(
                stacked(
                    12,
                    "Workers dead, missing or silent",
                    "Workers that do not answer, died, or never came, in the trial in progress.",
                    "none",
                    (away, "{{state}}"),
                )
            ),
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
    alone = ("This node alone", node_url("${__value.text}"))
    return [
        _by_time(
            alone,
            rows(
                9,
                10,
                "Faults",
                "What was last done to each node on purpose, of each kind, and when.",
                {"trial": "Trial", "node": "Node", "action": "What"},
                (f"{fault} * 1000", "When", "dateTimeAsIso"),
            ).no_value("no fault was asked for"),
        ),
        _by_time(
            alone,
            rows(
                8,
                10,
                "Crashes",
                "When each node last ended although nobody had told it to; those killed on purpose are among them.",
                {"trial": "Trial", "device_class": "Class", "node": "Node"},
                (f"{crash} * 1000", "When", "dateTimeAsIso"),
            ).no_value("no node died"),
        ),
        rows(
            7,
            10,
            "Total faults",
            "What was to be done to nodes on purpose: done, failed, or no_op: there was nothing to do.",
            {"trial": "Trial", "action": "What", "result": "Came to"},
            (latest_total("edgebed_faults_total", "trial, action, result"), "Total", "none"),
        ).no_value("no fault was asked for"),
    ]


def _by_time(link: tuple[str, str], table: Any) -> Any:
    """The latest row first, and a link at each node."""
    return sorted_by(linked(table, "Node", link), "When", descending=True)


def build() -> str:
    """The dashboard as JSON."""
    panels: dict[str, Sequence[Any]] = {
        "How old updates are": staleness(),
        "What is lost": losses(),
        "What durability costs": durability(),
        "Nodes": trouble(),
        "What happened": log(),
    }
    about = "How old are the updates, what is lost, and what happened to nodes when?"
    chosen = [run_variable(), trial_variable()]
    return whole(NAME, "Staleness and faults", about, chosen, [trials_begin(), *events()], panels)
