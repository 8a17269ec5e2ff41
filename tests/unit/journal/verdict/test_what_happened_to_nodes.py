"""The verdict on what happened beside the training: faults, deaths that nobody asked for, others on the network."""

import dataclasses

import msgspec
import pytest

from edgebed.core import records
from edgebed.core.planned.link import LinkPlan
from edgebed.journal.verdict.fidelity import judge

from .conftest import (
    LATE,
    MBIT,
    TEN_MBIT,
    WELL,
    WORKERS,
    done,
    held,
    host,
    plan_of,
    series_of,
    transfers,
    usage,
    with_faults,
)  # fmt: skip


@pytest.mark.parametrize("runtime", ["process", "simulation"])
def test_a_fault_that_could_not_be_done_degrades(runtime):
    """It was a condition of the experiment; where there was nothing to do, or a user's word was wrong, none was."""
    series = series_of(WELL, WELL, runtime=runtime)
    failed = done(problem="no such process")
    fidelity = judge(plan_of(), with_faults(series, failed, failed))

    assert fidelity.reasons == ("faults: kill of edge-0 could not be done: no such process, and 1 more",)
    assert fidelity.causes == ("faults",)
    assert not judge(plan_of(), with_faults(series, done(moot="it is not there"))).reasons
    assert not judge(plan_of(), with_faults(series, done(name="by hand", problem="it has no link"))).reasons


@pytest.mark.parametrize(
    ("number", "late_s", "verdict"),
    [(1, 0.25, "trusted"), (1, 0.26, "degraded"), (5, 0.26, "degraded"), (20, 1.0, "trusted"), (20, 1.1, "degraded")],
)
def test_a_fault_that_is_late_degrades(number, late_s, verdict):
    """One by a quarter of a second, twenty at once by a second."""
    series = series_of(WELL, WELL)
    faults = [done(target=f"edge-{k}", late_s=late_s if k == 0 else 0.01) for k in range(number)]
    fidelity = judge(plan_of(), with_faults(series, *faults))

    assert fidelity.verdict == verdict
    if verdict == "degraded":
        (reason,) = fidelity.reasons
        assert reason.startswith(f"faults: kill of edge-0 was done {'1.1 s' if late_s > 1 else '260 ms'} after it was")


def test_a_launch_takes_the_time_that_it_takes():
    """When the node is back is told elsewhere."""
    assert judge(plan_of(), with_faults(series_of(WELL, WELL), done("launch", late_s=3.0))).verdict == "trusted"
    assert (
        judge(plan_of(), with_faults(series_of(WELL, WELL), done("cut", name="by hand", late_s=3.0))).verdict
        == "trusted"
    )


@pytest.mark.parametrize("target", ["edge-0", "server"])
def test_messages_of_a_frozen_node_are_late_by_no_more_than_the_freeze(target):
    """Nor those to a frozen server, of anybody; those of others are late, and what a freeze does not explain is."""
    said = series_of([usage(), held(), LATE], WELL, [host()] * 10)
    series = dataclasses.replace(said, last_t=20.0, finished_t=20.0)
    frozen, thawed = done("freeze", target, asked_t=5.0), done("thaw", target, asked_t=5.5)
    plan = plan_of(link=TEN_MBIT)
    fidelity = judge(plan, with_faults(series, frozen, thawed))

    assert fidelity.verdict == ("trusted" if target == "server" else "degraded")
    assert any("a node was frozen, as asked, for up to 5.0 ms of that" in remark for remark in fidelity.remarks)
    assert judge(plan, with_faults(series, frozen, done("thaw", target, asked_t=5.3))).causes == ("link",)
    assert judge(plan, with_faults(series, frozen)).verdict == fidelity.verdict


def with_nodes(series, *states):
    """The same trial, with these nodes' fates: (time, name, state, reason); it ended after 20 s."""
    nodes = tuple((t, records.Node(name=name, state=state, reason=reason)) for t, name, state, reason in states)
    return dataclasses.replace(series, nodes=nodes, last_t=21.0, finished_t=20.0)


@pytest.mark.parametrize("runtime", ["process", "simulation"])
def test_a_death_that_nobody_asked_for_degrades(runtime):
    """Who, and why; of several the first, and how many more. One that a fault asked for does not."""
    series = series_of(WELL, WELL, runtime=runtime)
    killed = (6.0, "edge-0", "died", "killed by SIGKILL")
    one = with_nodes(series, (7.0, "edge-3", "died", "killed by SIGSEGV"), killed)
    two = with_nodes(series, (-1.0, "edge-2", "missing", "it never joined"), *([(7.0, "server", "died", "")] * 2))

    assert judge(plan_of(), with_faults(one, done())).reasons == (
        "deaths: worker edge-3 died unasked: killed by SIGSEGV; see its log (edgebed logs)",
    )
    assert judge(plan_of(), two).reasons == (
        "deaths: worker edge-2 never came: it never joined, and 1 more; see its log (edgebed logs)",
    )
    assert not judge(plan_of(), with_faults(with_nodes(series, killed), done())).reasons


