"""Workers: what each class of devices does with its time, its CPU and its memory, and which worker stands out."""

from collections.abc import Sequence
from typing import Any

from dashboards.building.frame import (
    class_variable,
    events,
    run_variable,
    several,
    trial_variable,
    trials_begin,
    whole,
)
from dashboards.building.panels import (
    CORES,
    PER_SECOND,
    PHASE_COLORS,
    bar_each,
    bars,
    bounded,
    colored,
    curves,
    heat,
    linked,
    node_url,
    or_else,
    rows,
    slowest_first,
    sorted_by,
    stacked,
    to_node,
)
from dashboards.building.queries import (
    A_MINUTE,
    BY_CLASS,
    BY_NODE,
    CHOSEN,
    CLASS,
    HERE,
    NODE,
    latest,
    latest_total,
    mean,
    rate,
    share,
    ten,
    total,
    value,
)
from dashboards.run_overview import NOT_CAPPED, SIMULATED
from edgebed.journal.verdict.findings import STARVED_MAX

NAME = "workers"
SINGLE = CHOSEN + ',node=~"$worker"'
WORKING = SINGLE + ',role="worker"'
THROTTLED = "device_class:edgebed_cgroup_cpu_throttled_periods_per_cpu_periods:ratio_rate20s"
PRIVATE = "edgebed_process_private_memory_bytes"
CPU = "node:edgebed_process_cpu_seconds:rate20s"
UNTOLD = "not told: a simulation, or a method whose shards have phases of their own"
PHASES = {name: PHASE_COLORS[name] for name in ("compute", "encode", "wait", "pause")}


def everyone() -> list[Any]:
    """A row a node."""
    since = f"last_over_time(edgebed_node_state_timestamp_seconds{{{SINGLE}}}[$__range]) * 1000"
    crash = latest("edgebed_node_last_crash_timestamp_seconds", NODE, SINGLE)
    table = rows(
        24,
        12,
        "Every node",
        "As last seen: CPU is the mean, memory the most, totals are of all lives; click on a column to sort by it.",
        {"trial": "Trial", "device_class": "Class", "node": "Node", "state": "State"},
        (f"max by ({NODE}, state) (topk by (trial, node) (1, {since}))", "Since", "dateTimeFromNow"),
        (latest_total("edgebed_worker_iterations_total", NODE, SINGLE), "Total iterations", "short"),
        (f"max by ({NODE}) (avg_over_time({CPU}{{{SINGLE}}}[$__range]))", "CPU, cores", "none"),
        (latest("edgebed_cgroup_cpu_limit_cores", NODE, SINGLE), "Cap, cores", "none"),
        (latest_total("edgebed_cgroup_cpu_throttled_seconds_total", NODE, SINGLE), "Total throttled", "s"),
        (f"max by ({NODE}) (max_over_time({PRIVATE}{{{SINGLE}}}[$__range]))", "Memory", "bytes"),
        (latest("edgebed_cgroup_memory_limit_bytes", NODE, SINGLE), "Memory cap", "bytes"),
        (latest_total("edgebed_starved_seconds_total", NODE, SINGLE), "Total waited", "s"),
        (f"{crash} * 1000", "Crashed", "dateTimeFromNow"),
    )  # fmt: skip
    table = linked(table, "Node", ("This node alone", node_url("${__value.text}")))
    return [sorted_by(table, "Node", descending=False)]


def time() -> list[Any]:
    """Where the workers' time goes."""
    phases = f"device_class_phase:edgebed_worker_phase_seconds:rate20s{{{CHOSEN}}}"
    by = f"{CLASS}, phase"
    spent = f"sum by ({by}) (increase(edgebed_worker_phase_seconds_total{{{SINGLE}}}[$__range]))"
    return [
        colored(
            stacked(
                12,
                "Phases over time",
                "Share of time that all workers of the chosen classes compute, encode, wait for the server, or pause.",
                "percentunit",
                (f"sum by (phase) ({phases}) / on () group_left () (sum({phases}) > 0)", "{{phase}}"),
            ).max(1),
            PHASES,
        ),
        colored(
            bar_each(
                12,
                "Phases by class",
                "Share of the time of a class's chosen workers in each phase; waiting is for the server's answer.",
                "percentunit",
                share(spent, CLASS),
                ("trial", "device_class"),
                "phase",
            ).max(1),
            PHASES,
        ),
    ]


