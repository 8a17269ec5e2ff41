"""Run overview: how is the run doing? What runs and the figures that count, then model, traffic, work and machine."""

from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders import common, dashboard
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard as model

from dashboards.building.frame import (
    events,
    host_variable,
    run_variable,
    trial_variable,
    trials_begin,
    whole,
)
from dashboards.building.panels import (
    CORES,
    PER_SECOND,
    STATE_COLORS,
    bars,
    bounded,
    colored,
    curves,
    figure,
    linked,
    mirrored,
    or_else,
    rows,
    stacked,
    steps,
    worded,
    words,
)
from dashboards.building.queries import (
    A_MINUTE,
    BY_CLASS,
    BY_HOST,
    BY_MEASURE,
    BY_TRIAL,
    CLASS,
    HEADLINE,
    HERE,
    HOST,
    OF_HEADLINE,
    ON_HOST,
    WORKERS,
    latest,
    latest_total,
    rate,
    ratio,
    total,
    value,
)
from edgebed.journal.verdict.findings import STARVED_MAX
from edgebed.journal.verdict.host_rules import LAG_MAX_S, STEAL_MAX
from edgebed.journal.verdict.link_rules import HANDLING_S, RATE_TOLERANCE

NAME = "run-overview"
BY_KIND = "{{trial}} {{kind}}"
NETWORK = "edgebed_host_network_bytes_per_second"
INTO, OUT = f'{ON_HOST},direction="ingress"', f'{ON_HOST},direction="egress"'
NOT_CAPPED = "no node has a CPU cap, or none needed it, or it is a replayed run, which does not tell"
SIMULATED = "not told: a simulation, which uses no machine, or a replayed run"
SLOWER = 1 + RATE_TOLERANCE
"""The verdict's bound on the time of messages over what was asked."""
SEEN_IN = {
    "EdgebedNoProgress": ("staleness-and-faults?viewPanel=panel-16", "Staleness and faults: Updates"),
    "EdgebedServerSaturated": ("workers?viewPanel=panel-4", "Workers: Phases over time"),
    "EdgebedHostOverloaded": ("run-overview?viewPanel=panel-11", "Run overview: Conditions against their bounds"),
    "EdgebedNodeFailed": ("workers?viewPanel=panel-2", "Workers: Every node"),
}
"""The panel that an alert is about: where it is, and what it is called."""
RESULT_COLORS = {
    "0": ("no result", "red"),
    "1": ("accounting does not close", "red"),
    "2": ("interrupted", "orange"),
    "3": ("diverged", "red"),
    "4": ("not met", "orange"),
    "5": ("completed", "text"),
    "6": ("met", "green"),
}
VERDICTS = {
    "0": ("degraded", "orange"),
    "1": ("trusted", "green"),
    "2": ("modelled", "blue"),
    "3": ("unknown", "text"),
}


def latest_headline(width: int) -> Any:
    """What results are told by, of the version that was evaluated last."""
    return figure(
        width,
        "Headline",
        "What the task measures first, of the version evaluated last.",
        "none",
        (latest(HEADLINE, by=OF_HEADLINE), BY_MEASURE),
        instant=True,
    )


