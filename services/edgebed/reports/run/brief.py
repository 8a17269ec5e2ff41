"""What a terminal shows of a run: its trials, their headline against traffic, what held and what did not; its links."""

from collections.abc import Iterable, Iterator

from edgebed.core.measures.trial import compared_texts
from edgebed.core.quantities import UNMEASURED, updates_text
from edgebed.journal.notes import gathered_notes
from edgebed.journal.outcome import outcome_text, tone_of
from edgebed.journal.start_up import start_up_lines
from edgebed.journal.summary import Expectation, TrialSummary
from edgebed.reports.programs.brief import programs_brief
from edgebed.reports.run.answer import answer_lines
from edgebed.reports.run.clients_line import client_line
from edgebed.reports.run.conditions_text import LINK_LEGEND, link_grid, remarks_of
from edgebed.reports.run.expectation_text import expectation_line
from edgebed.reports.run.faults_text import accounting_line, faults_line, links_changed
from edgebed.reports.run.shards_text import shards_text
from edgebed.reports.run.text_chart_of_run import headline_chart
from edgebed.reports.run.traffic_text import traffic_lines
from edgebed.reports.run.trial_measures import most_frequent_of, results_grid
from edgebed.reports.writing.page import Notes, Paragraph, Part, Section, Shade, Sketch, Span, legend, shaded
from edgebed.running.results import Run, Trial

NOTES_MAX = 5
"""Number of notes that are shown unless all are asked for: what held links and caps, and what had no effect."""


def results_brief(run: Run, *, verbose: bool = False) -> Iterator[Part]:
    """The badge, the table, the chart, what is said of each trial; the badge again, and where the report is.

    `verbose`: with every remark, traffic, start-up and all notes, which the report has as well.
    """
    if run.programs:
        yield from programs_brief(run, verbose=verbose)
        return
    summary = run.summary
    tone = tone_of(summary.exit_code, summary.result, summary.conditions)
    yield Paragraph((Span(f"{summary.scenario} ({summary.runtime}): ", "strong"), Span(summary.badge, tone)))
    yield results_grid(summary)
    yield legend(updates_text({trial.trial: trial.examples_per_update for trial in summary.trials}))
    series = {name: trial.series for name, trial in run.trials.items()}
    shares = most_frequent_of(summary.trials)
    yield Sketch(lambda columns, colours: headline_chart(series, shares, columns=columns, colours=colours))
    yield from map(Paragraph, map(_broken, answer_lines(list(run.trials.values()))))
    by_client = {name: line for name, trial in run.trials.items() if (line := client_line(trial))}
    yield from (Paragraph(f"{name}: {line}") for name, line in by_client.items())
    if not verbose:
        yield from (legend(f"  {remark}") for remark in _modelled(summary.trials))
    for each in summary.trials:
        yield from map(Paragraph, _judgements(each, verbose=verbose))
    for name, trial in run.trials.items():
        yield from (legend(f"{name}: {line}") for line in _figures(trial, verbose=verbose))
    if summary.not_begun:
        yield legend(f"{UNMEASURED} did not begin: {', '.join(summary.not_begun)}")
    names = {node.node for trial in run.trials.values() for node in trial.plan.nodes}
    notes = [f"note: {note}" for note in gathered_notes(summary.notes, names)]
    if not verbose and len(notes) > NOTES_MAX:
        notes[NOTES_MAX:] = [f"{len(notes) - NOTES_MAX} more notes with --verbose"]
    yield Notes(shaded(notes, "quiet"))
    yield Paragraph(Span(f"{summary.badge}: {summary.text}", tone))
    yield Paragraph(f"report: {run.folder.report}" if run.folder.report.exists() else f"run: {run.path}")


def links_brief(run: Run) -> Iterator[Part]:
    """Each link as asked, as held and as measured."""
    for name, trial in run.trials.items():
        fidelity = trial.summary.fidelity
        grid = link_grid(fidelity.nodes if fidelity else ())
        if grid.rows:
            judged = map(Paragraph, _judgements(trial.summary, verbose=True))
            changes = map(Paragraph, links_changed(trial.series.faults))
            yield Section(name, [grid, legend(LINK_LEGEND), *changes, *judged])
        elif any(node.link.shaped for node in trial.plan.nodes):
            yield Paragraph(f"{name}: nothing is known of its links: it never trained, or its journal is empty")
        else:
            yield Paragraph(f"{name}: no link was asked for")


def _broken(line: str) -> str:
    """A sentence of the answer with a line for each trial: what it took to a level begins below the level."""
    broken = line.replace("; ", ";\n  ")
    return broken.replace(": ", ":\n  ", 1) if line.startswith("To ") else broken


def _modelled(trials: Iterable[TrialSummary]) -> Iterator[str]:
    """What the figures of a simulation rest on, once for all trials that say the same."""
    yield from dict.fromkeys(
        remark
        for trial in trials
        if trial.fidelity and trial.fidelity.verdict == "modelled"
        for remark in remarks_of(trial)
    )


def _figures(trial: Trial, *, verbose: bool) -> Iterator[str]:
    """Lines on what was done to nodes and what became of the updates; if verbose, on traffic and start-up."""
    summary = trial.summary
    yield from filter(None, (faults_line(summary, trial.series.faults), accounting_line(summary)))
    if not verbose:
        return
    yield from traffic_lines(summary)
    yield from filter(None, (shards_text(summary),))
    if summary.start_up:
        yield from start_up_lines(summary.start_up)


def _judgements(trial: TrialSummary, *, verbose: bool) -> Iterator[Span]:
    """Lines about the outcome where it is not what was asked for, what is suspicious, the verdict, the expectations.

    A trial that did not come to its end is not judged. The badge has the verdict: a line of its own it has where
    something is wrong, where it was expected, or if `verbose`, with the remarks on it.
    """
    if trial.outcome != "completed":
        mark = UNMEASURED if trial.outcome == "running" else "✗"
        yield Span(f"{mark} {trial.trial}: {outcome_text(trial)}", "bad" if trial.ran_to_end else "unknown")
    yield from shaded((f"! {trial.trial}: {warning}" for warning in trial.warnings), "unknown")
    if trial.fidelity:
        held: dict[str, tuple[str, Shade | None]] = {"trusted": ("✓", "good"), "modelled": (UNMEASURED, None)}
        mark, shade = held.get(trial.fidelity.verdict, ("!", "unknown"))
        expected = ", as expected" if any(_is_met_verdict(each) for each in trial.expectations) else ""
        is_wrong = trial.fidelity.verdict not in held
        if verbose or is_wrong or any(each.measure == "verdict" for each in trial.expectations):
            for line in trial.fidelity.lines:
                yield Span(f"{mark} {trial.trial}: {line}{expected}", shade)
        if verbose:
            yield from shaded((f"  {trial.trial}: {remark}" for remark in remarks_of(trial)), "quiet")
    for each in trial.expectations:
        if each.measure != "verdict" or each.met is False:
            measured, bound = compared_texts(each.measure, each.measured, each.bound, trial.measures)
            yield expectation_line(trial, each, measured, bound)


def _is_met_verdict(expectation: Expectation) -> bool:
    """Whether the expectation is a met verdict, which the line of the verdict itself shows."""
    return expectation.measure == "verdict" and bool(expectation.met)
