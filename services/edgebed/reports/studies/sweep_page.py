"""The page of a sweep, made from its result alone.

The page says who wins where, what exactly was counted, which times were measured on which processor, and how to repeat
the sweep. It names no folder, host or user of this machine, so that it can be published as it is.
"""

from collections.abc import Iterator, Mapping, Sequence

from edgebed.core.measures.task import VALIDATION
from edgebed.core.quantities import count_text, number_text
from edgebed.reports.run.answer import ONE_SEED
from edgebed.reports.studies.reproduction_page import TEST_SET, machine_section, results_sentence, runs_sentences
from edgebed.reports.studies.sweep_charts import layout_of, letters, maps_of
from edgebed.reports.studies.sweep_curves import curves_of
from edgebed.reports.studies.sweep_text import break_even_grid, costs_grid, falls_of, points_grid, wins_grid
from edgebed.reports.writing.page import (
    Figures,
    Listing,
    Notes,
    Page,
    Paragraph,
    Part,
    Prose,
    Section,
    Span,
    Text,
    coded,
    legend,
    shaded,
)
from edgebed.studies.statistics import CONFIDENCE
from edgebed.studies.sweep.points import axes_of
from edgebed.studies.sweep.sweep_result import SweepResult
from edgebed.studies.sweep.winners import Win

COUNTED = """\
Every point is a run in virtual time. It ends as soon as the mean of its last evaluations, which are made at the
scenario's intervals, reaches the level; what gives up first is said to be *not* there *in* so many updates.
**Time** counts from the start of training. **Up** (ingress) is the payload of the pushes that made the model, **down**
(egress) that of the models handed out to workers for it, **total** both together. An **update** is a push, of one
mini-batch or of as many as the method's workers go through between two pushes; **passes** is how many times they stand
for all training examples. **CPU** is, for every update that workers made, applied or not, a gradient's time for each
mini-batch, what compressing and encoding takes, and what the server needs to decode and restore it. Applying updates,
evaluating, and compressing models on their way down are not in it."""

VALIDATED = """\
The validation part of the data decided when a level was reached, and which evaluation was best; values in the table are
those of the test part, which nothing was chosen by."""
MAP = """\
A cell names the method that is first, its time, how many times as long the second takes, with that one's letter, and
*decided* where the table below says so. ≈ before the factor: less lies between the two than between two evaluations."""
DECIDED = """\
*Factor*: how many times as much the second needs, the geometric mean over pairs of the same seed, with its interval at
95 % by Student's t. ≈ before it: less lies between the two than between two evaluations. *Decided*: such intervals lie
above 1 for each of the others. *Detectable*: which factor between the two would be found in eight of ten studies with
as many seeds that scatter as much."""
CURVES = (
    "What each method took to the level; with several seeds a line is their mean, its band goes from the lowest to "
    "the highest. Where a line is missing the level was not reached, or the method was not run. Charts of the same "
    "quantity have the same vertical axis."
)
SHOWN_MAX = 4
"""Charts against a further axis that are shown at once; more are folded."""
BREAK_EVEN = """\
Below the rate one of the two is faster, above it the other. Between two rates that were run, time is taken to be a
straight line in the logarithms of both, which is exact where bytes alone take the time, or computing alone. Where the
one that is faster above takes the lead from the other, no third is faster than both at the rates next to it. ≈ before
the rate: at a rate next to it that was run, less lies between the two than between two evaluations. Behind it are the
rates between which Student's t at 95 % over seeds does not tell the two apart."""


def sweep_page(result: SweepResult, command: str) -> Page:
    """The page; in a terminal, what each method took at each point, who is first, and where methods break even."""
    points, break_even = points_grid(result), break_even_grid(result)
    wins, fewest = wins_grid(result, "time"), wins_grid(result, "traffic")
    fell = Notes(shaded(falls_of(result), "unknown"))
    return Page(
        name=result.scenario,
        heading=result.question,
        lead=[Paragraph(Span(_firsts(result), "strong")), fell],
        parts=[
            Paragraph(_overview(result)),
            Prose(VALIDATED if result.selects_by == VALIDATION else TEST_SET),
            Notes([coded(note) for note in result.notes]),
            Section("Against each axis", [legend(CURVES), *_against_axes(result)]),
            Section(
                "Who is first where",
                [
                    Prose(MAP),
                    Paragraph(_letters(result)),
                    Figures(maps_of(result)),
                    Prose(f"{DECIDED} {_chance(result)}"),
                    wins,
                    Section("By bytes up and down", [fewest]),
                ],
            ),
            *_break_even(result),
            Section("What each method took", [Prose(COUNTED), points]),
            Section("CPU time of one push", [Paragraph(measured_text(result)), costs_grid(result)]),
            Section("Runs", list(_runs(result))),
            machine_section(result.runs),
            Section("How to repeat it", list(_repeat(result, command))),
        ],
        brief=[
            Paragraph(_firsts(result)),
            fell,
            Section(f"To {result.level_text}", [points]),
            Section("Who is first by time", [wins]),
            Section("Who is first by bytes up and down", [fewest]),
            Section("Break-even rates", [break_even]),
        ],
    )


