"""Every metric that edgebed exports, declared once; `families.py` and docs/metrics.md are made from this table.

Names follow Prometheus' conventions: the prefix `edgebed_`, what is measured, its base unit, `_total` on counters.
Labels that tell nodes apart (node, role, device_class, run, trial) come from service discovery (`discovery.py`), not
from here. The controller outlives trials, so its metrics name run and trial themselves: a label from discovery would
lag behind. The sum over a metric's labels always means something, and no label grows with the length of a run.
"""

from dataclasses import dataclass
from typing import Literal

from edgebed.core.measures.task import TEST, VALIDATION, TaskMeasure
from edgebed.learning.objectives.registry import all_declared

SERVER = "server"
WORKER = "worker"
EVALUATOR = "evaluator"
CONTROLLER = "controller"
STORE = "store"
MODULES = "modules"
SERVING = (STORE, MODULES)
"""Roles of the nodes that serve shards of a model."""
NODES = (SERVER, WORKER, EVALUATOR, *SERVING)
LINKED = (SERVER, WORKER, *SERVING)
CLIENTS = (WORKER, EVALUATOR, *SERVING)
ROLES = (*NODES, CONTROLLER)

STALENESS_BUCKETS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""Staleness is an integer, so le="0" counts exactly the fresh."""
STEP_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


@dataclass(frozen=True, kw_only=True)
class Label:
    """A label, with the values it starts at 0 for, so that a rate exists before the first event."""

    name: str
    examples: tuple[str, ...]
    """Examples of values; all values where `closed`."""
    closed: bool = False
    """Whether no other values than the examples occur, and each starts at 0."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """The declaration of one metric."""

    name: str
    type: Literal["counter", "gauge", "histogram"]
    unit: str
    """`bytes`, `seconds`, `ratio`, `versions`, `cores`, or what is counted; in the name where it is a measure."""
    roles: tuple[str, ...]
    help: str
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()


def _kinds(*kinds: str) -> tuple[Label, ...]:
    return (Label(name="kind", examples=kinds, closed=True),)


_RUN = Label(name="run", examples=("quickstart/0001",))
_TRIAL = Label(name="trial", examples=("adacomp",))
_HOST = Label(name="host", examples=("lab-1",))
"""Empty where there is one host alone."""
_SPLIT = Label(name="split", examples=(TEST, VALIDATION))
"""Part of the data that the model was measured on."""


def measured(measure: TaskMeasure) -> Metric:
    """The metric of what a task measures."""
    return Metric(
        name=measure.metric, type="gauge", unit="ratio" if measure.is_share else "", roles=(CONTROLLER,),
        help=f"{measure.meaning} Of the last evaluation; else NaN.".strip(),
        labels=(_RUN, _TRIAL, _SPLIT),
    )  # fmt: skip


_DEVICE_CLASS = Label(name="device_class", examples=("edge",))
_PULL = (Label(name="pull", examples=("full", "changed-since"), closed=True),)

_DIRECTION = (Label(name="direction", examples=("ingress", "egress"), closed=True),)

SERVER_METRICS = (
    Metric(
        name="edgebed_ps_ingress_bytes_total", type="counter", unit="bytes", roles=(SERVER,),
        help="Payload that reached the server on the data network (headers and tensors), by kind of message.",
        labels=_kinds("push", "join", "pull"),
    ),
    Metric(
        name="edgebed_ps_egress_bytes_total", type="counter", unit="bytes", roles=(SERVER,),
        help="Payload that the server sent on the data network (headers and tensors), by kind of message.",
        labels=_kinds("model", "refuse"),
    ),
    Metric(
        name="edgebed_ps_update_bytes_total", type="counter", unit="bytes", roles=(SERVER,),
        help="Payload of the pushes whose updates were applied in this incarnation of the server.",
    ),
    Metric(
        name="edgebed_ps_algorithm_bytes_total", type="counter", unit="bytes", roles=(SERVER,),
        help="Bytes of the applied updates by the algorithm's own count: values and indices, no encoding, no framing.",
    ),
    Metric(
        name="edgebed_ps_pulls_total", type="counter", unit="models", roles=(SERVER,),
        help="Models sent to workers: whole, or only the entries that changed since the worker's last.",
        labels=_PULL,
    ),
    Metric(
        name="edgebed_ps_pull_bytes_total", type="counter", unit="bytes", roles=(SERVER,),
        help="Payload of the models sent to workers.",
        labels=_PULL,
    ),
    Metric(
        name="edgebed_ps_acknowledgement_bytes_total", type="counter", unit="bytes", roles=(SERVER,),
        help="Packets without payload that reached the server's data socket: acknowledgements of models.",
    ),
    Metric(
        name="edgebed_ps_updates_total", type="counter", unit="updates", roles=(SERVER,),
        help="Updates applied (result `applied`), and joins and pushes that were refused, by the refusal's code.",
        labels=(Label(name="result", examples=("applied", "stale-incarnation", "not-joined", "malformed")),),
    ),
    Metric(
        name="edgebed_ps_update_staleness_versions", type="histogram", unit="versions", roles=(SERVER,),
        help="Updates applied between a worker's pull and its push.",
        buckets=STALENESS_BUCKETS,
    ),
    Metric(
        name="edgebed_ps_log_bytes_total", type="counter", unit="bytes", roles=(SERVER,),
        help="Bytes that the server has written to its log, with snapshots of the model.",
    ),
    Metric(
        name="edgebed_ps_log_seconds_total", type="counter", unit="seconds", roles=(SERVER,),
        help="Time in which the server did nothing but write its log.",
    ),
    Metric(
        name="edgebed_ps_log_syncs_total", type="counter", unit="syncs", roles=(SERVER,),
        help="Times that the disk was asked to have the whole log (durability: fsync).",
    ),
    Metric(
        name="edgebed_ps_log_waited_messages_total", type="counter", unit="messages", roles=(SERVER,),
        help="Messages of the server that waited until the disk had the log.",
    ),
    Metric(
        name="edgebed_ps_log_wait_seconds_total", type="counter", unit="seconds", roles=(SERVER,),
        help="Time for which messages of the server waited until the disk had the log, in total.",
    ),
    Metric(
        name="edgebed_ps_queue_length", type="gauge", unit="messages", roles=(SERVER,),
        help="Messages that the server has received and not yet handled.",
    ),
)  # fmt: skip

WORKER_METRICS = (
    Metric(
        name="edgebed_worker_iterations_total", type="counter", unit="iterations", roles=(WORKER,),
        help="Gradients computed.",
    ),
    Metric(
        name="edgebed_worker_phase_seconds_total", type="counter", unit="seconds", roles=(WORKER,),
        help="Where the worker's time went: compute, encode, wait for the server's answer, pause (emulated).",
        labels=(Label(name="phase", examples=("compute", "encode", "wait", "pause"), closed=True),),
    ),
    Metric(
        name="edgebed_worker_step_duration_seconds", type="histogram", unit="seconds", roles=(WORKER,),
        help="Length of an iteration, all phases together; each counts with the mean of its second.",
        buckets=STEP_BUCKETS_S,
    ),
    Metric(
        name="edgebed_shard_steps_total", type="counter", unit="steps", roles=(WORKER,),
        help="Mini-batches that the node's shard of the model has learnt from, those that were rolled back included.",
    ),
    Metric(
        name="edgebed_shard_phase_seconds_total", type="counter", unit="seconds", roles=(WORKER, MODULES),
        help="Where a shard's time went: forward, learn, teach modules, copy states, waiting for inputs or answers.",
        labels=(
            Label(name="phase", examples=("forward", "learn", "teach", "copy", "inputs", "answers"), closed=True),
        ),
    ),
    Metric(
        name="edgebed_shard_queue_length", type="gauge", unit="messages", roles=(WORKER, MODULES),
        help="Messages that a shard has queued: not used, not answered, or not sent yet; waiting jobs of modules.",
        labels=(Label(name="queue", examples=("inputs", "gradients", "unanswered", "unsent", "jobs")),),
    ),
    Metric(
        name="edgebed_shard_taught_total", type="counter", unit="lessons", roles=(WORKER, MODULES),
        help="Training steps of the modules that predict gradients or inputs.",
        labels=(
            Label(name="shard", examples=("edge-0",)),
            Label(name="predicts", examples=("gradient", "inputs")),
        ),
    ),
    Metric(
        name="edgebed_shard_taught_loss_total", type="counter", unit="", roles=(WORKER, MODULES),
        help="Sum of the modules' losses in training steps: divided by their number, the mean prediction error.",
        labels=(
            Label(name="shard", examples=("edge-0",)),
            Label(name="predicts", examples=("gradient", "inputs")),
        ),
    ),
    Metric(
        name="edgebed_client_ingress_bytes_total", type="counter", unit="bytes", roles=CLIENTS,
        help="Payload that reached this node on the data network, by kind of message.",
        labels=(Label(name="kind", examples=("model", "refuse", "activation", "gradient", "taken", "fetch")),),
    ),
    Metric(
        name="edgebed_client_egress_bytes_total", type="counter", unit="bytes", roles=CLIENTS,
        help="Payload that this node sent on the data network, by kind of message.",
        labels=(Label(name="kind", examples=("push", "join", "pull", "activation", "gradient", "taken", "fetch")),),
    ),
    Metric(
        name="edgebed_evaluations_total", type="counter", unit="evaluations", roles=(EVALUATOR,),
        help="Versions of the model that were measured.",
    ),
)  # fmt: skip

CONTROLLER_METRICS = (
    Metric(
        name="edgebed_nodes", type="gauge", unit="nodes", roles=(CONTROLLER,),
        help="Nodes by class (for a node that is no worker its role) and state.",
        labels=(
            _RUN,
            _TRIAL,
            _DEVICE_CLASS,
            Label(
                name="state",
                examples=(
                    "expected", "started", "joined", "ready", "running", "unresponsive", "stopped", "died", "missing",
                ),
                closed=True,
            ),
        ),
    ),
    Metric(
        name="edgebed_node_state_timestamp_seconds", type="gauge", unit="seconds", roles=(CONTROLLER,),
        help="When a node entered its present state, in Unix time; there is a series for that state alone.",
        labels=(
            _RUN, _TRIAL, _DEVICE_CLASS, Label(name="node", examples=("edge-0",)),
            Label(name="state", examples=("running", "unresponsive", "died")),
        ),
    ),
    Metric(
        name="edgebed_crashes_total", type="counter", unit="crashes", roles=(CONTROLLER,),
        help="Nodes that ended without being told to stop, those killed by a fault included.",
        labels=(_RUN, _TRIAL, _DEVICE_CLASS),
    ),
    Metric(
        name="edgebed_node_last_crash_timestamp_seconds", type="gauge", unit="seconds", roles=(CONTROLLER,),
        help="When a node last ended without being told to stop, in Unix time; only nodes that did have a series.",
        labels=(_RUN, _TRIAL, _DEVICE_CLASS, Label(name="node", examples=("edge-0",))),
    ),
    Metric(
        name="edgebed_connections_unauthenticated_total", type="counter", unit="connections", roles=(CONTROLLER,),
        help="Connections to any node that were refused in the handshake: without the secret of the run.",
        labels=(_RUN, _TRIAL, Label(name="socket", examples=("data", "management"), closed=True)),
    ),
    Metric(
        name="edgebed_faults_total", type="counter", unit="faults", roles=(CONTROLLER,),
        help="Actions of faults and users on nodes: done, failed, or no_op: there was nothing to do.",
        labels=(
            _RUN,
            _TRIAL,
            _DEVICE_CLASS,
            Label(name="action", examples=("kill", "freeze", "cut")),
            Label(name="result", examples=("done", "failed", "no_op")),
        ),
    ),
    Metric(
        name="edgebed_fault_timestamp_seconds", type="gauge", unit="seconds", roles=(CONTROLLER,),
        help="When a fault or user last did something to a node, in Unix time; a series for each action and node.",
        labels=(
            _RUN,
            _TRIAL,
            Label(name="action", examples=("kill", "freeze", "cut")),
            Label(name="node", examples=("edge-0",)),
        ),
    ),
    Metric(
        name="edgebed_joins_total", type="counter", unit="joins", roles=(CONTROLLER,),
        help="How often workers joined, or came back, as the server reports.",
        labels=(_RUN, _TRIAL, _DEVICE_CLASS),
    ),
    Metric(
        name="edgebed_updates_lost_total", type="counter", unit="updates", roles=(CONTROLLER,),
        help="Updates lost, or only their answers, on the way (unanswered), and those that a restored server has lost.",
        labels=(_RUN, _TRIAL, Label(name="how", examples=("unanswered", "rolled-back"), closed=True)),
    ),
    *(measured(each) for each in all_declared()),
    Metric(
        name="edgebed_model_headline", type="gauge", unit="", roles=(CONTROLLER,),
        help="What results are told by, in its own unit, shares in per cent. Of the last evaluation; else NaN.",
        labels=(
            _RUN,
            _TRIAL,
            _SPLIT,
            Label(name="measure", examples=("accuracy (%)", "perplexity", "MAE (mmHg)")),
            Label(name="better", examples=("more", "less")),
        ),
    ),
    Metric(
        name="edgebed_model_version", type="gauge", unit="updates", roles=(CONTROLLER,),
        help="Updates applied so far, as far as the server has reported.",
        labels=(_RUN, _TRIAL),
    ),
    Metric(
        name="edgebed_run_update_bytes_total", type="counter", unit="bytes", roles=(CONTROLLER,),
        help="Payload of all pushes that were applied, over all incarnations of the server: what went up.",
        labels=(_RUN, _TRIAL),
    ),
    Metric(
        name="edgebed_run_pull_bytes_total", type="counter", unit="bytes", roles=(CONTROLLER,),
        help="Payload of all models sent to workers, over all incarnations of the server: what went down.",
        labels=(_RUN, _TRIAL),
    ),
    Metric(
        name="edgebed_run_server_bytes_total", type="counter", unit="bytes", roles=(CONTROLLER,),
        help="All payload through the server's data socket, over all its incarnations, as far as each told.",
        labels=(_RUN, _TRIAL, *_DIRECTION),
    ),
    Metric(
        name="edgebed_run_refused_total", type="counter", unit="messages", roles=(CONTROLLER,),
        help="Joins and pushes that the server refused in all its incarnations, by the refusal's code.",
        labels=(_RUN, _TRIAL, Label(name="result", examples=("stale-incarnation", "not-joined", "malformed"))),
    ),
    Metric(
        name="edgebed_run_messages_dropped_total", type="counter", unit="messages", roles=(CONTROLLER,),
        help="Messages that could not be read or delivered, at all nodes in all their incarnations.",
        labels=(_RUN, _TRIAL, Label(name="socket", examples=("data", "management"), closed=True)),
    ),
    Metric(
        name="edgebed_run_info", type="gauge", unit="", roles=(CONTROLLER,),
        help="Always 1; the labels say what is running.",
        labels=(
            _RUN,
            _TRIAL,
            Label(name="scenario", examples=("quickstart",)),
            Label(name="algorithm", examples=("adacomp",)),
            Label(name="seed", examples=("7",)),
            Label(name="runtime", examples=("process",)),
        ),
    ),
    Metric(
        name="edgebed_run_progress_ratio", type="gauge", unit="ratio", roles=(CONTROLLER,),
        help="Progress of the trial, 0 to 1, by its limit of updates or training time; 1 if it has completed.",
        labels=(_RUN, _TRIAL),
    ),
    Metric(
        name="edgebed_run_stalled_ratio", type="gauge", unit="ratio", roles=(CONTROLLER,),
        help="Share of deadlines.stall passed without update. At 1 the trial fails, or awaits a fault's end or work.",
        labels=(_RUN, _TRIAL),
    ),
    Metric(
        name="edgebed_run_start_timestamp_seconds", type="gauge", unit="seconds", roles=(CONTROLLER,),
        help="When the trial began, in Unix time.",
        labels=(_RUN, _TRIAL),
    ),
    Metric(
        name="edgebed_trial_verdict", type="gauge", unit="", roles=(CONTROLLER,),
        help="Once the trial is over, the verdict on its conditions: 0 degraded, 1 trusted, 2 modelled, 3 unknown.",
        labels=(_RUN, _TRIAL),
    ),
    Metric(
        name="edgebed_trial_result", type="gauge", unit="", roles=(CONTROLLER,),
        help="Once over: 0 no result, 1 accounting is open, 2 interrupted, 3 diverged, 4 not met, 5 completed, 6 met.",
        labels=(_RUN, _TRIAL),
    ),
    Metric(
        name="edgebed_trial_steps_per_second", type="gauge", unit="steps a second", roles=(CONTROLLER,),
        help="Once a layer-wise trial is over: steps a second of its slowest shard, over all of the training.",
        labels=(_RUN, _TRIAL),
    ),
    Metric(
        name="edgebed_host_busy_ratio", type="gauge", unit="ratio", roles=(CONTROLLER,),
        help="Share of all cores' time that the host was busy in the last two seconds of training, 0 to 1.",
        labels=(_RUN, _TRIAL, _HOST),
    ),
    Metric(
        name="edgebed_host_steal_ratio", type="gauge", unit="ratio", roles=(CONTROLLER,),
        help="Share of all cores' time that the machine under the host took away in the last two seconds, 0 to 1.",
        labels=(_RUN, _TRIAL, _HOST),
    ),
    Metric(
        name="edgebed_host_load_processes", type="gauge", unit="processes", roles=(CONTROLLER,),
        help="Threads that ran or waited for a core, for each core; the mean of counts in the last two seconds.",
        labels=(_RUN, _TRIAL, _HOST),
    ),
    Metric(
        name="edgebed_host_wake_lag_seconds", type="gauge", unit="seconds", roles=(CONTROLLER,),
        help="How late a sleeping thread woke up in the last two seconds: the 99th percentile of its sleeps.",
        labels=(_RUN, _TRIAL, _HOST),
    ),
    Metric(
        name="edgebed_host_network_bytes_per_second", type="gauge", unit="bytes a second", roles=(CONTROLLER,),
        help="Where there are several hosts: what passed a host's interface to the others in the last two seconds.",
        labels=(_RUN, _TRIAL, _HOST, *_DIRECTION),
    ),
    Metric(
        name="edgebed_host_network_limit_bytes_per_second", type="gauge", unit="bytes a second", roles=(CONTROLLER,),
        help="Rate of that interface, as the kernel or the scenario says it; absent where neither does.",
        labels=(_RUN, _TRIAL, _HOST),
    ),
)  # fmt: skip

_PROGRAM = (_RUN, _TRIAL, _DEVICE_CLASS, Label(name="node", examples=("home-0",)))

PROGRAM_METRICS = (
    Metric(
        name="edgebed_program_measure", type="gauge", unit="", roles=(CONTROLLER,),
        help="What a user's program told last, in its own unit (`program.measures`).",
        labels=(*_PROGRAM, Label(name="measure", examples=("loss", "step"))),
    ),
    Metric(
        name="edgebed_program_link_bytes_total", type="counter", unit="bytes", roles=(CONTROLLER,),
        help="Bytes of a program at its node's link, headers included, in all its lives.",
        labels=(*_PROGRAM, *_DIRECTION),
    ),
    Metric(
        name="edgebed_program_cpu_seconds_total", type="counter", unit="seconds", roles=(CONTROLLER,),
        help="CPU time of all processes of a program, in all its lives.",
        labels=_PROGRAM,
    ),
    Metric(
        name="edgebed_program_memory_peak_bytes", type="gauge", unit="bytes", roles=(CONTROLLER,),
        help="The most memory that the processes of a program used together, in its present life.",
        labels=_PROGRAM,
    ),
    Metric(
        name="edgebed_program_restarts_total", type="counter", unit="restarts", roles=(CONTROLLER,),
        help="Times that a program was started anew.",
        labels=_PROGRAM,
    ),
)  # fmt: skip

COMMON_METRICS = (
    Metric(
        name="edgebed_messages_received_total", type="counter", unit="messages", roles=NODES,
        help="Messages that reached this node on the data network, by kind.",
        labels=(Label(name="kind", examples=("push", "model", "activation", "gradient", "taken", "fetch")),),
    ),
    Metric(
        name="edgebed_messages_dropped_total", type="counter", unit="messages", roles=NODES,
        help="Messages that could not be read or delivered and had no effect.",
        labels=(Label(name="socket", examples=("data", "management"), closed=True),),
    ),
)  # fmt: skip

CONDITION_METRICS = (
    Metric(
        name="edgebed_link_bytes_total", type="counter", unit="bytes", roles=LINKED,
        help="Bytes through the data network's interface, protocol overhead included; the whole machine shares `lo`.",
        labels=(*_DIRECTION, Label(name="interface", examples=("lo", "eth0"))),
    ),
    Metric(
        name="edgebed_link_asked_bytes_per_second", type="gauge", unit="bytes a second", roles=LINKED,
        help="Rate that the scenario allows the node's link now; absent where it asks for no limit.",
        labels=_DIRECTION,
    ),
    Metric(
        name="edgebed_link_held_bytes_per_second", type="gauge", unit="bytes a second", roles=LINKED,
        help="Rate limit in force, as read back; absent without one.",
        labels=_DIRECTION,
    ),
    Metric(
        name="edgebed_link_differs", type="gauge", unit="", roles=LINKED,
        help="Whether the limits in force differ from those asked: 1, else 0.",
    ),
    Metric(
        name="edgebed_link_dropped_packets_total", type="counter", unit="packets", roles=LINKED,
        help="Packets that the queue of the node's link dropped, as a router's do when TCP fills them.",
        labels=_DIRECTION,
    ),
    Metric(
        name="edgebed_transfer_seconds_total", type="counter", unit="seconds", roles=LINKED,
        help="Time that the messages that reached this node were on their way, in total.",
    ),
    Metric(
        name="edgebed_transfer_asked_seconds_total", type="counter", unit="seconds", roles=LINKED,
        help="Time that the messages to this node would have taken over links exactly as asked, in total.",
    ),
    Metric(
        name="edgebed_transfer_impossible_total", type="counter", unit="messages", roles=LINKED,
        help="Messages that reached this node before they had left, by more than clocks are said to be wrong by.",
    ),
    Metric(
        name="edgebed_starved_seconds_total", type="counter", unit="seconds", roles=NODES,
        help="Time that the node lost since it got no core of those that its cap and pace promise.",
    ),
)  # fmt: skip

RESOURCE_METRICS = (
    Metric(
        name="edgebed_process_cpu_seconds_total", type="counter", unit="seconds", roles=ROLES,
        help="CPU time of the process, user and system.",
    ),
    Metric(
        name="edgebed_process_resident_memory_bytes", type="gauge", unit="bytes", roles=ROLES,
        help="Memory of the process that is in RAM, shared pages included.",
    ),
    Metric(
        name="edgebed_process_private_memory_bytes", type="gauge", unit="bytes", roles=ROLES,
        help="Memory that only this process uses: what a further node of its kind costs. Up to half a minute old.",
    ),
    Metric(
        name="edgebed_process_threads", type="gauge", unit="threads", roles=ROLES,
        help="Threads of the process.",
    ),
    Metric(
        name="edgebed_cgroup_cpu_seconds_total", type="counter", unit="seconds", roles=ROLES,
        help="CPU time of the process's cgroup. Without a cgroup of its own a node shows its parent's.",
    ),
    Metric(
        name="edgebed_cgroup_cpu_limit_cores", type="gauge", unit="cores", roles=ROLES,
        help="CPU cap of the cgroup; absent without one.",
    ),
    Metric(
        name="edgebed_cgroup_cpu_periods_total", type="counter", unit="periods", roles=ROLES,
        help="Scheduling periods of the capped cgroup in which it had something to run.",
    ),
    Metric(
        name="edgebed_cgroup_cpu_throttled_periods_total", type="counter", unit="periods", roles=ROLES,
        help="Scheduling periods in which the capped cgroup was throttled by its cap.",
    ),
    Metric(
        name="edgebed_cgroup_cpu_throttled_seconds_total", type="counter", unit="seconds", roles=ROLES,
        help="Time for which the capped cgroup was throttled.",
    ),
    Metric(
        name="edgebed_cgroup_memory_working_set_bytes", type="gauge", unit="bytes", roles=ROLES,
        help="Memory of the cgroup without the file cache that can be given up at once.",
    ),
    Metric(
        name="edgebed_cgroup_memory_peak_bytes", type="gauge", unit="bytes", roles=ROLES,
        help="The most memory that the cgroup has used, file cache included.",
    ),
    Metric(
        name="edgebed_cgroup_memory_limit_bytes", type="gauge", unit="bytes", roles=ROLES,
        help="Memory cap of the cgroup; absent without one.",
    ),
    Metric(
        name="edgebed_cgroup_oom_kills_total", type="counter", unit="kills", roles=ROLES,
        help="Processes of the cgroup that were killed for want of memory.",
    ),
)  # fmt: skip

METRICS = (
    *SERVER_METRICS, *WORKER_METRICS, *CONTROLLER_METRICS, *PROGRAM_METRICS, *COMMON_METRICS, *CONDITION_METRICS,
    *RESOURCE_METRICS,
)  # fmt: skip
