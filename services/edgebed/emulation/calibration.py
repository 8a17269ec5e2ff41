"""What this host was measured to emulate, and what a plan that asks for more is to be warned of.

`studies/host/calibrate.py` measures, `edgebed calibrate` shows, `plan` warns. The results are stored in the user's
cache as JSON; they hold for the kernel and the number of cores that they were measured with. Rates are bits a second on
the wire.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from edgebed.core.errors import ScenarioError
from edgebed.core.framing import HEADER_BYTES, SEGMENT_BYTES
from edgebed.core.host import machine
from edgebed.core.plan import TrainingNode, TrainingPlan
from edgebed.core.units import format_rate

Place = Literal["docker", "namespaces", "model"]
Direction = Literal["up", "down"]
WHAT_HOLDS_IN: dict[Place, str] = {
    "docker": "the docker runtime: the kernel's queues in each container",
    "namespaces": "the process runtime as root: the kernel's queues in a network namespace for each node",
    "model": "the process runtime without root: the transport's own link model",
}
PAYLOAD_SHARE = SEGMENT_BYTES / (SEGMENT_BYTES + HEADER_BYTES)
"""Share of a rate on the wire that is left for payload."""
TOLERANCES = (0.1, 0.02)
"""Shares by which a rate may miss before `plan` warns, the larger first."""
TOGETHER_TOLERANCE = 0.05
"""Share by which links that are busy at once may miss."""


class Bulk(msgspec.Struct, frozen=True, kw_only=True):
    """How fast large messages passed a link of one rate, in one direction."""

    rate_bit_s: int
    direction: Direction
    messages: int
    goodput_bit_s: float
    """Payload a second: the median of the messages, each without the burst that its beginning passes in."""

    @property
    def deviation(self) -> float:
        """By how much the goodput missed what the rate leaves for payload; below 0: too slow."""
        return self.goodput_bit_s / (self.rate_bit_s * PAYLOAD_SHARE) - 1.0


class Single(msgspec.Struct, frozen=True, kw_only=True):
    """How long one small push took after a silence."""

    rate_bit_s: int | None
    """Rate of the link; None: no limit, so that this is the nodes' own time."""
    messages: int
    bytes: float
    """Payload; like the times the median of the messages."""
    time_s: float
    ideal_s: float
    """Ideal time: (bytes on the wire - burst) / rate; 0 without a limit."""

    @property
    def deviation(self) -> float:
        """By how much the push took longer than the ideal; NaN without a limit."""
        return self.time_s / self.ideal_s - 1.0 if self.ideal_s else math.nan


class Cpu(msgspec.Struct, frozen=True, kw_only=True):
    """What a busy node with a CPU cap got."""

    asked: float
    """CPU cap that was asked for, in cores."""
    got: float

    @property
    def deviation(self) -> float:
        """By how much the node got more than asked."""
        return self.got / self.asked - 1.0


class Together(msgspec.Struct, frozen=True, kw_only=True):
    """Many links of one rate, each of them always busy in one direction or the other."""

    nodes: int
    rate_bit_s: int
    messages: int
    held: float
    """Time that the messages should have taken, by the time that they took."""
    host_busy: float | None
    """Share of all cores' time, from 0 to 1."""
    node_bytes: float | None
    """Memory of a node, the median."""

    @property
    def holds(self) -> bool:
        """Whether the links were as fast together as asked."""
        return abs(self.held - 1.0) <= TOGETHER_TOLERANCE


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """What virtual time has no model of, and a scenario may state for it."""

    exchange_s: float
    """What a push of `asgd` and its answer take beside link and computation, with the small model on the digits."""
    restart_s: dict[str, float]
    """What a restart takes beside its delay, of the `server` and of `others`."""


class PlaceMeasurements(msgspec.Struct, frozen=True, kw_only=True):
    """All that was measured in one place."""

    when: str
    """Time of the measurement, UTC, ISO 8601."""
    bulk: tuple[Bulk, ...] = ()
    single: tuple[Single, ...] = ()
    cpu: tuple[Cpu, ...] = ()
    together: tuple[Together, ...] = ()
    beside: tuple[Beside, ...] = ()
    problems: tuple[str, ...] = ()
    """What could not be measured, and why."""

    def highest_bit_s(self, direction: Direction, tolerance: float) -> int:
        """The highest rate that did not miss by more than `tolerance`; 0 if none."""
        held = (each for each in self.bulk if each.direction == direction and abs(each.deviation) <= tolerance)
        return max((each.rate_bit_s for each in held), default=0)

    def most_nodes(self) -> int:
        """The most nodes whose links held at once, at whatever rate; 0 if none."""
        return max((each.nodes for each in self.together if each.holds), default=0)

    def most_together(self) -> Together | None:
        """The links that held at once and carried most."""
        held = (each for each in self.together if each.holds)
        return max(held, key=lambda each: each.nodes * each.rate_bit_s, default=None)


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The machine, as `core/host.py` tells it."""

    kernel: str
    machine: str
    cpu: str
    cores: int
    memory_bytes: int

    @classmethod
    def here(cls) -> "HostFacts":
        """Return the facts of this machine."""
        return msgspec.convert(machine(), cls)


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """What one host can emulate."""

    host: HostFacts
    places: dict[Place, PlaceMeasurements] = {}

    def holds_on(self, host: HostFacts) -> bool:
        """Whether it was measured with this kernel and this number of cores."""
        return (self.host.kernel, self.host.cores) == (host.kernel, host.cores)

    def with_place(self, place: Place, measured: PlaceMeasurements) -> "Calibration":
        """Return the calibration with the results of one place."""
        return msgspec.structs.replace(self, places={**self.places, place: measured})


# --- where it is stored -----------------------------------------------------------------------------------------


def calibration_path(environment: Mapping[str, str] = os.environ) -> Path:
    """$EDGEBED_CALIBRATION, else `edgebed/calibration.json` in the user's cache."""
    if chosen := environment.get("EDGEBED_CALIBRATION"):
        return Path(chosen).expanduser()
    cache = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "edgebed" / "calibration.json"


