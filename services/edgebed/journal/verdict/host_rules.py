"""Rules of the verdict about CPU, memory and the host: nodes had what they were promised, no more, and in time.

Only what was asked for is judged. Nodes without a cap may fight for cores as they like.
"""

from collections.abc import Iterator

from edgebed.emulation.cgroups import is_cap_held
from edgebed.journal.verdict.findings import (
    BUSY_MIN,
    SERVER_BUSY_MIN,
    STARVED_MAX,
    STARVED_WORST_MAX,
    Finding,
    Judged,
    Observed,
    Rule,
    can_be_spoiled,
    of_class,
    share_text,
)

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


def starved(trial: Observed) -> Iterator[Finding]:
    """Rule: nodes got the cores that they were promised."""
    for nodes in trial.classes():
        promised = [node for node in nodes if _is_promised(node)]
        shares = [(node.row.starved, node.name) for node in promised if node.row.starved is not None]
        if not shares:
            continue
        mean, (worst, name) = sum(share for share, _ in shares) / len(shares), max(shares)
        if mean > STARVED_MAX or worst > STARVED_WORST_MAX:
            caps = sum(node.plan.cpus or 0.0 for node in trial.nodes)
            longest = f" (longest {name}: {share_text(worst)})" if len(shares) > 1 else ""
            together = f"; the caps of all nodes add up to {caps:g} cores" if caps else ""
            yield Finding(
                f"host CPU: {of_class(promised, nodes)} waited for a promised core for {share_text(mean)} of the "
                f"training{longest}{together}{trial.busy_text}",
                advice=trial.advice,
            )


def _is_promised(node: Judged) -> bool:
    """Whether a cap or a speed was asked for, and lateness matters: a server with time to spare holds nobody up."""
    if node.plan.role == "server":
        needed = (node.row.cpus_measured or 0.0) + (node.row.starved or 0.0)
        return node.plan.cpus is not None and needed > SERVER_BUSY_MIN * min(1.0, node.plan.cpus)
    return node.plan.cpus is not None or node.plan.compute_speed < 1.0


def cap_held(trial: Observed) -> Iterator[Finding]:
    """Rule: the kernel's caps are those that were asked."""
    for nodes in trial.classes():
        wrong = [
            node
            for node in nodes
            if node.row.throttled is not None and not _is_held(node) and not trial.was_done(node, "cpus")
        ]
        if wrong:
            held, asked = wrong[0].row.cpus_held, wrong[0].plan.cpus
            yield Finding(
                f"CPU cap: the kernel holds {'none' if held is None else f'{held:g} cores'} for "
                f"{of_class(wrong, nodes)}, asked {'none' if asked is None else f'{asked:g}'}; somebody changed it"
            )


def _is_held(node: Judged) -> bool:
    return is_cap_held(node.plan.cpus, node.row.cpus_held)


def cap_share(trial: Observed) -> Iterator[Finding]:
    """Rule: a node had what its cap lets through, no less while it used it up, and no more."""
    for nodes in trial.classes():
        same = [node for node in nodes if not trial.was_done(node, "cpus")]  # a cap that changes has no one share
        found = [(share, node) for node in same if (share := _off_cap(node)) is not None]
        if found:
            share = max(found, key=lambda each: abs(each[0] - 1.0))[0]
            yield Finding(
                f"CPU cap: {of_class([node for _, node in found], nodes)} had {share_text(share)} of the CPU time that "
                "the cap lets through; as root, and in docker, the kernel holds caps"
            )


def _off_cap(node: Judged) -> float | None:
    """The share of its cap that a node had, where that is more or less than it should be; None: as it should be."""
    asked, row = node.plan.cpus, node.row
    if asked is None:
        return None
    if row.cpus_capped is not None and row.capped_s >= CAPPED_S_MIN:
        share = row.cpus_capped / asked
        if abs(share - 1.0) > CAP_TOLERANCE:
            return share
    if row.cpus_measured is not None and row.time_s >= CPU_S_MIN and row.cpus_measured > (1.0 + CAP_TOLERANCE) * asked:
        return row.cpus_measured / asked
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


def memory(trial: Observed) -> Iterator[Finding]:
    """Rule: no node used more memory than its device has."""
    for nodes in trial.classes():
        shares = {node.name: (node.row.memory_bytes or 0) / node.plan.memory_bytes
                  for node in nodes if node.plan.memory_bytes}  # fmt: skip
        over = [node for node in nodes if shares.get(node.name, 0.0) > 1.0 and not trial.was_done(node, "memory")]
        if over:
            yield Finding(
                f"memory: {of_class(over, nodes)} used up to {share_text(max(shares.values()))} of the cap, which "
                "nothing held: such a device would have failed; run as root or in docker, or raise the cap"
            )


def host(trial: Observed) -> Iterator[Finding]:
    """Rule: the host kept time, where times were asked for."""
    load = trial.host
    if load is None:
        return
    if any(can_be_spoiled(node) for node in trial.plan.nodes):
        if load.steal > STEAL_MAX:
            yield Finding(
                f"host: the machine under this one took {share_text(load.steal)} of the cores' time away; run again "
                "when its neighbours are quiet, or elsewhere"
            )
        if load.lag_s > LAG_MAX_S:
            yield Finding(
                f"host: threads that slept woke up {1000 * load.lag_s:.0f} ms late, so waits and delays were longer "
                f"than asked{trial.busy_text}",
                advice=trial.advice,
            )
    if load.busy >= BUSY_MIN and any(node.plan.cpus is None for node in trial.workers):
        text = f"the host's cores were busy for {share_text(load.busy)} of the training"
        yield Finding(f"{text}: nodes without a cap computed as fast as it let them", is_fault=False)


HOST_RULES: tuple[Rule, ...] = (starved, cap_held, cap_share, speed, memory, host)
