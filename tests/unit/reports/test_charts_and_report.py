"""Charts and reports: deterministic, self-contained, escaped, and there for any run that left a folder."""

import base64
import dataclasses
import hashlib
import html
import html.parser
import re
import xml.etree.ElementTree as ET

import pytest
from matplotlib.figure import Figure

from edgebed.core import records
from edgebed.core.measures.task import TaskMeasure
from edgebed.journal.journal import JournalWriter
from edgebed.journal.series import Series
from edgebed.reports.run import charts
from edgebed.reports.run.report import report_page, write_report
from edgebed.reports.run.text_chart_of_run import headline_chart
from edgebed.reports.run.trial_measures import most_frequent_label
from edgebed.reports.writing.figures import INK
from edgebed.reports.writing.html import to_html
from edgebed.running.results import Run

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
    label = most_frequent_label("test")
    for name in ("over-time", "over-updates"):
        axes = Figure().add_subplot()
        lined[name].plot(axes)
        levels = [line.get_ydata()[0] for line in axes.get_lines() if line.get_linestyle() == "--"]
        assert levels == ([share] if is_drawn else [])
        assert (label in lined[name].svg) == is_drawn
        level = [point.y for point in lined[name].data.points if point.name == label]
        assert level == ([f"{100 * share:g}"] * 2 if is_drawn else [])
        assert axes.get_ylim()[0] > 0.02
    assert lined["staleness"].svg == plain["staleness"].svg
    assert charts.charts_of({"asgd": Series.empty()}, most_frequent=[share])["over-time"].svg == ""


def test_the_most_frequent_class_is_told_to_be_the_test_part_s_beside_validation(sample_run):
    """What is drawn beside it is another part's."""
    series = sample_run.trials["asgd"].series
    measured = {"validation": series.evaluations.measured}
    validated = dataclasses.replace(series, evaluations=dataclasses.replace(series.evaluations, **measured))
    chart = charts.charts_of({"asgd": validated}, most_frequent=[0.12])["over-time"]

    assert "most frequent class of the test part" in chart.svg
    assert "most frequent class of the test part" in headline_chart({"asgd": validated}, [0.9])


def test_one_axis_has_one_measure(sample_run):
    """Trials that are told by another measure are drawn by the first one's, or not at all."""
    first = sample_run.trials["asgd"].series
    loss = next(each for each in first.evaluations.measures if each.name == "loss")
    by_loss = dataclasses.replace(first, evaluations=first.evaluations.told_by(loss))
    strange = TaskMeasure(name="reward")
    measured = dataclasses.replace(
        first.evaluations, measures=(strange,), measured={"reward": first.evaluations.measured["loss"]}
    )
    other = dataclasses.replace(first, evaluations=measured)
    chart = charts.charts_of({"asgd": first, "by-loss": by_loss, "other": other})["over-time"]
    alike = charts.charts_of({"asgd": first, "by-loss": first})["over-time"]

    assert chart.data.points == alike.data.points
    assert "x asgd" in (text := headline_chart({"asgd": first, "other": other}))
    assert "other" not in text


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
    svg = charts.over_time({"$a$<b>": series, "other": series}).svg

    assert "$a$&lt;b&gt;" in svg


def test_a_report_has_its_charts_and_escapes_what_the_scenario_says(sample_run):
    """What else it says is in `goldens/runs.txt`."""
    write_report(sample_run)
    document = sample_run.folder.report.read_text()

    assert "Does it <learn> & when?" in text_of(document)
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
