"""What a scenario says of a trial whose nodes run programs of the user's: every key beside `program` itself."""

import difflib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from edgebed.core.measures.trial import program_measures
from edgebed.core.planned.command import Member, filled, placeholders
from edgebed.scenario.devices.caps import MAX_COUNT, Caps, class_nodes, name_problems
from edgebed.scenario.devices.device_speed import DeviceSpeed
from edgebed.scenario.expectations import LevelSection, ProgramExpectations
from edgebed.scenario.faults.registry import AnyFault, read_faults, repeat_problems
from edgebed.scenario.faults.settings.deadlines import Deadlines, not_too_often
from edgebed.scenario.faults.settings.entry import FaultSection
from edgebed.scenario.faults.settings.targets import Roster
from edgebed.scenario.hosts import HostSection, Promise, host_problems
from edgebed.scenario.links import LinkSection
from edgebed.scenario.methods import python_path_of
from edgebed.scenario.mistakes.problems import Problem, Problems, choose
from edgebed.scenario.names import ClassName, HostName, has_a_class
from edgebed.scenario.programs.section import (
    WORDS,
    Command,
    Image,
    PageSection,
    ProgramSection,
    ReadySection,
    Variables,
)  # fmt: skip
from edgebed.scenario.roster import NamedNodes, promises, roster
from edgebed.scenario.section import Duration, DurationFromZero, Section, folder_of

KIND = "program"
"""The key by which a scenario is one of programs, and the name of its trial where it has no variants."""
_TRAINS = "edgebed trains nothing here, as the program does what it does; leave it out"
_NO_SERVER = "a program has no nodes but those of its fleet; give them a class: fleet: { hub: { count: 1, run: ... } }"
_VIRTUAL = "virtual time alone needs it, and that runs no programs; leave it out"
_NO_UPDATES = "of a program no updates and no model are known; give time, or program: { ends: ... }"


class ProgramClass(LinkSection, Caps):
    """Nodes of one kind that run a program; they are called `<class>-0`, `<class>-1`, ..."""

    not_here = MappingProxyType(dict.fromkeys(DeviceSpeed.model_fields, _VIRTUAL) | {"waiting": _VIRTUAL})

    count: int = Field(default=1, ge=1, le=MAX_COUNT)
    """Number of nodes of this class."""
    run: Command | None = None
    """The command of this class, instead of the program's."""
    image: Image | None = None
    """The image of this class, instead of the program's."""
    env: Variables = Field(default={})
    """Variables of this class, beside those of the program."""
    ready: ReadySection | None = None
    """What shows that a program of this class is ready, instead of what the program says."""
    prometheus: PageSection | None = None
    """Page of a program of this class for Prometheus, instead of the program's."""
    after: list[str] | str = Field(default=[])
    """Class, or a list of classes, whose nodes are to be ready before those of this one are started."""

    @property
    def waits_for(self) -> tuple[str, ...]:
        """Return the classes that are to be ready before."""
        return (self.after,) if isinstance(self.after, str) else tuple(self.after)


class ProgramStop(Section):
    """What ends a trial of programs whatever they do."""

    not_here = MappingProxyType(dict.fromkeys(("updates", "rounds", "epochs", *LevelSection.model_fields), _NO_UPDATES))

    time: Duration | None = None
    """Time since all programs were ready, or ran; nothing ends a program that goes on for ever if left out."""


class ProgramDeadlines(Section):
    """Time limits of a trial of programs."""

    not_here = MappingProxyType({"stall": "whether a program makes progress is not known; give stop: { time: ... }"})

    join: Duration = 60.0
    """How long to wait for a program that is not ready; the trial fails then."""
    silence: Duration = 60.0
    """How long after a death that a fault brought other deaths are its consequence, and not failures of their own."""
    check: Annotated[Duration, AfterValidator(not_too_often)] = Deadlines.model_fields["check"].default
    """Time between two looks at each node: its link, its caps and its use of the machine."""


