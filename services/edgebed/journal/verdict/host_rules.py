"""Rules of the verdict about CPU, memory and the host: nodes had what they were promised, no more, and in time.

Only what was asked for is judged. Nodes without a cap are promised a core as well, where anything is asked for that
takes time: what they wait for one, links and delays wait, too.
"""

from collections.abc import Iterator

from edgebed.core.quantities import bytes_text, rate_text
from edgebed.core.recorded.measured import HOST_LOAD_S
from edgebed.emulation.caps import is_memory_held
from edgebed.emulation.witness.busiest import WINDOWS_MIN
from edgebed.journal.verdict.findings import (
    BUSY_MIN,
    SERVER_BUSY_MIN,
    STARVED_MAX,
    STARVED_WORST_MAX,
    Finding,
    Judged,
    Observed,
    Rule,
    is_promised,
    named,
    of_class,
    seconds_text,
    share_text,
    takes_time,
    the,
)
from edgebed.journal.verdict.hosts import HostConditions
from edgebed.planning.virtual_time import speed_text

UNDERLAY_MAX = 0.8
"""Share of the rate of a network between hosts that may pass: beyond it, bursts queue."""
CAP_TOLERANCE = 0.1
"""Relative error that a CPU cap may have: a tenth more or less, as a link."""
CAPPED_S_MIN = 2.0
"""Seconds for which a cap must be used up to be measured to a tenth: the kernel gives it out in periods of 0.1 s."""
CPU_S_MIN = 5.0
"""Seconds that a mean must cover to say something about a cap."""
STEAL_MAX = 0.05
"""Share of the cores' time that the machine under this one may take: beyond it, times depend on its neighbours."""
LAG_MAX_S = 0.02
"""Seconds by which a thread that slept may wake up late: even beside 25 busy processes a core it is 4 to 12 ms; later,
delays are wrong."""
SLEW_MAX = 0.01
"""Share by which a host's clock may run fast or slow: in good order a time service slews it by 0.0005 at most."""

JOB_S = 0.005
"""Seconds that a job may take more, as a message: code that is cold, after a wait, takes some milliseconds."""
DEVICE_TOLERANCE = 0.1
"""Share of its device's CPU time by which a node's work may take more; a job that takes less makes up for no other."""


def starved(trial: Observed) -> Iterator[Finding]:
    """Rule: nodes got the cores that they were promised: their caps', or one each."""
    if not takes_time(trial.plan):
        return
    for host, there, nodes in trial.classes_by_host():
        promised = [node for node in there if _matters(node)]
        shares = [(node.row.starved, node.name) for node in promised if node.row.starved is not None]
        if not shares:
            continue
        mean, (worst, name) = sum(share for share, _ in shares) / len(shares), max(shares)
        if mean > STARVED_MAX or worst > STARVED_WORST_MAX:
            caps = sum(node.plan.cpus or 0.0 for node in trial.on(host, trial.nodes))
            longest = f" (longest {name}: {share_text(worst)})" if len(shares) > 1 else ""
            together = f"; the caps of all {'its ' if host else ''}nodes add up to {caps:g} cores" if caps else ""
            core = "promised core" if is_promised(promised[0].plan) else "core"
            yield Finding(
                f"{named(host)} CPU: {of_class(promised, nodes)} waited for a {core} "
                f"for {share_text(mean)} of the training{longest}{together}{trial.busy_text(host)}",
                advice=trial.advice(host),
            )


def _matters(node: Judged) -> bool:
    """Whether waiting for a core holds anybody up: not that of a server with time to spare."""
    if node.plan.role != "server":
        return True
    cpus = min(1.0, node.plan.cpus or 1.0)
    return (node.row.cpus_measured or 0.0) + cpus * (node.row.starved or 0.0) > SERVER_BUSY_MIN * cpus


def cap_held(trial: Observed) -> Iterator[Finding]:
    """Rule: the kernel's caps are those that were asked, whenever a node looked at its own."""
    for nodes in trial.classes():
        found: dict[str, list[Judged]] = {}
        for node in nodes:
            seen = {text for life in trial.seen.get(node.name, ()) for text in life.last.differences}
            for text in node.row.caps_problems:
                if text not in seen:  # else it is told as seen from outside
                    found.setdefault(text, []).append(node)
        for text, wrong in found.items():
            cause, _, what = text.partition(": ")
            yield Finding(
                f"{cause}: {of_class(wrong, nodes)}: {what}; so it was in "
                f"{max(node.row.caps_differed for node in wrong):,} looks of its own, one a second: find who set it"
            )


def cap_share(trial: Observed) -> Iterator[Finding]:
    """Rule: a node had what its cap lets through, no less while it used it up, and no more."""
    for nodes in trial.classes():
        found = [(share, node) for node in nodes if (share := _off_cap(node)) is not None]
        if found:
            share = max(found, key=lambda each: abs(each[0] - 1.0))[0]
            yield Finding(
                f"CPU cap: {of_class([node for _, node in found], nodes)} had {share_text(share)} of the CPU time that "
                "the cap lets through; as root, and in docker, the kernel holds caps"
            )


def _off_cap(node: Judged) -> float | None:
    """The share of its cap that a node had, where that is more or less than it should be; None: as it should be."""
    row = node.row
    if row.capped_share is not None and row.capped_s >= CAPPED_S_MIN and abs(row.capped_share - 1.0) > CAP_TOLERANCE:
        return row.capped_share
    if row.allowed_share is not None and row.time_s >= CPU_S_MIN and row.allowed_share > 1.0 + CAP_TOLERANCE:
        return row.allowed_share
    return None


