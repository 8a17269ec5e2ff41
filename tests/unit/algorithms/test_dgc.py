"""Deep gradient compression: momentum correction, masking, clipping, warm-up, what is sent whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.algorithms.compression import dgc, top_k
from edgebed.algorithms.compressor import StepContext

SHAPES = [(4, 5), (3,), (2, 3, 2, 2)]
SIZE = 20 + 3 + 24


def run(compression, gradients, **moment):
    """The (n,) updates of some steps, and the memory after them."""
    memory, updates = None, []
    for step, gradient in enumerate(gradients):
        pieces, memory = compression.compress(gradient, memory, StepContext(7, step, **moment))
        update = compression.restore(pieces)
        whole = np.zeros(update.size, "f4")
        whole[update.indices] = update.values
        updates.append(whole)
    return updates, memory


def make(**given_settings):
    """Without warm-up, if nothing else is said."""
    return dgc.Compression(dgc.Config(**{"warm_up": [], **given_settings}), SHAPES)


def gradients(count, seed=0):
    """Some (n,) vectors."""
    return list(np.random.default_rng(seed).normal(size=(count, SIZE)).astype("f4"))


@given(fraction=st.floats(0.01, 1.0), seed=st.integers(0, 99))
def test_without_momentum_it_is_top_k_with_residual(fraction, seed):
    """Bit for bit."""
    vectors = gradients(5, seed)
    plain, memory = top_k.Compression(top_k.Config(fraction=fraction, residual=True), SHAPES), None
    for vector, update in zip(
        vectors, run(make(fraction=fraction, momentum=0.0, whole="nothing"), vectors)[0], strict=True
    ):
        pieces, memory = plain.compress(vector, memory, StepContext(0))
        expected = plain.restore(pieces)

        np.testing.assert_array_equal(np.flatnonzero(update), expected.indices[expected.values != 0])
        np.testing.assert_array_equal(update[expected.indices], expected.values)


@pytest.mark.parametrize("nesterov", [False, True])
def test_all_that_is_sent_without_masking_is_momentum(nesterov):
    """U <- m u + g, and with Nesterov's m u + g of that."""
    vectors, velocity = gradients(6), np.zeros(SIZE, "f4")
    for vector, update in zip(
        vectors, run(make(fraction=1.0, masking=False, nesterov=nesterov), vectors)[0], strict=True
    ):
        velocity = np.float32(0.9) * (velocity + vector) if nesterov else np.float32(0.9) * velocity + vector

        np.testing.assert_allclose(update, velocity + vector if nesterov else velocity, rtol=1e-5, atol=1e-6)


def test_masking_ends_the_momentum_of_what_is_sent():
    """If all is sent, there is none left."""
    vectors = gradients(4)
    for vector, update in zip(vectors, run(make(fraction=1.0, whole="nothing"), vectors)[0], strict=True):
        np.testing.assert_array_equal(update, vector)


def test_what_is_sent_whole_keeps_its_momentum():
    """A vector of three: its velocity each time, whatever is masked elsewhere."""
    vectors, velocity = gradients(5), np.zeros(3, "f4")
    updates, _ = run(make(fraction=0.01), vectors)
    for vector, update in zip(vectors, updates, strict=True):
        velocity = np.float32(0.9) * velocity + vector[20:23]

        np.testing.assert_allclose(update[20:23], velocity, rtol=1e-6)
    assert [int(np.count_nonzero(update)) for update in updates] == [1 + 3 + 1] * 5


@pytest.mark.parametrize(
    ("whole", "sent"), [("vectors", 1 + 3 + 1), ("all-but-convolutions", 20 + 3 + 1), ("nothing", 3)]
)
def test_which_tensors_are_sent_whole(whole, sent):
    """By their number of dimensions."""
    ((update,), _) = run(make(fraction=0.001, whole=whole), gradients(1))

    assert np.count_nonzero(update) == sent


def test_more_is_sent_in_the_first_epochs():
    """As listed, then the final share."""
    compression = make(fraction=0.05, warm_up=[0.5, 0.25], whole="nothing")
    counts = [
        np.count_nonzero(run(compression, gradients(1), epoch=epoch)[0][0]) for epoch in (0.0, 0.99, 1.0, 2.0, 50.0)
    ]

    assert counts == [10 + 1 + 12] * 2 + [5 + 1 + 6] + [1 + 1 + 1] * 2


def test_gradients_are_clipped_before_they_add_up():
    """To C over the root of the number of workers; shorter ones are left as they are."""
    (vector,) = gradients(1)
    compression = make(fraction=1.0, clip=2.0, whole="nothing")

    ((update,), _) = run(compression, [vector], workers=4)
    assert np.linalg.norm(update) == pytest.approx(1.0, rel=1e-5)
    ((short,), _) = run(compression, [vector / 100], workers=4)
    np.testing.assert_array_equal(short, vector / 100)


@given(size=st.integers(50, 5000), share=st.floats(0.01, 0.5), seed=st.integers(0, 999))
def test_a_sample_finds_about_as_many(size, share, seed):
    """Never more than 1.3 times as many, and the largest of all is among them."""
    rng = np.random.default_rng(seed)
    magnitude, count = np.abs(rng.normal(size=size)).astype("f4"), max(1, int(size * share))
    found = dgc.by_sample(magnitude, count, rng)

    assert 0 < len(found) <= dgc.TOO_MANY * count
    assert (np.diff(found) > 0).all()
    assert magnitude.argmax() in found
    if count >= 10:
        assert len(found) >= dgc.TOO_FEW * count


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"fraction": 0.0}, "fraction"),
        ({"warm_up": [0.5, 2.0]}, "warm_up"),
        ({"momentum": 1.0}, "momentum"),
        ({"clip": 0.0}, "clip"),
    ],
)
def test_settings_out_of_range_are_refused(wrong, message):
    """By name."""
    with pytest.raises(ValueError, match=f"^{message}: "):
        dgc.Config(**wrong)
