"""Traces that a scenario can name: those shipped with edgebed, and those converted into the folder of data files."""

from collections.abc import Mapping
from pathlib import Path

from edgebed.learning.data_sets.registry import data_directory
from edgebed.scenario.mistakes.problems import Problems, show
from edgebed.scenario.traces.csv_file import read_trace
from edgebed.scenario.traces.trace import Trace, problems

SHIPPED = Path(__file__).parent / "shipped"
NAMED_MAX = 12


def converted_folder() -> Path:
    """Return where converted traces lie unless another folder is asked for."""
    return data_directory() / "traces"


def known() -> Mapping[str, Path]:
    """Return the files of all traces by name; a shipped one stands before another of its name."""
    files = [*sorted(converted_folder().glob("*.csv")), *sorted(SHIPPED.glob("*.csv"))]
    return {path.stem: path for path in files}


def find_trace(given: str, folder: Path) -> Trace:
    """Return the trace in a file, found from `folder`, or that of a name; `Problems` where there is neither."""
    path = folder / given
    try:
        is_there = path.exists()
    except (OSError, ValueError):
        is_there = False
    if is_there or Path(given).name != given:
        return read_trace(path)
    names = known()
    if given in names:
        return read_trace(names[given])
    try:
        return read_trace(path)
    except Problems as error:
        some = ", ".join([*names][:NAMED_MAX])
        reason = "; ".join(problem.message for problem in error.problems)
        raise problems(f"{reason}; nor is {show(given)} the name of a trace: {some} (see edgebed traces)") from None
