"""What `edgebed validate` says of a scenario file: everything that `edgebed plan` would refuse, and what is doubtful.

The scenario is loaded, and planned: own models and data are imported, examples counted and cut, layers laid on devices.
Nothing is downloaded for that. How long a push takes is that of virtual time. What only a runtime cannot do, or this
machine, is for `edgebed plan --runtime` to say.
"""

import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgebed.core.errors import LocatedProblem, ScenarioError
from edgebed.core.imports import forgetting
from edgebed.core.quantities import all_text
from edgebed.learning.data_sets.registry import data_directory, how_to_get, is_here
from edgebed.scenario.load import load_scenario
from edgebed.scenario.schema import Scenario
from edgebed.scenario.shipped import scenario_file


class FileCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in one scenario file."""

    scenario: str
    valid: bool | None = None
    """Whether the scenario can be planned; None: no mistake was found, but data is missing, so it was not planned."""
    located: tuple[LocatedProblem, ...] = ()
    """Every mistake, with its place."""
    warnings: tuple[str, ...] = ()
    """What the scenario asks for and options have made impossible, and what is doubtful in a task."""
    absent: tuple[str, ...] = ()
    """Data sets that are not on this machine."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Return every mistake as one line."""
        return tuple(map(str, self.located))

    def as_dict(self) -> dict[str, Any]:
        """Return what was found for other programs: every problem with its place, what is allowed, what was meant."""
        problems = [problem.as_dict() for problem in self.located]
        return {
            "scenario": self.scenario, "valid": self.valid, "problems": problems, "warnings": self.warnings,
            "absent": self.absent,
        }  # fmt: skip

    @property
    def text(self) -> str:
        """The result in a line, where there is no problem."""
        if self.valid:
            return f"{self.scenario}: valid"
        return (
            f"{self.scenario}: no mistake found, but the data of {all_text(self.absent)} is not in "
            f"{data_directory()}: models, counts, splits and cuts were not checked. {how_to_get(self.absent)}"
        )


def check(path: Path, sets: Sequence[str] = (), hosts: Path | None = None) -> FileCheck:
    """Look at the scenario in `path`, with its overrides, and the hosts of a file if that is given.

    What own modules print goes to standard error.
    """
    try:
        file = scenario_file(path)
    except ScenarioError as error:
        return FileCheck(scenario=str(path), valid=False, located=error.located)
    with contextlib.redirect_stdout(sys.stderr), forgetting(file.absolute().parent, Path.cwd()):
        return _check(file, sets, hosts)


def _check(path: Path, sets: Sequence[str], hosts: Path | None) -> FileCheck:
    try:
        scenario = load_scenario(path, sets, hosts=hosts)
        found = {name: tuple(warnings) for name, warnings in scenario.warnings.items()}
        absent: tuple[str, ...] = ()
        if scenario.runs_programs:
            from edgebed.planning.program_plans import plan_programs

            plan_programs(scenario)
        else:
            absent = _absent(scenario)
            found |= _planned(scenario, absent)
    except ScenarioError as error:
        return FileCheck(scenario=str(path), valid=False, located=error.located)
    warnings = tuple(_warnings(scenario, found))
    return FileCheck(scenario=str(path), valid=None if absent else True, warnings=warnings, absent=absent)


def _absent(scenario: Scenario) -> tuple[str, ...]:
    """The data sets of a scenario's tasks that are not here."""
    names = dict.fromkeys(trial.task.data.name for trial in scenario.training.values())
    return tuple(name for name in names if not is_here(name))


def _planned(scenario: Scenario, absent: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The warnings of the trials whose data is here, which are planned."""
    here = {name: trial for name, trial in scenario.training.items() if trial.task.data.name not in absent}
    if not here:
        return {}
    from edgebed.planning.deadlines import check_deadlines
    from edgebed.planning.planning import plan_trials  # loads torch; a mistake is reported without it

    planned = plan_trials(scenario.model_copy(update={"trials": here}))
    check_deadlines(scenario, [trial.plan for trial in planned], "simulation")
    return {trial.plan.trial: trial.warnings for trial in planned}


def _warnings(scenario: Scenario, found: Mapping[str, Sequence[str]]) -> list[str]:
    """The warnings of all trials, each once; one that holds in some trials alone says in which."""
    trials: dict[str, list[str]] = {}
    for name, warnings in found.items():
        for warning in warnings:
            trials.setdefault(warning, []).append(name)
    return [
        warning if len(names) == len(scenario.trials) else f"{warning} (in variant {', '.join(names)})"
        for warning, names in trials.items()
    ]
