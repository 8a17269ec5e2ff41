"""Asked against held: when a node speaks of its link, and in what words."""

import math
from dataclasses import dataclass, field

import msgspec
import pytest

from edgebed.core.framing import burst_bytes
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.emulation import readback
from edgebed.emulation.conditions import EffectiveLink, LinkSchedule, LinkState
from edgebed.emulation.netlink import BadAnswerError, Queue
from edgebed.emulation.readback import ChangedLink, LinkMeter, StatedLink, around, deviation

MBIT = 1_000_000


def queue(rate_bit_s: int, **other: float) -> Queue:
    """As the kernel holds a rate."""
    return Queue(rate_bit_s=rate_bit_s, burst_bytes=burst_bytes(rate_bit_s), **other)


@dataclass
class Kernel:
    """What a reader finds."""

    up: Queue | None = None
    down: Queue | None = None
    interface: str = "eth7"
    mtu: int = 1500
    error: Exception | None = field(default=None)
    now: int | None = None
    """The MTU by now, if it was changed."""
    apart: set[str] = field(default_factory=set)

    def mtu_now(self) -> int:
        """The interface's."""
        return self.now or self.mtu

    def barred(self) -> set[str]:
        """Neighbours that nothing reaches."""
        return self.apart

    def queues(self) -> tuple[Queue | None, Queue | None]:
        """In both directions."""
        if self.error:
            raise self.error
        return self.up, self.down


@pytest.mark.parametrize(
    ("asked", "up", "down", "words"),
    [
        (LinkState(), None, None, ""),
        (LinkState(uplink_bit_s=10 * MBIT), queue(10 * MBIT), None, ""),
        (LinkState(uplink_bit_s=5 * MBIT + 7), queue(5 * MBIT), None, ""),
        (LinkState(uplink_bit_s=10 * MBIT), queue(MBIT), None, "uplink: the kernel holds 1mbit, asked 10mbit"),
        (LinkState(uplink_bit_s=10 * MBIT), None, None, "uplink: the kernel holds no limit, asked 10mbit"),
        (LinkState(), None, queue(256_008), "downlink: the kernel holds 256.008kbit, asked no limit"),
        (
            LinkState(downlink_bit_s=10 * MBIT), None, Queue(rate_bit_s=10 * MBIT, burst_bytes=64_000),
            "downlink: the kernel lets 64000 bytes through at once, asked 1600",
        ),
        (
            LinkState(uplink_bit_s=MBIT, downlink_bit_s=MBIT), queue(2 * MBIT), queue(3 * MBIT),
            "uplink: the kernel holds 2mbit, asked 1mbit; downlink: the kernel holds 3mbit, asked 1mbit",
        ),
        (
            LinkState(uplink_bit_s=MBIT), queue(MBIT, latency_s=0.1), None,
            ("uplink: the kernel's netem holds latency 100 ms, jitter 0 ms, loss 0 %, "
             "asked latency 0 ms, jitter 0 ms, loss 0 %"),
        ),
        (LinkState(uplink_bit_s=MBIT, cut=True), Queue(cut=True), Queue(cut=True), ""),
        (
            LinkState(uplink_bit_s=MBIT, cut=True), queue(MBIT), Queue(cut=True),
            "uplink: the kernel holds 1mbit, asked that nothing passes",
        ),
        (LinkState(), None, Queue(cut=True), "downlink: the kernel drops everything, asked no limit"),
    ],
)  # fmt: skip
def test_a_deviation_is_told_in_words(asked, up, down, words):
    """Direction, held, asked; the kernel's rounding is none."""
    assert deviation(asked, up, down, netem=False) == words


def test_latency_is_compared_where_the_kernel_makes_it():
    """Else the transport does, and the kernel is to add nothing."""
    asked, delayed = LinkState(latency_s=0.04, loss=0.01), Queue(latency_s=0.04, loss=0.01)

    assert deviation(asked, delayed, delayed, netem=True) == ""
    assert deviation(asked, None, None, netem=False) == ""
    assert "asked latency 40 ms, jitter 0 ms, loss 1 %" in deviation(asked, None, delayed, netem=True)


def test_a_change_may_come_a_second_early_or_late():
    """And no more; of a trace that changes faster, all that it is meanwhile."""
    link = LinkPlan(uplink_bit_s=8, changes=(LinkChange(at_s=10.0, uplink_bit_s=16),))
    fast = LinkPlan(changes=tuple(LinkChange(at_s=0.5 * k, uplink_bit_s=k) for k in range(8)), period_s=4.0)

    def rates(link: LinkPlan, time_s: float) -> list[int | None]:
        return [each.uplink_bit_s for each in around(LinkSchedule(link), time_s)]

    assert rates(link, 8.9) == [8]
    assert rates(link, 9.1) == [8, 16]
    assert rates(link, 10.9) == [16, 8]
    assert rates(link, 11.1) == [16]
    assert rates(fast, 4.2) == [0, 6, 7, 1, 2]


