"""`availability`: workers come and go as recorded devices did.

A device that is away has lost its process, as a phone whose app is ended, or its link, as one without a network: `away`
says which. What lasts less than `SHORTEST_S` is passed over: so long a change may take itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

from pydantic import Field, ValidationInfo, WithJsonSchema

from edgebed.core.actions import Action
from edgebed.core.planned.fault import FaultPlan, FaultStep, Trigger
from edgebed.core.quantities import count_text
from edgebed.scenario.faults.churn import ONLY_WORKERS
from edgebed.scenario.faults.flap import SHORTEST_S
from edgebed.scenario.faults.settings.entry import FaultSection, step
from edgebed.scenario.faults.settings.targets import Draw, Roster, Target, nodes_of
from edgebed.scenario.mistakes.problems import Problem, Problems, show
from edgebed.scenario.names import WORKERS
from edgebed.scenario.section import DurationFromZero, Form, file_name, folder_of
from edgebed.scenario.traces.availability import Availability, Stretch, read_availability

ACTIONS: Mapping[str, tuple[Action, Action]] = MappingProxyType({"kill": ("kill", "launch"), "cut": ("cut", "heal")})
"""What is done to a worker when it goes, and when it comes back."""


def _read(given: object, info: ValidationInfo) -> Availability:
    if isinstance(given, Availability):
        return given
    name = file_name(given, "a CSV file, found from the scenario file's folder")
    return read_availability(folder_of(info) / name)


AvailabilityFile = Annotated[
    Availability,
    Form(
        _read,
        lambda found: str(found.path),
        WithJsonSchema({"type": "string", "title": "path of a CSV file", "pattern": "."}),
    ),
]


class AvailabilityFault(FaultSection):
    """Workers come and go as devices did in a recording, a CSV file of device, from and until.

    Devices that are called as workers are these; else the first device of the file is the first worker, and so on.
    Before `at` all are there; after the last row of its device a worker is away.
    """

    kind: ClassVar[str] = "availability"
    example: ClassVar[str] = "{ availability: phones.csv, of: edge, at: 0s }"
    triggers: ClassVar[tuple[str, ...]] = ("at",)
    repeats: ClassVar[bool] = False
    not_for = MappingProxyType({"server": ONLY_WORKERS, "evaluator": ONLY_WORKERS})
    not_here = MappingProxyType(
        {
            "at_update": "its moments are recorded; give at",
            "every": "when workers are away is recorded; give another file",
            "until": "when workers are away is recorded; give another file",
        }
    )

    availability: AvailabilityFile
    """CSV file, relative to the scenario file, of when each device was there."""
    of: Target = WORKERS
    """Target workers."""
    away: Literal["kill", "cut"] = "kill"
    """What a worker is while it is away: killed, and it comes back as a new one that knows nothing of before; or cut
    from the network, with all that it knows."""
    skip: DurationFromZero = 0.0
    """How much of the recording is passed over."""
    faster: float = Field(default=1.0, gt=0.0)
    """How many seconds of the recording pass in one of training."""

    @property
    def target(self) -> Target:
        """Return the workers concerned, which do not stand at the kind's key."""
        return self.of

    def steps(self, node: str) -> tuple[FaultStep, ...]:
        """Return no steps: each absence has its own, which `resolve` makes."""
        return ()

    def resolve(self, name: str, roster: Roster, draw: Draw) -> Iterator[FaultPlan]:
        """Yield one fault for each time that a worker is away."""
        go, come = ACTIONS[self.away]
        for node, present in self._devices_of(nodes_of(self.of, roster, draw)).items():
            for begin_s, end_s in self._absences(present):
                steps = [step(0.0, node, go)]
                if end_s is not None:
                    steps.append(step(round(end_s - begin_s, 6), node, come))
                trigger = Trigger(at_s=begin_s)
                yield FaultPlan(name=name, node=node, trigger=trigger, steps=tuple(steps), recurs=True)

    def problems(self, roster: Roster) -> Iterator[Problem]:
        """Yield what does not fit the workers, and a recording whose devices are not theirs."""
        found = list(self.target_problems("of", self.of, roster))
        yield from found
        if not found:
            try:
                self._devices_of(nodes_of(self.of, roster, lambda _node, _k: 0.0))
            except Problems as error:
                yield from error.problems

    def _devices_of(self, members: Sequence[str]) -> dict[str, tuple[Stretch, ...]]:
        """Return when each worker is there; `Problems` where devices and workers do not fit together."""
        devices = self.availability.devices
        if any(device in members for device in devices):
            strange = [device for device in devices if device not in members]
            if strange:
                message = f"device {show(strange[0])} is none of the workers meant, though others are; name all so"
                raise Problems([Problem((self.kind,), message)])
            return {node: devices[node] for node in members if node in devices}
        if len(devices) < len(members):
            known = f"{count_text(len(devices), 'device')} for {count_text(len(members), 'worker')}"
            message = f"{known}; mean fewer, e.g. of: {{count: {len(devices)}}}"
            raise Problems([Problem((self.kind,), message)])
        return dict(zip(members, devices.values(), strict=False))

    def _absences(self, present: Sequence[Stretch]) -> Iterator[tuple[float, float | None]]:
        """Yield when a worker goes and comes back, in seconds of training; None: never."""
        began_s = self.at or 0.0
        there = [tuple(self._moment_s(time_s) for time_s in stretch) for stretch in present]
        there = [(begin_s, end_s) for begin_s, end_s in there if end_s - max(begin_s, began_s) >= SHORTEST_S]
        ends_s = [began_s, *(end_s for _, end_s in there)]
        begins_s = [*(max(begin_s, began_s) for begin_s, _ in there), None]
        for gone_s, back_s in zip(ends_s, begins_s, strict=True):
            if back_s is None or back_s - gone_s >= SHORTEST_S:
                yield round(gone_s, 6), None if back_s is None else round(back_s, 6)

    def _moment_s(self, time_s: float) -> float:
        """Return the time of training at which a time of the recording is."""
        return (self.at or 0.0) + (time_s - self.skip) / self.faster
