"""What is around the panels of a dashboard: what is chosen at the top, marks of events, links to the others."""

import itertools
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model

from dashboards.building.panels import SOURCE
from dashboards.building.queries import HERE
from edgebed.core.actions import ACTIONS, BRINGS_BACK

STARTS = "last_over_time(edgebed_run_start_timestamp_seconds[$__range])"
RUNS = f"query_result(sort_desc(max by (run) ({STARTS})))"
OF_RUN = '/run="([^"]+)"/'
OF_TRIAL = '/trial="([^"]+)"/'
WOUNDING, HEALING = (
    "|".join(name for name in ACTIONS if (name in BRINGS_BACK) == is_back) for is_back in (False, True)
)


def whole(
    name: str,
    title: str,
    description: str,
    chosen: Sequence[Any],
    marks: Sequence[dashboard.AnnotationQuery],
    rows: Mapping[str, Sequence[Any]],
    *,
    closed: Collection[str] = (),
    runs: Sequence[str] = ("run",),
    links: Sequence[dashboard.DashboardLink] = (),
    since: str = "now-15m",
) -> str:
    """The dashboard as JSON; panels are in rows with titles, the first of which may be empty.

    Rows that are `closed` open when they are clicked, and ask nothing before. `runs` names the variables of the runs
    that are shown: a link leads to where they began. `links` come after it.
    """
    built = (
        dashboard.Dashboard(title)
        .uid(f"edgebed-{name}")
        .description(f"{description} Empty: choose a longer time range, top right.")
        .tags(["edgebed"])
        .readonly()
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .time(since, "now")
        .timezone("browser")
        .refresh("10s")
        .link(
            dashboard.DashboardLink("The other dashboards")
            .type(model.DashboardLinkType.DASHBOARDS)
            .tags(["edgebed"])
            .keep_time(keep_time=bool(runs))
            .include_vars(include_vars=True)
        )
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )
    for variable in (*chosen, *([began_variable(runs)] if runs else [])):
        built.with_variable(variable)
    for mark in marks:
        built.annotation(mark)
    for link in (*([since_it_began(name, chosen)] if runs else []), *links):
        built.link(link)
    numbers = itertools.count(1)
    for heading, panels in rows.items():
        row = dashboard.Row(heading).id(next(numbers))
        if heading in closed:
            for panel in panels:
                row.with_panel(panel.id(next(numbers)))
            built.with_row(row.collapsed(collapsed=True))
            continue
        if heading:
            built.with_row(row)
        for panel in panels:
            built.with_panel(panel.id(next(numbers)))
    return (
        json.dumps(_as_grafana_13_has_it(json.loads(JSONEncoder().encode(built.build()))), indent=2, sort_keys=True)
        + "\n"
    )


def _as_grafana_13_has_it(board: dict[str, Any]) -> dict[str, Any]:
    """The builders write every variable as if it were an interval, and know tables as they were before 12.2."""
    board["annotations"].setdefault("list", [])
    for variable in board["templating"]["list"]:
        for name in ("auto", "auto_count", "auto_min"):
            variable.pop(name)
        variable["skipUrlSync"] = variable.get("hide") == model.VariableHide.HIDE_VARIABLE  # computed, never carried on
    for panel in [each for one in board["panels"] for each in (one, *one.get("panels", []))]:
        for link in panel.get("fieldConfig", {}).get("defaults", {}).get("links", []):
            for name in link.keys() - {"title", "url", "targetBlank"}:  # what the builders have for dashboards' links
                del link[name]
        if panel["type"] == "table":
            panel["options"]["enablePagination"] = panel["options"].pop("footer")["enablePagination"]
    return board


# --- what is chosen ---------------------------------------------------------------------------------------------------


def run_variable(name: str = "run", label: str = "Run", query: str = RUNS) -> dashboard.QueryVariable:
    """One run; the latest unless another is chosen."""
    return asked(name, label, query, 3).regex(OF_RUN).sort(model.VariableSort.DISABLED)


