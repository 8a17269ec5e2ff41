"""Each rule of the verdict from both sides: what nodes said or what befell them, and the verdict with all its reasons.

The verdicts are in `goldens/verdicts.txt`.
"""

import dataclasses
from pathlib import Path

import goldens
import msgspec

from edgebed.core import records
from edgebed.core.plan import Waiting
from edgebed.core.planned.device_core import Core
from edgebed.core.planned.link import LinkPlan
from edgebed.journal.verdict.fidelity import NOTHING_ASKED, SIMULATED, judge

from .conftest import (
    GIB,
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
    with_server,
)  # fmt: skip

LINK, SILENT = plan_of(link=TEN_MBIT), plan_of(server={"silence_s": 10.0})
LATENCY, RATED = LinkPlan(latency_s=0.04), LinkPlan(uplink_bit_s=MBIT, latency_s=0.04)
WAITING = Waiting(distribution="exponential", mean_s=0.1)
PI = {"core": Core(flop_s=1e9, overhead_s=0.007, device="raspberry-pi-4")}
BURSTS = LinkPlan(uplink_bit_s=20 * MBIT)
BURST = (
    usage(cpu_s=0.6, throttled_s=0.0, cpus_held=0.05), held(BURSTS),
    transfers(direction="down", messages=8, asked_s=8 * 0.0069, share=79.3 / 6.9),
)  # fmt: skip
FAR = LinkPlan(uplink_bit_s=100 * MBIT, latency_s=0.04)
ROUND_TRIPS = transfers(messages=10, size=870_000, asked_s=10 * 0.11, latency_s=10 * 0.04, share=4.0)


def on(plan, *workers, server=WELL, **more):
    """The verdict where every worker and the server say this."""
    return judge(plan, series_of(workers or WELL, server, **more))


def link(*said, plan=LINK, **more):
    """The verdict where every worker tells of its link."""
    return on(plan, usage(), held(), *said, **more)


def dropping(loss):
    """A node whose link of this loss dropped a twentieth of its packets."""
    said = held(delay="netem" if loss else "")
    return on(
        plan_of(link=msgspec.structs.replace(TEN_MBIT, loss=loss)), usage(uplink_packets=950, uplink_drops=50), said
    )


def capped(cpu_s):
    """A node that used up half a core for ten seconds, and got so much."""
    return usage(
        cpu_s=cpu_s, throttled_s=5.0, cpus_held=0.5, capped_s=10.0, capped_cpu_s=cpu_s, capped_allowed_s=5.0
    )  # fmt: skip


def device(device_s, late_s, waits_s, jobs):
    """Nodes whose device's work took this host so much longer."""
    said = usage(starved_s=0.6, throttled_s=0.4, device_s=device_s, device_late_s=late_s, device_waits_s=waits_s,
                 device_jobs=jobs)  # fmt: skip
    return on(plan_of(**PI), said)