def test_a_death_of_the_evaluator_or_after_the_training_is_no_condition():
    """The model was final; and watching is none."""
    late = with_nodes(series_of(WELL, WELL), (20.5, "edge-1", "died", "did not answer 'stop'"))
    watching = with_nodes(series_of(WELL, WELL), (7.0, "evaluator", "died", "out of memory"))

    assert judge(plan_of(), late).verdict == "trusted"
    assert judge(plan_of(), watching).verdict == "trusted"


def test_a_cap_that_a_fault_changed_is_as_asked():
    """The share is that of the cap that held at each time, and late or not, a fault hides nothing of it."""
    changed = [done("cpus", name, change="0.1") for name in WORKERS]
    right, wrong = (
        with_faults(series_of([usage(capped_s=10.0, capped_cpu_s=had_s, capped_allowed_s=1.0)], WELL), *changed)
        for had_s in (1.0, 2.0)
    )

    assert judge(plan_of(cpus=0.5), right).verdict == "trusted"
    assert judge(plan_of(cpus=0.5), wrong).causes == ("CPU cap",)


# --- who else is on the network ---------------------------------------------------------------------------------------


def traffic(interface_bytes, tcp_bytes=30_000_000, interface="eth0"):
    """What came to the server: 29 MB of payload, and packets of its own connections that hold it."""
    return records.Traffic(
        ingress_payload=29_000_000, egress_payload=0, ingress_interface=interface_bytes, interface=interface,
        ack_bytes=1_000_000, tcp_bytes=tcp_bytes,
    )  # fmt: skip


def with_traffic(record, *server):
    """A series in which that passed the server's interface."""
    return dataclasses.replace(series_of(WELL, server or WELL), traffic=((20.0, record),))


def test_bytes_that_no_message_explains_are_foreign():
    """Others' bytes took their share of the server's link: who, by how much."""
    fidelity = judge(plan_of(), with_traffic(traffic(62_000_000)))

    (reason,) = fidelity.reasons
    assert reason.startswith("foreign traffic: 30.7 MB of the 62 MB that passed the server's interface (eth0), 49 %,")


@pytest.mark.parametrize(
    "record",
    [
        traffic(31_100_000),
        traffic(32_800_000),
        traffic(62_000_000, interface="lo"),
        traffic(62_000_000, tcp_bytes=None),
        traffic(62_000_000, tcp_bytes=61_000_000),
        msgspec.structs.replace(traffic(400_000, tcp_bytes=200_000), ingress_payload=180_000, ack_bytes=9_000),
    ],
    ids=["framed", "within a twentieth", "all of the machine's", "not counted", "unread at the end", "little"],
)
def test_bytes_that_the_trial_explains_or_nobody_counted_are_not(record):
    """Payload with its headers and acknowledgements; or what TCP has of the server's own connections."""
    assert judge(plan_of(), with_traffic(record)).verdict == "trusted"


@pytest.mark.parametrize("action", ["cut", "link"])
def test_what_is_lost_behind_the_interface_is_not_foreign(action):
    """It comes twice: a queue that is too short drops it, or a loss that was asked for, or a cut."""
    record = traffic(40_000_000)
    link = LinkPlan(downlink_bit_s=10 * MBIT)
    dropping = usage(downlink_bytes=40_000_000, downlink_dropped_bytes=9_000_000)
    lossy = msgspec.structs.replace(link, loss=0.1)

    assert judge(plan_of(), with_traffic(record)).causes == ("foreign traffic",)
    assert not judge(plan_of({"link": link}), with_traffic(record, dropping, held(link))).causes
    assert not judge(plan_of({"link": lossy}), with_traffic(record, usage(), held(lossy, delay="netem"))).causes
    assert judge(plan_of(), with_faults(with_traffic(record), done(action, "server"))).verdict == "trusted"


def leaving(*found, runtime="simulation"):
    """The same trial, in which workers left by silence: (time, worker)."""
    left = tuple((t, records.Left(worker=name, incarnation=1, reason="silence")) for t, name in found)
    return dataclasses.replace(series_of(WELL, WELL, runtime=runtime), left=left, last_t=200.0, finished_t=200.0)


SILENT = plan_of(server={"silence_s": 10.0})


@pytest.mark.parametrize("runtime", ["process", "simulation"])
def test_a_worker_that_left_by_silence_with_no_fault_behind_it_degrades(runtime):
    """Nobody asked for that; one whose connection broke, or that the controller told of, is told elsewhere."""
    fidelity = judge(SILENT, leaving((50.0, "edge-1"), (80.0, "edge-1"), runtime=runtime))

    (reason,) = fidelity.reasons
    assert reason == (
        "silence: edge-1 left by silence, of 10 s and with no fault behind it, 2 times in all; find what held it up "
        "(edgebed logs), or raise deadlines.silence"
    )
    for reason in ("reset", "oracle"):
        left = ((50.0, records.Left(worker="edge-1", incarnation=1, reason=reason)),)
        assert not judge(SILENT, dataclasses.replace(leaving(), left=left)).reasons


