"""The cost of a stage: some layers on a device that stands between two others, in one step of training; pure.

    below ---- activation ---> compute ---- activation ---> above
    below <--- gradient ------         <--- gradient ------ above          both may go through a store

Every message is counted with its headers, and with the acknowledgements that go the other way (core/framing.py).
Bytes pass the receiver's link while they still leave the sender's: a hop takes as long as the slower of the two needs.

Times are seconds, sizes bytes, rates bit/s.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from edgebed.core.framing import ACK_BYTES_A_SEGMENT, burst_bytes, num_segments, wire_bytes

INFINITE = float("inf")


class LayerCost(NamedTuple):
    """Costs of a layer in a step, for a whole mini-batch, on a device of speed 1."""

    compute_s: float
    """Seconds of the forward pass, the backward pass and the optimizer's step."""
    output_bytes: int
    """Bytes of the message with the layer's outputs; their gradient takes as many."""
    memory_bytes: int
    """Bytes of parameters, moments, and what is stored until the gradient is there."""
    end_compute_s: float = 0.0
    """Additional seconds where a shard ends with this layer and there is another above: the network beside it that
    predicts a gradient or gives a loss, the messages to and from above."""
    end_memory_bytes: int = 0
    begin_compute_s: float = 0.0
    """Additional seconds where a shard begins with this layer and there is another below: the network that predicts
    inputs, the messages to and from below."""
    begin_memory_bytes: int = 0
    again_s: float = 0.0
    """Additional seconds where there are shards on both sides: the true gradient goes through once more."""
    forward_s: float = 0.0
    """The share of these seconds that the forward pass takes."""
    apart_s: float = 0.0
    """Additional seconds of the node that has all gradient modules, where a shard ends with this layer."""
    array_bytes: int = 0
    """Bytes of the layer's outputs in memory."""


class Device(NamedTuple):
    """Capacities of a node that may hold a shard, or serve shards."""

    name: str
    speed: float = 1.0
    """Share of this machine's core that the device has."""
    memory_bytes: int | None = None
    """Memory cap; None: no cap."""
    uplink_bit_s: float = INFINITE
    downlink_bit_s: float = INFINITE
    latency_s: float = 0.0
    """One-way latency of the device's link."""
    own_s: float = 0.0
    """Seconds of computation in a step, at speed 1, that the device needs whatever layers it has."""
    own_bytes: int = 0
    """Bytes of memory that the device needs whatever layers it has."""


class PipelineSchedule(NamedTuple):
    """How the stages work together."""

    together: bool
    """Whether each stage has a mini-batch of its own in hand; else stages take turns."""
    micro_batches: int = 1
    """Parts of a mini-batch that follow each other, where stages take turns."""
    gradients: bool = True
    """Whether gradients are sent down."""
    from_loss: bool = False
    """Whether the gradient that comes is that of the loss, on its way through all shards above; where stages work
    together."""
    queue: int | None = None
    """Mini-batches that a stage may have sent without an answer, where stages work together; None: any number."""
    store: Device | None = None
    """The store that every message passes through; None: messages go directly."""
    apart: Device | None = None
    """The node that has all gradient modules; None: each lies beside its layers."""
    asks: bool = False
    """Whether a stage waits for the answer of gradient modules that lie on a node of their own."""
    sends_every: int = 1
    """Outputs go up once in so many steps."""
    every: int = 1
    """All stages but the first make one step in so many."""
    batches: int = 0
    """Number of batches whose exchanged tensors are stored, of each kind; 0: only what is on its way."""

    def kept_bytes(self, came: int, went: int) -> int:
        """Bytes stored by batch at most, where inputs take `came` and outputs `went` bytes.

        Below: inputs received and gradients not yet sent. Above: outputs that a gradient module has yet to learn from,
        outputs not yet sent, and gradients received.
        """
        return self.batches * (2 * came + 3 * went)


