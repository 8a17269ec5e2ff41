"""The page on whether virtual time ranks methods as live runs do."""

import shlex

import numpy as np
from matplotlib.axes import Axes

from edgebed.core.quantities import count_text, number_text, utc_text
from edgebed.reports.writing.figures import INK, PALETTE, Chart, log_axis, time_axis
from edgebed.reports.writing.page import Figures, Listing, Notes, Page, Paragraph, Section, Shade, Span, legend, shaded
from validation.ranking.preregistration import SCENARIOS, Stated
from validation.ranking.ranking import Ranking
from validation.ranking.ranking_tables import (
    errors_grid,
    groups_grid,
    how_to_read,
    null_grid,
    places_grid,
    power_grid,
    power_text,
    ranks_grid,
    tests_grid,
    verdict_text,
    worst_grid,
    wrong_grid,
)

PERCENT_MIN = 0.1
"""Least error in per cent that is drawn; smaller ones are drawn as this one."""


def ranking_page(ranking: Ranking) -> Page:
    """The page; in a terminal its verdict, the tables of tau, errors and tests, and the worst places."""
    tables = [
        Section("Does it rank as live runs do?", [ranks_grid(ranking)]),
        Section("How far off it is", [errors_grid(ranking)]),
        Section("Is that the same, within the margins?", [tests_grid(ranking)]),
        Section("Could an estimate have told as much?", [null_grid(ranking)]),
    ]
    power = Section("What tau can tell", [power_grid(ranking), Paragraph(power_text(ranking))])
    reading = Notes(shaded((f"{line}." for line in how_to_read(ranking)), "quiet"))
    wrong = [
        Section("The largest errors of the time", [worst_grid(ranking)]),
        Section("Pairs that are turned or tied", [wrong_grid(ranking)]),
    ]
    return Page(
        name=ranking.stated.name,
        status=status_of(ranking),
        lead=[legend(_facts(ranking.stated))],
        parts=[
            *tables,
            power,
            reading,
            Figures(charts_of_ranking(ranking)),
            Section(
                "Where virtual time is wrong",
                [
                    *wrong,
                    Section("By what scenarios have", [groups_grid("scenarios with", ranking.traits)]),
                    Section("By method", [groups_grid("method", ranking.methods)]),
                ],
            ),
            Section("Every method in every scenario", [places_grid(ranking)], is_folded=True),
            Section("Drawn again", [Notes(ranking.drawn_again)], is_folded=True),
            Section("Left out", [Notes(ranking.left_out)]),
            Section(
                "How to repeat it",
                [
                    Paragraph(f"The scenarios lie beside this page, in {ranking.stated.name}/{SCENARIOS}."),
                    Listing([ranks_command(ranking.stated)], "sh"),
                ],
            ),
        ],
        brief=[
            *tables,
            *wrong,
            reading,
            Notes(shaded((f"left out: {line}" for line in ranking.left_out), "quiet")),
            Paragraph(status_of(ranking)),
        ],
    )


def status_of(ranking: Ranking) -> Span:
    """The verdict."""
    shades: dict[str, Shade] = {"does not rank as live": "bad", "too few pairs to tell": "unknown"}
    return Span(verdict_text(ranking), shades.get(ranking.verdict, "good" if ranking.agrees else "unknown"))


def ranks_command(stated: Stated) -> str:
    """The command that makes the same study again."""
    words = ["scripts/validate", "ranks", "--scenarios", str(stated.scenarios), "--seed", str(stated.seed)]
    if stated.drawing != "usual":
        words += ["--drawing", stated.drawing]
    words += ["--seeds", str(stated.seeds), "--runtime", stated.runtime]
    if stated.emulation != "auto":
        words += ["--emulation", stated.emulation]
    return shlex.join([*words, "--margin", f"{100 * stated.margins['time']:g}%"])


def charts_of_ranking(ranking: Ranking) -> list[Chart]:
    """Simulated time against live time, and the errors of the time in order of size."""
    return [
        Chart("Time to the same updates, simulated against live", lambda axes: _times(axes, ranking), 2),
        Chart("Errors of the time, in order of size", lambda axes: _sizes(axes, ranking)),
    ]


def _times(axes: Axes, ranking: Ranking) -> None:
    for place, (name, in_rounds) in enumerate((("asynchronous", False), ("in rounds", True))):
        shown = [each.measures for each in ranking.places if (each.measures["staleness"].live == 0) is in_rounds]
        live, simulated = ([getattr(each["time"], side) for each in shown] for side in ("live", "simulated"))
        if shown:
            axes.scatter(live, simulated, marker="os"[place], color=PALETTE[place], alpha=0.7, s=18, label=name)
    every = [
        value for each in ranking.places for value in (each.measures["time"].live, each.measures["time"].simulated)
    ]
    ends = [min(every) / 1.1, max(every) * 1.1]
    axes.plot(ends, ends, color=INK, linewidth=0.8, alpha=0.5)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        time_axis(axis, *ends)
    axes.set_xlabel("live (s, m, h; logarithmic)")
    axes.set_ylabel("simulated (s, m, h; logarithmic)")


def _sizes(axes: Axes, ranking: Ranking) -> None:
    sizes = np.sort([100 * abs(place.measures["time"].error) for place in ranking.places])
    shares = 100 * np.arange(1, len(sizes) + 1) / len(sizes)
    axes.step(np.maximum(sizes, PERCENT_MIN), shares, where="post", color=PALETTE[0], linewidth=1.8, label="places")
    axes.set_xscale("log")
    log_axis(axes.xaxis, *axes.get_xlim(), number_text)
    axes.set_ylim(0, 102)
    axes.set_xlabel("error of the time (%, logarithmic)")
    axes.set_ylabel("places with at most that (%)")


def _facts(stated: Stated) -> str:
    kind = "" if stated.drawing == "usual" else " at the edges"
    return (
        f"{count_text(stated.scenarios, 'scenario')}{kind} drawn from seed {stated.seed}, each with {stated.methods} "
        f"methods and {count_text(stated.seeds, 'seed')}, in the simulation and in the {stated.runtime} runtime; on "
        f"{stated.cpu or 'an unknown processor'}, {count_text(stated.cores, 'core')}; edgebed {stated.version}, code "
        f"{stated.code}; stated {utc_text(stated.started)}, before the first run."
    )
