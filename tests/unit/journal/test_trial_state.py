"""How a trial stands, from records alone: its figures, its device classes, what has happened to its nodes.

Method: sequences of records, random ones for the laws; what they must amount to is counted in the test, or is what the
summary of the same journal says.
"""

import msgspec
import pytest
from evaluated import evaluation
from hypothesis import given
from hypothesis import strategies as st
from sample_runs import sample_entries

from edgebed.core import records
from edgebed.core.plan import Shard
from edgebed.journal.folds import Timeline
from edgebed.journal.journal import JournalWriter, read_journal
from edgebed.journal.run_folder import TrialFolder
from edgebed.journal.trial_state import TrialState
from edgebed.journal.troubles import LATEST_MAX, TROUBLES_MAX, Troubles
from edgebed.roles.control.controller import ResumedTrial
from edgebed.running.resume import past_of

WORKERS = ("edge-0", "edge-1", "phone-0", "phone-1")
STATES = ("expected", "started", "joined", "ready", "running", "died", "missing", "unresponsive", "stopped")


def update(version, worker="edge-0"):
    """An update of 100 bytes."""
    return records.Update(
        worker=worker, incarnation=1, step=0, version=version, base=version - 1, staleness=0, entries=1, bits=32,
        bytes=100, loss=1.0,
    )  # fmt: skip


def began(trained_s=0.0):
    """Training begins, or goes on."""
    return records.Trial(scenario="s", trial="t", seed=1, runtime="process", nodes=6, parameters=1, trained_s=trained_s)


def fault(action, target="edge-0", name="f-1", **more):
    """Something done to a node."""
    return records.Fault(name=name, action=action, target=target, asked_s=1.0, **more)


PAST = ResumedTrial(
    began_s=5.0,
    until_s=8.0,
    trained_s=3.0,
    updates=9,
    incarnations={},
    update_bytes=700,
    measured={"accuracy": 0.4, "loss": 2.5},
)


def follow(plan, entries, **options):
    """How a trial with these entries stands."""
    return TrialState(plan, **options).add_all(entries)


def by_name(status):
    """Its device classes."""
    return {each.name: each for each in status.classes}


def test_a_whole_journal_amounts_to_what_its_summary_says(sample_run):
    """Updates, bytes, accuracy, end; nothing is left of rates."""
    trial = sample_run.trials["asgd"]
    standing = follow(trial.plan, trial.events())
    status = standing.status(standing.last_t, 0.0)
    summary = trial.summary

    assert (status.updates, status.ingress_bytes) == (summary.updates, summary.server.ingress_bytes)
    assert (status.measured["accuracy"], status.stop_updates) == (summary.final["accuracy"], 600)
    assert (status.state, standing.ended.outcome) == ("over", summary.outcome)
    assert status.elapsed_s == pytest.approx(standing.last_t)
    assert status.nodes_up == status.nodes_expected == 6


@given(
    updates=st.lists(st.sampled_from((*WORKERS, "stranger")), max_size=40),
    changes=st.lists(st.tuples(st.sampled_from((*WORKERS, "server", "stranger")), st.sampled_from(STATES))),
)
def test_classes_share_all_nodes_and_all_updates(make_sample_plan, updates, changes):
    """Every worker is in one state of its class; shares are what was counted; a stranger is in none."""
    entries = [(0.0, "controller", began())]
    entries += [(1.0, "server", update(k + 1, worker)) for k, worker in enumerate(updates)]
    entries += [(2.0, "controller", records.Node(name=name, state=state)) for name, state in changes]
    status = follow(make_sample_plan(), entries).status(3.0, 0.0)
    classes = by_name(status)
    last = dict.fromkeys(WORKERS, "expected") | {name: state for name, state in changes if name in WORKERS}
    known = [worker for worker in updates if worker in WORKERS]

    assert list(classes) == ["edge", "phone"]
    for name, each in classes.items():
        states = [state for worker, state in last.items() if worker.startswith(name)]
        assert each.states == {state: states.count(state) for state in states}
        assert each.nodes == 2
        assert each.nodes_up == sum(state in ("joined", "ready", "running") for state in states)
        share = sum(worker.startswith(name) for worker in known) / len(known) if known else None
        assert each.share == share
    assert status.nodes_expected == 6


def test_rates_are_of_the_last_few_seconds_of_the_clock(make_sample_plan):
    """Whatever the trial's own time is; all classes together have the rate of the whole."""
    standing = follow(make_sample_plan(), [(0.0, "controller", began())])
    version, statuses = 0, []
    for look in range(21):
        for worker in ("edge-0", "edge-1", "phone-0") if look else ():
            version += 1
            standing.add(100.0 * look, "server", update(version, worker))
        statuses.append(standing.status(100.0 * look, 0.5 * look))

    assert (statuses[0].updates_per_s, statuses[1].updates_per_s) == (None, 6.0)
    assert [statuses[-1].updates_per_s, *(each.rate_per_s for each in statuses[-1].classes)] == [6.0, 4.0, 2.0]
    assert standing.status(2000.0, 60.0).updates_per_s is None


