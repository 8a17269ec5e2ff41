"""Runs a planned trial in the runtime that was asked for, and shows it to Prometheus while it goes on."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from edgebed.algorithms.registry import sees_inputs
from edgebed.errors import EdgebedError, InfrastructureError
from edgebed.fingerprint import fingerprint
from edgebed.learning.beginning import Beginning
from edgebed.learning.imports import reason, sources
from edgebed.learning.network import Network
from edgebed.observe.checkpoints import BackedUp, Checkpoint, Checkpoints
from edgebed.observe.journal import JournalWriter
from edgebed.observe.metrics import NodeMetrics
from edgebed.observe.output import say
from edgebed.observe.run_folder import TrialFolder
from edgebed.observe.standing import Status
from edgebed.observe.summary import TrialSummary
from edgebed.observe.targets import HttpServer, Target, TargetList, serve_controller
from edgebed.roles import records
from edgebed.roles.controller import Controller, Given, Past
from edgebed.roles.parameter_server import ParameterServer
from edgebed.roles.work import EvaluatorWork, Job, Steps, Work, Worked
from edgebed.runtimes import Emulation
from edgebed.runtimes.casting import shard_work
from edgebed.runtimes.control import Control
from edgebed.runtimes.live_controller import Launcher, LiveController
from edgebed.runtimes.process import ProcessLauncher
from edgebed.runtimes.simulation import Simulation
from edgebed.runtimes.watch import Watch
from edgebed.scenario.plan import NodePlan, Plan
from edgebed.scenario.planning import EVALUATOR, PlannedTrial
from edgebed.wire.tensors import as_bytes, encode_dense

LOOPBACK = "127.0.0.1"


class Host:
    """Where a run's trials run; a context manager, since the controller's pages are served meanwhile."""

    def __init__(self, *, runtime: str, processes: int, port: int, emulation: Emulation = "auto") -> None:
        """`port` is where the controller's pages are served; 0: any free one. `emulation` is for processes."""
        self.run = ""
        """The run's name, `<scenario>/<number>`, once it has one."""
        self.runtime = runtime
        self.processes = processes
        self.port = port
        self.emulation = emulation
        self.metrics = NodeMetrics("controller")
        self.targets = TargetList()
        self.status = Status(trial="", state="starting")
        self.server: HttpServer | None = None
        self.engine: dict[str, Any] = {}
        """The facts of the container engine, in the docker runtime."""

    def __enter__(self) -> Self:
        """Serve the controller's pages; the simulation has no nodes to be discovered, and forks."""
        if self.runtime != "simulation":
            address = LOOPBACK
            if self.runtime == "docker":
                from edgebed.runtimes.containers.site import prepare

                address, self.engine = prepare(say)
            self.server, self.port = serve_controller(
                self.metrics.registry, self.targets, lambda: self.status, address, self.port
            )
        return self

    def __exit__(self, *_: object) -> None:
        """Serve no longer."""
        if self.server:
            self.server.close()

    def run_trial(
        self,
        planned: PlannedTrial,
        beginning: Beginning,
        folder: TrialFolder,
        journal: JournalWriter,
        show: Callable[[Status], None],
        summary: Callable[[], TrialSummary],
        past: Past | None = None,
    ) -> None:
        """Run the trial to its end; `beginning` is the initial model, `summary` what its journal then tells.

        A trial that has a `past` goes on from its latest checkpoint.
        """
        plan = planned.plan

        def keep_status(status: Status) -> None:
            self.status = status
            show(status)

        until_s = past.until_s if past else 0.0
        checkpoints = Checkpoints(folder, beginning.theta)
        _require_fitting(checkpoints, plan, beginning)
        self.targets.clear()
        self.metrics.start_trial(
            plan,
            self.run,
            self.runtime,
            time.time(),
            applied_bytes=past.update_bytes if past else 0,
            trained_s=past.until_s - past.began_s if past else None,
        )
        if self.runtime == "simulation":
            simulation = Simulation(
                plan,
                checkpoints,
                jobs_of(planned, beginning),
                self.processes,
                journal,
                lambda heart: Watch(heart, keep_status, self.metrics.observe),
                past,
                until_s,
            )
            simulation.run()
            if simulation.interruptions and simulation.controller.outcome != "interrupted":
                raise KeyboardInterrupt  # the trial had ended by itself, but no other is wanted
            return
        heart = Controller(
            plan,
            payload_of(planned, checkpoints, beginning),
            self.runtime,
            time.monotonic_ns() - round(until_s * 1e9),
            code=fingerprint(),
            sources=sources(plan.nodes[0].task.python_path) if self.runtime == "docker" else (),
            linger_s=self.server.visits.linger_s if self.server else lambda: 0.0,
            past=past,
            backup_at=backups_of(checkpoints),
        )
        watch = Watch(heart, keep_status, self._observe(heart))
        with _control_in(folder.path.parent) or nullcontext() as control:
            LiveController(heart, self._launcher(plan, folder), journal, checkpoints, watch, control).run()
        if watch.interrupted and heart.outcome != "interrupted":
            raise KeyboardInterrupt  # as above
        if self.server and heart.outcome != "interrupted":
            found = summary()
            verdict = found.fidelity.verdict if found.fidelity else None
            self.metrics.judge_trial(verdict=verdict, steps_per_s=found.steps_per_s)
            self.server.visits.await_scrape()

    def _launcher(self, plan: Plan, folder: TrialFolder) -> Launcher:
        if self.runtime == "docker":
            from edgebed.runtimes.containers.launcher import ContainerLauncher

            return ContainerLauncher(plan, self.run, folder.logs)
        return ProcessLauncher(plan, folder.logs, self.emulation)

    def _observe(self, heart: Controller) -> Callable[[records.Record], None]:
        """Follow the records, and list a node for Prometheus once it is ready."""

        def observe(record: records.Record) -> None:
            self.metrics.observe(record)
            if isinstance(record, records.Node) and record.state == "stopped":
                self.targets.remove(record.name)
            if isinstance(record, records.Node) and record.state == "ready":
                member = heart.members[record.name]
                assert member.ready is not None
                target = Target(
                    address=member.ready.metrics_address,
                    node=record.name,
                    role=member.plan.role,
                    device_class=member.plan.device_class,
                    run=self.run,
                    trial=heart.plan.trial,
                )
                self.targets.add(target)

        return observe