LINKS = {
    **{f"{early} of 100 messages came too early, {way}": link(transfers(direction=way, early=early))
       for early in (10, 11, 100) for way in ("up", "down")},
    "four messages came too early, which may be chance": link(transfers(messages=1, early=1)),
    **{f"two {what} messages of each of four workers, {way}": link(
        transfers(direction=way, messages=2, asked_s=0.2, **more), server=(usage(), held())
    ) for what, more in {"early": {"early": 2}, "late": {"share": 5.0}}.items() for way in ("up", "down")},
    "late by more than clocks may be wrong": link(transfers(share=4.0)),
    "late by less than clocks may be wrong": link(transfers(share=4.0, error_s=3.0)),
    "a message came before it left": link(transfers(impossible=1)),
    "what the read back found is quoted, though it was so for a moment": on(LINK, usage(), held(
        differed=1, differences=("uplink: the kernel lets 64000 bytes through at once, asked 1600",)
    )),
    "nothing holds the link": on(LINK, usage(), held(mechanism="none")),
    "nobody tells of the link": on(LINK, usage()),
    "a delay line makes latency": on(plan_of(link=LATENCY), usage(), held(LATENCY, "none", delay="line")),
    "netem makes latency": on(plan_of(link=LATENCY), usage(), held(LATENCY, "tc", delay="netem")),
    "nothing makes latency": on(plan_of(link=LATENCY), usage(), held(LATENCY, "none", delay="")),
    "nothing makes losses": on(plan_of(link=LinkPlan(loss=0.01)), usage(), held(mechanism="tc", delay="")),
    "latency without the limit": on(plan_of(link=RATED), usage(), held(mechanism="none", delay="line")),
    "a limit without the latency": on(plan_of(link=RATED), usage(), held(mechanism="tc", delay="")),
    **{f"{share:.0%} of what was asked passed the server's {way}": on(
        plan_of(server={"link": TEN_MBIT}), server=(held(), usage(**{f"{way}_busiest": share}))
    ) for share in (1.09, 1.12) for way in ("uplink", "downlink")},
    "late, and nothing explains it": link(LATE),
    "late on a host whose cores were busy": link(LATE, loads=[host(busy=0.97)]),
    "late where nodes waited for a core": on(LINK, usage(starved_s=8.0), held(), LATE),
    "late on a host whose load comes in bursts": on(
        plan_of(link=BURSTS, cpus=0.05), *BURST, loads=[host(busy=0.58, lag_s=0.0038, load=7.5)]
    ),
    "late on a host with cores to spare": on(
        plan_of(link=BURSTS, cpus=0.05), *BURST, loads=[host(busy=0.58, lag_s=0.0038, load=1.5)]
    ),
    "late by what handling takes": link(transfers(asked_s=1.0, share=1.55)),
    "late on a link that loses packets": on(
        plan_of(link=msgspec.structs.replace(TEN_MBIT, loss=0.01)), usage(), held(delay="netem"), LATE
    ),
    "a direction without a limit": on(
        plan_of(link=LinkPlan(uplink_bit_s=10 * MBIT)), usage(), held(LinkPlan(uplink_bit_s=10 * MBIT)),
        transfers(direction="down", asked_s=0.0),
    ),
    "round trips where the kernel delays": on(plan_of(link=FAR), usage(), held(FAR, delay="netem"), ROUND_TRIPS),
    "round trips where the transport does": on(plan_of(link=FAR), usage(), held(FAR, delay="line"), ROUND_TRIPS),
    "packets were dropped, as a router's queue does": dropping(0.0),
    "packets were dropped, among them those that were to be lost": dropping(0.05),
    **{f"congestion control: {', '.join(names) or 'not told'}": on(LINK, usage(congestion_controls=names), held())
       for names in ((), ("cubic",), ("reno",), ("bbr",), ("bbr", "cubic"))},
}  # fmt: skip
HOSTS = {
    **{f"starved for {starved_s} of 20 s with {name}": on(plan_of(**{name: 0.5}), usage(starved_s=starved_s))
       for starved_s in (1.9, 2.1) for name in ("cpus", "compute_speed")},
    **{f"starved for {starved_s} of 20 s without a cap, with a link": on(LINK, usage(starved_s=starved_s), held())
       for starved_s in (1.9, 2.1)},
    **{f"starved for {starved_s} of 20 s without a cap, with pauses": on(
        plan_of(waiting=WAITING), usage(starved_s=starved_s)) for starved_s in (1.9, 2.1)},
    "starved where nothing was asked for": on(plan_of(), usage(starved_s=15.0)),
    **{f"a server that waits a fifth of the time, busy for {cpu_s} of 20 s": on(
        plan_of(server={"cpus": 1.0}), server=(usage(cpu_s=cpu_s, starved_s=4.0),)) for cpu_s in (10.0, 13.0)},
    "caps add up to more than the cores": on(
        plan_of(cpus=1.0), usage(cpu_s=10.0, starved_s=10.0), loads=[host(busy=1.0)]
    ),
    "something else runs on the host": on(
        plan_of(cpus=0.25), usage(cpu_s=2.0, starved_s=10.0), loads=[host(busy=1.0)]
    ),
    **{f"{cpu_s} s of a cap's 5 s": on(plan_of(cpus=0.5), capped(cpu_s)) for cpu_s in (4.4, 4.6, 5.4, 5.6)},
    **{f"{cpu_s} s of the 10 s of a cap that nothing holds": on(
        plan_of(server={"cpus": 0.5}), server=(usage(cpu_s=cpu_s, allowed_s=10.0),)) for cpu_s in (10.9, 11.2)},
    "a cap changed behind the node's back": on(plan_of(cpus=0.5), usage(
        throttled_s=0.0, cpus_held=0.5, differed=3,
        differences=("CPU cap: its cgroup held no cap, where 0.5 cores had been set",),
    )),
    **{f"a memory cap of a GiB that is {size} bytes in the end": on(
        plan_of(memory_bytes=GIB), usage(memory_bytes=1, memory_held_bytes=size)
    ) for size in (GIB, GIB + 4000, 2 * GIB)},
    **{f"{size} bytes of memory": on(plan_of(memory_bytes=GIB), usage(memory_bytes=size)) for size in (GIB, GIB + 1)},
    "a node faster than its machine": on(plan_of(compute_speed=2.0)),
    "a device's work took a half more": device(8.0, 4.0, 0.0, 1),
    "a device's work took less than a tenth more": device(8.0, 0.7, 0.0, 1),
    "a device's work took less than 5 ms a job more": device(0.2, 0.1, 0.0, 99),
    "a device's work took four times as long, in short jobs": device(0.2, 0.6, 0.0, 99),
    "a device's work waited": device(8.0, 0.0, 5.0, 1),
    "a device's work waited for what starving and caps explain": device(8.0, 0.0, 1.5, 1),
    "a device without work": device(0.0, 0.0, 0.0, 0),
    **{f"a host that does not keep time, {what} {share}, where {name} was asked for": on(
        plan_of(**{name: asked}), loads=[host(**{what: share})]
    ) for what, share in {"steal": 0.06, "lag_s": 0.025, "slew": -0.02}.items()
       for name, asked in {"waiting": WAITING, "memory_bytes": GIB}.items()},
    "a late moment of the host": on(plan_of(cpus=0.5), loads=[host(), host(), host(lag_s=0.5)]),
    "a clock that swings": on(plan_of(cpus=0.5), loads=[host(slew=0.05), host(slew=-0.05)]),
    "a clock in good order": on(plan_of(cpus=0.5), loads=[host(slew=0.0005), host(slew=-0.0005)]),
}  # fmt: skip


