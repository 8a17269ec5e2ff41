"""The verdict by host: each is judged by its own records, and nodes of that host alone are blamed."""

import dataclasses

import msgspec
import pytest

from edgebed.core import records
from edgebed.journal.verdict.fidelity import judge
from edgebed.journal.verdict.findings import Judged, Observed
from edgebed.journal.verdict.measured import rows_of
from edgebed.journal.verdict.traffic_rules import explained_bytes

from .conftest import LATE, MBIT, TEN_MBIT, WELL, WORKERS, held, host, plan_of, series_of, transfers, usage

GBIT = 1_000_000_000


def plan_on_hosts(server=None, **asked):
    """The server on host a; of four workers two on b, and two on c."""
    plan = plan_of(server, **asked)
    places = {"server": "a", "evaluator": "a", "edge-0": "b", "edge-1": "b", "edge-2": "c", "edge-3": "c"}
    nodes = tuple(msgspec.structs.replace(node, host=places[node.node]) for node in plan.nodes)
    return msgspec.structs.replace(plan, nodes=nodes)


def loads(**by_host):
    """What hosts told: those that are not named had time to spare."""
    return [by_host.get(name) or host(host=name) for name in "abc"]


def series_on_hosts(workers=WELL, server=WELL, told=None, trained_s=0.0, nodes=(), **by_host):
    """What nodes and hosts told; `told` where hosts told nothing, or not all the time."""
    series = series_of(workers, server, loads(**by_host))
    given = {} if told is None else {"hosts": told}
    return dataclasses.replace(series, finished_t=trained_s, nodes=tuple(nodes), **given)


def reasons(plan, series):
    """Why conditions are degraded."""
    return judge(plan, series).reasons


BUSY = {"b": host(host="b", busy=0.97)}


def test_late_messages_are_the_fault_of_the_host_that_was_overloaded():
    """Its nodes are named; those of another host, with cores to spare at both ends, have a bad link."""
    plan = plan_on_hosts(link=TEN_MBIT)
    on_host, other = reasons(plan, series_on_hosts([usage(), held(), LATE], **BUSY))

    assert on_host.startswith("host b CPU: pushes of 2 of 4 nodes of edge took up to 20.0 ms, where 10.0 ms were asked")
    assert "since host b was overloaded (cores busy 97 %" in on_host
    assert other.startswith("link: pushes of 2 of 4 nodes of edge took")
    assert "though the hosts at both ends had cores to spare" in other


def test_late_messages_are_the_fault_of_the_servers_host_where_that_is_overloaded():
    """The server handles all pushes."""
    series = series_on_hosts([usage(), held(), LATE], a=host(host="a", load=3.0))
    (found,) = reasons(plan_on_hosts(link=TEN_MBIT), series)

    assert found.startswith("host a CPU: pushes of all 4 nodes of edge took")


def test_a_node_that_starves_spoils_its_own_host_alone():
    """Late messages of another host's nodes aren't explained by it."""
    plan = plan_on_hosts(link=TEN_MBIT, cpus=1.0)
    series = series_on_hosts([usage(), held(), LATE])
    used = series.usage | {"edge-0": (usage(starved_s=8.0),), "edge-1": (usage(starved_s=0.0),)}
    link_b, link_c, cpu_b = reasons(plan, dataclasses.replace(series, usage=used))

    assert link_b.startswith("host b CPU: pushes of 2 of 4 nodes")
    assert link_c.startswith("link: pushes of 2 of 4 nodes")
    assert cpu_b.startswith("host b CPU: 2 of 4 nodes of edge waited for a promised core for 20 % of the training")
    assert "the caps of all its nodes add up to 2 cores" in cpu_b


def test_causes_name_the_hosts_and_what_to_do_is_said_of_each():
    """Both are in the badge; a host with company is told to stop that."""
    series = series_on_hosts([usage(), held(), LATE], c=host(host="c", busy=1.0), **BUSY)
    fidelity = judge(plan_on_hosts(link=TEN_MBIT), series)

    assert fidelity.causes == ("host b CPU", "host c CPU")
    words = "stop what else runs on it, ask for fewer nodes, or take a host with more cores"
    assert fidelity.remarks[:2] == (f"host b: {words}", f"host c: {words}")


