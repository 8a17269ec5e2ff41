"""Evidence is owed: what was asked for and not measured for nine tenths of the time is unknown, and never trusted."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core import records
from edgebed.core.planned.device_core import Core
from edgebed.core.planned.link import LinkPlan
from edgebed.core.recorded.measured import told_after_s
from edgebed.journal.journal import JournalWriter
from edgebed.journal.series import Series
from edgebed.journal.verdict.evidence import TOO_SHORT
from edgebed.journal.verdict.fidelity import judge

from .conftest import GIB, MBIT, TEN_MBIT, WORKERS, held, host, plan_of, series_of, transfers, trial, usage

TRAINED_S = 30.0
NINE_TENTHS = 0.9
PLAN = plan_of({"link": TEN_MBIT}, link=TEN_MBIT, cpus=0.5, memory_bytes=GIB, core=Core(flop_s=1e9, overhead_s=0.01))
MEASURED = (records.Link, records.Usage, records.Transfers, records.HostLoad)
NODES = ("server", *WORKERS)


CAPPED = {
    "memory_bytes": GIB // 2, "throttled_s": 0.0, "cpus_held": 0.5, "memory_held_bytes": GIB, "device_s": 1.0,
}  # fmt: skip
"""What a worker has of its cgroup and of its device."""


def told_at():
    """When a node tells of itself: every second at first, then whenever a tenth was added, and at the end."""
    t = 0.0
    while t < TRAINED_S:
        t = min(TRAINED_S, t + told_after_s(t))
        yield t


def entries(**of_usage):
    """The journal of a trial in which all was measured and as asked: (t, node, record)."""
    yield -1.0, "controller", records.Node(name="server", state="started")
    yield from ((0.0, "controller", records.Node(name=name, state="running", incarnation=1)) for name in NODES)
    yield from ((0.1, name, held()) for name in NODES)
    for step in range(60):
        for place, name in enumerate(WORKERS):
            version = step * len(WORKERS) + place + 1
            yield 0.5 * (step + 1), "server", records.Update(
                worker=name, incarnation=1, step=step, version=version, base=version - 1, staleness=0, entries=1,
                bits=8, bytes=13_000, loss=1.0,
            )  # fmt: skip
    for t in told_at():
        used = CAPPED | of_usage
        for name in WORKERS:
            yield t, name, usage(time_s=t, cpu_s=0.1 * t, starved_s=0.01 * t, **used)
            took = {"messages": int(2 * t), "asked_s": 0.02 * t}
            yield t, "server", transfers(name, "up", **took)
            yield t, name, transfers(name, "down", **took)
        yield t, "server", usage(time_s=t, cpu_s=0.1 * t)
    yield from ((2.0 * (k + 1), "controller", host()) for k in range(int(TRAINED_S / 2)))
    yield TRAINED_S, "server", records.Traffic(ingress_payload=1, egress_payload=1, pulls=240)
    yield TRAINED_S, "server", records.Finished(version=240, reason="30 s have passed")
    yield TRAINED_S + 0.1, "controller", records.Ended(outcome="completed", reason="30 s have passed")


WHOLE = tuple(entries())


@pytest.fixture(scope="session")
def judged(tmp_path_factory):
    """The verdict on a journal with these entries, in seconds since training began."""

    def judged(said, plan=PLAN, runtime="process"):
        path = tmp_path_factory.mktemp("journal") / "events.jsonl"
        with JournalWriter(path) as journal:
            journal.write_many(
                [(10.0, "controller", trial(runtime)), *((10.0 + t, node, each) for t, node, each in said)]
            )
        return judge(plan, Series.from_journal(path))

    return judged


def test_a_trial_that_was_measured_all_the_time_is_trusted_and_says_by_what(judged):
    """A row for each condition, class and source, with the node of which the least was seen."""
    fidelity = judged(WHOLE)
    rows = {(row.condition, row.subject): row for row in fidelity.evidence}

    assert (fidelity.verdict, fidelity.reasons) == ("trusted", ())
    assert {subject for _, subject in rows} == {"edge", "server", "the host"}
    assert {condition for condition, subject in rows if subject == "edge"} == {
        "uplink rate", "downlink rate", "MTU", "time of pushes", "time of models", "CPU cap", "promised core",
        "device speed", "memory cap", "stops", "what the node says of itself",
    }  # fmt: skip
    assert rows["uplink rate", "edge"].measured_by == "read back by the node from tc"
    assert rows["CPU cap", "edge"].measured_by == "its cgroup"
    assert rows["load", "the host"].nodes == 0
    alone = {row.share for row in fidelity.evidence if row.condition == "what the node says of itself"}
    assert alone == {0.0}, "which is not owed, as where the far end of a link cannot be read"
    assert all(row.share == 1.0 and not row.node for row in fidelity.evidence if row.share)
    assert rows["promised core", "edge"].nodes == len(WORKERS)


def test_a_simulation_owes_no_evidence(judged):
    """Nothing is measured there."""
    assert judged(WHOLE, runtime="simulation").evidence == ()


@pytest.mark.parametrize(("left_out", "verdict"), [(30, "trusted"), (10, "unknown")])
def test_messages_that_met_a_fault_need_not_be_timed(judged, left_out, verdict):
    """Half of them; a message may be under way for longer than any span around a fault."""

    def with_half(t, name, record):
        if not isinstance(record, records.Transfers):
            return t, name, record
        half = record.messages // 2
        return t, name, msgspec.structs.replace(record, messages=half, left_out=min(half, left_out))

    assert judged([with_half(*entry) for entry in WHOLE]).verdict == verdict


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (records.HostLoad, ["load of the host; records of it are missing"]),
        (
            records.Link,
            [
                "uplink rate and downlink rate of server; records of what holds the link are missing",
                "uplink rate and downlink rate of all 4 nodes of edge; records of what holds the link are missing",
            ],
        ),
        (
            records.Transfers,
            ["time of pushes and time of models of all 4 nodes of edge; records of how long messages took are missing"],
        ),
    ],
)
def test_a_source_that_told_nothing_is_named_with_what_it_would_have_measured(judged, kind, what):
    """For all of the training; ten nodes that lack the same have one line."""
    fidelity = judged([entry for entry in WHOLE if not isinstance(entry[2], kind)])
    texts = [text.removeprefix("not observed for 30.0 s of 30.0 s: ") for text in fidelity.reasons]

    if kind is records.Link:
        assert fidelity.verdict == "degraded", "nothing held the link, as far as is known"
        texts = [each.removeprefix("not observed for 30.0 s of 30.0 s: ") for each in fidelity.remarks]
    else:
        assert fidelity.verdict == "unknown"
    assert len(texts) == len(what)
    assert all(text.startswith(each) for text, each in zip(texts, what, strict=True))


def test_what_a_node_used_is_what_most_conditions_rest_on(judged):
    """All that it would have measured is in one line."""
    (reason,) = judged(
        [entry for entry in WHOLE if not (entry[1] == "edge-1" and isinstance(entry[2], records.Usage))]
    ).reasons

    assert reason == (
        "not observed for 30.0 s of 30.0 s: uplink rate, downlink rate, MTU, CPU cap, promised core, device "
        "speed, memory cap and stops of edge-1; records of what was used are missing"
    )


@pytest.mark.parametrize(
    ("field", "what"),
    [
        ("starved_s", "promised core of all 4 nodes of edge; the kernel did not tell how long threads waited"),
        ("stopped_s", "stops of all 4 nodes of edge; the journal does not tell"),
        ("device_s", "device speed of all 4 nodes of edge; the journal does not tell how long work takes on the"),
        ("memory_bytes", "memory cap of all 4 nodes of edge; the kernel did not tell it"),
    ],
)
def test_what_a_kernel_or_an_old_journal_does_not_tell_is_unknown(judged, field, what):
    """As schedstat, which not every kernel has."""
    without = [
        (t, node, msgspec.structs.replace(each, **{field: None}))
        if isinstance(each, records.Usage) and node != "server" else (t, node, each)
        for t, node, each in WHOLE
    ]  # fmt: skip
    fidelity = judged(without)

    assert fidelity.verdict == "unknown"
    assert [text.startswith(f"not observed for 30.0 s of 30.0 s: {what}") for text in fidelity.reasons] == [True]


def test_what_did_not_hold_goes_before_what_is_not_known(judged):
    """Degraded, and what was not observed is a remark; without a finding it is the reason."""
    late = [
        (t, node, msgspec.structs.replace(each, starved_s=each.time_s) if isinstance(each, records.Usage) else each)
        for t, node, each in WHOLE
        if not isinstance(each, records.HostLoad)
    ]
    fidelity = judged(late)

    assert (fidelity.verdict, fidelity.causes) == ("degraded", ("host CPU",))
    assert any(text.startswith("not observed for 30.0 s of 30.0 s: load of the host") for text in fidelity.remarks)
    assert not any("not observed" in text for text in fidelity.reasons)


def test_what_was_not_asked_for_owes_nothing(judged):
    """Nodes without links and caps are trusted, whatever was measured of them; memory does not mind a busy host."""
    nothing = [entry for entry in WHOLE if not isinstance(entry[2], MEASURED)]

    assert judged(nothing, plan_of()).verdict == "trusted"
    assert judged(nothing, plan_of()).evidence == ()
    assert {row.condition for row in judged(WHOLE, plan_of(memory_bytes=GIB)).evidence} == {"memory cap"}
    assert judged(nothing, plan_of(cpus=0.5)).verdict == "unknown"


def test_a_rate_that_somebody_changed_is_checked_where_the_plan_asks_for_none(judged):
    """By hand or by a fault, where the node tells of it; nobody owes what was not planned."""
    by_hand = records.Fault(
        name="by hand", action="link", target="edge-0", asked_s=12.0, trigger="by hand", change="uplink 1mbit"
    )
    said = [each for each in WHOLE if not isinstance(each[2], records.Link)]
    said = [(2.0, "controller", by_hand), (2.1, "edge-0", held(LinkPlan(uplink_bit_s=MBIT))), *said]
    fidelity = judged(said, plan_of())

    assert [(row.condition, row.nodes, row.measured_by) for row in fidelity.evidence if row.subject == "edge"] == [
        ("uplink rate", 1, "read back by the node from tc")
    ]
    (node,) = (node for node in fidelity.nodes if node.node == "edge-0")
    assert (node.uplink.asked_low_bit_s, node.uplink.asked_high_bit_s) == (None, MBIT)
    assert node.downlink.asked_high_bit_s is None


def test_a_link_that_the_transport_holds_is_stated_and_measured_by_messages(judged):
    """Nothing reads it back; and nobody knows of an MTU."""
    link = LinkPlan(uplink_bit_s=10 * MBIT, latency_s=0.01)
    said = [
        (t, node, held(link, "model", delay="line") if isinstance(each, records.Link) else each)
        for t, node, each in WHOLE
    ]
    rows = {
        row.condition: row.measured_by for row in judged(said, plan_of(link=link)).evidence if row.subject == "edge"
    }

    assert rows["uplink rate"] == rows["latency"] == "stated by the node, which holds it itself"
    assert rows["time of pushes"] == "messages"
    assert "downlink rate" not in rows
    assert "MTU" not in rows


def test_training_that_nobody_measured_for_it_was_too_short_says_so():
    """Rather than list all that is missing; with ten seconds it has to."""
    plan, said = plan_of(cpus=0.5), series_of()

    assert judge(plan, said).reasons == (TOO_SHORT,)


@pytest.mark.parametrize(
    ("trained_s", "why"), [(3.8, TOO_SHORT), (30.0, "did the controller or its probe stand still")]
)
def test_what_a_short_trial_did_not_observe_it_was_too_short_for(judged, trained_s, why):
    """Nobody has to have stood still: its verdict is the same, and the words are others."""
    said = [
        (min(t, trained_s), node, each)
        for t, node, each in WHOLE
        if not isinstance(each, records.HostLoad)
        and (t <= trained_s or isinstance(each, records.Finished | records.Ended))
    ]
    fidelity = judged(said)

    assert fidelity.verdict == "unknown"
    (host_of_it,) = (reason for reason in fidelity.reasons if "load of the host" in reason)
    assert why in host_of_it


# --- nodes that come and go -------------------------------------------------------------------------------------------


def without_updates(said, name, since_s, until_s=TRAINED_S + 1.0):
    """A journal in which nothing came of a worker in that time."""
    return [
        (t, node, each) for t, node, each in said
        if not (isinstance(each, records.Update) and each.worker == name and since_s < t < until_s)
    ]  # fmt: skip


def with_fate(name, *fate, until_s=TRAINED_S):
    """The whole journal, with what befell a node, which measured itself until then."""
    own = [(t, node, each) for t, node, each in WHOLE if node == name and t > until_s]
    return sorted([*(entry for entry in WHOLE if entry not in own), *fate], key=lambda entry: entry[0])


def state(t, name, state, incarnation=1):
    """A node's change of state."""
    return t, "controller", records.Node(name=name, state=state, incarnation=incarnation)