def speed(trial: Observed) -> Iterator[Finding]:
    """Rule: no live node is faster than its machine."""
    for nodes in trial.classes():
        faster = [node for node in nodes if node.plan.compute_speed > 1.0]
        if faster:
            yield Finding(
                f"compute speed: {of_class(faster, nodes)} should compute {faster[0].plan.compute_speed:g} times as "
                "fast as this machine, which only the simulation can do"
            )


def device(trial: Observed) -> Iterator[Finding]:
    """Rule: no device is faster than this host, by the CPU time that work takes on either, and by what it waits for."""
    for nodes in trial.classes():
        late = [node for node in nodes if _late_s(node) > DEVICE_TOLERANCE * _device_s(node)]
        slow = [node for node in late if _late_s(node) > DEVICE_TOLERANCE * _device_s(node) + _beside_s(node)]
        if told := slow or late:
            most = max(1.0 + _late_s(node) / _device_s(node) for node in told)
            what_next = "; take a faster host, or trust the simulation for this device"
            yield Finding(
                f"device {nodes[0].plan.device_class}: the work of {of_class(told, nodes)} took {share_text(most)} of "
                f"the CPU time that {speed_text(told[0].plan)} takes"
                f"{what_next if slow else f', but by less than {seconds_text(JOB_S)} a job'}",
                is_fault=bool(slow),
            )


def _device_s(node: Judged) -> float:
    return node.row.device_s or 0.0


def _beside_s(node: Judged) -> float:
    return JOB_S * node.row.device_jobs


def _late_s(node: Judged) -> float:
    """Seconds that a node's work took more than on its device; what else was measured explains waits, as an amount."""
    row = node.row
    if not row.device_s:
        return 0.0
    explained_s = ((row.starved or 0.0) + (row.throttled or 0.0)) * row.time_s + (row.stopped_s or 0.0)
    return row.device_late_s + max(0.0, row.device_waits_s - explained_s)


def memory(trial: Observed) -> Iterator[Finding]:
    """Rule: no node used more memory than its device has, nor did its cgroup hold another cap at last."""
    for nodes in trial.classes():
        known = [node for node in nodes if node.plan.memory_bytes and node.row.memory_held_bytes]
        other = [node for node in known if not is_memory_held(node.plan.memory_bytes, node.row.memory_held_bytes)]
        if other:
            held, asked = (
                bytes_text(each or 0) for each in (other[0].row.memory_held_bytes, other[0].plan.memory_bytes)
            )
            yield Finding(
                f"memory: the kernel holds {held} for {of_class(other, nodes)}, asked {asked}; find who changed it"
            )
        shares = {node.name: (node.row.memory_bytes or 0) / node.plan.memory_bytes
                  for node in nodes if node.plan.memory_bytes}  # fmt: skip
        over = [node for node in nodes if shares.get(node.name, 0.0) > 1.0 and not trial.was_done(node, "memory")]
        if over:
            yield Finding(
                f"memory: {of_class(over, nodes)} used up to {share_text(max(shares.values()))} of the cap, which "
                "nothing held: such a device would have failed; run as root or in docker, or raise the cap"
            )


def hosts(trial: Observed) -> Iterator[Finding]:
    """Rule: hosts kept time, where times were asked for; each is judged for the nodes that it has."""
    for host, load in trial.hosts.items():
        if trial.on(host, trial.nodes):
            if takes_time(trial.plan):
                yield from _kept_time(trial, load)
            if load.busy >= BUSY_MIN and any(node.plan.cpus is None for node in trial.on(host, trial.workers)):
                text = f"{the(host)}'s cores were busy for {share_text(load.busy)} of the training"
                yield Finding(f"{text}: nodes without a cap computed as fast as it let them", is_fault=False)


def _kept_time(trial: Observed, load: HostConditions) -> Iterator[Finding]:
    if load.steal > STEAL_MAX:
        yield Finding(
            f"{named(load.host)}: the machine under {'it' if load.host else 'this one'} took {share_text(load.steal)} "
            "of the cores' time away; run again when its neighbours are quiet, or elsewhere"
        )
    if load.lag_s > LAG_MAX_S:
        yield Finding(
            f"{named(load.host)}: threads that slept woke up {1000 * load.lag_s:.0f} ms late, so waits and delays were "
            f"longer than asked{trial.busy_text(load.host)}",
            advice=trial.advice(load.host),
        )
    if load.slew is not None and load.slew > SLEW_MAX:
        yield Finding(
            f"{named(load.host)}: its clock ran fast or slow by {share_text(load.slew)}, and with it every delay, rate "
            "and time; a time service slews it so after a pause of the machine: run again when it is right"
        )


def underlay(trial: Observed) -> Iterator[Finding]:
    """Rule: the network between hosts had room; what passes there is not held by any node's link."""
    if not takes_time(trial.plan):
        return
    used = [load for load in trial.hosts.values() if load.network_bit_s is not None]
    for load in used:
        if (load.network_share or 0.0) > UNDERLAY_MAX:
            yield Finding(
                f"{named(load.host)} network: {rate_text(load.network_bit_s)} passed its interface to the other hosts, "
                f"{share_text(load.network_share or 0.0)} of its {rate_text(load.network_rate_bit_s)}, for "
                f"{WINDOWS_MIN * HOST_LOAD_S:g} s or more; put fewer nodes there, or take a faster network"
            )
    if unknown := [load.host for load in used if not load.network_rate_bit_s]:
        yield Finding(
            f"how fast the network of {' and '.join(map(named, unknown))} is, is not known, so whether it had room is "
            "not judged; `rate` of a host says it",
            is_fault=False,
        )


HOST_RULES: tuple[Rule, ...] = (starved, cap_held, cap_share, speed, device, memory, hosts, underlay)
