"""What a node measures of itself: the arithmetic of a window, and real processes that starve or are capped."""

import json
import math
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from cgroup_trees import MIB, version_1, version_2
from hypothesis import given
from hypothesis import strategies as st
from node_plans import plan_of_role

from edgebed.core import records
from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.link import LinkPlan
from edgebed.emulation.cgroups import Cgroups
from edgebed.emulation.netlink import BadAnswerError, Queue
from edgebed.emulation.witness.usage import LinkReading, Reading, add_window
from edgebed.journal.verdict.presence import Incarnation, Span
from edgebed.runtimes.live.meters import UsageMeter
from edgebed.runtimes.live.shell.device import NodeDevice
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.wire.messages import Stop

MBIT = 1_000_000
NOTHING = records.Usage(time_s=0.0, cpu_s=0.0)


def plan_of(name="edge-0", role="worker", **asked):
    """A node."""
    return plan_of_role(node=name, role=role, device_class="edge", **asked)


END = Stop(sender="controller", reason="enough")


def usage_meter(life, reader=None, **asked):
    """A node's own, by its plan."""
    plan = plan_of(**asked)
    return UsageMeter(plan, NodeDevice(plan), life, link=reader)


def reading(t, cpu_s=0.0, waited_s=0.0, absorbed_s=0.0, throttled_s=None, throttled_periods=0):
    """A look."""
    return Reading(t, cpu_s, waited_s, absorbed_s, throttled_s, throttled_periods)


def window(plan, **after):
    """A second from nothing."""
    before = reading(0.0, throttled_s=None if after.get("throttled_s") is None else 0.0)
    return add_window(NOTHING, plan.cpus, before, reading(1.0, **after))


@pytest.mark.parametrize(
    ("asked", "after", "starved_s"),
    [
        ({}, {"cpu_s": 0.5, "waited_s": 0.5}, 0.5),
        ({"cpus": 1.0}, {"cpu_s": 0.5, "waited_s": 0.5}, 0.5),
        ({"cpus": 0.5}, {"cpu_s": 0.5, "waited_s": 0.3}, 0.0),
        ({"cpus": 0.5}, {"cpu_s": 0.4, "waited_s": 0.6}, 0.2),
        ({"cpus": 2.0}, {"cpu_s": 1.6, "waited_s": 0.6}, 0.4),
        ({"cpus": 0.5}, {"cpu_s": 0.2, "waited_s": 0.6, "throttled_s": 0.5}, 0.1),
        ({"compute_speed": 0.5}, {"cpu_s": 0.4, "waited_s": 0.5, "absorbed_s": 0.4}, 0.1),
        ({}, {"cpu_s": 0.5, "waited_s": 3.0}, 1.0),
        ({}, {"cpu_s": 0.5, "waited_s": None}, None),
    ],
    ids=[
        "uncapped",
        "capped",
        "had its cap",
        "had most of it",
        "had most of two",
        "throttled",
        "paced",
        "many threads",
        "no count",
    ],
)
def test_starving_is_waiting_that_a_node_was_entitled_not_to_do(asked, after, starved_s):
    """Not what its own cap or pace explains, and never more than the time that passed."""
    found = window(plan_of(**asked), **after).starved_s

    assert found == (starved_s if starved_s is None else pytest.approx(starved_s))


@pytest.mark.parametrize(("periods", "capped_s"), [(8, 0.0), (9, 1.0), (10, 1.0)])
def test_a_window_is_capped_where_nine_of_ten_periods_were_throttled(periods, capped_s):
    """The node would have computed on and on."""
    usage = window(plan_of(cpus=0.5), cpu_s=0.5, throttled_s=0.5, throttled_periods=periods)

    assert (usage.capped_s, usage.capped_cpu_s) == (capped_s, 0.5 * capped_s)
    assert (usage.capped_allowed_s, usage.allowed_s) == (0.5 * capped_s, 0.5)


def test_a_window_in_which_a_cap_changed_is_no_measure_of_one():
    """It may have had the greater one for all of it; without a cap, what it had was allowed."""
    look = {"cpu_s": 0.4, "throttled_s": 0.5, "throttled_periods": 10}
    changed = add_window(NOTHING, 0.5, reading(0.0, throttled_s=0.0), reading(1.0, **look), is_steady=False)

    assert (changed.capped_s, changed.capped_allowed_s, changed.allowed_s) == (0.0, 0.0, 0.5)
    assert window(plan_of(), **look).allowed_s == 0.4


@given(
    looks=st.lists(st.tuples(*[st.floats(0.001, 5.0)] * 5, st.integers(0, 50)), min_size=2, max_size=20),
    cpus=st.none() | st.floats(0.01, 4.0),
)
def test_usage_only_grows_and_nobody_starves_longer_than_it_ran(looks, cpus):
    """Whatever the kernel counts."""
    plan, usage, before = plan_of(cpus=cpus), NOTHING, reading(0.0, throttled_s=0.0)
    for look in looks:
        after = Reading(*(old + new for old, new in zip(before, look, strict=True)))
        grown = add_window(usage, plan.cpus, before, after)
        for name in ("time_s", "cpu_s", "starved_s", "throttled_s", "capped_s", "capped_cpu_s", "allowed_s"):
            assert getattr(grown, name) >= (getattr(usage, name) or 0.0)
        usage, before = grown, after

    assert usage.starved_s <= usage.time_s + 1e-4