def after(*faults, plan=None, runtime="process", **more):
    """The verdict on a trial that did well, with these done to it."""
    return judge(plan or plan_of(), with_faults(series_of(WELL, WELL, runtime=runtime, **more), *faults))


def frozen(*times, target="edge-0"):
    """Late messages around a freeze of this node, from and perhaps until these times."""
    said = dataclasses.replace(series_of([usage(), held(), LATE], WELL, [host()] * 10), last_t=20.0, finished_t=20.0)
    return judge(LINK, with_faults(said, *(
        done(action, target, asked_t=t) for action, t in zip(("freeze", "thaw"), times, strict=False)
    )))  # fmt: skip


def fates(*states, faults=(), series=None, plan=None, runtime="process"):
    """The verdict on nodes' fates: (time, name, state, reason); training ended after 20 s."""
    nodes = tuple((t, records.Node(name=name, state=state, reason=reason)) for t, name, state, reason in states)
    series = series or dataclasses.replace(series_of(WELL, WELL, runtime=runtime), last_t=21.0, finished_t=20.0)
    return judge(plan or plan_of(), with_faults(dataclasses.replace(series, nodes=nodes), *faults))


def traffic(interface_bytes, tcp_bytes=30_000_000, interface="eth0", server=WELL, plan=None, faults=(), **more):
    """The verdict where that came to the server: 29 MB of payload, and packets of its own connections that hold it."""
    record = records.Traffic(**{
        "ingress_payload": 29_000_000, "egress_payload": 0, "ingress_interface": interface_bytes,
        "interface": interface, "ack_bytes": 1_000_000, "tcp_bytes": tcp_bytes,
    } | more)  # fmt: skip
    series = dataclasses.replace(series_of(WELL, server), traffic=((20.0, record),))
    return judge(plan or plan_of(), with_faults(series, *faults))


def silence(*found, faults=(), runtime="simulation", reason="silence", nodes=()):
    """The verdict where workers left: (time, worker)."""
    left = tuple((t, records.Left(worker=name, incarnation=1, reason=reason)) for t, name in found)
    series = with_server(series_of(WELL, WELL, runtime=runtime), left=left)
    series = dataclasses.replace(series, last_t=200.0, finished_t=200.0)
    return fates(*nodes, faults=faults, series=series, plan=SILENT)


