"""Where to cut a model, so that a step takes as little time as the devices allow; pure.

Devices stand in a row, each gets at least one layer. What a stage costs follows from its layers and its device; what a
step costs, from the stages, by how they work together:

    together      each stage has another mini-batch in hand: the slowest of all, or of all links, sets the pace
    in turn       one after the other, up and down again: the sum of all
    micro-batches m parts of a mini-batch follow each other: the sum, of a part, and m - 1 times the slowest, of a part

Times are seconds, sizes bytes, rates bit/s.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.errors import ScenarioError

INFINITE = float("inf")


class LayerCost(NamedTuple):
    """What a layer costs in a step, of a whole mini-batch, on a device of speed 1."""

    compute_s: float
    """Forward, backward and the optimizer's step."""
    output_bytes: int
    """Of its outputs as they travel; their gradient takes as many."""
    memory_bytes: int
    """Parameters, moments, and what it keeps until its gradient is there."""
    end_compute_s: float = 0.0
    """More where a shard ends with it: the network beside it that predicts a gradient, or gives a loss."""
    end_memory_bytes: int = 0


class Device(NamedTuple):
    """Who may hold a shard."""

    name: str
    speed: float = 1.0
    """Share of this machine's core that it has."""
    memory_bytes: int | None = None
    """None: no cap."""
    uplink_bit_s: float = INFINITE
    downlink_bit_s: float = INFINITE
    latency_s: float = 0.0
    """One way."""


class Schedule(NamedTuple):
    """How the stages work together."""

    together: bool
    """Each has a mini-batch of its own in hand; else they take turns."""
    micro_batches: int = 1
    """In turn: parts that follow each other."""
    gradients: bool = True
    """Whether gradients go down."""
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


class Partition(NamedTuple):
    """The cuts, and what they cost."""

    cuts: tuple[int, ...]
    """Numbers of the layers that begin a shard, but for the first."""
    step_s: float
    stage_s: tuple[float, ...]
    """Of each device: its computation in a step."""
    memory_bytes: tuple[int, ...]
    kept_bytes: tuple[int, ...] = ()
    """Of that: what is kept by batch."""


def choose_cuts(layers: Sequence[LayerCost], devices: Sequence[Device], schedule: Schedule) -> Partition:
    """The cuts of the shortest step; of several, those furthest down. ScenarioError where no cuts fit the caps."""
    if len(layers) < len(devices):
        raise ScenarioError(f"{len(layers)} layers cannot be cut into {len(devices)} shards; use fewer devices")
    stages = _Stages(layers, devices, schedule)
    cuts = stages.shortest()
    if cuts is None:
        raise ScenarioError(_too_large(layers, devices, schedule))
    return cost_of(layers, devices, schedule, cuts)


def cost_of(
    layers: Sequence[LayerCost], devices: Sequence[Device], schedule: Schedule, cuts: Sequence[int]
) -> Partition:
    """What these cuts cost, whether they fit the caps or not."""
    stages = _Stages(layers, devices, schedule)
    ends = [0, *cuts, len(layers)]
    spans = list(zip(range(len(devices)), ends[:-1], ends[1:], strict=True))
    slowest = max(stages.pace[span] for span in spans)
    total = sum(stages.turn[span] for span in spans)
    return Partition(
        cuts=tuple(cuts),
        step_s=float(stages.step_s(slowest, total)),
        stage_s=tuple(float(stages.compute[span]) for span in spans),
        memory_bytes=tuple(int(stages.memory[span]) for span in spans),
        kept_bytes=tuple(schedule.kept_bytes(*stages.exchanged(first, end)) for _, first, end in spans),
    )


