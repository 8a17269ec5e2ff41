"""The machines during training, each by its own records: how busy, how late, and what passed their networks. Pure.

Where there is one machine alone it has no name. Where there are several, whose nodes talk over the network between
them (the underlay of an overlay network), each has its probe, and what no probe told is not known of that machine.
"""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from edgebed.core.recorded.measured import HOST_LOAD_S, HostLoad
from edgebed.emulation.witness.busiest import WINDOWS_MIN
from edgebed.journal.series import Series


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
    slew: float | None = None
    """Mean share by which the clock ran fast or slow against the hardware's counter; None: not measured."""
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
    """The machines during training, by name; none where nobody observed them, as in the simulation.

    A record is about the two seconds before it; what is about the time after training, as of a final evaluation, is not
    looked at.
    """
    found, until_s = {}, (series.trained_s or math.inf) + HOST_LOAD_S / 2
    for host, told in sorted(series.hosts.items()):
        in_training = [load for t, load in told if t <= until_s]
        found[host] = _conditions(host, in_training or [load for _, load in told[:1]])
    return found


def _conditions(host: str, loads: Sequence[HostLoad]) -> HostConditions:
    return HostConditions(
        host=host,
        busy=float(np.mean([load.busy for load in loads])),
        steal=float(np.mean([load.steal for load in loads])),
        load=float(np.mean([load.load for load in loads])),
        lag_s=float(np.median([load.lag_s for load in loads])),
        slew=_mean_slew(loads),
        cores=loads[-1].cores,
        network_bit_s=_busiest_bit_s(loads),
        network_rate_bit_s=loads[-1].rate_bit_s,
    )


def _mean_slew(loads: Sequence[HostLoad]) -> float | None:
    """The mean size of the shares by which the clock ran fast or slow."""
    slews = [abs(load.slew) for load in loads if load.slew is not None]
    return float(np.mean(slews)) if slews else None


def _busiest_bit_s(loads: Sequence[HostLoad]) -> float | None:
    """The highest mean rate of WINDOWS_MIN records in a row, of the busier direction: less may be chance."""
    passed = [(load.received_bytes_s, load.sent_bytes_s) for load in loads if load.received_bytes_s is not None]
    if len(passed) < WINDOWS_MIN:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(np.array(passed, dtype=np.float64), WINDOWS_MIN, axis=0)
    return round(8 * float(windows.mean(axis=-1).max()))
