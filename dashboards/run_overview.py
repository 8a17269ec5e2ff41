"""Run overview: how is the run doing? What runs and the figures that count, then model, traffic, work and machine."""

from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.models import common as options

from dashboards.building.frame import events, run_variable, trial_variable, trials_begin, whole
from dashboards.building.panels import (
    CORES,
    PER_SECOND,
    STATE_COLORS,
    bars,
    colored,
    curves,
    figure,
    stacked,
    steps,
    words,
)
from dashboards.building.queries import (
    BY_CLASS,
    BY_TRIAL,
    CLASS,
    HERE,
    WORKERS,
    latest,
    latest_total,
    rate,
    ratio,
    total,
    value,
)

NAME = "run-overview"
BY_KIND = "{{trial}} {{kind}}"
UP, DOWN = latest_total("edgebed_run_update_bytes_total"), latest_total("edgebed_ps_pull_bytes_total")
VERDICTS = {
    "0": ("degraded", "orange"),
    "1": ("trusted", "green"),
    "2": ("modelled", "blue"),
    "3": ("unknown", "text"),
}


def latest_accuracy(width: int) -> Any:
    """Accuracy of the version that was evaluated last."""
    return figure(
        width,
        "Accuracy",
        "On the test set, of the version evaluated last.",
        "percentunit",
        (latest("edgebed_model_accuracy_ratio"), BY_TRIAL),
        instant=True,
    ).decimals(2)


def standing() -> list[Any]:
    """What runs, and how it stands."""
    info = f"max by (trial, algorithm, runtime, seed) (edgebed_run_info{{{HERE}}})"
    return [
        figure(
            8,
            "What runs",
            "Method, runtime and seed of each trial.",
            "none",
            (info, "{{trial}}: {{algorithm}}, {{runtime}}, seed {{seed}}"),
        ).text_mode(options.BigValueTextMode.NAME),
        bars(
            8,
            "Progress",
            "How much of the trial is done, by its limit of updates or of time in training.",
            (latest("edgebed_run_progress_ratio"), BY_TRIAL),
            instant=True,
        ),
        latest_accuracy(8),
        figure(
            5,
            "Total of applied pushes",
            "Up: payload of all pushes that were applied, which is less than all that came in.",
            "decbytes",
            (UP, BY_TRIAL),
            instant=True,
        ),
        figure(
            5,
            "Total of models sent",
            "Down: payload of all models sent to workers; of a killed server the last seconds may be missing.",
            "decbytes",
            (DOWN, BY_TRIAL),
            instant=True,
        ),
        figure(
            5,
            "Total up and down",
            "Pushes that were applied, and models sent.",
            "decbytes",
            (f"{UP} + {DOWN}", BY_TRIAL),
            instant=True,
        ),
        figure(
            4,
            "Total crashes",
            "Nodes that ended although nobody had told them to; the charts mark which, and when.",
            "none",
            (latest_total("edgebed_crashes_total"), BY_TRIAL),
            instant=True,
        ).thresholds(steps(("text", None), ("red", 1))),
        figure(
            5,
            "Verdict",
            "Once a trial is over: whether the conditions that it asked for held; its report says which did not.",
            "none",
            (latest("edgebed_trial_verdict"), BY_TRIAL),
            instant=True,
        )
        .mappings(words(VERDICTS))
        .no_value("not yet"),
    ]


def learning() -> list[Any]:
    """How good the model is."""
    return [
        curves(
            12,
            "Accuracy on the test set",
            "Of the versions that were evaluated.",
            "percentunit",
            (value("edgebed_model_accuracy_ratio"), BY_TRIAL),
        ).max(1),
        curves(
            12,
            "Loss on the test set",
            "Mean loss of the versions that were evaluated: cross-entropy in nats, or what task.loss says.",
            "none",
            (value("edgebed_model_loss"), BY_TRIAL),
        ).min(0),
    ]


