"""The dashboards as files: written by `python -m dashboards`, whole in Grafana's eyes, asking for what exists.

Several tests restate rules of Grafana's dashboard linter: data source, variables, titles, units, rates, editing.
"""

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import fastjsonschema
import promql_parser as promql
import pytest
from boards import boxes_of
from ruamel.yaml import YAML

from edgebed.core.actions import Action
from edgebed.core.quantities import RESULTS, VERDICTS
from edgebed.journal.verdict import host_rules
from edgebed.metrics import table

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "dashboards"
SCHEMA = json.loads((Path(__file__).parent / "grafana_schema.json").read_text(encoding="utf-8"))
RULES = [YAML(typ="safe").load(path.read_text(encoding="utf-8")) for path in FOLDER.glob("prometheus/rules/*.yml")]
RECORDED = {
    rule["record"]: rule for file in RULES for group in file["groups"] for rule in group["rules"] if "record" in rule
}
ALERTS = [rule for file in RULES for group in file["groups"] for rule in group["rules"] if "alert" in rule]
TITLES = {
    "runs": "Runs", "run-overview": "Run overview", "workers": "Workers", "network": "Network", "layers": "Layers",
    "programs": "Programs", "staleness-and-faults": "Staleness and faults", "comparison": "Comparison",
}  # fmt: skip
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
UNITS = {
    "none", "short", "percentunit", "decbytes", "bytes", "Bps", "bps", "pps", "s", "dateTimeFromNow", "dateTimeAsIso",
    "suffix:/s", "suffix:cores",
}  # fmt: skip
"""Those in use; another is looked up in Grafana's list of units before it is added here."""
LETTERS = list("ABCDEFGHIJKL")
COUNTERS = {metric.name for metric in table.METRICS if metric.type == "counter"}
GAUGES = {metric.name for metric in table.METRICS if metric.type == "gauge"}
PARTS_OF_HISTOGRAMS = {
    f"{metric.name}_{part}" for metric in table.METRICS if metric.type == "histogram"
    for part in ("bucket", "count", "sum")
}  # fmt: skip
EXPORTED = COUNTERS | GAUGES | PARTS_OF_HISTOGRAMS
LABELS = {label.name for metric in table.METRICS for label in metric.labels} | {
    "node", "role", "device_class", "run", "trial", "job", "instance", "le",
}  # fmt: skip
OF_ALERTS = {"alertname", "alertstate", "by", "severity"}
TEN_SECONDS = ("edgebed_transfer_", "edgebed_starved_", "edgebed_link_bytes_", "edgebed_link_dropped_")
"""Counters that nodes raise every ten seconds: a rate of them needs a minute."""


def test_every_question_has_a_dashboard(dashboards):
    """The loops below are not empty."""
    assert {name: dashboard["title"] for name, dashboard in dashboards.items()} == TITLES


def test_the_committed_dashboards_are_what_is_written(dashboards, tmp_path):
    """`python -m dashboards` writes all files, and no other is there."""
    subprocess.run([sys.executable, "-m", "dashboards", tmp_path], check=True, cwd=ROOT)
    written = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("grafana/dashboards/edgebed/*")}

    assert written == committed, "python -m dashboards"


def test_a_dashboard_can_be_imported_elsewhere(tmp_path):
    """Its data source is asked for as it is imported, and is no variable."""
    subprocess.run([sys.executable, "-m", "dashboards", "--importable", tmp_path], check=True, cwd=ROOT)
    boards = [json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()]

    assert len(boards) == len(TITLES)
    for board in boards:
        (source,) = board["__inputs"]
        assert (source["name"], source["type"], source["pluginId"]) == ("DS_PROMETHEUS", "datasource", "prometheus")
        assert "datasource" not in {one["name"] for one in board["templating"]["list"]}
        assert not re.findall(r"\$\{datasource", json.dumps(board))
        assert "${DS_PROMETHEUS}" in json.dumps(board["panels"])


def test_the_documents_own_queries_ask_for_what_there_is(filled):
    """Those that docs/watching.md answers questions with, for panels of one's own."""
    text = (ROOT / "docs/watching.md").read_text(encoding="utf-8")
    shown = re.findall(r"```promql\n(.*?)```", text, flags=re.DOTALL)

    assert len(shown) >= 3
    for query in shown:
        for name, _, labels in selectors(filled(query)):
            assert name in EXPORTED | RECORDED.keys(), query
            assert "run" in labels <= LABELS, query