def standing() -> list[Any]:
    """What runs, how it stands, and what came of it: the first screen, in three lines."""
    present = f"edgebed_nodes{{{WORKERS}}} unless on (run, trial) edgebed_trial_result{{{HERE}}}"
    info = f"max by (trial, algorithm, runtime, seed) (last_over_time(edgebed_run_info{{{HERE}}}[$__range]))"
    return [
        figure(
            5,
            "What runs",
            "Method, runtime and seed of each trial.",
            "none",
            (info, "{{trial}}: {{algorithm}}, {{runtime}}, seed {{seed}}"),
            instant=True,
        )
        .text_mode(options.BigValueTextMode.NAME)
        .orientation(options.VizOrientation.HORIZONTAL)
        .text(common.VizTextDisplayOptions().title_size(14)),
        bars(
            5,
            "Progress",
            "How much of the trial is done, by its limit of updates or of time in training.",
            (latest("edgebed_run_progress_ratio"), BY_TRIAL),
        ),
        latest_headline(5),
        figure(
            5,
            "Result",
            "Once a trial is over: whether what the scenario expects was met, or why there is no result.",
            "none",
            (latest("edgebed_trial_result"), BY_TRIAL),
            instant=True,
        )
        .mappings(words(RESULT_COLORS))
        .no_value("not yet"),
        figure(
            4,
            "Verdict",
            "Once a trial is over: whether the conditions that it asked for held; its report says which did not.",
            "none",
            (latest("edgebed_trial_verdict"), BY_TRIAL),
            instant=True,
        )
        .mappings(words(VERDICTS))
        .no_value("not yet"),
        curves(
            8,
            "Headline over time",
            "What the task measures first, of the versions that were evaluated.",
            "none",
            (value(HEADLINE, by=OF_HEADLINE), BY_MEASURE),
        ),
        curves(
            8,
            "Updates",
            "Updates that the server applied each second.",
            PER_SECOND,
            (total("trial:edgebed_ps_updates:rate20s"), BY_TRIAL),
        ).min(0),
        mirrored(
            curves(
                8,
                "Total up and down",
                "Payload so far: pushes that were applied above zero, models that were sent below; of all lives.",
                "decbytes",
                (total("edgebed_run_update_bytes_total"), f"{BY_TRIAL} up"),
                (total("edgebed_run_pull_bytes_total"), f"{BY_TRIAL} down"),
            ),
            "down",
        ),
        colored(
            stacked(
                8,
                "Workers by state",
                "In the trial in progress, as the controller sees them; who died, or never came, stays counted.",
                "none",
                (f"sum by (state) ({present})", "{{state}}"),
            ).decimals(0),
            STATE_COLORS,
        ),
        conditions(),
        mirrored(
            curves(
                8,
                "Server traffic, in and out",
                "All payload on the data network: pushes come in, applied or not, models go out, below zero.",
                "Bps",
                (rate("edgebed_ps_ingress_bytes_total"), f"{BY_TRIAL} in"),
                (rate("edgebed_ps_egress_bytes_total"), f"{BY_TRIAL} out"),
            ),
            "out",
        ),
    ]


def conditions() -> Any:
    """How near each condition came to the bound at which the verdict is degraded: 100 % is the bound."""
    lag = f"max(quantile_over_time(0.5, edgebed_host_wake_lag_seconds{{{ON_HOST}}}[$__range])) / {LAG_MAX_S}"
    steal = f"max(avg_over_time(edgebed_host_steal_ratio{{{ON_HOST}}}[$__range])) / {STEAL_MAX}"
    starving = f"avg by ({CLASS}) (rate(edgebed_starved_seconds_total{{{HERE}}}[{A_MINUTE}]))"
    memory = f"edgebed_cgroup_memory_working_set_bytes{{{HERE}}} / edgebed_cgroup_memory_limit_bytes{{{HERE}}}"
    took, asked = (latest_total(f"edgebed_transfer_{which}seconds_total", CLASS) for which in ("", "asked_"))
    messages = latest_total("edgebed_messages_received_total", CLASS, f'{HERE},kind=~"push|model|activation|gradient"')
    panel = bars(
        8,
        "Conditions against their bounds",
        "Worst of the trials over the time shown; at 100 % the verdict is degraded. Missing: not measured here.",
        (lag, "late wake-ups, median"),
        (steal, "steal, mean"),
        (f"max(avg_over_time(({starving})[$__range:$__interval])) / {STARVED_MAX}", "waiting for a core, mean"),
        (f"max(max_over_time(({memory})[$__range:$__interval]))", "memory"),
        (f"max({ratio(took, f'{SLOWER} * {asked} + {HANDLING_S} * {messages}')})", "time of messages"),
        height=8,
        ordered=False,
    )
    return (
        panel.color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.THRESHOLDS))
        .thresholds(steps(("green", None), ("orange", 0.8), ("red", 1.0)))
        .no_value("nothing was measured: a simulation, or not begun")
    )


