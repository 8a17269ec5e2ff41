"""How fast the devices of a class are: as fast as a device that is known, or as the scenario says."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from edgebed.core.planned.device_core import Core
from edgebed.scenario.devices.profile import DeviceName, Speed
from edgebed.scenario.mistakes.problems import Problem
from edgebed.scenario.section import Section


class DeviceSpeed(Section):
    """The keys that say how fast a device is; one of them at most."""

    device: DeviceName | None = None
    """What a worker is: a device's name, `raspberry-pi-4`, or the path of a profile of your own, relative to the
    scenario file. A gradient's virtual time follows from its speed; its memory is the cap where `memory` says nothing.
    """
    speed: Speed | None = None
    """Floating-point operations that a core does a second while it trains, at float32: `4 GFLOP/s`. A class without it
    and without `device` has the reference core, of 10 GFLOP/s."""
    compute_speed: float = Field(default=1.0, gt=0.0)
    """Speed relative to the machine itself, in virtual time to the reference core: at 0.5 a gradient takes twice as
    long."""

    @property
    def core(self) -> Core | None:
        """Return the device's core; None: the reference."""
        if self.device:
            return self.device.core
        return None if self.speed is None else Core.of_speed(self.speed)

    @classmethod
    def contradictions(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        """Yield a problem where two keys say how fast the device is."""
        yield from super().contradictions(given)
        said = [key for key in ("device", "speed") if given.get(key) is not None]
        if said and given.get("compute_speed", 1.0) != 1.0:
            said.append("compute_speed")
        if len(said) > 1:
            yield Problem(
                (said[1],), f"how fast the device is, '{said[0]}' says already; leave one of them out", at_key=True
            )