def test_a_dashboard_is_what_grafanas_types_say(dashboards):
    """Of version 13; a mark may have what its data source adds."""
    schema = json.loads(json.dumps(SCHEMA["dashboard"]))
    schema["definitions"]["AnnotationQuery"]["additionalProperties"] = True
    validate = fastjsonschema.compile(schema)
    for dashboard in dashboards.values():
        validate(dashboard)
    with pytest.raises(fastjsonschema.JsonSchemaException, match="schemaVersion"):
        validate(dashboards["workers"] | {"schemaVersion": "42"})


def test_the_options_of_a_panel_are_what_grafanas_types_say(panels):
    """Of each kind of panel its own."""
    kinds = {
        kind: {part: fastjsonschema.compile(schema) for part, schema in parts.items()}
        for kind, parts in SCHEMA["panels"].items()
    }
    for panel in panels:
        parts = {"Options": panel["options"], "FieldConfig": panel["fieldConfig"]["defaults"].get("custom", {})}
        for part, validate in kinds[panel["type"]].items():
            validate(parts[part])
    with pytest.raises(fastjsonschema.JsonSchemaException, match="showHeader"):
        kinds["table"]["Options"]({"showHeader": "yes"})


def test_a_dashboard_can_be_provisioned(dashboards):
    """An identity and a title of its own, the classic model, no editing, and nothing that belongs to one database."""
    assert len({dashboard["uid"] for dashboard in dashboards.values()}) == len(dashboards)
    assert len({dashboard["title"] for dashboard in dashboards.values()}) == len(dashboards)
    for dashboard in dashboards.values():
        assert 8 <= len(dashboard["uid"]) <= 40
        assert dashboard["schemaVersion"] in (41, 42)
        assert dashboard["editable"] is False
        assert not {"id", "version", "iteration", "__inputs", "__requires"} & dashboard.keys()


def test_a_dashboard_says_which_question_it_answers_and_leads_to_the_others(dashboards):
    """The others are found by the tag that all have; time and choices go along, but a week's time from the list."""
    for name, dashboard in dashboards.items():
        link = dashboard["links"][0]
        assert "?" in dashboard["description"]
        assert dashboard["tags"] == link["tags"] == ["edgebed"]
        assert (link["type"], link["keepTime"], link["includeVars"]) == ("dashboards", name != "runs", True)


def test_a_link_leads_to_a_dashboard_with_what_is_known_there(dashboards, panels):
    """Each address names a dashboard, passes variables that it has, and a time: that of a run's beginning, too."""
    own = [(name, link["url"]) for name, board in dashboards.items() for link in board["links"] if link.get("url")]
    within = [("", link["url"]) for panel in panels for link in links_of(panel)]

    assert {name for name, url in own if "from=${began}&to=now" in url} == dashboards.keys() - {"runs"}
    assert len(within) >= 8
    for _, url in [*own, *within]:
        if url.startswith("http"):
            continue
        target, _, words = url.removeprefix("/d/edgebed-").partition("?")
        names = {one["name"] for one in dashboards.get(target, dashboards["workers"])["templating"]["list"]}
        assert target in dashboards or "${__value.raw}" in url, url
        passed = re.findall(r"\$\{(\w+):queryparam\}|var-(\w+)=", words)
        assert {one or other for one, other in passed} <= names, url
        assert "${__url_time_range}" in url or re.search(r"from=.*to=", words), url


def test_an_alert_leads_to_the_panel_that_it_is_about(dashboards):
    """Every alert has one, shown by the titles of its dashboard and itself."""
    table = next(panel for panel in dashboards["run-overview"]["panels"] if panel["title"] == "Alerts")
    places = dict(re.findall(r'"see", "([^"]+)", "alertname", "(\w+)"', table["targets"][0]["expr"]))
    changed = [each for one in table["fieldConfig"]["overrides"] for each in one["properties"]]
    (shown,) = next(each["value"] for each in changed if each["id"] == "mappings")

    assert {alert["alert"] for alert in ALERTS} == {*places.values()}
    assert places.keys() == shown["options"].keys()
    for place, words in shown["options"].items():
        board, _, number = place.partition("?viewPanel=panel-")
        (panel,) = [each for each in boxes_of(dashboards[board]) if each["id"] == int(number)]
        assert words["text"] == f"{TITLES[board]}: {panel['title']}"


