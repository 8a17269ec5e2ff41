"""From finished runs to the result of a sweep: what each point took to the accuracy, and who wins where.

Counted until the model reached the accuracy for the first time, at which a run ends:

- time: since training started, virtual;
- up: payload of the pushes that made the model; down: payload of the models handed out for it; traffic: both together;
- CPU seconds: of every update that workers made, applied or not, (mini-batches x a gradient's time + its compression's
  time) + restoring it at the server. Times are those of the plan, on a core of compute speed 1; restoring is as it was
  measured. Applying an update, evaluating, and compressing models on their way down are not counted.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from edgebed.algorithms.registry import batches_a_push
from edgebed.comparing.cells import CellRun, Recipes
from edgebed.comparing.collecting import keep_finished
from edgebed.comparing.costs import Costs
from edgebed.comparing.finding import Finder
from edgebed.comparing.finished import FinishedTrial
from edgebed.comparing.keeping import Kept, RunResult
from edgebed.comparing.measures import Reached, reach
from edgebed.comparing.points import Axis, Point, Points
from edgebed.comparing.winners import Spread, Win, crossings, leads, win

MEASURES = ("time_s", "ingress_bytes", "egress_bytes", "traffic_bytes", "cpu_s")


class PointResult(msgspec.Struct, frozen=True, kw_only=True):
    """A method at one value of each axis."""

    point: str
    method: str
    values: dict[str, str]
    """By the axis's key."""
    command: str
    """The ordinary command that runs it with the first seed."""
    seeds: tuple[int, ...]
    """With which it was run."""
    reached: int
    """How many of these reached the accuracy."""
    updates: float | None
    """Mean, of those that did."""
    best_accuracy: float | None
    """The highest of all seeds."""
    time_s: Spread | None
    """None here and below: not all seeds got there."""
    ingress_bytes: Spread | None
    egress_bytes: Spread | None
    traffic_bytes: Spread | None
    cpu_s: Spread | None
    gradient_s: float | None
    """As its runs took it to be; None where it was not run."""
    compression_s: float | None
    restore_s: float | None

    @property
    def was_run(self) -> bool:
        """With one seed or more."""
        return bool(self.seeds)


class WinAt(msgspec.Struct, frozen=True, kw_only=True):
    """Who wins at one value of each axis."""

    values: dict[str, str]
    time: Win | None
    """Of those that were run; None: nobody got there."""
    not_run: int = 0
    """How many methods were not run there."""


class BreaksEven(msgspec.Struct, frozen=True, kw_only=True):
    """A rate at which two methods take as long."""

    where: str
    below: str
    """Who is faster at lower rates."""
    above: str
    rate_bit_s: float
    is_lead: bool
    """Whether these two are the fastest of all there, so that the lead changes."""


class SweepResult(msgspec.Struct, frozen=True, kw_only=True):
    """All that a sweep has found."""

    scenario: str
    question: str
    accuracy: float
    methods: tuple[str, ...]
    axes: dict[str, tuple[str, ...]]
    """Values by key."""
    seeds: int
    points: tuple[PointResult, ...]
    wins: tuple[WinAt, ...]
    break_even: tuple[BreaksEven, ...]
    """Empty, too, where no axis is a rate."""
    costs: Costs
    runs: tuple[RunResult, ...]


def evaluate_sweep(
    points: Points, cells: Recipes, root: Path, kept: Kept, costs: Costs, tell: Callable[[str], None]
) -> SweepResult:
    """What the finished runs in `root`, and those that are kept, say of all points; what is read is kept."""
    wanted = points.runs
    keep_finished(cells, Finder(root), kept, wanted, tell)
    there = {run: kept.trial(run) for run in wanted if kept.find(run)}
    results = {point: _point(points, cells, point, there, costs) for point in points.all}
    runs = [kept_run.run for run in there if (kept_run := kept.find(run))]
    return SweepResult(
        scenario=points.scenario.name,
        question=points.scenario.question,
        accuracy=points.accuracy,
        methods=points.methods,
        axes={axis.key: axis.values for axis in points.axes},
        seeds=points.seeds,
        points=tuple(results.values()),
        wins=tuple(_wins(points, results)),
        break_even=tuple(break_even_rows(points.axes, points.methods, results)),
        costs=costs,
        runs=tuple(runs),
    )


def cpu_seconds(updates: int, batches: float, gradient_s: float, compression_s: float, restore_s: float) -> float:
    """Of so many updates: gradients and compression at the workers, restoring at the server. Pure."""
    return updates * (batches * gradient_s + compression_s + restore_s)