def test_what_the_server_lost_never_makes_a_rate_negative(make_sample_plan):
    """It goes on from an older version."""
    standing = follow(make_sample_plan(), [(0.0, "controller", began()), (1.0, "server", update(50))])
    standing.status(1.0, 0.0)
    standing.add(2.0, "controller", records.Restored(version=20, incarnation=2))
    status = standing.status(2.0, 1.0)

    assert (status.updates, status.updates_per_s) == (20, 0.0)


def test_cpu_time_is_that_between_the_last_two_records_of_each_node(make_sample_plan):
    """The mean of the nodes that tell; against the cap held, else that of the plan; of a new life all that it had."""
    usage = [
        ("edge-0", records.Usage(time_s=10.0, cpu_s=9.0)),
        ("edge-0", records.Usage(time_s=20.0, cpu_s=11.0)),
        ("edge-1", records.Usage(time_s=10.0, cpu_s=4.0)),
        ("phone-0", records.Usage(time_s=20.0, cpu_s=4.0, cpus_held=0.25)),
        ("phone-0", records.Usage(time_s=10.0, cpu_s=1.0, cpus_held=0.25)),
    ]
    classes = by_name(follow(make_sample_plan(), [(1.0, *each) for each in usage]).status(30.0, 0.0))

    assert (classes["edge"].cpus_used, classes["edge"].cpus_held) == (pytest.approx(0.3), None)
    assert (classes["phone"].cpus_used, classes["phone"].cpus_held) == (pytest.approx(0.1), pytest.approx(0.375))
    assert by_name(follow(make_sample_plan(), []).status(0.0, 0.0))["edge"].cpus_used is None


def test_cpu_time_of_a_new_incarnation_is_all_its_own(make_sample_plan):
    """Also where its first report has more than the last of the one before, which was short."""
    entries = [
        (3.0, "edge-0", records.Usage(time_s=2.0, cpu_s=1.0)),
        (4.0, "controller", records.Node(name="edge-0", state="joined", incarnation=2)),
        (9.0, "edge-0", records.Usage(time_s=5.0, cpu_s=4.0)),
    ]

    assert by_name(follow(make_sample_plan(), entries).status(9.0, 0.0))["edge"].cpus_used == pytest.approx(0.8)


def test_how_busy_hosts_are_is_told_where_there_are_several(make_sample_plan):
    """Of each the last that was heard; one machine alone has no name, and is not told."""

    def load(host, busy):
        return 2.0, "controller", records.HostLoad(busy=busy, steal=0.0, load=1.0, lag_s=0.001, host=host)

    several = follow(make_sample_plan(), [load("b", 0.5), load("a", 0.1), load("b", 0.7)]).status(3.0, 3.0)
    alone = follow(make_sample_plan(), [load("", 0.5)]).status(3.0, 3.0)

    assert (several.hosts, alone.hosts) == ({"a": 0.1, "b": 0.7}, {})


def test_of_shards_steps_are_told(make_sample_plan):
    """The mean of one shard of the class, each line as many as it stands for; the last shard's count is the trial's."""
    plan = make_sample_plan()
    nodes = [
        node if node.role == "evaluator" else msgspec.structs.replace(node, shard=Shard(first=k, end=k + 1))
        for k, node in enumerate(plan.nodes)
    ]
    standing = follow(msgspec.structs.replace(plan, nodes=tuple(nodes)), [(0.0, "controller", began())])
    standing.status(0.0, 0.0)
    for step in range(10):
        for worker in WORKERS:
            made = step + 1 if worker == "phone-1" else 0
            standing.add(1.0, worker, records.Step(step=step, made=made, every=2 if worker == "edge-0" else 1))
    status = standing.status(1.0, 1.0)

    assert (status.updates, status.updates_per_s, status.ingress_bytes) == (10, 10.0, None)
    assert [(each.rate_per_s, each.share) for each in status.classes] == [(15.0, None), (10.0, None)]


def test_a_state_follows_from_the_records(make_sample_plan):
    """Also of a run that broke off and goes on: time stands still in between."""
    steps = [
        (0.0, "controller", records.Node(name="edge-0", state="expected"), "starting"),
        (5.0, "controller", began(), "training"),
        (6.0, "server", records.Finished(version=1, reason="x"), "final evaluation"),
        (6.5, "controller", records.Restored(version=1, incarnation=2), "training"),
        (7.0, "controller", records.Node(name="edge-0", state="stopped"), "stopping"),
        (8.0, "controller", records.Ended(outcome="interrupted", reason="x"), "over"),
        (8.0, "edge-1", records.Note(text="late"), "over"),
        (9.0, "controller", records.Note(text="again"), "over"),
        (9.0, "controller", records.Continued(trained_s=3.0), "starting"),
        (10.0, "controller", began(trained_s=3.0), "training"),
        (11.0, "evaluator", evaluation(version=1, final=True), "stopping"),
        (12.0, "controller", records.Ended(outcome="completed", reason="x"), "over"),
    ]
    standing = TrialState(make_sample_plan())
    for *entry, state in steps:
        standing.add(*entry)
        assert standing.status(entry[0], 0.0).state == state

    assert standing.status(12.0, 0.0).elapsed_s == 5.0
    assert follow(make_sample_plan(), [(10.0, "c", began())], past=PAST).status(12.0, 0.0).elapsed_s == 7.0


