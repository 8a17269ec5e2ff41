"""The verdict: each rule from both sides, and that it does not matter in which order records came."""

from itertools import chain
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core import records
from edgebed.core.plan import Waiting
from edgebed.core.planned.device_core import Core
from edgebed.core.planned.link import LinkPlan
from edgebed.journal.journal import JournalWriter
from edgebed.journal.series import Series
from edgebed.journal.verdict.evidence import TOO_SHORT
from edgebed.journal.verdict.fidelity import NOTHING_ASKED, SIMULATED, judge
from edgebed.journal.verdict.lots import MESSAGES_MIN, lots
from edgebed.runtimes.live.meters import Reading, add_window

from .conftest import (
    GIB,
    LATE,
    MBIT,
    TEN_MBIT,
    WELL,
    WORKERS,
    held,
    host,
    plan_of,
    series_of,
    transfers,
    trial,
    usage,
    verdict_on,
)  # fmt: skip


def test_what_was_never_trained_has_no_verdict():
    """The journal breaks off before the training."""
    assert judge(plan_of(), Series.empty()) is None


def test_a_simulation_is_modelled_and_says_what_its_time_is():
    """Nothing was measured, so nothing is trusted; and times come from somewhere."""
    fidelity = judge(plan_of(link=TEN_MBIT), series_of(runtime="simulation"))

    assert (fidelity.verdict, fidelity.causes) == ("modelled", ())
    assert fidelity.remarks[0] == SIMULATED
    assert "a gradient takes 10 ms (the scenario's gradient_time)" in fidelity.remarks[1]


def test_a_run_that_asks_for_nothing_is_trusted_however_busy_the_host():
    """Nodes without caps may fight for cores, be late and starve."""
    busy = host(busy=1.0, steal=0.3, lag_s=0.1)
    fidelity = judge(plan_of(), series_of([usage(starved_s=15.0)], [usage()], [busy]))

    assert fidelity.verdict == "trusted"
    assert fidelity.remarks[0] == NOTHING_ASKED


def test_a_trial_too_short_to_be_measured_says_so():
    """A cap was asked for, and nobody measured."""
    fidelity = judge(plan_of(cpus=1.0), series_of())

    assert (fidelity.verdict, fidelity.reasons) == ("unknown", (TOO_SHORT,))


# --- links ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("early", "verdict"), [(10, "trusted"), (11, "degraded"), (100, "degraded")])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_messages_that_come_too_early_degrade(early, verdict, direction):
    """One in ten may; others that are late do not make up for it."""
    judged = verdict_on(plan_of(link=TEN_MBIT), usage(), held(), transfers(direction=direction, early=early))

    assert judged == (verdict, ["link"] if verdict == "degraded" else [])


def test_four_messages_do_not_condemn_a_link():
    """They may be chance: one of each worker of the class."""
    assert verdict_on(plan_of(link=TEN_MBIT), usage(), held(), transfers(messages=1, early=1)) == ("trusted", [])


@pytest.mark.parametrize("what", [{"early": 2}, {"share": 5.0}], ids=["early", "late"])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_few_messages_of_each_worker_are_judged_together(what, direction):
    """Two of each of four: whoever trains for long before each push has no other."""
    few = transfers(direction=direction, messages=2, asked_s=0.2, **what)
    judged = judge(plan_of(link=TEN_MBIT), series_of([usage(), held(), few], [usage(), held()]))

    assert (judged.verdict, judged.causes) == ("degraded", ("link",))
    assert "all 4 nodes of edge" in judged.reasons[0]


@given(st.lists(st.integers(0, 20), max_size=8))
def test_all_messages_of_a_class_are_judged_once_if_they_are_enough(counts):
    """However few each node had; whoever had more than all who had few together is judged alone."""
    rows = {name: SimpleNamespace(messages=count) for name, count in zip("abcdefgh", counts, strict=False)}
    found = list(lots([SimpleNamespace(name=name, ways=lambda _, row=row: (row,)) for name, row in rows.items()], "up"))
    sizes = [[way.messages for _, way in lot.members] for lot in found]

    assert sorted(chain(*sizes)) == (sorted(filter(None, counts)) if sum(counts) >= MESSAGES_MIN else [])
    assert all(sum(lot) >= MESSAGES_MIN for lot in sizes)
    assert all(len(lot) == 1 for lot in sizes[:-1] if lot[0] >= MESSAGES_MIN)