def load(path: Path) -> Calibration | None:
    """Load what was measured before; None where nothing was, or by a version whose results cannot be read here."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Calibration)
    except (OSError, msgspec.DecodeError):
        return None


def save(calibration: Calibration, path: Path) -> None:
    """Store the calibration; ScenarioError where the file cannot be written."""
    content = msgspec.json.format(msgspec.json.encode(calibration)) + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise ScenarioError(
            f"{path}: the calibration cannot be written: {error.strerror}; choose another place with --output, "
            "or for good with EDGEBED_CALIBRATION"
        ) from error


# --- what a plan is warned of -----------------------------------------------------------------------------------


def warnings_here(plan: TrainingPlan, place: Place) -> Iterator[str]:
    """Yield the warnings for this host, by its stored calibration."""
    yield from calibration_warnings(plan, place, load(calibration_path()), HostFacts.here())


def calibration_warnings(
    plan: TrainingPlan, place: Place, calibration: Calibration | None, host: HostFacts
) -> Iterator[str]:
    """Yield a sentence for each thing that `plan` asks for in `place` and that was not seen to hold on `host`."""
    limited = [node for node in plan.nodes if node.link.limited]
    if not limited:
        return
    measured = calibration.places.get(place) if calibration else None
    if calibration is None or measured is None:
        yield f"whether this host holds these links is not known ({WHAT_HOLDS_IN[place]}): run `edgebed calibrate`."
        return
    if not calibration.holds_on(host):
        yield (
            f"this host has changed since it was calibrated ({_briefly(calibration.host)}; now {_briefly(host)}): "
            "run `edgebed calibrate` again."
        )
        return
    yield from _rate_warnings(limited, measured)
    yield from _total_warnings(plan, limited, measured)


def _rate_warnings(limited: Sequence[TrainingNode], measured: PlaceMeasurements) -> Iterator[str]:
    """Warn of rates beyond those that held; once for a device class."""
    directions: tuple[tuple[Direction, str], ...] = (("up", "uplink"), ("down", "downlink"))
    for node in {node.device_class: node for node in limited}.values():
        for direction, name in directions:
            rate_bit_s = highest_asked_bit_s(node, name)
            for tolerance in TOLERANCES:
                held_bit_s = measured.highest_bit_s(direction, tolerance)
                if rate_bit_s > held_bit_s:
                    most = f"the highest is {format_rate(held_bit_s)}" if held_bit_s else "none was"
                    yield (
                        f"{node.device_class}: {name} {format_rate(rate_bit_s)} is above what `edgebed calibrate` "
                        f"found to hold within {100 * tolerance:g} % on this host; {most}."
                    )
                    break


def _total_warnings(plan: TrainingPlan, limited: Sequence[TrainingNode], measured: PlaceMeasurements) -> Iterator[str]:
    """Warn of more at once than was measured."""
    together = measured.most_together()
    if together is None:
        return
    held_bit_s = together.nodes * together.rate_bit_s
    workers = [node for node in limited if node.role == "worker"]
    total_bit_s = sum(max(highest_asked_bit_s(node, name) for name in ("uplink", "downlink")) for node in workers)
    if total_bit_s > held_bit_s:
        yield (
            f"the workers' links add up to {format_rate(total_bit_s)}; what `edgebed calibrate` found to hold at once "
            f"on this host is {format_rate(held_bit_s)} ({together.nodes} links of {format_rate(together.rate_bit_s)})."
        )
    if len(plan.workers()) > measured.most_nodes():
        yield (
            f"{len(plan.workers())} workers are more than the {measured.most_nodes()} whose links `edgebed calibrate` "
            "found to hold at once on this host."
        )


def highest_asked_bit_s(node: TrainingNode, name: str) -> int:
    """Return the highest rate that a node's `uplink` or `downlink` ever has; 0 where it is never limited."""
    rates: list[Any] = [getattr(each, f"{name}_bit_s") for each in (node.link, *node.link.changes)]
    return max((rate for rate in rates if rate is not None), default=0)


def _briefly(host: HostFacts) -> str:
    return f"{host.kernel}, {host.cores} cores"
