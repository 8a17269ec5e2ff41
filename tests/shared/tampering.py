"""Attacks on the conditions of a run that goes on in processes or containers, by somebody outside of it, as root.

Each changes something that the scenario asked for, or stops who looks, behind edgebed's back, for the rest of the
training and at one of three strengths. `ATTACKS` lists them, with the words of the verdict that name their cause.
"""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import psutil
from pyroute2 import IPRoute

from edgebed.emulation.namespaces import inside
from edgebed.emulation.resources import ROOT, cgroup_folders
from edgebed.runtimes.containers.engine import connect
from edgebed.runtimes.containers.labels import LABEL_RUN
from edgebed.runtimes.containers.leftovers import containers_with

BASE: dict[str, Any] = {
    "name": "tampered",
    "seed": 3,
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "method": "asgd",
    "evaluation": {"every": "7s"},
    "stop": {"time": "14s"},
    "deadlines": {"join": "180s"},
}
SCENARIOS: dict[str, dict[str, Any]] = {
    "caps": BASE | {"fleet": {"edge": {"count": 3, "cpus": 0.1, "memory": "400MiB"}}},
    "links": BASE | {"fleet": {"edge": {"count": 3, "uplink": "4mbit", "downlink": "4mbit"}}},
    "both": BASE
    | {"fleet": {"edge": {"count": 3, "cpus": 0.1, "memory": "400MiB", "uplink": "4mbit", "downlink": "4mbit"}}},
    "server": BASE
    | {
        "fleet": {"edge": {"count": 3, "cpus": 0.1, "uplink": "2mbit", "downlink": "4mbit"}},
        "server": {"uplink": "8mbit", "downlink": "3mbit"},
    },
    "waiting": BASE | {"fleet": {"edge": {"count": 3, "waiting": {"exponential": "50ms"}}}},
}
"""What is asked of the conditions, by name."""
RATE_BIT_S = 4_000_000
CAP = 0.1
VICTIM = "edge-1"


class Timex(ctypes.Structure):
    """What the system call `adjtimex` takes, struct timex of linux/timex.h."""

    _fields_ = (
        ("modes", ctypes.c_uint), ("until_status", ctypes.c_long * 4), ("status", ctypes.c_int),
        ("until_tick", ctypes.c_long * 5), ("tick", ctypes.c_long), ("rest", ctypes.c_char * 128),
    )  # fmt: skip


ADJ_TICK = 0x4000
TICK_US = 10_000


@dataclass(frozen=True)
class Trial:
    """A trial that trains, as somebody sees it who may do everything on this machine."""

    controller: int
    pids: dict[str, int]
    ended: threading.Event

    def goes_on(self, for_s: float = 0.0) -> bool:
        """Wait so long, and return whether it still trains."""
        return not self.ended.wait(for_s)

    def cgroup(self, node: str, controller: str) -> Path:
        """Return a node's own cgroup."""
        folders = cgroup_folders(self.pids[node], ROOT)
        return folders.get("", folders.get(controller, ROOT))

    @contextlib.contextmanager
    def link_of(self, node: str) -> Iterator[tuple[IPRoute, int]]:
        """Context with a node's interface, in its namespace."""
        with inside(namespace_of(self.pids[node])), IPRoute() as ip:
            yield ip, self._interface(node, ip)

    @contextlib.contextmanager
    def port_of(self, node: str) -> Iterator[tuple[IPRoute, int]]:
        """Context with the other end of a node's link, at the bridge."""
        with self.link_of(node) as (ip, index):
            (peer,) = (link.get("IFLA_LINK") for link in ip.get_links(index))
        with inside(self._bridge()), IPRoute() as ip:
            yield ip, peer

    def address(self, node: str) -> str:
        """Return a node's address on the data network."""
        with self.link_of(node) as (ip, index):
            (address,) = (each.get("IFA_ADDRESS") for each in ip.get_addr(index=index, family=socket.AF_INET))
        return str(address)

    def _interface(self, node: str, ip: IPRoute) -> int:
        """Return the index of a node's interface on the data network."""
        (index,) = ip.link_lookup(ifname="data")
        return int(index)

    def _bridge(self) -> str:
        """Return the namespace of the bridge: the process that holds all has it open."""
        (holder,) = (
            each for each in psutil.Process(self.controller).children(recursive=True)
            if "edgebed.emulation.switch" in each.cmdline()
        )  # fmt: skip
        for descriptor in Path(f"/proc/{holder.pid}/fd").iterdir():
            if str(descriptor.readlink()).startswith("net:"):
                with inside(str(descriptor)), IPRoute() as ip:
                    if ip.link_lookup(ifname="switch"):
                        return str(descriptor)
        raise AssertionError("nobody holds the bridge's namespace")