def traffic() -> list[Any]:
    """What the data network carries."""
    return [
        curves(
            12,
            "Server traffic",
            "All payload on the data network: pushes come in, applied or not, models go out.",
            "Bps",
            (rate("edgebed_ps_ingress_bytes_total"), "{{trial}} in"),
            (rate("edgebed_ps_egress_bytes_total"), "{{trial}} out"),
        ).min(0),
        curves(
            12,
            "Total of applied pushes over time",
            "Up: payload of the pushes that have been applied so far.",
            "decbytes",
            (total("edgebed_run_update_bytes_total"), BY_TRIAL),
        ).min(0),
        stacked(
            12,
            "Server ingress by kind of message",
            "Payload that reaches the server each second: pushes, joins, pulls, and of shards their backups.",
            "Bps",
            (total("trial_kind:edgebed_ps_ingress_bytes:rate20s", by="trial, kind"), BY_KIND),
        ),
        stacked(
            12,
            "Total server ingress by kind of message",
            "Payload that has reached the server so far, applied or not; a server that is started anew begins at 0.",
            "decbytes",
            (total("edgebed_ps_ingress_bytes_total", by="trial, kind"), BY_KIND),
        ),
    ]


def work() -> list[Any]:
    """How fast the fleet works, and who takes part."""
    states = stacked(
        8,
        "Workers by state",
        "In the trial in progress, as the controller sees them; a worker that died, or never came, stays counted.",
        "none",
        (f"sum by (state) (edgebed_nodes{{{WORKERS}}})", "{{state}}"),
    ).decimals(0)
    slowest = f"min by (trial) (node:edgebed_shard_steps:rate20s{{{HERE}}})"
    return [
        curves(
            8,
            "Updates",
            "Updates that the server applied each second.",
            PER_SECOND,
            (total("trial:edgebed_ps_updates:rate20s"), BY_TRIAL),
        ).min(0),
        curves(
            8,
            "Iterations",
            "Gradients that the workers of a class computed each second; steps of the slowest shard of a model.",
            PER_SECOND,
            (total("device_class:edgebed_worker_iterations:rate20s", by=CLASS), BY_CLASS),
            (slowest, "{{trial}} steps"),
        ).min(0),
        colored(states, STATE_COLORS),
    ]


def machine() -> list[Any]:
    """What the nodes take of the machine, what their caps keep from them, and how the machine bears it."""
    used = f"edgebed_cgroup_memory_working_set_bytes{{{HERE}}} / edgebed_cgroup_memory_limit_bytes{{{HERE}}}"
    return [
        curves(
            8,
            "CPU used",
            "Cores that the nodes of a class use, all together.",
            CORES,
            (total("node:edgebed_process_cpu_seconds:rate20s", by=CLASS), BY_CLASS),
        ).min(0),
        curves(
            8,
            "Held back by the CPU cap",
            "Share of the kernel's scheduling periods in which nodes had to wait. Empty where there is no cap.",
            "percentunit",
            (
                ratio(
                    rate("edgebed_cgroup_cpu_throttled_periods_total", by=CLASS),
                    rate("edgebed_cgroup_cpu_periods_total", by=CLASS),
                ),
                BY_CLASS,
            ),
        )
        .min(0)
        .max(1),
        curves(
            8,
            "Memory against the cap",
            "Of the node of each class that is nearest to its cap; empty where there is none.",
            "percentunit",
            (f"max by ({CLASS}) ({used})", BY_CLASS),
        )
        .min(0)
        .max(1),
        curves(
            8,
            "The whole machine",
            "Share of all cores' time that it was busy, and that the machine under it took away.",
            "percentunit",
            (value("edgebed_host_busy_ratio"), "{{trial}} busy"),
            (value("edgebed_host_steal_ratio"), "{{trial}} taken away"),
        )
        .min(0)
        .max(1),
        curves(
            8,
            "How late sleepers wake up",
            "What 99 % of sleeps stayed below; above 20 ms, links and pauses of milliseconds do not hold.",
            "s",
            (value("edgebed_host_wake_lag_seconds"), BY_TRIAL),
        ).min(0),
        stacked(
            8,
            "Alerts",
            "Those that fire; Prometheus' own page of alerts says what each means.",
            "none",
            (
                f'count by (trial, alertname, by) (ALERTS{{{HERE},alertstate="firing"}})',
                "{{trial}} {{alertname}} {{by}}",
            ),
        ).decimals(0),
    ]


def build() -> str:
    """The dashboard as JSON."""
    rows: dict[str, Sequence[Any]] = {
        "": standing(),
        "Model": learning(),
        "Traffic": traffic(),
        "Work": work(),
        "Machine": machine(),
    }
    chosen = [run_variable(), trial_variable()]
    return whole(NAME, "Run overview", "How is the run doing?", chosen, [trials_begin(), *events()], rows)