class _Stages:
    """The cost of every stage: arrays of shape (devices, L + 1, L + 1), by device, first layer, and end."""

    def __init__(self, layers: Sequence[LayerCost], devices: Sequence[Device], schedule: Schedule) -> None:
        self.schedule, self.layers = schedule, layers
        count, depth = len(devices), len(layers)
        shape = (count, depth + 1, depth + 1)
        self.compute, self.memory = np.full(shape, np.inf), np.full(shape, np.inf)
        self.pace, self.turn = np.full(shape, np.inf), np.full(shape, np.inf)
        """Of a stage: how long it, or one of its links, is busy in a step; what it adds where stages take turns."""
        self.fits = np.zeros(shape, dtype=np.bool_)
        for k, device in enumerate(devices):
            for first in range(k, depth):
                for end in range(first + 1, depth - (count - k - 1) + 1):
                    if (k == 0) == (first == 0) and (k == count - 1) == (end == depth):
                        self._fill((k, first, end), layers, devices, device)

    def _fill(
        self, at: tuple[int, int, int], layers: Sequence[LayerCost], devices: Sequence[Device], device: Device
    ) -> None:
        k, first, end = at
        inside, is_last = layers[first:end], end == len(layers)
        last = inside[-1]
        self.compute[at] = (
            sum(layer.compute_s for layer in inside) + (0.0 if is_last else last.end_compute_s)
        ) / device.speed
        self.memory[at] = sum(layer.memory_bytes for layer in inside) + (0 if is_last else last.end_memory_bytes)
        came, went = self.exchanged(first, end)
        self.memory[at] += self.schedule.kept_bytes(came, went)
        self.fits[at] = device.memory_bytes is None or self.memory[at] <= device.memory_bytes
        returns = 1 if self.schedule.gradients else 0
        up_s = 8 * (went + returns * came) / device.uplink_bit_s
        down_s = 8 * (came + returns * went) / device.downlink_bit_s
        every = self.schedule.every if k else 1
        self.pace[at] = max(self.compute[at] / every, max(up_s, down_s) / self.schedule.sends_every)
        self.turn[at] = self.compute[at]
        if not is_last:
            above = devices[k + 1]
            self.turn[at] += 8 * went / min(device.uplink_bit_s, above.downlink_bit_s)
            self.turn[at] += returns * 8 * went / min(above.uplink_bit_s, device.downlink_bit_s)
            self.turn[at] += (1 + returns) * self.schedule.micro_batches * (device.latency_s + above.latency_s)

    def exchanged(self, first: int, end: int) -> tuple[int, int]:
        """Bytes of the inputs that come from below, and of the outputs that go up."""
        came = self.layers[first - 1].output_bytes if first else 0
        return came, 0 if end == len(self.layers) else self.layers[end - 1].output_bytes

    def step_s(self, slowest: float, total: float) -> float:
        """By the slowest stage and the sum of all."""
        if self.schedule.together:
            return slowest
        parts = self.schedule.micro_batches
        return (total + (parts - 1) * slowest) / parts

    def shortest(self) -> list[int] | None:
        """The cuts of the shortest step; None where none fit."""
        fits = np.where(self.fits, self.pace, np.inf)
        candidates = np.unique(fits[np.isfinite(fits)])
        if not self.schedule.together and self.schedule.micro_batches == 1:
            candidates = candidates[-1:]  # the slowest does not matter
        best: tuple[float, list[int]] | None = None
        for slowest in candidates:
            found = self._least_sum(slowest)
            if found is None:
                continue
            step_s = self.step_s(slowest, found[0])
            if best is None or step_s < best[0]:
                best = step_s, found[1]
            if self.schedule.together:
                break  # the first that works is the least
        return best[1] if best else None

    def _least_sum(self, slowest: float) -> tuple[float, list[int]] | None:
        """The cuts of the least sum among those of which no stage is slower."""
        allowed = np.where(self.fits & (self.pace <= slowest), self.turn, np.inf)
        sums: NDArray[np.float64] = allowed[0, 0]  # by the end of the stages so far
        cuts: list[NDArray[np.int64]] = []
        for stage in allowed[1:]:
            through = sums[:, None] + stage
            cuts.append(through.argmin(axis=0))
            sums = through.min(axis=0)
        if not np.isfinite(sums[-1]):
            return None
        ends, place = [], len(sums) - 1
        for before in reversed(cuts):
            place = int(before[place])
            ends.append(place)
        return float(sums[-1]), ends[::-1]


def _too_large(layers: Sequence[LayerCost], devices: Sequence[Device], schedule: Schedule) -> str:
    need = sum(layer.memory_bytes for layer in layers)
    have = sum(device.memory_bytes or 0 for device in devices)
    cut_bytes = min((schedule.kept_bytes(0, layer.output_bytes) for layer in layers[:-1]), default=0)
    kept = f"; match: batch keeps {cut_bytes / 2**20:.0f} MiB below each cut at least" if schedule.batches else ""
    largest = max(range(len(layers)), key=lambda k: layers[k].memory_bytes)
    return (
        f"no cuts of the {len(layers)} layers fit the memory of the {len(devices)} devices: the layers need "
        f"{need / 2**20:.0f} MiB in all, layer {largest} alone {layers[largest].memory_bytes / 2**20:.0f} MiB, and the "
        f"devices have {have / 2**20:.0f} MiB{kept}. Use more devices, a larger cap or a smaller batch."
    )
