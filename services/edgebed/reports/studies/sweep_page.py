"""A sweep as a page, in Markdown with charts beside it and in HTML, made from its result alone.

The page says who wins where, what exactly was counted, which times were measured on which processor, and how to repeat
the sweep. It names no folder, host or user of this machine, so that it can be published as it is.
"""

from collections.abc import Iterator, Mapping, Sequence

from edgebed.core.quantities import count_text, number_text, percent_text
from edgebed.reports.studies.results_page import TEST_SET, host_text, runs_text
from edgebed.reports.studies.sweep_charts import letters
from edgebed.reports.studies.sweep_text import break_even_grid, costs_grid, mean_of, points_grid, wins_grid
from edgebed.reports.writing.document import Document, image
from edgebed.reports.writing.drawing import Chart
from edgebed.reports.writing.grid import Grid
from edgebed.reports.writing.markdown import code_block, markdown_table
from edgebed.studies.cells.result_cache import FILE
from edgebed.studies.statistics import CONFIDENCE
from edgebed.studies.sweep.points import axes_of
from edgebed.studies.sweep.swept import SweepResult

COUNTED = """\
Every point is a run in virtual time. It ends as soon as the mean of its last evaluations, which are made on the test
set at the scenario's intervals, is the accuracy; what gives up first is said to be *not* there *in* so many updates.
**Time** counts from the start of training.
**Up** (ingress) is the payload of the pushes that made the model, **down** (egress) that of the models handed out to
workers for it, **total** both together. An **update** is a push, of one mini-batch or of as many as the method's
workers go through between two pushes. **CPU** is, for every update that workers made, applied or not, a gradient's
time for each mini-batch, what compressing and encoding takes, and what the server needs to decode and restore it.
Applying updates, evaluating, and compressing models on their way down are not in it."""

MAP = """\
A cell names the method that is first, its time, how many times as long the second takes, with that one's letter, and at
least how likely the first is first. ≈ before the factor: less lies between the two than between two evaluations."""
PROBABILITY = """\
*Probability*: at least how likely the first needs less than each of the others in the mean of the logarithm, by
Student's t over pairs of the same seed. *Detectable*: which factor between the two would be found in eight of ten
studies with as many seeds that scatter as much."""
ONE_SEED = "There is one seed: who is first is not decided."
CURVES = "Where a line is missing the accuracy was not reached, or the method was not run."
BREAK_EVEN = """\
Below the rate one of the two is faster, above it the other. Between two rates that were run, time is taken to be a
straight line in the logarithms of both, which is exact where bytes alone take the time, or computing alone. Where the
one that is faster above takes the lead from the other, no third is faster than both at the rates next to it."""


def sweep_page(result: SweepResult, command: str, charts: Sequence[Chart]) -> Document:
    """The page with these charts; pure."""
    parts = [
        _overview(result),
        TEST_SET,
        "\n".join(f"- {note}" for note in result.notes),
        *_map(result, charts),
        *_curves(result, charts),
        *_break_even(result),
        *_points(result, charts),
        *_costs(result),
        *_runs(result),
        *host_text(result.runs),
        "## How to repeat it",
        "In a checkout of edgebed; the command resumes where it was interrupted, and runs nothing twice:",
        code_block([f"{command} --resume"]),
        "Or a point by itself; in processes or containers with another `--runtime`, where times are real:",
        code_block([point.command for point in result.points[:1]]),
    ]
    return Document.of(result.scenario, result.question, parts)


def _overview(result: SweepResult) -> str:
    axes = ", ".join(f"`{key}` ({', '.join(values)})" for key, values in result.axes.items())
    done = sum(len(point.seeds) for point in result.points)
    wanted = len(result.points) * result.seeds
    missing = "" if done == wanted else f" {done} of {count_text(wanted, 'run')} have been made."
    return (
        f"What {count_text(len(result.methods), 'method')} took to an accuracy of {percent_text(result.accuracy)}"
        f"{mean_of(result)}, "
        f"over {axes}; {count_text(result.seeds, 'seed')}.{missing}"
    )


