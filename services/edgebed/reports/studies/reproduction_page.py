"""The page of a reproduction, made from results alone.

The page says what a reader needs to judge and to repeat the reproduction: the size of every row, the machine, versions,
seeds, how long each cell took, and the commands. It names no path, host or user of this machine, so that it can be
published as it is.
"""

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from edgebed.core.quantities import UNMEASURED, bytes_text, count_text, first_text, seconds_text, utc_text
from edgebed.core.runtimes import Runtime, is_virtual
from edgebed.reports.studies.curves import curves_chart
from edgebed.reports.writing.page import (
    Figures,
    Grid,
    Listing,
    Notes,
    Page,
    Paragraph,
    Part,
    Prose,
    Section,
    Shade,
    Span,
    Text,
    coded,
    codes,
)
from edgebed.studies.cells.result_cache import FILE, RunResult
from edgebed.studies.claims_text import (
    between_text,
    criterion_text,
    detectable_text,
    measured_text,
    size_text,
    value_text,
)
from edgebed.studies.papers.paper import ROW, Paper, Table, read_as
from edgebed.studies.reproduction.analytic_rows import FILE as COMPUTED_FILE
from edgebed.studies.reproduction.analytic_rows import ComputedRow
from edgebed.studies.reproduction.causes import MET, CauseResult
from edgebed.studies.reproduction.reproduction import CellResult, Curves, Reproduction, RowResult
from edgebed.studies.statistics import share_of

FINDINGS = """\
An interval is Student's at 95 % over seeds. How many seeds was stated for each table; with fewer nothing is found. The
tests of a table are corrected together, by Holm's procedure, so that chance alone gives one of twenty such tables a
finding. *Reproduced*: the interval confirms what the paper claims; where that is an effect of some size, it lies
between half of it and twice. *In direction*: the effect has the claimed sign, but is smaller or larger, or its size is
not told. *Differs*: the interval contradicts the claim, and the mean of as many further runs as the paper's is not to
be expected at its value. *Equal*: the difference that is claimed is none, or less than anybody minds, by a margin that
was stated before the runs. *Not distinguishable*: neither, because seeds differ too much, because not all of them got
there, or because evaluations lie too far apart to tell. *So far inside*, *so far outside*: it would confirm or
contradict, but the runs are shorter than the paper's, and what is measured still changes with their length: each
doubling of the updates that is still to come is taken to change it no more than the last one that was run did, and the
finding on all values that this leaves is not the same. *Consistent*: the row follows by arithmetic, or it compares
with what this project worked out itself; it counts as no confirmation. A size says how many updates were run, and
which share of the paper's that is where it is not all. *Detectable* is the difference from the claim, or from zero,
that the row's test would find in eight of ten studies with as many seeds that scatter as much. *Best* is the best of
as many seeds as the paper picks the best of, *final* the accuracy of the last models where the measure is that of the
best ones. A row *beside* another measures its claim in another way, and does not count again. A *cause* is a row in
which one thing is switched, and the share of the difference that it accounts for; it counts where less than half is
left on either side, so where the interval of the share lies between one half and one and a half, for runs as long as
the paper's, and where it does not contradict the paper's words."""

TEST_SET = """\
No images were set apart for validation: settings were tuned, runs stopped and best evaluations chosen by the test
images that the accuracies are of. Such accuracies are a little too high."""

NOT_RUN = "not run"
TOO_FEW = "seeds missing"
"""The text where a value is shown without a finding, since there are fewer seeds than were stated."""
SHADES: Mapping[str, Shade] = {
    "reproduced": "good",
    "in direction": "good",
    "differs": "bad",
    "equal": "bad",
    "not distinguishable": "unknown",
    "so far inside": "unknown",
    "so far outside": "unknown",
    TOO_FEW: "quiet",
    NOT_RUN: "quiet",
}
"""Shades of findings."""
COUNTED = {
    "reproduced": "reproduced",
    "in direction": "in direction alone",
    "differs": "differing",
    "equal": "equal where the paper has a difference",
    "not distinguishable": "not distinguishable",
    "so far inside": "so far inside",
    "so far outside": "so far outside",
    TOO_FEW: "with fewer seeds than were stated, without a finding",
    NOT_RUN: "not run",
}
"""Words for the findings that the first line counts, in its order."""
COARSE = 0.25
"""Share of a value without a claim that evaluations may leave open without a note."""
FINAL_DIFFERS = 0.015
"""Points by which the accuracy of the last models is another than that of the best."""
NAMED_MAX = 5
"""Number of runs, of those whose conditions did not hold, that are named."""

