"""Whether virtual time ranks methods as live runs do, and how far it is off: from the trials of a study; pure.

    trials ---> measures by scenario, method and seed ---> places: simulated beside live, tested for equivalence
                                                      ---> pairs of methods: order live, order simulated ---> tau

A pair of methods counts for a measure where the live seeds tell the two apart: where the 95 % t interval of their
difference, seed by seed (of the logarithm of their ratio for time and bytes), excludes nothing between them. Its order
in the simulation is that of the means over the same seeds.

All measures are of the same number of updates, the scenario's: time from the start of training until the server has
applied them, bytes of the pushes and of the models sent until then, mean staleness, and the mean of the accuracy over
these updates, since the accuracy at the end of so short a training is mostly chance.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import msgspec
import numpy as np

from edgebed.journal.columns.evaluations import Evaluations
from edgebed.journal.series import Ints, Series
from edgebed.studies.agreement.agreement import kolmogorov_smirnov
from edgebed.studies.statistics import paired, paired_ratio
from validation.ranking.drawn_again import DrawnAgain, drawn_again_of
from validation.ranking.null_model import LivePair, NullModel, Power, Times, null_model, power_of
from validation.ranking.preregistration import Stated
from validation.ranking.rank_statistics import (
    Equivalence,
    Error,
    Tau,
    equivalence,
    error_of,
    pooled_tau,
)

Measure = Literal["time", "bytes up", "bytes down", "accuracy", "staleness"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
RATIOS: tuple[Measure, ...] = ("time", "bytes up", "bytes down")
"""Measures of which errors are shares; those of the others are differences."""
RANKED: tuple[Measure, ...] = ("time", "bytes up", "bytes down", "accuracy")
"""Measures by which methods are put in order. Less staleness is not better by itself."""
DISTANCE = "staleness, distance"
"""Name of the error that is the Kolmogorov-Smirnov distance of the staleness of all updates."""

PAIRS_MIN = 10
"""Pairs told apart by their time from which on they are judged: a coin has ten in order once in a thousand times."""

RankVerdict = Literal["ranks as live", "does not rank as live", "too few pairs to tell"]


class Values(NamedTuple):
    """What is measured of one trial."""

    measures: Mapping[Measure, float]
    staleness: Ints
    """The staleness of each update."""


Trials = Mapping[str, Mapping[str, Mapping[int, Values]]]
"""The trials of one runtime by scenario, method and seed."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One measure of one method in one scenario, means over seeds that both runtimes have."""

    simulated: float
    live: float
    error: float
    """Simulated over live, less one, for time and bytes (geometric mean over seeds); else the difference."""
    test: Equivalence
    """The equivalence test over seeds; its ends are errors, too."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One method in one scenario."""

    scenario: str
    method: str
    seeds: tuple[int, ...]
    measures: dict[Measure, Compared]
    staleness_distance: float
    """Kolmogorov-Smirnov distance between the staleness of all updates, live and simulated."""


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two methods of a scenario that the live seeds tell apart by a measure."""

    scenario: str
    measure: Measure
    first: str
    """The method that has less of it live."""
    second: str
    live: float
    """Second over first for time and bytes, else their difference, live; at least 1, or 0."""
    simulated: float
    """Ratio or difference in the simulation, of the same two in the same order."""
    sign: int
    """1: the simulation has them in the same order; -1: turned; 0: it does not tell them apart."""


class OfTrait(msgspec.Struct, frozen=True, kw_only=True):
    """The scenarios with one trait, or the places of one method."""

    scenarios: int
    mean: float
    """Mean error of the time: above 0, the simulation is too slow."""
    median: float
    """Median of the sizes of these errors."""
    largest: float
    pairs: int
    """Pairs of methods that the live seeds tell apart by their time."""
    turned: int
    """Pairs of these that the simulation does not put in this order."""


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a ranking study."""

    stated: Stated
    verdict: RankVerdict
    taus: dict[Measure, Tau]
    tests: dict[Measure, Equivalence]
    """Equivalence tests of the mean error over scenarios."""
    null: NullModel | None
    """What a one-line estimate comes to, by time; None where there is none of these scenarios."""
    power: tuple[Power, ...]
    """What tau of the time would be with errors of some sizes."""
    errors: dict[str, Error]
    """Sizes of errors over all places, by measure, and of the distances of the staleness."""
    traits: dict[str, OfTrait]
    methods: dict[str, OfTrait]
    places: tuple[Place, ...]
    wrong: tuple[Pair, ...]
    """Pairs that the simulation has turned, or does not tell apart."""
    live_trials: int
    """Live trials that count."""
    links: dict[str, int]
    """Number of these by what held their links; under an empty name those of which that was not recorded."""
    drawn_again: tuple[str, ...]
    """Live trials whose conditions did not hold, and why; each was run again, as often as was stated."""
    again: DrawnAgain
    """The times of these."""
    left_out: tuple[str, ...]
    """What is not compared, a sentence each."""

    @property
    def agrees(self) -> bool:
        """Whether virtual time ranks as live, and every mean error is within its margin."""
        return self.verdict == "ranks as live" and all(test.verdict == "equivalent" for test in self.tests.values())