def _map(result: SweepResult, charts: Sequence[Chart]) -> Iterator[str]:
    yield "## Who is first where"
    yield MAP
    if result.seeds == 1:
        yield ONE_SEED
    yield ", ".join(f"**{letter}** {method}" for method, letter in letters(result.methods).items())
    yield from _images(result, charts, "Who is first")
    yield _firsts(result)
    yield f"{PROBABILITY} {_chance(result)}"
    yield _table(wins_grid(result))


def _firsts(result: SweepResult) -> str:
    """Sentences on how often each method is first, and how often that is more than chance."""
    counts: dict[str, list[bool]] = {}
    for found in (each.time for each in result.wins if each.time):
        counts.setdefault(found.method, []).append((found.probability or 0.0) >= CONFIDENCE)
    surely = " ({} of them with a probability of 95 % or more)" if result.seeds > 1 else ""
    words = [
        f"{method} at {len(sure)}{surely.format(sum(sure) or 'none')}"
        for method, sure in sorted(counts.items(), key=lambda pair: -len(pair[1]))
    ]
    return f"Fastest, of {count_text(len(result.wins), 'place')}: {', '.join(words)}." if words else ""


def _chance(result: SweepResult) -> str:
    """A sentence on how many places would seem decided with nothing to find."""
    tested = sum(each.time is not None and each.time.probability is not None for each in result.wins)
    if not tested:
        return ""
    return (
        f"{count_text(tested, 'place')} {'was' if tested == 1 else 'were'} tested; did nobody differ, chance alone "
        f"would still give up to {number_text(2 * (1 - CONFIDENCE) * tested)} of them a probability of 95 %. Places "
        "are not independent: a synchronous method's training is the same at every rate of the links."
    )


def _curves(result: SweepResult, charts: Sequence[Chart]) -> Iterator[str]:
    images = list(_images(result, charts, "Time to the accuracy"))
    if images:
        yield "## Time against the rate"
        yield CURVES
        yield from images


def _break_even(result: SweepResult) -> Iterator[str]:
    if not any(axis.is_rate for axis in axes_of(result.axes)):
        return
    yield "## Break-even rates"
    yield BREAK_EVEN
    yield (
        _table(break_even_grid(result))
        if result.break_even
        else "No two of the methods that were run cross within these rates."
    )


def _points(result: SweepResult, charts: Sequence[Chart]) -> Iterator[str]:
    yield "## Bytes and CPU seconds"
    yield COUNTED
    for way in ("Bytes up and down", "Bytes up to", "Bytes down to"):
        yield from _images(result, charts, way)
    yield from _images(result, charts, "CPU seconds")
    yield _table(points_grid(result))


def _costs(result: SweepResult) -> Iterator[str]:
    grid = costs_grid(result)
    yield f"## {grid.title}"
    yield measured_text(result)
    yield _table(grid)


def measured_text(result: SweepResult) -> str:
    """A sentence on which of the times were measured, and where."""
    gradients = {cost.seconds for cost in result.costs.gradients}
    compressions = {cost.seconds for cost in result.costs.compressions}
    run = [point for point in result.points if point.was_run]
    was_measured: Mapping[str, bool] = {
        "a gradient": all(point.gradient_s in gradients for point in run),
        "to compress": all(point.compression_s in compressions for point in run),
    }
    own = [name for name, measured in was_measured.items() if not measured]
    text = (
        f"Measured before the first run on {result.costs.cpu or 'an unknown processor'}, one thread: medians of a "
        "dozen real gradients, and of compressing, encoding and restoring these. A device of compute speed 1 and a "
        "whole core takes as long; its cap makes it take longer."
    )
    if own:
        text += f" What the scenario sets itself was not measured: {', '.join(own)} (of some or all methods)."
    return text


def _runs(result: SweepResult) -> Iterator[str]:
    yield "## Runs"
    if not result.runs:
        yield "Nothing has been run yet."
        return
    yield (
        f"Each point was run once for each seed. [{FILE}]({result.scenario}/{FILE}) has what each run was set to and "
        "every evaluation."
    )
    yield from runs_text(result.runs)


def _images(result: SweepResult, charts: Sequence[Chart], beginning: str) -> Iterator[str]:
    return (image(result.scenario, chart) for chart in charts if chart.title.startswith(beginning))


def _table(grid: Grid) -> str:
    return markdown_table(grid.head, grid.rows)
