"""From finished runs to the result of a sweep: what each point took to reach the level, and who wins where.

Quantities are counted until the mean of `window` evaluations first reached the level, at which a run ends:

- time: since training started, virtual;
- up: payload of the pushes that made the model; down: payload of the models handed out for it; traffic: both together;
- CPU seconds: of every update that workers made, applied or not, (mini-batches x a gradient's time + its compression's
  time) + restoring it at the server. Times are those of the plan, on a core of compute speed 1; restoring is as it was
  measured. Applying an update, evaluating, and compressing models on their way down are not counted.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import msgspec

from edgebed.algorithms.registry import notes_of, whole_batches_a_push
from edgebed.core.measures.measure import SECONDS, Measure
from edgebed.core.measures.task import TEST, TaskMeasure
from edgebed.core.measures.trial import MEASURES as OF_TRIALS
from edgebed.core.quantities import mean_of_text
from edgebed.studies.cells.cells import CellRun, CellSpecs
from edgebed.studies.cells.collect_results import cache_finished
from edgebed.studies.cells.result_cache import ResultCache, RunResult
from edgebed.studies.cells.run_index import RunIndex
from edgebed.studies.measures import CostToLevel, Fall, Level, best_average, fall_of, reach
from edgebed.studies.sweep.break_even import undecided
from edgebed.studies.sweep.costs import Costs
from edgebed.studies.sweep.points import Axis, Point, SweepPlan
from edgebed.studies.sweep.winners import Spread, Win, crossings, is_coarse, leads, win
from edgebed.studies.trial_result import FinishedTrial

CPU = Measure(SECONDS, "less", compared="CPU", name="cpu_s")
MEASURES = {name: OF_TRIALS[name] for name in ("time_s", "ingress_bytes", "egress_bytes", "traffic_bytes")} | {
    CPU.name: CPU
}


class PointResult(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a method at one value of each axis."""

    point: str
    method: str
    values: dict[str, str]
    """Values by the axes' keys."""
    command: str
    """The ordinary command that runs it with the first seed."""
    seeds: tuple[int, ...]
    """Seeds with which the point was run."""
    reached: int
    """Number of seeds that reached the level."""
    diverged: int = 0
    """Number of seeds that diverged."""
    updates: float | None
    """Mean number of updates, of the seeds that reached the level."""
    passes: float | None = None
    """How many times they stand for all training examples."""
    best: float | None
    """The best value over all seeds: a mean over as many evaluations, on the test part."""
    final: float | None = None
    """Mean of the last models' values on the test part, over seeds."""
    fell: tuple[Fall, ...] = ()
    """What seeds reached and did not keep, a value for each that did not."""
    gives_up: int
    """Updates after which a run ends that has not reached the level."""
    spacing: float
    """Mean share of the updates since the previous evaluation, of the seeds that reached the level."""
    times: dict[int, float]
    """Seconds by seed; empty where not all seeds reached the level."""
    traffic: dict[int, float] = {}
    """Bytes up and down by seed; empty where not all seeds reached the level."""
    time_s: Spread | None
    """Seconds over seeds; None here and below: not all seeds reached the level."""
    ingress_bytes: Spread | None
    egress_bytes: Spread | None
    traffic_bytes: Spread | None
    cpu_s: Spread | None
    gradient_s: float | None
    """Seconds of a gradient that the point's runs assumed; None where it was not run."""
    compression_s: float | None
    restore_s: float | None

    @property
    def was_run(self) -> bool:
        """Whether the point was run with one seed or more."""
        return bool(self.seeds)


class WinAt(msgspec.Struct, frozen=True, kw_only=True):
    """The winners at one value of each axis."""

    values: dict[str, str]
    time: Win | None
    """The fastest of the methods that were run; None: none reached the level."""
    traffic: Win | None = None
    """The method with fewest bytes up and down; None: none reached the level."""
    not_run: int = 0
    """Number of methods that were not run there."""


class BreakEvenResult(msgspec.Struct, frozen=True, kw_only=True):
    """A rate at which two methods take as long."""

    where: str
    below: str
    """The method that is faster at lower rates."""
    above: str
    rate_bit_s: float
    is_lead: bool
    """Whether these two are the fastest of all there, so that the lead changes."""
    is_coarse: bool = False
    """Whether, at a rate next to this one that was run, they are closer than two evaluations of either."""
    between_bit_s: tuple[float, float] | None = None
    """Rates between which seeds do not tell the two apart, from the lowest that was run to the highest; None: one seed.
    """