class Load(NamedTuple):
    """Load of one stage or several on everything that could set the pace."""

    slowest_s: float = 0.0
    """Seconds of the stage, or the stage's link, that is busy longest; or of the round that it has to wait for."""
    turn_s: float = 0.0
    """Seconds of all stages and their messages, where stages take turns."""
    store_s: float = 0.0
    """Seconds that the store's link is busy."""
    apart_s: float = 0.0
    """Seconds of computation on the node of the gradient modules."""
    apart_link_s: float = 0.0
    """Seconds that the link of the gradient modules' node is busy."""

    def beside(self, other: "Load") -> "Load":
        """The load of these stages and of `other` together."""
        return Load(
            max(self.slowest_s, other.slowest_s),
            self.turn_s + other.turn_s,
            self.store_s + other.store_s,
            self.apart_s + other.apart_s,
            self.apart_link_s + other.apart_link_s,
        )

    def step_s(self, schedule: PipelineSchedule) -> float:
        """Seconds of a step under this load of all stages."""
        busiest_s = max(self.slowest_s, *self[2:])
        if schedule.together:
            waiting_s = self.turn_s / schedule.queue if schedule.from_loss and schedule.queue else 0.0
            return max(busiest_s, waiting_s)
        parts = schedule.micro_batches
        return (self.turn_s + (parts - 1) * busiest_s) / parts

    def that_counts(self, schedule: PipelineSchedule) -> "Load":
        """The load without what makes no difference to the step, so that fewer loads differ."""
        if schedule.together:
            return self if schedule.from_loss and schedule.queue else self._replace(turn_s=0.0)
        return self if schedule.micro_batches > 1 else Load(turn_s=self.turn_s)


class Stage(NamedTuple):
    """The cost of some layers on a device."""

    compute_s: float
    memory_bytes: int
    """Bytes of the stage's layers, without what the device needs anyway."""
    fits: bool
    load: Load


