"""The page of a sweep whose nodes run programs of the user's, made from its result alone."""

from collections.abc import Iterator

import msgspec

from edgebed.core.quantities import UNMEASURED, count_text
from edgebed.reports.programs import texts
from edgebed.reports.run.sections import conditions
from edgebed.reports.writing.page import Grid, Listing, Page, Paragraph, Section, Shade, Span, Text
from edgebed.studies.sweep.points import axes_of
from edgebed.studies.sweep.programs import ProgramSweep

SHADES: dict[str, Shade] = {"trusted": "good", "degraded": "bad", "met": "good", "missed": "bad"}


def program_sweep_page(result: ProgramSweep, command: str) -> Page:
    """The page; in a terminal, what each variant took at each point, and which expectations it missed."""
    summaries = [
        msgspec.structs.replace(each.summary, trial=each.point) for each in result.points if each.summary is not None
    ]
    grid = _grid(result)
    missed = [Paragraph(line) for each in summaries if not each.met for line in texts.expectations(each)]
    there = f"{len(summaries)} of {count_text(len(result.points), 'run')} in the {result.runtime} runtime."
    return Page(
        name=result.scenario,
        heading=result.question,
        lead=[Paragraph(there)],
        parts=[
            Section("What each took", [grid, *missed]),
            Section("Whether the conditions held", list(conditions(summaries))),
            Section("How to repeat it", [Listing([f"{command} --resume"], "sh")]),
        ],
        brief=[grid, *missed, Paragraph(there)],
    )  # fmt: skip


def _grid(result: ProgramSweep) -> Grid:
    """A row for each run: where it was, what it took and told, and whether that holds."""
    labels = (*(axis.label for axis in axes_of(result.axes)), *(["seed"] if result.seeds > 1 else []))
    told = texts.results([each.summary for each in result.points if each.summary is not None])
    came = iter(told.rows)

    def cells() -> Iterator[tuple[Text, ...]]:
        for each in result.points:
            place = (each.variant, *each.values.values(), str(each.seed))[: 1 + len(labels)]
            if each.summary is None:
                yield (*place, *[UNMEASURED] * (len(told.head) + 2))
                continue
            is_met = ("met" if each.summary.met else "missed") if each.summary.expectations else UNMEASURED
            expected = is_met if each.summary.ran_to_end else each.summary.outcome
            verdict = each.summary.fidelity.verdict if each.summary.fidelity else UNMEASURED
            spans = [Span(text, SHADES.get(text, "unknown")) for text in (expected, verdict)]
            yield (*place, *next(came)[1:], *spans, each.run)

    return Grid(("variant", *labels, *told.head[1:], "expected", "conditions", "run"), list(cells()))