class SweepResult(msgspec.Struct, frozen=True, kw_only=True):
    """All that a sweep has found."""

    scenario: str
    question: str
    measure: TaskMeasure
    """What each run is to reach a value of."""
    value: float
    window: int
    """Number of evaluations whose mean must reach the value."""
    selects_by: str = TEST
    """The part of the data that it is reached on."""
    methods: tuple[str, ...]
    axes: dict[str, tuple[str, ...]]
    """Values of each axis, by key."""
    seeds: int
    points: tuple[PointResult, ...]
    wins: tuple[WinAt, ...]
    break_even: tuple[BreakEvenResult, ...]
    """Rates at which two methods take as long; empty, too, where no axis is a rate."""
    costs: Costs
    runs: tuple[RunResult, ...]
    notes: tuple[str, ...] = ()
    """Notes on methods that a reader must know."""

    @property
    def level_text(self) -> str:
        """What is to be reached, in words, with over how many evaluations the mean is."""
        on = "" if self.selects_by == TEST else f" on the {self.selects_by} part"
        return f"{self.measure.level_told(self.value)}{on}{mean_of_text(self.window)}"


def evaluate_sweep(
    points: SweepPlan, cells: CellSpecs, root: Path, cache: ResultCache, costs: Costs, tell: Callable[[str], None]
) -> SweepResult:
    """Evaluate all points on the finished runs in `root`, and those that are kept; what is read is put into `cache`."""
    wanted = points.runs
    cache_finished(cells, RunIndex(root), cache, wanted, tell)
    there = {run: cache.trial(run) for run in wanted if cache.find(run)}
    results = {point: _point(points, cells, point, there, costs) for point in points.all}
    runs = [cached.run for run in there if (cached := cache.find(run))]
    return SweepResult(
        scenario=points.scenario.name,
        question=points.scenario.question,
        measure=points.measure,
        value=points.level.value,
        window=points.level.window,
        selects_by=points.selects_by,
        methods=points.methods,
        axes={axis.key: axis.values for axis in points.axes},
        seeds=points.seeds,
        points=tuple(results.values()),
        wins=tuple(_wins(points, results)),
        break_even=tuple(break_even_rows(points.axes, points.methods, results)),
        costs=costs,
        runs=tuple(runs),
        notes=_notes(points),
    )


def _notes(points: SweepPlan) -> tuple[str, ...]:
    methods = [points.scenario.training[name].method for name in points.methods]
    return tuple(dict.fromkeys(note for method in methods for note in notes_of(method)))


def cpu_seconds(updates: int, batches: float, gradient_s: float, compression_s: float, restore_s: float) -> float:
    """CPU seconds of so many updates: gradients and compression at the workers, restoring at the server. Pure."""
    return updates * (batches * gradient_s + compression_s + restore_s)


def updates_made(trial: FinishedTrial) -> int:
    """Updates that all workers made, whatever became of them; those that the end cut off are not counted."""
    summary = trial.summary
    if summary.accounting is None or summary.shards:
        return summary.updates
    return summary.accounting.total.begun - summary.accounting.total.unfinished


def _point(
    points: SweepPlan, cells: CellSpecs, point: Point, there: Mapping[CellRun, FinishedTrial], costs: Costs
) -> PointResult:
    runs = [CellRun(points.name(point), 1.0, seed) for seed in range(1, points.seeds + 1)]
    trials = {run.seed: there[run] for run in runs if run in there}
    level = Level(points.measure, points.level.value, points.level.window, points.selects_by, is_named=True)
    reached = {
        seed: found
        for seed, trial in trials.items()
        if (found := reach(trial.evaluations, level.value, level.window, level.measure))
    }
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
    bests = [
        best
        for trial in trials.values()
        if (best := best_average(trial.evaluations, level.window, level.measure)) is not None
    ]
    finals = [
        final
        for trial in trials.values()
        if (final := trial.evaluations.of_last_model().get(level.measure.name)) is not None
    ]
    updates = fmean(at.updates for at in reached.values()) if reached else None
    return PointResult(
        point=points.name(point),
        method=point.method,
        values=dict(zip((axis.key for axis in points.axes), point.values, strict=True)),
        command=cells.spec(runs[0]).command,
        seeds=tuple(trials),
        reached=len(reached),
        diverged=sum(trial.summary.outcome == "diverged" for trial in trials.values()),
        updates=updates,
        passes=updates * first.plan.server.epochs_a_push if updates and first else None,
        best=level.measure.best(bests) if bests else None,
        final=fmean(finals) if finals else None,
        fell=tuple(fall for trial in trials.values() if (fall := fall_of(trial.evaluations, level))),
        gives_up=cells.spec(runs[0]).updates,
        spacing=sum(at.since for at in reached.values()) / len(reached) if reached else 0.0,
        times=dict(zip(reached, taken["time_s"], strict=True)) if is_whole else {},
        traffic=dict(zip(reached, taken["traffic_bytes"], strict=True)) if is_whole else {},
        gradient_s=first.plan.nodes[0].task.gradient_time_s if first else None,
        compression_s=first.plan.nodes[0].task.compression_time_s if first else None,
        restore_s=_restore_s(first, costs) if first else None,
        **spreads,
    )


