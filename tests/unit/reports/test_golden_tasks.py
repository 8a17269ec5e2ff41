"""What pages say of a regression by client and of a language model, as files: report, terminal, comparison, plan."""

import io
import re
from pathlib import Path

import goldens
import pytest
from rich.console import Console
from told_tasks import VERSES, VOICES, of_error, of_perplexity, told_run

from edgebed.planning.planning import plan_trials
from edgebed.planning.warnings import HostCapacity
from edgebed.reports.plan.description import describe_plan
from edgebed.reports.plan.page import page_of
from edgebed.reports.run.brief import results_brief
from edgebed.reports.run.report import report_page
from edgebed.reports.studies.study import compared
from edgebed.reports.writing.markdown import to_markdown
from edgebed.reports.writing.terminal import show
from edgebed.scenario.load import load_scenario

FOLDER = Path(__file__).parent / "goldens"
OF_REPORT = ("head", "Expectations", "Trials", "Client by client")
NOT_OF_COMPARISON = ("The runs", "How to repeat it")
"""Sections with moments and versions."""


def errors(*pairs):
    """What was measured of a regression, each time with these errors on the test and on the validation part."""
    return [(of_error(test), of_error(validation)) for test, validation in pairs]


def voices(root):
    """Two seeds: asgd is best at its third evaluation, by validation; fedavg is better for all but one, and goes on."""
    values = {
        "asgd": errors((9, 9.2), (4.2, 4.1), (3.4, 3.9), (3.6, 4.0)),
        "fedavg": errors((9, 9.2), (6, 6.4), (4.4, 4.8), (3.2, 3.5)),
    }
    clients = {"asgd": ((3, 4, 2, 5, 8), (2, 3, 1.5, 4.8, 8)), "fedavg": ((3.1, 3, 1.5, 4, 6), ())}
    return [
        told_run(root, VOICES, values, clients=clients),
        told_run(root, VOICES, {**values, "asgd": values["asgd"][:3]}, clients=clients, seed=2),
    ]


def verses(root):
    """One seed: dgc has the lower perplexity and does not keep it."""
    perplexities = {"asgd": (9.0, 5.5, 4.6, 4.4), "dgc": (9.0, 6.0, 3.875, 7.0)}
    values = {name: [(of_perplexity(each), {}) for each in found] for name, found in perplexities.items()}
    return [told_run(root, VERSES, values)]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("name", "make", "scenario"), [("regression", voices, VOICES), ("language-model", verses, VERSES)]
)
def test_what_pages_say_of_a_task(tmp_path, monkeypatch, name, make, scenario):
    """By the name, unit and direction of its headline; by the part that chooses; client by client where it asks so."""
    monkeypatch.delenv("COLUMNS", raising=False)
    runs = make(tmp_path)
    study = compared(runs)
    plans = [
        describe_plan(each, host=HostCapacity(cpus=2, memory_bytes=2**33))
        for each in plan_trials(load_scenario(scenario))[:1]
    ]
    report, comparison = sections(to_markdown(report_page(runs[0]))), sections(to_markdown(study.view))
    texts = {
        "report": "".join(report.get(part, "") for part in OF_REPORT),
        "terminal": shown(results_brief(runs[0])),
        "comparison": "".join(text for part, text in comparison.items() if part not in NOT_OF_COMPARISON),
        "comparison in a terminal": shown(study.view.brief),
        "plan": to_markdown(page_of(scenario["name"], scenario["question"], plans)),
    }
    text = goldens.sections({title: each.splitlines() for title, each in texts.items()})
    goldens.compare(
        re.sub(r"\d+ \w+ 20\d\d, \d\d:\d\d UTC", "DATE", text).replace(str(tmp_path), "RUNS"), FOLDER / f"{name}.txt"
    )


def sections(page):
    """The sections of a page, by their titles."""
    head, *others = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    return {"head": head} | {each.partition("\n")[0].removeprefix("## "): each for each in others}


def shown(parts):
    """What a terminal shows."""
    stream = io.StringIO()
    show(parts, Console(file=stream, width=120))
    return stream.getvalue()
