"""Turn a checked scenario into the plan of every trial: data loaded and cut, the model's layout known, nodes named.

What chance decides is decided here, by the scenario's seed alone, so two variants with the same task see the same data
in the same parts. Mistakes that only the data or the model can show are found here, before anything starts.
"""

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.batches import Cut
from edgebed.algorithms.registry import has_own_models, local_work_of, rule_of, sees_inputs
from edgebed.core.errors import LocatedProblem, ScenarioError, Uncountable
from edgebed.core.imports import begins, is_import_path, own_folders, reason, resolve, takes
from edgebed.core.measures.task import TEST, VALIDATION
from edgebed.core.plan import (
    GRADIENT_TIME_S,
    ArrayForm,
    Part,
    Task,
    TensorLayout,
    TrainingNode,
    TrainingPlan,
)
from edgebed.core.planned.clients import ByClient
from edgebed.core.planned.device_core import REFERENCE
from edgebed.core.planned.fault import FaultPlan
from edgebed.core.quantities import count_text, first_text
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.data_sets.examples import Examples
from edgebed.learning.data_sets.registry import DATA_SETS, load_data
from edgebed.learning.data_sets.validation import set_apart
from edgebed.learning.models import examined
from edgebed.learning.objectives.objective import Objective, OtherTargetsError
from edgebed.learning.objectives.registry import objective_of, objective_of_task, others_that_take
from edgebed.planning.by_client import ClientParts, client_parts
from edgebed.planning.deadlines import with_deadlines
from edgebed.planning.division import Division, divide, hold_out, used_of
from edgebed.planning.fault_warnings import check_between
from edgebed.planning.layer_costs import counted, measured
from edgebed.planning.node_plans import NodePlanning
from edgebed.planning.partition import LayerPartition
from edgebed.planning.placement import check_hosts, host_plans
from edgebed.planning.planned import PlannedTrial
from edgebed.planning.shard_memory import own_bytes
from edgebed.planning.sharding import Sharding, shard
from edgebed.roles.part_trials import try_parts
from edgebed.scenario.choices import HeldOut
from edgebed.scenario.devices.caps import class_nodes
from edgebed.scenario.faults.custom import OwnKind
from edgebed.scenario.faults.registry import name_of, plan_faults
from edgebed.scenario.parts import write_part
from edgebed.scenario.schema import MODEL_SIZES, Scenario, TaskSection, TrialSection
from edgebed.wire.tensors import MAX_BYTES

_LayoutKey = tuple[str, tuple[ArrayForm, ...], int, tuple[tuple[str, int], ...]]
SIZES = tuple(f"task.{name}" for name in MODEL_SIZES)


@dataclass(frozen=True, kw_only=True, eq=False)
class PlannedTraining(PlannedTrial):
    """The plan of a trial that trains, and the data it cuts."""

    plan: TrainingPlan
    data: DataSet
    parts: dict[str, NDArray[np.int64]]
    """Positions of each worker's examples in `data.train`, increasing, by worker; no two workers share one, but all
    shards have all."""
    workers_left_out: tuple[str, ...] = ()
    """Workers of the fleet that are no nodes, since they have too few examples."""
    clients_left_out: tuple[int, ...] = ()
    """Numbers of the clients that are on no worker for the same reason."""
    validation: Examples | None = None
    """The validation part; None: the task has none."""
    clients: ClientParts | None = None
    """Whose examples models are measured on client by client; None: nobody's."""
    num_kept: int = 0
    """Clients that are too small for a validation part, and keep their examples for training."""
    partition: LayerPartition | None = None
    """How the model is cut, and the costs of that; None where each worker has the whole model."""

    @property
    def measured(self) -> dict[str, Examples]:
        """The parts of the data that the evaluator measures the model on."""
        return _measured(self.data, self.validation)

    def examples_of(self, by_client: ByClient) -> Examples:
        """The held-out examples of some clients."""
        assert self.clients is not None
        measured = self.clients.measured
        assert measured.clients is not None
        return measured.take(np.flatnonzero(np.isin(measured.clients, by_client.clients)))

    def examples(self, node: TrainingNode) -> Examples:
        """The examples that a node needs; of some the targets alone.

        A node that serves shards, such as the one with all gradient modules, has the examples that all shards have.
        """
        part = self.parts.get(node.node, next(iter(self.parts.values())))[: node.num_examples]
        train = self.data.train if sees_inputs(node) else self.data.train.without_inputs()
        return train if len(part) == len(self.data.train) else train.take(part)  # of all of them no copy is made


