"""Mahimahi's traces: a line for each packet of 1,500 bytes that may pass, with its time in milliseconds.

    0
    48          one packet may pass at 48 ms, two at 57 ms
    57
    57

The time of the last line is when the file is repeated. Each direction has a file of its own; where one ends before the
other, it is repeated until that ends. See Netravali et al. 2015, Mahimahi: Accurate Record-and-Replay for HTTP, and
mm-link(1). A link here follows the rate of each step, not each packet: how many pass in a step is the same.
"""

import hashlib
from pathlib import Path

from edgebed.core import units
from edgebed.scenario.mistakes.problems import show
from edgebed.scenario.traces.resampling import Packets, resample
from edgebed.scenario.traces.trace import Trace, problems, read_bytes

BYTES_MAX = 64 << 20
TOO_LARGE = "64 MiB; cut a piece out of it"
STEP_S = 1.0
DIGITS_MAX = 12


def read_mahimahi(up: Path | None, down: Path | None, step_s: float = STEP_S) -> Trace:
    """Read a trace of mahimahi's files, of one direction or both; `Problems` with the first mistake in each."""
    given = {"up": up, "down": down}
    files = {key: path.absolute() for key, path in given.items() if path is not None}
    texts = {key: read_bytes(path, BYTES_MAX, TOO_LARGE) for key, path in files.items()}
    directions = {key: read_packets(files[key], texts[key]) for key in files}
    resampled = resample(directions.get("up"), directions.get("down"), step_s, ", ".join(map(str, files.values())))
    return Trace(
        next(iter(files.values())),
        resampled.changes(),
        resampled.period_s,
        hashlib.sha256(b"".join(texts.values())).hexdigest(),
        given={**{key: str(path) for key, path in files.items()}, "step": units.format_duration(step_s)},
    )


def read_packets(path: Path, content: bytes) -> Packets:
    """Return the opportunities in a file; `Problems` with the first line that is none."""
    times_ms: list[int] = []
    for number, line in enumerate(content.splitlines(), start=1):
        text = line.strip()
        if not text:
            continue
        if not (text.isdigit() and len(text) <= DIGITS_MAX):
            told = f": {show(text.decode(errors='replace'))}" if times_ms else ""  # else it may be a file of secrets
            form = "a line has the time of one packet in whole milliseconds, as 57 (mahimahi's format)"
            raise problems(f"{path}:{number}: not a time{told}; {form}")
        if times_ms and int(text) < times_ms[-1]:
            raise problems(f"{path}:{number}: {int(text)} is before the {times_ms[-1]} of the line before; sort them")
        times_ms.append(int(text))
    if not times_ms or times_ms[-1] == 0:
        raise problems(f"{path}: no time above 0, at which the trace would be repeated; e.g. a line with 57")
    return Packets(tuple(times_ms))