@pytest.mark.parametrize(
    ("faults", "is_explained"),
    [
        ([done("freeze", "edge-1", asked_t=45.0)], True),
        ([done("freeze", "edge-1", asked_t=5.0)], True),
        ([done("cut", "edge-1", asked_t=5.0, name="by hand")], True),
        ([done("cut", "server", asked_t=45.0)], True),
        ([done("link", "edge-1", asked_t=5.0, change="uplink 8kbit")], True),
        ([done("kill", "edge-1", asked_t=5.0)], True),
        ([done("freeze", "edge-1", asked_t=5.0), done("thaw", "edge-1", asked_t=35.0)], True),
        ([done("freeze", "edge-1", asked_t=5.0), done("thaw", "edge-1", asked_t=15.0)], False),
        ([done("link", "edge-1", asked_t=5.0, change="uplink 8kbit"),
          done("link", "edge-1", asked_t=15.0, change="as planned")], False),
        ([done("kill", "edge-1", asked_t=5.0), done("launch", "edge-1", asked_t=15.0)], False),
        ([done("freeze", "edge-2", asked_t=45.0)], False),
        ([done("freeze", "edge-1", asked_t=45.0, problem="no such process")], False),
        ([done("freeze", "edge-1", asked_t=60.0)], False),
    ],
)  # fmt: skip
def test_a_fault_of_the_worker_or_of_the_server_explains_its_silence(faults, is_explained):
    """By the scenario or by hand; one of another node, one undone long before, or one that came later does not."""
    causes = judge(SILENT, with_faults(leaving((50.0, "edge-1")), *faults)).causes

    assert ("silence" not in causes) is is_explained


def test_a_worker_that_died_unasked_is_not_told_of_twice():
    """Its silence is that of the dead."""
    series = with_nodes(leaving((15.0, "edge-1")), (3.0, "edge-1", "died", "killed by SIGSEGV"))

    assert judge(SILENT, series).causes == ("deaths",)


def test_tiny_packets_that_are_dropped_hide_none_that_passed():
    """192,000 packets of a byte: 10,632 were dropped, with their 44 bytes on the wire, and the rest took the link."""
    record = records.Traffic(
        ingress_payload=2_000_000, egress_payload=0, ingress_interface=10_600_000, interface="eth0",
        ack_bytes=100_000, tcp_bytes=2_200_000,
    )  # fmt: skip
    counts = {"downlink_packets": 192_000, "downlink_drops": 10_632, "downlink_bytes": 10_600_000}
    link = LinkPlan(downlink_bit_s=3 * MBIT)
    plan = plan_of({"link": link})

    for server in (usage(**counts, downlink_dropped_bytes=468_000), usage(**counts)):
        assert judge(plan, with_traffic(record, server, held(link))).causes == ("foreign traffic",)


@pytest.mark.parametrize(
    ("more", "causes"),
    [
        ({"downlink_own_bytes": 9_600_000}, ()),
        ({"downlink_own_bytes": 9_400_000}, ("foreign traffic",)),
        ({"downlink_own_bytes": 5_000_000, "downlink_dropped_bytes": 5_000_000}, ()),
        ({"downlink_own_bytes": 5_000_000, "downlink_dropped_bytes": 4_000_000}, ("foreign traffic",)),
        ({"downlink_own_bytes": 5_000_000, "downlink_packets": 900, "downlink_drops": 100}, ("foreign traffic",)),
        ({"downlink_own_bytes": None}, ()),
    ],
    ids=["a twentieth", "more", "dropped", "not all dropped", "drops alone", "not counted"],
)
def test_what_comes_to_a_workers_interface_is_the_trials_own(more, causes):
    """By TCP's own count; what the queue before it dropped took nothing from its link. Of several the worst is told."""
    fidelity = judge(plan_of(link=TEN_MBIT), series_of([usage(downlink_bytes=10_000_000, **more), held()]))

    assert fidelity.causes == causes
    assert all("that passed the interface of all 4 nodes of edge" in reason for reason in fidelity.reasons)


def test_models_explain_what_came_where_their_connection_ended():
    """Of which TCP's last word is a second old: 100 models of 96 kB each."""
    said = [usage(downlink_bytes=10_000_000, downlink_own_bytes=8_000_000), held()]
    models = transfers(direction="down", messages=100, size=96_000, asked_s=7.7)

    assert judge(plan_of(link=TEN_MBIT), series_of(said)).causes == ("foreign traffic",)
    assert judge(plan_of(link=TEN_MBIT), series_of([*said, models])).verdict == "trusted"


def test_little_at_a_workers_interface_or_behind_a_cut_is_not_foreign():
    """Addresses that are looked up; and what comes twice."""
    little = series_of([usage(downlink_bytes=300_000, downlink_own_bytes=60_000), held()])
    cut = series_of([usage(downlink_bytes=9_000_000, downlink_own_bytes=60_000), held()])
    faults = [done("cut", name) for name in WORKERS]

    assert judge(plan_of(link=TEN_MBIT), little).verdict == "trusted"
    assert judge(plan_of(link=TEN_MBIT), with_faults(cut, *faults)).verdict == "trusted"