def test_bounds_are_those_of_the_verdict_and_the_alerts():
    """What an alert says of a host is what degrades; lines and colours are made of the verdict's own numbers."""
    lag, steal = (rule["expr"] for rule in ALERTS if rule["labels"].get("by") in ("lag", "steal"))

    assert float(lag.split(">")[1]) == host_rules.LAG_MAX_S
    assert float(steal.split(">")[1]) == host_rules.STEAL_MAX


def test_the_home_is_the_overview():
    """It is there where Compose says that it is."""
    services = YAML(typ="safe").load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    home = Path(services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    mounted = dict(volume.split(":")[1::-1] for volume in services["grafana"]["volumes"])

    assert (ROOT / mounted["/var/lib/grafana/dashboards"] / home.relative_to("/var/lib/grafana/dashboards")).exists()
    assert home.name == "run-overview.json"


def test_the_rules_are_where_prometheus_looks_for_them():
    """Beside its configuration, in the one folder that Compose mounts."""
    configuration = YAML(typ="safe").load((FOLDER / "prometheus/prometheus.yml").read_text(encoding="utf-8"))
    services = YAML(typ="safe").load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]

    assert "./dashboards/prometheus:/etc/prometheus:ro" in services["prometheus"]["volumes"]
    (pattern,) = configuration["rule_files"]
    assert len(list((FOLDER / "prometheus").glob(pattern))) == len(RULES) == 2
    assert configuration["global"]["evaluation_interval"] == configuration["global"]["scrape_interval"]


def test_the_data_source_is_chosen_by_a_variable(dashboards, panels):
    """Nothing names a data source of its own, so that the file works in any Grafana."""
    for part in (*panels, *(target for panel in panels for target in panel["targets"])):
        assert part["datasource"] == SOURCE, part
    for dashboard in dashboards.values():
        variables = dashboard["templating"]["list"]
        assert [one["query"] for one in variables if one["name"] == "datasource"] == ["prometheus"]
        asked = [one for one in variables if one["type"] == "query"]
        for part in (*dashboard["annotations"]["list"], *asked):
            assert part["datasource"] == SOURCE, part


def test_variables_follow_the_time_range(dashboards):
    """The list of runs and trials is asked for again, so that a run that has just begun can be chosen."""
    for dashboard in dashboards.values():
        for variable in dashboard["templating"]["list"]:
            assert variable["type"] in ("datasource", "custom") or variable["refresh"] == 2


def test_a_variable_is_there_before_it_is_used(dashboards):
    """Every `$name` of a query is a variable of the dashboard; a variable asks only for those before it."""
    given = {"__rate_interval", "__range", "__interval"}
    for dashboard in dashboards.values():
        known = set(given)
        for variable in dashboard["templating"]["list"]:
            assert used(str(variable["query"])) <= known, variable["name"]
            known.add(variable["name"])
        shown = [panel for panel in boxes_of(dashboard) if panel["type"] != "row"]
        queries = queries_of({"": dashboard}, shown)
        assert set().union(*map(used, queries)) <= known
        assert known - given - {"datasource"} <= set().union(
            *map(used, [*queries, str(dashboard["templating"]), str(dashboard["links"])])
        )


def test_panels_fill_their_rows_without_overlapping(dashboards):
    """Every cell of the grid, 24 columns wide, belongs to exactly one panel."""
    for dashboard in dashboards.values():
        cells = [
            (x, y)
            for box in (panel["gridPos"] for panel in boxes_of(dashboard))
            for x in range(box["x"], box["x"] + box["w"])
            for y in range(box["y"], box["y"] + box["h"])
        ]
        height = max(y for _, y in cells) + 1

        assert sorted(cells) == [(x, y) for x in range(24) for y in range(height)]


def test_a_panel_says_what_it_shows(dashboards, panels):
    """A number and a title of its own, a description that is a sentence, known units."""
    for dashboard in dashboards.values():
        for key in ("id", "title"):
            assert len({panel[key] for panel in boxes_of(dashboard)}) == len(boxes_of(dashboard))
    for panel in panels:
        assert re.fullmatch(r"[A-Z].{10,150}\.", panel["description"]), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        for override in panel["fieldConfig"]["overrides"]:
            for changed in override["properties"]:
                assert changed["id"] in ("unit", "color", "links", "mappings") or changed["id"].startswith("custom.")
                assert changed["id"] != "unit" or changed["value"] in UNITS


