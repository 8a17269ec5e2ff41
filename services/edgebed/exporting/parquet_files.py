"""Tables as Parquet by pyarrow: the columns of the CSV files with their types; null: not measured.

A number that is not finite stays NaN. A trial is a row group.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgebed.exporting.subjects import TABLES, tables_of
from edgebed.exporting.table import ExportTable
from edgebed.running.results import AnyTrial, Run

SUFFIX = ".parquet"


def is_ours(path: Path) -> bool:
    """Whether an export may have written this file."""
    return str(path) in {f"{table.name}{SUFFIX}" for table in TABLES}


def write(run: Run, trials: Sequence[AnyTrial], folder: Path) -> None:
    """Write a file for each table."""
    from pyarrow.parquet import ParquetWriter

    for table in tables_of(run):
        schema = _schema(table)
        with ParquetWriter(folder / f"{table.name}{SUFFIX}", schema) as writer:
            for trial in trials:
                writer.write_table(_group(table, run, trial, schema))


def _schema(table: ExportTable) -> Any:
    import pyarrow as pa

    kinds = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "yes or no": pa.bool_(),
    }
    return pa.schema([(column.name, kinds[column.kind]) for column in table.head])


def _group(table: ExportTable, run: Run, trial: AnyTrial, schema: Any) -> Any:
    import pyarrow as pa

    count, filled = table.rows_of(run, trial)
    columns = [[run.folder.name] * count, [trial.name] * count, *filled]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