def several(name: str, label: str, query: str, every: str = ".+") -> dashboard.QueryVariable:
    """Any number of the values of a label; all, which `every` matches, unless some are chosen."""
    return (
        asked(name, label, query, 1)
        .multi(multi=True)
        .include_all(include_all=True)
        .all_value(every)
        .current(model.VariableOption(selected=True, text=["All"], value=["$__all"]))
        .sort(model.VariableSort.NATURAL_ASC)
    )


def asked(name: str, label: str, query: str, kind: int) -> dashboard.QueryVariable:
    """A variable that Prometheus is asked for; `kind` is Grafana's number: 1 label_values, 3 query_result."""
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query({"qryType": kind, "query": query, "refId": name})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
    )


def trial_variable() -> dashboard.QueryVariable:
    """Trials of the run."""
    return several("trial", "Trial", 'label_values(edgebed_run_info{run="$run"}, trial)')


def class_variable() -> dashboard.QueryVariable:
    """Device classes of these trials; server and evaluator are classes of their own."""
    return several("device_class", "Class", f"label_values(edgebed_nodes{{{HERE}}}, device_class)")


def host_variable() -> dashboard.QueryVariable:
    """The hosts of these trials; where there is one alone nothing has such a label."""
    return several("host", "Host", f"label_values(edgebed_host_busy_ratio{{{HERE}}}, host)", every=".*")


def began_variable(runs: Sequence[str]) -> dashboard.QueryVariable:
    """When the first trial of these runs began, in milliseconds: for a link, so it is computed and not shown."""
    where = "|".join(f"${run}" for run in runs)
    starts = f'edgebed_run_start_timestamp_seconds{{run=~"{where}"}}'
    began = f"query_result(floor(1000 * min(last_over_time({starts}[$__range]))))"
    return (
        asked("began", "Beginning of the run", began, 3)
        .regex("/ ([0-9]+) /")
        .sort(model.VariableSort.DISABLED)
        .hide(model.VariableHide.HIDE_VARIABLE)
    )


# --- links ------------------------------------------------------------------------------------------------------------


def since_it_began(name: str, chosen: Sequence[Any]) -> dashboard.DashboardLink:
    """The same dashboard from the beginning of its run until now, with these variables as they are."""
    words = "&".join(f"${{{one}:queryparam}}" for one in ("datasource", *(each.build().name for each in chosen)))
    return (
        dashboard.DashboardLink("This run from its beginning")
        .type(model.DashboardLinkType.LINK)
        .icon("dashboard")
        .tooltip("The run that is chosen, from its beginning until now; the dashboard Runs leads to its end, too")
        .url(f"/d/edgebed-{name}?{words}&from=${{began}}&to=now")
    )


# --- marks ------------------------------------------------------------------------------------------------------------


def trials_begin() -> dashboard.AnnotationQuery:
    """When each trial began."""
    return mark("Trials", "edgebed_run_start_timestamp_seconds", "{{trial}} begins", "blue")


def events() -> list[dashboard.AnnotationQuery]:
    """What happened to nodes: deaths, faults, and what was made good."""
    fault = "edgebed_fault_timestamp_seconds"
    return [
        mark("Crashes", "edgebed_node_last_crash_timestamp_seconds", "{{node}} died", "red"),
        mark("Faults", fault, "{{node}}: {{action}}", "orange", f',action=~"{WOUNDING}"'),
        mark("Recoveries", fault, "{{node}}: {{action}}", "green", f',action=~"{HEALING}"'),
    ]


def mark(name: str, metric: str, title: str, color: str, more: str = "") -> dashboard.AnnotationQuery:
    """A line in every chart at the times that `metric` tells, in Unix seconds."""
    return (
        dashboard.AnnotationQuery()
        .name(name)
        .datasource(SOURCE)
        .enable(enable=True)
        .icon_color(color)
        .expr(f"{metric}{{{HERE}{more}}} * 1000")
        .title_format(title)
        .step("5s")
        .use_value_for_time(use_value_for_time=True)
    )
