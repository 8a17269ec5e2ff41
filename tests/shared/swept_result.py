"""What a sweep of three methods says, without a run."""

import itertools

from edgebed.core.plan import Part
from edgebed.learning.objectives.classification import ACCURACY
from edgebed.studies.sweep.costs import Costs, GradientCost
from edgebed.studies.sweep.points import Point, axes_of
from edgebed.studies.sweep.sweep_result import PointResult, SweepResult, WinAt, break_even_rows
from edgebed.studies.sweep.winners import Spread, win

RATES = ["250kbit", "1mbit", "4mbit", "16mbit"]
METHODS = ("dense", "top-k", "slow")
NEEDS = {"dense": (80e6, 10.0), "top-k": (2e6, 18.0)}
"""Bits that pass the uplink, and seconds that do not depend on it; `slow` never gets there."""


def swept(over: dict[str, list[str]], *, seeds: int = 1) -> SweepResult:
    """A sweep whose times are bits over a rate and computing; the second seed needs a tenth more."""
    axes = axes_of(over)
    points: dict[Point, PointResult] = {}
    of_seeds = range(1, seeds + 1)
    for values, method in itertools.product(itertools.product(*(axis.values for axis in axes)), METHODS):
        named = dict(zip(over, values, strict=True))
        rate = next((axis.rates_bit_s[axis.values.index(named[axis.key])] for axis in axes if axis.is_rate), 1e6)
        bits, rest_s = NEEDS.get(method, (None, None))
        times = {} if bits is None else {k: (bits / rate + rest_s) * (0.9 + 0.1 * k) for k in of_seeds}
        took = None if bits is None else Spread.of([bits / 8])
        points[Point(method, values)] = PointResult(
            point=method, method=method, values=named, command=f"edgebed run {method}",
            seeds=tuple(of_seeds), reached=0 if bits is None else seeds,
            updates=None if bits is None else 400.0, best=0.9, final=0.85,
            gives_up=600, spacing=0.1, times=times, traffic={} if bits is None else dict.fromkeys(of_seeds, bits / 8),
            time_s=Spread.of(list(times.values())) if times else None,
            ingress_bytes=took, egress_bytes=took, traffic_bytes=took, cpu_s=took and Spread.of([rest_s]),
            gradient_s=0.01, compression_s=0.002, restore_s=0.001,
        )  # fmt: skip
    wins = []
    for values in dict.fromkeys(point.values for point in points):
        there = {method: points[Point(method, values)] for method in METHODS}
        spacing = dict.fromkeys(METHODS, 0.1)
        time, traffic = (
            win({method: getattr(point, name) for method, point in there.items()}, spacing)
            for name in ("times", "traffic")
        )
        wins.append(WinAt(values=dict(zip(over, values, strict=True)), time=time, traffic=traffic))
    return SweepResult(
        scenario="tiny-sweep", question="Which of them wins?", measure=ACCURACY, value=0.8, window=3, methods=METHODS,
        axes={axis.key: axis.values for axis in axes}, seeds=seeds, points=tuple(points.values()), wins=tuple(wins),
        break_even=tuple(break_even_rows(axes, METHODS, points)), runs=(),
        costs=Costs(
            cpu="A processor",
            gradients=(
                GradientCost(
                    data="digits", model="small", batch_size=10, inputs="unit", objective=Part(name="classification"),
                    seconds=0.01,
                ),
            ),
        ),
    )  # fmt: skip
