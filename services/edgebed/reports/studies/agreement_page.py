"""The page on whether runtimes agree: one HTML file that needs nothing else."""

import dataclasses
import shlex
from collections.abc import Mapping, Sequence

import numpy as np

from edgebed.journal.series import Series
from edgebed.reports.run.charts import staleness
from edgebed.reports.studies.agreement_tables import grids, legend, title_of, verdict_text
from edgebed.reports.studies.curves import BAND, curves_chart
from edgebed.reports.writing.drawing import Chart
from edgebed.reports.writing.html import escape, figures, items, page, section, table
from edgebed.studies.agreement.agreeing import Agreements
from edgebed.studies.agreement.agreement import Agreement
from edgebed.studies.arms import Arm

CLASSES = {"agrees": "good", "differs": "bad", "too few seeds to tell": "unknown"}


def render(agreements: Agreements, trials: Mapping[str, Mapping[str, Arm]]) -> str:
    """The page as one HTML document; `trials` has the runs of each trial by runtime."""
    first = next(iter(next(iter(trials.values())).values()))
    question = next(iter(first.members.values())).trial.plan.question
    header = (
        f"<header><p class=name>{escape(agreements.scenario)} in {escape(', '.join(agreements.runs))}</p>"
        f"<h1>{escape(question or agreements.scenario)}</h1>"
        f"<p class='badge {CLASSES[agreements.verdict]}'>{escape(verdict_text(agreements))}</p>"
        f"{items(agreements.notes, 'quiet')}</header>"
    )
    parts = [_trial(agreements, trial, trials[trial.trial]) for trial in agreements.trials]
    names = [name for by_seed in agreements.runs.values() for name in by_seed.values()]
    command = shlex.join(("edgebed", "agree", "--from", *names, "--runtimes", ",".join(agreements.runs)))
    repeat = section("How to repeat it", f"<pre>{escape(command)}</pre>")
    return page(f"{agreements.scenario}: {', '.join(agreements.runs)}", f"{header}{''.join(parts)}{repeat}")


def charts_of_agreements(agreements: Agreements, trials: Mapping[str, Mapping[str, Arm]]) -> list[Chart]:
    """All charts of the page."""
    return [chart for trial in agreements.trials for chart in _charts(trial, trials[trial.trial])]


def _charts(trial: Agreement, arms: Mapping[str, Arm]) -> tuple[Chart, ...]:
    series = {runtime: [arm.members[seed].trial.series for seed in trial.seeds] for runtime, arm in arms.items()}
    pooled = {runtime: _pooled(each) for runtime, each in series.items()}
    accuracy = curves_chart(f"{trial.trial}: accuracy against updates", series, "updates")
    return accuracy, dataclasses.replace(staleness(pooled), title=f"{trial.trial}: staleness of all seeds")


def _trial(agreements: Agreements, trial: Agreement, arms: Mapping[str, Arm]) -> str:
    tables = "".join(f"<h3>{escape(grid.title)}</h3>{table(grid.head, grid.rows)}" for grid in grids(trial))
    sentences = [BAND, *(f"{sentence}." for sentence in legend(trial))]
    shown = figures(_charts(trial, arms))
    return section(title_of(agreements, trial), f"{shown}{tables}{items(sentences, 'quiet')}")


def _pooled(each: Sequence[Series]) -> Series:
    """A series with the staleness of all seeds."""
    values = np.concatenate([series.updates.staleness for series in each])
    return dataclasses.replace(each[0], updates=dataclasses.replace(each[0].updates, staleness=values))