def test_times_are_judged_as_far_as_clocks_agree():
    """What is too late by less than both ends' clocks may be wrong is no fault; that they are unsure is remarked."""
    late = transfers(share=4.0)
    unsure = transfers(share=4.0, error_s=3.0)
    plan = plan_of(link=TEN_MBIT)

    assert verdict_on(plan, usage(), held(), late) == ("degraded", ["link"])
    assert verdict_on(plan, usage(), held(), unsure) == ("trusted", [])
    fidelity = judge(plan, series_of([usage(), held(), unsure]))
    (remark,) = [text for text in fidelity.remarks if "clocks" in text]
    assert remark.startswith("times of messages of edge-0, edge-1 and 2 more are known to 30.0 ms")


def test_a_message_that_came_before_it_left_condemns_the_clocks():
    """Even one: then no time between these two nodes means anything."""
    assert verdict_on(plan_of(link=TEN_MBIT), usage(), held(), transfers(impossible=1)) == ("degraded", ["clock"])


def differing(*differences, looks=1):
    """A link that is right by now, but was not."""
    return held(differed=looks, differences=differences)


def test_what_the_read_back_finds_is_quoted():
    """Also when it was so for a moment only."""
    problem = "uplink: the kernel lets 64000 bytes through at once, asked 1600"
    fidelity = judge(plan_of(link=TEN_MBIT), series_of([usage(), differing(problem)], [usage()]))

    (reason,) = fidelity.reasons
    assert reason == (
        "link: the uplink of all 4 nodes of edge was not as asked in one look (edge-0: the kernel lets 64000 bytes "
        "through at once, asked 1600); edgebed was late to set it, or somebody else changed it"
    )


def test_a_trace_that_falls_behind_is_one_finding_for_each_direction():
    """However many rates were held instead of others."""
    said = series_of(WELL, WELL)
    for number, name in enumerate(WORKERS[:3], start=1):
        ways = [f"{way}: the kernel holds {number}mbit, asked {number + 3}mbit" for way in ("uplink", "downlink")]
        said.links[name] = (differing(*ways[:number], looks=10), differing(*ways[:number], looks=number))
    said.links["edge-3"] = (held(),)
    up, down = judge(plan_of(link=TEN_MBIT), said).reasons

    assert up.startswith("link: the uplink of 3 of 4 nodes of edge was not as asked in up to 13 looks")
    assert "(edge-0: the kernel holds 1mbit, asked 4mbit)" in up
    assert down.startswith("link: the downlink of 2 of 4 nodes of edge")


def test_an_mtu_that_another_life_found_is_a_difference():
    """What was changed while the node was away it would take for what was asked."""
    said = series_of(WELL, WELL)
    said.links["edge-1"] = (held(), held(mtu=400))
    said.links.update({name: (held(mtu=1450), held(mtu=1450)) for name in WORKERS if name != "edge-1"})
    (reason,) = judge(plan_of(link=TEN_MBIT), said).reasons

    assert reason.startswith(
        "link: the MTU of edge-1 was not as asked in one look (edge-1: the interface takes packets of 400 bytes, in an "
        "earlier life of 1,500)"
    )


@pytest.mark.parametrize("mechanism", ["none", ""])
def test_a_link_that_nothing_holds_degrades(mechanism):
    """It was asked for."""
    said = [held(mechanism="none")] if mechanism else []

    assert verdict_on(plan_of(link=TEN_MBIT), usage(), *said) == ("degraded", ["link"])


LATENCY = LinkPlan(latency_s=0.04)


@pytest.mark.parametrize(
    ("link", "said", "verdict"),
    [
        (LATENCY, held(LATENCY, "none", delay="line"), "trusted"),
        (LATENCY, held(LATENCY, "tc", delay="netem"), "trusted"),
        (LATENCY, held(LATENCY, "none", delay=""), "degraded"),
        (LinkPlan(loss=0.01), held(mechanism="tc", delay=""), "degraded"),
        (LinkPlan(uplink_bit_s=MBIT, latency_s=0.04), held(mechanism="none", delay="line"), "degraded"),
        (LinkPlan(uplink_bit_s=MBIT, latency_s=0.04), held(mechanism="tc", delay=""), "degraded"),
    ],
)
def test_rates_are_held_by_one_thing_and_latency_by_another(link, said, verdict):
    """A link of latency alone needs no limit, and a limit makes no latency."""
    assert verdict_on(plan_of(link=link), usage(), said)[0] == verdict