def _control_in(folder: Path) -> Control | None:
    """The run's control socket; None where its folder cannot have one, which is no reason not to train."""
    try:
        return Control(folder)
    except InfrastructureError as error:
        say(f"nobody can act on the nodes of this run by hand: {error}")
        return None


def payload_of(planned: PlannedTrial, checkpoints: Checkpoints, beginning: Beginning) -> Callable[[NodePlan], Given]:
    """What each node is given: the server the latest model, the others their own part of the data and no more.

    Whoever computes with a model that has constants is given these, too.
    """
    data = planned.data

    def payload(node: NodePlan) -> Given:
        arrays: dict[str, NDArray[Any]]
        version = 0
        backup = checkpoints.backup if node.shard else None
        if node.role == "server":
            version, theta, state = Checkpoint(0, checkpoints.initial) if node.shard else checkpoints.latest
            arrays = {"theta": theta}
            if backup:
                arrays["state"] = backup.joined()
            elif state is not None:
                arrays["state"] = as_bytes(state)
        elif node.role == "evaluator":
            arrays = {"x": data.test_x, "y": data.test_y}
        else:
            x, y = examples_of(planned, node)
            arrays = {"x": x, "y": y}
        if (constants := beginning.constants(node)).size:
            arrays["constants"] = constants
        encoded = [encode_dense(name, np.ascontiguousarray(array)) for name, array in arrays.items()]
        frames = [frame for _, frames in encoded for frame in frames]
        tensors = tuple(tensor for tensor, _ in encoded)
        if node.role != "server" or backup is None:
            return Given(tensors, frames, version)
        return Given(tensors, frames, version, backup.step, backup.parts)

    return payload


def examples_of(planned: PlannedTrial, node: NodePlan) -> tuple[NDArray[Any], NDArray[Any]]:
    """The inputs that a node needs, which may be none, and its labels; who serves shards has what all shards have."""
    part = planned.parts.get(node.node, planned.parts[planned.plan.workers()[0].node])[: node.num_examples]
    x, y = planned.data.train_x, planned.data.train_y
    if not sees_inputs(node):
        x = x[:0]
    elif len(part) < len(x):  # of all of them no copy is made
        x = x[part]
    return x, y[part]