def came(*more, faults=(), **counts):
    """The verdict where this came to the workers' interfaces."""
    return judge(
        LINK, with_faults(series_of([usage(**{"downlink_bytes": 10_000_000} | counts), held(), *more]), *faults)
    )


RUNTIMES = ("process", "simulation")
ALWAYS = (NOTHING_ASKED, SIMULATED, "virtual time: ")
"""Remarks on a trial that asks for nothing, or is simulated."""
DOWN = LinkPlan(downlink_bit_s=10 * MBIT)
LOSSY = msgspec.structs.replace(DOWN, loss=0.1)
TINY = LinkPlan(downlink_bit_s=3 * MBIT)
TINY_PACKETS = {"downlink_packets": 192_000, "downlink_drops": 10_632, "downlink_bytes": 10_600_000}
KILLED = (6.0, "edge-0", "died", "killed by SIGKILL")
EXPLAINING = {
    "frozen": [done("freeze", "edge-1", asked_t=45.0)], "frozen long before": [done("freeze", "edge-1", asked_t=5.0)],
    "cut by hand": [done("cut", "edge-1", asked_t=5.0, name="by hand")],
    "the server cut": [done("cut", "server", asked_t=45.0)],
    "a slow link": [done("link", "edge-1", asked_t=5.0, change="uplink 8kbit")],
    "killed": [done("kill", "edge-1", asked_t=5.0)],
    "thawed a little before": [done("freeze", "edge-1", asked_t=5.0), done("thaw", "edge-1", asked_t=35.0)],
    "thawed long before": [done("freeze", "edge-1", asked_t=5.0), done("thaw", "edge-1", asked_t=15.0)],
    "a link as planned again": [done("link", "edge-1", asked_t=5.0, change="uplink 8kbit"),
                                done("link", "edge-1", asked_t=15.0, change="as planned")],
    "launched again": [done("kill", "edge-1", asked_t=5.0), done("launch", "edge-1", asked_t=15.0)],
    "another node frozen": [done("freeze", "edge-2", asked_t=45.0)],
    "a freeze that could not be done": [done("freeze", "edge-1", asked_t=45.0, problem="no such process")],
    "frozen later": [done("freeze", "edge-1", asked_t=60.0)],
}  # fmt: skip
EVENTS = {
    **{f"faults that could not be done, {runtime}": after(*2 * [done(problem="no such process")], runtime=runtime)
       for runtime in RUNTIMES},
    **{f"a fault with nothing to do, {runtime}": after(done(no_op="it is not there"), runtime=runtime)
       for runtime in RUNTIMES},
    **{f"a fault by hand that could not be done, {runtime}": after(
        done(name="by hand", problem="it has no link"), runtime=runtime) for runtime in RUNTIMES},
    **{f"one of {number} faults late by {late_s} s": after(*(
        done(target=f"edge-{k}", late_s=0.01 if k else late_s) for k in range(number)))
       for number, late_s in ((1, 0.25), (1, 0.26), (5, 0.26), (20, 1.0), (20, 1.1))},
    "a launch that took 3 s": after(done("launch", late_s=3.0)),
    "a cut by hand that took 3 s": after(done("cut", name="by hand", late_s=3.0)),
    **{f"late messages around a freeze of {target}, {words}": frozen(*times, target=target)
       for target in ("edge-0", "server")
       for words, times in {"thawed": (5.0, 5.5), "thawed soon": (5.0, 5.3), "not thawed": (5.0,)}.items()},
    **{f"a death that a fault asked for, and one that nobody did, {runtime}": fates(
        (7.0, "edge-3", "died", "killed by SIGSEGV"), KILLED, faults=[done()], runtime=runtime
    ) for runtime in RUNTIMES},
    **{f"a node that never came, and a death, {runtime}": fates(
        (-1.0, "edge-2", "missing", "it never joined"), *[(7.0, "server", "died", "")] * 2, runtime=runtime)
       for runtime in RUNTIMES},
    **{f"a death that a fault asked for, {runtime}": fates(KILLED, faults=[done()], runtime=runtime)
       for runtime in RUNTIMES},
    "a death after the training": fates((20.5, "edge-1", "died", "did not answer 'stop'")),
    "a death of the evaluator": fates((7.0, "evaluator", "died", "out of memory")),
    **{f"{had_s} s of the 1 s of a cap that a fault changed": judge(plan_of(cpus=0.5), with_faults(
        series_of([usage(capped_s=10.0, capped_cpu_s=had_s, capped_allowed_s=1.0)], WELL),
        *(done("cpus", name, change="0.1") for name in WORKERS))) for had_s in (1.0, 2.0)},
    "bytes that no message explains": traffic(62_000_000),
    "bytes with their frames": traffic(31_100_000),
    "bytes within a twentieth": traffic(32_800_000),
    "bytes of all the machine": traffic(62_000_000, interface="lo"),
    "bytes that TCP did not count": traffic(62_000_000, tcp_bytes=None),
    "bytes that were unread at the end": traffic(62_000_000, tcp_bytes=61_000_000),
    "few bytes": traffic(400_000, tcp_bytes=200_000, ingress_payload=180_000, ack_bytes=9_000),
    "bytes that come twice, without a cause": traffic(40_000_000),
    "bytes that come twice, since a queue drops them": traffic(
        40_000_000, plan=plan_of({"link": DOWN}),
        server=(usage(downlink_bytes=40_000_000, downlink_dropped_bytes=9_000_000), held(DOWN)),
    ),
    "bytes that come twice, since losses were asked for": traffic(
        40_000_000, plan=plan_of({"link": LOSSY}), server=(usage(), held(LOSSY, delay="netem"))
    ),
    **{f"bytes that come twice, after {action}": traffic(40_000_000, faults=[done(action, "server")])
       for action in ("cut", "link")},
    **{f"tiny packets that were dropped, {words}": traffic(
        10_600_000, tcp_bytes=2_200_000, ingress_payload=2_000_000, ack_bytes=100_000, plan=plan_of({"link": TINY}),
        server=(usage(**TINY_PACKETS, **more), held(TINY)),
    ) for words, more in {"counted": {"downlink_dropped_bytes": 468_000}, "not counted": {}}.items()},
    **{f"a worker left twice by silence, {runtime}": silence((50.0, "edge-1"), (80.0, "edge-1"), runtime=runtime)
       for runtime in RUNTIMES},
    **{f"a worker left by {reason}": silence((50.0, "edge-1"), reason=reason) for reason in ("reset", "oracle")},
    **{f"a worker left by silence; {words}": silence((50.0, "edge-1"), faults=faults)
       for words, faults in EXPLAINING.items()},
    "a worker that died unasked left by silence": silence(
        (15.0, "edge-1"), nodes=[(3.0, "edge-1", "died", "killed by SIGSEGV")]
    ),
    "a worker's bytes, of which TCP has all but a twentieth": came(downlink_own_bytes=9_600_000),
    "a worker's bytes, of which TCP has less": came(downlink_own_bytes=9_400_000),
    "a worker's bytes, of which half were dropped": came(
        downlink_own_bytes=5_000_000, downlink_dropped_bytes=5_000_000),
    "a worker's bytes, of which too few were dropped": came(
        downlink_own_bytes=5_000_000, downlink_dropped_bytes=4_000_000),
    "a worker's bytes, of which only packets are known to be dropped": came(
        downlink_own_bytes=5_000_000, downlink_packets=900, downlink_drops=100),
    "a worker's bytes that TCP did not count": came(downlink_own_bytes=None),
    "a worker's bytes where a connection ended": came(downlink_own_bytes=8_000_000),
    "a worker's bytes where a connection ended, explained by models": came(
        transfers(direction="down", messages=100, size=96_000, asked_s=7.7), downlink_own_bytes=8_000_000),
    "few bytes of a worker": came(downlink_bytes=300_000, downlink_own_bytes=60_000),
    "a worker's bytes behind a cut": came(
        downlink_bytes=9_000_000, downlink_own_bytes=60_000, faults=[done("cut", name) for name in WORKERS]),
}  # fmt: skip


def test_the_verdict_on_what_nodes_said_and_what_befell_them():
    """In the words that a user reads: `!` before what degrades, `-` before a remark."""
    sections = {}
    for name, fidelity in (LINKS | HOSTS | EVENTS).items():
        lines = [f"! {reason}" for reason in fidelity.reasons]
        lines += [f"- {remark}" for remark in fidelity.remarks if not remark.startswith(ALWAYS)]
        sections[f"{name}: {fidelity.verdict}"] = lines

    goldens.compare(goldens.sections(sections).lstrip("\n"), Path(__file__).parent / "goldens/verdicts.txt")
