"""The tables of a sweep, and its quantities in words."""

import math
from collections.abc import Sequence
from typing import Literal

from edgebed.core.quantities import (
    UNMEASURED,
    count_text,
    factor_text,
    number_text,
    rate_text,
)
from edgebed.reports.writing.page import Grid
from edgebed.studies.sweep.points import axes_of
from edgebed.studies.sweep.sweep_result import MEASURES, BreakEvenResult, PointResult, SweepResult
from edgebed.studies.sweep.winners import Spread, Win


def points_grid(result: SweepResult) -> Grid:
    """A table of what each method took at each point, and how good the model was."""
    labels = tuple(axis.label for axis in axes_of(result.axes))
    measure, words = result.measure, result.measure.words
    return Grid(
        (
            "method",
            *labels,
            *(each.compared for each in MEASURES.values()),
            "updates",
            "passes",
            f"best {words}",
            f"final {words}",
            "diverged",
        ),
        [
            (
                point.method,
                *point.values.values(),
                *(_text(point, name) for name in MEASURES),
                UNMEASURED if point.updates is None else number_text(round(point.updates)),
                UNMEASURED if point.passes is None else number_text(point.passes),
                measure.text(point.best),
                measure.text(point.final),
                f"{point.diverged} of {len(point.seeds)}" if point.was_run else UNMEASURED,
            )
            for point in result.points
        ],
        dispensable=("passes", "updates", "up", "down", "diverged", f"best {words}", f"final {words}"),
    )


def falls_of(result: SweepResult) -> tuple[str, ...]:
    """A sentence on each point at which seeds did not keep what they reached; of several the first seed is told."""
    return tuple(
        f"{point.point} did not stay, in {len(point.fell)} of {count_text(len(point.seeds), 'seed')}: "
        f"{point.fell[0].text}"
        for point in result.points
        if point.fell
    )


def wins_grid(result: SweepResult, measure: Literal["time", "traffic"]) -> Grid:
    """A table of who is first at each place, whether that is decided, and which factor would have been found."""
    labels = tuple(axis.label for axis in axes_of(result.axes))
    rows = [
        (
            *each.values.values(),
            *(
                (UNMEASURED,) * 5
                if (found := getattr(each, measure)) is None
                else (
                    found.method,
                    found.second or "nobody else",
                    _factor_text(found),
                    decided_text(found),
                    UNMEASURED if found.detectable is None else f"{factor_text(found.detectable)} ×",
                )
            ),
        )
        for each in result.wins
    ]
    head = (*labels, "first", "second", "factor", "decided", "detectable")
    return Grid(head, rows, dispensable=("detectable",))


def _factor_text(found: Win) -> str:
    """How many times as much the second needs, with the interval over seeds."""
    if found.factor is None:
        return UNMEASURED
    between = f" ({' to '.join(map(factor_text, found.between))})" if found.between else ""
    return f"{'≈ ' * found.is_coarse}{factor_text(found.factor)} ×{between}"


def decided_text(found: Win) -> str:
    """Whether it is decided that the first is first; alone it has no rival."""
    if found.second is None:
        return UNMEASURED
    return "yes" if found.is_decided else "no"


def break_even_grid(result: SweepResult) -> Grid:
    """A table of every pair of methods that crosses, with the rate; first those where the lead changes."""
    rows = [
        (
            each.where or "everywhere",
            each.below,
            f"{'≈ ' * each.is_coarse}{rate_text(each.rate_bit_s)}{_between_text(result, each)}",
            each.above,
            "yes" if each.is_lead else "",
        )
        for each in result.break_even
    ]
    return Grid(("where", "faster below", "rate", "faster above", "takes the lead"), rows)


def _between_text(result: SweepResult, at: BreakEvenResult) -> str:
    """The rates between which two methods may break even, by seeds; empty where there is one."""
    if at.between_bit_s is None:
        return ""
    run = next(axis.rates_bit_s for axis in axes_of(result.axes) if axis.is_rate)
    low, high = (
        f"{rate_text(rate)}{beyond * math.isclose(rate, end)}"
        for rate, end, beyond in zip(at.between_bit_s, (run[0], run[-1]), (" or less", " or more"), strict=True)
    )
    return f" ({low} to {high})"


def costs_grid(result: SweepResult) -> Grid:
    """A table of the CPU time of a push, by method; every time that any of its points had."""
    rows = []
    for method in result.methods:
        points = [point for point in result.points if point.method == method and point.was_run]
        columns = ([point.gradient_s, point.compression_s, point.restore_s] for point in points)
        each = [dict.fromkeys(milliseconds(value) for value in column) for column in zip(*columns, strict=True)]
        rows.append((method, *(", ".join(texts) for texts in each)) if each else (method, *(UNMEASURED,) * 3))
    return Grid(("method", "a gradient", "to compress", "to restore"), rows)


def milliseconds(value: float | None) -> str:
    """Time of a push as text: 8.12 ms."""
    return UNMEASURED if value is None else f"{number_text(1e3 * value)} ms"


def unreached_text(point: PointResult) -> str:
    """The text for a point at which not every seed reached the level."""
    absent = f"not in {count_text(point.gives_up, 'update')}"
    reached = f"{point.reached} of {count_text(len(point.seeds), 'seed')}" if point.reached else absent
    return f"{reached}: {point.diverged} diverged" if point.diverged else reached


def _text(point: PointResult, name: str) -> str:
    if not point.was_run:
        return "not run"
    spread: Spread | None = getattr(point, name)
    return unreached_text(point) if spread is None else spread_text(spread, name)


def spread_text(spread: Spread, name: str) -> str:
    """The mean, and the lowest and highest seed where there are several that differ."""
    text = MEASURES[name].text
    ends: Sequence[str] = (text(spread.low), text(spread.high))
    return text(spread.mean) if spread.low == spread.high else f"{text(spread.mean)} ({' to '.join(ends)})"
