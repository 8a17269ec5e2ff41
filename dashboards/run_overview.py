"""Writes the dashboard "Run overview": `python dashboards/run_overview.py` prints it.

    python dashboards/run_overview.py > dashboards/grafana/dashboards/edgebed/run-overview.json

The question it answers is how a run is doing: at the top what runs and the figures that count, then the model, the
traffic, the work and the machine. A test keeps the committed file equal to what this prints, and another asks a real
Prometheus every query. Queries name run and trial, since one Prometheus sees many of both.
"""

import itertools
import json
import sys
from typing import Any

from grafana_foundation_sdk.builders import bargauge, common, dashboard, stat, timeseries
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard as model

SOURCE = options.DataSourceRef(type_val="prometheus", uid="${datasource}")
HERE = 'run="$run",trial=~"$trial"'
STATE_COLORS = {
    "expected": "#6e7077",
    "started": "#8ab8ff",
    "joined": "#5794f2",
    "ready": "#3274d9",
    "running": "#56a64b",
    "unresponsive": "#b877d9",
    "stopped": "#ccccdc",
    "died": "#e02f44",
    "missing": "#ff9830",
}
BY_TRIAL = "{{trial}}"
BY_CLASS = "{{trial}} {{device_class}}"
STEPS = "{{trial}} steps"
PER_SECOND = "suffix: /s"

Query = tuple[str, str]
"""PromQL, and what its series are called."""


# --- queries ------------------------------------------------------------------------------------------------------


def value(metric: str) -> str:
    """A gauge of the controller."""
    return f"max by (trial) ({metric}{{{HERE}}})"


def total(metric: str) -> str:
    """What a counter, which begins with its trial, has counted."""
    return f"sum by (trial) ({metric}{{{HERE}}})"


def rate(metric: str, by: str = "trial", more: str = "") -> str:
    """How fast a counter grows, each second."""
    return f"sum by ({by}) (rate({metric}{{{HERE}{more}}}[$__rate_interval]))"


# --- kinds of panels ----------------------------------------------------------------------------------------------


def describe(panel: Any, width: int, height: int, title: str, description: str, unit: str, *queries: Query) -> Any:
    """Give a panel what every panel has."""
    panel.span(width).height(height).title(title).description(description).unit(unit).datasource(SOURCE)
    for letter, (expr, legend) in zip("ABCD", queries, strict=False):
        panel.with_target(Dataquery().ref_id(letter).expr(expr).legend_format(legend).range().datasource(SOURCE))
    return panel


def figure(width: int, title: str, description: str, unit: str, *queries: Query) -> stat.Panel:
    """The last value, large."""
    panel: stat.Panel = describe(stat.Panel(), width, 5, title, description, unit, *queries)
    return (
        panel.reduce_options(last())
        .color_mode(options.BigValueColorMode.VALUE)
        .graph_mode(options.BigValueGraphMode.NONE)
        .thresholds(steps(("text", None)))
    )


def steps(*colors: tuple[str, float | None]) -> dashboard.ThresholdsConfig:
    """Colours, each with the value from which on it is shown; the first from the least."""
    thresholds = [model.Threshold(value=at, color=color) for color, at in colors]
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(thresholds)


def last() -> common.ReduceDataOptions:
    """Of a series its last value: that of a trial that is over as well."""
    return common.ReduceDataOptions().calcs(["lastNotNull"]).values(values=False)


def bars(width: int, title: str, description: str, *queries: Query) -> bargauge.Panel:
    """How far each series is on its way from 0 to 1."""
    panel: bargauge.Panel = describe(bargauge.Panel(), width, 5, title, description, "percentunit", *queries)
    return (
        panel.min(0)
        .max(1)
        .orientation(options.VizOrientation.HORIZONTAL)
        .reduce_options(last())
        .color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.FIXED).fixed_color("blue"))
    )


def curves(width: int, title: str, description: str, unit: str, *queries: Query) -> timeseries.Panel:
    """Values over time."""
    panel: timeseries.Panel = describe(timeseries.Panel(), width, 8, title, description, unit, *queries)
    legend = (
        common.VizLegendOptions()
        .display_mode(options.LegendDisplayMode.LIST)
        .placement(options.LegendPlacement.BOTTOM)
        .show_legend(show_legend=True)
    )
    tooltip = common.VizTooltipOptions().mode(options.TooltipDisplayMode.MULTI).sort(options.SortOrder.DESCENDING)
    return panel.line_width(2).show_points(options.VisibilityMode.NEVER).legend(legend).tooltip(tooltip)


# --- the rows -----------------------------------------------------------------------------------------------------


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
            4,
            "Progress",
            "How much of the trial is done, by its limit of updates or time.",
            (value("edgebed_run_progress_ratio"), BY_TRIAL),
        ),
        figure(
            4,
            "Accuracy",
            "On the test set, of the version evaluated last.",
            "percentunit",
            (value("edgebed_model_accuracy_ratio"), BY_TRIAL),
        ).decimals(2),
        figure(
            4,
            "Total of applied pushes",
            "Payload of all pushes that were applied: the report's headline ingress, and less than all that came in.",
            "decbytes",
            (total("edgebed_ps_update_bytes_total"), BY_TRIAL),
        ),
        figure(
            4,
            "Total crashes",
            "Nodes that ended although nobody had told them to; the charts mark which, and when.",
            "none",
            (total("edgebed_crashes_total"), BY_TRIAL),
        ).thresholds(steps(("text", None), ("red", 1))),
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
            "Payload of the pushes that have been applied so far: the report's headline ingress.",
            "decbytes",
            (total("edgebed_ps_update_bytes_total"), BY_TRIAL),
        ).min(0),
    ]


