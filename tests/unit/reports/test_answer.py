"""What a report says first: what each trial took to the accuracy that all reached, or what holds shards up."""

import msgspec
import pytest
from finished_runs import RISING, SCENARIO, finished_run
from sample_runs import sample_entries, write_sample_run

from edgebed.reports.run.answer import answer_lines
from edgebed.reports.run.report import report_page
from edgebed.reports.writing.html import to_html
from edgebed.running.results import load

SLOW = (0.1, 0.5, 0.9, 0.95)
STUCK = (0.1, 0.1, 0.11, 0.1)


def answer(tmp_path, accuracies, **scenario):
    """The sentences of a run that measured these accuracies."""
    run = finished_run(tmp_path, accuracies, scenario=SCENARIO | scenario)
    return answer_lines(list(run.trials.values()))


def test_the_answer_tells_what_each_took_to_the_highest_accuracy_that_all_reached(tmp_path):
    """Bytes up, bytes in both directions, and time; the cheapest first, though it comes second in the run."""
    costs, best = answer(tmp_path, {"asgd": RISING, "adacomp": RISING})

    assert costs == "To 98 %: adacomp 3 kB up, 12 kB in all, 3.00 s; asgd 30 kB up, 39 kB in all, 3.00 s."
    assert best == "Best accuracy: asgd 98.00 %, adacomp 98.00 %."


def test_an_accuracy_that_the_scenario_expects_is_the_one_that_is_told(tmp_path):
    """As long as all reached it; else the highest that all did."""
    expected = {"expect": {"best_accuracy": ">= 0.9"}}

    assert answer(tmp_path, {"asgd": RISING, "adacomp": SLOW}, **expected)[0].startswith("To 90 %: adacomp 2 kB up")
    expected = {"expect": {"best_accuracy": ">= 0.97"}}
    assert answer(tmp_path, {"asgd": RISING, "adacomp": SLOW}, **expected)[0].startswith("To 95 %: ")


def test_a_trial_that_learnt_nothing_does_not_decide_to_what_accuracy_is_told(tmp_path):
    """Costs to 10 % would say nothing of the other one."""
    costs, best = answer(tmp_path, {"asgd": RISING, "adacomp": STUCK})

    assert costs == "To 98 %: asgd 30 kB up, 39 kB in all, 3.00 s. adacomp did not reach it."
    assert best == "Best accuracy: asgd 98.00 %, adacomp 11.00 %."


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("trials", [{}, {"asgd": []}])
def test_a_run_without_an_evaluation_has_no_answer(tmp_path, trials):
    """And a page all the same."""
    run = write_sample_run(tmp_path, trials)

    assert answer_lines(list(run.trials.values())) == ()
    assert "To " not in to_html(report_page(run)).split("</header>")[0].split("<h1>")[1]


def test_badge_answer_and_chart_come_before_everything_else(sample_run):
    """In this order; then what was expected, further charts, and the numbers."""
    document = to_html(report_page(sample_run))
    places = [
        document.index(part)
        for part in (
            'class="badge', "<strong>To 90 %: adacomp", "Accuracy against bytes up and down</figcaption>", "</header>",
            "<h2>Expectations</h2>", "<h2>Charts</h2>", "<h2>Trials</h2>", "<h2>Does the accounting close?</h2>",
        )
    ]  # fmt: skip

    assert places == sorted(places)


@pytest.mark.usefixtures("undrawn")
def test_rows_and_columns_without_a_value_are_left_out(tmp_path):
    """Nothing died, nothing was started, no link was limited, as the trial was simulated."""
    entries = list(sample_entries())
    begin = msgspec.structs.replace(entries[0][2], runtime="simulation")
    run = write_sample_run(tmp_path, {"asgd": [(0.0, "controller", begin), *entries[1:]]})
    text = to_html(report_page(load(run.path)))

    for absent in ("nodes that died", "nodes that never came", "from the launch", "memory: most"):
        assert absent not in text, absent
    assert "values in a push, mean" in text
    assert "≥ 90.00 %" in text
    assert "best_accuracy" not in text
    assert "final accuracy" in text


@pytest.mark.usefixtures("undrawn")
def test_conditions_that_are_the_same_in_all_trials_are_told_once(sample_run):
    """Under the names of both."""
    section = to_html(report_page(sample_run)).split("<h2>Did the conditions hold?</h2>")[1].split("<h2>")[0]

    assert "<h3>asgd, adacomp</h3>" in section
    assert section.count("<h3>") == 1