def values_of(series: Series, updates: int) -> Values:
    """The measures of a trial of at least so many updates."""
    made, last = series.updates, updates - 1
    return Values(
        {
            "time": float(made.t[last]),
            "bytes up": float(made.ingress_bytes[last]),
            "bytes down": float(made.egress_bytes[last]),
            "accuracy": _mean_accuracy(series.evaluations, updates),
            "staleness": float(made.staleness[:updates].mean()),
        },
        made.staleness[:updates],
    )


def _mean_accuracy(evaluations: Evaluations, updates: int) -> float:
    """The mean over these updates of the accuracy, which is a straight line between two evaluations."""
    return float(np.interp(np.arange(updates + 1), evaluations.version, evaluations.values).mean())


def rank(
    stated: Stated,
    simulated: Trials,
    live: Trials,
    *,
    estimates: Times | None = None,
    links: Mapping[str, int] | None = None,
    drawn_again: Iterable[str] = (),
    again: DrawnAgain | None = None,
    left_out: Iterable[str] = (),
) -> Ranking | None:
    """Compare all scenarios and methods that both runtimes have two seeds of; None where there is none.

    `estimates` are the null model's times; `links`, `again` and the rest are passed on.
    """
    places = tuple(_places(stated, simulated, live))
    if not places:
        return None
    pairs = [pair for scenario in live for pair in _pairs(scenario, simulated, live, places)]
    taus = {measure: tau_of(pair for pair in pairs if pair.measure == measure) for measure in RANKED}
    by_time = [LivePair(p.scenario, p.first, p.second, p.live) for p in pairs if p.measure == "time"]
    return Ranking(
        stated=stated,
        verdict=_verdict(taus, stated.tau_min),
        taus=taus,
        tests={measure: _test(places, measure, stated.margins[measure]) for measure in MEASURES},
        null=null_model(_live_times(places), by_time, estimates or {}),
        power=power_of(by_time),
        errors=_errors(places),
        traits=_by_trait(places, pairs, stated.drawn),
        methods=_by_method(places, pairs),
        places=places,
        wrong=tuple(pair for pair in pairs if pair.sign <= 0),
        live_trials=sum(len(seeds) for methods in live.values() for seeds in methods.values()),
        links=dict(links or {}),
        drawn_again=tuple(drawn_again),
        again=again or drawn_again_of(()),
        left_out=tuple(left_out),
    )


def _live_times(places: Iterable[Place]) -> dict[str, dict[str, float]]:
    """The mean live time by scenario and method."""
    found: dict[str, dict[str, float]] = {}
    for place in places:
        found.setdefault(place.scenario, {})[place.method] = place.measures["time"].live
    return found


def tau_of(pairs: Iterable[Pair]) -> Tau:
    """Tau of these pairs, pooled over their scenarios."""
    by_scenario: dict[str, list[int]] = {}
    for pair in pairs:
        by_scenario.setdefault(pair.scenario, []).append(pair.sign)
    return pooled_tau(list(by_scenario.values()))


def _verdict(taus: Mapping[Measure, Tau], tau_min: float) -> RankVerdict:
    found = [tau.tau for tau in taus.values() if tau.tau is not None]
    if taus["time"].pairs < PAIRS_MIN:
        return "too few pairs to tell"
    return "ranks as live" if min(found) >= tau_min else "does not rank as live"


def _places(stated: Stated, simulated: Trials, live: Trials) -> Iterator[Place]:
    for scenario, methods in live.items():
        for method, theirs in methods.items():
            ours = simulated.get(scenario, {}).get(method, {})
            seeds = sorted(ours.keys() & theirs.keys())
            if len(seeds) < 2:
                continue
            yield Place(
                scenario=scenario,
                method=method,
                seeds=tuple(seeds),
                measures={
                    measure: _compared(
                        measure, _by_seed(ours, measure, seeds), _by_seed(theirs, measure, seeds),
                        stated.margins[measure],
                    )
                    for measure in MEASURES
                },
                staleness_distance=kolmogorov_smirnov(
                    *(np.concatenate([each[seed].staleness for seed in seeds]) for each in (ours, theirs))
                ),
            )  # fmt: skip


def _by_seed(trials: Mapping[int, Values], measure: Measure, seeds: Iterable[int]) -> dict[int, float]:
    return {seed: trials[seed].measures[measure] for seed in seeds}


