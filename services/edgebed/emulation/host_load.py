"""How busy a whole machine is while a trial trains: the probe of live runtimes.

A thread sleeps a short while and looks how late it wakes up: that is how late the emulation's own timers are; and how
many others run or wait for a core then. Every two seconds it adds what the kernel says of all cores (psutil), and of
the interface to other hosts where there are several. It costs less than a hundredth of a core.

As a program it prints a record each two seconds, a JSON line each, until its standard input closes:

    python -m edgebed.emulation.host_load 10.0.0.2        the machine's address among the others, if any
"""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np
import psutil

from edgebed.core.errors import InfrastructureError
from edgebed.core.patience import load_average
from edgebed.core.recorded.measured import HOST_LOAD_S, HostLoad
from edgebed.emulation.netlink import LinkReader

SLEEP_S = 0.025
LAG_QUANTILE = 0.99
"""File of the kernel's means over minutes, and of what is no mean: how many threads can run now."""
INTERFACES = Path("/sys/class/net")
MBIT = 1_000_000


class HostProbe:
    """A running probe of this machine; `close` ends it."""

    def __init__(self) -> None:
        self._found: deque[tuple[int, HostLoad]] = deque()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="host-load", daemon=True)
        self._thread.start()

    def take(self) -> Iterator[tuple[int, HostLoad]]:
        """Yield what was found since the last call: (the machine's monotonic clock in ns, load until then)."""
        while self._found:
            yield self._found.popleft()

    def close(self) -> None:
        """End the probe; what it has found meanwhile can still be taken."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            if load := look(self._ended):
                self._found.append((time.monotonic_ns(), load))


class Network:
    """The interface to other hosts, which has this machine's address among them."""

    def __init__(self, address: str) -> None:
        """Raise InfrastructureError where no interface has the address."""
        self._reader = LinkReader(address)
        self.rate_bit_s = interface_rate_bit_s(INTERFACES / self._reader.interface)

    def bytes(self) -> tuple[int, int]:
        """Bytes received and sent so far. Raises OSError if the interface is gone."""
        return self._reader.bytes()


def interface_rate_bit_s(interface: Path) -> int:
    """The rate that the kernel tells of an interface in sysfs; 0: unknown, as of a virtual machine's."""
    try:
        return max(0, int((interface / "speed").read_text())) * MBIT
    except (OSError, ValueError):
        return 0


def look(ended: threading.Event, network: Network | None = None) -> HostLoad | None:
    """Look at the machine for HOST_LOAD_S, or until `ended`; None where there was no time, or a look failed."""
    try:
        return _look(ended, network)
    except OSError:  # the kernel's files cannot be opened at present: this look is missing
        ended.wait(HOST_LOAD_S)
        return None


def _look(ended: threading.Event, network: Network | None) -> HostLoad | None:
    before, passed_before = psutil.cpu_times()._asdict(), network.bytes() if network else (0, 0)
    lags_s: list[float] = []
    runnable: list[int] = []
    since_s, since_raw_s = time.monotonic(), _raw_s()
    while not ended.is_set() and time.monotonic() < since_s + HOST_LOAD_S:
        asked_s = time.monotonic() + SLEEP_S
        time.sleep(SLEEP_S)
        lags_s.append(time.monotonic() - asked_s)
        runnable.append(count_runnable())
    if not lags_s:
        return None
    load = host_load(before, psutil.cpu_times()._asdict(), lags_s, runnable)
    took_s = time.monotonic() - since_s
    load = msgspec.structs.replace(load, slew=round(took_s / (_raw_s() - since_raw_s) - 1.0, 5))
    if network is None:
        return load
    passed = network.bytes()
    received, sent = (round((after - first) / took_s, 1) for first, after in zip(passed_before, passed, strict=True))
    return msgspec.structs.replace(
        load, received_bytes_s=max(0.0, received), sent_bytes_s=max(0.0, sent), rate_bit_s=network.rate_bit_s
    )


def _raw_s() -> float:
    """The hardware's counter in seconds, which no time service slews, as it does the monotonic clock."""
    return time.clock_gettime(time.CLOCK_MONOTONIC_RAW)


def count_runnable() -> int:
    """Count the threads of the whole machine that run or wait for a core at this moment, without the one that asks."""
    _, now = load_average()
    return max(0, now - 1)


def host_load(
    before: Mapping[str, float], after: Mapping[str, float], lags_s: Sequence[float], runnable: Sequence[int]
) -> HostLoad:
    """The record of a time between two readings of what all cores have spent, in seconds, as psutil names it.

    `lags_s` and `runnable` were found at every waking up between the two.
    """
    grown = {name: after[name] - before[name] for name in after}
    steal_s = grown.get("steal", 0.0)
    # the kernel counts guests' time in user and nice as well
    total_s = sum(grown.values()) - grown.get("guest", 0.0) - grown.get("guest_nice", 0.0)
    idle_s = grown["idle"] + grown.get("iowait", 0.0)
    cores = psutil.cpu_count() or 1
    return HostLoad(
        busy=_share(total_s - idle_s - steal_s, total_s),
        steal=_share(steal_s, total_s),
        load=round(float(np.mean(runnable)) / cores, 3),
        lag_s=round(float(np.quantile(lags_s, LAG_QUANTILE)), 6),
        cores=cores,
    )


def _share(part: float, whole: float) -> float:
    return round(min(1.0, max(0.0, part / whole)), 4) if whole > 0.0 else 0.0


def main() -> None:
    """Print records of this machine until standard input closes, or nobody reads them."""
    ended = threading.Event()
    threading.Thread(target=_wait_for_end, args=(ended,), daemon=True).start()
    network = None
    with suppress(InfrastructureError):  # no interface has the address, as behind a router: cores are told all the same
        network = Network(sys.argv[1]) if sys.argv[1:] else None
    with suppress(BrokenPipeError):
        while not ended.is_set():
            if load := look(ended, network):
                os.write(1, msgspec.json.encode(load) + b"\n")


def _wait_for_end(ended: threading.Event) -> None:
    while os.read(0, 4096):
        pass
    ended.set()


if __name__ == "__main__":
    main()