def plan_trials(
    scenario: Scenario,
    *,
    trace: bool = False,
    loaded: dict[str, DataSet] | None = None,
    tried: dict[bytes, str] | None = None,
) -> list[PlannedTraining]:
    """The plans of all trials in order; `trace` makes nodes journal every message.

    `loaded` are data sets that were read already, by name, to which those are added that are the same for each seed.
    `tried` are tasks that were tried already, with what there is to be warned of; those of here are added.
    ScenarioError with what is wrong in any trial. Data comes from `$EDGEBED_DATA_DIR` or the user's own data folder,
    and may be downloaded into it.
    """
    planner = _Planner(scenario, {} if loaded is None else loaded, {} if tried is None else tried)
    planned: list[PlannedTraining] = []
    problems: dict[LocatedProblem, None] = {}  # in order, each once: variants share most of a scenario
    for name, trial in scenario.training.items():
        try:
            planned.append(planner.plan(name, trial, trace))
        except ScenarioError as error:
            problems |= dict.fromkeys(error.located)
    if problems:
        raise ScenarioError(*problems)
    return planned


class _Planner:
    """Loads each data set, and examines each model, once for all trials."""

    def __init__(self, scenario: Scenario, loaded: dict[str, DataSet], tried: dict[bytes, str]) -> None:
        self.scenario = scenario
        self.loaded = loaded
        self.tried = tried
        self.data = dict(loaded)
        self.held_out: dict[tuple[int, HeldOut], tuple[DataSet, tuple[int, ...]]] = {}
        self.layouts: dict[_LayoutKey, tuple[TensorLayout, ...]] = {}
        self.counted: dict[bytes, Task] = {}

    def plan(self, name: str, trial: TrialSection, trace: bool) -> PlannedTraining:
        data, held_out = self._data(name, trial.task)
        task = self._task(name, trial, data)
        used, validation, num_kept = self._set_apart(name, trial.task, data)
        division = self._divided(name, trial, data, used)
        parts = division.parts
        self._check_parts(name, trial, data, parts)
        self._try_smallest(name, trial, task, division, data)
        check_hosts(self.scenario, name)
        sharding = self._shard(name, trial, task, next(iter(parts.values())), data) if trial.sharding else None
        planned_faults = tuple(plan_faults(trial.faults, trial.roster, self.scenario.seed, trial.stop.time))
        faults = tuple(fault for fault in planned_faults if fault.node not in division.workers_left_out)
        measured = _measured(data, validation)
        clients = None
        if trial.evaluation.by_client:
            with self._locating(name, "evaluation.by_client", "task.data"):
                clients = client_parts(
                    trial.evaluation.by_client, data, measured, [*parts.values()],
                    by_evaluator=not has_own_models(trial.method),
                )  # fmt: skip
            self._try_clients(name, task, clients, data)
        planned_nodes = NodePlanning(
            trial=trial, task=task, data=data, parts=parts, validation=validation, clients=clients, sharding=sharding,
            faults=faults, seed=self.scenario.seed, trace=trace, held_out=held_out,
        )  # fmt: skip
        plan = TrainingPlan(
            scenario=self.scenario.name,
            trial=name,
            question=self.scenario.question,
            seed=self.scenario.seed,
            measures=objective_of_task(task).measures,
            nodes=planned_nodes.nodes(),
            client_names=data.client_names,
            stop_updates=trial.stop.updates,
            stop_time_s=trial.stop.time,
            stop_level=trial.stop.level,
            sweep_level=self.scenario.sweep.level if self.scenario.sweep and not trial.stop.level else None,
            join_deadline_s=trial.deadlines.join,
            faults=faults,
            on_failure=trial.on_failure,
            restart_delay_s=trial.restart_delay,
            detector=trial.detector,
            check_s=trial.deadlines.check,
            expectations=tuple(
                (measure, bound.comparison, bound.value) for measure, bound in trial.expect.bounds.items()
            ),
            expects_trusted=trial.expect.verdict == "trusted",
            security=trial.security or ("curve" if len(trial.hosts) > 1 else "plain"),
            hosts=host_plans(trial.hosts),
            is_profiled=trial.sharding is not None and trial.sharding.profile is not None,
        )
        for k, entry in enumerate(trial.faults):
            with self._locating(name, f"faults.{k}.{entry.kind}"):
                check_between(plan, name_of(entry, k))
        step_s = sharding.partition.step_s if sharding else 0.0
        return PlannedTraining(
            plan=with_deadlines(plan, trial.deadlines, step_s),
            data=data,
            parts=parts,
            validation=validation,
            clients=clients,
            num_kept=num_kept,
            workers_left_out=division.workers_left_out,
            clients_left_out=division.clients_left_out,
            partition=sharding.partition if sharding else None,
            warnings=(
                *self.scenario.warnings.get(name, ()),
                *_without_node(planned_faults, division),
                *(
                    str(self.scenario.cause(name, "task.data").problem(f"{data.name}: {doubt}"))
                    for doubt in data.doubts
                ),
                *filter(None, [self.tried.get(_tried_key(task, data))]),
            ),
        )

    def _data(self, name: str, task: TaskSection) -> tuple[DataSet, tuple[int, ...]]:
        """The data as training and testing see it, and who is held out; once for all trials that hold out the same."""
        data = self._load(name, task)
        key = id(data), task.held_out
        if key not in self.held_out:
            with self._locating(name, "task.held_out", "task.data"):
                self.held_out[key] = hold_out(data, task.held_out, self.scenario.seed)
        return self.held_out[key]

    def _load(self, name: str, task: TaskSection) -> DataSet:
        part = task.data
        key = str(write_part(part))
        if key not in self.data:
            with self._locating(name, "task.data"):
                self.data[key] = load_data(
                    part.name,
                    seed=self.scenario.seed,
                    settings=part.settings,
                    beside=self.scenario.folder,
                    python_path=self._python_path(part.name),
                )
            if part.name in DATA_SETS and DATA_SETS[part.name].is_fixed:
                self.loaded[key] = self.data[key]
        return self.data[key]

    def _shard(
        self, name: str, trial: TrialSection, task: Task, examples: NDArray[np.int64], data: DataSet
    ) -> Sharding:
        from edgebed.learning.models.anatomy import anatomy_of  # loads torch
        from edgebed.learning.shards.building import check_beside

        assert trial.sharding is not None
        profile, method = trial.sharding.profile, trial.method
        with self._locating(name, "method", "task.data", "task.objective"):
            check_beside(task, method)
        with self._locating(name, "task.model", *SIZES):
            anatomy = anatomy_of(task, method)
        with self._locating(name, "shards.profile", "task.batch_size", *SIZES, "task.model", "method"):
            found = measured(task, method, anatomy, profile) if profile else counted(task, method, anatomy)
        rule, size = rule_of(method), data.train.input_bytes
        own = [own_bytes(rule, len(examples), size, is_first=k == 0) for k in range(trial.num_workers)]
        with self._locating(name, "shards.cuts", "task.model", *(f"fleet.{key}.count" for key in trial.fleet)):
            return shard(trial, task, anatomy, found, own, self.scenario.seed, len(examples))

    def _task(self, name: str, trial: TrialSection, data: DataSet) -> Task:
        task = trial.task
        parts = (part.name for part in trial.method.parts.values())
        faults = (each.path for each in trial.faults if isinstance(each, OwnKind))
        python_path = self._python_path(task.model, task.objective.name, *parts, *faults)
        with self._locating(name, "task.objective", "task.data"):
            objective = objective_of(task.objective, python_path)
        outputs, settled = self._settled(name, task, objective, data)
        key = (task.model, data.train.input_forms, outputs, task.sizes)
        if key not in self.layouts:
            with self._locating(name, "task.model", "task.data", *SIZES):
                self.layouts[key] = examined.layout(*key[:3], python_path, task.sizes)
        if any(form.dtype == "uint8" for form in data.train.input_forms) and is_import_path(task.model):
            from edgebed.learning.models.lookups import refuse_scaled_tokens  # loads torch

            with self._locating(name, "task.data", "task.model", *SIZES):
                refuse_scaled_tokens(task.data.name, *key[:3], python_path, task.sizes)
        planned = Task(
            model=task.model,
            inputs=data.train.input_forms,
            targets=data.train.target_forms,
            outputs=outputs,
            layout=self.layouts[key],
            batch_size=task.batch_size,
            scaling=task.inputs,
            objective=settled,
            sizes=task.sizes,
            gradient_time_s=task.gradient_time or GRADIENT_TIME_S,
            compression_time_s=task.compression_time,
            exchange_time_s=task.exchange_time,
            python_path=python_path,
        )
        self._try(name, planned, data)
        with self._locating(name, "method"):
            try_parts(trial.method, planned)
        is_said = task.gradient_time or (trial.sharding and trial.sharding.profile)
        return planned if is_said else self._counted(planned)

    def _settled(self, name: str, task: TaskSection, objective: Objective, data: DataSet) -> tuple[int, Part]:
        """The number of the model's outputs, and the objective with settings that follow from the training examples.

        ScenarioError where the objective cannot take the data's targets, or the model needs a number that nothing says.
        """
        part = task.objective
        targets = [each.targets for each in data.parts.values()]

        def blamed(problem: str, others: Sequence[str] = ()) -> LocatedProblem:
            setting, _, message = problem.partition(": ")
            if setting in part.settings:
                return self.scenario.cause(name, f"task.objective.{setting}").problem(message)
            told = f"; such targets are taken by objective: {' or '.join(others)}" if others else ""
            return self.scenario.cause(name, "task.data", "task.objective").problem(f"{data.name}: {problem}{told}")

        try:
            outputs: Any = objective.outputs(targets, data.outputs)
            found = objective.settled(data.train.targets, outputs)
        except OtherTargetsError as error:
            others = others_that_take(part.name, targets, data.outputs)
            raise ScenarioError(*(blamed(problem, others) for problem in error.problems)) from error
        except ScenarioError as error:
            raise ScenarioError(*map(blamed, error.problems)) from error
        except Exception as error:
            place, told = self.scenario.cause(name, "task.objective", "task.data"), reason(error)
            raise ScenarioError(place.problem(f"{part.name} with {data.name}: {told}")) from error
        if outputs == 0 and _needs_outputs(task.model, self._python_path(task.model)):
            raise ScenarioError(
                blamed(f"it does not say how many outputs {task.model} has; return a DataSet with outputs=")
            )
        if type(outputs) is not int or outputs < 0:
            told = (
                f"{part.name}: its outputs are {outputs!r}, not a whole number from 1{begins(type(objective).outputs)}"
            )
            raise ScenarioError(self.scenario.cause(name, "task.objective").problem(told))
        return outputs, msgspec.structs.replace(part, settings=part.settings | found) if found else part

    def _try(self, name: str, task: Task, data: DataSet) -> None:
        """Try model and objective with some of the data, where any of these is the user's own, or little is known."""
        key = _tried_key(task, data)
        if key in self.tried or (examined.is_known(task) and not is_import_path(data.name)):
            return
        from edgebed.learning.task_trial import try_task  # loads torch

        keys = ("task.objective", "task.model", "task.data", *SIZES)
        warning = try_task(task, data, lambda key: self._locating(name, key, *keys))
        self.tried[key] = warning and str(self.scenario.cause(name, "task.model", *keys).problem(warning))

    def _try_smallest(self, name: str, trial: TrialSection, task: Task, division: Division, data: DataSet) -> None:
        """Try the smallest mini-batch of all workers, where batch normalisation or code of the user's may mind."""
        is_own = is_import_path(task.model) or is_import_path(task.objective.name)
        if trial.method.is_layerwise or not (is_own or any(tensor.is_buffer for tensor in task.layout)):
            return
        by_epoch = local_work_of(trial.method, task).by_epoch
        size = min(Cut(len(part), task.batch_size, by_epoch).smallest for part in division.parts.values())
        key = msgspec.json.encode((msgspec.structs.replace(task, layout=()), data.name, size))
        if size == task.batch_size or key in self.tried:
            return
        from edgebed.learning.task_trial import try_size  # loads torch

        with self._locating(name, "task.model", "task.batch_size", "task.min_examples", "task.split", *_shares(trial)):
            try_size(task, data, size)
        self.tried[key] = ""

    def _try_clients(self, name: str, task: Task, clients: ClientParts, data: DataSet) -> None:
        """Try what is measured of single clients, where that is the user's own code."""
        key = msgspec.json.encode((task.objective, task.model, data.name, clients.plan.part))
        if key in self.tried or not is_import_path(task.objective.name):
            return
        from edgebed.learning.task_trial import try_clients  # loads torch

        with self._locating(name, "task.objective", "evaluation.by_client"):
            try_clients(task, clients.measured, data.client_names)
        self.tried[key] = ""

    def _counted(self, task: Task) -> Task:
        """The task with what a gradient takes by its operations; as it is where these cannot be counted."""
        key = msgspec.json.encode(task)
        if key not in self.counted:
            is_own = is_import_path(task.model) or is_import_path(task.objective.name)
            try:
                flop = examined.gradient_operations(task) if is_own else remembered_operations(key)
            except Uncountable as error:
                self.counted[key] = msgspec.structs.replace(task, uncounted=str(error))
            else:
                self.counted[key] = msgspec.structs.replace(
                    task, gradient_flop=flop, gradient_time_s=REFERENCE.gradient_s(flop)
                )
        return self.counted[key]

    def _set_apart(self, name: str, task: TaskSection, data: DataSet) -> tuple[NDArray[np.int64], Examples | None, int]:
        """The positions of the examples to train on, the validation part, and how many clients have none of it."""
        seed = self.scenario.seed
        used = used_of(data, task.fraction, seed)
        if task.validation is None:
            return used, None, 0
        if task.validation.share is None:
            if data.validation is None:
                place = self.scenario.cause(name, "task.validation", "task.data")
                raise ScenarioError(place.problem(f"{data.name} has no validation part of its own; give a share: 10%"))
            return used, data.validation, 0
        apart = set_apart(used, data.train.clients, task.validation.share, seed)
        if not len(apart.validation):
            place = self.scenario.cause(name, "task.validation", "task.fraction")
            few = "no client has enough examples" if data.train.clients is not None else "there are too few examples"
            raise ScenarioError(place.problem(f"{few} to hold that share of them out; give a larger share"))
        return apart.training, data.train.take(apart.validation), apart.kept

    def _divided(self, name: str, trial: TrialSection, data: DataSet, used: NDArray[np.int64]) -> Division:
        """The parts of the workers of the examples that are used; all shards have all of them."""
        seed = self.scenario.seed
        workers = [node for key, members in trial.fleet.items() for node in class_nodes(key, members.count)]
        if trial.method.is_layerwise:
            return Division(parts=dict.fromkeys(workers, used))
        with self._locating(
            name, "task.split", "task.objective", "task.held_out", "task.min_examples", *_shares(trial)
        ):
            division = divide(trial.task, data, _labels(trial.task, data), used, workers, seed)
        if not division.parts:
            what, least = "client" if division.clients_left_out else "worker", trial.task.min_examples
            place = self.scenario.cause(name, "task.min_examples", "task.split", *_shares(trial))
            have = count_text(least, "example")
            raise ScenarioError(place.problem(f"no {what} has {have}; the most that one has is {division.most:,}"))
        return division

    def _check_parts(self, name: str, trial: TrialSection, data: DataSet, parts: dict[str, NDArray[np.int64]]) -> None:
        largest = max(parts, key=lambda worker: len(parts[worker]))
        if len(parts[largest]) * data.train.input_bytes > MAX_BYTES:
            place = self.scenario.cause(name, "task.data", *_shares(trial))
            raise ScenarioError(
                place.problem(
                    f"the part of worker {largest} is larger than the {MAX_BYTES >> 30} GiB that a node can be sent. "
                    "Use more workers, a smaller fraction or 8-bit inputs."
                )
            )
        if trial.method.is_layerwise and trial.task.batch_size > len(parts[largest]):
            place = self.scenario.cause(name, "task.batch_size", *_shares(trial))
            have = count_text(len(parts[largest]), "example")
            raise ScenarioError(
                place.problem(
                    f"a batch of {trial.task.batch_size} is more than the {have} that shards train on. Use a smaller "
                    "batch or a larger fraction."
                )
            )

    def _python_path(self, *names: str) -> tuple[str, ...]:
        """Where the user's modules are looked for; nothing if all is built in, so that such plans name no folder."""
        return own_folders(self.scenario.folder) if any(map(is_import_path, names)) else ()

    @contextlib.contextmanager
    def _locating(self, name: str, path: str, *others: str) -> Iterator[None]:
        """Put the place of `path`, or of an option for one of the `others`, in front of a ScenarioError."""
        try:
            yield
        except ScenarioError as error:
            place, key = self.scenario.cause(name, path, *others), path.rpartition(".")[2]
            raise ScenarioError(*(place.problem(text.removeprefix(f"{key}: ")) for text in error.problems)) from error


