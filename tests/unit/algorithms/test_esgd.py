"""eSGD: which coordinates are sent, how their weights grow, and how residuals take the place of the least of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebed.algorithms.compression import esgd
from edgebed.algorithms.compressor import StepContext

SIZE = 40


def make(**given_settings):
    """Of two tensors."""
    return esgd.Compression(esgd.Config(**given_settings), [(5, 6), (10,)])


def run(compression, gradients, losses, key=3):
    """The updates of some steps, and the memory after each."""
    memory, steps = None, []
    for step, (gradient, loss) in enumerate(zip(gradients, losses, strict=True)):
        pieces, memory = compression.compress(gradient, memory, StepContext(key + step, step, loss=loss))
        steps.append((compression.restore(pieces), memory))
    return steps


def vectors(count, seed=0):
    """Some (n,) gradients."""
    return list(np.random.default_rng(seed).normal(size=(count, SIZE)).astype("f4"))


@settings(max_examples=2 * settings.default.max_examples)
@given(
    fraction=st.floats(0.02, 1.0), losses=st.lists(st.floats(0.0, 3.0), min_size=1, max_size=6), seed=st.integers(0, 99)
)
def test_as_many_are_sent_as_stated(fraction, losses, seed):
    """In every step, each once, and the memory names them."""
    for update, memory in run(make(fraction=fraction), vectors(len(losses), seed), losses):
        assert update.entries == max(1, int(SIZE * fraction))
        assert (np.diff(update.indices) > 0).all()
        np.testing.assert_array_equal(update.indices, memory.chosen)


def test_the_same_coordinates_are_sent_again_after_the_loss_has_fallen():
    """With the new gradient's values, and their weight grows; else others are drawn, and no weight grows."""
    gradients = vectors(3)
    first, second, third = run(make(fraction=0.25, residual=False), gradients, [2.0, 1.0, 1.5])

    np.testing.assert_array_equal(second[0].indices, first[0].indices)
    np.testing.assert_array_equal(second[0].values, gradients[1][first[0].indices])
    assert first[1].weights.sum() == 0
    np.testing.assert_array_equal(np.flatnonzero(second[1].weights == 1), first[0].indices)
    np.testing.assert_array_equal(third[1].weights, second[1].weights)
    assert set(third[0].indices) != set(first[0].indices)


def test_what_helped_is_drawn_more_often():
    """A coordinate of weight 9 ten times as often as one of weight 0, where one of many is drawn."""
    weights = np.zeros(SIZE, "f4")
    weights[7] = 9.0
    compression = make(fraction=1 / SIZE, residual=False)
    memory = esgd.Memory(np.array([0]), weights, np.zeros(SIZE, "f4"), 0.0)
    drawn = [
        int(
            compression.restore(
                compression.compress(np.ones(SIZE, "f4"), memory, StepContext(key, 1, loss=1.0))[0]
            ).indices[0]
        )
        for key in range(3000)
    ]

    assert np.mean(np.array(drawn) == 7) == pytest.approx(10 / (10 + SIZE - 1), abs=0.03)


def test_a_large_residual_takes_the_place_of_the_coordinate_that_helped_least():
    """It is sent with its value and begins anew; the gradient of the one displaced is left for later."""
    residual = np.zeros(SIZE, "f4")
    residual[30], residual[31] = 50.0, -80.0
    weights = np.zeros(SIZE, "f4")
    weights[[1, 2]] = 5.0
    memory = esgd.Memory(np.array([0, 1, 2]), weights, residual, 2.0)
    gradient = np.ones(SIZE, "f4")
    compression = make(fraction=3 / SIZE, weights="none")
    pieces, after = compression.compress(gradient, memory, StepContext(0, 1, loss=1.0))
    update = compression.restore(pieces)

    assert update.indices.tolist() == [2, 30, 31]
    np.testing.assert_allclose(update.values, [1.0, 0.9 * 50 + 0.1, -0.9 * 80 + 0.1], rtol=1e-6)
    assert (after.residual[30], after.residual[31]) == (0.0, 0.0)
    np.testing.assert_allclose(after.residual[[0, 1, 3]], [0.1, 0.1, 0.1], rtol=1e-6)
    assert after.residual[2] == 0.0


