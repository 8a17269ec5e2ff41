"""Tables of runs as pandas' data frames, with the columns of the CSV files."""

import importlib.util
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from edgebed.core.errors import ScenarioError
from edgebed.exporting.subjects import TABLES, tables_of
from edgebed.exporting.table import ExportTable, Kind
from edgebed.journal.run_folder import RunFolder
from edgebed.running.results import AnyTrial, ProgramTrial, Run, Trial, load
from edgebed.scenario.mistakes.problems import choose

if TYPE_CHECKING:
    import pandas as pd

DTYPES: dict[Kind, str] = {"text": "object", "integer": "Int64", "number": "float64", "yes or no": "boolean"}
"""Types of columns; `Int64` and `boolean` have a missing value of their own."""


def to_pandas(runs: Run | AnyTrial | str | Sequence[Run | AnyTrial | str], table: str = "trials") -> "pd.DataFrame":
    """Return a table of one or several runs as a pandas data frame, one run's rows after the other's.

    Arguments:
        runs: runs or trials, or names of runs as `edgebed.load` takes them; one, or a list.
        table: what is in a row: `trials` (a trial's results), `evaluations` (a measured version), `updates`,
            `nodes`, `faults`, `phases`, `links`, `hosts`, `accounting`; of layer-wise training also `steps`,
            `module_losses`, `exchanges`; of a user's programs `measures`, `exits`, `connections`.

    The columns are those of `edgebed export --format csv`, `run` and `trial` first; a unit is at the end of a name:
    `time_s` in seconds, `traffic_bytes` in bytes of payload, accuracies from 0 to 1. What was not measured is missing.

    Raises ScenarioError where pandas is not installed, or there is no such table or run.

    Example:
        frame = edgebed.to_pandas(["quickstart/1", "quickstart/2"], "evaluations")
        frame.pivot_table(index="time_s", columns="trial", values="accuracy").plot()
    """
    if importlib.util.find_spec("pandas") is None:
        raise ScenarioError("pandas is not installed; pip install 'edgebed[pandas]' installs it")
    import pandas as pd

    tables = {each.name: each for each in TABLES}
    if table not in tables:
        raise ScenarioError(f"table: {table!r} is unknown; {choose(table, tables)}")
    chosen = tables[table]
    given = [runs] if isinstance(runs, Run | Trial | ProgramTrial | str) else runs
    frames = [
        _frame(pd, found, run, trial)
        for run, trial in _trials_of(given)
        for found in tables_of(run)
        if found.name == table
    ]
    if not frames:
        return pd.DataFrame({each.name: pd.Series(dtype=DTYPES[each.kind]) for each in chosen.head})
    return pd.concat(frames, ignore_index=True)


def _trials_of(given: Sequence[Run | AnyTrial | str]) -> Iterator[tuple[Run, AnyTrial]]:
    for each in given:
        if isinstance(each, Trial | ProgramTrial):
            yield Run(RunFolder(each.folder.path.parent)), each
        else:
            run = each if isinstance(each, Run) else load(each)
            yield from ((run, trial) for trial in run.begun.values())


def _frame(pd: Any, table: ExportTable, run: Run, trial: AnyTrial) -> "pd.DataFrame":
    count, filled = table.rows_of(run, trial)
    values = ([run.folder.name] * count, [trial.name] * count, *filled)
    columns = {
        column.name: pd.Series(list(each), dtype=DTYPES[column.kind])
        for column, each in zip(table.head, values, strict=True)
    }
    return pd.DataFrame(columns)
