"""Writes Grafana's dashboards: `python -m dashboards`, in the repository's root; with a folder, there.

Each module of `DASHBOARDS` makes one, which answers one question, from the parts in `building/`. Tests keep the
committed files equal to what this writes, check them against Grafana's own types, and ask a real Prometheus every
query. Without a folder it also copies the recording rules into the package.
"""

import shutil
import sys
from pathlib import Path

from dashboards import comparison, layers, network, run_overview, staleness_and_faults, workers

DASHBOARDS = (run_overview, workers, network, staleness_and_faults, layers, comparison)
FOLDER = Path(__file__).parent / "grafana/dashboards/edgebed"
RULES = Path(__file__).parent / "prometheus/rules/recording.yml"
COPY = Path(__file__).parents[1] / "services/edgebed/running/recording.yml"
"""Of the recording rules, for `edgebed replay`: what is installed has no folder of dashboards."""


def main(folder: Path) -> None:
    """Write every file."""
    for one in DASHBOARDS:
        (folder / f"{one.NAME}.json").write_text(one.build(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(*sys.argv[1:]) if sys.argv[1:] else FOLDER)
    if not sys.argv[1:]:
        shutil.copyfile(RULES, COPY)
