"""Where a model is cut: never worse than any other cuts, and never beyond a device's memory."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebed.core.errors import ScenarioError
from edgebed.core.framing import burst_bytes, wire_bytes
from edgebed.planning.partition import choose_cuts, cost_of
from edgebed.planning.stages import Device, LayerCost, PipelineSchedule

LAYERS = st.lists(
    st.builds(
        LayerCost,
        compute_s=st.floats(0.01, 1.0),
        output_bytes=st.integers(0, 10**6),
        memory_bytes=st.integers(1, 100),
        end_compute_s=st.floats(0.0, 0.5),
        end_memory_bytes=st.integers(0, 50),
        begin_compute_s=st.floats(0.0, 0.5),
        begin_memory_bytes=st.integers(0, 50),
        again_s=st.floats(0.0, 0.5),
        apart_s=st.floats(0.0, 0.5),
        forward_s=st.floats(0.0, 0.01),
        array_bytes=st.integers(0, 50),
    ),
    min_size=1,
    max_size=7,
)
DEVICE = st.builds(
    Device,
    name=st.just("edge"),
    speed=st.sampled_from([0.25, 0.5, 1.0]),
    memory_bytes=st.none() | st.integers(50, 600),
    uplink_bit_s=st.sampled_from([1e6, 1e7, float("inf")]),
    downlink_bit_s=st.sampled_from([1e6, 1e8, float("inf")]),
    latency_s=st.sampled_from([0.0, 0.05]),
    own_s=st.sampled_from([0.0, 0.5]),
    own_bytes=st.integers(0, 100),
)
DEVICES = st.lists(DEVICE, min_size=1, max_size=4)
SCHEDULES = st.builds(
    PipelineSchedule,
    together=st.booleans(),
    micro_batches=st.sampled_from([1, 2, 5]),
    gradients=st.booleans(),
    from_loss=st.booleans(),
    queue=st.none() | st.integers(1, 4),
    store=st.none() | DEVICE,
    apart=st.none() | DEVICE,
    asks=st.booleans(),
    sends_every=st.sampled_from([1, 4]),
    every=st.sampled_from([1, 4]),
    batches=st.sampled_from([0, 0, 2]),
)


@settings(max_examples=6 * settings.default.max_examples)
@given(LAYERS, DEVICES, SCHEDULES)
def test_no_other_cuts_are_better(layers, devices, schedule):
    """Of all that fit; where none do, that is said."""
    everything = [
        cost_of(layers, devices, schedule, cuts)
        for cuts in itertools.combinations(range(1, len(layers)), len(devices) - 1)
    ]
    fitting = [
        each
        for each in everything
        if all(
            d.memory_bytes is None or m + d.own_bytes <= d.memory_bytes
            for d, m in zip(devices, each.memory_bytes, strict=True)
        )
    ]
    if not fitting:
        with pytest.raises(ScenarioError, match=r"no cuts of the|cannot be cut"):
            choose_cuts(layers, devices, schedule)
        return
    chosen = choose_cuts(layers, devices, schedule)

    assert chosen in fitting
    assert chosen.step_s == pytest.approx(min(each.step_s for each in fitting))


def even(count, **options):
    """Layers that all cost the same."""
    return [LayerCost(compute_s=1.0, output_bytes=1_000_000, memory_bytes=10, **options)] * count


def test_a_slow_device_gets_fewer_layers():
    """Four times slower, a quarter of the layers."""
    devices = [Device("fast"), Device("slow", speed=0.25), Device("fast"), Device("fast")]
    together = PipelineSchedule(together=True)

    assert choose_cuts(even(13), devices, together).cuts == (4, 5, 9)
    assert choose_cuts(even(13), devices, together).step_s == 4.0
    assert cost_of(even(13), devices, together, (3, 6, 9)).step_s == 12.0


def test_a_slow_link_is_crossed_where_little_passes():
    """Activations of a late layer are smaller."""
    layers = [LayerCost(1.0, size, 10) for size in (10**6, 10**6, 10**4, 10**4)]
    devices = [Device("camera", uplink_bit_s=1e6, downlink_bit_s=1e6), Device("hub")]

    assert choose_cuts(layers, devices, PipelineSchedule(together=True)).cuts == (3,)
    assert choose_cuts(layers, [Device("a"), Device("b")], PipelineSchedule(together=True)).cuts == (2,)


def test_in_turn_everything_adds_up():
    """Computation, and both ways over the link with headers, but for what a link lets through at once; latency."""
    devices = [Device("a", uplink_bit_s=8e6, downlink_bit_s=4e6, latency_s=0.1), Device("b", speed=0.5)]
    in_turn = cost_of(even(2), devices, PipelineSchedule(together=False), (1,))

    up_s, down_s = (8 * (wire_bytes(10**6) - burst_bytes(int(rate))) / rate for rate in (8e6, 4e6))
    assert in_turn.step_s == pytest.approx(1.0 + 2.0 + up_s + down_s + 2 * 0.1)
    assert in_turn.stage_s == (1.0, 2.0)
    parts = cost_of(even(2), [Device("a"), Device("b")], PipelineSchedule(together=False, micro_batches=4), (1,))
    assert parts.step_s == pytest.approx((2.0 + 3 * 1.0) / 4)


def test_what_fits_nowhere_is_told_with_sizes():
    """And what to do."""
    with pytest.raises(ScenarioError, match=r"no cuts of the 3 layers fit .* layer 0 alone 0 MiB.*Use more devices"):
        choose_cuts(even(3), [Device("a", memory_bytes=5), Device("b")], PipelineSchedule(together=True))
    with pytest.raises(ScenarioError, match="2 layers cannot be cut into 3 shards; use fewer devices"):
        choose_cuts(even(2), [Device("a")] * 3, PipelineSchedule(together=True))