@pytest.mark.parametrize("load", [host(host="b", steal=0.2), host(host="b", lag_s=0.1)])
def test_a_host_that_does_not_keep_time_is_named(load):
    """The others did."""
    assert judge(plan_on_hosts(cpus=1.0), series_on_hosts(b=load)).causes == ("host b",)


def test_a_host_without_nodes_is_not_judged():
    """It may be as busy as it likes."""
    told = {"d": ((2.0, host(host="d", steal=0.5, lag_s=1.0)),)}
    series = series_on_hosts()

    assert reasons(plan_on_hosts(cpus=1.0), dataclasses.replace(series, hosts=series.hosts | told)) == ()


def test_one_host_has_the_words_that_it_always_had():
    """And stands where it stood, for programs that read summaries."""
    alone = judge(plan_of(link=TEN_MBIT), series_of([usage(), held(), LATE], WELL, [host(busy=0.97)]))
    several = judge(plan_on_hosts(link=TEN_MBIT), series_on_hosts())

    assert alone.reasons[0].startswith("host CPU: pushes of all 4 nodes of edge took up to 20.0 ms")
    assert "since the host was overloaded (cores busy 97 %" in alone.reasons[0]
    assert (alone.host.busy, alone.hosts) == (0.97, ())
    assert (several.host, [each.host for each in several.hosts]) == (None, ["a", "b", "c"])
    assert {node.node: node.host for node in several.nodes}["edge-3"] == "c"


def test_a_plan_for_hosts_that_runs_on_one_machine_is_judged_by_that_machine():
    """As processes; its one record has no name."""
    told = {"": ((2.0, host(busy=0.97)),)}
    series = series_on_hosts([usage(), held(), LATE], told=told, trained_s=60.0, nodes=present())
    (found,) = reasons(plan_on_hosts(link=TEN_MBIT), series)

    assert found.startswith("host CPU: pushes of all 4 nodes of edge took")


# --- hosts that are not heard of --------------------------------------------------------------------------------------


def present(but=(), at_s=-1.0):
    """All nodes begin to take part."""
    return [(at_s, records.Node(name=name, state="running")) for name in ("server", *WORKERS) if name not in but]


def told_until(until_s, since_s=0.0, name="c"):
    """A record each two seconds."""
    return tuple((since_s + 2.0 * (k + 1), host(host=name)) for k in range(int((until_s - since_s) / 2.0)))


def told(**until_s):
    """All hosts for a minute, but for these."""
    return {name: told_until(until_s.get(name, 60.0), name=name) for name in "abc"}


LONG = (usage(time_s=60.0, cpu_s=6.0),)
"""A node that was measured for a minute."""


def heard(told, nodes=None):
    """The verdict on a minute of which hosts told this."""
    series = series_on_hosts(LONG, LONG, told=told, trained_s=60.0, nodes=present() if nodes is None else nodes)
    return judge(plan_on_hosts(cpus=1.0), series)


@pytest.mark.parametrize(
    ("until_s", "verdict"), [(60.0, "trusted"), (54.0, "trusted"), (52.0, "unknown"), (48.0, "unknown")]
)
def test_a_host_that_was_not_observed_for_long_is_told(until_s, verdict):
    """Nobody knows whether it had cores to spare; a few records may be missing."""
    fidelity = heard(told(c=until_s))

    assert fidelity.verdict == verdict
    if verdict == "unknown":
        (reason,) = fidelity.reasons
        assert reason.startswith(f"not observed for {60.0 - until_s:.1f} s of 60.0 s: load of host c; records of it")


def test_a_host_that_was_never_heard_of_was_not_observed_at_all():
    """Its probe did not come up."""
    some = {name: records for name, records in told().items() if name != "c"}
    (found,) = heard(some).reasons

    assert found.startswith("not observed for 60.0 s of 60.0 s: load of host c")


def test_a_probe_may_take_ten_seconds_to_start_and_no_longer():
    """It is a container, begun when training begins."""
    assert heard(told() | {"c": told_until(60.0, 8.0)}).verdict == "trusted"
    assert heard(told() | {"c": told_until(60.0, 12.0)}).verdict == "unknown"


def test_a_gap_between_records_counts_without_the_time_that_a_record_covers():
    """The next one is about the two seconds before it."""
    (found,) = heard(told() | {"c": (*told_until(20.0), *told_until(60.0, 40.0))}).reasons

    assert "not observed for 20.0 s" in found