def _down(trial: FinishedTrial, at: CostToLevel) -> int:
    """Bytes that went down; of shards, whose evaluations have none, those of the whole trial."""
    return trial.summary.egress_payload_bytes or 0 if at.egress_bytes is None else at.egress_bytes


def _cpu_s(trial: FinishedTrial, costs: Costs) -> float:
    workers = [node for node in trial.plan.nodes if node.role == "worker"]
    task, made = workers[0].task, updates_made(trial)
    batches = sum(map(whole_batches_a_push, workers)) / len(workers)
    if trial.batches is not None:  # a worker with fewer may have pushed more often
        batches = trial.batches / max(1, made)
    return cpu_seconds(made, batches, task.gradient_time_s, task.compression_time_s, _restore_s(trial, costs))


def _restore_s(trial: FinishedTrial, costs: Costs) -> float:
    node = trial.plan.nodes[0]
    cost = costs.compression(node.task, node.method)
    return cost.restore_s if cost else 0.0


def _wins(points: SweepPlan, results: Mapping[Point, PointResult]) -> Sequence[WinAt]:
    found = []
    for values in dict.fromkeys(point.values for point in points.all):
        there = {method: results[Point(method, values)] for method in points.methods}
        spacing = {method: point.spacing for method, point in there.items()}
        found.append(
            WinAt(
                values=dict(zip((axis.key for axis in points.axes), values, strict=True)),
                time=win({method: point.times for method, point in there.items()}, spacing),
                traffic=win({method: point.traffic for method, point in there.items()}, spacing),
                not_run=sum(not point.was_run for point in there.values()),
            )
        )
    return found


def break_even_rows(
    axes: Sequence[Axis], methods: Collection[str], results: Mapping[Point, PointResult]
) -> Sequence[BreakEvenResult]:
    """Break-even rates along the first axis that is a rate, at every value of the others."""
    place = next((place for place, axis in enumerate(axes) if axis.is_rate), None)
    if place is None:
        return []
    needed: dict[str, dict[str, list[float | None]]] = {}
    spacing: dict[str, dict[str, list[float]]] = {}
    by_seed: dict[str, dict[str, list[dict[int, float]]]] = {}
    for point, result in results.items():
        others = [
            f"{axis.label} {value}"
            for k, (axis, value) in enumerate(zip(axes, point.values, strict=True))
            if k != place
        ]
        where = ", ".join(others)
        times = needed.setdefault(where, {method: [] for method in methods})
        times[point.method].append(result.time_s.mean if result.time_s else None)
        by_seed.setdefault(where, {method: [] for method in methods})[point.method].append(result.times)
        spacing.setdefault(where, {method: [] for method in methods})[point.method].append(result.spacing)
    rates = axes[place].rates_bit_s
    rows = [
        BreakEvenResult(
            where=crossing.where,
            below=crossing.at.below,
            above=crossing.at.above,
            rate_bit_s=crossing.at.rate,
            is_lead=leads(crossing.at, rates, needed[crossing.where]),
            is_coarse=is_coarse(crossing.at, rates, needed[crossing.where], spacing[crossing.where]),
            between_bit_s=undecided(
                rates,
                by_seed[crossing.where][crossing.at.below],
                by_seed[crossing.where][crossing.at.above],
                crossing.at.rate,
            ),
        )
        for crossing in crossings(rates, needed)
    ]
    return sorted(rows, key=lambda row: not row.is_lead)  # stable