def texts(troubles):
    """What was told."""
    return [trouble.text for trouble in troubles.told]


def test_a_trial_that_is_resumed_stands_where_it_was(make_sample_plan, tmp_path):
    """Before its first new record: bytes and accuracy are those that its journal tells of."""
    status = follow(make_sample_plan(), [], past=PAST).status(9.0, 0.0)
    assert (status.ingress_bytes, status.measured) == (700, {"accuracy": 0.4, "loss": 2.5})

    folder = TrialFolder(tmp_path)
    with JournalWriter(folder.journal) as journal:
        journal.write_many(sample_entries(updates=120))
    standing = TrialState(make_sample_plan()).add_all(read_journal(folder.journal))
    past = past_of(folder)
    assert (past.update_bytes, past.measured) == (standing.ingress_bytes, standing.measured)


def test_what_happens_to_nodes_is_told_while_it_is_not_too_much():
    """A fault with which there was nothing to do is no news; the latest are known however many there were."""
    troubles = Troubles(Timeline())
    for record in (
        fault("link", change="uplink 1mbit", name="link-2"),
        fault("kill", no_op="it is being killed"),
        records.Node(name="edge-0", state="unresponsive", reason="no sign of life for 2 s"),
        records.Node(name="edge-0", state="running"),
        records.Node(name="edge-1", state="running"),
        records.Restored(version=1000, incarnation=2),
        records.Restored(version=0, incarnation=3),
        records.Resumed(history=0, step=0),
        records.Resumed(history=1, step=1200, reason="edge-1 died"),
        update(3),
    ):
        troubles.add(1.0, "controller", record)

    assert texts(troubles) == [
        "edge-0: link uplink 1mbit (link-2)",
        "edge-0 unresponsive: no sign of life for 2 s",
        "edge-0 is back",
        "the server resumes from update 1,000",
        "the server begins anew: there is no checkpoint yet",
        "all shards resume from step 1,200: edge-1 died",
    ]
    for k in range(100):
        troubles.add(2.0 + k, "controller", records.Node(name="edge-0", state="missing"))
    assert len(troubles.told) == TROUBLES_MAX + 1
    assert [trouble.elapsed_s for trouble in troubles.latest] == [101.0 - k for k in reversed(range(LATEST_MAX))]


@pytest.mark.parametrize("died_first", [False, True])
def test_what_happens_to_many_is_told_at_once_and_what_was_asked_for_is_not(died_first):
    """A death that was asked for, and the silence of a frozen node, go without saying; others do not."""
    troubles = Troubles(Timeline())
    nodes = [f"edge-{k}" for k in range(8)]
    kills = [fault("kill", node) for node in nodes]
    deaths = [records.Node(name=node, state="died", reason="killed by SIGKILL") for node in nodes]
    silence = [
        records.Node(name="hub-0", state="unresponsive", reason="no sign of life for 2 s"),
        records.Node(name="hub-0", state="running"),
    ]
    told = records.Restored(version=1, incarnation=2)
    by_itself = records.Node(name="edge-0", state="died", reason="exit code 1")
    for record in (
        *(deaths + kills if died_first else kills + deaths), told, fault("freeze", "hub-0"), *silence,
        fault("launch", "edge-0"), told, by_itself, told, fault("thaw", "hub-0"), silence[0],
        fault("cut", problem="no"), told,
    ):  # fmt: skip
        troubles.add(1.0, "controller", record)

    restored = "the server resumes from update 1"
    assert [each for each in texts(troubles) if each != restored] == [
        "edge-0, edge-1, edge-2, edge-3, edge-4, edge-5 and 2 more: kill (f-1)",
        "hub-0: freeze (f-1)",
        "edge-0: launch (f-1)",
        "edge-0 died: exit code 1",
        "hub-0: thaw (f-1)",
        "hub-0 unresponsive: no sign of life for 2 s",
        "edge-0: cut (f-1): could not be done: no",
    ]


def test_what_was_gathered_is_told_a_moment_later(make_sample_plan):
    """By itself, with the time at which it happened first; at the end at once."""
    entries = [(5.0, "controller", began()), (7.0, "c", fault("cut", "edge-0")), (7.1, "c", fault("cut", "edge-1"))]
    standing = follow(make_sample_plan(), entries)

    assert standing.status(7.1, 0.0).troubles == ()
    (told,) = standing.status(7.5, 0.0).troubles
    assert (told.elapsed_s, told.text) == (2.0, "edge-0, edge-1: cut (f-1)")
    standing.add(8.0, "c", fault("heal", "edge-0"))
    standing.add(8.0, "c", records.Ended(outcome="completed", reason="x"))
    assert standing.status(8.0, 0.0).latest[-1].text == "edge-0: heal (f-1)"
