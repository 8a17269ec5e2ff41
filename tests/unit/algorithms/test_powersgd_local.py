"""PowerSGD: what has the rank is exact, the rest is fed back, small tensors go whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebed.algorithms.compression import powersgd_local
from edgebed.algorithms.compressor import StepContext


@given(rows=st.integers(6, 12), columns=st.integers(6, 12), rank=st.integers(1, 2), seed=st.integers(0, 99))
def test_a_matrix_of_that_rank_is_exact(rows, columns, rank, seed):
    """In the first step already."""
    rng = np.random.default_rng(seed)
    matrix = (rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, columns))).astype("f4")
    compression = powersgd_local.Compression(powersgd_local.Config(rank=rank), [(rows, columns)])
    pieces, memory = compression.compress(matrix.reshape(-1), None, StepContext(seed))

    assert pieces[0].update.entries == rank * (rows + columns)
    np.testing.assert_allclose(compression.restore(pieces).values, matrix.reshape(-1), atol=2e-3)
    np.testing.assert_allclose(memory.residual, 0, atol=2e-3)


def test_small_tensors_and_vectors_go_whole():
    """A (2, 2) matrix would not become smaller; a convolution is a matrix of its filters."""
    compression = powersgd_local.Compression(powersgd_local.Config(rank=1), [(2, 2), (5,), (8, 3, 3, 3)])
    vector = np.arange(4 + 5 + 216, dtype="f4")
    pieces, _ = compression.compress(vector, None, StepContext(0))

    assert [piece.update.size for piece in pieces] == [8 + 27, 9]
    np.testing.assert_array_equal(compression.restore(pieces).values[:9], vector[:9])


def test_a_matrix_that_stays_is_approached():
    """The last Q is where the next step begins: the same matrix comes out better each time."""
    rng = np.random.default_rng(1)
    matrix = (rng.normal(size=(20, 30)) * np.linspace(3, 0.1, 30)).astype("f4").reshape(-1)
    compression = powersgd_local.Compression(powersgd_local.Config(rank=3, residual=False), [(20, 30)])
    memory, errors = None, []
    for step in range(6):
        pieces, memory = compression.compress(matrix, memory, StepContext(0, step))
        errors.append(float(np.linalg.norm(compression.restore(pieces).values - matrix)))

    assert errors[-1] < errors[0]
    best = np.sqrt((np.linalg.svd(matrix.reshape(20, 30), compute_uv=False)[3:] ** 2).sum())
    assert errors[-1] == pytest.approx(best, rel=0.05)


def test_a_matrix_in_which_there_was_nothing_is_found_when_there_is_something():
    """A layer without a gradient in one step is not lost to all later ones."""
    compression = powersgd_local.Compression(powersgd_local.Config(rank=2), [(8, 9), (20, 30)])
    vectors = np.random.default_rng(0).normal(size=(6, 8 * 9 + 20 * 30)).astype("f4")
    vectors[0] = 0.0
    vectors[1, :72] = 0.0
    memory, went = None, []
    for step, vector in enumerate(vectors):
        pieces, memory = compression.compress(vector, memory, StepContext(step, step))
        restored = compression.restore(pieces).values
        went.append((bool(restored[:72].any()), bool(restored[72:].any())))

    assert went == [(False, False), (False, True), *[(True, True)] * 4]


def test_a_matrix_of_less_than_the_rank_is_exact_and_found_again():
    """Of a mini-batch of one a gradient has rank one; the other columns are free for what comes later."""
    rng = np.random.default_rng(2)
    compression = powersgd_local.Compression(powersgd_local.Config(rank=2), [(20, 30)])
    memory = None
    for step in range(20):
        matrix = np.outer(rng.normal(size=20), rng.normal(size=30)).astype("f4")
        pieces, after = compression.compress(matrix.reshape(-1), None, StepContext(step))
        restored = compression.restore(pieces).values.reshape(20, 30)
        assert np.linalg.norm(restored - matrix) < 1e-3 * np.linalg.norm(matrix)
        _, memory = compression.compress(matrix.reshape(-1), memory, StepContext(step, step))
        assert all(each.any(axis=0).all() for each in (*after.seconds, *memory.seconds))


@given(st.integers(0, 99), st.sampled_from([0.0, 2.0, -1e-3, 300.0]))
@settings(max_examples=2 * settings.default.max_examples)
def test_columns_are_made_orthonormal(seed, factor):
    """Also where one is a multiple of another: then nothing is left of it, and not what rounding leaves."""
    p = np.random.default_rng(seed).normal(size=(9, 3)).astype("f4")
    p[:, 2] = np.float32(factor) * p[:, 1]
    q = powersgd_local.orthogonal(p)

    np.testing.assert_allclose(q.T @ q, np.diag([1.0, 1.0, 0.0]), atol=1e-5)