def test_usage_comes_whenever_a_tenth_was_added_and_at_the_end():
    """Before training there is nothing to say; the first look is where it counts from; ten seconds are the most."""
    life = Lifetime(0)
    meter = usage_meter(life)
    said = {t: list(meter.read(float(t), None if t < 3 else 2.5)) for t in range(200)}
    life.stop = END
    said[200] = list(meter.read(200.0, 2.5))
    times_s = [found[0].time_s for found in said.values() if found]

    assert times_s[:12] == [*map(float, range(1, 11)), 11.0, 12.0]
    assert all(after - before <= max(1.0, 0.1 * before + 0.5) for before, after in pairwise(times_s))
    assert times_s[-1] == 197.0
    assert len(times_s) < 50
    assert said[200][0].memory_bytes > 1_000_000


def test_of_a_node_that_is_killed_all_is_told_but_what_is_not_owed():
    """Whenever it was: the verdict asks for no more than the node could tell."""
    meter = usage_meter(Lifetime(0))
    told_s = 0.0
    for life_s in range(1, 400):
        told_s = max([told_s, *(each.time_s for each in meter.read(life_s - 1.0, 0.0))])

        assert life_s < 3 or told_s >= Incarnation(Span(0.0, float(life_s)), reported=False).owed.length_s


@dataclass
class Interface:
    """Counters of an interface that receives a megabyte a second, and the queue behind it, by a clock of its own."""

    t: float = 0.0
    error: Exception | None = None
    late_s: float = 0.0
    mtu: int = 1500
    dropped_bytes_a_second: int = 0
    anew_s: float = math.inf
    """When the queue is set anew, and counts from 0."""

    def bytes(self):
        """Received and sent; whoever asked is told late."""
        if self.error:
            raise self.error
        received = int(self.t * 1_000_000)
        self.t += self.late_s
        return received, 0

    def queues(self):
        """Of what has arrived 10 packets were dropped, and 5000 bytes wait."""
        since_s = self.anew_s if self.t >= self.anew_s else 0.0
        passed = round((1_000_000 - self.dropped_bytes_a_second) * (self.t - since_s))
        return None, Queue(rate_bit_s=8 * MBIT, packets=90, drops=10, bytes=passed, waiting_bytes=5000)


def usage_of(interface, seconds, late=()):
    """What a meter says of an interface at the end of its looks."""
    life = Lifetime(0)
    life.now = lambda: interface.t
    meter = usage_meter(life, interface, link=LinkPlan(downlink_bit_s=8 * MBIT))
    for second in range(seconds):
        interface.t = float(second)
        interface.late_s = 0.9 if second in late else 0.0
        life.stop = END if second == seconds - 1 else None
        found = list(meter.read(interface.t, 0.0))
    return found[-1]


def test_usage_has_the_interfaces_own_bytes_and_the_queues_packets():
    """What arrived at the interface, whatever becomes of it then."""
    usage = usage_of(Interface(), 21)

    assert (usage.downlink_bytes, usage.downlink_packets, usage.downlink_drops) == (20_000_000, 0, 0)
    assert (usage.downlink_busiest, usage.downlink_busiest_bit_s) == (pytest.approx(1.0, rel=1e-3), 8 * MBIT)
    assert (usage.uplink_bytes, usage.uplink_packets, usage.uplink_busiest) == (0, None, None)


def test_looks_that_come_late_make_no_link_busier():
    """The counters are of some moment until the clock was read again."""
    assert usage_of(Interface(), 30, late=(4, 10, 16, 22)).downlink_busiest <= 1.0


@pytest.mark.parametrize("seconds", [20, 21])
def test_what_a_queue_drops_counts_by_its_bytes(seconds):
    """Of tiny packets, or of large ones: what passed is what came out of the queue."""
    usage = usage_of(Interface(dropped_bytes_a_second=400_000), seconds)

    assert usage.downlink_busiest == pytest.approx(0.6, rel=1e-3)
    assert usage.downlink_dropped_bytes == 400_000 * (seconds - 1)
    assert msgspec.json.decode(msgspec.json.encode(usage), type=records.Usage) == usage


@pytest.mark.parametrize("version", [version_1, version_2])
def test_a_node_looks_at_its_caps_all_the_time(version, tmp_path):
    """Who changes one for a while, and puts it back before the end, is found; a fault changes what is to be held."""
    plan, life = plan_of(cpus=0.1, memory_bytes=400 * MIB), Lifetime(0)
    version(tmp_path)
    meter = UsageMeter(plan, device := NodeDevice(plan), life, own_cgroup=True, root=tmp_path)
    told = []
    for second in range(11):
        if second in (3, 9):
            version(tmp_path, quota="30000")
        if second == 6:
            version(tmp_path)
        device.cap(0.3 if second >= 9 else None)
        life.stop = END if second == 10 else None
        told += meter.read(float(second), 0.0)

    assert (told[-1].cpus_held, told[-1].differed) == (0.3, 2)
    assert told[-1].differences == ("CPU cap: its cgroup held 0.3 cores, where 0.1 cores had been set",)