def _against_axes(result: SweepResult) -> Iterator[Part]:
    """Time and bytes against each axis with several values; bytes up and down apart and CPU time against the first."""
    axes = axes_of(result.axes)
    first = layout_of(axes).columns
    others = [axis for axis in axes if axis is not first and len(axis.values) > 1]
    for axis in (first, *others):
        charts = [chart for measure in ("time_s", "traffic_bytes") for chart in curves_of(result, measure, axis)]
        yield Section(axis.label, [Figures(charts)], is_folded=axis is not first and len(charts) > SHOWN_MAX)
    apart = ("ingress_bytes", "egress_bytes", "cpu_s")
    charts = [chart for measure in apart for chart in curves_of(result, measure, first)]
    yield Section(f"Bytes up, bytes down and CPU seconds against {first.label}", [Figures(charts)], is_folded=True)


def _overview(result: SweepResult) -> Text:
    axes = ", ".join(f"`{key}` ({', '.join(values)})" for key, values in result.axes.items())
    done = sum(len(point.seeds) for point in result.points)
    wanted = len(result.points) * result.seeds
    missing = "" if done == wanted else f" {done} of {count_text(wanted, 'run')} have been made."
    if passes := [point.passes for point in result.points if point.passes is not None]:
        missing += (
            f" Methods that got there had gone {number_text(min(passes))} to {number_text(max(passes))} times through "
            "the training examples by then."
        )
    return coded(
        f"What {count_text(len(result.methods), 'method')} took to "
        f"{result.level_text}, over {axes}; {count_text(result.seeds, 'seed')}.{missing}"
    )


def _letters(result: SweepResult) -> Text:
    named = letters(result.methods).items()
    return tuple(piece for method, letter in named for piece in (", ", Span(letter, "strong"), f" {method}"))[1:]


def _firsts(result: SweepResult) -> str:
    """Sentences on how often each method is first by time and by bytes, and how often that is decided."""
    fastest = _first_text(result, [each.time for each in result.wins])
    if not fastest:
        none = f"No method reached {result.level_text}."
        return none if result.runs else ""
    fewest = _first_text(result, [each.traffic for each in result.wins])
    bytes_too = f" Fewest bytes: {fewest}." if fewest else ""
    return f"Fastest to {result.measure.level_told(result.value)}: {fastest}.{bytes_too}" + f" {ONE_SEED}" * (
        result.seeds == 1
    )


def _first_text(result: SweepResult, wins: Sequence[Win | None]) -> str:
    """In how many fleets each method is first, in how many that is decided, and at how many rates; empty: none is.

    A fleet is a value of each axis that is no rate: at each rate many methods train in the same way.
    """
    keys = [axis.key for axis in axes_of(result.axes) if not axis.is_rate]
    fleets: dict[str, dict[tuple[str, ...], list[bool]]] = {}
    for at, found in zip(result.wins, wins, strict=True):
        if found:
            fleet = tuple(at.values[key] for key in keys)
            fleets.setdefault(found.method, {}).setdefault(fleet, []).append(bool(found.is_decided))
    count = len({tuple(at.values[key] for key in keys) for at in result.wins})
    rates, words = len(result.wins) // count if count else 0, []
    for method, of in sorted(fleets.items(), key=lambda pair: -sum(map(len, pair[1].values()))):
        decided = [all(each) for each in of.values()] if count > 1 else next(iter(of.values()))
        total = count_text(count, "fleet") if count > 1 else count_text(rates, "place")
        text = f"{method} {'in' if count > 1 else 'at'} {len(decided)} of {total}"
        if count > 1 and (places := sum(map(len, of.values()))) < rates * len(of):
            text += f" at {places} of their {count_text(rates * len(of), 'rate')}"
        if result.seeds > 1:
            each_rate = " at each rate" if count > 1 and rates > 1 else ""
            text += f" ({sum(decided) or 'none'} of them decided{each_rate})"
        words.append(text)
    return ", ".join(words)


def _chance(result: SweepResult) -> str:
    """A sentence on how many places would seem decided with nothing to find."""
    tested = sum(each.time is not None and each.time.is_decided is not None for each in result.wins)
    if not tested:
        return ""
    return (
        f"{count_text(tested, 'place')} {'was' if tested == 1 else 'were'} tested; did nobody differ, chance alone "
        f"would still decide up to {number_text((1 - CONFIDENCE) * tested)} of them. Places "
        "are not independent: a synchronous method's training is the same at every rate of the links."
    )


def _break_even(result: SweepResult) -> Iterator[Part]:
    if any(axis.is_rate for axis in axes_of(result.axes)):
        none = "" if result.break_even else "No two of the methods that were run cross within these rates."
        yield Section("Break-even rates", [Prose(BREAK_EVEN), Paragraph(none), break_even_grid(result)])


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
        text += f" Set by the scenario, or computed for the devices' speeds: {', '.join(own)} (of some or all methods)."
    return text


def _runs(result: SweepResult) -> Iterator[Part]:
    if not result.runs:
        yield Paragraph("Nothing has been run yet.")
        return
    yield Paragraph(("Each point was run once for each seed. ", *results_sentence(result.scenario)))
    yield from map(Paragraph, runs_sentences(result.runs))


def _repeat(result: SweepResult, command: str) -> Iterator[Part]:
    yield Paragraph("In a checkout of edgebed; the command resumes where it was interrupted, and runs nothing twice:")
    yield Listing([f"{command} --resume"], "sh")
    alone = "Or a point by itself; in processes or containers with another `--runtime`, where times are real:"
    yield Paragraph(coded(alone))
    yield Listing([point.command for point in result.points[:1]], "sh")