def fault(t, action, target):
    """Something done on purpose."""
    return t, "controller", records.Fault(name="f-1", action=action, target=target, asked_s=10.0 + t)


def test_a_node_that_was_killed_owes_nothing_after_its_death(judged):
    """Nor what it measured last, which died with it; it owes all that was before."""
    fate = fault(20.5, "kill", "edge-1"), state(20.6, "edge-1", "died")

    assert judged(with_fate("edge-1", *fate, until_s=19.0)).verdict == "trusted"
    assert judged(with_fate("edge-1", *fate, until_s=12.0)).verdict == "unknown"


@pytest.mark.parametrize("action", ["freeze", "cut"])
def test_a_node_that_was_frozen_or_cut_off_to_the_end_owes_nothing_meanwhile(judged, action):
    """It could not tell; one to which nothing was done could."""
    silent = state(22.0, "edge-1", "unresponsive")
    silenced = with_fate("edge-1", fault(20.5, action, "edge-1"), silent, until_s=19.0)

    assert judged(without_updates(silenced, "edge-1", 20.5)).verdict == "trusted"
    assert judged(with_fate("edge-1", silent, until_s=19.0)).verdict == "unknown"


def test_lives_add_up(judged):
    """A node that was started anew tells of its second life what it did not of its first, and owes both."""
    again = [state(15.0, "edge-1", "joined", 2), state(16.0, "edge-1", "running", 2), (16.1, "edge-1", held())]
    fate = (fault(12.0, "kill", "edge-1"), state(12.1, "edge-1", "died"), *again)
    second = [
        (16.0 + t, "edge-1", msgspec.structs.replace(each)) for t, node, each in WHOLE
        if node == "edge-1" and isinstance(each, records.Usage) and t <= 14.0
    ]  # fmt: skip
    down = [(30.0, "edge-1", transfers("edge-1", "down", messages=28, asked_s=0.28))]

    assert judged(with_fate("edge-1", *fate, *second, *down, until_s=11.5)).verdict == "trusted"
    assert judged(with_fate("edge-1", *fate, *down, until_s=11.5)).verdict == "unknown"


