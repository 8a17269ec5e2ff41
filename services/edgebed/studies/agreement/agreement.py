"""Whether runtimes agree: the same trial with the same seeds in several of them, the first of which is the reference.

Runs of one runtime differ from seed to seed; that is the measure of what a difference between runtimes means. For each
quantity the question is: does a runtime, over all seeds, differ from the reference by more than two runs of one runtime
do whose seeds differ? What two seeds differ by is the root mean square over all pairs of seeds within either of the two
runtimes. It does not grow with the number of seeds, while the part of chance in what the runtimes differ by shrinks:
more seeds make the judgement sharper, never milder.

    quantity                       what the runtimes differ by, over all seeds           allowed at least
    the headline, in each part of      root mean square, over the versions evaluated, of     0
      the training                 the mean difference between runs of the same seed
    entries per push               distance of the distributions, relative to the mean   0
    bytes per push                 the same                                              NEGLIGIBLE_BYTES
    staleness                      Kolmogorov-Smirnov distance of the distributions      NEGLIGIBLE_STALENESS

The distance of entries and of bytes is how far apart the pushes of two samples are on average when both are put in
order of size (the first Wasserstein distance): it sees a shifted mean and a changed shape. A distribution is that of
all updates of all seeds.

Three seeds are few. Drawn at random, with four to seven independent evaluations in a part: where nothing differs but
chance, the part is called different in 5 to 2 % of the cases; a difference of one standard deviation over seeds is
found in 30 to 25 %, of one and a half in 70 to 77 %, of two in 95 to 98 %. With two seeds 19 to 13 % are wrong, with
five at most 0.4 %. Runs of one seed have model and data in common in all runtimes, which makes errors rarer.

Pure: series in, numbers and verdicts out. Shares are fractions. Shapes: S seeds, V versions, U updates.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.core.errors import ScenarioError
from edgebed.core.measures.task import TaskMeasure
from edgebed.core.quantities import count_text
from edgebed.journal.series import Floats, Ints, Series
from edgebed.studies.statistics import ConfidenceInterval, interval

SEEDS_MIN = 2
"""Least number of seeds: one seed has no spread."""
SEEDS_TO_TELL = 3
"""Number of seeds from which on agreement is stated: with two, what is allowed rests on one pair of seeds in each
runtime, and nearly everything would agree."""
NEGLIGIBLE_BYTES = 0.01
"""Relative difference in the mean bytes of a push that is negligible: compressed positions take a little more or less
room, depending on which they are."""
NEGLIGIBLE_STALENESS = 0.01
"""Distance of staleness that is negligible: one update in a hundred at the other side of any value, since the time of a
gradient is a model in the simulation."""
PARTS_MAX = 3
"""Number of parts of a training that are judged by themselves, the beginning, the middle and the end: seeds differ most
at the beginning."""
PART_VERSIONS_MIN = 4

Verdict = Literal["agrees", "differs", "too few seeds to tell"]
GRAVEST: tuple[Verdict, ...] = ("differs", "too few seeds to tell", "agrees")
Runs = Mapping[str, Mapping[int, Series]]
"""The series of one trial by runtime, the reference first, and by seed."""
Values = NDArray[Any]
Distance = Callable[[Values, Values], float]


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The judgement on one quantity of one runtime against the reference."""

    measure: str
    runtime: str
    versions: tuple[int, int] | None = None
    """The first and the last version of the part, for the headline."""
    difference: float
    """Difference from the reference. The headline: in its unit; entries, bytes: relative to the reference's
    mean; staleness: from 0 to 1."""
    allowed: float
    """Difference that is allowed, in the unit of `difference`."""
    between_seeds: float
    """Difference of two seeds of one runtime; `allowed` unless that is negligible."""
    verdict: Verdict


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """How the headline of one version differs from the reference's, run by run of the same seed."""

    mean: float
    """Mean of the runtime over seeds."""
    spread: float
    """Standard deviation of the runtime over seeds."""
    difference: ConfidenceInterval


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """The headline of one version of the model in all runtimes."""

    version: int
    mean: float
    """Mean of the reference over seeds."""
    spread: float
    """Standard deviation of the reference over seeds."""
    others: dict[str, Difference]


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """One runtime in numbers that are not judged: means over seeds; for the staleness, over all updates."""

    final: ConfidenceInterval
    """The headline of the last model."""
    diverged: int = 0
    """Number of seeds that diverged."""
    updates_per_s: ConfidenceInterval
    entries: ConfidenceInterval
    """Entries of a push."""
    bytes: ConfidenceInterval
    staleness_mean: float
    staleness_median: float
    staleness_p90: float
    staleness_p99: float


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """The agreement of one trial in several runtimes."""

    trial: str
    headline: TaskMeasure
    """What the task measures first, which is judged."""
    reference: str
    seeds: tuple[int, ...]
    verdict: Verdict
    judgements: tuple[Judgement, ...]
    figures: dict[str, Figures]
    versions: tuple[Version, ...]
    """Versions that every run has evaluated, without the initial model."""
    versions_left_out: int = 0
    """Number of versions that some runs have evaluated, but not all."""