def backups_of(checkpoints: Checkpoints) -> Callable[[int], Given | None]:
    """The newest backup of all shards that is not beyond a step."""

    def backup_at(step: int) -> Given | None:
        backup = checkpoints.backup_at(step)
        if backup is None:
            return None
        tensor, frames = encode_dense("state", backup.joined())
        return Given((tensor,), frames, backup_step=backup.step, backup_parts=backup.parts)

    return backup_at


def jobs_of(planned: PlannedTrial, beginning: Beginning) -> Callable[[str, Job], Steps]:
    """Does any node's job: one network holds all the data, and a node's positions are looked up in its part."""
    data, plan = planned.data, planned.plan
    works: dict[str, Worked] = {}
    constants = beginning.constants(plan.node(EVALUATOR))
    trained = Network(plan.nodes[0].task, data.train_x, data.train_y, constants)
    tested = Network(plan.nodes[0].task, data.test_x, data.test_y, constants)

    class Part:
        """The network as one node sees it."""

        def __init__(self, part: NDArray[np.int64]) -> None:
            self.part = part

        def gradient(
            self, theta: NDArray[np.float32], batch: NDArray[np.int64], key: int
        ) -> tuple[NDArray[np.float32], float]:
            return trained.gradient(theta, self.part[batch], key)

    def make(node: str) -> Worked:
        if plan.node(node).shard:
            return shard_work(
                plan.node(node), *examples_of(planned, plan.node(node)), beginning.constants(plan.node(node))
            )
        if node in planned.parts:
            return Work(plan.node(node), Part(planned.parts[node]))
        return EvaluatorWork(tested)

    def run_job(node: str, job: Job) -> Steps:
        try:
            if node not in works:
                works[node] = make(node)
            work = works[node]
            return (yield from work.steps(job)) if isinstance(work, Work) else work.run(job)
        except (Exception, SystemExit) as error:
            raise InfrastructureError(f"{node} failed in its work: {reason(error)}") from error

    return run_job


def _require_fitting(checkpoints: Checkpoints, plan: Plan, beginning: Beginning) -> None:
    """EdgebedError where the trial's server, or a shard, cannot go on from what was kept."""
    folder, latest, server = checkpoints.folder, checkpoints.latest, plan.node("server")
    if server.shard is None:
        _require_kept(plan, folder.latest_checkpoint, latest.version, lambda: _begin_server(server, latest))
    elif backup := checkpoints.backup:
        _require_kept(plan, folder.backup(backup.step), backup.step, lambda: _begin_shards(plan, backup, beginning))


def _require_kept(plan: Plan, path: Path, version: int, begin: Callable[[], None]) -> None:
    problem = ""
    if plan.stop_updates is not None and version > plan.stop_updates:
        problem = f"version: {version:,}, where the trial ends at update {plan.stop_updates:,}"
    else:
        try:
            begin()
        except ValueError as error:
            problem = str(error)
    if problem:
        raise EdgebedError(f"{path}: no checkpoint of this trial: {problem}; restore its own, or take it away")


def _begin_server(server: NodePlan, latest: Checkpoint) -> None:
    if latest.state is not None:
        ParameterServer(server, latest.theta.copy(), (), version=latest.version, state=latest.state)


def _begin_shards(plan: Plan, backup: BackedUp, beginning: Beginning) -> None:
    from edgebed.learning.shard_building import module_networks, shard_network

    server = plan.node("server").shard
    names = [name for name, _ in server.sizes] if server else []
    if sorted(backup.states) != sorted(names):
        raise ValueError(f"it is of {', '.join(backup.states) or 'no shards'}, where the trial has {', '.join(names)}")
    for node in map(plan.node, names):
        apart = node.role == "modules"
        networks = module_networks(node) if apart else shard_network(node, beginning.constants(node))
        try:
            networks.restore(backup.states[node.node])
        except ValueError as error:
            raise ValueError(f"{node.node}: {error}") from error