@pytest.mark.parametrize(("share", "verdict"), [(1.09, "trusted"), (1.12, "degraded")])
@pytest.mark.parametrize("direction", ["uplink", "downlink"])
def test_no_link_may_carry_more_over_time_than_asked(share, verdict, direction):
    """The interface counts, so for the server all its workers together."""
    judged = verdict_on(plan_of(server={"link": TEN_MBIT}), server=(held(), usage(**{f"{direction}_busiest": share})))

    assert judged == (verdict, ["link"] if verdict == "degraded" else [])


def test_late_messages_are_the_links_fault_where_nothing_else_explains_them():
    """Nothing was throttled, shared or overloaded."""
    assert verdict_on(plan_of(link=TEN_MBIT), usage(), held(), LATE) == ("degraded", ["link"])


def test_late_messages_on_an_overloaded_host_are_the_hosts_fault():
    """The cores were busy, or nodes waited for them."""
    plan = plan_of(link=TEN_MBIT)

    assert verdict_on(plan, usage(), held(), LATE, loads=[host(busy=0.97)]) == ("degraded", ["host CPU"])
    assert verdict_on(plan, usage(starved_s=8.0), held(), LATE) == ("degraded", ["host CPU", "host CPU"])


def test_a_host_whose_load_comes_in_bursts_is_no_bad_link():
    """Cores idle for two fifths of the time, and 7.5 threads a core that ran or waited: others' bursts."""
    link, capped = LinkPlan(uplink_bit_s=20 * MBIT), usage(cpu_s=0.6, throttled_s=0.0, cpus_held=0.05)
    plan = plan_of(link=link, cpus=0.05)
    late = transfers(direction="down", messages=8, asked_s=8 * 0.0069, share=79.3 / 6.9)
    bursty, spare = ([host(busy=0.58, lag_s=0.0038, load=load)] for load in (7.5, 1.5))
    fidelity = judge(plan, series_of([capped, held(link), late], WELL, bursty))

    assert fidelity.causes == ("host CPU",)
    assert "took up to 79.3 ms, where 6.9 ms were asked, perhaps since the host was overloaded" in fidelity.reasons[0]
    assert "7.5 threads a core ran or waited" in fidelity.reasons[0]
    assert judge(plan, series_of([capped, held(link), late], WELL, spare)).causes == ("link",)


def test_lateness_within_handling_or_of_lossy_links_is_no_fault():
    """Five milliseconds a message; and what is lost is sent again."""
    late = transfers(asked_s=1.0, share=1.55)
    lossy = msgspec.structs.replace(TEN_MBIT, loss=0.01)

    assert verdict_on(plan_of(link=TEN_MBIT), usage(), held(), late)[0] == "trusted"
    assert verdict_on(plan_of(link=lossy), usage(), held(delay="netem"), LATE)[0] == "trusted"


def test_a_direction_without_a_limit_is_not_judged():
    """Nothing was asked of it."""
    link = LinkPlan(uplink_bit_s=10 * MBIT)

    assert verdict_on(plan_of(link=link), usage(), held(link), transfers(direction="down", asked_s=0.0))[0] == "trusted"


def test_tcp_may_take_its_round_trips_where_the_kernel_delays():
    """847 kB need five more round trips of 80 ms; over the transport's delay line they do not."""
    late = transfers(messages=10, size=870_000, asked_s=10 * 0.11, latency_s=10 * 0.04, share=4.0)
    link = LinkPlan(uplink_bit_s=100 * MBIT, latency_s=0.04)

    assert verdict_on(plan_of(link=link), usage(), held(link, delay="netem"), late)[0] == "trusted"
    assert verdict_on(plan_of(link=link), usage(), held(link, delay="line"), late)[0] == "degraded"