def test_a_trial_that_was_resumed_owes_nothing_of_the_time_between(judged):
    """Its controller was gone, and all nodes with it; each part of it was observed."""
    first = [entry for entry in WHOLE if entry[0] < 20.0]
    again = [state(40.0, name, each, 2) for each in ("expected", "joined", "running") for name in NODES]
    last = [(40.1, name, held()) for name in NODES]
    for t in range(1, 11):
        last += [(40.0 + t, name, usage(time_s=float(t), **CAPPED)) for name in WORKERS]
        last += [(40.0 + t, "server", usage(time_s=float(t)))]
        last += [(40.0 + t, "controller", host())] if t % 2 == 0 else []
    last += [(50.0, "server", records.Finished(version=160, reason="enough"))]
    fidelity = judged([*first, (40.0, "controller", trial()), *again, *last, (50.1, *WHOLE[-1][1:])])

    assert (fidelity.verdict, fidelity.reasons) == ("trusted", ())


def test_how_long_few_messages_took_is_judged_by_nobody_and_so_is_no_evidence(judged):
    """One of each of four workers: neither a row of them, nor a run of which too little is known."""
    few = [
        (t, node, msgspec.structs.replace(each, messages=1) if isinstance(each, records.Transfers) else each)
        for t, node, each in WHOLE
        if not isinstance(each, records.Update) or each.step < 1
    ]
    conditions = {row.condition for row in judged(few).evidence}

    assert judged(few).verdict == "trusted"
    assert not conditions & {"time of pushes", "time of models"}
    assert {"time of pushes", "time of models"} <= {row.condition for row in judged(WHOLE).evidence}