class ProgramTrial(Section):
    """Everything but name, question and seed, where programs of the user's run; what a variant may change."""

    not_here = MappingProxyType(
        dict.fromkeys(("task", "method", "pull", "shards", "evaluator", "evaluation", "checkpoints"), _TRAINS)
        | dict.fromkeys(("server", "store", "modules"), _NO_SERVER)
        | {
            "detector": "whom a program takes for dead is its own affair; leave it out",
            "security": "how programs talk to each other is their own affair; leave it out",
            "restart_time": _VIRTUAL,
        }
    )

    program: ProgramSection
    """The user's own program, instead of `task` and `method`."""
    fleet: dict[ClassName, ProgramClass] = Field(min_length=1)
    """Classes of nodes by name. A node is called `<class>-<index>`; ranks are in their order."""
    hosts: dict[HostName, HostSection] = Field(default={})
    """The machines whose engines run the containers, by name; this machine alone if left out."""
    stop: ProgramStop = ProgramStop()
    """What ends a trial whatever its programs do."""
    faults: list[AnyFault] = Field(default=[])
    """What is done to nodes and links on purpose, and when: at a time, or when a measure reaches a value."""
    on_failure: Literal["ignore", "restart", "restart-all", "stop"] = "ignore"
    """What is done when a program has died: nothing; it is restarted; all are ended and restarted together, as those
    need that end together; the trial ends."""
    restart_delay: DurationFromZero = 1.0
    """With `restart` and `restart-all`: time from the failure to the restart."""
    expect: ProgramExpectations = ProgramExpectations()
    """Criteria by which the trial's outcome is judged."""
    deadlines: ProgramDeadlines = ProgramDeadlines()
    """Time limits for what does not come."""

    _has_a_class = field_validator("fleet", mode="before")(has_a_class)

    @field_validator("faults", mode="wrap")
    @classmethod
    def _faults_fit(
        cls, given: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> list[FaultSection]:
        is_known = {KIND, "fleet", "hosts"} <= info.data.keys()
        nodes = _roster(info.data["fleet"], info.data["hosts"]) if is_known else None
        faults = read_faults(given, nodes, python_path_of(info), folder_of(info))
        if nodes and (problems := list(_measure_problems(faults, info.data[KIND], nodes))):
            raise Problems(problems)
        return faults

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        problems = [
            *name_problems(self.fleet),
            *_references(self),
            *_commands(self),
            *(problem.under("expect") for problem in self.expect.problems(program_measures(self.program.measures))),
            *(problem.under("hosts") for problem in host_problems(self.hosts, self.fleet)),
            *repeat_problems(self.faults, self.roster, self.stop.time),
        ]
        if problems:
            raise Problems(problems)
        return self

    @property
    def default_name(self) -> str:
        """Return the trial's name where the scenario has no variants."""
        return KIND

    @property
    def roster(self) -> Roster:
        """Return the nodes that faults can concern."""
        return _roster(self.fleet, self.hosts)

    @property
    def promises(self) -> list[Promise]:
        """Return what each node may use of its host."""
        return promises({}, _named(self.fleet))

    @property
    def members(self) -> list[Member]:
        """Return all nodes in the order of their ranks; nobody has an address yet."""
        return [
            Member(node, name, k, "")
            for name, each in self.fleet.items()
            for k, node in enumerate(class_nodes(name, each.count))
        ]


def _named(fleet: Mapping[str, ProgramClass]) -> dict[str, NamedNodes]:
    return {name: (class_nodes(name, each.count), each) for name, each in fleet.items()}


def _roster(fleet: Mapping[str, ProgramClass], hosts: Mapping[str, HostSection]) -> Roster:
    return roster({}, _named(fleet), hosts, role="program")


def _unknown_owner(name: str, nodes: Roster, what: str = "class or node") -> Problem | None:
    """Say that there is no class, or node, of that name."""
    singles = () if what == "class" else tuple(node for group in nodes.values() for node in group.nodes)
    if not name or name in nodes or name in singles:
        return None
    close = difflib.get_close_matches(name, singles, 1)
    choice = choose(name, (*nodes, *close))
    return Problem((), f"no {what} {name!r}; {choice}", choice=choice)


def _measure_problems(faults: list[FaultSection], program: ProgramSection, nodes: Roster) -> Iterator[Problem]:
    """Yield faults at a value of a measure that no output tells, or not that of those nodes."""
    for k, fault in enumerate(faults):
        if (at := fault.at_measure) is None:
            continue
        path = (str(k), "at_measure")
        if at.measure not in program.measures:
            choice = choose(at.measure, program.measures)
            known = choice if program.measures else "the program has none; give it one in program.measures"
            yield Problem(path, f"no measure {at.measure!r}; {known}", choice=choice)
        if problem := _unknown_owner(at.of, nodes):
            yield problem.under(*path, "of")


def _references(trial: ProgramTrial) -> Iterator[Problem]:
    """Yield classes and nodes that are named and are not there, and classes that wait for each other."""
    nodes, program = trial.roster, trial.program
    if program.ends.of and (problem := _unknown_owner(program.ends.of, nodes)):
        yield problem.under("program", "ends", *(["of"] if program.ends.kind == "log" else []))
    for word in (each for each in WORDS if each in trial.fleet):
        yield Problem(("fleet", word), f"program.ends has '{word}' for something else; choose another", at_key=True)
    for name, shown in program.measures.items():
        if problem := _unknown_owner(shown.of, nodes):
            yield problem.under("program", "measures", name, "of")
        elif shown.prometheus and not any(
            trial.fleet[each.device_class].prometheus or program.prometheus
            for each in trial.members
            if shown.of in ("", each.node, each.device_class)
        ):
            why = f"{f'{shown.of} has no' if shown.of else 'no class has a'} page to find it on; "
            why += "give program.prometheus, or that of the class, e.g. prometheus: { port: 9100 }"
            yield Problem(("program", "measures", name, "prometheus"), why)
    found = [
        problem.under("fleet", name, "after")
        for name, each in trial.fleet.items()
        for other in each.waits_for
        if (problem := _unknown_owner(other, nodes, "class"))
    ]
    yield from found
    for name in trial.fleet if not found else ():
        if name in _before(trial.fleet, name):
            why = f"{name} waits for itself, by way of {', '.join(trial.fleet[name].waits_for)}; let one of them begin"
            yield Problem(("fleet", name, "after"), why)


def _before(fleet: Mapping[str, ProgramClass], name: str) -> set[str]:
    """Return all classes that are to be ready before one."""
    found: set[str] = set()
    waiting = list(fleet[name].waits_for)
    while waiting:
        if (each := waiting.pop()) not in found:
            found.add(each)
            waiting += fleet[each].waits_for
    return found


def _commands(trial: ProgramTrial) -> Iterator[Problem]:
    """Yield classes without a command, and placeholders that there are not, each where it stands."""
    members, program = trial.members, trial.program
    for name, each in trial.fleet.items():
        if each.run is None and program.run is None:
            yield Problem(("fleet", name), "missing key 'run': neither the class nor the program has a command")
    rank = {member.device_class: k for k, member in reversed(list(enumerate(members)))}
    sections: list[tuple[tuple[str, ...], ProgramSection | ProgramClass, int]] = [(("program",), program, 0)]
    sections += [(("fleet", name), each, rank[name]) for name, each in trial.fleet.items()]
    for path, section, k in sections:
        texts = {("run",): section.run or ""} | {("env", key): text for key, text in section.env.items()}
        for keys, text in texts.items():
            try:
                filled(text, placeholders(k, members))
            except ValueError as error:
                yield Problem((*path, *keys), str(error))