def agreement(trial: str, runs: Runs) -> Agreement:
    """Compare every runtime with the first, over the seeds that all of them have.

    Raises ScenarioError where there is nothing to compare: fewer than two runtimes, fewer than SEEDS_MIN seeds, a run
    without updates, or no version that all runs have evaluated.
    """
    seeds = sorted(set.intersection(*(set(by_seed) for by_seed in runs.values()))) if runs else []
    if len(runs) < 2 or len(seeds) < SEEDS_MIN:
        raise ScenarioError(
            f"trial {trial}: {count_text(len(runs), 'runtime')} with {count_text(len(seeds), 'seed')} in common; "
            "comparing takes two runtimes, and two seeds in each to know what a difference means"
        )
    reference, *others = runs
    kept = {runtime: [by_seed[seed] for seed in seeds] for runtime, by_seed in runs.items()}
    _check_updates(trial, kept, seeds)
    headline = kept[reference][0].evaluations.headline
    versions, left_out = _common_versions(trial, kept)
    values = {runtime: _values(series, versions) for runtime, series in kept.items()}
    judgements = tuple(
        _if_told(judgement, len(seeds))
        for runtime in others
        for judgement in (
            *_judge_headline(headline.name, runtime, versions, values[reference], values[runtime]),
            _judge_pushes("entries", runtime, kept[reference], kept[runtime]),
            _judge_pushes("bytes", runtime, kept[reference], kept[runtime]),
            _judge_staleness(runtime, kept[reference], kept[runtime]),
        )
    )
    return Agreement(
        trial=trial,
        headline=headline,
        reference=reference,
        seeds=tuple(seeds),
        verdict=overall(judgements),
        judgements=judgements,
        figures={runtime: _figures(series) for runtime, series in kept.items()},
        versions=tuple(_versions(versions, values)),
        versions_left_out=left_out,
    )


def overall(judged: Iterable[Judgement | Agreement]) -> Verdict:
    """The verdict on several judgements: `agrees` if each one does, `differs` if one does."""
    verdicts = {one.verdict for one in judged}
    return next((verdict for verdict in GRAVEST if verdict in verdicts), "agrees")


def _if_told(judgement: Judgement, seeds: int) -> Judgement:
    """The judgement as far as so many seeds allow: a difference takes any number, agreement SEEDS_TO_TELL."""
    if judgement.verdict == "differs" or seeds >= SEEDS_TO_TELL:
        return judgement
    return msgspec.structs.replace(judgement, verdict="too few seeds to tell")


def kolmogorov_smirnov(a: Values, b: Values) -> float:
    """The largest difference between the shares of two samples, (U,) and (U',), that lie at or below any value."""
    _, below_a, below_b = _shares_below(a, b)
    return float(np.abs(below_a - below_b).max())


def wasserstein(a: Values, b: Values) -> float:
    """How far apart the values of two samples are on average when both are put in order of size, in their unit."""
    values, below_a, below_b = _shares_below(a, b)
    return float(np.sum(np.abs(below_a - below_b)[:-1] * np.diff(values)))


def _shares_below(a: Values, b: Values) -> tuple[Values, Floats, Floats]:
    """The values of both samples, each once, and the share of each sample at or below them."""
    values = np.unique(np.concatenate([a, b]))
    return (
        values,
        np.searchsorted(np.sort(a), values, side="right") / len(a),
        np.searchsorted(np.sort(b), values, side="right") / len(b),
    )


