"""The report of a run of programs: what came of them, how they ended, what they sent."""

from collections.abc import Iterator, Mapping

from edgebed.core.quantities import utc_text
from edgebed.journal.outcome import tone_of
from edgebed.reports.programs import texts
from edgebed.reports.programs.brief import warnings
from edgebed.reports.programs.charts import charts
from edgebed.reports.run import sections, trial_charts
from edgebed.reports.writing.page import Figures, Notes, Page, Paragraph, Part, Section, Span, legend, shaded
from edgebed.running.results import Run


def programs_page(run: Run) -> Page:
    """The report as a page."""
    summary, trials = run.summary, list(run.programs.values())
    found: Mapping[str, Iterator[Part]] = {
        "Expectations": iter([Notes([line for each in summary.programs for line in texts.expectations(each)])]),
        "What the programs told": iter([Figures(list(charts(run.programs)))]),
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
            Notes(shaded(warnings(run), "unknown")),
            legend(" · ".join(filter(None, _facts(run)))),
        ],
        parts=[Section(title, list(parts)) for title, parts in found.items()],
    )


def _facts(run: Run) -> Iterator[str]:
    """How and when the run was made."""
    yield f"{run.summary.runtime} runtime"
    yield f"seed {run.summary.seed}"
    yield utc_text(str(run.manifest.get("started", "")))