BYTES = """\
Bytes are those of the pushes, which go up; the models that come down are not among them."""

WHERE: dict[Runtime, str] = {"simulation": "simulation", "process": "processes", "docker": "containers"}


MEASURED = "measured (interval over seeds)"
HEAD = (
    "", "paper", MEASURED, "finding", "reproduced if", "detectable", "size", "row", "cells",
)  # fmt: skip
BRIEF = ("row", "", "paper", MEASURED, "finding", "size")
"""Columns for a terminal."""


def reproduction_page(paper: Paper, result: Reproduction, curves: Curves, chosen: Collection[str] = ()) -> Page:
    """The page with charts of `curves`; a terminal shows the `chosen` rows."""
    return Page(
        name=paper.name,
        heading=paper.citation,
        parts=[
            Prose(paper.text),
            Paragraph(_overview(result)),
            Paragraph(paper.stated),
            Prose(TEST_SET),
            Prose(" ".join(_said_of_data([run for cell in result.cells for run in cell.runs], result.computed))),
            Paragraph(BYTES if any(row.unit == "bytes" for rows in result.tables.values() for row in rows) else ""),
            *(_table(paper, table, result, curves) for table in paper.tables),
            Section("How to read a row", [Prose(FINDINGS)]),
            Section("Runs", [*_runs(paper, result.cells), *_computed(paper, result.computed)]),
            machine_section([run for cell in result.cells for run in cell.runs], result.computed),
            Section("How to repeat it", list(_repeat(paper, result))),
        ],
        brief=[_brief(title, [row for row in rows if row.row in chosen]) for title, rows in result.tables.items()],
    )


def finding_text(row: RowResult) -> str:
    """The finding, or why there is none."""
    if row.finding:
        return f"{row.finding}; size {row.size}" if row.size else row.finding
    if not row.was_run:
        return NOT_RUN
    return UNMEASURED if row.claim is None else TOO_FEW


def _overview(result: Reproduction) -> str:
    """Sentences on how many claims came to which finding, and for how many of those that differ a cause was shown."""
    found = [row for rows in result.tables.values() for row in rows]
    claimed = [row for row in found if row.is_primary]
    texts = [row.finding or finding_text(row) for row in claimed]
    words = [f"{texts.count(word)} {words}" for word, words in COUNTED.items() if word in texts]
    different = [row for row in claimed if row.is_different]
    causes = (
        f" For {sum(row.is_explained for row in different)} of {count_text(len(different), 'difference')} a cause of "
        "most of it was shown."
    )
    beside, alone = sum(row.claim is not None and not row.is_primary for row in found), len(found) - len(claimed)
    return (
        f"{count_text(len(texts), 'claim')}: {', '.join(words)}.{causes if different else ''} Further rows: "
        f"{beside} of the same claims in other ways or to check the measuring, {alone - beside} without a claim."
    )


def filled(text: str, rows: Mapping[str, RowResult]) -> str:
    """A text with the values of the rows that it names in braces."""

    def value(found: re.Match[str]) -> str:
        row = rows[found[1]]
        return UNMEASURED if row.measured is None else value_text(row.measured.mean, row.unit).removeprefix("+")

    return ROW.sub(value, text)


def _table(paper: Paper, table: Table, result: Reproduction, curves: Curves) -> Section:
    found = result.rows
    rows = [found[name] for name in table.rows]
    notes = {row.row: tuple(_notes(row, found)) for row in rows}
    lines = [
        f"{'; '.join(row.what for row in rows if note in notes[row.row])}: {note}"
        for note in dict.fromkeys(note for each in notes.values() for note in each)
    ]
    charts = [
        curves_chart(each.title, {cell: series for cell, series in drawn.items() if series}, each.over, paper.window)
        for each in table.curves
        if (drawn := curves.get(each.title))
    ]
    seeds = max((row.seeds_wanted for row in rows if row.needs_runs), default=0)
    stated = f"{count_text(seeds, 'seed')} a row, as stated." if seeds else ""
    return Section(
        table.title,
        [
            Prose(filled(table.text, found)),
            Paragraph(stated),
            rows_grid(rows),
            Notes(list(map(coded, lines))),
            *readings_parts(table, found),
            Figures(charts),
        ],
    )


