"""What `edgebed validate` says of a scenario file: everything that `edgebed plan` would refuse, and what is doubtful.

The scenario is loaded, and planned: own models and data are imported, examples counted and cut, layers laid on devices.
Nothing is downloaded for that. What only a runtime cannot do, or this machine, is for `edgebed plan --runtime` to say.
"""

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from edgebed.errors import ScenarioError
from edgebed.learning.data import data_directory, is_here
from edgebed.learning.imports import forgetting
from edgebed.scenario.load import load_scenario
from edgebed.scenario.schema import Scenario


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """One file."""

    scenario: str
    valid: bool | None = None
    """Whether it can be planned; None: no mistake was found, but data is not here, so that it was not planned."""
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """What it asks for and cannot be, where options made it so."""
    absent: tuple[str, ...] = ()
    """Data sets that are not here."""

    @property
    def text(self) -> str:
        """In a line, where there is no problem."""
        if self.valid:
            return f"{self.scenario}: valid"
        return (
            f"{self.scenario}: no mistake found, but the data of {' and '.join(self.absent)} is not in "
            f"{data_directory()}: models, counts, splits and cuts were not checked. edgebed plan downloads it"
        )


def check(path: Path, sets: Sequence[str] = ()) -> Checked:
    """Look at the scenario in `path`, with its overrides. What own modules print goes to standard error."""
    try:
        scenario = load_scenario(path, sets)
        absent = tuple(dict.fromkeys(trial.task.data for trial in scenario.trials.values()))
        absent = tuple(name for name in absent if not is_here(name))
        here = {name: trial for name, trial in scenario.trials.items() if trial.task.data not in absent}
        if here:
            from edgebed.scenario.planning import plan_trials  # loads torch, which a mistake need not wait for

            with contextlib.redirect_stdout(sys.stderr), forgetting(scenario.folder, Path.cwd()):
                plan_trials(scenario.model_copy(update={"trials": here}))
    except ScenarioError as error:
        return Checked(scenario=str(path), valid=False, problems=error.problems)
    return Checked(scenario=str(path), valid=None if absent else True, warnings=tuple(_doubts(scenario)), absent=absent)


def _doubts(scenario: Scenario) -> list[str]:
    """Of all trials, each once; what is so in some alone says in which."""
    trials: dict[str, list[str]] = {}
    for name, doubts in scenario.doubts.items():
        for doubt in doubts:
            trials.setdefault(doubt, []).append(name)
    return [
        doubt if len(names) == len(scenario.trials) else f"{doubt} (in variant {', '.join(names)})"
        for doubt, names in trials.items()
    ]
