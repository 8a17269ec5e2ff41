"""What a scenario may say: every key with its type, its default and its meaning.

This declaration checks scenarios, and makes the JSON schema for editors and docs/scenario.md. A `TrialSection` is all
that is done at once: the scenario itself, or one of its variants merged into it. Here times are seconds and memory is
bytes; in the file every quantity has its unit.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    InstanceOf,
    PlainValidator,
    PrivateAttr,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from edgebed.core import imports, units
from edgebed.core.errors import OPTION, Location, Place, ScenarioError
from edgebed.core.measures.clients import of_clients
from edgebed.core.measures.task import TaskMeasure
from edgebed.core.measures.trial import all_measures
from edgebed.core.plan import Durability, Method, NonFinite, Part, Security, Waiting
from edgebed.learning.objectives.classification import Classification
from edgebed.learning.objectives.registry import objective_of
from edgebed.scenario import choices
from edgebed.scenario.by_client import ByClientSection, Every, interval_problem, whole_form
from edgebed.scenario.choices import HeldOut, Interval, Split, Validation
from edgebed.scenario.devices.caps import MAX_COUNT, Caps, class_nodes, name_problems
from edgebed.scenario.devices.device_speed import DeviceSpeed
from edgebed.scenario.expectations import Expectations, LevelSection
from edgebed.scenario.faults.registry import AnyFault, read_faults, repeat_problems
from edgebed.scenario.faults.settings.deadlines import Deadlines
from edgebed.scenario.faults.settings.entry import FaultSection
from edgebed.scenario.faults.settings.restart_time import RestartTime
from edgebed.scenario.faults.settings.targets import Role, Roster
from edgebed.scenario.hosts import HostSection, Promise, host_problems
from edgebed.scenario.links import LinkSection
from edgebed.scenario.methods import METHOD_SCHEMA, python_path_of, read_method, write_method
from edgebed.scenario.mistakes.problems import NotAllowedError, Problem, Problems, choose
from edgebed.scenario.mistakes.shard_problems import shard_problems
from edgebed.scenario.names import ClassName, HostName, Name, has_a_class
from edgebed.scenario.parts import DATA_SCHEMA, OBJECTIVE_SCHEMA, read_data, read_objective, write_part
from edgebed.scenario.profiles import ProfileFile, read_profile
from edgebed.scenario.programs.trial import ProgramTrial
from edgebed.scenario.roster import promises, roster
from edgebed.scenario.section import Duration, DurationFromZero, Form, Section, file_name, folder_of
from edgebed.scenario.sweep_section import SweepSection

MODELS = (
    "small", "mlp", "cnn", "logistic", "four-layer", "eight-layer", "vgg16", "cifar-cnn", "cifar-cnn-keep",
    "sigmoid-200", "resnet8", "resnet20", "resnet18", "resnet18-imagenet", "resnet50", "resnet50-imagenet",
    "transformer", "transformer-untied", "gru",
)  # fmt: skip
MODEL_SIZES = ("width", "kernel", "layers", "heads")

JsonSchema = dict[str, Any]


def _built_in_or_import(names: tuple[str, ...]) -> Callable[[object], str]:
    def check(given: object) -> str:
        if isinstance(given, str) and (given in names or imports.is_import_path(given)):
            return given
        raise NotAllowedError(given, (*names, "package.module:function"))

    return check


def _named(names: tuple[str, ...]) -> WithJsonSchema:
    known = {"type": "string", "enum": list(names)}
    own: JsonSchema = {"type": "string", "title": "package.module:function", "pattern": imports.PATTERN}
    return WithJsonSchema({"anyOf": [known, own]})


def _one_key(key: str, value: JsonSchema) -> JsonSchema:
    return {"type": "object", "properties": {key: value}, "required": [key], "additionalProperties": False}


_DURATION: JsonSchema = {"type": "string", "title": "duration", "pattern": units.DURATION_PATTERN}
_WAITING: JsonSchema = {
    "anyOf": [
        _DURATION,
        _one_key("uniform", {"type": "array", "items": _DURATION, "minItems": 2, "maxItems": 2}),
        _one_key("exponential", _DURATION),
    ]
}
_SPLIT: JsonSchema = {
    "anyOf": [
        {"type": "string", "enum": ["iid", "by-client"]},
        _one_key("dirichlet", {"type": "number", "exclusiveMinimum": 0, "maximum": 1e6}),
        _one_key("by-label", {"type": "integer", "minimum": 1}),
    ]
}

_HELD_OUT: JsonSchema = {
    "anyOf": [
        {"type": "integer", "minimum": 0},
        {"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 1},
    ]
}

DataChoice = Annotated[Part, Form(read_data, write_part, DATA_SCHEMA)]
ModelName = Annotated[str, PlainValidator(_built_in_or_import(MODELS)), _named(MODELS)]
ObjectiveChoice = Annotated[Part, Form(read_objective, write_part, OBJECTIVE_SCHEMA)]
WaitingTime = Annotated[Waiting, Form(choices.read_waiting, choices.write_waiting, WithJsonSchema(_WAITING))]
SplitChoice = Annotated[Split, Form(choices.read_split, choices.write_split, WithJsonSchema(_SPLIT))]
HeldOutChoice = Annotated[HeldOut, Form(choices.read_held_out, choices.write_held_out, WithJsonSchema(_HELD_OUT))]
ValidationChoice = Annotated[
    Validation,
    Form(
        choices.read_validation,
        choices.write_validation,
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "string", "title": "share", "pattern": units.PERCENTAGE_PATTERN, "examples": ["10%"]},
                    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
                    {"type": "string", "enum": ["own"]},
                ]
            }
        ),
    ),
]
MethodChoice = Annotated[Method, Form(read_method, write_method, METHOD_SCHEMA)]


Cuts = Annotated[
    Literal["auto", "even"] | list[int],
    PlainValidator(choices.read_cuts),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "enum": ["auto", "even"]},
                {"type": "array", "items": {"type": "integer", "minimum": 1}},
            ]
        }
    ),
]


def _read_profile(given: object, info: ValidationInfo) -> ProfileFile:
    name = file_name(given, "what edgebed profile wrote, found from this folder")
    return read_profile(folder_of(info) / name)


ProfileName = Annotated[
    ProfileFile,
    Form(
        _read_profile,
        lambda profile: str(profile.path),
        WithJsonSchema({"type": "string", "title": "path of a profile", "pattern": "."}),
    ),
]


class TaskSection(Section):
    """Training: the model, the data and the objective."""

    not_here = MappingProxyType(
        {
            "loss": "the objective has the loss; write objective: classification, whose loss is the cross-entropy, or "
            "objective: { name: classification, loss: squared-softmax }"
        }
    )

    data: DataChoice
    """A built-in data set, or your own: a function that returns one, found beside the scenario file. With settings:
    `{name: plays, length: 128}`, `{name: "mydata:table", rows: 100}`; see docs/data-sets.md."""
    fraction: float = Field(default=1.0, gt=0.0, le=1.0)
    """Share of the training examples that is used, drawn by the seed; where the data has clients, of each client's."""
    split: SplitChoice = Split()
    """How the examples are divided: `iid`; `{dirichlet: alpha}`, the smaller the more uneven; `{by-label: n}`, n labels
    per worker; or `by-client`: all examples of a client of the data, such as a person, are on one worker, which has
    several where there are more clients than workers."""
    held_out: HeldOutChoice = HeldOut()
    """Clients of the data on whose examples nobody trains, and which the test set has instead: so many, drawn by the
    seed, or a list of their names."""
    min_examples: int = Field(default=1, ge=1)
    """Training examples below which a client, or without `by-client` a worker, is left out of the trial."""
    validation: ValidationChoice | None = None
    """The part that stopping, the best version, sweeps and comparisons look at: a share of the training examples, drawn
    by the seed within each client, e.g. `10%`; or `own`, the data set's own. The test part is then only reported. They
    look at the test part if left out."""
    model: ModelName
    """A built-in model, or your own: a function that returns a `torch.nn.Module`, found beside the scenario file."""
    width: int | None = Field(default=None, ge=1)
    """Filters of a convolution of `four-layer` and `eight-layer`, and of the first ones of `vgg16` and the larger
    residual networks, 64 if left out; of the first ones of `resnet8` and `resnet20`, 16; numbers by which `transformer`
    and `gru` know a token, 128. Passed on to your own function, too."""
    kernel: int | None = Field(default=None, ge=1)
    """Side of a convolution's filters in `four-layer` and `eight-layer`, 5 if left out; passed on to your own function,
    too."""
    layers: int | None = Field(default=None, ge=1)
    """Layers of `transformer`, 4 if left out, and of `gru`, 1; passed on to your own function, too."""
    heads: int | None = Field(default=None, ge=1)
    """Heads of `transformer`'s attention, which share its width, 4 if left out; passed on to your own function, too."""
    batch_size: int = Field(default=10, ge=1)
    """Examples in a mini-batch; a worker that has fewer trains on all of them at once."""
    inputs: Literal["unit", "standardized"] = "unit"
    """`unit`: 8-bit pixels scaled to [0, 1]; `standardized`: each input to mean 0 and variance 1."""
    objective: ObjectiveChoice = Part(name="classification", settings=dataclasses.asdict(Classification.Config()))
    """The loss that training minimises, and what is measured: `classification`, `multi-label`, `regression`,
    `next-token`; with settings: `{name: classification, loss: squared-softmax}`; or your own, a class found beside the
    scenario file."""
    gradient_time: Duration | None = None
    """Virtual time of one gradient on every device with a core of its own, whatever its speed; in the simulation only.
    A smaller mini-batch takes its share of it. If left out it follows from the gradient's operations, which are
    counted, and from each class's `speed` or `device`; see docs/devices.md."""
    compression_time: DurationFromZero = 0.0
    """Virtual time that compressing and encoding a worker's push takes, on the reference core: on others as much longer
    as a gradient. In the simulation only. `scripts/bench compression` measures it."""
    exchange_time: DurationFromZero = 0.0
    """Virtual time that a worker's push and the answer take beside link and computation, whatever the device; in the
    simulation only. `edgebed calibrate` measures it."""

    @property
    def sizes(self) -> tuple[tuple[str, int], ...]:
        """Return the sizes of the model that are given, by name."""
        return tuple((name, size) for name in MODEL_SIZES if (size := getattr(self, name)) is not None)


