"""Public collections of recorded bandwidth, and how their files become traces of ours.

Collections are not part of edgebed: most have licences that do not go with its own. Whoever has fetched one converts
what he needs. The same files give the same traces, to the byte: see resampling.py.

    mahimahi      a line for each packet of 1,500 bytes that may pass (mahimahi.py)
    two columns   seconds and Mbit/s, as Pensieve has them: a rate holds from the time of the line before to that of its
                  own, so the first line is where the recording begins, and nothing else
    G-NetTrack    a CSV file with a row each second, of which Timestamp and DL_bitrate (kbit/s) are read: a rate holds
                  until the next time, of several at one time the last one, and the last row is the end. UL_bitrate is
                  what a download acknowledges or a viewer asks for, not what the uplink could carry: it is left out.
"""

import csv
import datetime as dt
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

from edgebed.core import units
from edgebed.scenario.mistakes.problems import choose, show
from edgebed.scenario.traces.mahimahi import BYTES_MAX, TOO_LARGE, read_packets
from edgebed.scenario.traces.resampling import US_A_SECOND, Pieces, Recording, Resampled, resample
from edgebed.scenario.traces.trace import problems, read_bytes

Reader = Callable[[Path, bytes], Recording]
NUMBER_FORM = r"[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
TWO_COLUMNS = re.compile(rf"\s*({NUMBER_FORM})\s+({NUMBER_FORM})\s*")
NETTRACK_TIME = "%Y.%m.%d_%H.%M.%S"


@dataclass(frozen=True)
class Collection:
    """Files of recorded bandwidth that somebody has published."""

    source: str
    """Address of the collection."""
    folders: str
    """Where in it the files are."""
    licence: str
    """Licence by its SPDX name, as the collection states it."""
    families: Mapping[str, str]
    """Kinds of network, each with a pattern that is found in the names of its files."""
    read: Reader
    cite: str
    """Work to be cited."""
    both_ways: bool = False
    """Whether there is a file for each direction, with the endings .up and .down."""

    def family(self, path: Path) -> str:
        """Return the kind of network that a file was recorded in; `Problems` if it is none of the collection's."""
        for pattern, family in self.families.items():
            if re.search(pattern, path.name):
                return family
        known = ", ".join(f"{family} ({pattern})" for pattern, family in self.families.items())
        raise problems(f"{path}: its name is none of this collection's: {known}; give files as they were published")


@dataclass(frozen=True)
class Converted:
    """A trace of ours as text, and its name."""

    name: str
    text: str


def convert(name: str, paths: Sequence[Path], step_s: float) -> Iterator[Converted]:
    """Yield a trace for each recording in files of a collection; `Problems` where one is not what it should be."""
    if name not in COLLECTIONS:
        raise problems(f"no collection {show(name)}; {choose(name, COLLECTIONS)}")
    collection = COLLECTIONS[name]
    for recording, files in _recordings(collection, paths).items():
        contents = {key: read_bytes(path, BYTES_MAX, TOO_LARGE) for key, path in files.items()}
        read = {key: collection.read(files[key], contents[key]) for key in files}
        first = next(iter(files.values()))
        rows = resample(read.get("up"), read.get("down"), step_s, str(first))
        digests = [f"{files[key].name} sha256 {hashlib.sha256(each).hexdigest()}" for key, each in contents.items()]
        about = {
            "family": collection.family(first),
            "source": collection.source,
            "licence": collection.licence,
            "cite": collection.cite,
            "converted": f"in steps of {units.format_duration(step_s)}, from {', '.join(digests)}",
        }
        yield Converted(recording, trace_text(rows, about))


def trace_text(rows: Resampled, about: Mapping[str, str]) -> str:
    """Return the text of a trace, with what there is to say of it in remarks."""
    directions = {"up_bit": rows.up_bit_s, "down_bit": rows.down_bit_s}
    columns = {key: rates for key, rates in directions.items() if rates}
    lines = [f"# {word}: {told}" for word, told in about.items()]
    lines.append(",".join(["time_s", *columns]))
    for k, bound_us in enumerate(rows.bounds_us):
        is_last = k == len(rows.bounds_us) - 1
        cells = ["" if is_last else str(rates[k]) for rates in columns.values()]
        lines.append(",".join([_seconds_text(bound_us), *cells]))
    return "\n".join(lines) + "\n"


def _recordings(collection: Collection, paths: Sequence[Path]) -> dict[str, dict[str, Path]]:
    """Return the files of each recording by direction, by a name that a scenario can say."""
    found: dict[str, dict[str, Path]] = {}
    for path in paths:
        key = path.suffix.removeprefix(".") if collection.both_ways else "down"
        if key not in ("up", "down"):
            raise problems(f"{path}: its ending does not say the direction; this collection has .up and .down")
        stem = path.with_suffix("").name if collection.both_ways else path.name
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", re.sub(r"\.(log|txt|csv)$", "", stem))
        if key in (files := found.setdefault(name, {})):
            raise problems(f"{path} and {files[key]} would both be called {name}; convert them into different folders")
        files[key] = path
    return {name: dict(sorted(files.items(), reverse=True)) for name, files in found.items()}


