"""The report of a run of programs, in a terminal and as a page: what came of them, how they ended, what they sent."""

from collections.abc import Iterator, Mapping

from edgebed.core.quantities import UNMEASURED, utc_text
from edgebed.core.runtimes import is_virtual
from edgebed.journal.outcome import tone_of
from edgebed.reports.programs import texts
from edgebed.reports.programs.charts import charts
from edgebed.reports.run import sections, trial_charts
from edgebed.reports.run.conditions_text import remarks_of
from edgebed.reports.writing.page import Figures, Notes, Page, Paragraph, Part, Section, Span, legend, shaded
from edgebed.running.results import Run


def programs_page(run: Run) -> Page:
    """The report as a page."""
    summary, trials = run.summary, list(run.programs.values())
    found: Mapping[str, Iterator[Part]] = {
        "Expectations": iter([Notes([line for each in summary.programs for line in texts.expectations(each)])]),
        "What the programs told": iter([Figures(list(charts(trials)))]),
        "Trials": iter([texts.numbers(summary.programs)]),
        "How the programs ended": iter([texts.ends(trials)]),
        "Nodes over time": iter(
            [Figures([trial_charts.timeline(trial.name, trial.plan, trial.series) for trial in trials])]
        ),
        "What was done to the nodes": sections.faults(trials),
        "Did the conditions hold?": sections.conditions(summary.programs),
        "Bytes between nodes": iter([texts.pairs(trials)]),
        "Events": sections.incidents(trials),
        "Settings": sections.settings(run),
        "How to repeat it": sections.repeat(run),
    }
    return Page(
        name=f"{summary.scenario} {run.path.name}",
        heading=summary.question or summary.scenario,
        status=Span(summary.badge, tone_of(summary.exit_code, summary.result, summary.conditions)),
        lead=[
            texts.results(summary.programs),
            Paragraph(summary.text),
            Notes(shaded(_warnings(run), "unknown")),
            legend(" · ".join(filter(None, _facts(run)))),
        ],
        parts=[Section(title, list(parts)) for title, parts in found.items()],
    )


def programs_brief(run: Run, *, verbose: bool = False) -> Iterator[Part]:
    """The badge, the table, what is said of each trial; the badge again, and where the report is."""
    summary = run.summary
    tone = tone_of(summary.exit_code, summary.result, summary.conditions)
    yield Paragraph((Span(f"{summary.scenario} ({summary.runtime}): ", "strong"), Span(summary.badge, tone)))
    yield texts.results(summary.programs)
    yield from map(Paragraph, shaded((f"! {warning}" for warning in _warnings(run)), "unknown"))
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


def _warnings(run: Run) -> list[str]:
    return [f"{trial.trial}: {warning}" for trial in run.summary.programs for warning in trial.warnings]


def _facts(run: Run) -> Iterator[str]:
    """How and when the run was made."""
    assert not is_virtual(run.summary.runtime), "virtual time runs no programs"
    yield f"{run.summary.runtime} runtime"
    yield f"seed {run.summary.seed}"
    yield utc_text(str(run.manifest.get("started", "")))
