"""edgebed: train a neural network across a fleet of emulated edge devices, under conditions that are checked.

`edgebed.run(scenario, ...)` runs a scenario file, `edgebed.resume(run)` resumes a run that has broken off,
`edgebed.load(run)` opens the results of an earlier run; all return an `edgebed.Run`. `edgebed.runs()` lists the runs
there are. `edgebed.compare(runs)` sets finished runs against each other; `edgebed.agree(scenario)`,
`edgebed.reproduce(paper)` and `edgebed.sweep(scenario)` are studies of many runs. `edgebed.to_pandas(runs, table)` has
their numbers as a data frame, `edgebed.figures(run, folder)` their charts as files. A mistake of the user's raises an
`edgebed.ScenarioError`, any other failure another `edgebed.EdgebedError`. All are imported when first used, so that a
node of the fleet does not pay for them, and Ctrl-C finds the command line ready.
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgebed.core.errors import EdgebedError as EdgebedError
    from edgebed.core.errors import InfrastructureError as InfrastructureError
    from edgebed.core.errors import ScenarioError as ScenarioError
    from edgebed.core.measures.task import TaskMeasure as TaskMeasure
    from edgebed.exporting.frames import to_pandas as to_pandas
    from edgebed.learning.data_sets.data_set import DataSet as DataSet
    from edgebed.learning.objectives.objective import Objective as Objective
    from edgebed.learning.objectives.objective import Supervised as Supervised
    from edgebed.reports.reported import figures as figures
    from edgebed.reports.reported import resume as resume
    from edgebed.reports.reported import run as run
    from edgebed.reports.studies.study import RunOptions as RunOptions
    from edgebed.reports.studies.study import Study as Study
    from edgebed.reports.studies.study import agree as agree
    from edgebed.reports.studies.study import compare as compare
    from edgebed.reports.studies.study import reproduce as reproduce
    from edgebed.reports.studies.study import sweep as sweep
    from edgebed.running.results import Run as Run
    from edgebed.running.results import Trial as Trial
    from edgebed.running.results import load as load
    from edgebed.running.results import runs as runs
    from edgebed.studies.comparison.comparison import Comparison as Comparison

    __version__: str

# Torch computes with one thread in every process of edgebed. On arm64 a library of torch's keeps the number that OpenMP
# has when it is loaded, whatever `torch.set_num_threads` says later, and then a process forked from this one hangs.
os.environ.setdefault("OMP_NUM_THREADS", "1")

HOMES = {
    "Comparison": "edgebed.studies.comparison.comparison",
    "DataSet": "edgebed.learning.data_sets.data_set",
    "EdgebedError": "edgebed.core.errors",
    "InfrastructureError": "edgebed.core.errors",
    "Objective": "edgebed.learning.objectives.objective",
    "RunOptions": "edgebed.reports.studies.study",
    "Run": "edgebed.running.results",
    "ScenarioError": "edgebed.core.errors",
    "Study": "edgebed.reports.studies.study",
    "Supervised": "edgebed.learning.objectives.objective",
    "TaskMeasure": "edgebed.core.measures.task",
    "Trial": "edgebed.running.results",
    "agree": "edgebed.reports.studies.study",
    "compare": "edgebed.reports.studies.study",
    "figures": "edgebed.reports.reported",
    "load": "edgebed.running.results",
    "reproduce": "edgebed.reports.studies.study",
    "resume": "edgebed.reports.reported",
    "run": "edgebed.reports.reported",
    "runs": "edgebed.running.results",
    "sweep": "edgebed.reports.studies.study",
    "to_pandas": "edgebed.exporting.frames",
}
"""Name -> the module that has it."""
__all__ = ["__version__", *HOMES]  # noqa: PLE0604 - strings, all of them


def __getattr__(name: str) -> Any:
    """Import a name at its first use."""
    if name == "__version__":
        return importlib.import_module("edgebed.core.package").VERSION
    if name not in HOMES:
        raise AttributeError(f"module 'edgebed' has no attribute {name!r}")
    return getattr(importlib.import_module(HOMES[name]), name)


def __dir__() -> list[str]:
    """All names, those too that are not imported yet: an editor and a notebook complete them."""
    return sorted({*globals(), *__all__})