# --- nodes that stood still -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stopped_s", "verdict"), [(1.0, "trusted"), (1.5, "trusted"), (1.6, "degraded")])
def test_a_node_that_stood_still_unasked_degrades(judged, stopped_s, verdict):
    """For more than a twentieth of the training."""
    fidelity = judged(tuple(entries(stopped_s=stopped_s)))

    assert fidelity.verdict == verdict
    if verdict == "degraded":
        (reason,) = fidelity.reasons
        assert reason.startswith(
            "stopped: all 4 nodes of edge stood still for 1.6 s of 30.0 s (5.3 %), which no fault asked for; perhaps"
        )
        assert fidelity.causes == ("stopped",)


@pytest.mark.parametrize(("stopped", "causes"), [(5, ()), (6, ("stopped",)), (30, ("stopped",))])
def test_a_node_that_was_seen_stopped_stood_still_whatever_its_clock_says(judged, stopped, causes):
    """One that its cap holds back nearly all the time notices little; a freeze that was asked for is allowed for."""
    seen = records.Seen(name="edge-1", incarnation=1, time_s=TRAINED_S, stopped=stopped, looks=60)
    froze = [fault(5.0, "freeze", "edge-1"), fault(20.0, "thaw", "edge-1")]
    whole = without_updates(WHOLE, "edge-1", 5.0, 20.0)
    frozen = judged(sorted([*whole, *froze, (TRAINED_S, "controller", seen)], key=lambda entry: entry[0]))

    assert judged([*WHOLE, (TRAINED_S, "controller", seen)]).causes == causes
    assert "stopped" not in frozen.causes