class InContainers(Trial):
    """A trial whose nodes are containers of this machine's engine."""

    @classmethod
    def of(cls, controller: int, run: str, ended: threading.Event) -> "InContainers":
        """Return the trial of this run, e.g. `tampered/0001`."""
        with engine() as client:
            found = [client.api.inspect_container(each["Id"]) for each in containers_with(client, f"{LABEL_RUN}={run}")]
        nodes = {each["Config"]["Labels"]["edgebed.node"]: each["State"]["Pid"] for each in found}
        return cls(controller, {node: pid for node, pid in nodes.items() if pid and node != "evaluator"}, ended)

    def _interface(self, node: str, ip: IPRoute) -> int:
        with inside(self._bridge()), IPRoute() as here:
            links = {link["index"]: link for link in here.get_links()}
        with engine() as client:
            networks = {f"br-{each['Id'][:12]}": each["Name"] for each in client.api.networks()}
        bridges = {index: networks.get(link.get("IFLA_IFNAME"), "") for index, link in links.items()}
        masters = {index: bridges.get(link.get("IFLA_MASTER"), "") for index, link in links.items()}
        (index,) = (
            link["index"] for link in ip.get_links() if masters.get(link.get("IFLA_LINK"), "").endswith("-data")
        )
        return int(index)

    def _bridge(self) -> str:
        """Return the namespace of the controller, which has the engine's bridges."""
        return f"/proc/{self.controller}/ns/net"


@contextlib.contextmanager
def engine() -> Iterator[docker.DockerClient]:
    """Context with this machine's engine."""
    client = connect()
    try:
        yield client
    finally:
        client.close()


def namespace_of(pid: int) -> str:
    """Return the network namespace of a node's data sockets: that of some thread which is not the host's."""
    host = Path("/proc/self/ns/net").stat().st_ino
    for thread in Path(f"/proc/{pid}/task").iterdir():
        if (thread / "ns/net").stat().st_ino != host:
            return str(thread / "ns/net")
    raise AssertionError(f"{pid} has no thread in a namespace of its own")


def slow_at_the_far_end(trial: Trial, share: float) -> None:
    """A token bucket at the bridge's ports: models come at a share of the rate that was asked."""
    for node in trial.pids:
        if node.startswith("edge"):
            with trial.port_of(node) as (ip, index):
                ip.tc("add", "tbf", index, 0x10000, rate=round(share * RATE_BIT_S / 8), burst=3200, limit=100_000)


def other_rate(trial: Trial, share: float, burst: int = 1600) -> None:
    """The node's own queue at another rate, or with another burst."""
    with trial.link_of(VICTIM) as (ip, index):
        (root,) = (each for each in ip.get_qdiscs(index) if each.get("TCA_KIND") == "tbf")
        ip.tc("change", "tbf", index, root["handle"], rate=round(share * RATE_BIT_S / 8), burst=burst, limit=100_000)


def other_rate_between_looks(trial: Trial, share: float) -> None:
    """Ten times the rate for a part of every two seconds, and the right one else."""
    while trial.goes_on(2.0 * (1.0 - share)):
        other_rate(trial, 10.0)
        trial.goes_on(2.0 * share)
        other_rate(trial, 1.0)


def larger_burst(trial: Trial, kilobytes: float) -> None:
    """More bytes at once than was asked."""
    other_rate(trial, 1.0, round(kilobytes * 1000))


def no_queue(trial: Trial, wait_s: float) -> None:
    """The node's queue is taken away after a while."""
    trial.goes_on(wait_s)
    with trial.link_of(VICTIM) as (ip, index):
        (root,) = (each for each in ip.get_qdiscs(index) if each.get("TCA_KIND") == "tbf")
        ip.tc("del", index=index, handle=root["handle"], parent=0xFFFFFFFF)


def other_mtu(trial: Trial, mtu: float) -> None:
    """The node's interface takes smaller packets."""
    with trial.link_of(VICTIM) as (ip, index):
        ip.link("set", index=index, mtu=round(mtu))


