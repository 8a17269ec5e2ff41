"""Charts and reports: deterministic, self-contained, escaped, and there for any run that left a folder."""

import base64
import hashlib
import html
import html.parser
import re
import shutil
import xml.etree.ElementTree as ET

import msgspec
import pytest
from matplotlib.figure import Figure

from edgebed.core import records
from edgebed.core.plan import Shard
from edgebed.journal.journal import JournalWriter
from edgebed.journal.series import Series
from edgebed.reports.run import charts
from edgebed.reports.run.report import report_page, write_report
from edgebed.reports.writing.drawing import INK
from edgebed.reports.writing.html import to_html
from edgebed.running.results import Run, load

pytestmark = pytest.mark.slow

VOID = {"meta", "br", "link", "img", "hr"}


class Balance(html.parser.HTMLParser):
    """Checks that tags close in order, and keeps the text outside of style and script."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        """One more is open."""
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        """The last one opened is closed."""
        assert tag == self.open.pop()

    def handle_data(self, data):
        """Style and script are no text."""
        if not {"style", "script"} & set(self.open):
            self.text.append(data)


def rendered(run):
    """The report of a run as HTML."""
    return to_html(report_page(run))


def text_of(document):
    """The text of a well-formed document."""
    parser = Balance()
    parser.feed(document)
    parser.close()
    assert parser.open == []
    return " ".join(" ".join(parser.text).split())


@pytest.mark.parametrize("name", charts.CHARTS)
def test_a_chart_is_the_same_svg_every_time(sample_run, name):
    """Well-formed XML without date, equal byte for byte, in the ink of its surroundings."""
    series = {trial.name: trial.series for trial in sample_run.trials.values()}
    chart = charts.CHARTS[name](series)
    first, second = chart.svg, charts.CHARTS[name](series).svg

    assert first == second
    assert ET.fromstring(chart.svg_file).tag.endswith("svg")
    assert "currentColor" in first
    assert INK not in first
    assert "dc:date" not in first
    assert {"asgd", "adacomp"} <= set(re.findall(r">([a-z]+)</text>", first))


@pytest.mark.parametrize("name", charts.CHARTS)
def test_there_is_no_chart_of_nothing(name):
    """Empty axes would only puzzle."""
    chart = charts.CHARTS[name]({"asgd": Series.empty()})

    assert (chart.svg, chart.svg_file, chart.printed_svg(), chart.printed_png()) == ("", b"", b"", b"")


@pytest.mark.parametrize(("share", "is_drawn"), [(0.12, True), (0.99, True), (0.02, False)])
def test_the_most_frequent_class_is_a_level_line_where_it_takes_no_room(sample_run, share, is_drawn):
    """At its place, above the curves as well, which then are worth nothing; no longer than the axis is where it is not.

    The chart's data has it, from end to end, and where nothing was measured nothing is drawn.
    """
    series = {"asgd": sample_run.trials["asgd"].series}
    plain, lined = charts.charts_of(series), charts.charts_of(series, most_frequent=[share])
    for name in ("accuracy-time", "accuracy-updates"):
        axes = Figure().add_subplot()
        lined[name].plot(axes)
        levels = [line.get_ydata()[0] for line in axes.get_lines() if line.get_linestyle() == "--"]
        assert levels == ([share] if is_drawn else [])
        assert (charts.MOST_FREQUENT in lined[name].svg) == is_drawn
        level = [point.y for point in lined[name].data.points if point.name == charts.MOST_FREQUENT]
        assert level == ([f"{100 * share:g}"] * 2 if is_drawn else [])
        assert axes.get_ylim()[0] > 0.02
    assert lined["staleness"].svg == plain["staleness"].svg
    assert charts.charts_of({"asgd": Series.empty()}, most_frequent=[share])["accuracy-time"].svg == ""


def test_a_steady_rate_does_not_lie_on_the_frame(sample_run):
    """There is room above the highest rate, and the axis begins at 0."""
    axes = Figure().add_subplot()
    charts.update_rate({"asgd": sample_run.trials["asgd"].series}).plot(axes)
    bottom, top = axes.get_ylim()

    assert bottom == 0.0
    assert top == pytest.approx(1.08 * max(line.get_ydata().max() for line in axes.get_lines()))


def test_a_chart_takes_names_literally(sample_run):
    """Dollars and angle brackets in a name are text, not formulas or tags."""
    series = sample_run.trials["asgd"].series
    svg = charts.accuracy_over_time({"$a$<b>": series, "other": series}).svg

    assert "$a$&lt;b&gt;" in svg


def test_the_report_answers_the_readers_questions(sample_run):
    """Question, verdict, numbers, charts, phases, books, settings, command and versions are all there."""
    write_report(sample_run)
    document = sample_run.folder.report.read_text()
    text = text_of(document)

    for part in (
        "Does it learn?",
        "Both expectations are met ·",
        "To 90 % in the mean of 3 evaluations: adacomp",
        "97.50 %",
        "312 kB",
        "gradient 12.00 ms",
        "messages refused: finished",
        "Does it <learn> & when?",
        "edgebed run sample.yaml --runtime process --set fleet.edge.count=2",
        "97.50 % met",
        "numpy",
        "asgd: 25.7 MB",
        "up: pushes that were applied 24 MB (93.5 %)",
    ):
        assert part in text
    assert document.count("<svg") == len(charts.CHARTS) + len(sample_run.trials)  # and the nodes of each


def test_the_report_asks_for_nothing_from_outside(sample_run):
    """It opens without a network: no source and no link leads out of the file, and its one script loads nothing."""
    document = rendered(sample_run)
    before, script, after = re.split(r"<script>|</script>", document)
    addresses = set(re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?([^"\')\s>]+)', before + after))

    assert all(address.startswith("#") for address in addresses)
    assert "<script" not in before + after
    assert "@import" not in document
    assert not re.search(r"fetch|XMLHttpRequest|import|WebSocket|\.src|eval", script)


def test_a_browser_runs_the_reports_own_script_and_no_other(sample_run):
    """Its policy names the script by its digest, as it stands between the tags."""
    document = rendered(sample_run)
    script = re.split(r"<script>|</script>", document)[1]
    policy = html.unescape(re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', document)[1])
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()

    assert dict(each.split(" ", 1) for each in policy.split("; "))["script-src"] == f"'sha256-{digest}'"
    assert policy.startswith("default-src 'none'; ")


def test_what_a_run_says_cannot_become_html(tmp_path, make_sample_run, make_sample_plan, make_sample_entries):
    """Names, questions, reasons and notes from outside are text."""
    attack = "<img src=x onerror=alert(1)>"
    run = make_sample_run(tmp_path, {"asgd": make_sample_entries(updates=60)})
    trial = run.folder.trial("asgd")
    trial.make(make_sample_plan("asgd", question=attack, workers=(attack,)))
    with JournalWriter(trial.journal) as journal:
        journal.write(9.0, attack, records.Note(text=attack))
        journal.write(9.0, "controller", records.Node(name=attack, state="died", reason=attack))
        journal.write(9.0, "server", records.Refused(peer=attack, code=attack, reason=attack))
        journal.write(9.0, attack, records.Phases(steps=1, compute_s=1, encode_s=0, wait_s=0, pause_s=0))
        journal.write(9.9, "controller", records.Ended(outcome="failed", reason=attack))
    run.folder.write_scenario(attack)
    run.folder.write_manifest(seed=1, runtime=attack, command=[attack], trials=["asgd"])
    document = rendered(Run(run.folder))

    assert "<img" not in document
    assert text_of(document).count(attack) >= 7


@pytest.mark.usefixtures("undrawn")
def test_a_run_that_was_killed_has_a_report(tmp_path, make_sample_run, make_sample_entries):
    """No end, a cut last line and a trial that never began: said, not hidden."""
    run = make_sample_run(tmp_path, {"asgd": list(make_sample_entries())[:200], "adacomp": []})
    shutil.rmtree(run.path / "adacomp")
    with (run.path / "asgd" / "events.jsonl").open("ab") as file:
        file.write(b'{"t":1')
    run = load(run.path)
    text = text_of(rendered(run))

    assert run.exit_code == 3
    for part in ("adacomp did not begin", "unfinished", "last line is cut", "not measured"):
        assert part in text


def test_a_run_without_updates_or_journal_has_a_report(tmp_path, make_sample_run):
    """The emptiest folders give a document that says so."""
    run = make_sample_run(tmp_path, {"asgd": []})
    assert "<svg" not in rendered(run)

    (run.path / "asgd" / "events.jsonl").unlink()
    shutil.copytree(run.path / "asgd", tmp_path / "keep")
    run.folder.scenario.unlink()
    run.folder.manifest.unlink()
    assert "unfinished" in text_of(rendered(load(run.path)))

    shutil.rmtree(run.path / "asgd")
    assert "No trial has begun" in text_of(rendered(load(run.path)))


@pytest.mark.usefixtures("undrawn")
def test_the_report_has_the_last_words_of_a_node_that_died(tmp_path, make_sample_run, make_sample_entries):
    """The last twenty lines of its log, escaped, where to read more, and a warning at the top."""
    death = (5.0, "controller", records.Node(name="edge-0", state="died", reason="killed by SIGKILL"))
    run = make_sample_run(tmp_path, {"asgd": [*make_sample_entries(), death]})
    run.folder.trial("asgd").log("edge-0").write_text("".join(f"<line {n}>\n" for n in range(1, 31)))
    text = text_of(rendered(run))

    assert "<line 11> <line 12>" in text
    assert "<line 10>" not in text
    assert "See edgebed logs sample/0001 edge-0 --trial asgd" in text
    assert "asgd: 1 worker died, 0 missing" in text


@pytest.mark.usefixtures("undrawn")
def test_a_run_from_python_says_how_it_can_be_repeated(sample_run):
    """Without a file there is no command."""
    sample_run.folder.write_manifest(seed=7, runtime="process", command=["python", "-c", "x"], trials=["asgd"])

    assert "Run from Python; the resolved scenario is scenario.yaml" in text_of(rendered(load(sample_run.path)))


def fleet_tables(document):
    """(heading, {first cell of a row: all of its cells}) of each table of the fleet; the head begins with `node`."""
    found = []
    fleet = document.split("<h2>The fleet</h2>")[1].split("<h2>")[0]
    for before, body in re.findall(r"(.*?)<table>(.*?)</table>", fleet, re.DOTALL):
        heading = re.search("<h3>(.*?)</h3>", before)
        rows = [re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall("<tr>(.*?)</tr>", body)]
        found.append((heading and heading[1], {row[0]: row for row in rows}))
    return found


@pytest.mark.usefixtures("undrawn")
def test_each_trial_is_shown_with_its_own_fleet(tmp_path, make_sample_run, make_sample_plan, make_sample_entries):
    """Trials of one fleet share a table; another cap, other data or other nodes make another one."""
    entries = list(make_sample_entries(updates=40))
    run = make_sample_run(tmp_path, dict.fromkeys(("asgd", "capped", "few", "adacomp"), entries))
    capped = make_sample_plan("capped")
    caps = {"cpus": 0.25, "memory_bytes": 2**26, "num_examples": 30}
    nodes = tuple(msgspec.structs.replace(n, **caps) if n.role == "worker" else n for n in capped.nodes)
    run.folder.trial("capped").make(msgspec.structs.replace(capped, nodes=nodes))
    run.folder.trial("few").make(make_sample_plan("few", workers=("edge-0",)))
    applied = run.trials["asgd"].series.updates_by_worker

    (first, alike), (second, others), (third, few) = fleet_tables(rendered(load(run.path)))

    assert (first, second, third) == ("asgd, adacomp", "capped", "few")
    assert alike["node"][5:] == ["updates: asgd", "updates: adacomp"]
    assert alike["phone-0"] == ["phone-0", "0.5", "–", "1", "300", *2 * [f"{applied['phone-0']}"]]
    assert others["phone-0"] == ["phone-0", "0.25", "64 MiB", "1", "30", f"{applied['phone-0']}"]
    assert list(few) == ["node", "server", "evaluator", "edge-0"]
    assert few["server"] == ["server", "–", "–", "1", "0", "–"]


@pytest.mark.usefixtures("undrawn")
def test_a_fleet_that_all_trials_have_is_one_table(sample_run):
    """Without a heading of its own."""
    ((heading, rows),) = fleet_tables(rendered(sample_run))

    assert heading is None
    assert rows["node"][5:] == ["updates: asgd", "updates: adacomp"]
    assert len(rows) == 1 + 2 + 4


@pytest.mark.usefixtures("undrawn")
def test_an_update_of_shards_is_no_one_nodes(tmp_path, make_sample_run, make_sample_plan):
    """None has a number of its own, not even 0."""
    run = make_sample_run(tmp_path, {"asgd": []})
    plan = make_sample_plan("asgd")
    nodes = tuple(msgspec.structs.replace(n, shard=Shard(end=1)) if n.role == "worker" else n for n in plan.nodes)
    run.folder.trial("asgd").make(msgspec.structs.replace(plan, nodes=nodes))

    ((_, rows),) = fleet_tables(rendered(load(run.path)))

    assert {cells[5] for name, cells in rows.items() if name != "node"} == {"–"}


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"emulation": "auto", "trace": False, "force": False}, ""),
        ({"emulation": "model", "trace": True, "force": True}, " --emulation model --force --trace"),
        ({}, ""),
    ],
    ids=["default", "all", "unknown"],
)
def test_the_command_that_repeats_a_run_has_its_options(sample_run, options, words):
    """Those that were given; an old manifest tells of none."""
    sample_run.folder.write_manifest(
        seed=7, runtime="process", command=[], trials=["asgd"], scenario_file="sample.yaml", options=options
    )

    assert f"<pre>edgebed run sample.yaml --runtime process{words}</pre>" in rendered(load(sample_run.path))


SINCE_TRAINING = "Times count from the start of training; what came before it is negative."
SINCE_LAUNCH = "Training of {} has not begun; there, times count from the launch."


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("begun", "text"),
    [
        (("a", "b"), SINCE_TRAINING),
        (("a",), f"{SINCE_TRAINING} {SINCE_LAUNCH.format('b')}"),
        ((), SINCE_LAUNCH.format("a, b")),
    ],
    ids=["both", "one", "none"],
)
def test_incidents_say_what_their_times_count_from(tmp_path, make_sample_run, begun, text):
    """A trial that ends before training has no other time than that since its launch."""
    begin = records.Trial(scenario="s", trial="x", seed=7, runtime="process", nodes=6, parameters=9)
    entries = [
        (3.0, "controller", begin),
        (4.0, "controller", records.Node(name="edge-0", state="missing", reason="no hello")),
        (5.0, "controller", records.Ended(outcome="failed", reason="edge-0 never came")),
    ]
    run = make_sample_run(tmp_path, {name: entries if name in begun else entries[1:] for name in "ab"})
    shown = text_of(rendered(run)).split("Events")[1]

    assert shown.split(" trial time node event ")[0].strip() == text
    for name in "ab":
        assert f"{name} {'1.00' if name in begun else '4.00'} s edge-0 missing: no hello" in shown


@pytest.mark.usefixtures("undrawn")
def test_what_the_log_took_and_saved_is_in_the_report(make_sample_run, tmp_path):
    """Of each start that found something in it; nothing is said of a server without a log."""
    run = make_sample_run(tmp_path)
    assert "the server's log" not in text_of(rendered(run))
    lives = (
        records.Appended(entries=1200, bytes=9_000_000, time_s=8.0, append_s=0.1, syncs=900, waited=900, waited_s=1.8),
        records.Appended(entries=300, bytes=3_000_000, time_s=2.0, append_s=0.1, saved=41),
    )
    with JournalWriter(run.trials["asgd"].folder.journal) as journal:
        for appended in lives:
            journal.write(99.0, "server", appended)
    found = text_of(rendered(load(run.path)))

    assert "the server's log: written 12 MB" in found
    assert "the server's log: entries 1,500" in found
    assert "the server's log: share of its time 2.00 %" in found
    assert "the server's log: syncs 900" in found
    assert "the server's log: mean wait for a sync 0.00 s" in found
    assert "the server's log: updates that the last checkpoint lacked 41" in found
