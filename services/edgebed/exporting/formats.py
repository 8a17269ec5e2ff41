"""`export`: a run, or some of its trials, as files that other tools read."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from edgebed.core.errors import InfrastructureError, ScenarioError
from edgebed.exporting import Format, csv_files, event_files, parquet_files
from edgebed.exporting.folder import replacing, require_folder
from edgebed.running.results import AnyTrial, Run

FILES: dict[str, ModuleType] = {"csv": csv_files, "tensorboard": event_files, "parquet": parquet_files}
"""Formats that are folders of files, and the modules that write them: `is_ours(path)` and `write(run, trials, folder)`.
"""
EXTRAS = {
    "mlflow": ("mlflow", "sqlalchemy", "alembic"),
    "parquet": ("pyarrow",),
    "tensorboard": ("tensorboardX",),
}
"""Packages that a format needs besides, which the extra of the same name installs."""
FOLDER = "exports"


def require_extra(kind: Format) -> None:
    """Check that what the format needs is installed; ScenarioError with the command that installs it."""
    missing = [name for name in EXTRAS.get(kind, ()) if importlib.util.find_spec(name) is None]
    if missing:
        are = "are" if len(missing) > 1 else "is"
        raise ScenarioError(
            f"--format {kind}: {' and '.join(missing)} {are} not installed; pip install 'edgebed[{kind}]' installs it"
        )


def export_files(run: Run, trials: Sequence[AnyTrial], kind: Format, output: Path | None) -> Path:
    """Write a folder of files, into the run's own folder without `output`; return its path.

    Raises InfrastructureError where that is impossible.
    """
    form = FILES[kind]
    place = run.path / FOLDER / kind if output is None else output
    if output is None:
        try:
            place.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise InfrastructureError(
                f"{place.parent}: cannot be made: {error.strerror}; choose another folder with --output"
            ) from error
    require_folder(place, form.is_ours)
    with replacing(place) as staged:
        form.write(run, trials, staged)
    return place