def updates_made(trial: FinishedTrial) -> int:
    """By all workers, whatever became of them; those that the end cut off are not counted."""
    summary = trial.summary
    if summary.accounting is None or summary.is_layerwise:
        return summary.updates
    return summary.accounting.total.begun - summary.accounting.total.unfinished


def _point(
    points: Points, cells: Recipes, point: Point, there: Mapping[CellRun, FinishedTrial], costs: Costs
) -> PointResult:
    runs = [CellRun(points.name(point), 1.0, seed) for seed in range(1, points.seeds + 1)]
    trials = {run.seed: there[run] for run in runs if run in there}
    reached = {seed: found for seed, trial in trials.items() if (found := reach(trial.evaluations, points.accuracy))}
    taken: dict[str, list[float]] = {name: [] for name in MEASURES}
    for seed, at in reached.items():
        down = _down(trials[seed], at)
        taken["time_s"].append(at.time_s)
        taken["ingress_bytes"].append(at.ingress_bytes)
        taken["egress_bytes"].append(down)
        taken["traffic_bytes"].append(at.ingress_bytes + down)
        taken["cpu_s"].append(_cpu_s(trials[seed], costs))
    is_whole = 0 < len(reached) == len(trials)
    spreads = {name: Spread.of(values) if is_whole else None for name, values in taken.items()}
    first = next(iter(trials.values()), None)
    bests = [trial.summary.best_accuracy for trial in trials.values() if trial.summary.best_accuracy is not None]
    return PointResult(
        point=points.name(point),
        method=point.method,
        values=dict(zip((axis.key for axis in points.axes), point.values, strict=True)),
        command=cells.recipe(runs[0]).command,
        seeds=tuple(trials),
        reached=len(reached),
        updates=sum(at.updates for at in reached.values()) / len(reached) if reached else None,
        best_accuracy=max(bests, default=None),
        gradient_s=first.plan.nodes[0].task.gradient_time_s if first else None,
        compression_s=first.plan.nodes[0].task.compression_time_s if first else None,
        restore_s=_restore_s(first, costs) if first else None,
        **spreads,
    )


def _down(trial: FinishedTrial, at: Reached) -> int:
    """What had gone down; what an older edgebed kept says it of the whole trial, which ended there."""
    return trial.summary.egress_payload_bytes or 0 if at.egress_bytes is None else at.egress_bytes


def _cpu_s(trial: FinishedTrial, costs: Costs) -> float:
    workers = [node for node in trial.plan.nodes if node.role == "worker"]
    task, made = workers[0].task, updates_made(trial)
    batches = sum(map(batches_a_push, workers)) / len(workers)
    if trial.batches is not None:  # who has fewer of them may have pushed more often
        batches = trial.batches / max(1, made)
    return cpu_seconds(made, batches, task.gradient_time_s, task.compression_time_s, _restore_s(trial, costs))


def _restore_s(trial: FinishedTrial, costs: Costs) -> float:
    node = trial.plan.nodes[0]
    cost = costs.compression(node.task, node.method)
    return cost.restore_s if cost else 0.0


def _wins(points: Points, results: Mapping[Point, PointResult]) -> Sequence[WinAt]:
    found = []
    for values in dict.fromkeys(point.values for point in points.all):
        there = {method: results[Point(method, values)] for method in points.methods}
        found.append(
            WinAt(
                values=dict(zip((axis.key for axis in points.axes), values, strict=True)),
                time=win({method: point.time_s for method, point in there.items()}),
                not_run=sum(not point.was_run for point in there.values()),
            )
        )
    return found


def break_even_rows(
    axes: Sequence[Axis], methods: Collection[str], results: Mapping[Point, PointResult]
) -> Sequence[BreaksEven]:
    """Along the first axis that is a rate, at every value of the others."""
    place = next((place for place, axis in enumerate(axes) if axis.is_rate), None)
    if place is None:
        return []
    needed: dict[str, dict[str, list[float | None]]] = {}
    for point, result in results.items():
        others = [
            f"{axis.label} {value}"
            for k, (axis, value) in enumerate(zip(axes, point.values, strict=True))
            if k != place
        ]
        times = needed.setdefault(", ".join(others), {method: [] for method in methods})
        times[point.method].append(result.time_s.mean if result.time_s else None)
    rates = axes[place].rates_bit_s
    rows = [
        BreaksEven(
            where=crossing.where,
            below=crossing.at.below,
            above=crossing.at.above,
            rate_bit_s=crossing.at.rate,
            is_lead=leads(crossing.at, rates, needed[crossing.where]),
        )
        for crossing in crossings(rates, needed)
    ]
    return sorted(rows, key=lambda row: not row.is_lead)  # stable