def test_nothing_is_divided_by_what_may_be_zero(dashboards, panels, filled):
    """A counter that stands still, as that of caps where there are none, would give NaN: a curve without values."""
    rules = [rule["expr"] for rule in RECORDED.values()]
    parts = [part for query in [*queries_of(dashboards, panels), *rules] for part in parts_of(filled(query))]
    divisors = [part.rhs for part in parts if isinstance(part, promql.BinaryExpr) and str(part.op) == "/"]

    assert divisors
    for divisor in divisors:
        if isinstance(divisor, promql.NumberLiteral):
            continue
        is_guarded = isinstance(divisor, promql.ParenExpr) and str(divisor.expr.op) == ">"
        assert is_guarded or divisor.name == "edgebed_cgroup_memory_limit_bytes", divisor


def test_a_query_has_a_letter_and_a_legend(panels):
    """Grafana matches answers to queries by the letter; a series without a legend is called by its query."""
    for panel in panels:
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == LETTERS[: len(letters)]
        assert letters
        for target in panel["targets"]:
            assert target["legendFormat"], panel["title"]
            assert target["instant"] != target["range"]


def test_two_hundred_workers_have_no_two_hundred_curves(panels):
    """Of single nodes a chart shows ten; all of them are in heat maps, and in tables and bars of what is chosen."""
    single = [
        (panel, target["expr"]) for panel in panels for target in panel["targets"]
        if re.search(r"\{\{(node|shard|worker)\}\}", target["legendFormat"])
    ]  # fmt: skip

    assert {panel["type"] for panel, _ in single} >= {"heatmap", "bargauge", "timeseries"}
    for panel, query in single:
        assert panel["type"] == "heatmap" or re.search(r"(top|bottom)k\(10, ", query), panel["title"]
        assert panel["type"] != "timeseries" or query.endswith("@ end()))"), panel["title"]


def test_colours_are_for_names_that_exist(dashboards, panels):
    """States of a node and phases, of which none is forgotten where all are shown; A and B of a comparison."""
    closed = {
        label.name: label.examples for metric in table.METRICS for label in metric.labels if label.name == "state"
        and metric.name == "edgebed_nodes"
    }  # fmt: skip
    phases = {
        metric.name: next(label.examples for label in metric.labels if label.name == "phase")
        for metric in table.METRICS if metric.name.endswith("_phase_seconds_total")
    }  # fmt: skip
    overview = next(panel for panel in boxes_of(dashboards["run-overview"]) if panel["title"] == "Workers by state")

    assert colours_of(overview) == closed["state"]
    for panel in panels:
        colours, queries = colours_of(panel), str([target["expr"] for target in panel["targets"]])
        if colours and "_phase_seconds" in queries:
            of = "shard" if "shard_phase" in queries else "worker"
            assert colours == phases[f"edgebed_{of}_phase_seconds_total"]
        else:
            assert set(colours) <= {*closed["state"], "A", "B", "A: headline", "B: headline"}


@pytest.mark.parametrize(("title", "words"), [("Verdict", VERDICTS), ("Result", RESULTS)])
def test_a_verdict_and_a_result_are_shown_by_their_own_words(panels, title, words):
    """As in reports, by their places among them: in figures, and in the list of runs."""
    figures = [panel["fieldConfig"]["defaults"]["mappings"] for panel in panels if panel["title"] == title]
    columns = [
        each["value"]
        for panel in panels for one in panel["fieldConfig"]["overrides"] for each in one["properties"]
        if one["matcher"]["options"] == title and each["id"] == "mappings"
    ]  # fmt: skip

    assert (len(figures), len(columns)) == (2, 1)
    for (mapping,) in [*figures, *columns]:
        assert {int(place): each["text"] for place, each in mapping["options"].items()} == dict(enumerate(words))