def readings_parts(table: Table, rows: Mapping[str, RowResult]) -> Iterator[Part]:
    """The readings of a table, and each of its claims by each of them: one reading has to fit them all."""
    if not table.readings or not any(row.is_primary for row in table.rows.values()):
        return
    yield Paragraph(
        "Each reading is applied to all rows of the table. Those beside the first are judged row by row, at 95 %, with "
        "as many seeds as each row says."
    )
    yield Notes([(Span(each.name, "emphasis"), f": {filled(each.text, rows)}") for each in table.readings])
    by_reading = {
        reading.name: {
            name: rows.get(read_as(name, reading.name), rows[name])
            for name, row in table.rows.items()
            if row.is_primary
        }
        for reading in table.readings
    }
    yield Grid(
        ("", "paper", *by_reading),
        [
            (
                rows[name].what,
                rows[name].paper,
                _found_text(rows[name]),
                *(
                    "the same" if read[name] is rows[name] else _found_text(read[name])
                    for read in list(by_reading.values())[1:]
                ),
            )
            for name in next(iter(by_reading.values()))
        ],
    )
    changed = {
        reading: [each for name, each in read.items() if each is not rows[name]] for reading, read in by_reading.items()
    }
    yield Notes([_reading_text(name, list(read.values()), changed[name]) for name, read in by_reading.items()])


def _reading_text(name: str, rows: Sequence[RowResult], changed: Sequence[RowResult]) -> str:
    """How many claims of the table a reading meets, and how many of those that it changes."""
    text = f"{name}: {_met_text(rows)}"
    return f"{text}; of {count_text(len(changed), 'row')} that it changes {_met_text(changed)}" if changed else text


def _found_text(row: RowResult) -> str:
    """What was measured, and what was found."""
    return f"{_short_text(row)}: {finding_text(row)}"


def _short_text(row: RowResult) -> str:
    text = measured_text(row.measured, row.values, row.unit, of_seeds=row.needs_runs)
    if row.best is not None:
        text += f", best {value_text(row.best, row.unit)}"
    if row.final is not None and row.measured and abs(row.final - row.measured.mean) > FINAL_DIFFERS:
        text += f", final {value_text(row.final, '%')}"
    return text


def _met_text(rows: Sequence[RowResult]) -> str:
    """How many claims a reading meets, misses and leaves open."""
    met = sum(row.finding in MET for row in rows)
    missed = sum(row.is_different for row in rows)
    return f"{met} met, {missed} missed, {len(rows) - met - missed} open"


def _brief(title: str, rows: Sequence[RowResult]) -> Section:
    shown = rows_grid(rows).only(*BRIEF)
    named = [name or "what" for name in BRIEF]
    return Section(title, [replace(shown, head=named, dispensable=("size", "what"))])


def rows_grid(rows: Sequence[RowResult]) -> Grid:
    """Rows under HEAD."""
    return Grid(HEAD, list(map(_cells, rows)))


def _cells(row: RowResult) -> tuple[Text, ...]:
    """A row under HEAD."""
    finding = finding_text(row)
    was_sized = row.was_run and row.needs_runs
    size = f"{size_text(row.updates, row.share)}, {count_text(len(row.values), 'seed')}" if was_sized else UNMEASURED
    return (
        row.what,
        row.paper,
        _short_text(row),
        Span(finding, SHADES.get(row.finding or finding)),
        criterion_text(row.claim, row.unit),
        detectable_text(row.measured, row.unit) if row.is_tested else UNMEASURED,
        size,
        (Span(row.row, "code"), *((", beside ", Span(row.beside, "code")) if row.beside else ())),
        codes(row.cells) or "computed",
    )


def _notes(row: RowResult, rows: Mapping[str, RowResult]) -> Iterator[str]:
    """Notes on a row's comparison."""
    if row.note:
        yield filled(row.note, rows)
    if row.diverged:
        low, high = share_of(row.diverged, len(row.values))
        yield (
            f"A run diverged with {row.diverged} of {count_text(len(row.values), 'seed')} ({100 * low:.0f} to "
            f"{100 * high:.0f} % at 95 %)."
        )
    if row.by_itself:
        yield f"By its own interval: {row.by_itself}; the other tests of the table taken into account: {row.finding}."
    if row.cause:
        yield _cause_text(row.cause, rows)
    elif row.is_different:
        yield "Why it differs was not found."
    if row.measured and row.resolution > (0.0 if row.claim else COARSE * abs(row.measured.mean)):
        yield f"Accurate to {value_text(row.resolution, row.unit)}, as evaluations lie apart."
    if row.claim is not None and row.to_full_size is not None:
        bound = between_text(row.to_full_size, row.unit)
        yield f"With the paper's updates {bound}, by the last doubling of those here."


