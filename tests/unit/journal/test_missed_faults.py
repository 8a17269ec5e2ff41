"""Faults that did not happen, since training ended before: which count, and what a reader sees of them."""

import dataclasses

import msgspec
import pytest
from sample_runs import make_plan

from edgebed.core import records
from edgebed.core.planned.fault import FaultPlan, FaultStep, Injection, Trigger
from edgebed.journal.missed_faults import missed_faults
from edgebed.journal.series import Series
from edgebed.journal.series_faults import TimedFault
from edgebed.journal.summary import summarise
from edgebed.journal.verdict.fidelity import judge
from edgebed.reports.run.faults_text import fault_rows, faults_line

COMPLETED = records.Ended(outcome="completed", reason="")


def fault(name="restart-1", node="server", actions=("kill", "launch"), **trigger):
    """A fault of one node; its later steps come five seconds apart."""
    steps = tuple(
        FaultStep(after_s=5.0 * k, injection=Injection(node=node, action=action)) for k, action in enumerate(actions)
    )
    return FaultPlan(name=name, node=node, trigger=Trigger(**trigger), steps=steps)


def done(of, action="kill", t=1.0, **more):
    """What the journal has of a fault that was triggered."""
    record = records.Fault(name=of.name, action=action, target=of.node, asked_s=t, **more)
    return TimedFault(t, record, t)


def series_of(*faults, runtime="simulation", ended=COMPLETED, nodes=()):
    """A training of 8.16 s in which these were done."""
    trial = records.Trial(scenario="s", trial="t", seed=1, runtime=runtime, nodes=6, parameters=10)
    times = {"training_s": 0.0, "finished_t": 8.16, "last_t": 8.3}
    return dataclasses.replace(Series.empty(), trial=trial, faults=faults, ended=ended, nodes=nodes, **times)


def plan_of(*faults):
    """A small fleet with these faults."""
    return msgspec.structs.replace(make_plan(expectations=()), faults=faults)


TIMED = fault(at_s=20.0)


@pytest.mark.parametrize("runtime", ["simulation", "process", "docker"])
@pytest.mark.parametrize(
    ("missed", "text"),
    [
        (TIMED, "restart-1 at 20 s"),
        (fault(at_s=600.0), "restart-1 at 10 min 00 s"),
        (fault("kill-1", "edge-0", ("kill",), at_update=5000), "kill-1 at update 5,000"),
        (fault("kill-1", "edge-0", ("kill",), point="after-push"), "kill-1 of edge-0, after-push"),
        (fault("kill-1", "edge-0", ("kill",), point="during-pull", step=500), "kill-1 of edge-0, during-pull 500"),
    ],
    ids=["time", "minutes", "update", "point", "step"],
)
def test_a_run_that_ends_before_a_fault_is_degraded(missed, text, runtime):
    """Whatever was to trigger it, and in every runtime; it is counted, and can be expected not to be."""
    plan, series = plan_of(missed), series_of(runtime=runtime)

    assert judge(plan, series).reasons == (
        f"faults: {text} did not happen, training ended at 8.16 s; train longer, or ask for it sooner",
    )
    assert summarise(plan, series).faults_missed == 1


def test_of_several_the_first_is_named_and_the_rest_counted():
    """By time, those on several nodes one by one."""
    later = [fault("freeze-1", node, ("freeze", "thaw"), at_s=30.0) for node in ("edge-0", "edge-1")]
    plan, series = plan_of(*later, TIMED), series_of()
    summary = summarise(plan, series)

    (reason,) = judge(plan, series).reasons
    assert "faults: restart-1 at 20 s did not happen, training ended at 8.16 s, and 2 more" in reason
    assert faults_line(summary, series.faults) == "faults: none done; 3 did not happen"
    assert list(fault_rows(series.faults, missed_faults(plan, series))) == [
        ("restart-1", "kill", "server", "20.0 s", "did not happen", "", "", "at 20s"),
        ("freeze-1", "freeze", "edge-0, edge-1", "30.0 s", "did not happen (2 times)", "", "", "at 30s"),
    ]


def test_what_began_has_happened_whatever_came_of_it():
    """A thaw after the end is none that was missed; a fault that could not be done, or had nothing to do, is told."""
    frozen = fault("freeze-1", "edge-0", ("freeze", "thaw"), at_s=5.0)
    no_op = done(frozen, "freeze", no_op="it is not there")

    assert not missed_faults(plan_of(frozen), series_of(done(frozen, "freeze")))
    assert not missed_faults(plan_of(frozen), series_of(no_op))
    assert not missed_faults(plan_of(frozen), series_of(done(frozen, "freeze", problem="no such process")))


def test_what_was_done_when_training_had_ended_did_not_happen_to_it():
    """During the final evaluation; the run had not got what was asked for."""
    assert summarise(plan_of(TIMED), series_of(done(TIMED, t=8.2))).faults_missed == 1