def other_mtu_at_the_far_end(trial: Trial, mtu: float) -> None:
    """The bridge's port takes smaller packets."""
    with trial.port_of(VICTIM) as (ip, index):
        ip.link("set", index=index, mtu=round(mtu))


def far_mtu_put_back(trial: Trial, for_s: float) -> None:
    """The bridge's port takes smaller packets for a while, and no look at the end shows it."""
    with trial.port_of(VICTIM) as (ip, index):
        ip.link("set", index=index, mtu=600)
        trial.goes_on(for_s)
        ip.link("set", index=index, mtu=1500)


def cable_out(trial: Trial, for_s: float) -> None:
    """The bridge's port is down for a while, again and again."""
    while trial.goes_on(2.0):
        with trial.port_of(VICTIM) as (ip, index):
            ip.link("set", index=index, state="down")
            trial.goes_on(for_s)
            ip.link("set", index=index, state="up")


def other_cap(trial: Trial, share: float) -> None:
    """The node's own CPU cap is another one."""
    write_quota(trial.cgroup(VICTIM, "cpu"), share * CAP)


def other_period(trial: Trial, period_s: float) -> None:
    """The node has its share of longer periods: it computes for longer at once, and rests for longer."""
    write_quota(trial.cgroup(VICTIM, "cpu"), CAP, round(period_s * 1e6))


def saved_for_bursts(trial: Trial, share: float) -> None:
    """What the node does not use of its cap it may use later."""
    folder, burst_us = trial.cgroup(VICTIM, "cpu"), round(share * CAP * 100_000)
    file = next(file for file in ("cpu.max.burst", "cpu.cfs_burst_us") if (folder / file).exists())
    (folder / file).write_text(str(burst_us))


def cap_that_alternates(trial: Trial, swing: float) -> None:
    """The cap is too high and too low in turn, right on the mean."""
    while trial.goes_on(1.5):
        other_cap(trial, 1.0 + swing)
        trial.goes_on(1.5)
        other_cap(trial, 1.0 - swing)


def parents_cap(trial: Trial, share: float) -> None:
    """A quota on the parent of all nodes: so much of what its children were promised."""
    with quotas_above(trial) as hold:
        hold(share * 3 * CAP)
        trial.ended.wait()


def parents_cap_on_off(trial: Trial, share: float) -> None:
    """One cap for all nodes together, for a part of every two seconds; a parent may have no less than a child."""
    with quotas_above(trial) as hold:
        while trial.goes_on(2.0 * (1.0 - share)):
            hold(CAP)
            trial.goes_on(2.0 * share)
            hold(None)


@contextlib.contextmanager
def quotas_above(trial: Trial) -> Iterator[Callable[[float | None], None]]:
    """Context with a way to hold the parent of all nodes to so many cores; the engine's stays, without a quota."""
    folder = trial.cgroup(VICTIM, "cpu").parent
    try:
        yield lambda cpus: write_quota(folder, cpus)
    finally:
        with contextlib.suppress(OSError):  # gone with the run
            write_quota(folder, None)


def write_quota(folder: Path, cpus: float | None, period_us: int = 100_000) -> None:
    """Hold a cgroup to so many cores, in periods no shorter than they are."""
    quota = "max" if cpus is None else str(max(1000, round(cpus * period_us)))
    if (folder / "cpu.max").exists():
        (folder / "cpu.max").write_text(f"{quota} {period_us}")
    else:
        (folder / "cpu.cfs_period_us").write_text(str(period_us))
        (folder / "cpu.cfs_quota_us").write_text("-1" if cpus is None else quota)


def stopped_in_bursts(trial: Trial, share: float) -> None:
    """A worker is stopped for a part of every 0.8 seconds."""
    in_bursts(trial, trial.pids[VICTIM], share)


def server_stopped_in_bursts(trial: Trial, share: float) -> None:
    """The server is stopped for a part of every 0.8 seconds."""
    in_bursts(trial, trial.pids["server"], share)


def in_bursts(trial: Trial, pid: int, share: float) -> None:
    """Stop and continue a process, in turn."""
    try:
        while trial.goes_on(0.8 * (1.0 - share)):
            os.kill(pid, signal.SIGSTOP)
            trial.goes_on(0.8 * share)
            os.kill(pid, signal.SIGCONT)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def stopped_once(trial: Trial, for_s: float) -> None:
    """A worker is stopped once, for some seconds."""
    os.kill(trial.pids[VICTIM], signal.SIGSTOP)
    trial.goes_on(for_s)
    os.kill(trial.pids[VICTIM], signal.SIGCONT)


