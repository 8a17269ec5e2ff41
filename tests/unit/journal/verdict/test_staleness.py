"""A fleet of k workers without faults has a mean staleness of k - 1, at any speeds: else the verdict says so."""

import dataclasses
import heapq
import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebed.core import records
from edgebed.core.plan import Part
from edgebed.core.planned.fault import FaultPlan, FaultStep, Injection, Trigger
from edgebed.journal.accounts.seen_pushes import SeenPushes, WorkerPushes
from edgebed.journal.verdict.fidelity import judge

from .conftest import WORKERS, done, plan_of, series_of, trial, with_faults, with_server


def plan(aggregation="asynchronous", **more):
    """Four workers and a server that applies each push at once, or does something else."""
    made = plan_of()
    parts = made.server.method.parts | {"aggregation": Part(name=aggregation)}
    method = msgspec.structs.replace(made.server.method, parts=parts)
    nodes = tuple(msgspec.structs.replace(node, method=method) for node in made.nodes)
    return msgspec.structs.replace(made, nodes=nodes, **more)


class Fleet:
    """Workers whose pushes are applied and answered in the order in which they come."""

    def __init__(self, mean_s, *, is_even=True, not_finite=0.0, given_up=(), seed=0):
        """`mean_s` of each worker between two pushes; those `given_up` join anew each time."""
        self.draws = random.Random(seed)
        self.mean_s = dict(zip(WORKERS, mean_s, strict=True))
        self.is_even, self.not_finite, self.given_up = is_even, not_finite, given_up
        self.agenda = [(self.takes_s(name), name, 0, 0) for name in WORKERS]
        heapq.heapify(self.agenda)
        self.seen = SeenPushes()

    def takes_s(self, name):
        """Time until the worker's next push."""
        mean_s = self.mean_s[name]
        return mean_s if self.is_even else self.draws.expovariate(1 / mean_s)

    def push(self):
        """The next push comes."""
        now, name, step, base = heapq.heappop(self.agenda)
        version = self.seen.version
        refused = (
            "not-joined" if name in self.given_up else "not-finite" if self.draws.random() < self.not_finite else ""
        )
        if refused:
            record = records.Refused(peer=name, code=refused, reason="…", worker=name, incarnation=1, step=step)
        else:
            record = records.Update(
                worker=name, incarnation=1, step=step, version=version + 1, base=base, staleness=version - base,
                entries=1, bits=1, bytes=1, loss=1.0,
            )  # fmt: skip
        self.seen.add(now, "server", record)
        heapq.heappush(self.agenda, (now + self.takes_s(name), name, step + 1, self.seen.version))

    def train(self, pushes=20):
        """Until each has made so many pushes; the trial as its journal tells it."""
        of = self.seen.of_workers
        while len(of) < len(WORKERS) or min(each.count for each in of.values()) < pushes:
            self.push()
        for name in WORKERS:  # what comes when all is over
            late = records.Refused(peer=name, code="finished", reason="…", worker=name, incarnation=1, step=10**6)
            self.seen.add(1e9, "server", late)
        return with_server(series_of(runtime="simulation"), pushes=of)


def reasons(series, made=None):
    """Why the trial's conditions are degraded."""
    return judge(made or plan(), series).reasons


@settings(max_examples=60)
@given(
    mean_s=st.lists(st.floats(1.0, 100.0), min_size=4, max_size=4),
    is_even=st.booleans(),
    not_finite=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 2**16),
)
def test_no_fleet_without_faults_breaks_the_law(mean_s, is_even, not_finite, seed):
    """Speeds 100 times apart, pauses drawn by chance, pushes that are not finite: the law is theirs as well."""
    assert reasons(Fleet(mean_s, is_even=is_even, not_finite=not_finite, seed=seed).train()) == ()


@settings(max_examples=20)
@given(mean_s=st.lists(st.floats(1.0, 20.0), min_size=4, max_size=4), given_up=st.sampled_from(WORKERS))
def test_a_worker_whose_pushes_are_refused_breaks_it(mean_s, given_up):
    """It is one of four all the same; who it is, is said."""
    (reason,) = reasons(Fleet(mean_s, given_up=(given_up,)).train())
    count = reason.partition(f"pushes of {given_up} ")[2].partition(" ")[0]

    assert reason.startswith("staleness: its mean is ")
    assert (
        f", and that of 4 workers without faults is 3; of {count} pushes of {given_up} {count} were refused" in reason
    )
    assert "(not-joined)" in reason


def test_what_is_no_such_fleet_is_not_judged():
    """Other aggregations, shorter runs, runs with a fault that was asked for or done by hand, or with a death."""
    series = Fleet([1.0, 2.0, 3.0, 4.0], given_up=("edge-3",)).train()
    freeze = FaultStep(after_s=0.0, injection=Injection(node="edge-0", action="freeze"))
    fault = FaultPlan(name="freeze-1", node="edge-0", trigger=Trigger(at_s=1.0), steps=(freeze,))
    died = records.Node(name="edge-0", state="died", reason="…")

    def causes(series, made=None):
        return [reason.partition(":")[0] for reason in reasons(series, made)]

    assert causes(series) == ["staleness"]
    for aggregation in ("buffered", "stale-synchronous", "synchronous"):
        assert causes(series, plan(aggregation)) == []
    assert causes(series, plan(faults=(fault,))) == []
    assert causes(with_faults(series, done("thaw", name="by hand"))) == []
    assert causes(dataclasses.replace(series, nodes=((1.0, died),), finished_t=20.0)) == ["deaths"]
    assert causes(with_server(series, restored=((1.0, records.Restored(version=3)),))) == []
    assert causes(Fleet([1.0, 2.0, 3.0, 4.0], given_up=("edge-3",)).train(19)) == []
    assert causes(with_server(series, pushes=series.server.pushes | {"edge-3": WorkerPushes()})) == []


def test_a_model_that_is_older_than_it_is_said_to_be_breaks_it():
    """The law holds in both directions."""
    series = Fleet([1.0, 1.1, 1.2, 1.3]).train()
    for each in series.server.pushes.values():
        each.stale += each.applied

    (reason,) = reasons(series)
    assert reason.endswith("and that of 4 workers without faults is 3; see the logs (edgebed logs)")


@pytest.mark.parametrize("runtime", ["process", "simulation"])
def test_the_law_is_one_of_every_runtime(runtime):
    """Virtual time has the same."""
    series = Fleet([1.0, 2.0, 3.0, 4.0], given_up=("edge-3",)).train()
    made = dataclasses.replace(series, trial=trial(runtime))

    assert [cause for cause in judge(plan(), made).causes if cause == "staleness"] == ["staleness"]
