"""docs/exporting.md, from the tables that an export has."""

from collections.abc import Iterable

from docs.generate.rendering import field_texts, grid, render
from edgebed.core.measures.trial import ServerMeasures, ShardMeasures
from edgebed.exporting.curves import POINTS_MAX, RATES_MAX
from edgebed.exporting.subjects import TABLES
from edgebed.exporting.table import KEYS, Column
from edgebed.journal.summary import TrialSummary
from edgebed.reports.writing.figures import PRINTED_DPI, SIZE


def markdown() -> str:
    """The whole document."""
    return render(
        "exporting.md", columns=_columns, keys=KEYS, tables=TABLES, dpi=PRINTED_DPI, inches=f"{SIZE[0]:g}",
        rates_max=RATES_MAX, points_max=POINTS_MAX,
    )  # fmt: skip


def _columns(columns: Iterable[Column]) -> str:
    """A table of columns; those of a trial say what the summary's fields do."""
    structs = (TrialSummary, ServerMeasures, ShardMeasures)
    says = {name: text for struct in structs for name, text in field_texts(struct).items()}
    rows = ((f"`{column.name}`", column.kind, column.says or says[column.name]) for column in columns)
    return grid(("column", "kind", "meaning"), rows)
