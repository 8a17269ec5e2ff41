"""The server of methods that hold pushes, or workers: who is answered when, what is recorded, what pieces become."""

import msgspec
import numpy as np
import pytest

from edgebed.algorithms.compressor import StepContext
from edgebed.algorithms.registry import compression_of
from edgebed.core.plan import Part
from edgebed.wire.messages import Push
from edgebed.wire.tensors import encode_piece


@pytest.fixture
def bench_of(make_bench):
    """`bench_of(name, **settings)`: a server with that aggregation that all three workers have joined."""

    def make(name, **settings):
        bench = make_bench(aggregation=Part(name=name, settings=settings))
        for k in range(3):
            bench.join(f"edge-{k}")
        return bench

    return make


def test_who_pushes_into_a_buffer_goes_on_at_once(bench_of):
    """With the model as it was; the push is recorded when the model moves, with all that was held."""
    bench = bench_of("buffered", count=2, staleness="none")

    records, sent = bench.push("edge-0", step=3)
    assert (records, bench.answers(sent)) == ([], [("edge-0", 0)])

    records, sent = bench.push("edge-0", step=4)
    assert [(each.worker, each.step, each.version) for each in records] == [("edge-0", 3, 1), ("edge-0", 4, 2)]
    assert bench.answers(sent) == [("edge-0", 2)]
    np.testing.assert_allclose(bench.server.aggregation.theta, -0.1, rtol=1e-6)


def test_who_is_too_far_ahead_is_answered_when_the_slowest_has_caught_up(bench_of):
    """With the model as it is then; or when the slowest has left."""
    bench = bench_of("stale-synchronous", bound=0)
    (update,), sent = bench.push("edge-0")
    assert (update.version, bench.answers(sent)) == (1, [])
    (_,), sent = bench.push("edge-1")
    assert bench.answers(sent) == []

    (_,), sent = bench.push("edge-2")
    assert bench.answers(sent) == [("edge-0", 3), ("edge-1", 3), ("edge-2", 3)]


@pytest.mark.parametrize("name", ["int8", "sign", "qsgd", "powersgd-local"])
def test_pieces_become_an_update(make_bench, name):
    """The model moves by what they stand for; bits are those of the pieces, and others are refused."""
    part = Part(name=name, settings={"rank": 1} if name == "powersgd-local" else {})
    bench = make_bench(
        parts={"compression": part}, aggregation=Part(name="asynchronous", settings={"staleness": "none"})
    )
    bench.join("edge-0")
    compression = compression_of(bench.server.plan.method, bench.server.plan.task)
    vector = np.linspace(-1, 1, compression.size, dtype="f4")
    pieces, _ = compression.compress(vector, None, StepContext(5))
    encoded = [encode_piece(piece) for piece in pieces]
    push = Push(
        sender="edge-0", incarnation=1, step=0, base=0, loss=1.0, tensors=tuple(tensor for tensor, _ in encoded)
    )
    frames = [frame for _, part in encoded for frame in part]
    (update,), _ = bench.tell(push, frames)

    np.testing.assert_allclose(
        bench.server.aggregation.theta, -0.1 * compression.restore(pieces).values, rtol=1e-5, atol=1e-7
    )
    assert update.bits == 8 * sum(map(len, frames))

    strange = tuple(msgspec.structs.replace(tensor, name="strange") for tensor in push.tensors)
    records, _ = bench.tell(msgspec.structs.replace(push, step=1, tensors=strange), frames)
    assert "should have come" in records[0].reason
