"""What a stage costs: some layers on a device that stands between two others, in one step of training; pure.

    below ---- activation ---> compute ---- activation ---> above
    below <--- gradient ------         <--- gradient ------ above          both may go through a store

Every message is counted with its headers, and with the acknowledgements that go the other way (emulation/framing.py).
Bytes pass the receiver's link while they still leave the sender's: a hop takes as long as the slower of the two needs.

Times are seconds, sizes bytes, rates bit/s.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from edgebed.emulation.framing import ACK_BYTES_A_SEGMENT, burst_bytes, num_segments, wire_bytes

INFINITE = float("inf")


class LayerCost(NamedTuple):
    """What a layer costs in a step, of a whole mini-batch, on a device of speed 1."""

    compute_s: float
    """Forward, backward and the optimizer's step."""
    output_bytes: int
    """Of the message that its outputs travel in; their gradient takes as many."""
    memory_bytes: int
    """Parameters, moments, and what it keeps until its gradient is there."""
    end_compute_s: float = 0.0
    """More where a shard ends with it and there is another above: the network beside it that predicts a gradient or
    gives a loss, the messages to and from above."""
    end_memory_bytes: int = 0
    begin_compute_s: float = 0.0
    """More where a shard begins with it and there is another below: the network that predicts inputs, the messages to
    and from below."""
    begin_memory_bytes: int = 0
    again_s: float = 0.0
    """More where there are shards on both sides: the true gradient goes through once more."""
    forward_s: float = 0.0
    """Of all that, going forward."""
    apart_s: float = 0.0
    """More for the node that has all gradient modules where a shard ends with it."""
    array_bytes: int = 0
    """Of its outputs in memory."""


class Device(NamedTuple):
    """Who may hold a shard, or serve those that do."""

    name: str
    speed: float = 1.0
    """Share of this machine's core that it has."""
    memory_bytes: int | None = None
    """None: no cap."""
    uplink_bit_s: float = INFINITE
    downlink_bit_s: float = INFINITE
    latency_s: float = 0.0
    """One way."""
    own_s: float = 0.0
    """Of its computation in a step, at speed 1, what it needs whatever layers it has."""
    own_bytes: int = 0
    """What it needs of its memory whatever layers it has."""


class Schedule(NamedTuple):
    """How the stages work together."""

    together: bool
    """Each has a mini-batch of its own in hand; else they take turns."""
    micro_batches: int = 1
    """In turn: parts that follow each other."""
    gradients: bool = True
    """Whether gradients go down."""
    from_loss: bool = False
    """Together: whether the gradient that comes is that of the loss, on its way through all shards above."""
    queue: int | None = None
    """Together: mini-batches that a stage may have sent without an answer; None: any number."""
    store: Device | None = None
    """Every message goes through it; None: directly."""
    apart: Device | None = None
    """It has all gradient modules; None: each lies beside its layers."""
    asks: bool = False
    """With modules apart: a stage does nothing before their answer."""
    sends_every: int = 1
    """Outputs go up of every so many steps."""
    every: int = 1
    """All stages but the first make every so many steps."""
    batches: int = 0
    """What is exchanged is kept by its batch, so many of each kind; 0: what is on its way alone."""

    def kept_bytes(self, came: int, went: int) -> int:
        """Of what is kept by batch at most, where inputs take `came` and outputs `went` bytes.

        Below, inputs that came and gradients that have yet to leave; above, outputs that a gradient module has to be
        taught about, those that have yet to leave, and gradients that came.
        """
        return self.batches * (2 * came + 3 * went)


class Load(NamedTuple):
    """What some stages, or one, ask of everything that could set the pace."""

    slowest_s: float = 0.0
    """The stage, or the link of one, that is busy longest; or the round that it has to wait for."""
    turn_s: float = 0.0
    """Where stages take turns: all of them, and their messages."""
    store_s: float = 0.0
    """The store's link."""
    apart_s: float = 0.0
    """The node of the gradient modules: its computation ..."""
    apart_link_s: float = 0.0
    """... and its link."""

    def beside(self, other: "Load") -> "Load":
        """Of both together."""
        return Load(
            max(self.slowest_s, other.slowest_s),
            self.turn_s + other.turn_s,
            self.store_s + other.store_s,
            self.apart_s + other.apart_s,
            self.apart_link_s + other.apart_link_s,
        )

    def step_s(self, schedule: Schedule) -> float:
        """How long a step takes under this load of all stages."""
        busiest_s = max(self.slowest_s, *self[2:])
        if schedule.together:
            waiting_s = self.turn_s / schedule.queue if schedule.from_loss and schedule.queue else 0.0
            return max(busiest_s, waiting_s)
        parts = schedule.micro_batches
        return (self.turn_s + (parts - 1) * busiest_s) / parts

    def that_counts(self, schedule: Schedule) -> "Load":
        """Without what makes no difference to the step, so that fewer loads differ."""
        if schedule.together:
            return self if schedule.from_loss and schedule.queue else self._replace(turn_s=0.0)
        return self if schedule.micro_batches > 1 else Load(turn_s=self.turn_s)