class ServerSection(LinkSection, Caps):
    """What the parameter server may use, its link, which all workers share, and how it keeps what it has applied."""

    durability: Durability = "log"
    """What outlasts the server: `none`: its last checkpoint; `log`: each update, as a log has it before it is answered,
    so a server that comes back goes on where it ended; `fsync`: the same, also if the machine loses its power, as the
    disk has it before. The simulation has the log in memory: one that was killed resumes from its last checkpoint."""
    non_finite: NonFinite = "take"
    """What becomes of a push with NaN or infinity, in its update or its loss: `take`: it is applied as any other, as
    training that diverges is a result; `refuse`: the model stays as it is, and its worker goes on from there."""


class EvaluatorSection(Caps):
    """What the evaluator may use of the machine."""

    not_here = dict.fromkeys(LinkSection.model_fields, "the evaluator has no link: watching is not traffic")


class DeviceClass(LinkSection, Caps, DeviceSpeed):
    """Workers of one kind; they are called `<class>-0`, `<class>-1`, ..."""

    count: int = Field(default=1, ge=1, le=MAX_COUNT)
    """Number of workers of this class."""
    waiting: WaitingTime = Waiting()
    """Pause between a gradient and its push: a duration, `{uniform: [0s, 200ms]}` or `{exponential: 100ms}` (mean)."""

    @property
    def memory_cap(self) -> int | None:
        """Return the memory cap that holds: the device's where none is given."""
        return self.device.content.memory if self.device and self.memory is None else self.memory


