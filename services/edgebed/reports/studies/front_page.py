"""The front page of all reproductions, and the appendix for those who check them; made from the papers' results alone.

The front page says what each paper claims, what became of it, and why it differs: a sentence, a table and a chart for
each claim. The appendix has the same claims with expected intervals, machine time and commands.
"""

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from edgebed.core.quantities import UNMEASURED, count_text, seconds_text
from edgebed.reports.studies.reproduction_page import MEASURED, filled, row_options, rows_grid
from edgebed.reports.writing.page import Figures, Grid, Listing, Page, Paragraph, Part, Prose, Section, Span
from edgebed.studies.cells.result_cache import RunResult
from edgebed.studies.papers.paper import Headline, Paper
from edgebed.studies.reproduction.causes import MET
from edgebed.studies.reproduction.reproduction import Reproduction, RowResult

FRONT = "index"
ARTIFACT = "artifact"
INTRODUCTION = """\
Five publications on training neural networks at the edge, run again: in virtual time, or in containers with capped
processors and shaped links where time is what is measured. Each claim is counted once, by one row.

- *As published*: reproduced in the paper's own setting and length. *Other setting*: reproduced with another network
  than the paper's, which it may not name, with fewer images, or with fewer updates, where longer training is not
  expected to change the finding.
- *In direction*: an effect of the claimed sign, and of another size or one that is not told.
- *Another reading*: missed by the first reading of what the paper leaves open, and met by another reading, encoding or
  setting; no reading has to fit its table for that, and by chance it happens more often than one in twenty times.
- *Not*: missed. *Explained* are those of the last two for which a row that switches one thing accounts for more than
  half of the difference.
- *Not decided*: seeds are missing of those that were stated, runs are too short (*so far inside*, *so far outside*), or
  the interval lies across the border (*not distinguishable*).

Each paper's page has all rows, sizes, runs and commands, and says how to read a row."""
REQUIREMENTS = """\
**Hardware.** Two cores and 8 GB of memory, no GPU; times below are of one core of the machine that the pages name,
unless they name another device. **Software.** Linux, Python 3.11 or newer, and Docker for what is run in containers;
`scripts/setup` makes the environment. **Data.** MNIST and CIFAR-10 are fetched on first use, or read from
`EDGEBED_DATA_DIR`. **Randomness.** A simulated run repeats to the bit with the same versions on processors with the
same vector instructions, such as AVX2; others round gradients in another way, and such runs, like live ones, move
within the intervals."""
TYRES = """\
Ten minutes. The first command checks the installation and trains for seconds. The second makes one run of a row anew,
and the third evaluates the repository's line of the same run: both must print one value. The fourth evaluates all lines
of that paper and must leave its page as the repository has it, by `git diff docs/results`."""
TYRES_COMMANDS = (
    "scripts/demo",
    "edgebed reproduce tong2016 --row bp-1000 --seeds 1",
    "edgebed reproduce tong2016 --row bp-1000 --seeds 1 --no-run --output docs/results",
    "edgebed reproduce tong2016 --no-run --output docs/results",
)
FRONT_HEAD = (
    "paper", "claims", "as published", "other setting", "in direction", "another reading", "not", "not decided",
    "explained",
)  # fmt: skip
WAYS = FRONT_HEAD[2:-1]
CHECK_HEAD = ("", "expected", "finding")


class Reproduced(NamedTuple):
    """A paper and what came of it."""

    paper: Paper
    result: Reproduction
    page: Page


def front_page(reproduced: Sequence[Reproduced], others: Sequence[str] = ()) -> Page:
    """The front page; `others` are names of further pages in its folder."""
    return Page(
        name=FRONT,
        title="Results",
        heading="What five publications claim, and what became of it",
        parts=[
            Prose(INTRODUCTION),
            _counts_grid(reproduced),
            Paragraph((_page(ARTIFACT, "An appendix"), " says how to check them, in ten minutes and in days.")),
            *(_paper(each) for each in reproduced),
            Section("Further studies", [Paragraph(_listed(others))] if others else []),
        ],
    )


