"""Faults in virtual time: each does to a node and its messages exactly what it says, at exactly its time."""

import itertools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from quick_runs import run as run_quickly

from edgebed.core import records
from edgebed.emulation.model.cpu_quota import PERIOD_S
from edgebed.emulation.outage import DEAD_S, RECONNECT_S, tried_after_s
from edgebed.journal.journal import journal_hash
from edgebed.journal.trial_state import TrialStatus

Outcome = Any  # conftest.py
Simulate = Callable[..., Outcome]

SCENARIO: dict[str, Any] = {
    "name": "faults",
    "question": "What does a fault do?",
    "seed": 3,
    "task": {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "100ms"},
    "method": "asgd",
    "fleet": {
        "fast": {"count": 2, "memory": "400MiB"},
        "slow": {"count": 2, "uplink": "1mbit", "downlink": "1mbit", "latency": "20ms"},
    },
    "deadlines": {"check": "500ms"},
    "checkpoints": {"every": "20 updates"},
    "evaluation": {"every": "50 updates"},
    "stop": {"updates": 150},
}


def scenario(*faults: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """The scenario with these faults."""
    return SCENARIO | settings | {"faults": list(faults)}


def steps_of(outcome: Outcome, worker: str, incarnation: int = 1) -> list[tuple[float, int]]:
    """(time, step) of a worker's pushes that were applied."""
    return [
        (t, update.step)
        for t, update in outcome.of(records.Update)
        if (update.worker, update.incarnation) == (worker, incarnation)
    ]


def test_a_killed_worker_is_gone_at_once_and_the_server_learns_it_from_its_connection(simulate: Simulate) -> None:
    """Two seconds after the connection broke its state is released; its work is nobody's."""
    outcome = simulate(scenario({"kill": "fast-0", "at": "1.05s"}))

    assert outcome.ended.outcome == "completed"
    assert outcome.faults() == [(1.05, "kill")]
    assert outcome.states("fast-0")[-1] == (1.05, "died")
    ((_, died),) = [(t, r) for t, r in outcome.of(records.Node) if r.state == "died"]
    assert died.reason == "killed by SIGKILL"
    ((left_s, left),) = outcome.of(records.Left)
    assert (left_s, left.worker, left.reason) == (3.05, "fast-0", "reset")
    assert max(t for t, _ in steps_of(outcome, "fast-0")) == 1.0
    assert [record.begun - record.pushed for _, record in outcome.of(records.Pushes, "fast-0")] == [1]
    assert (outcome.accounting.total.lost_with_worker, outcome.accounting.problems) == (1, ())


def test_a_worker_out_of_memory_ends_in_the_kernels_words(simulate: Simulate) -> None:
    """At its cap."""
    outcome = simulate(scenario({"memory": "fast-0", "at": "1s"}))
    (died,) = [record for _, record in outcome.of(records.Node) if record.state == "died"]

    assert died.reason.startswith("out of memory: killed by the kernel at its limit of 400MiB")


def test_a_restarted_worker_is_another_incarnation_and_counts_anew(simulate: Simulate) -> None:
    """It joins when it is launched, and does not repeat the batches of its first life."""
    outcome = simulate(scenario({"restart": "fast-0", "at": "1s", "delay": "2s"}))

    assert outcome.faults() == [(1.0, "kill"), (3.0, "launch")]
    joins = [(t, r.incarnation) for t, r in outcome.of(records.Joined) if r.worker == "fast-0"]
    assert joins == [(0.0, 1), (3.0, 2)]
    first, second = steps_of(outcome, "fast-0"), steps_of(outcome, "fast-0", 2)
    assert second[0] == (3.1, 0)
    assert first[-1][0] <= 1.0
    losses = {r.incarnation: r.loss for _, r in outcome.of(records.Update) if (r.worker, r.step) == ("fast-0", 0)}
    assert losses[1] != losses[2]


def test_a_restart_takes_its_time(simulate: Simulate) -> None:
    """From the launch on; until then nobody hears of the node, and the others train."""
    slow = {"restart_time": {"server": "700ms", "others": "1500ms"}}
    worker = simulate(scenario({"restart": "fast-0", "at": "1s", "delay": "2s"}, **slow))
    server = simulate(scenario({"restart": "server", "at": "1s", "delay": "2s"}, server={"durability": "none"}, **slow))

    assert worker.faults() == server.faults() == [(1.0, "kill"), (3.0, "launch")]
    assert worker.states("fast-0")[4:-1] == [
        (1.0, "died"), (3.0, "expected"), (4.5, "joined"), (4.5, "ready"), (4.5, "running")
    ]  # fmt: skip
    assert steps_of(worker, "fast-0", 2)[0] == (4.6, 0)
    assert any(1.0 < t < 4.5 for t, _ in steps_of(worker, "fast-1"))
    assert [t for t, _ in server.of(records.Restored)] == [3.7]
    assert not [t for t, _ in server.of(records.Update) if 1.0 < t < 3.7]
    assert {r.worker for t, r in server.of(records.Joined) if t >= 3.7} == {each.node for each in server.plan.workers()}
    assert worker.accounting.closes
    assert server.accounting.closes


def test_a_node_that_starts_is_not_there_for_faults(simulate: Simulate) -> None:
    """As live: it comes up all the same."""
    kill = {"kill": "fast-0", "at": "3.5s"}
    outcome = simulate(scenario({"restart": "fast-0", "at": "1s"}, kill, restart_time={"others": "4s"}))
    no_op = [record.no_op for t, record in outcome.of(records.Fault) if t == 3.5]

    assert no_op == ["it is not there (expected)"]
    assert outcome.states("fast-0")[-2] == (6.0, "running")


def test_a_worker_that_is_back_before_the_server_waits_for_it(simulate: Simulate) -> None:
    """It joins the new server, as all others do, when that one is ready."""
    faults = ({"restart": "server", "at": "1s"}, {"restart": "fast-0", "at": "1s"})
    settings = {"server": {"durability": "none"}, "restart_time": {"server": "2s", "others": "500ms"}}
    outcome = simulate(scenario(*faults, **settings))

    assert outcome.states("fast-0")[6:9] == [(2.5, "joined"), (2.5, "ready"), (4.0, "running")]
    assert [t for t, r in outcome.of(records.Joined) if r.worker == "fast-0"] == [0.0, 4.0]
    assert outcome.ended.outcome == "completed"
    assert outcome.accounting.closes


def test_a_frozen_workers_work_takes_as_much_longer_as_it_was_frozen(simulate: Simulate) -> None:
    """A gradient of 100 ms that was frozen for 2 s after 50 ms is pushed 2 s later than it would have been."""
    outcome = simulate(scenario({"freeze": "fast-0", "at": "1.05s", "for": "2s"}))
    times = [t for t, _ in steps_of(outcome, "fast-0")]

    assert times[9:12] == pytest.approx([1.0, 3.1, 3.2])
    assert outcome.faults() == [(1.05, "freeze"), (3.05, "thaw")]
    assert outcome.states("fast-0")[-3:-1] == [(2.5, "unresponsive"), (3.5, "running")]
    assert outcome.lost == {}


def test_one_that_stays_frozen_is_not_waited_for(simulate: Simulate) -> None:
    """The trial ends when the others have made the updates, and tells how far the frozen one had come."""
    outcome = simulate(scenario({"freeze": "fast-0", "at": "1.05s"}))

    assert outcome.ended.outcome == "completed"
    assert outcome.of(records.Finished)[0][0] == outcome.of(records.Ended)[0][0]
    ((_, account),) = outcome.of(records.Pushes, "fast-0")
    assert (account.begun, account.pushed) == (11, 10)


def test_when_all_are_frozen_for_good_the_trial_ends_at_once(simulate: Simulate) -> None:
    """Nothing can happen any more, so nothing is waited for."""
    outcome = simulate(scenario({"freeze": "workers", "at": "1s"}))

    assert (outcome.of(records.Ended)[0][0], outcome.ended.outcome) == (1.0, "failed")
    assert "no worker is left" in outcome.ended.reason


def test_a_short_cut_delays_a_worker_and_loses_nothing(simulate: Simulate) -> None:
    """What is on its way stands still until TCP tries again; the server hears of nothing."""
    plain = simulate(scenario(stop={"updates": 150}))
    outcome = simulate(scenario({"cut": "slow-0", "at": "1s", "for": "2s"}, stop={"updates": 150}))
    planned, cut = ([t for t, _ in steps_of(each, "slow-0")] for each in (plain, outcome))
    before = [t for t in cut if t <= 1.0]
    late = [b - a for a, b in zip(planned[len(before) :], cut[len(before) :], strict=False)]

    assert not [t for t in cut if 1.0 < t < 3.0]
    assert before == planned[: len(before)]
    assert late[0] == pytest.approx(tried_after_s(2.0), abs=0.11)  # a gradient in work is disturbed by no cut
    assert outcome.lost == {}
    assert not outcome.of(records.Unanswered)
    assert not outcome.of(records.Left)


@pytest.mark.parametrize("target", ["slow-0", "fast-0", "server"])
def test_a_long_cut_loses_what_was_on_its_way_and_the_worker_joins_anew(simulate: Simulate, target: str) -> None:
    """Also where its link is as fast as the machine, and where it is the server's that is cut."""
    outcome = simulate(scenario({"cut": target, "at": "1s", "for": f"{DEAD_S + 2}s"}, stop={"updates": 250}))
    healed_s = 1 + DEAD_S + 2
    concerned = [target] if target != "server" else [worker.node for worker in outcome.plan.workers()]

    for worker in concerned:
        first_s = min(t for t, _ in steps_of(outcome, worker) if t > 1.1)
        assert healed_s < first_s < healed_s + RECONNECT_S + 1.0
        joins = [(t, r.joins) for t, r in outcome.of(records.Joined) if r.worker == worker]
        assert joins[0] == (joins[0][0], 0)
        assert joins[1][1] == 1
        assert healed_s + RECONNECT_S <= joins[1][0] < healed_s + RECONNECT_S + 0.1
    assert sorted(node for _, node, r in outcome.entries if isinstance(r, records.Unanswered)) == sorted(concerned)
    assert outcome.accounting.total.lost_in_flight == len(outcome.lost)
    fast = {worker for worker in concerned if worker.startswith("fast")}  # of others it was the model that was lost
    assert {worker for worker, _, _ in outcome.lost} == fast
    assert outcome.accounting.closes


LAYERS = SCENARIO | {
    "task": {"data": "digits", "model": "eight-layer", "width": 4, "batch_size": 32, "gradient_time": "600ms"},
    "method": "decoupled-greedy",
    "fleet": {"edge": {"count": 4}},
    "stop": {"time": "9s"},
}


@pytest.mark.parametrize("cut_for_s", [0.5, DEAD_S + 1])
@pytest.mark.parametrize("two", [("edge-1", "edge-2"), ("edge-3", "edge-2")])
def test_between_two_shards_nothing_arrives_and_between_others_it_does(
    simulate: Simulate, two: tuple[str, str], cut_for_s: float
) -> None:
    """After the heal whoever waits gets what was held up, and after a long cut, which loses it, the same again."""
    fault = {"cut": {"between": list(two)}, "at": "1s", "for": f"{cut_for_s}s"}
    outcome = simulate(LAYERS | {"faults": [fault]}, trace=True)
    shards = {f"edge-{k}" for k in range(4)}
    came = [(t, frozenset((node, got.sender))) for t, node, got in outcome.entries if isinstance(got, records.Received)]
    between_s = [t for t, ends in came if ends == set(two)]
    healed_s = 1.0 + cut_for_s

    assert outcome.faults() == [(1.0, "cut"), (healed_s, "heal")]
    assert not [t for t in between_s if 1.0 < t < healed_s]
    assert [t for t in between_s if t <= 1.0]
    assert [t for t in between_s if t >= healed_s]
    assert [t for t, ends in came if 1.0 < t < healed_s and ends < shards and ends != set(two)]
    assert outcome.ended.outcome == "completed"


@pytest.mark.parametrize(
    ("point", "arrives"),
    [
        ({"before": "push"}, False),
        ({"during": "push"}, False),
        ({"after": "push"}, True),
        ({"during": "pull"}, False),
        ({"after": "pull"}, False),
    ],
)
@pytest.mark.parametrize("worker", ["fast-0", "slow-0"])
def test_a_kill_at_a_point_leaves_exactly_what_had_left(
    simulate: Simulate, worker: str, point: dict[str, str], arrives: bool
) -> None:
    """The fifth push is applied only if all of it had left; a link makes no difference to that."""
    outcome = simulate(scenario({"kill": worker, "step": 4} | point))
    (_, at_point), (_, account) = outcome.of(records.Pushes, worker)
    ((_, fault),) = outcome.of(records.Fault)

    assert fault.trigger == "-".join(next(iter(point.items()))) + " 4"
    assert [step for _, step in steps_of(outcome, worker)] == list(range(4 + arrives))
    is_pull, is_before = "pull" in point.values(), "before" in point
    assert at_point == account, "what it said before is how it ended"
    assert (account.begun, account.pushed) == ((4, 4) if is_pull else (5, 4) if is_before else (5, 5))
    assert outcome.accounting.closes


@pytest.mark.parametrize("moment", ["during", "after"])
def test_a_freeze_at_a_push_holds_it_only_while_it_is_leaving(simulate: Simulate, moment: str) -> None:
    """One that has left is applied; one that is leaving is held up until the thaw."""
    outcome = simulate(scenario({"freeze": "slow-0", moment: "push", "step": 4, "for": "1s"}))
    ((frozen_s, _), (thawed_s, _)) = outcome.faults()
    applied_s = next(t for t, step in steps_of(outcome, "slow-0") if step == 4)

    assert thawed_s == frozen_s + 1.0
    assert applied_s >= thawed_s if moment == "during" else applied_s < frozen_s + 0.1
    assert outcome.lost == {}


def test_two_faults_at_one_point_are_done_one_after_the_other(simulate: Simulate) -> None:
    """The link is cut, then the worker killed, while its push is leaving."""
    outcome = simulate(
        scenario({"cut": "fast-0", "during": "push", "step": 4}, {"kill": "fast-0", "during": "push", "step": 4})
    )

    assert [action for _, action in outcome.faults()] == ["cut", "kill"]
    assert outcome.lost == {("fast-0", 1, 4): "a node ended"}
    assert [record.reason for _, record in outcome.of(records.Left)] in ([], ["silence"])  # a cut tells nobody


def test_a_changed_link_makes_pushes_slower_until_it_is_as_planned_again(simulate: Simulate) -> None:
    """A tenth of the rate for three seconds."""
    outcome = simulate(scenario({"link": "slow-0", "at": "1s", "uplink": "100kbit", "for": "3s"}))
    times = [t for t, _ in steps_of(outcome, "slow-0")]
    took_s = [(t, later - t) for t, later in itertools.pairwise(times)]
    planned_s = took_s[0][1]
    slow = [each for t, each in took_s if 1.0 <= t < 3.0]

    assert slow[0] > 3 * planned_s
    assert [each for t, each in took_s if t > 4.5] == pytest.approx([planned_s] * 3, rel=0.01)


def test_a_lower_cap_makes_work_longer_until_it_is_as_planned_again(simulate: Simulate) -> None:
    """A quarter of a core: 400 ms a gradient."""
    outcome = simulate(scenario({"cpus": "fast-0", "at": "1.05s", "to": 0.25, "for": "1s"}))
    times = [t for t, _ in steps_of(outcome, "fast-0")]

    took_s = [after - before for before, after in itertools.pairwise(times[9:15])]
    assert times[10] == pytest.approx(1.1)
    assert took_s == pytest.approx([0.1, took_s[1], 0.4, 0.4, 0.1])
    assert took_s[1] == pytest.approx(0.4, abs=PERIOD_S)


@pytest.mark.parametrize(
    "fault",
    [
        {"cut": "slow-0", "at": "1s", "for": "2s"},
        {"flap": "slow-0", "at": "1s", "for": "2s", "up": "300ms", "down": "300ms"},
        {"partition": [["server", "fast", "slow-1"], ["slow-0"]], "at": "1s", "for": "2s"},
        {"link": "slow-0", "at": "1s", "uplink": "20kbit", "for": "2s"},
        {"cpus": "slow-0", "at": "1s", "to": 0.01, "for": "2s"},
        {"cut": "server", "at": "1s", "for": "2s"},
        {"link": "server", "at": "1s", "uplink": "10kbit", "downlink": "10kbit", "for": "2s"},
    ],
    ids=lambda fault: " ".join(map(str, next(iter(fault.items())))),
)
def test_what_ends_while_its_node_is_dead_has_ended_for_its_next_life(
    simulate: Simulate, fault: dict[str, Any]
) -> None:
    """The worker pushes as often as it would without the fault."""
    fleet = {"fast": SCENARIO["fleet"]["fast"], "slow": SCENARIO["fleet"]["slow"] | {"cpus": 1.0}}
    server = {"uplink": "100mbit", "downlink": "100mbit", "durability": "none"}
    settings = {"fleet": fleet, "server": server, "stop": {"time": "8s"}}
    target = next(iter(fault.values()))
    restart = {"restart": target if target == "server" else "slow-0", "at": "2.5s", "delay": "1.5s"}
    with_fault, without = (simulate(scenario(*faults, **settings)) for faults in ((fault, restart), (restart,)))

    def pushes(outcome: Outcome) -> int:
        return sum(t > 4.5 and update.worker == "slow-0" for t, update in outcome.of(records.Update))

    assert pushes(without) >= 8
    assert pushes(with_fault) == pytest.approx(pushes(without), abs=1)
    assert with_fault.accounting.closes


def test_a_restarted_server_goes_on_from_the_last_checkpoint(simulate: Simulate) -> None:
    """Updates since then are lost with it; everybody joins the new one as soon as it is there."""
    killed = {"restart": "server", "at_update": 50, "delay": "1s"}
    outcome = simulate(scenario(killed) | {"server": {"durability": "none"}})
    ((restored_s, restored),) = outcome.of(records.Restored)
    versions = [update.version for t, update in outcome.of(records.Update) if t >= restored_s]

    assert (restored.version, restored.incarnation) == (40, 2)
    assert versions == list(range(41, 151))
    assert outcome.ended.outcome == "completed"
    assert outcome.accounting.closes
    assert outcome.accounting.total.lost_with_server >= 10
    assert {r.worker for t, r in outcome.of(records.Joined) if t >= restored_s} == {
        worker.node for worker in outcome.plan.workers()
    }


def test_without_the_server_the_trial_ends_at_once(simulate: Simulate) -> None:
    """And says so."""
    outcome = simulate(scenario({"kill": "server", "at": "1s"}))

    assert outcome.of(records.Ended)[0][0] == 1.0
    assert outcome.ended.reason.startswith("the server died: killed by SIGKILL")


def test_a_restarted_evaluator_goes_on_measuring(simulate: Simulate) -> None:
    """To the last version."""
    outcome = simulate(scenario({"restart": "evaluator", "at": "1s", "delay": "1s"}))
    versions = [record.version for _, record in outcome.of(records.Evaluated)]

    assert versions == sorted(versions)
    assert versions[-1] == 150
    assert outcome.ended.outcome == "completed"


@pytest.mark.parametrize(
    ("fault", "gone_s"),
    [({"kill": "evaluator", "at": "1.05s"}, 1.05), ({"freeze": "evaluator", "at": "1.05s"}, 2.5)],
    ids=["killed", "frozen"],
)
def test_an_evaluator_that_failed_is_restarted_by_the_policy(
    simulate: Simulate, fault: dict[str, Any], gone_s: float
) -> None:
    """It goes on measuring, and the journal says what it could not measure."""
    settings = {"on_failure": "restart", "restart_delay": "1100ms", "evaluation": {"every": "10 updates"}}
    outcome = simulate(scenario(fault, **settings))
    measured = [(t, record.version) for t, record in outcome.of(records.Evaluated)]
    before, after = ([version for t, version in measured if (t > 1.05) == is_late] for is_late in (False, True))
    missing = range(before[-1] + 10, after[0], 10)
    notes = [record.text for _, record in outcome.of(records.Note, "controller")]

    assert outcome.ended.outcome == "completed"
    assert (gone_s, "died") in outcome.states("evaluator")
    assert before == list(range(0, before[-1] + 1, 10))
    assert after[1:] == list(range(after[0] // 10 * 10 + 10, 151, 10))
    assert len(missing) > 1
    text = f"{len(missing)} evaluations, of updates {missing[0]} to {missing[-1]}, were not made"
    assert f"{text}: the evaluator was away" in notes


def test_an_evaluator_that_dies_after_the_last_update_still_measures_the_final_model(simulate: Simulate) -> None:
    """Its new life asks for it."""
    faults = ({"freeze": "evaluator", "at": "1s"}, {"kill": "evaluator", "at": "8s"})
    outcome = simulate(scenario(*faults, on_failure="restart", deadlines={"check": "20s", "stall": "60s"}))
    (finished_s, _), *_ = outcome.of(records.Finished)

    assert finished_s < 8.0
    assert outcome.ended.outcome == "completed"
    assert [(record.version, record.final) for _, record in outcome.of(records.Evaluated)][-1] == (150, True)


@pytest.mark.parametrize("policy", ["ignore", "stop"])
def test_with_other_policies_the_evaluators_death_ends_the_trial(simulate: Simulate, policy: str) -> None:
    """As before, with the reason."""
    outcome = simulate(scenario({"kill": "evaluator", "at": "1s"}, on_failure=policy))

    assert outcome.of(records.Ended)[0][0] == 1.0
    assert "evaluator died: killed by SIGKILL" in outcome.ended.reason


def test_a_frozen_server_that_the_policy_ends_goes_on_from_its_log(simulate: Simulate) -> None:
    """Not from the last checkpoint: it had a log, as every server that may end."""
    outcome = simulate(scenario({"freeze": "server", "at": "1.05s"}, on_failure="restart"))
    ((_, restored),) = outcome.of(records.Restored)
    versions = [update.version for _, update in outcome.of(records.Update)]

    assert restored.replayed is not None
    assert versions == list(range(1, 151))
    assert outcome.accounting.closes


def test_with_an_oracle_the_server_hears_it_from_the_controller(simulate: Simulate) -> None:
    """At once."""
    outcome = simulate(scenario({"kill": "fast-0", "at": "1.05s"}, detector="oracle"))
    ((left_s, left),) = outcome.of(records.Left)

    assert (left_s, left.reason) == (1.05, "oracle")


ALL_AT_ONCE = (
    {"churn": 40, "of": "fast", "at": "0.5s", "for": "3s", "absent": "500ms"},
    {"flap": "slow-0", "at": "1s", "for": "5s", "up": "800ms", "down": "400ms"},
    {"cut": "slow-1", "after": "push", "probability": 0.1, "for": "4s"},
    {"freeze": {"fraction": "50%"}, "at_update": 30, "for": "700ms"},
    {"restart": "server", "at_update": 70, "delay": "300ms"},
)


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_the_same_seed_gives_the_same_journal_with_faults_too(simulate: Simulate, processes: int) -> None:
    """However many processes compute, and whatever work is cancelled on the way."""
    faulty = scenario(*ALL_AT_ONCE, fleet={"fast": {"count": 3}, "slow": SCENARIO["fleet"]["slow"]})
    outcome = simulate(faulty, processes=processes)

    assert outcome.ended.outcome == "completed"
    assert {action for _, action in outcome.faults()} >= {"kill", "launch", "cut", "heal", "freeze", "thaw"}
    assert outcome.accounting.closes
    assert journal_hash(outcome.journal) == journal_hash(simulate(faulty).journal)


def test_what_happens_after_the_last_look_is_shown(tmp_path: Path) -> None:
    """Virtual time passes between two looks, and the end of the trial is looked at."""
    looks: list[TrialStatus] = []
    progress = SimpleNamespace(trial_started=lambda _: None, update=looks.append, trial_ended=lambda _: None)

    run_quickly(scenario({"kill": "fast-0", "at": "2s"}), runtime="simulation", runs_dir=tmp_path, progress=progress)

    assert [trouble.text for trouble in looks[-1].troubles] == ["fast-0: kill (kill-1)"]
    assert looks[-1].state == "over"
