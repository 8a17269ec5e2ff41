"""The plans of a trial's nodes, a function for each role: what of scenario, data and faults concerns it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.batches import Cut
from edgebed.algorithms.registry import has_own_models, local_work_of, pushes_in_turn
from edgebed.core.plan import (
    EvaluatorPlan,
    ModulesPlan,
    ServerPlan,
    StorePlan,
    Task,
    TrainingNode,
    WorkerPlan,
)
from edgebed.core.planned.fault import FaultPlan, PointTrigger, nodes_with_changed_links
from edgebed.core.planned.link import LinkPlan
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.data_sets.examples import Examples
from edgebed.learning.objectives.objective import Objective
from edgebed.learning.objectives.registry import objective_of_task
from edgebed.planning.by_client import ClientParts
from edgebed.planning.sharding import Sharding
from edgebed.scenario.devices.caps import class_nodes
from edgebed.scenario.hosts import place
from edgebed.scenario.links import link_of
from edgebed.scenario.schema import TrialSection

SERVER = "server"
EVALUATOR = "evaluator"


@dataclass(frozen=True, kw_only=True, eq=False)
class NodePlanning:
    """What the plans of all nodes of a trial are made from."""

    trial: TrialSection
    task: Task
    data: DataSet
    parts: Mapping[str, NDArray[np.int64]]
    """Positions of each worker's examples."""
    validation: Examples | None
    clients: ClientParts | None
    sharding: Sharding | None
    faults: tuple[FaultPlan, ...]
    seed: int
    trace: bool
    held_out: tuple[int, ...] = ()
    """Numbers of the clients that nobody trains on."""
    _links: dict[int, LinkPlan] = field(default_factory=dict)
    """Links of sections, by identity, whose nodes all have the same."""

    @property
    def pull(self) -> Literal["full", "changed-since"]:
        """What a worker is sent; of a model whose parts are pushed in turn, those that have changed."""
        return "changed-since" if pushes_in_turn(self.trial.method) else self.trial.pull

    def nodes(self) -> tuple[TrainingNode, ...]:
        """The plans of server, evaluator, nodes that serve shards, and workers, in this order."""
        serving = [self.store() if role == "store" else self.modules() for role in self.trial.serving]
        workers = [
            self.worker(node, name)
            for name, device_class in self.trial.fleet.items()
            for node in class_nodes(name, device_class.count)
            if node in self.parts
        ]
        return (self.server(), self.evaluator(), *serving, *workers)

    def server(self) -> ServerPlan:
        """The plan of the server."""
        every = self.trial.checkpoints.every
        return ServerPlan(
            **self._linked(SERVER, SERVER, self.trial.server),
            epochs_a_push=_epochs_a_push(self.trial, self.task, self.parts),
            stop_updates=self.trial.stop.updates,
            pull=self.pull,
            shard=self.sharding.server if self.sharding else None,
            checkpoint_every_updates=every.updates,
            checkpoint_every_s=every.time_s,
            due_every_updates=self.trial.evaluation.every.updates,
            durability="none" if self.sharding else self.trial.server.durability,
            non_finite=self.trial.server.non_finite,
        )

    def evaluator(self) -> EvaluatorPlan:
        """The plan of the evaluator, which has the parts that are held out."""
        every = self.trial.evaluation.every
        return EvaluatorPlan(
            **self._common(EVALUATOR, EVALUATOR, self.trial.evaluator),
            num_examples=len(self.data.test),
            num_validation=0 if self.validation is None else len(self.validation),
            label_counts=self._label_counts(self.data.test),
            held_out=self.held_out,
            evaluate_every_updates=every.updates,
            evaluate_every_s=every.time_s,
            by_client=self.clients.plan if self.clients and not has_own_models(self.trial.method) else None,
        )

    def store(self) -> StorePlan:
        """The plan of the node that stores what shards send each other."""
        shard = self.sharding.serving.get("store") if self.sharding else None
        return StorePlan(**self._linked("store", "store", self.trial.serving["store"]), shard=shard)

    def modules(self) -> ModulesPlan:
        """The plan of the node that has all gradient modules, and the labels of the examples that all shards have."""
        return ModulesPlan(
            **self._linked("modules", "modules", self.trial.serving["modules"]),
            num_examples=len(next(iter(self.parts.values()))),
            shard=self.sharding.serving.get("modules") if self.sharding else None,
        )

    def worker(self, node: str, device_class: str) -> WorkerPlan:
        """The plan of a worker of a device class."""
        section, part = self.trial.fleet[device_class], self.parts[node]
        clients = self._clients(part)
        return WorkerPlan(
            **self._linked(node, device_class, section),
            compute_speed=section.compute_speed,
            core=section.core,
            waiting=section.waiting,
            num_workers=len(self.parts),
            num_examples=len(part),
            clients=clients,
            by_client=self.clients.plan.only(clients) if self.clients and has_own_models(self.trial.method) else None,
            label_counts=self._label_counts(self.data.train, part),
            pull=self.pull,
            shard=self.sharding.workers[node] if self.sharding else None,
            points=tuple(self._points.get(node, ())),
        )

    def _clients(self, part: NDArray[np.int64]) -> tuple[int, ...]:
        """With a split by client, the numbers of those whose examples are in a part."""
        clients = self.data.train.clients
        if clients is None or self.trial.task.split.kind != "by-client":
            return ()
        return tuple(np.unique(clients[part]).tolist())

    def _linked(self, node: str, device_class: str, section: Any) -> dict[str, Any]:
        """The fields of every node on the data network."""
        link = self._links.get(id(section)) or link_of(section, self.seed, node)
        if section.link_trace is None:
            self._links[id(section)] = link
        return self._common(node, device_class, section) | {"link": link, "changeable": node in self._changed}

    def _common(self, node: str, device_class: str, section: Any) -> dict[str, Any]:
        """The fields of every node."""
        return {
            "node": node,
            "device_class": device_class,
            "host": self._placement.get(node, ""),
            "seed": self.seed,
            "cpus": section.cpus,
            "restart_s": self.trial.restart_time.server if node == SERVER else self.trial.restart_time.others,
            "memory_bytes": section.memory_cap,
            "task": self.task,
            "method": self.trial.method,
            "trace": self.trace,
            "check_s": self.trial.deadlines.check,
        }

    def _label_counts(self, examples: Examples, which: NDArray[np.int64] | None = None) -> tuple[int, ...]:
        """The number of those examples with each label; nothing where they have none."""
        labels = self._objective.labels(examples.targets)
        if labels is None:
            return ()
        counted = np.bincount(labels if which is None else labels[which], minlength=self.task.outputs)
        return tuple(int(count) for count in counted)

    @cached_property
    def _objective(self) -> Objective:
        return objective_of_task(self.task)

    @cached_property
    def _placement(self) -> dict[str, str]:
        """The host of each node."""
        return place(self.trial.hosts, self.trial.promises)

    @cached_property
    def _points(self) -> dict[str, list[PointTrigger]]:
        """Where faults wait for each worker."""
        points: dict[str, list[PointTrigger]] = {}
        for k, fault in enumerate(self.faults):
            if fault.trigger.point is not None:
                points.setdefault(fault.node, []).append(PointTrigger(fault=k, trigger=fault.trigger))
        return points

    @cached_property
    def _changed(self) -> set[str]:
        """Nodes whose links faults change."""
        return nodes_with_changed_links(self.faults)


def _epochs_a_push(trial: TrialSection, task: Task, parts: Mapping[str, NDArray[np.int64]]) -> float:
    """Epochs that a push stands for, on the mean of all workers."""
    if trial.method.is_layerwise:
        return 0.0
    work, sizes = local_work_of(trial.method, task), [len(part) for part in parts.values()]
    cuts = (Cut(size, task.batch_size, work.by_epoch) for size in sizes)
    examples = fmean(work.batches(cut.examples, task.batch_size) * cut.mean_size for cut in cuts)
    return examples / sum(sizes)
