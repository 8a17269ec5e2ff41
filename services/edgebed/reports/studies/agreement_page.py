"""The page on whether runtimes agree."""

import dataclasses
import shlex
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from edgebed.journal.series import Series
from edgebed.reports.run.charts import staleness
from edgebed.reports.studies.agreement_tables import grids, how_to_read, title_of, verdict_text
from edgebed.reports.studies.curves import BAND, curves_chart
from edgebed.reports.writing.figures import Chart
from edgebed.reports.writing.page import Figures, Listing, Notes, Page, Paragraph, Part, Section, Shade, Span, shaded
from edgebed.studies.agreement.agreement import Agreement, Verdict
from edgebed.studies.agreement.run_agreement import Agreements
from edgebed.studies.arms import Arm

SHADES: Mapping[Verdict, Shade] = {"agrees": "good", "differs": "bad", "too few seeds to tell": "unknown"}


def agreement_page(agreements: Agreements, trials: Mapping[str, Mapping[str, Arm]]) -> Page:
    """The page; `trials` has the runs of each trial by runtime."""
    first = next(iter(next(iter(trials.values())).values()))
    question = next(iter(first.members.values())).trial.plan.question
    names = [name for by_seed in agreements.runs.values() for name in by_seed.values()]
    command = shlex.join(("edgebed", "agree", "--from", *names, "--runtimes", ",".join(agreements.runs)))
    return Page(
        name=f"{agreements.scenario} in {', '.join(agreements.runs)}",
        heading=question or agreements.scenario,
        status=status_of(agreements),
        lead=[Notes(shaded(agreements.notes, "quiet"))],
        parts=[
            *(
                Section(
                    title_of(agreements, trial), [Figures(_charts(trial, trials[trial.trial])), *_parts(trial, BAND)]
                )
                for trial in agreements.trials
            ),
            Section("How to repeat it", [Listing([command])]),
        ],
        brief=list(agreement_brief(agreements)),
    )


def agreement_brief(agreements: Agreements) -> Iterator[Part]:
    """The tables of each trial, notes, the verdict."""
    for trial in agreements.trials:
        yield Section(title_of(agreements, trial), _parts(trial))
    yield Notes(shaded((f"note: {note}" for note in agreements.notes), "quiet"))
    yield Paragraph(status_of(agreements))


def status_of(agreements: Agreements) -> Span:
    """The verdict."""
    return Span(verdict_text(agreements), SHADES[agreements.verdict])


def _parts(trial: Agreement, *sentences: str) -> list[Part]:
    """Tables of a trial, and how to read them, after these sentences."""
    tables = [Section(title, [grid]) for title, grid in grids(trial).items()]
    return [*tables, Notes(shaded((*sentences, *(f"{sentence}." for sentence in how_to_read(trial))), "quiet"))]


def _charts(trial: Agreement, arms: Mapping[str, Arm]) -> tuple[Chart, ...]:
    series = {runtime: [arm.members[seed].trial.series for seed in trial.seeds] for runtime, arm in arms.items()}
    pooled = {runtime: _pooled(each) for runtime, each in series.items()}
    curves = curves_chart(f"{trial.trial}: {trial.headline.words} against updates", series, "updates")
    return curves, dataclasses.replace(staleness(pooled), title=f"{trial.trial}: staleness of all seeds")


def _pooled(each: Sequence[Series]) -> Series:
    """A series with the staleness of all seeds."""
    values = np.concatenate([series.updates.staleness for series in each])
    return dataclasses.replace(each[0], updates=dataclasses.replace(each[0].updates, staleness=values))