def test_what_comes_by_chance_promises_nothing():
    """At every push, with a probability."""
    chance = fault("kill-1", "edge-0", ("kill",), point="before-push", probability=0.001)

    assert not missed_faults(plan_of(chance), series_of())


def churn(*times_s):
    """Workers that leave at these times."""
    leaving = [fault("churn-1", f"edge-{k % 2}", at_s=at_s) for k, at_s in enumerate(times_s)]
    return [msgspec.structs.replace(each, recurs=True) for each in leaving]


def test_what_was_to_go_on_and_on_is_only_remarked_if_it_had_begun():
    """Churn for a day beside a stop by updates: what lay within the training happened."""
    leaving = churn(2.0, 6.0, 10.0, 14.0)
    plan, series = plan_of(*leaving), series_of(done(leaving[0], t=2.0), done(leaving[1], t=6.0))
    fidelity = judge(plan, series)

    assert fidelity.verdict == "modelled"
    assert fidelity.remarks[-1] == "faults: churn-1 was to recur; 2 times did not happen, training ended at 8.16 s"
    assert summarise(plan, series).faults_missed == 2


@pytest.mark.parametrize("times_s", [(10.0, 14.0), (10.0,)], ids=["several", "one"])
def test_churn_of_which_none_was_due_degrades_nothing(times_s):
    """The training ended before the seed had a worker leave; once or several times makes no difference."""
    leaving = churn(*times_s)
    fidelity = judge(plan_of(*leaving), series_of())

    assert (fidelity.verdict, fidelity.reasons) == ("modelled", ())
    times = "1 time" if len(times_s) == 1 else "2 times"
    assert fidelity.remarks[-1] == f"faults: churn-1 was to recur; {times} did not happen, training ended at 8.16 s"


def test_churn_that_was_due_and_did_not_happen_degrades():
    """At 2 s of a training of 8.16 s; what was due later is remarked."""
    plan = plan_of(*churn(2.0, 10.0))
    fidelity = judge(plan, series_of())

    assert fidelity.reasons == (
        "faults: churn-1 at 2 s did not happen, training ended at 8.16 s; train longer, or ask for it sooner",
    )
    assert "churn-1 was to recur; 1 time did not happen" in fidelity.remarks[-1]


def test_a_fault_at_a_moment_is_missed_beside_churn_that_is_not():
    """The scenario itself named that moment."""
    leaving = churn(10.0, 14.0)

    (reason,) = judge(plan_of(TIMED, *leaving), series_of()).reasons
    assert reason.startswith("faults: restart-1 at 20 s did not happen, training ended at 8.16 s; train longer")


@pytest.mark.parametrize("outcome", ["interrupted", "failed"])
def test_a_trial_that_was_stopped_is_not_degraded_by_what_did_not_happen(outcome):
    """It is remarked: who stopped it knows, and may go on with it."""
    fidelity = judge(plan_of(TIMED), series_of(ended=records.Ended(outcome=outcome, reason="")))

    assert (fidelity.verdict, fidelity.reasons) == ("modelled", ())
    assert "restart-1 at 20 s did not happen" in fidelity.remarks[-1]


def test_as_long_as_a_trial_may_go_on_nothing_is_missed():
    """It is running, or its controller died and it will be gone on with."""
    assert not missed_faults(plan_of(TIMED), series_of(ended=None))


def test_a_node_that_has_gone_before_comes_to_no_point_of_its_protocol():
    """There was nothing to do, as with a second kill; the table says so."""
    sooner = fault("kill-1", "edge-0", ("kill",), at_s=3.0)
    point = fault("kill-2", "edge-0", ("kill",), point="after-push", step=9)
    died = records.Node(name="edge-0", state="died", reason="killed by SIGKILL")
    plan, series = plan_of(sooner, point), series_of(done(sooner, t=3.0), nodes=((3.0, died),))

    assert judge(plan, series).verdict == "modelled"
    assert summarise(plan, series).faults_missed == 0
    assert [row[4] for row in fault_rows((), missed_faults(plan, series))] == [
        "did not happen: it had gone before (died)"
    ]


@pytest.mark.parametrize(
    ("states", "missed"),
    [
        ([(3.0, "died"), (4.0, "joined"), (4.1, "running")], 1),
        ([(3.0, "died"), (4.0, "joined"), (6.0, "died")], 0),
        ([(8.2, "died")], 1),
    ],
    ids=["is back", "has gone again", "after the end"],
)
def test_who_is_there_to_the_end_might_have_come_to_its_point(states, missed):
    """It had died before and was started anew, or it died when training had ended."""
    point = fault("kill-2", "edge-0", ("kill",), point="after-push", step=9)
    nodes = tuple((t, records.Node(name="edge-0", state=state)) for t, state in states)

    assert summarise(plan_of(point), series_of(nodes=nodes)).faults_missed == missed