def test_latency_before_the_first_byte_and_behind_it_add_up():
    """The sender tells the one, whoever receives the other: the least of all their lives; None: nobody could tell."""
    received = [transfers(delay_s=delay_s) for delay_s in (0.0011, 0.0003)]
    sent = [transfers(messages=0, asked_s=0.0, delay_s=delay_s) for delay_s in (0.0207, 0.025)]
    only_sent = transfers(direction="down", messages=0, asked_s=0.0, delay_s=0.02)
    (row,) = [row for row in judge(plan_of(), series_of([*received, *sent, only_sent])).nodes if row.node == "edge-0"]

    assert (row.uplink.delay_s, row.downlink.delay_s) == (pytest.approx(0.021), None)


@pytest.mark.parametrize(("loss", "why"), [(0.0, "as a router's do"), (0.05, "among them those that were to be lost")])
def test_drops_are_remarked(loss, why):
    """TCP needs them; they are no fault. Nor are those that were asked for, which no router's queue explains."""
    counts = {"uplink_packets": 950, "uplink_drops": 50}
    link = msgspec.structs.replace(TEN_MBIT, loss=loss)
    fidelity = judge(
        plan_of(link=link), series_of([usage(**counts), held(link, delay="netem" if loss else "")], [usage()])
    )

    assert fidelity.verdict == "trusted"
    assert fidelity.remarks[0].endswith(f"dropped up to 5.0 % of the packets (the uplink of edge-3), {why}")


# --- CPU, memory, host ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("starved_s", "verdict"), [(1.9, "trusted"), (2.1, "degraded")])
@pytest.mark.parametrize("asked", [{"cpus": 1.0}, {"compute_speed": 0.5}])
def test_nodes_that_miss_their_promised_cores_degrade(starved_s, verdict, asked):
    """For a tenth of the training."""
    judged = verdict_on(plan_of(**asked), usage(starved_s=starved_s))

    assert judged == (verdict, ["host CPU"] if verdict == "degraded" else [])


@pytest.mark.parametrize("cpus", [0.02, 0.05, 0.1, 0.5, 1.0])
@pytest.mark.parametrize(("had", "verdict"), [(0.49, "degraded"), (0.85, "degraded"), (0.95, "trusted")])
def test_a_share_of_what_was_promised_is_missing_however_small_the_cap(cpus, had, verdict):
    """A quota above the nodes' own, say: they used so much of their caps, were hardly throttled, and waited."""
    before, after = (
        Reading(t, cpu_s=had * cpus * t, waited_s=0.9 * t, absorbed_s=0.0, throttled_s=0.002 * t, throttled_periods=0)
        for t in (0.0, 20.0)
    )
    measured = add_window(records.Usage(time_s=0.0, cpu_s=0.0), cpus, before, after)

    assert measured.starved_s == pytest.approx(20.0 * (1.0 - had))
    assert verdict_on(plan_of(cpus=cpus), msgspec.structs.replace(measured, cpus_held=cpus))[0] == verdict


def test_a_capped_node_that_waits_a_moment_whenever_it_wakes_up_misses_nothing():
    """A fiftieth of a core, half of it used, and a thousandth of the time waited: a twentieth of the cap."""
    before, after = (
        Reading(t, cpu_s=0.01 * t, waited_s=0.001 * t, absorbed_s=0.0, throttled_s=0.0, throttled_periods=0)
        for t in (0.0, 20.0)
    )
    measured = add_window(records.Usage(time_s=0.0, cpu_s=0.0), 0.02, before, after)

    assert measured.starved_s == pytest.approx(0.02)
    assert verdict_on(plan_of(cpus=0.02), msgspec.structs.replace(measured, cpus_held=0.02)) == ("trusted", [])


@pytest.mark.parametrize(("starved_s", "verdict"), [(1.9, "trusted"), (2.1, "degraded")])
@pytest.mark.parametrize("asked", [{"link": TEN_MBIT}, {"waiting": Waiting(distribution="exponential", mean_s=0.1)}])
def test_nodes_without_a_cap_that_starve_degrade_where_times_were_asked_for(starved_s, verdict, asked):
    """What they send comes later than from a device that has a core; where nothing was asked for they may starve."""
    said = [usage(starved_s=starved_s), *([held()] if "link" in asked else [])]
    fidelity = judge(plan_of(**asked), series_of(said))

    assert fidelity.verdict == verdict
    assert all("waited for a core for 11 % of the training" in reason for reason in fidelity.reasons)
    assert judge(plan_of(), series_of([usage(starved_s=15.0)])).verdict == "trusted"