def paused_in_bursts(trial: Trial, share: float) -> None:
    """The engine pauses a worker's container for a part of every two seconds."""
    with engine() as client:
        (found,) = containers_with(client, "edgebed.node=" + VICTIM)
        container = client.containers.get(found["Id"])
        while trial.goes_on(2.0 * (1.0 - share)):
            container.pause()
            trial.goes_on(2.0 * share)
            container.unpause()


def controller_stopped(trial: Trial, for_s: float) -> None:
    """Whoever looks at the host is stopped."""
    os.kill(trial.controller, signal.SIGSTOP)
    time.sleep(for_s)
    os.kill(trial.controller, signal.SIGCONT)


def small_flood(trial: Trial, packets_s: float) -> None:
    """A neighbour sends packets of one byte to the server."""
    flood(trial, "edge-0", "server", 1, packets_s)


def large_flood(trial: Trial, packets_s: float) -> None:
    """A neighbour sends full packets to the server."""
    flood(trial, "edge-0", "server", 1400, packets_s)


def small_flood_at_a_worker(trial: Trial, packets_s: float) -> None:
    """The server's namespace has somebody who sends packets of one byte to a worker."""
    flood(trial, "server", VICTIM, 1, packets_s)


def large_flood_at_a_worker(trial: Trial, packets_s: float) -> None:
    """The server's namespace has somebody who sends full packets to a worker."""
    flood(trial, "server", VICTIM, 1400, packets_s)


def flood(trial: Trial, source: str, target: str, size: int, packets_s: float) -> None:
    """Send packets to a port at which nobody listens, as many as are due at a time."""
    address = trial.address(target)
    with inside(namespace_of(trial.pids[source])):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sender:
        sent, since_s = 0, time.monotonic()
        while trial.goes_on(0.01):
            due = int(packets_s * (time.monotonic() - since_s))
            for _ in range(due - sent):
                with contextlib.suppress(OSError):
                    sender.sendto(bytes(size), (address, 9))
            sent = due


def busy_host(trial: Trial, programs: float) -> None:
    """Other programs compute all the time."""
    beside(trial, round(programs))


def busy_host_that_comes_first(trial: Trial, programs: float) -> None:
    """Other programs compute all the time, and come first."""
    beside(trial, round(programs), "chrt", "--fifo", "1")


def beside(trial: Trial, programs: int, *how: str) -> None:
    """Have so many programs compute until the training is over."""
    started = [subprocess.Popen([*how, sys.executable, "-c", "while True: pass"]) for _ in range(programs)]
    try:
        while trial.goes_on(0.5):
            pass
    finally:
        for each in started:
            each.kill()
            each.wait()


def last_in_the_queue(trial: Trial, niceness: float) -> None:
    """The nodes come last, beside six programs that compute; a container's come last among themselves alone."""
    for pid in trial.pids.values():
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(thread.name), round(niceness))
    beside(trial, 6)


def one_core_for_all(trial: Trial, programs: float) -> None:
    """All nodes are bound to one core, with some programs beside them."""
    for pid in trial.pids.values():
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), {0})
    beside(trial, round(programs), "taskset", "--cpu-list", "0")


def slewed_clock(trial: Trial, share: float) -> None:
    """The host's clock runs so much too fast, as after a pause of the machine; its date is put right again."""
    date_s, counter_s = time.time(), time.clock_gettime(time.CLOCK_MONOTONIC_RAW)
    try:
        set_tick(round((1.0 + share) * TICK_US))
        trial.ended.wait()
    finally:
        set_tick(TICK_US)
        time.clock_settime(time.CLOCK_REALTIME, date_s + time.clock_gettime(time.CLOCK_MONOTONIC_RAW) - counter_s)


def set_tick(tick_us: int) -> None:
    """Have the kernel add so much to its clocks for each hundredth of a second."""
    setting = Timex(modes=ADJ_TICK, tick=tick_us)
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(setting)) < 0:
        raise OSError(ctypes.get_errno(), "adjtimex")


def killed(trial: Trial, after_s: float) -> None:
    """A worker is killed."""
    trial.goes_on(after_s)
    os.kill(trial.pids[VICTIM], signal.SIGKILL)


