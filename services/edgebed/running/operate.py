"""Acting on the nodes of a live run by hand, from any other process: the user's end of `runtimes/live/control.py`.

Commands go through the same code as the scenario's faults, and are journaled alike.
"""

import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from edgebed.core.errors import KERNEL_LACKS, InfrastructureError, ScenarioError
from edgebed.core.plan import ProgramsPlan, TrainingPlan
from edgebed.core.planned.fault import Injection
from edgebed.core.runtimes import is_virtual
from edgebed.journal.run_folder import RunFolder, list_runs, runs_root
from edgebed.runtimes.live.control import SOCKET, OperatorCommand, OperatorReply, address_in, opened

ANSWER_S_MAX = 10.0
ALL_WORKERS = "workers"
SHOWN_MAX = 12


@dataclass(frozen=True, kw_only=True)
class OperatorAction:
    """The result of an action by hand."""

    run: str
    trial: str
    nodes: tuple[str, ...]
    seconds: float
    """Seconds from the command to the answer."""


def act(
    targets: Sequence[str],
    injections: Callable[[str], Iterable[Injection]],
    *,
    run: str | Path | None = None,
    runs_dir: str | Path | None = None,
) -> OperatorAction:
    """Have `injections(node)` done to each node that `targets` names: nodes, classes, or `workers`.

    `run` is named as for `edgebed.load`; None: the one in progress. Raises ScenarioError for a run or a node that does
    not exist, and with the controller's reason where it cannot be done; InfrastructureError where nobody answers, or
    where the kernel lacks what it takes.
    """
    folder = _find(runs_root(runs_dir), run)
    trials = folder.trials()
    if not trials:
        raise ScenarioError(f"{folder.name}: no trial has begun yet; try again in a moment")
    plan = trials[-1].read_any_plan()
    nodes = nodes_of(plan, targets)
    began_s = time.monotonic()
    reply = ask(folder.path, OperatorCommand(tuple(injection for node in nodes for injection in injections(node))))
    seconds = time.monotonic() - began_s
    if reply.problem:
        rest = "; the rest is done" if len(nodes) > 1 else ""
        kind = InfrastructureError if KERNEL_LACKS in reply.problem else ScenarioError
        raise kind(f"{folder.name}: {reply.problem}{rest}")
    return OperatorAction(run=folder.name, trial=plan.trial, nodes=nodes, seconds=seconds)


def roll_back(run: str | Path, step: int, *, runs_dir: str | Path | None = None) -> tuple[str, int]:
    """Have all shards of a run in progress resume from the newest backup that is not beyond `step`.

    Returns the run's name and that backup's step. Raises as `act` does.
    """
    folder = _find(runs_root(runs_dir), run)
    reply = ask(folder.path, OperatorCommand(roll_back_to=step))
    if reply.problem:
        raise ScenarioError(f"{folder.name}: {reply.problem}")
    return folder.name, int(reply.told.removeprefix("step "))


def nodes_of(plan: TrainingPlan | ProgramsPlan, targets: Sequence[str]) -> tuple[str, ...]:
    """The nodes that the targets name, each once; ScenarioError for an unknown name."""
    found: dict[str, None] = {}
    workers = plan.workers() if isinstance(plan, TrainingPlan) else plan.nodes
    for target in targets:
        named = [node.node for node in plan.nodes if node.node == target]
        named = named or [node.node for node in workers if target in (node.device_class, ALL_WORKERS)]
        if not named:
            nodes = [node.node for node in plan.nodes]
            more = f", … ({len(nodes)} in all)" if len(nodes) > SHOWN_MAX else ""
            classes = ", ".join(dict.fromkeys(node.device_class for node in workers))
            raise ScenarioError(
                f"no node '{target}'; there are {', '.join(nodes[:SHOWN_MAX])}{more}; "
                f"a class ({classes}) or '{ALL_WORKERS}' means all of its nodes"
            )
        found |= dict.fromkeys(named)
    return tuple(found)


def ask(folder: Path, order: OperatorCommand, answer_s_max: float = ANSWER_S_MAX) -> OperatorReply:
    """Send a command to the controller of the run in `folder`, and wait for its reply."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as controller, opened(folder) as descriptor:
        controller.settimeout(answer_s_max)
        try:
            controller.connect(address_in(descriptor))
            controller.sendall(msgspec.json.encode(order) + b"\n")
            return _read_reply(controller)
        except TimeoutError:
            raise InfrastructureError(
                f"{folder}: the controller has not answered within {answer_s_max:g} s; it may still do it, "
                "and the run's journal says so if it does"
            ) from None
        except (ConnectionResetError, BrokenPipeError, msgspec.DecodeError):
            raise InfrastructureError(
                f"{folder}: the trial ended before the controller answered; the journal says whether it was done"
            ) from None
        except (FileNotFoundError, ConnectionRefusedError):
            raise ScenarioError(
                f"{folder}: nobody listens at {SOCKET}: the run is between two trials, or about to end; "
                "try again in a moment"
            ) from None
        except PermissionError:
            raise ScenarioError(
                f"{folder / SOCKET}: belongs to another user; act as the one who began the run"
            ) from None
        except OSError as error:
            raise InfrastructureError(f"{folder / SOCKET}: {error.strerror}") from error


def _read_reply(controller: socket.socket) -> OperatorReply:
    with controller.makefile("rb") as lines:
        return msgspec.json.decode(lines.readline(), type=OperatorReply)


def _find(root: Path, run: str | Path | None) -> RunFolder:
    """The run that is meant, which must be a live one in progress."""
    in_progress = [folder for folder in list_runs(root) if folder.is_running()]
    names = ", ".join(folder.name for folder in in_progress)
    if run is not None:
        found = RunFolder.find(root, run)
        if not found.is_running():
            known = f"in progress: {names}" if names else f"none is, in {root.absolute()}"
            raise ScenarioError(f"run {found.name} is not in progress; {known}")
        return _live(found)
    if not in_progress:
        raise ScenarioError(f"no run is in progress in {root.absolute()}; its folder is given with --runs-dir")
    live = [folder for folder in in_progress if not _is_simulation(folder)]
    if len(live) > 1:
        raise ScenarioError(f"several runs are in progress: {names}; say which with --run")
    return _live((live or in_progress)[0])


def _live(folder: RunFolder) -> RunFolder:
    if _is_simulation(folder):
        raise ScenarioError(
            f"run {folder.name} is a simulation, which runs in virtual time: nobody can act on it by hand. "
            "Put it into the scenario, under `faults`."
        )
    return folder


def _is_simulation(folder: RunFolder) -> bool:
    return is_virtual(folder.read_manifest().get("runtime"))