def test_one_node_may_be_worse_than_the_mean_but_not_much():
    """A fifth of the training is too much for any."""
    said = series_of([usage(starved_s=0.0)], [usage()])
    said.usage["edge-1"] = (usage(starved_s=3.9),)
    assert judge(plan_of(cpus=1.0), said).verdict == "trusted"
    said.usage["edge-1"] = (usage(starved_s=4.1),)
    assert judge(plan_of(cpus=1.0), said).verdict == "degraded"


@pytest.mark.parametrize(("cpu_s", "verdict"), [(10.0, "trusted"), (13.0, "degraded")])
def test_a_server_with_time_to_spare_may_wait(cpu_s, verdict):
    """A fifth of the time, shared by all workers' messages; it counts where the server is what they wait for."""
    judged = verdict_on(plan_of(server={"cpus": 1.0}), server=(usage(cpu_s=cpu_s, starved_s=4.0),))

    assert judged[0] == verdict


def test_the_reason_for_starving_has_figures_and_what_to_do():
    """Four caps of a core each, half of which two cores can give."""
    said = series_of([usage(cpu_s=10.0, starved_s=10.0)], WELL, [host(busy=1.0)])
    fidelity = judge(plan_of(cpus=1.0), said)

    assert list(fidelity.reasons) == [
        (
            "host CPU: all 4 nodes of edge waited for a promised core for 50 % of the training (longest edge-3: 50 %); "
            "the caps of all nodes add up to 4 cores (cores busy 100 %)"
        )
    ]
    assert fidelity.remarks == ("lower the caps, ask for fewer nodes, or take a host with more cores",)


def test_what_else_runs_on_the_host_is_to_blame_where_nodes_used_little():
    """Nodes used a tenth of a core each, and two cores were busy."""
    said = series_of([usage(cpu_s=2.0, starved_s=10.0)], WELL, [host(busy=1.0)])
    fidelity = judge(plan_of(cpus=0.25), said)

    assert "(cores busy 100 %, of it 25 % with this trial's nodes)" in fidelity.reasons[0]
    assert fidelity.remarks[0].startswith("stop what else runs on this host, lower the caps, ")


@pytest.mark.parametrize(
    ("capped_cpu_s", "verdict"), [(4.4, "degraded"), (4.6, "trusted"), (5.4, "trusted"), (5.6, "degraded")]
)
def test_a_cap_in_force_lets_a_tenth_more_or_less_through(capped_cpu_s, verdict):
    """Half a core, used up for ten seconds."""
    capped = {"capped_s": 10.0, "capped_cpu_s": capped_cpu_s, "capped_allowed_s": 5.0}
    said = usage(cpu_s=capped_cpu_s, throttled_s=5.0, cpus_held=0.5, **capped)
    judged = verdict_on(plan_of(cpus=0.5), said)

    assert judged == (verdict, ["CPU cap"] if verdict == "degraded" else [])


@pytest.mark.parametrize(("cpu_s", "verdict"), [(10.9, "trusted"), (11.2, "degraded")])
def test_a_cap_that_nothing_holds_is_judged_by_the_mean(cpu_s, verdict):
    """Half a core for twenty seconds."""
    judged = verdict_on(plan_of(server={"cpus": 0.5}), server=(usage(cpu_s=cpu_s, allowed_s=10.0),))

    assert judged == (verdict, ["CPU cap"] if verdict == "degraded" else [])


def test_a_cap_changed_behind_its_back_is_found():
    """The node looks at its own cgroup once a second, whatever that holds in the end."""
    text = "CPU cap: its cgroup held no cap, where 0.5 cores had been set"
    changed = usage(throttled_s=0.0, cpus_held=0.5, differed=3, differences=(text,))
    found = judge(plan_of(cpus=0.5), series_of([changed], WELL))

    assert (found.verdict, found.causes) == ("degraded", ("CPU cap",))
    assert "its cgroup held no cap, where 0.5 cores had been set; so it was in 3 looks of its own" in found.reasons[0]


