"""The machines during training, each by its own records: how busy, how late, and what passed their networks. Pure.

Where there is one machine alone it has no name. Where there are several, whose nodes talk over the network between
them (the underlay of an overlay network), each has its probe, and what no probe told is not known of that machine.
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from edgebed.core.plan import Plan
from edgebed.core.recorded.measured import HOST_LOAD_S, HostLoad
from edgebed.journal.series import Series
from edgebed.journal.verdict.busiest import WINDOWS_MIN

UNOBSERVED_MIN_S = 10.0
"""Seconds without any record of a host that count: five of its records, or a container that starts slowly."""
PRESENT = ("joined", "ready", "running")
"""States of a node whose conditions matter."""


class HostConditions(msgspec.Struct, frozen=True, kw_only=True):
    """A machine during training."""

    host: str = ""
    """The machine's name among several; empty: there is one alone."""
    busy: float
    """Mean share of all cores' time in use."""
    steal: float
    """Mean share of the cores' time that the machine under this one took away."""
    load: float
    """Mean number of threads, per core, that run or wait for a core."""
    lag_s: float
    """Seconds by which a sleeping thread woke up late: the median of what 99 % stayed below in two seconds."""
    cores: int = 0
    """Number of cores; 0: unknown."""
    network_bit_s: float | None = None
    """What passed the interface to the other hosts, in the busier direction: the highest mean of some windows in a row.
    None: there is none, or training was too short."""
    network_rate_bit_s: int = 0
    """The rate of that interface; 0: unknown."""

    @property
    def network_share(self) -> float | None:
        """The share of its rate that passed that interface; None: not known."""
        if self.network_bit_s is None or not self.network_rate_bit_s:
            return None
        return self.network_bit_s / self.network_rate_bit_s


def hosts_of(series: Series) -> dict[str, HostConditions]:
    """The machines during training, by name; none where nobody observed them, as in the simulation."""
    return {host: _conditions(host, [load for _, load in told]) for host, told in sorted(series.hosts.items())}


def _conditions(host: str, loads: Sequence[HostLoad]) -> HostConditions:
    return HostConditions(
        host=host,
        busy=float(np.mean([load.busy for load in loads])),
        steal=float(np.mean([load.steal for load in loads])),
        load=float(np.mean([load.load for load in loads])),
        lag_s=float(np.median([load.lag_s for load in loads])),
        cores=loads[-1].cores,
        network_bit_s=_busiest_bit_s(loads),
        network_rate_bit_s=loads[-1].rate_bit_s,
    )


def _busiest_bit_s(loads: Sequence[HostLoad]) -> float | None:
    """The highest mean rate of WINDOWS_MIN records in a row, of the busier direction: less may be chance."""
    passed = [(load.received_bytes_s, load.sent_bytes_s) for load in loads if load.received_bytes_s is not None]
    if len(passed) < WINDOWS_MIN:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(np.array(passed, dtype=np.float64), WINDOWS_MIN, axis=0)
    return round(8 * float(windows.mean(axis=-1).max()))


def unobserved_s(plan: Plan, series: Series) -> dict[str, float]:
    """For each of several hosts, the seconds of training for which nobody said how busy it was; without the others.

    A host matters while nodes are there: where all were gone, killed with it or cut off, it is not missed.
    """
    found: dict[str, float] = {}
    if series.hosts.keys() == {""}:  # all nodes are on this machine, wherever they were to be
        return found
    for host in sorted({node.host for node in plan.nodes if node.host and node.role != "evaluator"}):
        presences = list(_present(host, plan, series))
        gaps_s = sum(_overlap_s(gap, presence) for gap in _gaps(host, series) for presence in presences)
        if gaps_s > UNOBSERVED_MIN_S:
            found[host] = gaps_s
    return found


def _gaps(host: str, series: Series) -> Iterator[tuple[float, float]]:
    """Times between which a host's records are missing."""
    told_s = [t for t, _ in series.hosts.get(host, ()) if t < series.trained_s]
    ends_s = [*(t - HOST_LOAD_S for t in told_s), series.trained_s]
    for since_s, until_s in zip([0.0, *told_s], ends_s, strict=True):
        if until_s - since_s > UNOBSERVED_MIN_S:
            yield since_s, until_s


def _present(host: str, plan: Plan, series: Series) -> Iterator[tuple[float, float]]:
    """Times between which a node of a host took part."""
    nodes = {node.node for node in plan.nodes if node.host == host and node.role != "evaluator"}
    there: set[str] = set()
    since_s = 0.0
    for t, node in series.nodes:
        if node.name not in nodes:
            continue
        were_there = bool(there)
        (there.add if node.state in PRESENT else there.discard)(node.name)
        if there and not were_there:
            since_s = t
        elif were_there and not there:
            yield since_s, t
    if there:
        yield since_s, series.trained_s


def _overlap_s(one: tuple[float, float], other: tuple[float, float]) -> float:
    return max(0.0, min(one[1], other[1]) - max(one[0], other[0]))