def test_a_table_names_all_its_columns(panels):
    """Labels and values in order; the time of the query is none. Each further query is a column with a unit."""
    tables = [panel for panel in panels if panel["type"] == "table"]

    assert len(tables) >= 3
    for panel in tables:
        named = panel["transformations"][-1]["options"]
        letters = [target["refId"] for target in panel["targets"]]
        values = ["Value"] if letters == ["A"] else [f"Value #{letter}" for letter in letters]
        assert panel["transformations"][0]["id"] == ("organize" if letters == ["A"] else "merge")
        assert {*named["excludeByName"]} - {*values} == {"Time"}
        assert [name for name in named["renameByName"] if name.startswith("Value")] == values
        assert set(named["indexByName"]) == set(named["renameByName"])
        assert panel["options"]["enablePagination"] is True
        units = [
            override["matcher"]["options"] for override in panel["fieldConfig"]["overrides"]
            if override["properties"][0]["id"] == "unit"
        ]  # fmt: skip
        assert units == [named["renameByName"][value] for value in values if value not in named["excludeByName"]]


def test_a_curve_of_points_is_made_of_columns_that_are_there(panels):
    """Each is the legend of one query; all are joined by their time."""
    charts = [panel for panel in panels if panel["type"] == "xychart"]

    assert charts
    for panel in charts:
        legends = [target["legendFormat"] for target in panel["targets"]]
        used_by = [series[axis]["matcher"]["options"] for series in panel["options"]["series"] for axis in "xy"]
        assert used_by == legends
        assert panel["transformations"] == [{"id": "joinByField", "options": {"byField": "Time", "mode": "outer"}}]


def test_queries_ask_for_metrics_that_are_exported(dashboards, panels, filled):
    """Every metric and label in a query exists, and every query but the list's says which run and trial it is about."""
    of_all_runs = {target["expr"] for panel in dashboards["runs"]["panels"] for target in panel["targets"]}
    for query in queries_of(dashboards, panels):
        for name, _, labels in selectors(filled(query)):
            known = LABELS | OF_ALERTS if name == "ALERTS" else LABELS
            assert name in EXPORTED | RECORDED.keys() | {"ALERTS"}, query
            assert {"run", "trial"} <= labels <= known or query in of_all_runs, query


def test_rules_ask_for_metrics_that_are_exported_and_keep_run_and_trial():
    """Recorded names say level:metric:operations, of a metric that goes into it."""
    for rule in (*RECORDED.values(), *ALERTS):
        for name, _, labels in selectors(rule["expr"]):
            assert name in EXPORTED | RECORDED.keys(), rule
            assert labels <= LABELS, rule
    for name, rule in RECORDED.items():
        level, metric, operations = name.split(":")
        assert re.fullmatch(r"(ratio_)?rate(20s|1m)", operations)
        assert level.split("_")[0] in ("trial", "device", "node")
        asked = {part for part, *_ in selectors(rule["expr"])} | set(rule["expr"].split(":"))
        assert f"{metric.partition('_per_')[0].removesuffix('_total')}" in {one.removesuffix("_total") for one in asked}
        for found in re.findall(r"(?:by|on) \((.*?)\)", rule["expr"]):
            assert {"run", "trial"} <= set(found.split(", ")), rule


def test_a_recorded_series_is_made_of_exported_metrics_alone_and_the_package_has_the_rules():
    """So each can be computed afterwards, by `edgebed replay`, which is installed without this folder."""
    for rule in RECORDED.values():
        assert {name for name, *_ in selectors(rule["expr"])} <= EXPORTED, rule
    copy = ROOT / "services/edgebed/running/recording.yml"
    assert copy.read_bytes() == (FOLDER / "prometheus/rules/recording.yml").read_bytes(), "python -m dashboards"


def test_every_recorded_series_is_shown_or_watched(dashboards, panels):
    """What nobody asks for is not computed."""
    asked = " ".join([*queries_of(dashboards, panels), *(rule["expr"] for rule in (*RECORDED.values(), *ALERTS))])
    for name in RECORDED:
        assert name in asked, name


def test_every_alert_is_explained_and_made_to_fire_and_not_to(dashboards):
    """By its name in the documentation; by cases of promtool, which another test runs."""
    text = (ROOT / "docs/watching.md").read_text(encoding="utf-8")
    cases = YAML(typ="safe").load((Path(__file__).parent / "rules/alerts.yml").read_text(encoding="utf-8"))["tests"]
    looked_at = [one for case in cases for one in case["alert_rule_test"]]
    fired = {(one["alertname"], each["exp_labels"].get("by")) for one in looked_at for each in one["exp_alerts"]}
    silent = {one["alertname"] for one in looked_at if not one["exp_alerts"]}

    assert {(alert["alert"], alert["labels"].get("by")) for alert in ALERTS} == fired
    for alert in ALERTS:
        assert alert["alert"] in silent
        assert f"`{alert['alert']}`" in text
        assert alert["labels"]["severity"] in ("warning", "critical")
        assert alert["annotations"].keys() == {"summary", "description"}