@pytest.mark.parametrize(("held_bytes", "verdict"), [(GIB, "trusted"), (GIB + 4000, "trusted"), (2 * GIB, "degraded")])
def test_a_memory_cap_that_is_another_one_in_the_end_is_found(held_bytes, verdict):
    """By the node itself, which alone sees it on another host; to the page."""
    judged = verdict_on(plan_of(memory_bytes=GIB), usage(memory_bytes=1, memory_held_bytes=held_bytes))

    assert judged == (verdict, ["memory"] if verdict == "degraded" else [])


@pytest.mark.parametrize(("memory_bytes", "verdict"), [(GIB, "trusted"), (GIB + 1, "degraded")])
def test_more_memory_than_the_cap_degrades(memory_bytes, verdict):
    """A device of that size would have failed."""
    judged = verdict_on(plan_of(memory_bytes=GIB), usage(memory_bytes=memory_bytes))

    assert judged == (verdict, ["memory"] if verdict == "degraded" else [])


def test_no_live_node_is_faster_than_its_machine():
    """Only the simulation can do that."""
    assert verdict_on(plan_of(compute_speed=2.0)) == ("degraded", ["compute speed"])


PI = {"core": Core(flop_s=1e9, overhead_s=0.007, device="raspberry-pi-4")}


@pytest.mark.parametrize(
    ("device_s", "late_s", "waits_s", "jobs", "reasons"),
    [
        (
            8.0,
            4.0,
            0.0,
            1,
            ["150 %"],
        ),
        (8.0, 0.7, 0.0, 1, []),
        (0.2, 0.1, 0.0, 99, []),
        (
            0.2,
            0.6,
            0.0,
            99,
            ["400 %"],
        ),
        (
            8.0,
            0.0,
            5.0,
            1,
            ["150 %"],
        ),
        (8.0, 0.0, 1.5, 1, []),
        (0.0, 0.0, 0.0, 0, []),
    ],
)
def test_a_device_that_is_faster_than_this_host_degrades(device_s, late_s, waits_s, jobs, reasons):
    """By more than a tenth, and five milliseconds a job, however few; of waits 0.6 s starved and 0.4 s throttled."""
    said = series_of(
        [
            usage(
                starved_s=0.6, throttled_s=0.4, device_s=device_s, device_late_s=late_s, device_waits_s=waits_s,
                device_jobs=jobs,
            )
        ],
        [usage()],
    )  # fmt: skip
    found = judge(plan_of(**PI), said)

    text = "device edge: the work of all 4 nodes of edge took {} of the CPU time that raspberry-pi-4 takes"
    assert [reason.partition("; ")[0] for reason in found.reasons] == [text.format(share) for share in reasons]
    remarks = [remark for remark in found.remarks if remark.endswith("takes, but by less than 5 ms a job")]
    assert len(remarks) == (jobs == 99 and not reasons)


@pytest.mark.parametrize("load", [host(steal=0.06), host(lag_s=0.025), host(slew=-0.02)])
def test_a_host_that_does_not_keep_time_degrades_what_takes_time(load):
    """A link, a waiting time; a cap of memory alone does not mind."""
    plans = (plan_of(waiting=Waiting(distribution="exponential", mean_s=0.1)), plan_of(memory_bytes=GIB))

    assert [verdict_on(plan, loads=[load]) for plan in plans] == [("degraded", ["host"]), ("trusted", [])]


def test_a_late_moment_of_the_host_does_not_condemn_a_run():
    """Lag counts by its median."""
    loads = [host(), host(), host(lag_s=0.5)]

    assert verdict_on(plan_of(cpus=0.5), loads=loads) == ("trusted", [])


def test_a_clock_that_swings_is_no_better_than_one_that_is_fast():
    """Sizes count; what a time service does in good order is nothing."""
    swinging, in_order = ([host(slew=share), host(slew=-share)] for share in (0.05, 0.0005))

    assert verdict_on(plan_of(cpus=0.5), loads=swinging) == ("degraded", ["host"])
    assert verdict_on(plan_of(cpus=0.5), loads=in_order) == ("trusted", [])