def _compared(measure: Measure, ours: Mapping[int, float], theirs: Mapping[int, float], margin: float) -> Compared:
    if measure in RATIOS:
        logarithms = [math.log(ours[seed] / theirs[seed]) for seed in ours]
        test = _as_shares(equivalence(logarithms, math.log1p(margin)))
    else:
        test = equivalence([ours[seed] - theirs[seed] for seed in ours], margin)
    simulated, live = (float(np.mean(list(each.values()))) for each in (ours, theirs))
    return Compared(simulated=simulated, live=live, error=test.mean, test=test)


def _as_shares(test: Equivalence) -> Equivalence:
    """A test of logarithms of ratios, told as ratios less one."""
    low, high = (None if end is None else math.expm1(end) for end in (test.low, test.high))
    return msgspec.structs.replace(test, mean=math.expm1(test.mean), low=low, high=high, margin=math.expm1(test.margin))


def _test(places: Iterable[Place], measure: Measure, margin: float) -> Equivalence:
    """The equivalence test of a measure over scenarios, each with the mean error of its methods."""
    by_scenario = _grouped(places, measure)
    if measure in RATIOS:
        means = [float(np.mean(np.log1p(errors))) for errors in by_scenario]
        return _as_shares(equivalence(means, math.log1p(margin)))
    return equivalence([float(np.mean(errors)) for errors in by_scenario], margin)


def _grouped(places: Iterable[Place], measure: Measure) -> list[list[float]]:
    """The errors of a measure, those of a scenario together."""
    found: dict[str, list[float]] = {}
    for place in places:
        found.setdefault(place.scenario, []).append(place.measures[measure].error)
    return list(found.values())


def _errors(places: Sequence[Place]) -> dict[str, Error]:
    distances: dict[str, list[float]] = {}
    for place in places:
        distances.setdefault(place.scenario, []).append(place.staleness_distance)
    found: dict[str, Error | None] = {measure: error_of(_grouped(places, measure)) for measure in MEASURES}
    found[DISTANCE] = error_of(list(distances.values()))
    return {name: error for name, error in found.items() if error}


def _pairs(scenario: str, simulated: Trials, live: Trials, places: Sequence[Place]) -> Iterator[Pair]:
    """The pairs of methods of a scenario that the live seeds tell apart, by measure."""
    methods = [place.method for place in places if place.scenario == scenario]
    for (one, other), measure in itertools.product(itertools.combinations(methods, 2), RANKED):
        theirs = [live[scenario][method] for method in (one, other)]
        ours = [simulated[scenario][method] for method in (one, other)]
        seeds = set.intersection(*(set(each) for each in (*theirs, *ours)))
        measured, modelled = ([_by_seed(each, measure, seeds) for each in both] for both in (theirs, ours))
        if (pair := _pair(scenario, measure, (one, other), measured, modelled)) is not None:
            yield pair


def _pair(
    scenario: str,
    measure: Measure,
    methods: tuple[str, str],
    live: Sequence[Mapping[int, float]],
    simulated: Sequence[Mapping[int, float]],
) -> Pair | None:
    """The pair in its live order; None where the live seeds do not tell the two apart."""
    contrast, nothing = (paired_ratio, 1.0) if measure in RATIOS else (paired, 0.0)
    found, modelled = contrast(live[1], live[0]), contrast(simulated[1], simulated[0])
    if found is None or modelled is None or not found.excludes(nothing):
        return None
    if found.mean < nothing:
        return _pair(scenario, measure, methods[::-1], live[::-1], simulated[::-1])
    return Pair(
        scenario=scenario,
        measure=measure,
        first=methods[0],
        second=methods[1],
        live=found.mean,
        simulated=modelled.mean,
        sign=int(np.sign(modelled.mean - nothing)),
    )


def _by_trait(
    places: Sequence[Place], pairs: Sequence[Pair], traits: Mapping[str, Sequence[str]]
) -> dict[str, OfTrait]:
    names = dict.fromkeys(trait for each in traits.values() for trait in each)
    found = {}
    for name in names:
        having = {scenario for scenario, each in traits.items() if name in each}
        found[name] = _of(
            [place for place in places if place.scenario in having],
            [pair for pair in pairs if pair.scenario in having],
        )
    return {name: each for name, each in found.items() if each}


def _by_method(places: Sequence[Place], pairs: Sequence[Pair]) -> dict[str, OfTrait]:
    found = {
        method: _of(
            [place for place in places if place.method == method],
            [pair for pair in pairs if method in (pair.first, pair.second)],
        )
        for method in sorted({place.method for place in places})
    }
    return {name: each for name, each in found.items() if each}


def _of(places: Sequence[Place], pairs: Sequence[Pair]) -> OfTrait | None:
    errors = np.array([place.measures["time"].error for place in places])
    if not len(errors):
        return None
    signs = [pair.sign for pair in pairs if pair.measure == "time"]
    return OfTrait(
        scenarios=len({place.scenario for place in places}),
        mean=float(errors.mean()),
        median=float(np.median(np.abs(errors))),
        largest=float(np.abs(errors).max()),
        pairs=len(signs),
        turned=sum(sign <= 0 for sign in signs),
    )