def test_the_documentation_names_every_dashboard(dashboards):
    """What each is for."""
    text = (ROOT / "docs/watching.md").read_text(encoding="utf-8")
    for dashboard in dashboards.values():
        assert f"**{dashboard['title']}**" in text


def test_variables_ask_for_metrics_that_are_exported(dashboards):
    """In their own small language, whose names are looked at as text."""
    for dashboard in dashboards.values():
        for variable in dashboard["templating"]["list"]:
            names = re.findall(r"edgebed_\w+", str(variable["query"]))
            assert set(names) <= EXPORTED
            assert names or variable["type"] != "query"


def test_a_counter_is_shown_as_a_rate_or_called_a_total(panels, filled):
    """A counter begins with its trial, so that its plain value is the trial's total, and a title says so.

    In a table the column is called so; in a chart of one value against another the axes are; bars are shares of totals.
    """
    for panel in panels:
        for target in panel["targets"]:
            title = title_of(panel, target)
            for name, functions, _ in selectors(filled(target["expr"])):
                if name in COUNTERS:
                    is_rate = bool({"rate", "increase"} & set(functions))
                    is_share = panel["type"] in ("xychart", "bargauge")
                    assert is_share or title.startswith("Total") != is_rate, title
                elif name in GAUGES:
                    assert not {"rate", "increase"} & set(functions)


def test_a_rate_is_taken_over_grafanas_rate_interval(dashboards, panels):
    """Four scrapes at least, whatever the zoom; a minute of what nodes raise each ten seconds; or all that is shown."""
    for query in queries_of(dashboards, panels):
        ranges = re.findall(r"(\w+)\((?:0\.5, )?(ALERTS|edgebed_\w+|node:\w+:\w+)(?:\{[^}]*\})?\[([^\]]*)\]", query)
        over_parts = len(re.findall(r"\)\[\$__range:(?:5s|\$__interval)\]", query))
        assert len(ranges) + over_parts == len(re.findall(r"\[[^\]\"]*\]", query)), query
        for function, name, over in ranges:
            if function == "rate":
                assert over == ("1m" if name.startswith(TEN_SECONDS) else "$__rate_interval"), query
            elif function == "increase":
                assert over in ("$__rate_interval", "$__range"), query
            else:
                assert function.endswith("_over_time"), query
                assert over == "$__range", query


def test_who_is_no_worker_is_not_counted_as_one(dashboards, panels):
    """Where workers are counted, whoever has a role for a class is left out."""
    asked = " ".join([*queries_of(dashboards, panels), *(rule["expr"] for rule in (*RECORDED.values(), *ALERTS))])
    left_out = re.findall(r'edgebed_nodes\{[^}]*device_class!~"(.*?)"', asked)

    assert len(left_out) == 3
    for roles in left_out:
        assert sorted(roles.split("|")) == sorted({*table.NODES} - {table.WORKER})


def test_a_panel_that_takes_no_heed_of_single_workers_says_that_it_is_of_classes(dashboards):
    """On the dashboard where single workers can be chosen."""
    panels = [panel for panel in dashboards["workers"]["panels"] if panel["type"] != "row"]
    of_classes = [panel for panel in panels if "$worker" not in str(panel["targets"])]

    assert 0 < len(of_classes) < len(panels)
    for panel in of_classes:
        assert "class" in panel["description"], panel["title"]


def test_marks_stand_at_exact_times(dashboards):
    """A mark's time is the metric's value, which Grafana takes as milliseconds; a recovery is no fault."""
    for name, dashboard in dashboards.items():
        marks = {one["name"]: one for one in dashboard["annotations"]["list"]}
        assert list(marks) == ([] if name in ("comparison", "runs") else ["Trials", "Crashes", "Faults", "Recoveries"])
        for one in marks.values():
            assert one["useValueForTime"] is True
            assert re.match(r"edgebed_\w+_timestamp_seconds\{.*\} \* 1000$", one["expr"])