def _measured(data: DataSet, validation: Examples | None) -> dict[str, Examples]:
    """The parts of the data that models are measured on."""
    return {TEST: data.test} | ({} if validation is None else {VALIDATION: validation})


@functools.lru_cache(maxsize=100)
def remembered_operations(task: bytes) -> int:
    """Operations of a gradient of a built-in model, which stay the same: studies plan a task for each of their runs."""
    return examined.gradient_operations(msgspec.json.decode(task, type=Task))


def _labels(task: TaskSection, data: DataSet) -> NDArray[np.integer]:
    """The (N,) labels by which examples are divided; zeros where the split needs none."""
    found = objective_of(task.objective).labels(data.train.targets)
    if found is None and task.split.kind in ("dirichlet", "by-label"):
        raise ScenarioError(
            f"{task.split.kind} divides examples by their labels, and {task.objective.name} has none; use iid"
        )
    return np.zeros(len(data.train), np.int64) if found is None else found


def _without_node(faults: Sequence[FaultPlan], division: Division) -> Iterator[str]:
    """A sentence on the faults of workers that are left out."""
    concerned = dict.fromkeys(fault.node for fault in faults if fault.node in division.workers_left_out)
    if concerned:
        yield f"faults of {first_text([*concerned], 5)} do not happen: left out, with fewer than task.min_examples."


def _shares(trial: TrialSection) -> tuple[str, ...]:
    """The keys beside the split that decide how many examples a worker gets."""
    return ("task.fraction", *(f"fleet.{name}.count" for name in trial.fleet))


def _needs_outputs(model: str, python_path: Sequence[str]) -> bool:
    """Whether a model is told how many outputs it has."""
    return not is_import_path(model) or takes(resolve(model, python_path), "outputs")


def _tried_key(task: Task, data: DataSet) -> bytes:
    """What a task is tried with."""
    return msgspec.json.encode((task.model, task.inputs, task.targets, task.outputs, task.objective, data.name))