def _judge_headline(measure: str, runtime: str, versions: Ints, ours: Floats, theirs: Floats) -> Iterable[Judgement]:
    """Judge the headline in each part; `ours` and `theirs` are (S, V): the reference and the runtime."""
    parts = max(1, min(PARTS_MAX, len(versions) // PART_VERSIONS_MIN))
    for part in np.array_split(np.arange(len(versions)), parts):
        difference = _root_mean_square((theirs - ours)[:, part].mean(axis=0))
        between = _root_mean_square(np.concatenate([a - b for a, b in _pairs(ours[:, part], theirs[:, part])]))
        ends = int(versions[part[0]]), int(versions[part[-1]])
        yield _judge(measure, runtime, difference, between, versions=ends)


def _judge_pushes(
    measure: Literal["entries", "bytes"], runtime: str, ours: Sequence[Series], theirs: Sequence[Series]
) -> Judgement:
    samples = [getattr(series.updates, measure) for series in ours]
    others = [getattr(series.updates, measure) for series in theirs]
    mean = float(np.concatenate(samples).mean()) or 1.0  # pushes of no entries at all differ by entries
    difference, between = _distances(samples, others, wasserstein)
    least = NEGLIGIBLE_BYTES if measure == "bytes" else 0.0
    return _judge(measure, runtime, difference / mean, between / mean, least)


def _judge_staleness(runtime: str, ours: Sequence[Series], theirs: Sequence[Series]) -> Judgement:
    samples, others = [each.updates.staleness for each in ours], [each.updates.staleness for each in theirs]
    difference, between = _distances(samples, others, kolmogorov_smirnov)
    return _judge("staleness", runtime, difference, between, NEGLIGIBLE_STALENESS)


def _distances(ours: Sequence[Values], theirs: Sequence[Values], distance: Distance) -> tuple[float, float]:
    """Distance between all updates of two runtimes, and root mean square distance between two seeds of one."""
    between = [distance(a, b) for a, b in _pairs(ours, theirs)]
    return distance(np.concatenate(ours), np.concatenate(theirs)), _root_mean_square(np.array(between))


def _pairs(ours: Iterable[Values], theirs: Iterable[Values]) -> Iterable[tuple[Values, Values]]:
    """All pairs of seeds within either runtime."""
    return itertools.chain(itertools.combinations(ours, 2), itertools.combinations(theirs, 2))


def _judge(
    measure: str,
    runtime: str,
    difference: float,
    between: float,
    least: float = 0.0,
    versions: tuple[int, int] | None = None,
) -> Judgement:
    allowed = max(between, least)
    return Judgement(
        measure=measure,
        runtime=runtime,
        versions=versions,
        difference=difference,
        allowed=allowed,
        between_seeds=between,
        verdict="agrees" if difference <= allowed else "differs",
    )


def _check_updates(trial: str, kept: Mapping[str, Sequence[Series]], seeds: Sequence[int]) -> None:
    for runtime, each in kept.items():
        for seed, series in zip(seeds, each, strict=True):
            if not len(series.updates):
                raise ScenarioError(
                    f"trial {trial}: in {runtime}, seed {seed}, no update was applied; let it run longer"
                )


def _common_versions(trial: str, kept: Mapping[str, Sequence[Series]]) -> tuple[Ints, int]:
    """(V,) versions that every run has evaluated, and the number of others; the initial model is the same in all."""
    evaluated = [set(series.evaluations.version.tolist()) - {0} for each in kept.values() for series in each]
    common = sorted(set.intersection(*evaluated))
    if not common:
        raise ScenarioError(
            f"trial {trial}: no version of the model was evaluated in all runs; write evaluation.every in updates, "
            "e.g. 100 updates, and let the trial make that many"
        )
    return np.array(common), len(set.union(*evaluated)) - len(common)


def _values(each: Sequence[Series], versions: Ints) -> Floats:
    """(S, V) the headline of these versions; for a version evaluated twice, the last."""
    found = [dict(zip(s.evaluations.version.tolist(), s.evaluations.values.tolist(), strict=True)) for s in each]
    return np.array([[by_version[version] for version in versions.tolist()] for by_version in found])


def _versions(versions: Ints, values: Mapping[str, Floats]) -> Iterable[Version]:
    reference, *others = values
    ours = values[reference]
    for index, version in enumerate(versions.tolist()):
        yield Version(
            version=version,
            mean=float(ours[:, index].mean()),
            spread=float(ours[:, index].std(ddof=1)),
            others={
                runtime: Difference(
                    mean=float(values[runtime][:, index].mean()),
                    spread=float(values[runtime][:, index].std(ddof=1)),
                    difference=interval((values[runtime] - ours)[:, index].tolist()),
                )
                for runtime in others
            },
        )


def _figures(each: Sequence[Series]) -> Figures:
    staleness = np.concatenate([series.updates.staleness for series in each])
    median, p90, p99 = np.percentile(staleness, [50, 90, 99])
    return Figures(
        final=interval([float(series.evaluations.values[-1]) for series in each]),
        diverged=sum(series.outcome == "diverged" for series in each),
        updates_per_s=interval([len(series.updates) / series.trained_s for series in each]),
        entries=interval([float(series.updates.entries.mean()) for series in each]),
        bytes=interval([float(series.updates.bytes.mean()) for series in each]),
        staleness_mean=float(staleness.mean()),
        staleness_median=float(median),
        staleness_p90=float(p90),
        staleness_p99=float(p99),
    )


def _root_mean_square(values: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
