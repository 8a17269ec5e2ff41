"""The trials of a scenario described, of training or of programs, once they can be run as asked on this machine."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from edgebed.core.runtimes import TRAITS, Emulation, Runtime
from edgebed.emulation.means import check_mechanisms
from edgebed.planning.deadlines import check_deadlines
from edgebed.planning.link_warnings import check_links
from edgebed.planning.memory import check_caps
from edgebed.planning.planning import plan_trials
from edgebed.planning.program_plans import check_programs, plan_programs
from edgebed.reports.plan.description import Description, describe_plan
from edgebed.reports.plan.programs import ProgramsDescription, describe_programs
from edgebed.scenario.schema import Scenario


def descriptions_of(
    scenario: Scenario, runtime: Runtime, emulation: Emulation, *, force: bool = False
) -> Sequence[Description | ProgramsDescription]:
    """What the trials will do; ScenarioError, or InfrastructureError, where they cannot be run so.

    `force`: containers whose memory cap is too low are no mistake.
    """
    if scenario.runs_programs:
        check_programs(scenario, runtime, emulation)
        programs = plan_programs(scenario)
        check_links(scenario, programs, runtime, emulation)
        return [describe_programs(trial, runtime=runtime, emulation=emulation) for trial in programs]
    planned = plan_trials(scenario)
    check_mechanisms([trial.plan for trial in planned], runtime, emulation)
    check_links(scenario, planned, runtime, emulation)
    check_deadlines(scenario, [trial.plan for trial in planned], runtime)
    if TRAITS[runtime].has_containers and not force:
        check_caps(scenario, planned)
    return [describe_plan(trial, runtime=runtime, emulation=emulation) for trial in planned]


def as_dict(description: Description | ProgramsDescription) -> dict[str, Any]:
    """The description for JSON: plain dicts, lists, numbers and text."""
    return asdict(description)