class ShardsSection(Section):
    """How the model's layers lie on the workers, in their order; each has one shard. With layer-wise methods only."""

    cuts: Cuts = "auto"
    """`even`: as many layers each, as far as possible; `auto`: so that a step takes as little time as devices and links
    allow; or the numbers of the layers that begin a shard, counted from 0, but for the first: `[1, 3]`."""
    profile: ProfileName | None = None
    """What layers take of time and memory as measured, a file that `edgebed profile` wrote, relative to the scenario
    file. Cuts, predicted steps and virtual time follow from it; from counted operations if left out."""
    traffic: Literal["direct", "store"] = "direct"
    """`direct`: shards send each other activations and gradients; `store`: they fetch them from a node of its own."""
    modules: Literal["beside", "apart"] = "beside"
    """Place of the modules that predict gradients: one beside each shard; or all on a node of their own."""
    queue: int = Field(default=4, ge=1)
    """Activations that a shard may have sent without an answer, where it does not wait for gradients. With
    `match: batch`: what may be on its way to a neighbour; the rest waits, by batch, and holds up nobody."""
    frozen: list[str] = Field(default=[])
    """Workers whose layers keep their initial weights: `[edge-0]`; the modules beside them learn."""


class ServingSection(LinkSection, Caps):
    """What a node that serves shards may use of the machine, and its link."""


