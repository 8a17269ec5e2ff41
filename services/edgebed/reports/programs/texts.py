"""Trials of programs in words and tables: numbers, ends, bytes between nodes, expectations."""

from collections.abc import Iterable, Iterator, Sequence

from edgebed.core.measures.trial import program_measure, program_measures
from edgebed.core.quantities import UNMEASURED, bytes_text, ms_text, number_text, seconds_text
from edgebed.journal.programs.summary import ProgramSummary
from edgebed.reports.run.expectation_text import expectation_line
from edgebed.reports.writing.page import Grid, Span
from edgebed.running.results import ProgramTrial

END_HEAD = ("trial", "node", "how its program ended", "incarnation")
PAIR_HEAD = ("trial", "from", "to", "bytes acknowledged", "connections", "smallest round trip")
PAIRS_MAX = 200
"""Rows of the table of pairs."""


def numbers(trials: Sequence[ProgramSummary]) -> Grid:
    """All numbers that any trial has, a row each, with a column for each trial that began."""
    names = dict.fromkeys(name for trial in trials for name in trial.measures)
    rows = [("outcome", *(f"{trial.outcome}: {trial.reason}" for trial in trials))]
    for measure in program_measures(names).values():
        texts = [measure.text(trial.value(measure.name)) for trial in trials]
        if measure.words and any(text != UNMEASURED for text in texts):
            rows.append((measure.words, *texts))
    return Grid(("", *(trial.trial for trial in trials)), rows)


def results(trials: Sequence[ProgramSummary]) -> Grid:
    """What there is to see at once of each trial."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.measures))
    rows = [
        (
            trial.trial,
            *(number_text(trial.final.get(name)) for name in names),
            UNMEASURED if trial.time_s is None else seconds_text(trial.time_s),
            bytes_text(trial.traffic_bytes),
            UNMEASURED if trial.exit_code is None else str(trial.exit_code),
            str(trial.restarts),
        )
        for trial in trials
    ]
    return Grid(("trial", *names, "time", "sent", "exit code", "restarts"), rows)


def ends(trials: Iterable[ProgramTrial]) -> Grid:
    """How the last life of each program ended."""
    rows = [
        (trial.name, each.name, each.text, str(each.incarnation)) for trial in trials for each in trial.summary.exits
    ]
    return Grid(END_HEAD, rows)


def pairs(trials: Iterable[ProgramTrial]) -> Grid:
    """What nodes sent each other over TCP, by the sender's own account."""
    rows = [
        (
            trial.name,
            node,
            peer,
            bytes_text(seen.acked_bytes),
            f"{seen.count:,}",
            UNMEASURED if seen.round_trip_s is None else ms_text(seen.round_trip_s),
        )
        for trial in trials
        for (node, peer), seen in sorted(trial.series.programs.connections.items())
    ]
    return Grid(PAIR_HEAD, rows[:PAIRS_MAX])


def expectations(trial: ProgramSummary) -> Iterator[Span]:
    """A line on each expectation, and whether it was met."""
    for each in trial.expectations:
        measure = program_measure(each.measure, trial.measures)
        yield expectation_line(trial, each, *measure.beside(each.measured, each.bound))