def _cause_text(cause: CauseResult, rows: Mapping[str, RowResult]) -> str:
    """A cause, the row that shows it, and the share of the difference that it accounts for."""
    shown = f" Row `{cause.row}`: {_short_text(rows[cause.row])}" if cause.row else ""
    if cause.share is not None:
        low, high = cause.share.ends
        between = f" ({100 * low:.0f} to {100 * high:.0f})" if cause.share.low is not None else ""
        shown += f", {100 * cause.share.mean:.0f} %{between} of the difference"
    perhaps = "" if cause.counts else f" It does not count: {cause.why_not}."
    return f"{'Perhaps' if perhaps else 'Why'}: {filled(cause.text, rows)}{shown}{'.' if shown else ''}{perhaps}"


def _runs(paper: Paper, cells: Sequence[CellResult]) -> Iterator[Part]:
    if not cells:
        yield Paragraph("Nothing has been run yet.")
        return
    how = (
        f"Each cell was run once for each seed, in virtual time{_live(cells)}; the time is that of the machine below. "
    )
    yield Paragraph((how, *results_sentence(paper.name)))
    yield Grid(
        ("cell", "updates", "where", "seeds", "time of each", "runs", "code"),
        [
            (
                Span(cell.cell, "code"),
                size_text((cell.updates, cell.updates), (cell.share, cell.share)),
                WHERE[cell.runtime] + "".join(f", {run.verdict}" for run in cell.runs if run.verdict),
                ", ".join(str(run.seed) for run in cell.runs),
                ", ".join(map(_wall_text, cell.runs)),
                ", ".join(f"{run.run} ({run.diverged})" if run.diverged else run.run for run in cell.runs),
                codes(dict.fromkeys(run.code for run in cell.runs)),
            )
            for cell in cells
        ],
    )
    yield from map(Paragraph, runs_sentences([run for cell in cells for run in cell.runs]))


def results_sentence(name: str) -> tuple[str | Span, ...]:
    """A sentence on the file of results beside the page of this name."""
    return (Span(FILE, file=f"{name}/{FILE}"), " has what each run was set to and every evaluation.")


def runs_sentences(found: Iterable[RunResult]) -> Iterator[str]:
    """Sentences on how many runs there are, how long they took and when; several cells may share one.

    Runs in several folders may have one name.
    """
    runs = list({(run.run, run.started, run.wall_s): run for run in found}.values())
    known = [run.wall_s for run in runs if run.wall_s is not None]
    at_least = "at least " if len(known) < len(runs) or any(run.resumed for run in runs) else ""
    first, last = min(run.started for run in runs), max(run.started for run in runs)
    yield (
        f"{count_text(len(runs), 'run')}, in all {at_least}{seconds_text(sum(known))}; the first was begun on "
        f"{utc_text(first)}, the last on {utc_text(last)}."
    )
    if any(run.resumed for run in runs):
        yield "Times with + are of resumed runs; time spent before the interruption may be missing."
    if any(run.torch_device for run in runs):
        yield "Times with * are of runs that another device than the CPU computed."
    if degraded := [run.run for run in runs if run.verdict == "degraded"]:
        yield (
            f"Conditions did not hold as asked in {count_text(len(degraded), 'run')} (see {FILE}): "
            f"{first_text(degraded, NAMED_MAX)}."
        )


def _computed(paper: Paper, rows: Sequence[ComputedRow]) -> Iterator[Part]:
    """A sentence on which values need no run, and what computed them."""
    if not rows:
        return
    makers = dict.fromkeys(
        (row.code, "".join(f", {name} {version}" for name, version in row.versions.items())) for row in rows
    )
    by = [piece for code, versions in makers for piece in ("; ", "code ", Span(code, "code"), versions)][1:]
    yield Paragraph((
        f"{count_text(len(rows), 'row')} without a run (",
        Span("computed", "emphasis"),
        f") took {seconds_text(sum(row.wall_s for row in rows))} (",
        *by,
        "). ",
        Span(COMPUTED_FILE, file=f"{paper.name}/{COMPUTED_FILE}"),
        " has their values.",
    ))  # fmt: skip


