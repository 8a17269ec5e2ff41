"""A scenario whose nodes run programs of the user's -> the plan of every trial; nothing is loaded and nothing is tried.

What is refused here is what a runtime cannot do; what may surprise is a warning (reports/plan/programs.py shows both).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edgebed.core.errors import ScenarioError
from edgebed.core.plan import ProgramsPlan
from edgebed.core.planned import command
from edgebed.core.planned.fault import FaultPlan, nodes_with_changed_links
from edgebed.core.planned.program import Limits, Page, Program, ProgramPlan, Ready
from edgebed.core.quantities import all_text
from edgebed.core.runtimes import TRAITS, Emulation, Runtime
from edgebed.core.units import format_duration
from edgebed.emulation.means import why_no_namespaces
from edgebed.planning.fault_warnings import overlapping
from edgebed.planning.link_warnings import node_warnings, pace_warnings
from edgebed.planning.placement import check_hosts, host_plans
from edgebed.planning.planned import PlannedTrial
from edgebed.planning.warnings import HostCapacity, capacities, machine_warnings
from edgebed.scenario.faults.registry import plan_faults
from edgebed.scenario.hosts import place
from edgebed.scenario.links import link_of
from edgebed.scenario.programs.trial import ProgramTrial
from edgebed.scenario.schema import Scenario

START_S = 2.0
"""Seconds of a core that an interpreter with a library such as torch takes to start, about."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PlannedPrograms(PlannedTrial):
    """The plan of a trial whose nodes run programs."""

    plan: ProgramsPlan


def plan_programs(scenario: Scenario) -> list[PlannedPrograms]:
    """The plans of all trials in order. ScenarioError where a host has not the memory that its nodes are promised."""
    planned = []
    for name, trial in scenario.programs.items():
        check_hosts(scenario, name)
        warnings = tuple(scenario.warnings.get(name, ()))
        planned.append(PlannedPrograms(plan=_plan(scenario, name, trial), warnings=warnings))
    return planned


def check_programs(scenario: Scenario, runtime: Runtime, emulation: Emulation = "auto") -> None:
    """ScenarioError where a runtime runs no programs at all, or not these."""
    if TRAITS[runtime].is_virtual:
        raise ScenarioError(
            "virtual time cannot run a program: how long its work takes, and what it sends when, shows only where it "
            "runs; use --runtime process as root"
        )
    if emulation == "model":
        raise ScenarioError(
            "--emulation model: that model of a link is in edgebed's own nodes, and a program's traffic does not pass "
            "it; leave the option out"
        )


def program_warnings(
    plan: ProgramsPlan, runtime: Runtime, host: HostCapacity, emulation: Emulation = "auto"
) -> Iterator[str]:
    """A sentence for each thing that may surprise when the programs of a plan run there."""
    by_class = {node.device_class: node for node in plan.nodes}
    awaited = dict.fromkeys(name for node in by_class.values() for name in node.after)
    if unready := [name for name in awaited if by_class[name].ready == Ready()]:
        yield (
            f"{all_text(unready)}: others wait for it, and nothing shows when it is ready: they start once it runs. "
            "Give it ready, e.g. ready: { port: 8000 }."
        )
    for node in by_class.values():
        core_s = (node.cpus or START_S) * plan.join_deadline_s
        if core_s < START_S and node.ready != Ready():
            yield (
                f"{node.device_class}: with {node.cpus:g} cores it has {format_duration(round(core_s, 3))} of a core "
                f"until deadlines.join ({format_duration(plan.join_deadline_s)}); it may not be ready by then."
            )
        yield from node_warnings(node)
    yield from overlapping(plan)
    for machine, nodes in capacities(plan, runtime, host):
        yield from machine_warnings(machine, nodes)
    yield from pace_warnings(plan, runtime, emulation)
    if TRAITS[runtime].has_containers:
        return
    if any(node.image for node in plan.nodes) or plan.program.build:
        yield f"image and build have no effect in the {runtime} runtime: programs of this machine run there."
    if lack := why_no_namespaces():
        yield f"these programs cannot run here in the {runtime} runtime: {lack}."


def _plan(scenario: Scenario, name: str, trial: ProgramTrial) -> ProgramsPlan:
    faults = tuple(plan_faults(trial.faults, trial.roster, scenario.seed, trial.stop.time))
    program = trial.program
    return ProgramsPlan(
        scenario=scenario.name,
        trial=name,
        question=scenario.question,
        seed=scenario.seed,
        program=Program(
            files=program.files or "",
            build=program.build or "",
            ends=program.ends,
            measures=program.planned_measures(),
            limits=Limits(processes=program.limits.processes, scratch_bytes=program.limits.scratch),
        ),
        nodes=tuple(_nodes(scenario.seed, trial, faults)),
        stop_time_s=trial.stop.time,
        join_deadline_s=trial.deadlines.join,
        silence_s=trial.deadlines.silence,
        check_s=trial.deadlines.check,
        faults=faults,
        on_failure=trial.on_failure,
        restart_delay_s=trial.restart_delay,
        expectations=tuple((measure, bound.comparison, bound.value) for measure, bound in trial.expect.bounds.items()),
        expects_trusted=trial.expect.verdict == "trusted",
        hosts=host_plans(trial.hosts),
    )


def _nodes(seed: int, trial: ProgramTrial, faults: Sequence[FaultPlan]) -> Iterator[ProgramPlan]:
    """Yield the plan of each node, in the order of ranks."""
    placement, program = place(trial.hosts, trial.promises), trial.program
    changed = nodes_with_changed_links(faults)
    for rank, member in enumerate(trial.members):
        section = trial.fleet[member.device_class]
        ready, page = section.ready or program.ready, section.prometheus or program.prometheus
        yield ProgramPlan(
            node=member.node,
            device_class=member.device_class,
            seed=seed,
            host=placement.get(member.node, ""),
            cpus=section.cpus,
            memory_bytes=section.memory_cap,
            check_s=trial.deadlines.check,
            link=link_of(section, seed, member.node),
            changeable=member.node in changed,
            index=member.number,
            rank=rank,
            run=command.words(section.run or program.run or ""),
            image=section.image or program.image or "",
            environment=program.env | section.env,
            ready=ready.planned() if ready else Ready(),
            page=Page(port=page.port, path=page.path) if page else None,
            after=section.waits_for,
        )
