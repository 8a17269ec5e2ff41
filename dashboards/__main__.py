"""Writes Grafana's dashboards: `python -m dashboards`, in the repository's root; with a folder, there.

`python -m dashboards --importable FOLDER` writes them for another Grafana, which asks for its Prometheus as it imports
one (Dashboards, New, Import).

Each module of `DASHBOARDS` makes one, which answers one question, from the parts in `building/`. Tests keep the
committed files equal to what this writes, check them against Grafana's own types, and ask a real Prometheus every
query. Without a folder it also copies the recording rules into the package.
"""

import json
import shutil
import sys
from pathlib import Path

from dashboards import comparison, layers, network, programs, run_overview, runs, staleness_and_faults, workers

DASHBOARDS = (runs, run_overview, workers, network, staleness_and_faults, layers, programs, comparison)
FOLDER = Path(__file__).parent / "grafana/dashboards/edgebed"
RULES = Path(__file__).parent / "prometheus/rules/recording.yml"
SOURCE = {
    "name": "DS_PROMETHEUS",
    "label": "Prometheus",
    "description": "The one that collects what edgebed's controller and nodes tell",
    "type": "datasource",
    "pluginId": "prometheus",
    "pluginName": "Prometheus",
}
COPY = Path(__file__).parents[1] / "services/edgebed/running/recording.yml"
"""Of the recording rules, for `edgebed replay`: what is installed has no folder of dashboards."""


def main(folder: Path) -> None:
    """Write every file."""
    for one in DASHBOARDS:
        (folder / f"{one.NAME}.json").write_text(one.build(), encoding="utf-8")


def importable(folder: Path) -> None:
    """Write every file as Grafana's own export for other Grafanas has it: the data source is an input."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in DASHBOARDS:
        board = json.loads(one.build().replace("${datasource}", "${DS_PROMETHEUS}"))
        variables = board["templating"]["list"]
        board["templating"]["list"] = [each for each in variables if each["name"] != "datasource"]
        board["__inputs"] = [SOURCE]
        board = json.loads(json.dumps(board).replace("${datasource:queryparam}&", ""))
        (folder / f"{one.NAME}.json").write_text(json.dumps(board, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__" and sys.argv[1:2] == ["--importable"]:
    importable(Path(sys.argv[2]))
elif __name__ == "__main__":
    main(Path(*sys.argv[1:]) if sys.argv[1:] else FOLDER)
    if not sys.argv[1:]:
        shutil.copyfile(RULES, COPY)
