"""The synchronous server applies the mean of a round, waits for whom it should, and never for who has left."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.algorithms.aggregation import asynchronous
from edgebed.algorithms.aggregation.synchronous import Aggregation, Config, total
from edgebed.algorithms.aggregator import PushInfo
from edgebed.algorithms.update import Applied, ModelUpdate

N = 6
ALPHA = 0.1
WORKERS = ("a", "b", "c")
START = np.linspace(-1, 1, N, dtype="f4")


def start(*workers, **settings):
    """A server of N parameters with these workers."""
    server = Aggregation(Config(learning_rate=ALPHA, **settings), START.copy())
    for worker in workers or WORKERS:
        server.joined(worker)
    return server


def dense(value):
    """An update of all entries."""
    return ModelUpdate(N, None, np.full(N, value, "f4"))


def sparse(*indices, value=1.0):
    """An update of some."""
    return ModelUpdate(N, np.array(indices, np.int64), np.full(len(indices), value, "f4"))


def as_dense(update):
    """(n,) in double precision."""
    values = np.zeros(N)
    values[slice(None) if update.indices is None else update.indices] = update.values
    return values


@st.composite
def updates(draw):
    """Dense or sparse, rounded or not, with both zeros among the values."""
    chosen = draw(st.none() | st.sets(st.integers(0, N - 1)))
    entries = N if chosen is None else len(chosen)
    values = draw(st.lists(st.sampled_from([0.0, -0.0, 1.0, -0.7, 3.3e3]), min_size=entries, max_size=entries))
    indices = None if chosen is None else np.array(sorted(chosen), np.int64)
    return ModelUpdate(N, indices, np.array(values, draw(st.sampled_from(["f2", "f4"]))))


@given(rounds=st.lists(st.tuples(*[updates()] * len(WORKERS)), max_size=4))
def test_with_everybody_present_the_model_moves_by_the_mean(rounds):
    """By hand in double precision; the version counts pushes, the last push of a round releases all."""
    server, expected = start(), START.astype(float)
    for number, pushed in enumerate(rounds):
        for worker, update in zip(WORKERS[:-1], pushed[:-1], strict=True):
            assert server.push(worker, update, server.version) is None
        applied = server.push(WORKERS[-1], pushed[-1], server.version)

        assert applied.released == WORKERS
        assert server.version == 3 * (number + 1)
        expected -= ALPHA * np.mean([as_dense(update) for update in pushed], axis=0)
        np.testing.assert_allclose(server.theta, expected, rtol=1e-5, atol=1e-5)


@given(pushed=st.tuples(*[updates()] * len(WORKERS)))
def test_whoever_is_first_the_model_is_the_same(pushed):
    """Bit for bit, in all orders of arrival: so it is the same in every runtime."""
    results = set()
    for order in itertools.permutations(zip(WORKERS, pushed, strict=True)):
        server = start()
        for worker, update in order:
            server.push(worker, update, 0)
        results.add(server.theta.tobytes())

    assert len(results) == 1


def test_the_sum_is_taken_in_the_order_of_the_names():
    """Where rounding shows the order: 1 is lost in what is a hundred million times as large."""
    server = start()
    for worker, value in (("c", -1e8), ("a", 1e8), ("b", 1.0)):
        server.push(worker, dense(value), 0)

    np.testing.assert_array_equal(server.theta, START)


@given(pushed=st.lists(updates(), max_size=5))
def test_with_one_worker_it_is_the_asynchronous_server(pushed):
    """Bit for bit, with nothing to divide by; zeros keep their signs."""
    theta = np.array([-0.0, 0.0, 1.0, -1.0, -0.0, 0.0], "f4")
    alone = Aggregation(Config(learning_rate=ALPHA), theta.copy())
    alone.joined("a")
    reference = asynchronous.Aggregation(asynchronous.Config(learning_rate=ALPHA, staleness="none"), theta.copy())
    for base, update in enumerate(pushed):
        applied, expected = alone.push("a", update, base), reference.push("a", update, base)

        assert applied.released == expected.released == ("a",)
        assert (applied.changed is None) == (expected.changed is None)
        assert alone.theta.tobytes() == reference.theta.tobytes()


def test_what_may_have_changed_is_what_any_of_the_round_has_touched():
    """Each entry once; all, if one of them sent all."""
    server = start()
    server.push("a", sparse(1, 4), 0)
    server.push("b", sparse(0, 4), 0)
    applied = server.push("c", sparse(), 0)
    assert applied.changed.tolist() == [0, 1, 4]
    np.testing.assert_allclose(START - server.theta, ALPHA / 3 * np.array([1, 1, 0, 0, 2, 0]), rtol=1e-5)

    server.push("a", sparse(1), 3)
    server.push("b", dense(0.0), 3)
    assert server.push("c", sparse(2), 3).changed is None


def test_a_round_is_not_held_up_by_one_who_has_left():
    """Nor does its push get lost; only those who take part are released."""
    server = start()
    server.push("a", dense(1.0), 0)
    server.push("b", dense(4.0), 0)
    assert server.left("a") is None

    applied = server.left("c")

    assert applied.released == ("b",)
    assert server.version == 2
    np.testing.assert_allclose(START - server.theta, ALPHA * 2.5, rtol=1e-5)
    assert server.left("b") is None


def test_the_last_to_leave_ends_the_round():
    """What was pushed is not held for ever."""
    server = start("a", "b")
    server.push("a", dense(1.0), 0)
    server.left("a")

    assert server.left("b") == Applied((), None)
    assert (server.version, server.sums, server.waiting, server.members) == (1, {}, {}, set())


def test_who_joins_in_the_middle_of_a_round_is_waited_for():
    """From then on."""
    server = start("a", "b")
    server.push("a", dense(1.0), 0)
    server.joined("c")

    assert server.push("b", dense(1.0), 0) is None
    assert server.push("c", dense(1.0), 0).released == ("a", "b", "c")


def test_who_joins_anew_in_the_middle_of_a_round_is_waited_for_and_both_its_updates_count():
    """It computed both at the same model."""
    server = start("a", "b")
    server.push("a", dense(1.0), 0)
    server.joined("a")
    assert server.push("b", sparse(0, value=3.0), 0) is None

    assert server.push("a", sparse(1, value=6.0), 0).released == ("b", "a")
    assert server.version == 3
    np.testing.assert_allclose(START - server.theta, ALPHA / 3 * np.array([4, 7, 1, 1, 1, 1]), rtol=1e-5)


@pytest.mark.parametrize(
    ("quorum", "workers", "needed"),
    [(1.0, 3, 3), (0.5, 4, 2), (0.5, 5, 3), (0.01, 5, 1), (0.55, 100, 55), (0.1, 30, 3), (0.7, 10, 7)],
)
def test_a_quorum_ends_a_round(quorum, workers, needed):
    """A share of those who take part, rounded up; the others are late."""
    names = [f"{k:03}" for k in range(workers)]
    server = start(*names, quorum=quorum)
    ended = [server.push(name, dense(1.0), 0) is not None for name in names[:needed]]

    assert ended == [False] * (needed - 1) + [True]
    assert (server.version, server.late(0), server.late(needed)) == (needed, True, False)


def test_a_quorum_is_of_those_who_take_part_now():
    """One leaves, and two of three are enough."""
    server = start("a", "b", "c", "d", quorum=0.6)
    server.push("a", dense(1.0), 0)
    assert server.push("b", dense(1.0), 0) is None

    assert server.left("d").released == ("a", "b")


def test_a_deadline_ends_a_round_with_what_has_come():
    """Nothing, if nothing has; who was missing is late."""
    server = start(deadline_s=2.0)
    assert (server.deadline_s, server.expire()) == (2.0, None)
    server.push("b", dense(2.0), 0)

    assert server.expire().released == ("b",)
    np.testing.assert_allclose(START - server.theta, ALPHA * 2.0, rtol=1e-5)
    assert server.late(0)
    assert start().deadline_s is None


def test_it_goes_on_from_a_version():
    """That of a checkpoint."""
    server = Aggregation(Config(), START.copy(), 40)
    server.joined("a")
    server.push("a", dense(1.0), 40)

    assert (server.version, server.late(40)) == (41, True)


@given(pushed=st.lists(updates(), min_size=1, max_size=4))
def test_a_sum_is_sparse_as_long_as_all_its_parts_are(pushed):
    """And has the positions of all of them, increasing."""
    summed = total(pushed)

    np.testing.assert_allclose(as_dense(summed), sum(map(as_dense, pushed)), rtol=1e-5, atol=1e-4)
    assert (summed.indices is None) == any(update.indices is None for update in pushed)
    assert summed.indices is None or (np.diff(summed.indices) > 0).all()


@pytest.mark.parametrize(
    "settings",
    [{"quorum": 0.0}, {"quorum": 1.1}, {"quorum": float("nan")}, {"deadline_s": 0.0}, {"deadline_s": float("inf")},
     {"deadline_s": float("nan")}, {"learning_rate": -1.0}],
    ids=str,
)  # fmt: skip
def test_a_setting_that_makes_no_sense_is_refused_by_its_name(settings):
    """The message begins with it."""
    with pytest.raises(ValueError, match=f"^{next(iter(settings))}: "):
        Config(**settings)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_who_has_no_examples_has_no_weight(momentum):
    """Also where its update is not finite; and a round of such workers leaves everything as it is."""
    nothing, wild = PushInfo(examples=0), ModelUpdate(N, None, np.full(N, np.inf, "f4"))
    server, other = (start("a", "b", weights="examples", momentum=momentum) for _ in range(2))
    for each, update in ((server, wild), (other, dense(7.0))):
        each.push("a", update, 0, nothing)
        each.push("b", dense(1.0), 0, PushInfo(examples=5))
    np.testing.assert_allclose(server.theta, START - ALPHA, rtol=1e-6)
    np.testing.assert_array_equal(server.theta, other.theta)
    model, velocity = server.theta.copy(), [each.copy() for each in server.moments]

    server.push("a", dense(3.0), 2, nothing)
    applied = server.push("b", wild, 2, nothing)

    assert applied.released == ("a", "b")
    assert len(applied.changed) == 0
    assert server.version == 4
    np.testing.assert_array_equal(server.theta, model)
    np.testing.assert_array_equal(server.moments, velocity)
