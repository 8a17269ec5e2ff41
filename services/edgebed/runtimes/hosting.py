"""Runs a planned trial in the runtime that was asked for, and shows it to Prometheus meanwhile."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

from edgebed.core import records
from edgebed.core.console import say
from edgebed.core.plan import ProgramsPlan
from edgebed.core.planned.hosts import EngineAddress
from edgebed.core.runtimes import TRAITS, Emulation
from edgebed.core.runtimes import Runtime as RuntimeName
from edgebed.journal.checkpoints import CheckpointStore
from edgebed.journal.journal import JournalWriter
from edgebed.journal.outcome import AnySummary, outcome_of
from edgebed.journal.run_folder import TrialFolder
from edgebed.journal.summary import TrialSummary
from edgebed.journal.trial_state import TrialStatus
from edgebed.learning.beginning import Beginning
from edgebed.metrics.discovery import HttpServer, Target, TargetList, serve_controller
from edgebed.metrics.trial_metrics import TrialMetrics
from edgebed.planning.planning import PlannedTraining
from edgebed.roles.control.controller import Controller, ResumedTrial
from edgebed.runtimes.checkpoint_fit import require_fitting
from edgebed.runtimes.runtime import Assignment, ProgramAssignment, ProgramRuntime, Runtime
from edgebed.runtimes.watch import StatusFeed


class TrialHost:
    """Runs a run's trials; a context manager, since the controller's pages are served meanwhile."""

    def __init__(self, runtime: Runtime, port: int) -> None:
        """`port` is where the controller's pages are served; 0: any free one."""
        self.run = ""
        """The run's name, `<scenario>/<number>`, once it has one."""
        self.runtime = runtime
        self.port = port
        self.metrics = TrialMetrics()
        self.targets = TargetList()
        self.status = TrialStatus(trial="", state="starting")
        self.server: HttpServer | None = None
        self.engine: dict[str, Any] = {}
        """The facts of what the nodes run in, such as the container engine."""

    def __enter__(self) -> Self:
        """Serve the controller's pages, where there are nodes to be discovered."""
        address, self.engine = self.runtime.prepare(say)
        if address is not None:
            self.server, self.port = serve_controller(
                self.metrics.registry, self.targets, lambda: self.status, address, self.port
            )
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving the controller's pages, and end what the runtime has started."""
        if self.server:
            self.server.close()
        self.runtime.close()

    def run_trial(
        self,
        planned: PlannedTraining,
        beginning: Beginning,
        folder: TrialFolder,
        journal: JournalWriter,
        show: Callable[[TrialStatus], None],
        summary: Callable[[], TrialSummary],
        past: ResumedTrial | None = None,
    ) -> None:
        """Run the trial to its end; `beginning` is the initial model, `summary` what its journal then tells.

        A trial that has a `past` goes on from its latest checkpoint. Raises KeyboardInterrupt where the user asked for
        an end, and the trial had ended by itself: no other is wanted.
        """
        plan = planned.plan

        def keep_status(status: TrialStatus) -> None:
            self.status = status
            show(status)

        checkpoints = CheckpointStore(folder, beginning.theta)
        require_fitting(checkpoints, plan, beginning)
        self.targets.clear()
        self.metrics.start_trial(
            plan,
            self.run,
            self.runtime.name,
            self.metrics.clock(),
            applied_bytes=past.update_bytes if past else 0,
            past_traffic=past.traffic if past else None,
        )
        assignment = Assignment(
            planned=planned,
            beginning=beginning,
            run=self.run,
            folder=folder,
            journal=journal,
            checkpoints=checkpoints,
            past=past,
            watch=lambda heart: StatusFeed(heart, keep_status, self._observe(heart)),
            linger_s=self.server.visits.linger_s if self.server else lambda: 0.0,
        )
        if self.runtime.run(assignment):
            raise KeyboardInterrupt
        self._judge(summary)

    def _judge(self, summary: Callable[[], AnySummary]) -> None:
        """Tell Prometheus what came of the trial."""
        found = summary() if self.server else None
        if self.server and found and found.outcome != "interrupted":
            verdict = found.fidelity.verdict if found.fidelity else None
            result = outcome_of([found]).result
            self.metrics.judge_trial(verdict=verdict, result=result, steps_per_s=found.value("steps_per_s"))
            self.server.visits.await_scrape()

    def run_programs(
        self,
        plan: ProgramsPlan,
        folder: TrialFolder,
        journal: JournalWriter,
        show: Callable[[TrialStatus], None],
        summary: Callable[[], AnySummary],
    ) -> bool:
        """Run a trial of programs; whether it is completed. KeyboardInterrupt as of `run_trial`."""

        def keep_status(status: TrialStatus) -> None:
            self.status = status
            show(status)

        assert isinstance(self.runtime, ProgramRuntime), "planning refuses programs elsewhere"
        self.targets.clear()
        self.metrics.start_trial(plan, self.run, self.runtime.name, self.metrics.clock())
        watch = partial(StatusFeed, show=keep_status, observe=self.metrics.observe)
        outcome, is_unwanted = self.runtime.run_programs(
            ProgramAssignment(plan=plan, folder=folder, journal=journal, watch=watch)
        )
        if is_unwanted:
            raise KeyboardInterrupt
        self._judge(summary)
        return outcome == "completed"

    def _observe(self, heart: Controller) -> Callable[[records.Record, str], None]:
        """A function that takes the trial's records, and lists a node for Prometheus once it is ready."""
        if TRAITS[self.runtime.name].is_virtual:
            return self.metrics.observe

        def observe(record: records.Record, node: str) -> None:
            self.metrics.observe(record, node)
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
                    host=member.plan.host,
                )
                self.targets.add(target)

        return observe


def runtime_of(
    name: RuntimeName, *, processes: int, emulation: Emulation = "auto", hosts: Sequence[EngineAddress] = ()
) -> Runtime:
    """The runtime of that name; `processes` is how many the simulation computes with, `hosts` have the containers."""
    match name:
        case "simulation":
            from edgebed.runtimes.simulation.runtime import SimulationRuntime

            return SimulationRuntime(processes)
        case "process":
            from edgebed.runtimes.processes.runtime import ProcessRuntime

            return ProcessRuntime(emulation)
        case "docker":
            from edgebed.runtimes.containers.runtime import ContainerRuntime

            return ContainerRuntime(hosts)