@pytest.mark.parametrize("state", ["died", "unresponsive"])
def test_a_host_whose_nodes_are_gone_is_not_missed(state):
    """It was killed, or cut off; of its nodes' deaths other rules tell, of those that nobody asked for."""
    gone = [(22.0 + k, records.Node(name=name, state=state)) for k, name in enumerate(("edge-2", "edge-3"))]
    whole, half = (heard(told(c=20.0), [*present(), *some]) for some in (gone, gone[:-1]))

    assert not any("load of host c" in text for text in (*whole.reasons, *whole.remarks))
    assert any("not observed for 40.0 s of 60.0 s: load of host c" in text for text in (*half.reasons, *half.remarks))


# --- the network between hosts ----------------------------------------------------------------------------------------


def passing(*shares, rate_bit_s=GBIT, sent=False):
    """Host b, with these shares of its rate in two seconds each, one way."""
    for share in shares:
        bytes_s = share * GBIT / 8
        way = (0.0, bytes_s) if sent else (bytes_s, 0.0)
        yield host(host="b", received_bytes_s=way[0], sent_bytes_s=way[1], rate_bit_s=rate_bit_s)


def on_network(*records):
    """The verdict where host b tells these."""
    found = loads()
    series = series_of(WELL, WELL, [found[0], *records, found[2]])
    return judge(plan_on_hosts(cpus=1.0), series)


@pytest.mark.parametrize("sent", [True, False])
@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ((0.1, 0.9, 0.9, 0.9, 0.1), "degraded"),
        ((0.1, 1.0, 0.7, 0.8, 0.1), "degraded"),
        ((0.1, 0.7, 0.9, 0.7, 0.1), "trusted"),
        ((1.0, 1.0), "trusted"),
    ],
)
def test_a_network_that_is_nearly_full_for_some_windows_degrades(shares, verdict, sent):
    """On the mean of three in a row, in either direction; a burst does not count."""
    fidelity = on_network(*passing(*shares, sent=sent))

    assert fidelity.verdict == verdict
    if verdict == "degraded":
        (reason,) = fidelity.reasons
        assert reason.startswith("host b network: ")
        assert "of its 1 gbit, for 6 s or more" in reason


def test_a_network_of_unknown_rate_is_a_remark():
    """And no judgement, whatever passed."""
    fidelity = on_network(*passing(1.0, 1.0, 1.0, rate_bit_s=0))

    assert fidelity.verdict == "trusted"
    assert any(remark.startswith("how fast the network of host b is, is not known") for remark in fidelity.remarks)
    assert fidelity.hosts[1].network_bit_s == GBIT
    assert fidelity.hosts[1].network_share is None


def test_a_network_is_not_judged_where_nothing_takes_time():
    """Nobody asked for a link, a cap or a pause."""
    found = loads()
    series = series_of(WELL, WELL, [found[0], *passing(1.0, 1.0, 1.0), found[2]])

    assert judge(plan_on_hosts(), series).reasons == ()


# --- the network's MTU ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mtu", "packet", "segment"), [(1450, 1464, 1398), (None, 1514, 1448)])
def test_framing_goes_by_the_mtu_that_nodes_tell(mtu, packet, segment):
    """Of an overlay network; where nobody tells it is an Ethernet's."""
    series = series_on_hosts([usage(), held(mtu=mtu)])
    plan = plan_on_hosts(link=TEN_MBIT)
    rows = rows_of(plan, series)
    trial = Observed(plan=plan, everybody=tuple(map(Judged, plan.nodes, rows)))
    traffic = records.Traffic(ingress_payload=1000 * segment, egress_payload=0)

    assert explained_bytes(traffic, trial.mtu) == 1000 * packet
    assert {row.mtu for row in rows if row.role == "worker"} == {packet - 14}


def test_the_burst_that_is_taken_off_goes_by_the_mtu():
    """So messages of an overlay network show the rate that was asked."""
    messages = transfers(messages=100, size=126_550, asked_s=10.0)
    row = next(row for row in rows_of(plan_on_hosts(link=TEN_MBIT), series_on_hosts([held(mtu=1450), messages]))
               if row.node == "edge-0")  # fmt: skip

    assert row.uplink.measured_bit_s == pytest.approx(10 * MBIT)