def trouble() -> list[Any]:
    """What went wrong, and where to look."""
    fired = f'max_over_time(ALERTS{{{HERE},alertstate="firing"}}[$__range])'
    for alert, (place, _) in SEEN_IN.items():
        fired = f'label_replace({fired}, "see", "{place}", "alertname", "{alert}")'
    alerts = rows(
        12,
        5,
        "Alerts",
        "Those that fired in the time shown; the page about watching says what each means and what to do.",
        {"trial": "Trial", "alertname": "Alert", "by": "By", "device_class": "Class", "host": "Host", "see": "See"},
        (f"max by (trial, alertname, by, device_class, host, see) ({fired})", "Fired", "none"),
        hidden=("Fired",),
    ).no_value("no alert fired")
    url = "/d/edgebed-${__value.raw}&${datasource:queryparam}&${run:queryparam}&${__url_time_range}"
    worded(alerts, "See", {place: (title, "blue") for place, title in SEEN_IN.values()})
    return [
        linked(alerts, "See", ("What it is about", url)),
        figure(
            6,
            "Total crashes",
            "Nodes that ended although nobody had told them to; the charts mark which, and when.",
            "none",
            (latest_total("edgebed_crashes_total"), BY_TRIAL),
            instant=True,
        ).thresholds(steps(("text", None), ("red", 1))),
        figure(
            6,
            "Total updates lost",
            "Without an answer that came, or rolled back with the server to its last checkpoint.",
            "none",
            (latest_total("edgebed_updates_lost_total"), BY_TRIAL),
            instant=True,
        ).thresholds(steps(("text", None), ("orange", 1))),
    ]


def learning() -> list[Any]:
    """How good the model is, and how fast it is computed."""
    slowest = f"min by (trial) (node:edgebed_shard_steps:rate20s{{{HERE}}})"
    return [
        curves(
            12,
            "Loss",
            "Mean loss of the versions that were evaluated: cross-entropy in nats, or what task.objective says.",
            "none",
            (value("edgebed_model_loss", by="trial, split"), "{{trial}}: {{split}}"),
        ).min(0),
        curves(
            12,
            "Iterations of all workers of a class",
            "Gradients that the workers of a class computed each second; steps of the slowest shard of a model.",
            PER_SECOND,
            (total("device_class:edgebed_worker_iterations:rate20s", by=CLASS), BY_CLASS),
            (slowest, "{{trial}} steps"),
        ).min(0),
    ]


def traffic() -> list[Any]:
    """What the data network carries."""
    total_in, total_out = (f'{HERE},direction="{direction}"' for direction in ("ingress", "egress"))
    return [
        stacked(
            12,
            "Server ingress by kind of message",
            "Payload that reaches the server each second: pushes, joins, pulls, and of shards their backups.",
            "Bps",
            (total("trial_kind:edgebed_ps_ingress_bytes:rate20s", by="trial, kind"), BY_KIND),
        ),
        mirrored(
            curves(
                12,
                "Total server traffic, in and out",
                "Payload that has reached the server so far, applied or not, and left it, below zero; of all lives.",
                "decbytes",
                (total("edgebed_run_server_bytes_total", where=total_in), f"{BY_TRIAL} in"),
                (total("edgebed_run_server_bytes_total", where=total_out), f"{BY_TRIAL} out"),
            ),
            "out",
        ),
    ]


