"""Whether a trial can be resumed from what was kept of it: the server's log, its model, the backups of shards."""

from collections.abc import Callable
from pathlib import Path

from edgebed.core.errors import WITHOUT_LOG, DamagedFileError, EdgebedError
from edgebed.core.plan import ServerPlan, TrainingPlan
from edgebed.journal.checkpoints import CheckpointStore, ModelCheckpoint, ShardBackup
from edgebed.learning.beginning import Beginning
from edgebed.roles.control.controller import ResumedTrial
from edgebed.roles.server.parameter_server import ParameterServer
from edgebed.wire.messages import Ready


def require_fitting(checkpoints: CheckpointStore, plan: TrainingPlan, beginning: Beginning) -> None:
    """Raise EdgebedError where the trial's server, or a shard, cannot resume from the stored checkpoints."""
    folder, latest, server = checkpoints.folder, checkpoints.latest, plan.server
    if plan.pushes:
        _require_kept(plan, folder.latest_checkpoint, latest.version, lambda: _begin_server(server, latest))
    elif backup := checkpoints.backup:
        _require_kept(plan, folder.backup(backup.step), backup.step, lambda: _begin_shards(plan, backup, beginning))


def require_log(checkpoints: CheckpointStore, past: ResumedTrial, ready: Ready) -> None:
    """Raise DamagedFileError where the log of a server that is ready lacks what the journal has of it."""
    if ready.durable is None or ready.durable >= past.durable:
        return
    folder, version = checkpoints.folder, checkpoints.latest.version
    run = f"{folder.path.parent.parent.name}/{folder.path.parent.name}"
    lack = f"ends at update {ready.version:,}" if ready.replayed is not None else "is missing, or empty"
    raise DamagedFileError(
        f"{folder.server_log}: the server's log {lack}, and the journal has update {past.updates:,} of it. Put the log "
        f"back; or `edgebed resume {run} {WITHOUT_LOG}` goes on from update {version:,}, and the "
        f"{past.updates - version:,} after it are lost; or begin a new run"
    )


def _require_kept(plan: TrainingPlan, path: Path, version: int, begin: Callable[[], None]) -> None:
    problem = ""
    if plan.stop_updates is not None and version > plan.stop_updates:
        problem = f"version: {version:,}, where the trial ends at update {plan.stop_updates:,}"
    else:
        try:
            begin()
        except ValueError as error:
            problem = str(error)
    if problem:
        raise EdgebedError(f"{path}: no checkpoint of this trial: {problem}; restore its own, or remove it")


def _begin_server(server: ServerPlan, latest: ModelCheckpoint) -> None:
    if latest.state is not None:
        ParameterServer(server, latest.theta.copy(), (), version=latest.version, state=latest.state)


def _begin_shards(plan: TrainingPlan, backup: ShardBackup, beginning: Beginning) -> None:
    from edgebed.learning.shards.building import module_networks, shard_network

    server = plan.server.shard
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