class Evaluation(Section):
    """How often the model is measured, on the test part and on the validation part where there is one.

    In the simulation evaluations take no time and happen at every interval exactly; live, versions that are due wait
    for an evaluator that is slower than training, and what is skipped all the same is said (see verdict.md).
    """

    every: Every = Interval(updates=200)
    """Interval in updates or time; the last model is always measured."""
    by_client: ByClientSection | None = None
    """The model on each client's own held-out examples, for data that says whose they are: `final`, an interval, or a
    mapping. Nothing is measured by client if left out."""

    @field_validator("by_client", mode="before")
    @classmethod
    def _short(cls, given: object) -> object:
        return whole_form(given)

    @model_validator(mode="after")
    def _is_multiple(self) -> Self:
        if problem := interval_problem(self.by_client, self.every):
            raise Problems([Problem(("by_client", "every"), problem)])
        return self


class StopSection(LevelSection):
    """What ends a trial; whichever comes first: at least one of updates, time and a value of a measure of the task."""

    not_here = MappingProxyType(
        {
            **LevelSection.not_here,
            "epochs": "give updates; where a push is one gradient, an epoch has examples / batch_size of them",
            "rounds": "give updates; a round has one of each worker",
        }
    )

    updates: int | None = Field(default=None, ge=1)
    """Pushes that the server applied: a round of W workers is W; one of `fedavg` is all local steps of a worker."""
    time: Duration | None = None
    """Time since the start; virtual time in the simulation."""

    @model_validator(mode="after")
    def _at_least_one(self) -> Self:
        if self.updates is None and self.time is None and not self.level:
            raise ValueError("nothing ends the trial; give updates, time, or a measure's value, e.g. accuracy: 0.9")
        if self.window > 1 and not self.level:
            raise ValueError(
                "window: nothing is to be reached by a mean of evaluations; give a measure's value as well"
            )
        return self


class Checkpoints(Section):
    """How often the server hands its model over, so that it can resume from there when it is restarted."""

    every: Every = Interval(updates=1000)
    """Interval in updates or time."""