@pytest.mark.parametrize("weights", ["sent", "loss-fell"])
def test_what_is_sent_helped_or_what_was_sent_again(weights):
    """A residual in the place of a coordinate counts where all does that is sent."""
    residual = np.zeros(SIZE, "f4")
    residual[30] = 50.0
    memory = esgd.Memory(np.array([0, 1, 2]), np.zeros(SIZE, "f4"), residual, 2.0)
    compression = make(fraction=3 / SIZE, weights=weights)
    pieces, after = compression.compress(np.ones(SIZE, "f4"), memory, StepContext(0, 1, loss=1.0))
    went = compression.restore(pieces).indices.tolist()

    assert went == [1, 2, 30]
    assert np.flatnonzero(after.weights).tolist() == (went if weights == "sent" else [0, 1, 2])


def test_residuals_average_what_is_not_sent():
    """R <- 0.9 r + 0.1 g, not for what is sent; none in the first step."""
    gradients = vectors(2)
    (_, first), (update, second) = run(make(fraction=0.5), gradients, [1.0, 2.0])

    assert not first.residual.any()
    quiet = np.setdiff1d(np.arange(SIZE), np.concatenate([update.indices, first.chosen]))
    np.testing.assert_allclose(second.residual[quiet], np.float32(0.1) * gradients[1][quiet], rtol=1e-5)


@pytest.mark.parametrize("scope", ["model", "tensor"])
def test_a_threshold_of_signed_values_lets_nearly_every_residual_through(scope):
    """Their mean is about zero; of magnitudes it is about 0.8, and averages of a tenth stay below it."""
    gradients = vectors(3, seed=5)
    signed = run(make(fraction=0.25, threshold="signed", scope=scope), gradients, [1.0, 2.0, 3.0])[-1]
    plain = run(make(fraction=0.25, scope=scope), gradients, [1.0, 2.0, 3.0])[-1]

    assert np.mean(np.isin(signed[0].values, gradients[2])) < 0.5
    assert np.isin(plain[0].values, gradients[2]).all()


def test_what_was_sent_before_is_sent_again_values_and_all():
    """As algorithm 1, line 6, has it; what is drawn anew has the values of now."""
    gradients = vectors(4)
    first, second, third, fourth = run(
        make(fraction=0.25, residual=False, again="values"), gradients, [2.0, 1.0, 0.5, 1.5]
    )

    for again in (second, third):
        np.testing.assert_array_equal(again[0].indices, first[0].indices)
        np.testing.assert_array_equal(again[0].values, gradients[0][first[0].indices])
    np.testing.assert_array_equal(fourth[0].values, gradients[3][fourth[0].indices])


def test_a_residual_takes_a_place_among_the_values_sent_again():
    """It is sent itself, and sent again where the loss falls once more."""
    residual = np.zeros(SIZE, "f4")
    residual[30] = 50.0
    memory = esgd.Memory(np.array([0, 1, 2]), np.zeros(SIZE, "f4"), residual, 2.0, values=np.float32([7, 8, 9]))
    compression = make(fraction=3 / SIZE, again="values", weights="none")
    pieces, after = compression.compress(np.ones(SIZE, "f4"), memory, StepContext(0, 1, loss=1.0))
    again = compression.restore(compression.compress(np.ones(SIZE, "f4"), after, StepContext(1, 2, loss=0.5))[0])

    assert compression.restore(pieces).values.tolist() == pytest.approx([8.0, 9.0, 45.1])
    assert dict(zip(again.indices.tolist(), again.values.tolist(), strict=True))[30] == pytest.approx(45.1)


def test_the_gradient_of_the_step_before_is_drawn_from():
    """Values and residuals are those of one step ago; in the first step there is none before."""
    gradients = vectors(3)
    first, second, third = run(make(fraction=0.25, step="before"), gradients, [1.0, 2.0, 3.0])

    np.testing.assert_array_equal(first[0].values, gradients[0][first[0].indices])
    for (update, memory), gradient, before in ((second, gradients[0], first), (third, gradients[1], second)):
        assert np.isin(update.values, gradient).mean() > 0.5
        quiet = np.setdiff1d(np.arange(SIZE), update.indices)
        expected = np.float32(0.9) * before[1].residual + np.float32(0.1) * gradient
        np.testing.assert_allclose(memory.residual[quiet], expected[quiet], rtol=1e-5)
