"""Laws of the division of examples among workers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgebed.core.errors import ScenarioError
from edgebed.learning.data_sets.split import split

Labels = NDArray[np.int64]

SEEDS = st.integers(0, 2**32)
NUM_PARTS = st.integers(1, 20)
LABELS = st.lists(st.integers(0, 5), min_size=20, max_size=200).map(lambda values: np.array(values, np.int64))


def assert_is_a_partition(parts: list[NDArray[np.int64]], num_examples: int) -> None:
    """Every example is in exactly one part, and no part is empty."""
    assert min(len(part) for part in parts) > 0
    assert np.array_equal(np.arange(num_examples), np.sort(np.concatenate(parts)))


@given(LABELS, NUM_PARTS, SEEDS)
def test_iid_parts_are_a_partition_of_nearly_equal_sizes(labels: Labels, num_parts: int, seed: int) -> None:
    """Disjoint, together complete, and no two sizes differ by more than one."""
    parts = split(labels, num_parts, "iid", None, seed)
    assert num_parts == len(parts)
    assert_is_a_partition(parts, len(labels))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


@given(LABELS, NUM_PARTS, st.floats(1e-3, 1e4), SEEDS)
def test_dirichlet_parts_are_a_partition(labels: Labels, num_parts: int, alpha: float, seed: int) -> None:
    """Disjoint, together complete, and nobody goes without, however uneven the shares."""
    parts = split(labels, num_parts, "dirichlet", alpha, seed)
    assert num_parts == len(parts)
    assert_is_a_partition(parts, len(labels))


@given(st.integers(1, 12), st.integers(1, 6), SEEDS)
def test_by_label_parts_hold_exactly_the_labels_asked_for(num_parts: int, labels_per_part: int, seed: int) -> None:
    """With enough examples each part has that many labels, and every example of an assigned label is in one part."""
    labels = np.tile(np.arange(6), 30)
    parts = split(labels, num_parts, "by-label", labels_per_part, seed)
    assert [labels_per_part] * num_parts == [len(np.unique(labels[part])) for part in parts]
    together = np.concatenate(parts)
    assert len(together) == len(np.unique(together))
    assigned = np.unique(labels[together])
    assert np.array_equal(np.flatnonzero(np.isin(labels, assigned)), np.sort(together))
    assert min(6, num_parts * labels_per_part) == len(assigned)


@given(LABELS, st.sampled_from([("iid", None), ("dirichlet", 0.5), ("by-label", 1)]), SEEDS)
def test_the_same_seed_gives_the_same_parts(labels: Labels, kind: tuple[str, float | None], seed: int) -> None:
    """Positions are increasing int64, and depend on the arguments alone."""
    first = split(labels, 3, *kind, seed)
    second = split(labels.copy(), 3, *kind, seed)
    for one, other in zip(first, second, strict=True):
        assert one.dtype == np.int64
        assert np.all(np.diff(one) > 0)
        assert np.array_equal(one, other)


def test_another_seed_gives_other_parts() -> None:
    """The seed is what the parts are drawn from."""
    labels = np.tile(np.arange(10), 100)
    for kind, parameter in (("iid", None), ("dirichlet", 1.0), ("by-label", 2)):
        first, second = (split(labels, 10, kind, parameter, seed) for seed in (1, 2))
        assert any(not np.array_equal(one, other) for one, other in zip(first, second, strict=True))


def test_a_small_alpha_makes_parts_of_few_labels_and_a_large_one_of_all() -> None:
    """What the concentration parameter is for."""
    labels = np.tile(np.arange(10), 1000)

    def mean_share_of_commonest(alpha: float) -> float:
        parts = split(labels, 20, "dirichlet", alpha, 3)
        return float(np.mean([np.bincount(labels[part]).max() / len(part) for part in parts]))

    assert mean_share_of_commonest(0.05) > 0.5
    assert mean_share_of_commonest(1000.0) < 0.15


def test_eight_bit_labels_split_like_wide_ones() -> None:
    """The type in which labels are stored does not matter."""
    labels = np.tile(np.arange(10), 20)
    for one, other in zip(
        split(labels, 7, "dirichlet", 0.3, 5), split(labels.astype(np.uint8), 7, "dirichlet", 0.3, 5), strict=True
    ):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("num_parts", "kind", "parameter", "says"),
    [
        (0, "iid", None, "at least one"),
        (21, "iid", None, "21 workers cannot share 20 examples"),
        (2, "fair", None, "allowed: iid, dirichlet, by-label"),
        (2, "dirichlet", None, "alpha is None"),
        (2, "dirichlet", 0.0, "above 0"),
        (2, "dirichlet", float("nan"), "above 0"),
        (2, "dirichlet", float("inf"), "at most"),
        (2, "by-label", 1.5, "whole number from 1 to 4"),
        (2, "by-label", 5, "whole number from 1 to 4"),
        (2, "by-label", None, "whole number from 1 to 4"),
        (2, "by-label", float("nan"), "whole number from 1 to 4"),
        (2, "by-label", float("inf"), "whole number from 1 to 4"),
    ],
)
def test_an_impossible_split_is_refused_with_what_is_allowed(
    num_parts: int, kind: str, parameter: float | None, says: str
) -> None:
    """The message names the value and its limits."""
    with pytest.raises(ScenarioError, match=says):
        split(np.tile(np.arange(4), 5), num_parts, kind, parameter, 0)


def test_labels_with_too_few_examples_for_their_workers_are_refused() -> None:
    """A worker without any example could not train."""
    labels = np.array([0] + [1] * 30)
    with pytest.raises(ScenarioError, match="would get no example"):
        split(labels, 10, "by-label", 1, 0)
