"""A run of programs in a terminal: the badge, a table, what is said of each trial."""

from collections.abc import Iterator

from edgebed.core.quantities import UNMEASURED
from edgebed.journal.outcome import tone_of
from edgebed.reports.programs import texts
from edgebed.reports.run.conditions_text import remarks_of
from edgebed.reports.writing.page import Notes, Paragraph, Part, Span, legend, shaded
from edgebed.running.results import Run


def programs_brief(run: Run, *, verbose: bool = False) -> Iterator[Part]:
    """The badge, the table, what is said of each trial; the badge again, and where the report is."""
    summary = run.summary
    tone = tone_of(summary.exit_code, summary.result, summary.conditions)
    yield Paragraph((Span(f"{summary.scenario} ({summary.runtime}): ", "strong"), Span(summary.badge, tone)))
    yield texts.results(summary.programs)
    yield from map(Paragraph, shaded((f"! {warning}" for warning in warnings(run)), "unknown"))
    for each in summary.programs:
        if not each.ran_to_end:
            yield Paragraph(Span(f"✗ {each.trial}: {each.outcome}: {each.reason}", "unknown"))
        if each.fidelity and (verbose or each.fidelity.verdict != "trusted"):
            yield from (Paragraph(Span(f"! {each.trial}: {line}", "unknown")) for line in each.fidelity.lines)
        if verbose:
            yield from map(Paragraph, shaded((f"  {each.trial}: {remark}" for remark in remarks_of(each)), "quiet"))
        yield from map(Paragraph, texts.expectations(each))
    if summary.not_begun:
        yield legend(f"{UNMEASURED} did not begin: {', '.join(summary.not_begun)}")
    yield Notes(shaded([f"note: {note}" for note in summary.notes], "quiet"))
    yield Paragraph(Span(f"{summary.badge}: {summary.text}", tone))
    yield Paragraph(f"report: {run.folder.report}" if run.folder.report.exists() else f"run: {run.path}")


def warnings(run: Run) -> list[str]:
    """What a reader must know of each trial."""
    return [f"{trial.trial}: {warning}" for trial in run.summary.programs for warning in trial.warnings]