class TrialSection(Section):
    """Everything but the name, the question and the seed; what a variant may change."""

    task: TaskSection
    """The model, the data, and how the data is divided."""
    method: MethodChoice
    """A preset's name; or `{preset: ..., compression: {fraction: 0.1}}`, settings that override the preset's one by
    one (a part with another `name` drops the preset's settings of that part); or all parts by name."""
    pull: Literal["full", "changed-since"] = "full"
    """What the server answers a push with: the whole model; or the entries that changed since the worker's last pull,
    or the whole model where that is smaller, as with uncompressed methods. The worker computes with the same model
    either way. Not beside a `downlink` of the method, which sends what a worker lacks compressed."""
    fleet: dict[ClassName, DeviceClass] = Field(min_length=1)
    """Classes of devices by name. A worker is called `<class>-<index>`."""
    shards: ShardsSection | None = None
    """With layer-wise methods: how the model's layers lie on the workers."""
    store: ServingSection | None = None
    """With `shards.traffic: store`: caps and link of the node that stores activations until they are fetched."""
    modules: ServingSection | None = None
    """With `shards.modules: apart`: caps and link of the node that has all gradient modules."""
    server: ServerSection = ServerSection()
    """Caps and link of the parameter server."""
    evaluator: EvaluatorSection = EvaluatorSection()
    """Caps of the evaluator, which measures the model. It has no link: watching is not traffic."""
    evaluation: Evaluation = Evaluation()
    """How often the model is measured."""
    hosts: dict[HostName, HostSection] = Field(default={})
    """The machines whose engines run the containers, by name; this machine alone if left out. The first one is the
    manager of the swarm and has the controller. Usually in a file of their own, `hosts.yaml` beside the scenario or the
    one that `--hosts` names. Other runtimes know from it which nodes lie together, for faults."""
    stop: StopSection
    """What ends a trial."""
    faults: list[AnyFault] = Field(default=[])
    """What is done to nodes and links on purpose, and when, e.g. `[{freeze: phones, at: 20s, for: 10s}]`."""
    on_failure: Literal["ignore", "restart", "stop"] = "ignore"
    """What is done when a node has died, or sends no heartbeats: nothing; it is restarted; the trial ends. It ends in
    any case, and says what can be done, where the server's log is damaged."""
    restart_delay: DurationFromZero = 1.0
    """With `on_failure: restart`: time from the failure to the restart."""
    restart_time: RestartTime = RestartTime()
    """What a restart takes in virtual time beside its delay."""
    detector: Literal["network", "oracle"] = "network"
    """How the server learns of a worker's failure: by the data network, as a real one; or at once by the controller."""
    security: Security | None = None
    """How nodes show on the data network that they belong to the run, in processes and containers: `plain`, by a
    password that travels readable; `curve`, everything is encrypted, for two to three times the processor time of an
    exchange. `plain` if left out, but `curve` on several `hosts`. The management network is always encrypted."""
    checkpoints: Checkpoints = Checkpoints()
    """Checkpoints of the model and of what the aggregation remembers, such as a momentum. A server that is restarted
    goes on from its log or, with `server.durability: none`, from the last checkpoint: what came since is lost."""
    expect: Expectations = Expectations()
    """Criteria by which the trial's outcome is judged."""
    deadlines: Deadlines = Deadlines()
    """Time limits for what does not come."""
    _measures: tuple[TaskMeasure, ...] = PrivateAttr(())

    _has_a_class = field_validator("fleet", mode="before")(has_a_class)

    @field_validator("faults", mode="wrap")
    @classmethod
    def _faults_fit(
        cls, given: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> list[FaultSection]:
        needed = ("fleet", "server", "evaluator", "shards", "store", "modules", "hosts")
        data = info.data if all(key in info.data for key in needed) else None
        nodes = roster(*_nodes(data), data["hosts"]) if data else None
        return read_faults(given, nodes, python_path_of(info), folder_of(info))

    @model_validator(mode="after")
    def _fits_together(self, info: ValidationInfo) -> Self:
        try:
            self._measures = objective_of(self.task.objective, python_path_of(info)).measures
        except ScenarioError as error:
            raise Problems([Problem(("task", "objective"), str(error))]) from None
        measures = self.measures
        of_stop = (problem.under("stop") for problem in self.stop.level_problems(measures))
        of_expect = (
            problem.under("expect") for problem in self.expect.problems(all_measures(measures) | of_clients(measures))
        )
        of_hosts = (problem.under("hosts") for problem in host_problems(self.hosts, self.fleet))
        of_faults = repeat_problems(self.faults, self.roster, self.stop.time)
        if problems := [*of_stop, *of_expect, *shard_problems(self), *name_problems(self.fleet), *of_hosts, *of_faults]:
            raise Problems(problems)
        return self

    @property
    def default_name(self) -> str:
        """Return the trial's name where the scenario has no variants."""
        return self.method.name

    @property
    def measures(self) -> tuple[TaskMeasure, ...]:
        """Return what is measured of the task, the headline first."""
        return self._measures

    @property
    def num_workers(self) -> int:
        """Return the number of workers of all classes together."""
        return sum(device_class.count for device_class in self.fleet.values())

    @property
    def roster(self) -> Roster:
        """Return the nodes that faults can concern."""
        return roster(*_nodes(dict(self)), self.hosts)

    @property
    def promises(self) -> list[Promise]:
        """Return what each node may use of its host."""
        return promises(*_nodes(dict(self)))

    @property
    def sharding(self) -> ShardsSection | None:
        """Return how the layers lie on the workers; None where each has the whole model."""
        return (self.shards or ShardsSection()) if self.method.is_layerwise else None

    @property
    def serving(self) -> dict[Literal["store", "modules"], ServingSection]:
        """Return the sections of nodes that serve shards, by role."""
        return _serving(self.sharding, self.store, self.modules)


def _serving(
    sharding: ShardsSection | None, store: ServingSection | None, modules: ServingSection | None
) -> dict[Literal["store", "modules"], ServingSection]:
    found: dict[Literal["store", "modules"], ServingSection] = {}
    if sharding and sharding.traffic == "store":
        found["store"] = store or ServingSection()
    if sharding and sharding.modules == "apart":
        found["modules"] = modules or ServingSection()
    return found


def _nodes(trial: Mapping[str, Any]) -> tuple[dict[Role, Caps], dict[str, tuple[Sequence[str], Caps]]]:
    """Return the sections of the nodes that serve, and those of the workers with their names, by role and class."""
    serving: dict[Role, Caps] = {"server": trial["server"], "evaluator": trial["evaluator"]}
    serving |= dict(_serving(trial["shards"], trial["store"], trial["modules"]).items())
    return serving, {name: (class_nodes(name, each.count), each) for name, each in trial["fleet"].items()}


class Header(Section):
    """What holds for all variants."""

    name: Name
    """Name of the scenario, and of the folder of its runs."""
    question: str = ""
    """What the scenario is to find out, in a sentence."""
    seed: int = Field(default=1, ge=0, le=units.SEED_MAX)
    """Decides all that chance decides; the same seed gives the same draws."""


AnyTrial = TrialSection | ProgramTrial


class Scenario(Header):
    """A checked scenario: its header, and its trials with every variant merged in and every default filled in."""

    trials: dict[str, AnyTrial]
    """Trials by the variant's name, all of training or all of programs; where there are no variants, by the method's,
    or `program`."""
    sweep: SweepSection | None = None
    """Settings that `edgebed sweep` varies."""
    source: str = ""
    """Name of the scenario file as the user gave it; empty if it came as a dict."""
    places: dict[str, dict[str, InstanceOf[Location]]] = Field(default_factory=dict, repr=False)
    """For each trial: path of a key -> where it was written, for messages."""
    warnings: dict[str, list[str]] = Field(default_factory=dict, repr=False)
    """For each trial: what in it cannot be and is no mistake of the file, a sentence each (contradictions.py)."""

    @property
    def runs_programs(self) -> bool:
        """Whether nodes run programs of the user's, and train nothing."""
        return any(isinstance(trial, ProgramTrial) for trial in self.trials.values())

    @property
    def training(self) -> dict[str, TrialSection]:
        """Return the trials, which train; ScenarioError where they run programs."""
        if self.runs_programs:
            raise ScenarioError(
                f"{self.source or self.name}: its nodes run programs of your own, and this is for scenarios that train "
                "by a method; edgebed run, plan and validate take both"
            )
        return {name: trial for name, trial in self.trials.items() if isinstance(trial, TrialSection)}

    @property
    def programs(self) -> dict[str, ProgramTrial]:
        """Return the trials, which run programs."""
        assert self.runs_programs
        return {name: trial for name, trial in self.trials.items() if isinstance(trial, ProgramTrial)}

    def only(self, variants: Sequence[str]) -> Self:
        """Return the scenario with these of its trials alone, in its own order; ScenarioError with what there is.

        No name at all chooses all trials.
        """
        unknown = [name for name in dict.fromkeys(variants) if name not in self.trials]
        if unknown:
            raise ScenarioError(
                *(f"{self.source or self.name}: no variant '{name}'; {choose(name, self.trials)}" for name in unknown)
            )
        chosen = {name: trial for name, trial in self.trials.items() if not variants or name in variants}
        return self.model_copy(update={"trials": chosen})

    def place(self, trial: str, path: str) -> Location:
        """Return where `path` was written; reads as what a message begins with: `scenario.yaml:8:12: task.data`."""
        known = self.places.get(trial, {})
        keys = path.split(".")
        for depth in range(len(keys), 0, -1):
            if found := known.get(".".join(keys[:depth])):
                return found
        return Location(Place(""), tuple(keys))

    def cause(self, trial: str, *paths: str) -> Location:
        """Return the place to blame where several keys do not fit together: what an option set, else the first."""
        known = self.places.get(trial, {})
        written = (known[path] for path in paths if path in known)
        of_options = (each for each in written if each.place.source.startswith(OPTION))
        return next(of_options, self.place(trial, paths[0]))

    @property
    def folder(self) -> Path:
        """Return the folder of the scenario file, where the user's own modules are looked for."""
        return Path(self.source).absolute().parent if self.source else Path.cwd()
