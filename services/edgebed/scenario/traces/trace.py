"""A recorded bandwidth as a link follows it, and what its file says of where it comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edgebed.core import units
from edgebed.core.planned.link import LinkChange
from edgebed.core.reading import open_file
from edgebed.scenario.mistakes.problems import Problem, Problems, show

SPACING_MIN_S = 0.1  # whether a kernel follows what changes faster cannot be read back
ROWS_MAX = 10_000
ABOUT = ("family", "source", "licence")
"""What the remarks of a file may say of it, e.g. `# licence: CC-BY-4.0`."""


@dataclass(frozen=True)
class Rates:
    """The rates of one direction over a trace's period, in bit/s."""

    mean: float
    least: int
    most: int


@dataclass(frozen=True)
class Trace:
    """A recorded trace, read from a file, or from one for each direction."""

    path: Path
    """Absolute path, so that the file is found from anywhere; with two files that of the first."""
    changes: tuple[LinkChange, ...]
    """Changes of the link from 0 on; each with the same directions."""
    period_s: float
    sha256: str = field(default="", compare=False)
    """Digest of the file's bytes; with two files of both, upwards first."""
    about: Mapping[str, str] = field(default_factory=dict, compare=False)
    """What the file says of itself, by the words of `ABOUT`."""
    given: str | Mapping[str, str] = field(default="", compare=False)
    """What a resolved scenario says to name this trace; its path if empty."""

    @property
    def has_up(self) -> bool:
        """Whether the trace has the rates upwards."""
        return self.changes[0].uplink_bit_s is not None

    @property
    def has_down(self) -> bool:
        """Whether the trace has the rates downwards."""
        return self.changes[0].downlink_bit_s is not None

    def up(self) -> Rates | None:
        """Return the rates upwards; None where the trace has none."""
        return self._rates([change.uplink_bit_s for change in self.changes])

    def down(self) -> Rates | None:
        """Return the rates downwards; None where the trace has none."""
        return self._rates([change.downlink_bit_s for change in self.changes])

    def facts(self) -> dict[str, str]:
        """Return what a run's manifest has of the trace."""
        return facts_of(self.path, self.about, self.sha256)

    def _rates(self, rates: Sequence[int | None]) -> Rates | None:
        known = [rate for rate in rates if rate is not None]
        if not known:
            return None
        ends = [*(change.at_s for change in self.changes[1:]), self.period_s]
        spans = [end - change.at_s for change, end in zip(self.changes, ends, strict=True)]
        total = sum(rate * span for rate, span in zip(known, spans, strict=True))
        return Rates(total / self.period_s, min(known), max(known))


def facts_of(path: Path, about: Mapping[str, str], sha256: str) -> dict[str, str]:
    """Return what a run's manifest has of a recorded file."""
    return {"path": str(path), **{word: about[word] for word in ABOUT if word in about}, "sha256": sha256}


def check_num_rows(what: str, num_rows: int) -> None:
    """Raise `Problems` where steps make more rows than a trace may have."""
    if num_rows > ROWS_MAX:
        raise problems(f"{what}: {num_rows:,} rows; a trace has up to {ROWS_MAX:,}. Take longer steps")


def check_step(step_s: float) -> float:
    """Return a step that a trace may have; else ValueError."""
    if step_s < SPACING_MIN_S:
        least = units.format_duration(SPACING_MIN_S)
        raise ValueError(f"{units.format_duration(step_s)} is below {least}; faster changes cannot be checked")
    return step_s


def read_bytes(path: Path, bytes_max: int, too_large: str) -> bytes:
    """Return what is in a recorded file; `Problems` where it cannot be read."""
    try:
        with open_file(path) as file:
            content = file.read(bytes_max + 1)
    except OSError as error:
        raise problems(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise problems(f"not the name of a file: {show(str(path))}") from None
    if len(content) > bytes_max:
        raise problems(f"{path} is larger than {too_large}")
    return content


def problems(*messages: str) -> Problems:
    """Return mistakes in a file, each a sentence that says where it is."""
    return Problems(Problem((), message) for message in messages)