def pace() -> list[Any]:
    """How fast they are."""
    buckets = f"increase(edgebed_worker_step_duration_seconds_bucket{{{SINGLE}}}[$__rate_interval])"
    durations, longest = f"sum by (le) ({buckets})", f"sum by (trial, node, le) ({buckets})"
    return [
        curves(
            8,
            "Iterations of a worker",
            "Gradients that the mean worker of a class computes each second; the slowest class first.",
            PER_SECOND,
            (f"avg by ({CLASS}) (rate(edgebed_worker_iterations_total{{{CHOSEN}}}[$__rate_interval]))", BY_CLASS),
        )
        .legend(slowest_first(8))
        .min(0)
        .no_value("no worker computes: shards have a dashboard of their own"),
        heat(
            8,
            "Workers by their iterations",
            "How many workers compute how many gradients each second; who is slower than the rest lies below.",
            PER_SECOND,
            rate("edgebed_worker_iterations_total", by="trial, node", where=SINGLE),
            of_histogram=False,
        ).no_value("no worker computes: shards have a dashboard of their own"),
        heat(
            8,
            "Iterations by their length",
            "How many iterations took how long, all phases together; each counts with the mean of its second.",
            "s",
            durations,
            of_histogram=True,
        ).no_value(UNTOLD),
        to_node(
            curves(
                24,
                "The ten with the longest iterations",
                "The bound that the longest iteration of some seconds stays below, by worker: a freeze stands out.",
                "s",
                (ten(f"histogram_quantile(1, {longest})"), BY_NODE),
            )
        )
        .min(0)
        .no_value(UNTOLD),
    ]


def cpu() -> list[Any]:
    """What they compute with."""
    starved = f"avg by ({CLASS}) (rate(edgebed_starved_seconds_total{{{CHOSEN}}}[{A_MINUTE}]))"
    return [
        curves(
            8,
            "CPU against the cap",
            "Cores that the mean node of a class uses, and its cap where it has one.",
            CORES,
            (mean(CPU, CLASS, CHOSEN), BY_CLASS),
            (mean("edgebed_cgroup_cpu_limit_cores", CLASS, CHOSEN), f"{BY_CLASS} cap"),
        ).min(0),
        curves(
            8,
            "Throttled by the CPU cap",
            "Share of scheduling periods in which the cap held nodes of a class back.",
            "percentunit",
            (value(THROTTLED, CLASS, CHOSEN), BY_CLASS),
        )
        .min(0)
        .max(1)
        .no_value(NOT_CAPPED),
        heat(
            8,
            "Workers by their CPU",
            "How many workers use how many cores.",
            CORES,
            total(CPU, by="trial, node", where=WORKING),
            of_histogram=False,
        ),
        bounded(
            curves(
                12,
                "Waiting for a core, bound on the mean",
                "Share of time in which the mean node of a class got no core that it was entitled to, and the bound.",
                "percentunit",
                (starved, BY_CLASS),
            ),
            STARVED_MAX,
        )
        .min(0)
        .axis_soft_max(2 * STARVED_MAX),
        to_node(
            curves(
                12,
                "The ten workers with the most CPU",
                "Cores that they use; of many workers only these have a curve of their own.",
                CORES,
                (ten(total(CPU, by="trial, node", where=WORKING), how="avg"), BY_NODE),
            )
        )
        .min(0),
    ]  # fmt: skip


def memory() -> list[Any]:
    """What they keep."""
    working, cap = "edgebed_cgroup_memory_working_set_bytes", "edgebed_cgroup_memory_limit_bytes"
    nearest = f"{working}{{{SINGLE}}} / {cap}{{{SINGLE}}}"
    return [
        curves(
            8,
            "Memory of a worker",
            "What the mean node of a class has to itself, and what the largest has.",
            "bytes",
            (mean(PRIVATE, CLASS, CHOSEN), f"{BY_CLASS} mean"),
            (value(PRIVATE, CLASS, CHOSEN), f"{BY_CLASS} most"),
        ).min(0),
        bars(
            8,
            "The ten nearest to their memory cap",
            "Most of the cap that was in use in the time shown, by node; at 100 % it is killed.",
            (f"topk(10, max by (trial, node) (max_over_time(({nearest})[$__range:$__interval])))", BY_NODE),
            height=8,
            ordered=False,
        ).no_value("no node has a memory cap"),
        heat(
            8,
            "Workers by their memory",
            "How many workers have how much memory to themselves.",
            "bytes",
            value(PRIVATE, by="trial, node", where=WORKING),
            of_histogram=False,
        ),
    ]


def build() -> str:
    """The dashboard as JSON."""
    panels: dict[str, Sequence[Any]] = {
        "": everyone(),
        "Time": or_else(UNTOLD, time()),
        "Pace": pace(),
        "CPU": or_else(SIMULATED, cpu()),
        "Memory": or_else(SIMULATED, memory()),
    }
    names = f'label_values(edgebed_node_state_timestamp_seconds{{{HERE},device_class=~"$device_class"}}, node)'
    chosen = [run_variable(), trial_variable(), class_variable(), several("worker", "Worker", names)]
    about = "What does each class of devices do with its time, its CPU and its memory, and which worker stands out?"
    return whole(NAME, "Workers", about, chosen, [trials_begin(), *events()], panels)
