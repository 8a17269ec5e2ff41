"""A device's profile: how fast a core of it trains, what memory it has, and where these numbers come from. A YAML file.

    speed: 5.1 GFLOP/s
    overhead: 2ms
    memory: 4GiB
    measured: one thread, SGEMM of 64x64 matrices, 10.2 GFLOP/s; half of that
    source: https://example.org/results
    error: a factor of 2 for one model or another

Those beside this module come with edgebed; `device: raspberry-pi-4` names one. docs/devices.md has them in a table.
"""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, ValidationError, ValidationInfo, WithJsonSchema

from edgebed.core import units
from edgebed.core.errors import ScenarioError
from edgebed.core.package import PACKAGE
from edgebed.core.planned.device_core import Core
from edgebed.scenario import source
from edgebed.scenario.mistakes.problems import NotAllowedError, Problem, Problems, choose, problems_of, show
from edgebed.scenario.section import DurationFromZero, Form, Memory, Section, folder_of, of_pattern

SHIPPED = PACKAGE / "scenario" / "devices"
ENDINGS = (".yaml", ".yml")
EXAMPLE = "speed: 4 GFLOP/s"


def _above_zero(text: object) -> int:
    flop_s = units.parse_speed(text)
    if flop_s == 0:
        raise ValueError(f"{text} is not above 0")
    return flop_s


Speed = Annotated[
    int, Form(_above_zero, units.format_speed, of_pattern("speed", units.SPEED_PATTERN, "4 GFLOP/s", "500 MFLOP/s"))
]


class DeviceProfile(Section):
    """What is known of a device."""

    speed: Speed
    """Operations a second of one core while it trains, at float32."""
    overhead: DurationFromZero | None = None
    """Time of a gradient whatever its batch; if left out what the core needs for ten million operations."""
    memory: Memory | None = None
    """Memory of the whole device; none is known if left out."""
    measured: str = Field(min_length=1)
    """What was measured, and how the speed follows from that."""
    source: str = Field(min_length=1)
    """Where that was published, or on what it was measured."""
    error: str = Field(min_length=1)
    """By how much a gradient's time may be off."""


class DeviceFile(NamedTuple):
    """A profile, and what names it."""

    name: str
    """A name of those that come with edgebed, or the absolute path of the file."""
    content: DeviceProfile

    @property
    def core(self) -> Core:
        """The device's core as virtual time knows it; a file of the user's is called as it is, without its folder."""
        return Core.of_speed(self.content.speed, Path(self.name).stem, self.content.overhead)


def shipped_devices() -> dict[str, Path]:
    """The files that come with edgebed, by the device's name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}


def read_device(given: str, folder: Path = Path()) -> DeviceFile:
    """The profile that a scenario in `folder` means; ValueError where there is none, or with the mistakes in it."""
    shipped = shipped_devices()
    if given in shipped:
        return DeviceFile(given, _read(shipped[given]))
    if not given.endswith(ENDINGS):
        raise NotAllowedError(given, (*shipped, "the path of a profile, my-board.yaml"))
    return DeviceFile(str((folder / given).absolute()), _read(folder / given))


def _read(path: Path) -> DeviceProfile:
    try:
        root = source.read_file(path, what="a device's profile", example=EXAMPLE)
    except ScenarioError as error:
        raise Problems(Problem((), text) for text in error.problems) from None
    try:
        return DeviceProfile.model_validate(root.plain())
    except ValidationError as error:
        raise Problems(source.located(root, problems_of(error))) from None


def _read_named(given: object, info: ValidationInfo) -> DeviceFile:
    if not isinstance(given, str) or not given:
        raise ValueError(f"not the name of a device: {show(given)}; {choose(given, shipped_devices())}")
    return read_device(given, folder_of(info))


_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "enum": list(shipped_devices())},
        {"type": "string", "title": "path of a profile", "pattern": r"\.ya?ml$"},
    ]
}
DeviceName = Annotated[DeviceFile, Form(_read_named, lambda device: device.name, WithJsonSchema(_SCHEMA))]
