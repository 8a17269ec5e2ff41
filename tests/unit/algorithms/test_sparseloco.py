"""SparseLoCo and delayed Nesterov against references of their own, written entry by entry."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgebed.algorithms.aggregation import delayed_nesterov, synchronous
from edgebed.algorithms.compression import block_top_k
from edgebed.algorithms.compressor import StepContext
from edgebed.algorithms.update import ModelUpdate

SHAPES = [(8, 12), (6,), (2, 3, 4), (7, 5)]
SMALL = {"side": 4, "count": 4}
AT = StepContext(key=0)


def reference(left, shapes, side, count, bins):
    """What a worker sends of what has yet to be sent, as {position: value}, by loops over blocks and entries."""
    sent, begin = {}, 0
    for shape in shapes:
        size = int(np.prod(shape))
        rows = shape[0] if len(shape) > 1 else 1
        columns = size // rows
        height = max(each for each in range(1, side + 1) if rows % each == 0)
        width = max(each for each in range(1, side + 1) if columns % each == 0)
        chosen = []
        for top in range(0, rows, height):
            for edge in range(0, columns, width):
                block = [begin + (top + i) * columns + edge + j for i in range(height) for j in range(width)]
                block.sort(key=lambda at: -abs(left[at]))
                chosen += block[: max(1, count * height * width // side**2)]
        values = torch.tensor([left[at] for at in chosen], dtype=torch.float64)
        mean = values.mean()
        sigma = values.std() if len(values) > 1 else torch.tensor(0.0)
        scaled = (values - mean) / (6 * sigma / bins) if sigma > 0 else torch.zeros_like(values)
        codes = torch.clamp(torch.round(scaled + bins // 2), 0, bins - 1)
        for at, code in zip(chosen, codes, strict=True):
            sent[at] = float(values[codes == code].mean())
        begin += size
    return sent


@given(seed=st.integers(0, 10_000), bits=st.sampled_from([1, 2, 3]))
def test_a_worker_sends_what_a_reference_sends(seed, bits):
    """Three pushes in a row, with what each leaves out in the next; the server reads what the worker took away."""
    made = block_top_k.Compression(block_top_k.Config(bits=bits, decay=0.5, **SMALL), SHAPES)
    draws, memory, left = np.random.default_rng(seed), None, np.zeros(made.size)
    for _ in range(3):
        vector = draws.normal(size=made.size).astype("f4")
        left = 0.5 * left + vector
        expected = reference(left.astype("f4"), SHAPES, 4, 4, 2**bits)
        pieces, memory = made.compress(vector, memory, AT)
        update = made.restore(pieces)

        assert update.indices.tolist() == sorted(expected)
        np.testing.assert_allclose(update.values, [expected[at] for at in sorted(expected)], rtol=1e-4, atol=1e-5)
        for at, value in expected.items():
            left[at] -= value
        np.testing.assert_allclose(memory, left, atol=1e-4)


def test_a_block_of_64_by_64_takes_112_bytes_and_a_tensor_16_more():
    """Of 16,384: with large tensors that is 146 times less."""
    made = block_top_k.Compression(block_top_k.Config(), [(1024, 1024)])
    pieces, _ = made.compress(np.random.default_rng(1).normal(size=made.size).astype("f4"), None, AT)
    sent = sum(piece.update.values.nbytes for piece in pieces)

    assert sent == 256 * 112 + 16
    assert 4 * made.size / sent == pytest.approx(146, abs=0.5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"side": 0}, "side: 0"), ({"count": 4097}, "count: 4097"), ({"bits": 9}, "bits: 9"), ({"decay": 1.1}, "decay: ")],
)
def test_settings_out_of_range_are_refused(wrong, message):
    """By name."""
    with pytest.raises(ValueError, match=f"^{message}"):
        block_top_k.Config(**wrong)


def test_places_outside_of_a_block_or_twice_are_refused():
    """Whoever sent them did not choose them here."""
    made = block_top_k.Compression(block_top_k.Config(side=3, count=2), [(3, 3)])
    places, *rest = made.compress(np.arange(9, dtype="f4"), None, AT)[0]
    for numbers, message in (([0, 9], "a place 9 in a block of 9"), ([4, 4], "a place twice")):
        told = block_top_k.packed(np.array(numbers), 4)
        with pytest.raises(ValueError, match=message):
            made.restore((places._replace(update=ModelUpdate(len(told), None, told)), *rest))


def rounded(*updates, **settings):
    """Where a server gets to from zeros in one round of these updates, each of another worker."""
    server = synchronous.Aggregation(synchronous.Config(learning_rate=1.0, **settings), np.zeros(4, "f4"))
    for k in range(len(updates)):
        server.joined(f"edge-{k}")
    for k, (indices, values) in enumerate(updates):
        given = ModelUpdate(4, None if indices is None else np.array(indices), np.array(values, "f4"))
        server.push(f"edge-{k}", given, 0)
    return (-server.theta).tolist()


def test_an_entrys_mean_is_over_those_who_sent_it():
    """Entry 0 was sent by both, entries 1 and 3 by one each."""
    updates = (([0, 1], [2.0, 6.0]), ([0, 3], [4.0, 8.0]))

    assert rounded(*updates, mean="senders") == [3.0, 6.0, 0.0, 8.0]
    assert rounded(*updates) == [3.0, 3.0, 0.0, 4.0]
    assert rounded((None, [1.0, 2.0, 3.0, 4.0]), ([0], [3.0]), mean="senders") == [2.0, 1.0, 1.5, 2.0]


def test_a_norm_above_the_median_is_scaled_down_to_it():
    """Of norms 1, 2 and 10 the last becomes 2."""
    updates = (([0], [1.0]), ([1], [2.0]), ([2], [10.0]))

    assert rounded(*updates, clip="median", mean="senders") == [1.0, 2.0, 2.0, 0.0]


def test_senders_with_weights_by_examples_are_refused():
    """With what to do."""
    with pytest.raises(ValueError, match=r"^mean: .*weights: equal"):
        synchronous.Config(mean="senders", weights="examples")


def test_delayed_nesterov_takes_a_rounds_steps_early():
    """Four pushes move the model as far as Nesterov's momentum does for their mean, each a quarter of it at once."""
    pushes = [np.sin(np.arange(5) + k).astype("f4") for k in range(12)]
    server = delayed_nesterov.Aggregation(delayed_nesterov.Config(learning_rate=0.7), np.zeros(5, "f4"))
    theta = torch.nn.Parameter(torch.zeros(5))
    outer = torch.optim.SGD([theta], lr=0.7, momentum=0.9, nesterov=True)
    for number, push in enumerate(pushes):
        before = server.theta.copy()
        applied = server.push("a", ModelUpdate(5, None, push), server.version)
        if (number + 1) % 4:
            np.testing.assert_allclose(before - server.theta, 0.7 / 4 * push, rtol=1e-5)
            continue
        theta.grad = torch.tensor(np.mean(pushes[number - 3 : number + 1], axis=0))
        outer.step()
        assert applied.changed is None
        np.testing.assert_allclose(server.theta, theta.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_stale_push_weighs_less():
    """(1 + tau)^-1/2, of a sparse push at its entries alone."""
    config = delayed_nesterov.Config(learning_rate=1.0, count=2, staleness="power")
    server = delayed_nesterov.Aggregation(config, np.zeros(3, "f4"), version=3)
    applied = server.push("a", ModelUpdate(3, np.array([1]), np.array([4.0], "f4")), 0)

    assert applied.changed.tolist() == [1]
    assert server.theta.tolist() == [0.0, -1.0, 0.0]