class Stages:
    """The cost of each stage that there could be."""

    def __init__(self, layers: Sequence[LayerCost], devices: Sequence[Device], schedule: PipelineSchedule) -> None:
        self.layers, self.devices, self.schedule = layers, devices, schedule
        self._compute_s = [0.0, *accumulate(layer.compute_s for layer in layers)]
        self._again_s = [0.0, *accumulate(layer.again_s for layer in layers)]
        self._forward_s = [0.0, *accumulate(layer.forward_s for layer in layers)]
        self._memory = [0, *accumulate(layer.memory_bytes for layer in layers)]

    def stage(self, k: int, first: int, end: int) -> Stage:
        """The cost of device `k` with the layers from `first` up to `end`, which is not among them."""
        device = self.devices[k]
        below, above = first > 0, end < len(self.layers)
        compute_s = self._compute_s[end] - self._compute_s[first]
        memory = self._memory[end] - self._memory[first]
        if above:
            compute_s += self.layers[end - 1].end_compute_s
            memory += self.layers[end - 1].end_memory_bytes
        if below:
            compute_s += self.layers[first].begin_compute_s
            memory += self.layers[first].begin_memory_bytes
        if above and below:
            compute_s += self._again_s[end] - self._again_s[first]
        compute_s = (compute_s + device.own_s) / device.speed
        memory += self.kept_bytes(first, end)
        fits = device.memory_bytes is None or memory + device.own_bytes <= device.memory_bytes
        return Stage(compute_s, memory, fits, self._load(k, first, end, compute_s).that_counts(self.schedule))

    def kept_bytes(self, first: int, end: int) -> int:
        """Bytes that a stage with these layers stores by batch."""
        came = self.layers[first - 1].array_bytes if first else 0
        return self.schedule.kept_bytes(came, self.layers[end - 1].array_bytes if end < len(self.layers) else 0)

    def forward_s(self, k: int, first: int, end: int) -> float:
        """Seconds of the forward pass of these layers on device `k`."""
        return (self._forward_s[end] - self._forward_s[first]) / self.devices[k].speed

    def hops_s(self, k: int, end: int) -> tuple[float, float]:
        """Seconds of the message up from a stage that ends there, and of the gradient down to it, if there are any."""
        went = self.layers[end - 1].output_bytes
        return self._hops_s(k, k + 1, went), self._hops_s(k + 1, k, went if self.schedule.gradients else 0)

    def _load(self, k: int, first: int, end: int, compute_s: float) -> Load:
        came, went = self._exchanged(first, end)
        every, sends_every = self.schedule.every if first else 1, self.schedule.sends_every
        slowest_s = max(compute_s / every, max(self._link_s(self.devices[k], came, went)) / sends_every)
        if came and self.schedule.queue:
            slowest_s = max(slowest_s, self._round_s(k, came, compute_s) / self.schedule.queue / sends_every)
        if self.schedule.apart and self.schedule.asks and went:
            slowest_s = max(slowest_s, compute_s + self._asking_s(k, went, self.layers[end - 1].apart_s))
        turn_s = compute_s
        if self.schedule.from_loss and went:  # the rest is done while the gradients are on their way
            turn_s = self.forward_s(k, first, end) + (self._again_s[end] - self._again_s[first]) / self.devices[k].speed
        if went:
            turn_s += self._hops_s(k, k + 1, went)
            turn_s += self._hops_s(k + 1, k, went) if self.schedule.gradients else 0.0
            turn_s += (self.schedule.micro_batches - 1) * self._latency_s(k)  # which no part of a message shortens
        return Load(slowest_s, turn_s, *self._shared(went, self.layers[end - 1].apart_s if went else 0.0))

    def _exchanged(self, first: int, end: int) -> tuple[int, int]:
        """Bytes of the inputs that come from below, and of the outputs that go up."""
        came = self.layers[first - 1].output_bytes if first else 0
        return came, self.layers[end - 1].output_bytes if end < len(self.layers) else 0

    def _link_s(self, device: Device, came: int, went: int) -> tuple[float, float]:
        """How long a stage's uplink and downlink are busy."""
        returns = 1 if self.schedule.gradients else 0
        to_modules = 1 if self.schedule.apart else 0
        sent = (1 + to_modules) * [went] + returns * [came]
        received = [came] + max(returns, to_modules) * [went]
        return (
            8 * (sum(map(wire_bytes, sent)) + sum(map(_ack_bytes, received))) / device.uplink_bit_s,
            8 * (sum(map(wire_bytes, received)) + sum(map(_ack_bytes, sent))) / device.downlink_bit_s,
        )

    def _round_s(self, k: int, came: int, compute_s: float) -> float:
        """Seconds from when the shard below has sent something until it has the answer, which this stage makes."""
        answer_s = self._hops_s(k, k - 1, came) if self.schedule.gradients else self._hops_s(k, k - 1, 0)
        return self._hops_s(k - 1, k, came) + compute_s + answer_s

    def _asking_s(self, k: int, went: int, apart_s: float) -> float:
        """Seconds to the gradient modules, of their work, and back."""
        device, apart = self.devices[k], self.schedule.apart
        assert apart is not None
        return _hop_s(device, apart, went) + apart_s / apart.speed + _hop_s(apart, device, went)

    def _hops_s(self, k: int, other: int, size: int) -> float:
        """Seconds of a message from one device of the row to another."""
        sender, receiver, store = self.devices[k], self.devices[other], self.schedule.store
        if store is None:
            return _hop_s(sender, receiver, size)
        return _hop_s(sender, store, size) + _hop_s(store, receiver, size)

    def _latency_s(self, k: int) -> float:
        """Latency of a message to the device above and of the gradient back, without the time for their bytes."""
        hops_s = self._hops_s(k, k + 1, 0)
        return 2 * hops_s if self.schedule.gradients else hops_s

    def _shared(self, went: int, apart_s: float) -> tuple[float, float, float]:
        """Seconds that a cut behind this stage takes of the store's link, the modules' node, and that node's link."""
        store, apart = self.schedule.store, self.schedule.apart
        store_s = apart_link_s = 0.0
        if went and store:
            passes = 1 if apart or not self.schedule.gradients else 2
            rate = min(store.uplink_bit_s, store.downlink_bit_s)
            store_s = 8 * passes * (wire_bytes(went) + _ack_bytes(went)) / rate / self.schedule.sends_every
        if went and apart:  # activation and gradient come, a prediction goes
            up, down = wire_bytes(went) + 2 * _ack_bytes(went), 2 * wire_bytes(went) + _ack_bytes(went)
            apart_link_s = 8 * max(up / apart.uplink_bit_s, down / apart.downlink_bit_s)
        return store_s, apart_s / apart.speed if apart else 0.0, apart_link_s


def _hop_s(sender: Device, receiver: Device, size: int) -> float:
    """Seconds of a message over two links; where one is very uneven, its acknowledgements delay it."""
    there, back = wire_bytes(size), _ack_bytes(size)
    passing_s = max(
        _passing_s(there, sender.uplink_bit_s),
        _passing_s(there, receiver.downlink_bit_s),
        _passing_s(back, sender.downlink_bit_s),
        _passing_s(back, receiver.uplink_bit_s),
    )
    return passing_s + sender.latency_s + receiver.latency_s


def _passing_s(num_bytes: float, rate_bit_s: float) -> float:
    """Seconds that bytes need on the wire; after a silence a link lets a little through at once."""
    if rate_bit_s == INFINITE:
        return 0.0
    return 8 * max(0.0, num_bytes - burst_bytes(int(rate_bit_s))) / rate_bit_s


def _ack_bytes(size: int) -> float:
    return ACK_BYTES_A_SEGMENT * num_segments(size)