def test_a_queue_that_is_set_anew_has_dropped_nothing_meanwhile():
    """It counts from 0 again; the record can be read, and with it all that the node reports beside it."""
    usage = usage_of(Interface(dropped_bytes_a_second=400_000, anew_s=9.0), 21)

    assert 0 < usage.downlink_dropped_bytes < 400_000 * 20
    assert msgspec.json.decode(msgspec.json.encode(usage), type=records.Usage) == usage


@pytest.mark.parametrize("error", [OSError(19, "No such device"), BadAnswerError("3 bytes")])
def test_a_kernel_that_does_not_answer_leaves_the_link_unmeasured(error):
    """And the node goes on."""
    assert usage_of(Interface(error=error), 5).downlink_bytes is None


def test_what_waits_or_was_dropped_before_the_node_has_not_passed():
    """An interface counts what arrives; the queue is behind it, and counts what it lets through."""
    queue = Queue(rate_bit_s=8 * MBIT, bytes=96_000, drops=2, waiting_bytes=1000)

    assert LinkReading(0.0, 0.0, 100_000, 7, None, queue).passed == (7, 96_000)
    assert LinkReading(0.0, 0.0, 100_000, 7, None, None).passed == (7, 100_000)


HOG = textwrap.dedent(
    """
    import json, sys, time
    from types import SimpleNamespace
    import msgspec
    from edgebed.emulation.cgroups import enter
    from edgebed.runtimes.live.meters import UsageMeter
    from edgebed.runtimes.live.shell.device import NodeDevice
    from edgebed.runtimes.live.shell.lifetime import Lifetime
    from edgebed.core.planned.link import LinkPlan
    from edgebed.wire.messages import Stop
    enter(sys.argv[2:])
    plan = SimpleNamespace(node="hog", core=None, cpus=json.loads(sys.argv[1]), memory_bytes=None, link=LinkPlan())
    life = Lifetime(0)
    meter = UsageMeter(plan, NodeDevice(plan), life, own_cgroup=len(sys.argv) > 2)
    sys.stdin.readline()
    began = until = time.monotonic()
    list(meter.read(began, 0.0))
    while until < began + 4.0:
        until += 1.0
        while time.monotonic() < until:
            pass
        if until >= began + 4.0:
            life.stop = Stop(sender="controller", reason="enough")
        found = list(meter.read(time.monotonic(), 0.0))
    print(msgspec.json.encode(found[-1]).decode())
    """
)


def hogs(cpus, folders):
    """What that many processes that compute for four seconds say of themselves, begun together."""
    started = []
    for each in folders:
        command = [sys.executable, "-c", HOG, json.dumps(cpus), *each]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    try:
        for process in started:
            process.stdin.write("\n")
            process.stdin.flush()
        return [json.loads(process.communicate(timeout=60)[0]) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.fixture
def cgroups():
    """Where this kernel and these rights allow."""
    try:
        made = Cgroups()
    except InfrastructureError as error:
        pytest.skip(str(error))
    yield made
    made.remove()


def put_first(folders):
    """Give cgroups, and those that they are in, the greatest weight, so that nothing else on this machine matters."""
    for folder in map(Path, folders):
        for each in (folder, folder.parent):
            for name, most in (("cpu.shares", "262144"), ("cpu.weight", "10000")):
                if (each / name).exists():
                    (each / name).write_text(most)


@pytest.mark.slow
def test_a_capped_hog_is_throttled_and_starves_far_less_than_that(cgroups):
    """A quota of a fifth of a core: it has that, and what it waits for is its cap."""
    folders = cgroups.make(plan_of(cpus=0.2))
    put_first(folders)
    (usage,) = hogs(0.2, [folders])

    assert usage["cpus_held"] == 0.2
    assert usage["throttled_s"] > 0.6 * usage["time_s"]
    assert usage["starved_s"] < 0.05 * usage["time_s"]
    assert usage["capped_s"] > 0.0
    assert usage["capped_cpu_s"] / usage["capped_s"] == pytest.approx(0.2, rel=0.2)
    assert usage["memory_bytes"] > 0


@pytest.mark.slow
def test_hogs_that_were_promised_more_cores_than_there_are_starve():
    """Twice as many as cores, without a cgroup: on the mean they wait at least for half of the time."""
    count = 2 * len(os.sched_getaffinity(0))
    found = hogs(1.0, [()] * count)

    assert sum(usage["starved_s"] for usage in found) / sum(usage["time_s"] for usage in found) > 0.4
    assert not any("throttled_s" in usage for usage in found)
