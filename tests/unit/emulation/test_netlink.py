"""Netlink's bytes: written by another library and read back, and whatever else may come."""

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from edgebed.core.framing import burst_bytes
from edgebed.emulation.conditions import LinkState
from edgebed.emulation.netlink import BadAnswerError, Qdisc, Queue, attributes, messages, read_qdisc, redirected, stack
from edgebed.emulation.readback import deviation
from edgebed.emulation.tc import RATE_MAX_BIT_S, RATE_MIN_BIT_S, Features, disciplines

RATES = st.integers(min_value=RATE_MIN_BIT_S, max_value=RATE_MAX_BIT_S)
INTERFACE, ROOT = 7, 0xFFFF_FFFF


def as_the_kernel_tells(found: list[tuple[str, dict]]) -> list[Qdisc]:
    """What is read of queueing disciplines that were asked for, each below the one before."""
    read, parent = [], ROOT
    for number, (kind, options) in enumerate(found, start=1):
        message = tcmsg()
        message["index"], message["parent"], message["handle"] = INTERFACE, parent, number << 16
        message["attrs"] = [("TCA_KIND", kind), ("TCA_OPTIONS", options)]
        message.encode()
        ((_, _, payload),) = messages(bytes(message.data))
        read.append(read_qdisc(payload))
        parent = (number << 16) + 1
    return read


@given(RATES)
@example(1_000_000)
@example(10_000_000)
@example(10_000_001)
def test_a_rate_is_read_as_it_was_written(rate_bit_s):
    """In whole bytes a second, and the burst to the kernel's unit of time."""
    asked = LinkState(uplink_bit_s=rate_bit_s)

    queue = stack(as_the_kernel_tells(disciplines(rate_bit_s, asked, Features(netem=False))), INTERFACE)

    assert queue is not None
    assert queue.rate_bit_s == rate_bit_s // 8 * 8
    assert queue.burst_bytes == pytest.approx(burst_bytes(rate_bit_s), abs=1 + rate_bit_s / 8 * 64e-9)
    waiting = max(32_000, rate_bit_s / 8 * 0.2)
    assert queue.limit_bytes == pytest.approx(waiting + burst_bytes(rate_bit_s), abs=1)
    assert deviation(asked, queue, None, netem=False) == ""


@given(
    st.one_of(st.none(), RATES),
    st.floats(min_value=0.001, max_value=10.0),
    st.floats(min_value=0.0, max_value=1.0),
    st.floats(min_value=0.0, max_value=1.0),
)
def test_latency_jitter_and_loss_are_read_as_they_were_written(rate_bit_s, latency_s, jitter_s, loss):
    """Of a netem below a token bucket, or alone."""
    asked = LinkState(uplink_bit_s=rate_bit_s, latency_s=latency_s, jitter_s=jitter_s, loss=loss)

    queue = stack(as_the_kernel_tells(disciplines(rate_bit_s, asked, Features(netem=True))), INTERFACE)

    assert queue is not None
    assert (queue.rate_bit_s is None) == (rate_bit_s is None)
    assert queue.latency_s == pytest.approx(latency_s, abs=64e-9)
    assert queue.jitter_s == pytest.approx(jitter_s, abs=64e-9)
    assert queue.loss == pytest.approx(loss, abs=1e-9)
    both = LinkState(uplink_bit_s=rate_bit_s, downlink_bit_s=rate_bit_s, latency_s=latency_s, jitter_s=jitter_s,
                      loss=loss)  # fmt: skip
    assert deviation(both, queue, queue, netem=True) == ""


def test_a_long_latency_is_read_from_its_own_attribute():
    """Newer kernels tell it in nanoseconds besides."""
    fixed = struct.pack("=6I", 2**32 - 1, 1000, 0, 0, 0, 0)
    long = struct.pack("=HHqHHq", 12, 10, 400_000_000_000, 12, 11, 5_000_000)
    options = fixed + long
    payload = struct.pack("=B3xiIII", 0, INTERFACE, 1 << 16, ROOT, 0)
    payload += struct.pack("=HH6sxx", 10, 1, b"netem\0") + struct.pack("=HH", 4 + len(options), 2) + options

    queue = read_qdisc(payload).queue

    assert (queue.latency_s, queue.jitter_s) == (pytest.approx(400.0), pytest.approx(0.005))


def test_nothing_but_token_buckets_and_delays_counts_as_a_limit():
    """A default queue, and one that somebody else has put there."""
    assert stack([Qdisc(interface=INTERFACE, handle=0, parent=ROOT, kind="noqueue")], INTERFACE) is None
    assert stack([Qdisc(interface=INTERFACE, handle=1 << 16, parent=ROOT, kind="htb")], INTERFACE) is None
    elsewhere = Qdisc(interface=INTERFACE + 1, handle=1 << 16, parent=ROOT, kind="tbf", queue=Queue(rate_bit_s=8))
    assert stack([elsewhere], INTERFACE) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data):
    """As messages, attributes or a queueing discipline."""
    for read in (lambda: list(messages(data)), lambda: attributes(data), lambda: read_qdisc(data),
                 lambda: redirected(data)):  # fmt: skip
        try:
            read()
        except BadAnswerError:
            continue


@given(st.integers(min_value=0, max_value=2**32 - 1), st.data())
def test_a_broken_answer_is_read_or_refused(value, data):
    """Four bytes of a good one replaced by any others."""
    (_, options), *_ = disciplines(10_000_000, LinkState(uplink_bit_s=10_000_000), Features(netem=False))
    message = tcmsg()
    message["attrs"] = [("TCA_KIND", "tbf"), ("TCA_OPTIONS", options)]
    message.encode()
    broken = bytearray(message.data)
    struct.pack_into("=I", broken, data.draw(st.integers(min_value=0, max_value=len(broken) - 4)), value)

    try:
        for _, _, payload in messages(bytes(broken)):
            read_qdisc(payload)
    except BadAnswerError as error:
        assert str(error)  # noqa: PT017 - it may be raised, it need not
