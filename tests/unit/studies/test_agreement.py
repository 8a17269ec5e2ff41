"""Runtimes agree where chance alone makes them differ, and do not where staleness, entries, bytes or accuracy do."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from evaluated import evaluations
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from edgebed.core.errors import ScenarioError
from edgebed.journal.columns.updates import Updates
from edgebed.journal.series import Series
from edgebed.studies.agreement.agreement import (
    Agreement,
    Judgement,
    agreement,
    kolmogorov_smirnov,
    overall,
    wasserstein,
)

UPDATES = 2000
EVERY = 100
SPREAD = 0.01
"""Standard deviation of an accuracy, over seeds."""
Change = Callable[[Series], Series]


def series_of(
    accuracy: np.ndarray, staleness: np.ndarray, entries: np.ndarray, sizes: np.ndarray, every: int = EVERY
) -> Series:
    """A training with these evaluations, after the initial model's, and these updates."""
    versions = np.arange(len(accuracy) + 1) * every
    counts = np.arange(1, len(staleness) + 1)
    zeros = np.zeros(len(counts), dtype=np.int64)
    updates = Updates(
        t=counts / 30, worker=zeros, incarnation=zeros, step=zeros, version=counts, base=counts - 1 - staleness,
        staleness=staleness, entries=entries, bits=64 * entries, bytes=sizes, loss=zeros.astype(float),
        ingress_bytes=np.cumsum(sizes), egress_bytes=counts * 1e5,
    )  # fmt: skip
    measured = evaluations(
        versions, np.concatenate([[0.1], accuracy]), t=versions / 30, final=versions == versions[-1],
        ingress_bytes=versions * 10_000, egress_bytes=versions * 1e5, bits=versions * 80_000,
    )  # fmt: skip
    return Series(updates=updates, evaluations=measured, finished_t=float(updates.t[-1]))