def test_every_action_on_a_node_is_a_fault_or_a_recovery(dashboards):
    """And none is both."""
    marks = {one["name"]: one["expr"] for one in dashboards["staleness-and-faults"]["annotations"]["list"]}
    actions = [re.search(r'action=~"(.*?)"', marks[name])[1].split("|") for name in ("Faults", "Recoveries")]

    assert sorted(itertools.chain(*actions)) == sorted(get_args(Action))


@pytest.mark.parametrize("kind", ["datasources", "dashboards"])
def test_grafana_is_provisioned_from_files_that_the_browser_does_not_change(kind):
    """Scrape interval and data source's identity are those that the dashboards and Prometheus count on."""
    (file,) = (FOLDER / "grafana/provisioning" / kind).iterdir()
    content = YAML(typ="safe").load(file.read_text(encoding="utf-8"))
    prometheus = YAML(typ="safe").load((FOLDER / "prometheus/prometheus.yml").read_text(encoding="utf-8"))

    assert content["apiVersion"] == 1
    if kind == "datasources":
        (source,) = content["datasources"]
        assert (source["type"], source["isDefault"], source["editable"]) == ("prometheus", True, False)
        assert source["jsonData"]["timeInterval"] == prometheus["global"]["scrape_interval"]
    else:
        (provider,) = content["providers"]
        assert provider["allowUiUpdates"] is False
        assert provider["options"]["foldersFromFilesStructure"] is True


def queries_of(dashboards: dict[str, dict], panels: list[dict]) -> list[str]:
    """Every PromQL query of a panel or a mark."""
    marks = [one["expr"] for dashboard in dashboards.values() for one in dashboard["annotations"]["list"]]
    return marks + [target["expr"] for panel in panels for target in panel["targets"]]


def used(text: str) -> set[str]:
    """The variables that a query, or the query of a variable, names."""
    return set(re.findall(r"\$\{?(\w+)", text))


def links_of(panel: dict) -> list[dict]:
    """Those of its curves, and of the columns of a table."""
    changed = [each for one in panel["fieldConfig"]["overrides"] for each in one["properties"]]
    columns = [link for each in changed if each["id"] == "links" for link in each["value"]]
    return [*panel["fieldConfig"]["defaults"].get("links", []), *columns]


def colours_of(panel: dict) -> tuple[str, ...]:
    """The names that have a colour of their own."""
    overrides = panel["fieldConfig"]["overrides"]
    return tuple(one["matcher"]["options"] for one in overrides if one["properties"][0]["id"] == "color")


def title_of(panel: dict, target: dict) -> str:
    """What a query's values are called: by the panel's title, in a table by the column's."""
    if panel["type"] != "table":
        return panel["title"]
    names = panel["transformations"][-1]["options"]["renameByName"]
    return names.get(f"Value #{target['refId']}", names.get("Value"))


def selectors(expr: str) -> list[tuple[str, tuple[str, ...], set[str]]]:
    """(metric, functions around it, labels it is chosen by) for each selector; a query that is none raises."""
    return [
        (node.name, around, {matcher.name for matcher in node.matchers.matchers})
        for node, around in _walk(promql.parse(expr), ()) if isinstance(node, promql.VectorSelector)
    ]  # fmt: skip


def parts_of(expr: str) -> list[object]:
    """All that a query is made of."""
    return [part for part, _ in _walk(promql.parse(expr), ())]


def _walk(node: object, around: tuple[str, ...]) -> Iterator[tuple[object, tuple[str, ...]]]:
    """Each part of a query with the functions around it."""
    if isinstance(node, promql.MatrixSelector):
        node = node.vector_selector
    yield node, around
    if isinstance(node, promql.Call):
        for argument in node.args:
            yield from _walk(argument, (*around, node.func.name))
    elif isinstance(node, promql.BinaryExpr):
        yield from _walk(node.lhs, around)
        yield from _walk(node.rhs, around)
    elif isinstance(node, (promql.AggregateExpr, promql.ParenExpr, promql.UnaryExpr, promql.SubqueryExpr)):
        yield from _walk(node.expr, around)
    else:
        leaves = (promql.VectorSelector, promql.NumberLiteral, promql.StringLiteral)
        assert isinstance(node, leaves), f"{type(node).__name__} is not walked into"
