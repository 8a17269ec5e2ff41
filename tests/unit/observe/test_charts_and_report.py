"""Charts and reports: deterministic, self-contained, escaped, and there for any run that left a folder."""

import html.parser
import re
import shutil
import xml.etree.ElementTree as ET

import pytest

from edgebed.observe import charts
from edgebed.observe.journal import JournalWriter
from edgebed.observe.report import render, write_report
from edgebed.observe.series import Series
from edgebed.results import Run, load

VOID = {"meta", "br", "link", "img", "hr"}


class Balance(html.parser.HTMLParser):
    """Checks that tags close in order, and keeps the text outside of style."""

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
        """Style is no text."""
        if "style" not in self.open:
            self.text.append(data)


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
    _, draw = charts.CHARTS[name]
    first, second = draw(series), draw(series)

    assert first == second
    assert ET.fromstring(charts.stand_alone(first)).tag.endswith("svg")
    assert "currentColor" in first
    assert charts.INK not in first
    assert "dc:date" not in first
    assert {"asgd", "adacomp"} <= set(re.findall(r">([a-z]+)</text>", first))


@pytest.mark.parametrize("name", charts.CHARTS)
def test_a_chart_of_nothing_says_so(name):
    """No evaluation and no update still make a chart."""
    _, draw = charts.CHARTS[name]

    assert "nothing measured" in draw({"asgd": Series.empty()})


def test_a_chart_takes_names_literally(sample_run):
    """Dollars and angle brackets in a name are text, not formulas or tags."""
    series = sample_run.trials["asgd"].series
    svg = charts.accuracy_over_time({"$a$<b>": series, "other": series})

    assert "$a$&lt;b&gt;" in svg


def test_the_report_answers_the_readers_questions(sample_run):
    """Question, verdict, numbers, charts, phases, books, settings, command and versions are all there."""
    write_report(sample_run)
    document = sample_run.folder.report.read_text()
    text = text_of(document)

    for part in (
        "Does it learn?",
        "Both expectations are met.",
        "97.50 %",
        "312 kB",
        "gradient 12.00 ms",
        "messages refused: finished",
        "Does it <learn> & when?",
        "edgebed run sample.yaml",
        "numpy",
        "shared by the machine",
    ):
        assert part in text
    assert document.count("<svg") == len(charts.CHARTS)
    assert (sample_run.path / "asgd" / "accuracy-ingress.svg").exists()


def test_the_report_asks_for_nothing_from_outside(sample_run):
    """It opens without a network: no script, no source and no link leads out of the file."""
    document = render(sample_run)
    addresses = set(re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?([^"\')\s>]+)', document))

    assert all(address.startswith("#") for address in addresses)
    assert "<script" not in document
    assert "@import" not in document


def test_what_a_run_says_cannot_become_html(tmp_path, make_sample_run, make_sample_plan, make_sample_entries):
    """Names, questions, reasons and notes from outside are text."""
    from edgebed.roles import records

    attack = "<img src=x onerror=alert(1)>"
    run = make_sample_run(tmp_path, {"asgd": make_sample_entries(updates=60)})
    trial = run.folder.trial("asgd")
    trial.make(make_sample_plan("asgd", question=attack, expectations=((attack, ">=", 1.0),), workers=(attack,)))
    with JournalWriter(trial.journal) as journal:
        journal.write(9.0, attack, records.Note(text=attack))
        journal.write(9.0, "controller", records.Node(name=attack, state="died", reason=attack))
        journal.write(9.0, "server", records.Refused(peer=attack, code=attack, reason=attack))
        journal.write(9.0, attack, records.Phases(steps=1, compute_s=1, encode_s=0, wait_s=0, pause_s=0))
        journal.write(9.9, "controller", records.Ended(outcome="failed", reason=attack))
    run.folder.write_scenario(attack)
    run.folder.write_manifest(seed=1, runtime=attack, command=[attack], trials=["asgd"])
    document = render(Run(run.folder))

    assert "<img" not in document
    assert text_of(document).count(attack) >= 8


def test_a_run_that_was_killed_has_a_report(tmp_path, make_sample_run, make_sample_entries):
    """No end, a cut last line and a trial that never began: said, not hidden."""
    run = make_sample_run(tmp_path, {"asgd": list(make_sample_entries())[:200], "adacomp": []})
    shutil.rmtree(run.path / "adacomp")
    with (run.path / "asgd" / "events.jsonl").open("ab") as file:
        file.write(b'{"t":1')
    run = load(run.path)
    text = text_of(render(run))

    assert run.exit_code == 3
    for part in ("adacomp did not begin", "unfinished", "last line is cut", "not met"):
        assert part in text


def test_a_run_without_updates_or_journal_has_a_report(tmp_path, make_sample_run):
    """The emptiest folders give a document that says so."""
    run = make_sample_run(tmp_path, {"asgd": []})
    assert "nothing measured" in render(run)

    (run.path / "asgd" / "events.jsonl").unlink()
    shutil.copytree(run.path / "asgd", tmp_path / "keep")
    run.folder.scenario.unlink()
    run.folder.manifest.unlink()
    assert "unfinished" in text_of(render(load(run.path)))

    shutil.rmtree(run.path / "asgd")
    assert "No trial has begun" in text_of(render(load(run.path)))