def more_memory(trial: Trial, factor: float) -> None:
    """The node's memory cap is another one."""
    folder, size = trial.cgroup(VICTIM, "memory"), round(factor * 400 * 2**20)
    if (folder / "memory.max").exists():
        (folder / "memory.max").write_text(str(size))
    else:
        for file in ("memory.memsw.limit_in_bytes", "memory.limit_in_bytes"):
            (folder / file).write_text(str(size))


@dataclass(frozen=True)
class Attack:
    """What is done, to a run of which scenario, and how strongly; the first strength is the weakest."""

    act: Callable[[Trial, float], None]
    scenario: str
    strengths: tuple[float, float, float]
    causes: tuple[str, ...]
    """Beginnings of the verdict's reasons, one of which has to be there."""
    runtimes: tuple[str, ...] = ("process", "docker")

    @property
    def name(self) -> str:
        """The attack in a word, with what it was done to."""
        return f"{self.act.__name__}-{self.scenario}"


ATTACKS: tuple[Attack, ...] = (
    Attack(slow_at_the_far_end, "both", (0.7, 0.4, 0.1), ("link",)),
    Attack(slow_at_the_far_end, "links", (0.7, 0.4, 0.1), ("link",)),
    Attack(other_rate, "links", (0.7, 2.0, 10.0), ("link",)),
    Attack(other_rate, "both", (0.7, 0.4, 0.1), ("link",)),
    Attack(other_rate_between_looks, "links", (0.2, 0.4, 0.6), ("link",)),
    Attack(larger_burst, "links", (5, 20, 60), ("link",)),
    Attack(no_queue, "links", (0.0, 3.0, 6.0), ("link",)),
    Attack(other_mtu, "both", (1200, 800, 400), ("link",)),
    Attack(other_mtu_at_the_far_end, "both", (1200, 800, 400), ("link",)),
    Attack(far_mtu_put_back, "both", (2.0, 4.0, 8.0), ("link",)),
    Attack(cable_out, "links", (0.5, 1.0, 3.0), ("link",)),
    Attack(other_cap, "caps", (1.3, 2.0, 5.0), ("CPU cap",)),
    Attack(other_cap, "both", (0.7, 0.5, 0.2), ("CPU cap",)),
    Attack(cap_that_alternates, "caps", (0.3, 0.6, 0.9), ("CPU cap",)),
    Attack(other_period, "caps", (0.2, 0.5, 1.0), ("CPU cap",)),
    Attack(saved_for_bursts, "caps", (0.2, 0.5, 1.0), ("CPU cap",)),
    Attack(parents_cap, "caps", (0.7, 0.5, 0.35), ("CPU cap", "host CPU")),
    Attack(parents_cap_on_off, "caps", (0.3, 0.5, 0.7), ("CPU cap", "host CPU")),
    Attack(stopped_in_bursts, "caps", (0.2, 0.5, 0.8), ("stopped",)),
    Attack(stopped_in_bursts, "waiting", (0.2, 0.5, 0.8), ("stopped",)),
    Attack(paused_in_bursts, "caps", (0.2, 0.5, 0.8), ("stopped",), ("docker",)),
    Attack(stopped_once, "links", (3.0, 5.0, 8.0), ("stopped",)),
    Attack(server_stopped_in_bursts, "links", (0.2, 0.5, 0.8), ("stopped",)),
    Attack(controller_stopped, "caps", (4.0, 8.0, 12.0), ("host", "not observed")),
    Attack(small_flood, "server", (2000, 5000, 10_000), ("foreign traffic",)),
    Attack(large_flood, "server", (30, 100, 500), ("foreign traffic",)),
    Attack(small_flood_at_a_worker, "links", (2000, 5000, 10_000), ("foreign traffic",)),
    Attack(large_flood_at_a_worker, "links", (30, 100, 500), ("foreign traffic",)),
    Attack(busy_host, "caps", (20, 25, 30), ("host",)),
    Attack(busy_host, "waiting", (20, 25, 30), ("host",)),
    Attack(busy_host_that_comes_first, "caps", (2, 3, 4), ("host",)),
    Attack(last_in_the_queue, "waiting", (10, 15, 19), ("host",), ("process",)),
    Attack(one_core_for_all, "waiting", (6, 10, 15), ("host",), ("process",)),
    Attack(slewed_clock, "waiting", (0.02, 0.05, 0.1), ("host: its clock",)),
    Attack(killed, "links", (0.0, 3.0, 6.0), ("deaths",)),
    Attack(more_memory, "caps", (1.5, 2.0, 4.0), ("memory",)),
)