def test_a_node_that_was_frozen_as_asked_stood_still_for_so_long(judged):
    """What is beyond it nobody asked for."""
    froze = [fault(5.0, "freeze", "edge-1"), fault(9.0, "thaw", "edge-1")]

    def stood_still(stopped_s):
        return [
            (t, node, msgspec.structs.replace(each, stopped_s=min(t, stopped_s)))
            if node == "edge-1" and isinstance(each, records.Usage) else (t, node, each)
            for t, node, each in sorted([*without_updates(WHOLE, "edge-1", 5.0, 9.0), *froze], key=lambda each: each[0])
        ]  # fmt: skip

    assert judged(stood_still(4.0)).verdict == "trusted"
    assert judged(stood_still(7.0)).causes == ("stopped",)


def test_a_freeze_explains_no_stop_of_another_time(judged):
    """A node that was frozen to the end told only of stops before; one that died in its freeze is so no more."""
    stood_still = [
        (t, node, msgspec.structs.replace(each, stopped_s=min(t, 8.0)))
        if node == "edge-1" and isinstance(each, records.Usage) else (t, node, each)
        for t, node, each in without_updates(WHOLE, "edge-1", 20.0)
    ]  # fmt: skip
    to_the_end = sorted([*stood_still, fault(20.0, "freeze", "edge-1")], key=lambda each: each[0])
    seen = records.Seen(name="edge-1", incarnation=2, time_s=TRAINED_S, stopped=40, looks=60)
    died = [fault(5.0, "freeze", "edge-1"), state(6.0, "edge-1", "died"), state(7.0, "edge-1", "joined", 2)]
    whole = sorted([*WHOLE, *died, (TRAINED_S, "controller", seen)], key=lambda entry: entry[0])

    assert "stopped" in judged(to_the_end).causes
    assert "stopped" in judged(whole).causes


@pytest.mark.parametrize(("kept_s", "causes"), [(0.0, ()), (9.0, ("faults",))])
def test_a_node_that_goes_on_while_it_is_frozen_was_not_as_asked(judged, kept_s, causes):
    """As after a signal of somebody's to go on; one push may have been under way."""
    froze = [fault(5.0, "freeze", "edge-1"), fault(15.0, "thaw", "edge-1")]
    said = sorted([*without_updates(WHOLE, "edge-1", 5.8 + kept_s, 15.0), *froze], key=lambda each: each[0])

    assert judged(said).causes == causes


def test_who_is_killed_while_it_is_frozen_has_died_unasked(judged):
    """Unless the policy of restarting did it, since it did not answer."""
    died = state(7.0, "edge-1", "died")
    by_policy = (6.9, "controller", records.Fault(name="on_failure", action="kill", target="edge-1", asked_s=16.9))
    quiet = without_updates([entry for entry in WHOLE if entry[0] < 5.0 or entry[1] != "edge-1"], "edge-1", 5.0)
    frozen = [*quiet, fault(5.0, "freeze", "edge-1"), died]

    assert "deaths" in judged(sorted(frozen, key=lambda each: each[0])).causes
    assert "deaths" not in judged(sorted([*frozen, by_policy], key=lambda each: each[0])).causes