def test_a_trace_is_journaled_seldom_and_a_problem_as_soon_as_it_is_certain():
    """Both every ten seconds at most, but with the number of looks that found it, and with the first that did."""
    link = LinkPlan(
        changes=tuple(LinkChange(at_s=float(k), uplink_bit_s=(k + 1) * MBIT) for k in range(60)), period_s=60.0
    )
    kernel = Kernel()
    meter = LinkMeter("edge-0", EffectiveLink(link), kernel, "")
    told = {}
    for second in range(40):
        kernel.up = queue(MBIT) if 13 <= second < 37 else queue((second + 1) * MBIT)
        for record in meter.read(100.0 + second, 100.0):
            told[second] = (record.problem, record.differed)
            assert record.differences == (() if second < 14 else ("uplink: the kernel holds 1mbit, asked 15mbit",))

    problems = {
        second: (f"uplink: the kernel holds 1mbit, asked {second + 1}mbit", second - 13) for second in (14, 24, 34)
    }
    assert told == {0: ("", 0), 10: ("", 0), **problems, 37: ("", 23)}


def test_an_mtu_that_is_changed_in_mid_run_is_a_difference():
    """It is what it was when the node began, whatever that was; the link's rate is as asked all the time."""
    kernel = Kernel(up=queue(MBIT))
    meter = LinkMeter("edge-0", EffectiveLink(LinkPlan(uplink_bit_s=MBIT)), kernel, "")
    told = []
    for second in range(8):
        kernel.now = 400 if second >= 3 else None
        told += [(second, record.problem) for record in meter.read(float(second), 0.0)]

    assert told == [(0, ""), (4, "MTU: the interface takes packets of 400 bytes, at first of 1,500")]


@pytest.mark.parametrize(
    ("mtu", "burst", "problem"),
    [
        (1500, 1600, ""),
        (1450, 1550, ""),
        (1450, 1600, "uplink: the kernel lets 1600 bytes through at once, asked 1550"),
    ],
)
def test_what_passes_at_once_goes_by_the_interfaces_mtu(mtu, burst, problem):
    """One packet and no more, also of an overlay network, whose packets are smaller; the journal says how large."""
    kernel = Kernel(up=Queue(rate_bit_s=MBIT, burst_bytes=burst), mtu=mtu)
    meter = LinkMeter("edge-0", EffectiveLink(LinkPlan(uplink_bit_s=MBIT)), kernel, "")
    told = [record for second in (0.0, 1.0) for record in meter.read(second, None)][-1]

    assert (told.problem, told.mtu or 1500) == (problem, mtu)
    assert (b'"mtu"' in msgspec.json.encode(told)) == (mtu != 1500), "a journal of an Ethernet is what it was"


@pytest.mark.parametrize("error", [OSError(19, "No such device"), BadAnswerError("3 bytes where 16 are needed")])
def test_a_kernel_that_does_not_answer_is_a_problem(error):
    """The node goes on, and its journal says why nothing is known."""
    kernel = Kernel(up=queue(MBIT))
    meter = LinkMeter("edge-0", EffectiveLink(LinkPlan(uplink_bit_s=MBIT, latency_s=0.1)), kernel, "line")
    (fine,) = meter.read(0.0, None)
    kernel.error = error

    assert list(meter.read(1.0, None)) == [], "it may be about to be told of a fault"
    (lost,) = meter.read(2.0, None)

    assert (fine.problem, fine.delay, fine.interface) == ("", "line", "eth7")
    assert lost.problem == f"link: the kernel cannot be asked: {error}"


def test_what_a_fault_does_to_a_link_is_what_is_asked_of_it():
    """Whether the node hears of it before or after it is done."""
    kernel = Kernel(up=queue(5 * MBIT))
    effective = EffectiveLink(LinkPlan(uplink_bit_s=5 * MBIT))
    meter = LinkMeter("edge-0", effective, kernel, "")
    (first,) = meter.read(100.0, 100.0)
    kernel.up = kernel.down = Queue(cut=True)

    meter.inject(10.0, Injection(node="server", action="link", change=LinkChange(uplink_bit_s=MBIT)))
    assert list(meter.read(110.0, 100.0)) == []
    meter.inject(10.1, Injection(node="edge-0", action="cut"))
    (cut,) = meter.read(111.0, 100.0)
    effective.inject(15.0, Injection(node="edge-0", action="heal"))
    assert list(meter.read(115.1, 100.0)) == [], "it may be healed a second later"
    assert list(meter.read(116.5, 100.0)) == [], "what is found once does not count"
    (left,) = meter.read(117.5, 100.0)

    assert (first.cut, first.problem) == (False, "")
    assert (cut.cut, cut.problem, cut.uplink_asked, cut.uplink_held) == (True, "", 5 * MBIT, None)
    assert (left.cut, left.differed) == (False, 1)
    assert left.problem == (
        "uplink: the kernel drops everything, asked 5mbit; downlink: the kernel drops everything, asked no limit"
    )


