"""A measure of which more is better, and its negative, of which less is: pages choose and order the same."""

import dataclasses

import numpy as np
import pytest
from evaluated import evaluations
from hypothesis import given
from hypothesis import strategies as st
from told_tasks import VOICES, told_run

from edgebed.core.measures.task import TaskMeasure
from edgebed.journal.columns.clients import spread_of
from edgebed.journal.overview import best_column, overview_of
from edgebed.journal.run_folder import write_atomically
from edgebed.reports.run.answer import answer_lines
from edgebed.reports.studies.study import compared
from edgebed.reports.writing.markdown import to_markdown
from edgebed.studies.measures import best_average, fall_of, reach

TRIALS, EVALUATIONS = ("asgd", "fedavg"), 5
MORE, LESS = (TaskMeasure("merit", better=better) for better in ("more", "less"))
VALUES = st.lists(st.integers(-300, 300).map(lambda value: value / 10), min_size=1, max_size=8)
SIDES = (("told_tasks:Merit", 1.0), ("told_tasks:Demerit", -1.0))


def drawn(seed):
    """A level, and values that scatter and mostly rise to it, by trial: of test, validation, clients and tuned ones."""
    rng = np.random.default_rng(seed)

    def rising():
        return np.round(np.sort(rng.normal(0, 8, EVALUATIONS)) + rng.normal(0, 3, EVALUATIONS), 2)

    found = {trial: (rising(), rising()) for trial in TRIALS}
    clients = {trial: (np.round(rng.normal(0, 5, 5), 2), np.round(rng.normal(1, 5, 5), 2)) for trial in TRIALS}
    return float(np.round(rng.normal(5, 3), 1)), found, clients


def runs_of(root, draw, objective, sign):
    """Two seeds of the run, with the values as they are or as their negatives."""
    level, found, clients = draw
    scenario = VOICES | {
        "task": VOICES["task"] | {"objective": objective},
        "stop": {"measure": "merit", "at": sign * level, "updates": 400},
        "expect": {"final_merit": (">= " if sign > 0 else "<= ") + f"{sign * level:g}"},
    }

    def of(value):
        return {"merit": sign * float(value)}

    values = {trial: [(of(a), of(b)) for a, b in zip(*each, strict=True)] for trial, each in found.items()}
    shifted = {trial: each[::-1] if trial == "asgd" else each for trial, each in values.items()}
    return [
        told_run(root, scenario, each, clients=clients, of=of, seed=seed) for seed, each in ((1, values), (2, shifted))
    ]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("undrawn")
def test_pages_choose_the_same_whichever_direction_is_better(tmp_path, seed):
    """The best version, who is first, in which order, who fell, what is met, who is worse, and what lists show."""
    draw = drawn(seed)
    chosen = []
    for number, (objective, sign) in enumerate(SIDES):
        runs = runs_of(tmp_path / f"{number}", draw, objective, sign)
        for run in runs:
            write_atomically(run.folder.summary, run.summary_json())
        study = compared(runs)
        best = overview_of(runs[0].folder).best
        chosen.append({
            "versions": [each.value("chosen_version") for run in runs for each in run.summary.trials],
            "best": [sign * each.best["merit"] for run in runs for each in run.summary.trials],
            "met": [each.met for run in runs for trial in run.summary.trials for each in trial.expectations],
            "lines": [unsigned(line) for run in runs for line in answer_lines(list(run.trials.values()))],
            "level": study.result.level and sign * study.result.level.value,
            "firsts": study.result.firsts,
            "notes": [unsigned(each) for each in study.result.notes],
            "clients": {
                name: (each.worse, each.better, [*each.gains.items()]) for name, each in study.result.clients.items()
            },
            "worst": {name: sign * each.spreads["worst_decile"].mean for name, each in study.result.clients.items()},
            "listed": (best.trial, unsigned(best_column([overview_of(runs[0].folder)])[1][0])),
            "heading": unsigned(to_markdown(study.view).splitlines()[4]),
        })  # fmt: skip
    more, less = chosen

    assert more == less


def unsigned(text):
    """A sentence without the signs of its numbers."""
    return text.replace("-", "")


@given(VALUES, st.integers(1, 4), st.integers(-300, 300))
def test_what_is_chosen_of_values_is_chosen_of_their_negatives(values, window, tenths):
    """The best of a moving average, when a level was reached, and what was not kept."""
    level = tenths / 10
    place = np.arange(len(values))
    blank = evaluations(100 * place, values, t=place * 1.0, final=place == len(values) - 1)
    more, less = (
        dataclasses.replace(blank, measures=(each,), measured={"merit": sign * np.array(values)})
        for each, sign in ((MORE, 1.0), (LESS, -1.0))
    )
    falls = fall_of(more, None), fall_of(less, None)

    assert best_average(more, window) == pytest.approx(-best_average(less, window))
    assert reach(more, level, window) == reach(less, -level, window)
    assert (falls[0] is None) == (falls[1] is None)
    assert all(MORE.is_reached(each, level) == LESS.is_reached(-each, -level) for each in values)
    assert MORE.best_place(values) == LESS.best_place([-each for each in values])
    assert sorted(values, key=MORE.rank) == [-each for each in sorted((-each for each in values), key=LESS.rank)]
    assert spread_of(np.array(values), MORE).worst_decile == pytest.approx(
        -spread_of(-np.array(values), LESS).worst_decile
    )
