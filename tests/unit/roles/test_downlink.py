"""Models that come down compressed: server and worker have the same, to the bit, and nothing is lost for long."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.algorithms.registry import COMPRESSIONS, configure
from edgebed.core.plan import Part
from edgebed.roles.server.downlink import Downlink, add
from edgebed.wire.tensors import decode_piece, split_frames

SHAPES = [(4, 5), (3,)]
SIZE = 23
KINDS = [
    ("int8", {}), ("int8", {"scope": "model"}), ("top-k", {"fraction": 0.2}), ("qsgd", {}), ("sign", {}),
    ("none", {"values": "float16"}),
]  # fmt: skip


def compressor(name, settings):
    """One of these shapes."""
    return COMPRESSIONS[name].Compression(configure("compression", Part(name=name, settings=settings)), SHAPES)


class Worker:
    """Has what it was sent."""

    def __init__(self, method):
        self.method = method
        self.theta = None
        self.version = -1

    def receive(self, sent, theta, version):
        """All of the model, or what it lacks."""
        if sent is None:
            self.theta = theta.copy()
        else:
            assert sent.since == self.version
            parts = split_frames(sent.tensors, [bytes(frame) for frame in sent.frames]).values()
            self.theta = self.theta.copy()
            add(self.theta, self.method.restore(tuple(decode_piece(*each) for each in parts)))
        self.version = version


@pytest.mark.parametrize(("name", "given_settings"), KINDS)
@given(answered=st.lists(st.sets(st.sampled_from("abc")), max_size=8), seed=st.integers(0, 99))
def test_the_server_knows_what_each_worker_has(name, given_settings, answered, seed):
    """To the bit, whoever is answered when; those that have the same get the same message."""
    rng = np.random.default_rng(seed)
    downlink, theta = Downlink(compressor(name, given_settings), seed), rng.normal(size=SIZE).astype("f4")
    workers = {each: Worker(compressor(name, given_settings)) for each in "abc"}
    for version, who in enumerate(answered):
        messages = {}
        for worker in sorted(who):
            before = downlink.copies.get(worker)
            sent = downlink.changes(worker, theta, version)
            if sent is None:
                downlink.whole(worker, theta, version)
            workers[worker].receive(sent, theta, version)
            messages.setdefault(before and before.number, set()).add(id(sent))

            np.testing.assert_array_equal(downlink.copies[worker].theta, workers[worker].theta)
        assert all(len(each) == 1 for each in messages.values())
        theta = theta + rng.normal(size=SIZE).astype("f4")


REACHING = [
    ("int8", {}), ("int8", {"scope": "model"}), ("top-k", {"fraction": 0.2}), ("qsgd", {"levels": 5, "bucket": 23}),
    ("qsgd", {"levels": 23}), ("dgc", {"fraction": 0.1}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given_settings"), REACHING)
def test_what_was_left_out_comes_later(name, given_settings):
    """A model that stays as it is is reached, by every compression that may serve as a downlink."""
    method = compressor(name, given_settings)
    downlink, worker = Downlink(method, 0), Worker(method)
    worker.receive(None, np.zeros(SIZE, "f4"), 0)
    downlink.whole("a", np.zeros(SIZE, "f4"), 0)
    theta = np.random.default_rng(3).normal(size=SIZE).astype("f4")
    for version in range(1, 80):
        worker.receive(downlink.changes("a", theta, version), theta, version)

    np.testing.assert_allclose(worker.theta, theta, atol=1e-6)


def test_a_downlink_is_where_the_training_is():
    """DGC sends more in the first epochs, and no longer after them."""
    method = COMPRESSIONS["dgc"].Compression(
        configure("compression", Part(name="dgc", settings={"fraction": 0.01, "warm_up": [0.5]})), [(20, 10)]
    )
    downlink, theta = Downlink(method, 0), np.arange(200, dtype="f4")
    downlink.whole("a", np.zeros(200, "f4"), 0)
    sent = [downlink.changes("a", theta, version, epoch) for version, epoch in ((1, 0.9), (2, 1.0))]

    assert [each.tensors[0].entries for each in sent] == [100, 2]


def test_who_is_forgotten_needs_all_of_it():
    """Nothing is known of what it has."""
    downlink = Downlink(compressor("int8", {}), 0)
    downlink.whole("a", np.zeros(SIZE, "f4"), 0)
    assert downlink.changes("a", np.ones(SIZE, "f4"), 1) is not None
    downlink.forget("a")
    assert downlink.changes("a", np.ones(SIZE, "f4"), 2) is None


def test_workers_that_begin_together_share_one_copy():
    """In rounds there is one, however many they are."""
    downlink, theta = Downlink(compressor("int8", {}), 0), np.zeros(SIZE, "f4")
    for worker in "abc":
        downlink.whole(worker, theta, 0)
    for version in (1, 2):
        for worker in "abc":
            downlink.changes(worker, theta + version, version)

        assert len({id(copy.theta) for copy in downlink.copies.values()}) == 1