def _live(cells: Sequence[CellResult]) -> str:
    if all(is_virtual(cell.runtime) for cell in cells):
        return ""
    return ", or live where time is what is measured, with the verdict on whether the conditions held"


def machine_section(runs: Sequence[RunResult], computed: Sequence[ComputedRow] = ()) -> Section:
    """A section on the machines, the software and the data of the runs, and of the rows that need none."""
    machines = dict.fromkeys(
        f"{run.cpu}{f' ({run.instructions})' if run.instructions else ''}, {count_text(run.cores, 'core')}, "
        f"{bytes_text(run.memory_bytes)} of memory"
        f"{f'; torch computed on {run.torch_device}' if run.torch_device else ''}"
        for run in runs
    )
    software = dict.fromkeys(
        (", ".join(f"{name} {version}" for name, version in sorted(run.versions.items())) + "; code ",
         Span(run.code, "code"))
        for run in runs
    )  # fmt: skip
    fingerprint = (Span("code", "code"), " is the fingerprint of edgebed's sources that each run's manifest has.")
    said = list(_said_of_data(runs, computed))
    return Section(
        "Machine, software and data",
        [Notes([*machines, *software, *map(coded, said)]), Paragraph(fingerprint if runs else "")],
    )


def _said_of_data(runs: Sequence[RunResult], computed: Sequence[ComputedRow]) -> Iterator[str]:
    """A sentence on each data set of which something must be said, and on how many runs and rows have read it."""
    once = {(run.run, run.started): run for run in runs}.values()
    of_runs, of_rows = (Counter(said for each in found for said in each.data.items()) for found in (once, computed))
    for said in of_runs | of_rows:
        counted = {"run": of_runs[said], "computed row": of_rows[said]}
        read_by = " and ".join(count_text(count, word) for word, count in counted.items() if count)
        yield f"Data `{said[0]}` ({read_by}): {said[1]}."


def _repeat(paper: Paper, result: Reproduction) -> Iterator[Part]:
    is_shipped = result.paper == paper.name
    if is_shipped:
        yield Paragraph(
            coded(f"What the paper states beside, and why it has no row: `scenarios/{paper.name}/README.md`.")
        )
    place = "In a checkout of edgebed" if is_shipped else f"In the folder that has `scenarios/{paper.name}`"
    yield Paragraph(coded(f"{place}; each command resumes where it was interrupted, and runs nothing twice:"))
    yield Listing(_reproduce_commands(paper, result), "sh")
    if result.cells:
        yield Paragraph("Or cell by cell; another seed and another number of updates are set the same way:")
        yield Listing(list(dict.fromkeys(cell.command for cell in result.cells)), "sh")


def _reproduce_commands(paper: Paper, result: Reproduction) -> list[str]:
    """Commands that measure the rows again at the same sizes; the rows of a size that the paper declares need none."""
    declared: list[str] = []
    others: dict[tuple[float, int], list[str]] = {}
    for row in (row for rows in result.tables.values() for row in rows):
        if not row.needs_runs:
            declared.append(row.row)
            continue
        cells = [paper.cells[cell] for cell in paper.rows[row.row].cells]
        shares = (min(cell.scale for cell in cells), max(cell.scale for cell in cells))
        if (shares, paper.seeds[row.row]) == (row.share, row.seeds_wanted):
            declared.append(row.row)
        else:
            others.setdefault((row.share[0], row.seeds_wanted), []).append(row.row)
    base = ["edgebed", "reproduce", result.paper, "--resume"]
    commands = [base if not others else [*base, *row_options(declared)]] if declared else []
    for (scale, seeds), rows in others.items():
        chosen = [] if len(rows) == len(paper.rows) else row_options(rows)
        commands.append([*base, *chosen, "--scale", f"{scale:g}", "--seeds", str(seeds)])
    return [shlex.join(words) for words in commands]


def row_options(rows: Iterable[str]) -> list[str]:
    """The words of a command that choose these rows."""
    return [word for row in rows for word in ("--row", row)]


def _wall_text(run: RunResult) -> str:
    return f"{seconds_text(run.wall_s)}{'+' if run.resumed else ''}{'*' if run.torch_device else ''}"