def drawn(runtime: str, seed: int) -> Series:
    """A training of 20 workers whose numbers are drawn; those of a runtime and a seed always the same ones."""
    draw = np.random.default_rng([seed, *runtime.encode()])
    effective = 0.95 - 0.6 * np.exp(-np.arange(1, UPDATES // EVERY + 1) / 4)
    entries = np.full(UPDATES, 2117)
    sizes = 9800 + draw.normal(0, 140, UPDATES).astype(np.int64)
    return series_of(
        effective + draw.normal(0, SPREAD, len(effective)), draw.geometric(1 / 20, UPDATES) - 1, entries, sizes
    )


def judged(change: Change = lambda series: series, seeds: int = 3) -> Agreement:
    """The simulation against processes whose series are changed."""
    simulated = {seed: drawn("simulation", seed) for seed in range(1, seeds + 1)}
    live = {seed: change(drawn("process", seed)) for seed in range(1, seeds + 1)}
    return agreement("adacomp", {"simulation": simulated, "process": live})


def differing(found: Agreement) -> list[str]:
    """The quantities that differ; of the accuracy with the part's last version."""
    return [
        judgement.measure if judgement.versions is None else f"{judgement.measure} to {judgement.versions[1]}"
        for judgement in found.judgements
        if judgement.verdict == "differs"
    ]


def updates_changed(**columns: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Changes columns of the updates."""

    def change(series: Series) -> Series:
        new = {name: make(getattr(series.updates, name)).astype(np.int64) for name, make in columns.items()}
        return dataclasses.replace(series, updates=dataclasses.replace(series.updates, **new))

    return change


def accuracy_changed(make: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Change:
    """Changes the accuracy, given it and the versions."""

    def change(series: Series) -> Series:
        found = series.evaluations
        measured = found.measured | {"accuracy": make(found.values, found.version)}
        return dataclasses.replace(series, evaluations=dataclasses.replace(found, measured=measured))

    return change


def test_runtimes_that_differ_by_chance_alone_agree() -> None:
    """Other draws from the same distributions."""
    for seeds in (3, 6):
        assert differing(judged(seeds=seeds)) == []
        assert judged(seeds=seeds).verdict == "agrees"


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda staleness: staleness + 1, id="one more update is always in between"),
        pytest.param(lambda staleness: staleness * 1.2, id="a fifth more of them"),
        pytest.param(lambda staleness: np.full(len(staleness), staleness.mean()), id="always the mean"),
    ],
)
def test_another_staleness_differs(make: Callable[[np.ndarray], np.ndarray]) -> None:
    """Also where its mean is the same."""
    found = judged(updates_changed(staleness=make))

    assert found.verdict == "differs"
    assert differing(found) == ["staleness"]


def test_a_single_entry_less_in_each_push_differs() -> None:
    """Where every push has the same number of them, nothing is allowed."""
    assert differing(judged(updates_changed(entries=lambda entries: entries - 1))) == ["entries"]


def test_bytes_may_differ_by_what_compressed_positions_do_and_no_more() -> None:
    """Half a per cent is the positions' doing; three per cent are not, nor another shape with the same mean."""
    assert differing(judged(updates_changed(bytes=lambda sizes: sizes * 0.995))) == []
    assert differing(judged(updates_changed(bytes=lambda sizes: sizes * 0.97))) == ["bytes"]
    assert differing(judged(updates_changed(bytes=lambda sizes: 9800 + 4 * (sizes - 9800)))) == ["bytes"]


def test_a_lower_accuracy_differs_in_the_parts_of_the_training_in_which_it_is_lower() -> None:
    """By three standard deviations over seeds: all along, or at the end alone, when seeds hardly differ any more."""
    low = judged(accuracy_changed(lambda accuracy, _: accuracy - 3 * SPREAD))
    late = judged(accuracy_changed(lambda accuracy, versions: accuracy - 3 * SPREAD * (versions > 1400)))

    assert differing(low) == ["accuracy to 700", "accuracy to 1400", "accuracy to 2000"]
    assert differing(late) == ["accuracy to 2000"]


def test_two_seeds_can_differ_but_not_agree() -> None:
    """Nearly everything is within what two pairs of seeds differ by."""
    runs = {seed: drawn("simulation", seed) for seed in (1, 2)}
    alike = agreement("adacomp", {"simulation": runs, "process": runs})

    assert alike.verdict == "too few seeds to tell"
    assert {each.verdict for each in alike.judgements} == {"too few seeds to tell"}
    assert judged(updates_changed(entries=lambda entries: entries * 2), seeds=2).verdict == "differs"


def test_a_difference_far_below_that_between_seeds_agrees() -> None:
    """A third of a standard deviation is nothing that a user would see between two runs."""
    assert differing(judged(accuracy_changed(lambda accuracy, _: accuracy - SPREAD / 3), seeds=10)) == []


def test_every_runtime_is_judged_against_the_first() -> None:
    """One that differs does not spoil the others."""
    late = updates_changed(staleness=lambda staleness: staleness + 5)
    found = agreement(
        "adacomp",
        {
            "simulation": {seed: drawn("simulation", seed) for seed in (1, 2, 3)},
            "process": {seed: drawn("process", seed) for seed in (1, 2, 3)},
            "docker": {seed: late(drawn("docker", seed)) for seed in (1, 2, 3)},
        },
    )

    assert found.reference == "simulation"
    assert {judgement.runtime for judgement in found.judgements if judgement.verdict == "differs"} == {"docker"}
    assert overall(judgement for judgement in found.judgements if judgement.runtime == "process") == "agrees"
    assert found.verdict == "differs"


def test_numbers_are_those_that_the_definitions_give() -> None:
    """Two seeds, one part of two versions, four updates, by hand."""

    def run(accuracy: list[float], staleness: list[int], size: int) -> Series:
        return series_of(np.array(accuracy), np.array(staleness), np.full(4, 10), np.full(4, size))

    found = agreement(
        "asgd",
        {
            "simulation": {1: run([0.50, 0.80], [0, 1, 1, 1], 100), 2: run([0.60, 0.80], [0, 1, 1, 1], 100)},
            "process": {1: run([0.53, 0.84], [1, 1, 1, 1], 100), 2: run([0.63, 0.84], [1, 1, 1, 1], 102)},
        },
    )
    accuracy, entries, sizes, staleness = found.judgements

    assert accuracy == Judgement(
        measure="accuracy", runtime="process", versions=(100, 200), difference=pytest.approx((0.0025 / 2) ** 0.5),
        allowed=pytest.approx((0.02 / 4) ** 0.5), between_seeds=pytest.approx((0.02 / 4) ** 0.5),
        verdict="too few seeds to tell",
    )  # fmt: skip
    assert (entries.difference, entries.allowed) == (0.0, 0.0)
    assert (sizes.difference, sizes.between_seeds) == (pytest.approx(0.01), pytest.approx((0.02**2 / 2) ** 0.5))
    assert (staleness.difference, staleness.allowed, staleness.verdict) == (0.25, 0.01, "differs")
    first, last = found.versions
    assert (first.version, first.mean, first.spread) == (100, pytest.approx(0.55), pytest.approx(0.005**0.5))
    assert last.others["process"].difference.mean == pytest.approx(0.04)
    assert last.others["process"].difference.low == pytest.approx(0.04)
    assert found.figures["process"].staleness_p90 == 1


def test_versions_that_one_run_has_not_evaluated_are_left_out_of_all() -> None:
    """A busy evaluator skips some; they are counted."""
    runs = {runtime: {seed: drawn(runtime, seed) for seed in (1, 2)} for runtime in ("simulation", "process")}
    found = runs["process"][2].evaluations
    kept = np.arange(len(found)) % 2 == 0
    runs["process"][2] = dataclasses.replace(runs["process"][2], evaluations=found.at(kept))
    found = agreement("adacomp", runs)

    assert [version.version for version in found.versions] == list(range(200, 2001, 200))
    assert found.versions_left_out == 10


@pytest.mark.slow
def test_errors_are_as_rare_as_the_docstring_says() -> None:
    """With three seeds and five independent evaluations: chance alone, and two standard deviations."""
    draw = np.random.default_rng(5)
    updates = np.zeros(1, dtype=np.int64)

    def share_differing(bias: float, seeds: int = 3, repeats: int = 250) -> float:
        found = 0
        for _ in range(repeats):
            runs = {
                runtime: {seed: series_of(draw.normal(mean, 1, 5), updates, updates, updates) for seed in range(seeds)}
                for runtime, mean in (("simulation", 0.0), ("process", bias))
            }
            found += agreement("asgd", runs).judgements[0].verdict == "differs"
        return found / repeats

    assert 0.005 < share_differing(0.0) < 0.07
    assert share_differing(2.0) > 0.9
    assert share_differing(0.0, seeds=5) < 0.015


values = st.lists(st.integers(0, 60), min_size=3, max_size=40).map(np.array)


@given(values, values)
def test_distances_are_those_of_scipy(a: np.ndarray, b: np.ndarray) -> None:
    """An implementation of other people."""
    assert kolmogorov_smirnov(a, b) == pytest.approx(stats.ks_2samp(a, b, method="asymp").statistic)
    assert wasserstein(a, b) == pytest.approx(stats.wasserstein_distance(a, b))


def test_what_cannot_be_compared_is_refused_with_what_to_do() -> None:
    """One seed, one runtime, no update, no version in common."""
    run = drawn("simulation", 1)
    none = dataclasses.replace(run, updates=Series.empty().updates)
    moved = dataclasses.replace(run.evaluations, version=run.evaluations.version + 7)
    elsewhere = dataclasses.replace(run, evaluations=moved)

    with pytest.raises(ScenarioError, match=r"1 seed in common; .* two seeds"):
        agreement("asgd", {"simulation": {1: run, 2: run}, "process": {2: run, 3: run}})
    with pytest.raises(ScenarioError, match="1 runtime "):
        agreement("asgd", {"simulation": {1: run, 2: run}})
    with pytest.raises(ScenarioError, match="process, seed 2, no update was applied"):
        agreement("asgd", {"simulation": {1: run, 2: run}, "process": {1: run, 2: none}})
    with pytest.raises(ScenarioError, match=r"no version .* evaluation\.every"):
        agreement("asgd", {"simulation": {1: run, 2: run}, "process": {1: elsewhere, 2: elsewhere}})