def test_what_was_seen_before_a_resume_is_not_forgotten(judged):
    """A controller that goes on counts anew: what those before it found is added."""
    first = records.Seen(
        name="edge-1", incarnation=1, time_s=10.0, stopped=20, looks=20, differed=12,
        differences=("link: a tbf of 1 mbit on what the node receives, at the far end of its link",),
        above="/slice", cpus_above=0.5, above_s=6.0,
    )  # fmt: skip
    last = records.Seen(name="edge-1", incarnation=2, time_s=TRAINED_S)
    said = [(10.0, "controller", first), (11.0, "controller", records.Continued(trained_s=11.0))]
    causes = judged(sorted([*WHOLE, *said, (TRAINED_S, "controller", last)], key=lambda each: each[0])).causes

    assert {"link", "stopped", "CPU cap"} <= set(causes)


def test_a_long_final_evaluation_hides_no_busy_host(judged):
    """Nor does it condemn one that was quiet in training."""
    busy = [(t, node, host(lag_s=0.1) if isinstance(each, records.HostLoad) else each) for t, node, each in WHOLE]
    after = [(TRAINED_S + 2.0 * k, "controller", host(lag_s=0.1)) for k in range(1, 30)]
    quiet = [(t, node, host()) for t, node, each in after]
    end = WHOLE[-1]
    assert isinstance(end[2], records.Ended)

    assert judged([*busy[:-1], *quiet, (TRAINED_S + 60.0, *end[1:])]).causes == ("host",)
    assert judged([*WHOLE[:-1], *after, (TRAINED_S + 60.0, *end[1:])]).verdict == "trusted"


# --- laws -------------------------------------------------------------------------------------------------------------


def is_covered(said):
    """Whether what is left of the whole journal tells of nine tenths of the training, counted independently."""
    used, counted, loads = {}, {}, 0
    for t, node, each in said:
        if isinstance(each, records.Usage):
            used[node] = t
        elif isinstance(each, records.Transfers):
            counted[each.name, each.direction] = each.messages
        loads += isinstance(each, records.HostLoad)
    least_s = NINE_TENTHS * TRAINED_S
    links = {node for _, node, each in said if isinstance(each, records.Link)}
    return (
        all(used.get(name, 0.0) >= least_s for name in NODES)
        and all(counted.get((name, way), 0) >= NINE_TENTHS * 60 for name in WORKERS for way in ("up", "down"))
        and 2.0 * loads >= least_s
        and links == set(NODES)
    )


NAMES = [kind.__name__ for kind in MEASURED]


def source_of(entry):
    """Who told, and of whom."""
    return entry[1], getattr(entry[2], "name", "")


@pytest.mark.parametrize("name", [*NAMES, "all"])
@given(data=st.data())
def test_whatever_records_are_missing_trust_stays_where_nine_tenths_are_covered_and_nowhere_else(judged, name, data):
    """Here and there, or of some sources for a while; what is missing makes no condition worse than unknown."""
    places = [
        place for place, (_, _, each) in enumerate(WHOLE)
        if type(each).__name__ == name or (name == "all" and isinstance(each, MEASURED))
    ]  # fmt: skip
    gone = data.draw(st.sets(st.sampled_from(places), max_size=4), label="here and there")
    sources = data.draw(st.sets(st.sampled_from(sorted({source_of(WHOLE[place]) for place in places}))), label="of")
    since_s = data.draw(st.sampled_from([0.0, 2.5, 13.0, 24.5, 26.5, 27.5]), label="since")
    until_s = data.draw(st.sampled_from([5.5, 24.5, TRAINED_S]), label="until")
    gone |= {place for place in places if source_of(WHOLE[place]) in sources and since_s <= WHOLE[place][0] <= until_s}
    left = [entry for place, entry in enumerate(WHOLE) if place not in gone]
    fidelity = judged(left)

    assert (fidelity.verdict == "trusted") == is_covered(left)
    assert not [
        reason for reason in fidelity.reasons if fidelity.verdict == "degraded" and "nothing held" not in reason
    ]