class Stage(NamedTuple):
    """Some layers on a device."""

    compute_s: float
    memory_bytes: int
    """Of the layers, without what the device needs anyway."""
    fits: bool
    load: Load


class Stages:
    """The cost of each stage that there could be."""

    def __init__(self, layers: Sequence[LayerCost], devices: Sequence[Device], schedule: Schedule) -> None:
        self.layers, self.devices, self.schedule = layers, devices, schedule
        self._compute_s = [0.0, *accumulate(layer.compute_s for layer in layers)]
        self._again_s = [0.0, *accumulate(layer.again_s for layer in layers)]
        self._forward_s = [0.0, *accumulate(layer.forward_s for layer in layers)]
        self._memory = [0, *accumulate(layer.memory_bytes for layer in layers)]

    def stage(self, k: int, first: int, end: int) -> Stage:
        """Device `k` with the layers from `first` up to `end`, which is not among them."""
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
        """What such a stage keeps by batch."""
        came = self.layers[first - 1].array_bytes if first else 0
        return self.schedule.kept_bytes(came, self.layers[end - 1].array_bytes if end < len(self.layers) else 0)

    def forward_s(self, k: int, first: int, end: int) -> float:
        """What such a stage takes to go forward."""
        return (self._forward_s[end] - self._forward_s[first]) / self.devices[k].speed

    def hops_s(self, k: int, end: int) -> tuple[float, float]:
        """The way of what such a stage sends up, and of what comes down for it; gradients where there are any."""
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
        if self.schedule.from_loss and went:  # the rest is done while these are on their way
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
        """From when the shard below has sent something until it has the answer, which this stage makes."""
        answer_s = self._hops_s(k, k - 1, came) if self.schedule.gradients else self._hops_s(k, k - 1, 0)
        return self._hops_s(k - 1, k, came) + compute_s + answer_s

    def _asking_s(self, k: int, went: int, apart_s: float) -> float:
        """The way to the modules, their work, and the way back."""
        device, apart = self.devices[k], self.schedule.apart
        assert apart is not None
        return _hop_s(device, apart, went) + apart_s / apart.speed + _hop_s(apart, device, went)

    def _hops_s(self, k: int, other: int, size: int) -> float:
        """A message's way from one device to another in `Device`s of the row."""
        sender, receiver, store = self.devices[k], self.devices[other], self.schedule.store
        if store is None:
            return _hop_s(sender, receiver, size)
        return _hop_s(sender, store, size) + _hop_s(store, receiver, size)

    def _latency_s(self, k: int) -> float:
        """Of a message to the device above, and of the gradient back, without what their bytes take."""
        hops_s = self._hops_s(k, k + 1, 0)
        return 2 * hops_s if self.schedule.gradients else hops_s

    def _shared(self, went: int, apart_s: float) -> tuple[float, float, float]:
        """What a cut behind this stage asks of the store's link, and of the modules' node and its link."""
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
    """A message's way over two links; where one is very uneven, its acknowledgements keep it waiting."""
    there, back = wire_bytes(size), _ack_bytes(size)
    passing_s = max(
        _passing_s(there, sender.uplink_bit_s),
        _passing_s(there, receiver.downlink_bit_s),
        _passing_s(back, sender.downlink_bit_s),
        _passing_s(back, receiver.uplink_bit_s),
    )
    return passing_s + sender.latency_s + receiver.latency_s


def _passing_s(num_bytes: float, rate_bit_s: float) -> float:
    """Of bytes on the wire; after a silence a link lets a little through at once."""
    if rate_bit_s == INFINITE:
        return 0.0
    return 8 * max(0.0, num_bytes - burst_bytes(int(rate_bit_s))) / rate_bit_s


def _ack_bytes(size: int) -> float:
    return ACK_BYTES_A_SEGMENT * num_segments(size)