def test_a_cut_between_two_that_somebody_undoes_is_found():
    """At the far end as well, which reads its own side of it."""
    kernel = Kernel(apart={"10.0.0.1"})
    meter = LinkMeter("edge-0", EffectiveLink(LinkPlan()), kernel, "")
    meter.inject(1.0, Injection(node="edge-1", action="cut", peer="edge-0"))
    (held,) = meter.read(5.0, 0.0)
    kernel.apart = set()
    assert list(meter.read(6.0, 0.0)) == []
    (undone,) = meter.read(7.0, 0.0)

    assert (held.apart, held.problem) == (("edge-1",), "")
    assert undone.problem == "between two: the kernel bars the way to 0 nodes, asked edge-1"


def test_a_node_in_its_second_life_waits_for_what_was_done_to_its_first():
    """It hears of that while it waits; until then what it finds is not what it was asked."""
    kernel, effective, heard = Kernel(up=queue(MBIT)), EffectiveLink(LinkPlan(uplink_bit_s=5 * MBIT)), []

    def hear() -> None:
        if heard:
            change = LinkChange(uplink_bit_s=MBIT)
            effective.inject(-math.inf, Injection(node="edge-0", action="link", change=change))
        heard.append(len(effective.injected_s))

    LinkMeter("edge-0", effective, kernel, "").wait_until_held(hear)

    assert heard == [0, 1]


def test_a_link_that_no_kernel_holds_is_stated_once_and_again_when_faults_change_it():
    """As asked, with what holds it."""
    link = StatedLink("edge-0", EffectiveLink(LinkPlan(uplink_bit_s=MBIT, latency_s=0.04)), "model", "line")

    (said,) = link.read(1.0, None)

    assert (said.mechanism, said.delay, said.uplink_asked, said.uplink_held, said.downlink_held, said.latency_s) == (
        "model", "line", MBIT, MBIT, None, 0.04,
    )  # fmt: skip
    link.inject(2.0, Injection(node="server", action="cut"))
    assert list(link.read(2.0, None)) == [], "it is the other end's"
    link.inject(3.0, Injection(node="edge-0", action="cut"))
    (cut,) = link.read(14.0, 10.0)
    assert (cut.cut, cut.uplink_asked, cut.uplink_held, cut.problem) == (True, MBIT, None, "")
    assert list(link.read(15.0, 10.0)) == []


def test_a_link_of_which_nothing_was_asked_is_told_of_once_somebody_changes_it():
    """By hand, as by a fault; whoever holds it may have to be started first."""
    kernel, effective = Kernel(), EffectiveLink(LinkPlan())
    link = ChangedLink("edge-0", lambda: LinkMeter("edge-0", effective, kernel, ""), after_s=5.0)
    change = Injection(node="edge-0", action="link", change=LinkChange(uplink_bit_s=MBIT))

    link.inject(2.0, msgspec.structs.replace(change, node="server"))
    assert list(link.read(90.0, 10.0)) == []
    link.inject(80.0, change)
    assert list(link.read(94.9, 10.0)) == []
    kernel.up = queue(MBIT)
    (said,) = link.read(95.0, 10.0)
    assert (said.mechanism, said.uplink_asked, said.uplink_held, said.problem) == ("tc", MBIT, MBIT, "")


def test_however_many_rows_a_trace_has_few_are_compared(monkeypatch):
    """A node that starts anew finds any of them held, and looks many times a second."""
    link = LinkPlan(
        changes=tuple(LinkChange(at_s=k / 10, uplink_bit_s=8 * k + 8) for k in range(10_000)), period_s=1000.0
    )
    kernel, compared = Kernel(up=queue(8 * 7_000)), []

    def counting(asked, *held, netem, mtu):
        compared.append(asked.uplink_bit_s)
        return deviation(asked, *held, netem=netem, mtu=mtu)

    monkeypatch.setattr(readback, "deviation", counting)
    LinkMeter("edge-0", EffectiveLink(link), kernel, "").wait_until_held()

    assert compared == [8, 8 * 7_000]
