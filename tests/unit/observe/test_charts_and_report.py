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
from edgebed.roles import records

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
def test_there_is_no_chart_of_nothing(name):
    """Empty axes would only puzzle."""
    _, draw = charts.CHARTS[name]

    assert draw({"asgd": Series.empty()}) == ""


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
        "edgebed run sample.yaml --runtime process --set fleet.edge.count=2",
        "97.50 % met",
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
    for part in ("adacomp did not begin", "unfinished", "last line is cut", "not measured"):
        assert part in text


def test_a_run_without_updates_or_journal_has_a_report(tmp_path, make_sample_run):
    """The emptiest folders give a document that says so."""
    run = make_sample_run(tmp_path, {"asgd": []})
    assert "<svg" not in render(run)

    (run.path / "asgd" / "events.jsonl").unlink()
    shutil.copytree(run.path / "asgd", tmp_path / "keep")
    run.folder.scenario.unlink()
    run.folder.manifest.unlink()
    assert "unfinished" in text_of(render(load(run.path)))

    shutil.rmtree(run.path / "asgd")
    assert "No trial has begun" in text_of(render(load(run.path)))


def test_the_report_has_the_last_words_of_a_node_that_died(tmp_path, make_sample_run, make_sample_entries):
    """The last twenty lines of its log, escaped, where to read more, and a warning at the top."""
    death = (5.0, "controller", records.Node(name="edge-0", state="died", reason="killed by SIGKILL"))
    run = make_sample_run(tmp_path, {"asgd": [*make_sample_entries(), death]})
    run.folder.trial("asgd").log("edge-0").write_text("".join(f"<line {n}>\n" for n in range(1, 31)))
    text = text_of(render(run))

    assert "<line 11> <line 12>" in text
    assert "<line 10>" not in text
    assert "See edgebed logs sample/0001 edge-0 --trial asgd" in text
    assert "asgd: 1 worker died, 0 missing" in text


def test_a_run_from_python_says_how_it_can_be_repeated(sample_run):
    """Without a file there is no command."""
    sample_run.folder.write_manifest(seed=7, runtime="process", command=["python", "-c", "x"], trials=["asgd"])

    assert "Run from Python; the resolved scenario is scenario.yaml" in text_of(render(load(sample_run.path)))