def read_two_columns(path: Path, content: bytes) -> Pieces:
    """Return the recording in a file of two columns; `Problems` with the first line that is wrong."""
    times_us: list[int] = []
    rates: list[Fraction] = []
    for number, line in enumerate(content.splitlines(), start=1):
        if not (text := line.decode(errors="replace")).strip():
            continue
        match = TWO_COLUMNS.fullmatch(text)
        if match is None:
            raise problems(f"{path}:{number}: not seconds and Mbit/s: {show(text)}; e.g. 1.5 4.03")
        time_us = round(Fraction(match[1]) * US_A_SECOND)
        if times_us and time_us <= times_us[-1]:
            raise problems(f"{path}:{number}: {match[1]} s is not after the line before; times increase")
        times_us.append(time_us)
        rates.append(Fraction(match[2]) * 1_000_000)
    return _pieces(path, times_us, rates[1:])


def read_nettrack(path: Path, content: bytes) -> Pieces:
    """Return the rates downwards in a file of G-NetTrack's; `Problems` with the first row that is wrong."""
    rows = csv.DictReader(content.decode(errors="replace").splitlines())
    if not {"Timestamp", "DL_bitrate"} <= set(rows.fieldnames or ()):
        raise problems(f"{path}:1: no columns Timestamp and DL_bitrate, as G-NetTrack writes them")
    kept: dict[int, Fraction] = {}
    began: dt.datetime | None = None
    for row in rows:
        place = f"{path}:{rows.line_num}"
        try:
            time = dt.datetime.strptime(row["Timestamp"], NETTRACK_TIME)  # noqa: DTZ007 - only differences count
            rate_kbit_s = Fraction(row["DL_bitrate"])
        except (TypeError, ValueError):
            told = show(f"{row['Timestamp']},{row['DL_bitrate']}")
            raise problems(f"{place}: not a time and kbit/s: {told}; e.g. 2019.11.25_15.34.34 and 1520") from None
        began = began or time
        time_us = round((time - began).total_seconds()) * US_A_SECOND
        if rate_kbit_s < 0 or (kept and time_us < next(reversed(kept))):
            raise problems(f"{place}: a rate below 0, or a time before that of the row before")
        kept[time_us] = rate_kbit_s * 1000
    return _pieces(path, [*kept], [*kept.values()][:-1])


def _pieces(path: Path, times_us: Sequence[int], rates_bit_s: Sequence[Fraction]) -> Pieces:
    if len(times_us) < 2:
        raise problems(f"{path}: {len(times_us)} times; a recording has two or more")
    return Pieces(tuple(time_us - times_us[0] for time_us in times_us), tuple(rates_bit_s))


def _seconds_text(time_us: int) -> str:
    seconds, rest_us = divmod(time_us, US_A_SECOND)
    return f"{seconds}.{rest_us:06}".rstrip("0").rstrip(".")


COLLECTIONS: Mapping[str, Collection] = MappingProxyType({
    "mahimahi": Collection(
        source="https://github.com/ravinet/mahimahi",
        folders="traces",
        licence="GPL-3.0-or-later",
        families={"LTE": "LTE", "UMTS": "3G", "EVDO": "3G"},
        read=read_packets,
        cite="Winstein, Sivaraman and Balakrishnan 2013, Stochastic Forecasts Achieve High Throughput and Low Delay "
        "over Cellular Networks",
        both_ways=True,
    ),
    "pensieve": Collection(
        source="https://github.com/confiwent/Real-world-bandwidth-traces",
        folders="cooked_3gp, traces_3gp, fcc_and_hsdpa/cooked_traces",
        licence="MIT",
        families={r"^(norway_|(bus|car|ferry|metro|train|tram)\.)": "HSDPA", r"^trace_[0-9]+_": "fixed line"},
        read=read_two_columns,
        cite="HSDPA: Riiser et al. 2013, Commute Path Bandwidth Traces from 3G Networks; fixed lines: FCC, Measuring "
        "Broadband America 2016",
    ),
    "5gdataset": Collection(
        source="https://github.com/uccmisl/5Gdataset",
        folders="5G-production-dataset.zip, unpacked",
        licence="GPL-3.0-only",
        families={r"^B_.*\.csv$": "5G"},
        read=read_nettrack,
        cite="Raca, Leahy, Sreenan and Quinlan 2020, Beyond Throughput, The Next Generation: A 5G Dataset with Channel "
        "and Context Metrics",
    ),
})  # fmt: skip
"""The collections that are known here."""