def artifact_page(reproduced: Sequence[Reproduced]) -> Page:
    """The appendix: what to install, what to run, and what to expect."""
    return Page(
        name=ARTIFACT,
        title="Artifact appendix",
        heading="What to install, what to run, and what to expect",
        parts=[
            Section("What is needed", [Prose(REQUIREMENTS)]),
            Section("Kick the tyres", [Prose(TYRES), Listing(TYRES_COMMANDS, "sh")]),
            *(Section(each.paper.name, list(_checks(each))) for each in reproduced),
        ],
    )


def _page(name: str, text: str = "") -> Span:
    return Span(text or name, file=f"{name}.md")


def _listed(names: Sequence[str]) -> tuple[str | Span, ...]:
    return tuple(piece for name in names for piece in (", ", _page(name)))[1:]


def _counts(each: Reproduced) -> tuple[int, ...]:
    """How many claims there are, how many came out in which way, and how many of them are explained."""
    rows = each.result.rows.values()
    claims = [row for row in rows if row.is_primary]
    met_beside = {row.beside for row in rows if row.beside and row.finding in MET and row.is_decided}
    ways = Counter(_way(row, met_beside) for row in claims)
    explained = sum(row.is_decided and row.is_explained for row in claims)
    return len(claims), *(ways[way] for way in WAYS), explained


def _counts_grid(reproduced: Sequence[Reproduced]) -> Grid:
    """The counts of each paper, and of all together."""
    counts = {each.paper.name: _counts(each) for each in reproduced}
    rows: list[tuple[str | Span, ...]] = [(_page(name), *map(str, found)) for name, found in counts.items()]
    totals: tuple[str | Span, ...] = ("all", *(str(sum(column)) for column in zip(*counts.values(), strict=True)))
    return Grid(FRONT_HEAD, [*rows, totals])


def _way(row: RowResult, met_beside: Collection[str]) -> str:
    """The column of FRONT_HEAD that a claim counts in."""
    if not row.is_decided:
        return "not decided"
    if row.finding == "reproduced":
        return "as published" if row.is_whole else "other setting"
    if row.finding == "in direction":
        return "in direction"
    return "another reading" if row.row in met_beside else "not"


def _paper(each: Reproduced) -> Section:
    head: list[Part] = [Paragraph((f"{each.paper.citation} ", _page(each.paper.name, "All rows"), "."))]
    return Section(each.paper.name, [*head, *(_headline(each, headline) for headline in each.paper.headlines)])


def _headline(each: Reproduced, headline: Headline) -> Section:
    rows = each.result.rows
    found = rows_grid([rows[name] for name in headline.rows]).only("", "paper", MEASURED, "finding")
    charts = [chart for chart in each.page.charts if chart.title == headline.chart]
    return Section(
        headline.claim,
        [Prose(filled(headline.found, rows)), found, Figures(charts, folder=each.paper.name)],
    )


def _cost_text(runs: Sequence[RunResult]) -> str:
    """What the runs took, on one core and on other devices."""
    if not runs:
        return f"{UNMEASURED} on one core"
    costs = {"on one core": sum(run.core_s or 0.0 for run in runs)}
    for run in runs:
        if run.torch_device:
            place = f"on {run.torch_device}"
            costs[place] = costs.get(place, 0.0) + (run.wall_s or 0.0)
    return " and ".join(f"{seconds_text(took_s)} {place}" for place, took_s in costs.items() if took_s)


def _checks(each: Reproduced) -> Iterator[Part]:
    """For each headline its rows with what to expect, what that costs, and the command."""
    cells, found = {cell.cell: cell for cell in each.result.cells}, each.result.rows
    for number, headline in enumerate(each.paper.headlines, start=1):
        rows = [found[name] for name in headline.rows]
        needed = dict.fromkeys(cell for row in rows for cell in row.cells)
        runs = {(run.run, run.started): run for cell in needed if cell in cells for run in cells[cell].runs}
        command = ["edgebed", "reproduce", each.paper.name, *row_options(headline.rows), "--resume"]
        yield Section(
            f"C{number}: {headline.claim}",
            [
                replace(rows_grid(rows).only("", MEASURED, "finding"), head=CHECK_HEAD),
                Paragraph(f"{count_text(len(runs), 'run')}, {_cost_text(list(runs.values()))}."),
                Listing([shlex.join(command)], "sh"),
            ],
        )