def machine() -> list[Any]:
    """What the nodes take of the machine, what their caps keep from them, and how the machine bears it."""
    used = f"edgebed_cgroup_memory_working_set_bytes{{{HERE}}} / edgebed_cgroup_memory_limit_bytes{{{HERE}}}"
    throttled = ratio(
        rate("edgebed_cgroup_cpu_throttled_periods_total", by=CLASS),
        rate("edgebed_cgroup_cpu_periods_total", by=CLASS),
    )
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
            "Throttled by the CPU cap",
            "Share of the kernel's scheduling periods in which nodes of a class had to wait for more of their cap.",
            "percentunit",
            (throttled, BY_CLASS),
        )
        .min(0)
        .max(1)
        .no_value(NOT_CAPPED),
        bounded(
            curves(
                8,
                "Memory against the cap",
                "Of the node of each class that is nearest to its cap, where it is killed.",
                "percentunit",
                (f"max by ({CLASS}) ({used})", BY_CLASS),
            ),
            1.0,
        )
        .min(0)
        .max(1)
        .no_value("no node has a memory cap"),
        bounded(
            curves(
                8,
                "The server's core",
                "Cores that the server uses; above the line, nine tenths of one, workers wait for it.",
                CORES,
                (f'max by (trial) (node:edgebed_process_cpu_seconds:rate20s{{{HERE},role="server"}})', BY_TRIAL),
            ),
            0.9,
        )
        .min(0)
        .max(1),
        bounded(
            curves(
                8,
                "Late wake-ups, bound on the median",
                "What 99 % of sleeps stayed below; above the line, links and pauses of milliseconds do not hold.",
                "s",
                (value("edgebed_host_wake_lag_seconds", HOST, ON_HOST), BY_HOST),
            ),
            LAG_MAX_S,
        )
        .min(0)
        .axis_soft_max(1.2 * LAG_MAX_S),
        bounded(
            curves(
                8,
                "Steal, bound on the mean",
                "Share of all cores' time that the machine under each host took away; the line is the verdict's bound.",
                "percentunit",
                (value("edgebed_host_steal_ratio", HOST, ON_HOST), BY_HOST),
            ),
            STEAL_MAX,
        )
        .min(0)
        .axis_soft_max(2 * STEAL_MAX),
    ]


def hosts() -> list[Any]:
    """What single hosts bear, where there are several."""
    return [
        curves(
            8,
            "How busy the machine is",
            "Share of all cores' time that each host computed, for this run or for others; no bound of the verdict's.",
            "percentunit",
            (value("edgebed_host_busy_ratio", HOST, ON_HOST), BY_HOST),
        )
        .min(0)
        .max(1),
        curves(
            8,
            "CPU used by host",
            "Cores that all nodes of a host use together; the controller is not among them.",
            CORES,
            (rate("edgebed_process_cpu_seconds_total", HOST, f'{ON_HOST},node!=""'), BY_HOST),
        ).min(0),
        mirrored(
            curves(
                8,
                "Network between hosts, in and out",
                "Through a host's interface to the others, in above and out below zero, and its rate.",
                "bps",
                (f"8 * {value(NETWORK, HOST, INTO)}", f"{BY_HOST} in"),
                (f"8 * {value(NETWORK, HOST, OUT)}", f"{BY_HOST} out"),
                (f"8 * {value('edgebed_host_network_limit_bytes_per_second', HOST, ON_HOST)}", f"{BY_HOST} rate"),
            ),
            "out",
        ).no_value("there is one host alone"),
    ]


def build() -> str:
    """The dashboard as JSON."""
    panels: dict[str, Sequence[Any]] = {
        "": standing(),
        "Trouble": trouble(),
        "Model": learning(),
        "Traffic": traffic(),
        "Machine": or_else(SIMULATED, machine()),
        "Hosts": or_else(SIMULATED, hosts()),
    }
    status = (
        dashboard.DashboardLink("Status")
        .type(model.DashboardLinkType.LINK)
        .icon("info")
        .tooltip("What the controller says of the run in progress, as JSON, at the port that Compose publishes")
        .url("http://127.0.0.1:9100/status")
        .target_blank(target_blank=True)
    )
    chosen = [run_variable(), trial_variable(), host_variable()]
    marks = [trials_begin(), *events()]
    about = "How is the run doing?"
    return whole(NAME, "Run overview", about, chosen, marks, panels, closed=("Machine", "Hosts"), links=[status])