@pytest.mark.parametrize(
    ("names", "causes", "remark"),
    [
        ((), [], False),
        (("cubic",), [], False),
        (("reno",), [], True),
        (("bbr",), ["link"], False),
        (("bbr", "cubic"), ["link"], False),
    ],
)
def test_connections_have_the_congestion_control_that_was_chosen(names, causes, remark):
    """BBR, which a machine may have by default, takes other times; Reno is for who may choose nothing else."""
    said = usage(congestion_controls=names)
    fidelity = judge(plan_of(link=TEN_MBIT), series_of([said, held()], [said]))

    assert list(fidelity.causes) == causes
    assert any("was reno, since cubic is not to be had" in text for text in fidelity.remarks) == remark


def test_the_evaluator_is_not_judged():
    """Watching is no condition of the experiment."""
    plan = plan_of(cpus=1.0)
    said = series_of([usage()], [usage()])
    said.usage["evaluator"] = (usage(starved_s=19.0),)

    assert judge(plan, said).verdict == "trusted"


# --- records ----------------------------------------------------------------------------------------------------------


def read_back(tmp_path_factory, entries, plan):
    """The verdict on a journal with these entries, in seconds since training began."""
    path = tmp_path_factory.mktemp("journal") / "events.jsonl"
    with JournalWriter(path) as journal:
        journal.write_many([(10.0, "controller", trial()), *((10.0 + t, node, each) for t, node, each in entries)])
    return judge(plan, Series.from_journal(path))


@pytest.mark.parametrize("second", [(2.0, 12.0), (10.0, 30.0)], ids=["shorter", "as long, but later"])
def test_a_node_that_was_started_anew_counts_with_both_lives(tmp_path_factory, second):
    """Cumulative figures begin at 0 again; the later ones of one life replace the earlier."""
    time_s, t = second
    entries = [
        (4.0, "edge-0", usage(time_s=4.0, cpu_s=1.0, starved_s=0.0)),
        (6.0, "edge-0", usage(time_s=6.0, cpu_s=2.0, starved_s=1.0)),
        (t, "edge-0", usage(time_s=time_s, cpu_s=1.0, starved_s=1.0)),
    ]
    fidelity = read_back(tmp_path_factory, entries, plan_of(cpus=1.0))
    row = next(row for row in fidelity.nodes if row.node == "edge-0")

    assert (row.time_s, row.starved, row.cpus_measured) == (6.0 + time_s, 2.0 / (6.0 + time_s), 3.0 / (6.0 + time_s))


SPOKEN = [
    [
        ("edge-0", held()),
        ("edge-0", held(differed=1, differences=("uplink: other",), problem="uplink: other")),
        ("edge-0", held(differed=1, differences=("uplink: other",))),
    ],
    *(
        [(name, usage(time_s=float(t), cpu_s=0.2 * t, starved_s=0.3 * t, uplink_bytes=10**6 * t)) for t in (2, 4, 6, 8)]
        for name in (*WORKERS, "server")
    ),
    *(
        [("server", transfers(name, "up", messages=t, early=t - 1, asked_s=0.01 * t)) for t in (2, 6, 10)]
        for name in WORKERS
    ),
    [("edge-0", transfers(direction="up", messages=0, asked_s=0.0, delay_s=0.1 / t)) for t in (4, 5)],
    [("edge-0", transfers(direction="down", messages=t, asked_s=0.01 * t)) for t in (3, 7)],
    [("controller", host(busy=0.125 * t)) for t in range(1, 8)],
]
"""What each says of each thing, in its order."""


@given(data=st.data())
def test_the_order_in_which_nodes_are_heard_does_not_matter(tmp_path_factory, data):
    """They report in batches, late and interleaved, each in its own order."""
    turns = [index for index, said in enumerate(SPOKEN) for _ in said]
    left = [iter(said) for said in SPOKEN]
    mixed = [(float(9), *next(left[index])) for index in data.draw(st.permutations(turns))]
    plan = plan_of(link=TEN_MBIT, cpus=0.5)
    found = read_back(tmp_path_factory, mixed, plan)

    assert found == read_back(tmp_path_factory, [(9.0, *each) for said in SPOKEN for each in said], plan)
    assert found.verdict == "degraded"