def work() -> list[Any]:
    """How fast the fleet works, and who takes part."""
    by_state = f'sum by (state) (edgebed_nodes{{{HERE},device_class!~"server|evaluator"}})'
    states = curves(
        8,
        "Workers by state",
        "In the trial in progress, as the controller sees them; a worker that died, or never came, stays counted.",
        "none",
        (by_state, "{{state}}"),
    )
    for state, color in STATE_COLORS.items():
        fixed = {"mode": "fixed", "fixedColor": color}
        states.override_by_name(state, [model.DynamicConfigValue(id_val="color", value=fixed)])
    return [
        curves(
            8,
            "Updates",
            "Updates that the server applied each second.",
            PER_SECOND,
            (rate("edgebed_ps_updates_total", more=',result="applied"'), BY_TRIAL),
        ).min(0),
        curves(
            8,
            "Iterations",
            "Gradients that the workers of a class computed each second; steps of the slowest shard of a model.",
            PER_SECOND,
            (rate("edgebed_worker_iterations_total", by="trial, device_class"), BY_CLASS),
            (f"min by (trial) (rate(edgebed_shard_steps_total{{{HERE}}}[$__rate_interval]) > 0)", STEPS),
        ).min(0),
        states.min(0)
        .decimals(0)
        .line_width(0)
        .fill_opacity(60)
        .stacking(common.StackingConfig().mode(options.StackingMode.NORMAL)),
    ]


def machine() -> list[Any]:
    """What the nodes take of the machine, and what their caps keep from them."""
    by = "trial, device_class"
    throttled = rate("edgebed_cgroup_cpu_throttled_periods_total", by=by)
    periods = rate("edgebed_cgroup_cpu_periods_total", by=by)
    used = f"edgebed_cgroup_memory_working_set_bytes{{{HERE}}} / edgebed_cgroup_memory_limit_bytes{{{HERE}}}"
    return [
        curves(
            8,
            "CPU used",
            "Cores that the nodes of a class use, all together.",
            "suffix: cores",
            (rate("edgebed_process_cpu_seconds_total", by=by), BY_CLASS),
        ).min(0),
        curves(
            8,
            "Held back by the CPU cap",
            "Share of the kernel's scheduling periods in which nodes had to wait. Empty where there is no cap.",
            "percentunit",
            (f"{throttled} / ({periods} > 0)", BY_CLASS),
        )
        .min(0)
        .max(1),
        curves(
            8,
            "Memory against the cap",
            "Of the node of each class that is nearest to its cap. Only containers have such caps.",
            "percentunit",
            (f"max by ({by}) ({used})", BY_CLASS),
        )
        .min(0)
        .max(1),
    ]


# --- the whole ----------------------------------------------------------------------------------------------------


def variables() -> list[Any]:
    """Where the data is, and what of it is shown: all trials of the latest run, unless others are chosen."""
    runs = "query_result(sort_desc(max by (run) (last_over_time(edgebed_run_start_timestamp_seconds[$__range]))))"
    trials = 'label_values(edgebed_run_info{run="$run"}, trial)'
    return [
        dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"),
        dashboard.QueryVariable("run")
        .label("Run")
        .datasource(SOURCE)
        .query({"qryType": 3, "query": runs, "refId": "runs"})
        .definition(runs)
        .regex('/run="([^"]+)"/')
        .sort(model.VariableSort.DISABLED)
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED),
        dashboard.QueryVariable("trial")
        .label("Trial")
        .datasource(SOURCE)
        .query({"qryType": 1, "query": trials, "refId": "trials"})
        .definition(trials)
        .multi(multi=True)
        .include_all(include_all=True)
        .all_value(".+")
        .current(model.VariableOption(selected=True, text=["All"], value=["$__all"]))
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED),
    ]


def mark(name: str, metric: str, title: str, color: str) -> dashboard.AnnotationQuery:
    """A line in every chart at the times that `metric` tells, in Unix seconds."""
    return (
        dashboard.AnnotationQuery()
        .name(name)
        .datasource(SOURCE)
        .enable(enable=True)
        .icon_color(color)
        .expr(f"{metric}{{{HERE}}} * 1000")
        .title_format(title)
        .step("5s")
        .use_value_for_time(use_value_for_time=True)
    )


def build() -> str:
    """The dashboard as JSON."""
    built = (
        dashboard.Dashboard("Run overview")
        .uid("edgebed-run-overview")
        .description("How is the run doing? Empty: choose a longer time range, top right.")
        .tags(["edgebed"])
        .readonly()
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .time("now-1h", "now")
        .timezone("browser")
        .refresh("5s")
        .annotation(mark("Trials", "edgebed_run_start_timestamp_seconds", "{{trial}} begins", "blue"))
        .annotation(mark("Crashes", "edgebed_node_last_crash_timestamp_seconds", "{{node}} died", "red"))
        .annotation(mark("Faults", "edgebed_fault_timestamp_seconds", "{{node}}: {{action}}", "orange"))
    )
    for variable in variables():
        built.with_variable(variable)
    rows = {"": standing(), "Model": learning(), "Traffic": traffic(), "Work": work(), "Machine": machine()}
    numbers = itertools.count(1)
    for title, panels in rows.items():
        if title:
            built.with_row(dashboard.Row(title).id(next(numbers)))
        for panel in panels:
            built.with_panel(panel.id(next(numbers)))
    return json.dumps(json.loads(JSONEncoder().encode(built.build())), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(build())
