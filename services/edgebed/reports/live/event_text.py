"""The records of a journal in words: one short line a record, figures with their units.

Figures of one kind are cumulative where the record's are; the words "so far" say so.
"""

from collections.abc import Callable, Iterator
from typing import Any

from edgebed.core import records
from edgebed.core.console import quoted
from edgebed.core.measures.task import VALIDATION
from edgebed.core.planned.link import IMPAIRMENTS
from edgebed.core.quantities import (
    bytes_text,
    count_text,
    not_finite_text,
    number_text,
    percent_text,
    rate_text,
    seconds_text,
)
from edgebed.core.recorded.measured import SLEW_SHOWN
from edgebed.learning.objectives.registry import declared


def event_text(record: records.Record) -> str:
    """A record in words, on one line whatever a node has put into it."""
    return " ".join(quoted(_TEXTS[type(record)](record)).split())


def _listed(head: str, *parts: str) -> str:
    """`head: a, b`, without the parts that are empty."""
    there = [part for part in parts if part]
    return f"{head}: {', '.join(there)}" if there else head


def _if(condition: object, text: str) -> str:
    return text if condition else ""


def _trial(record: records.Trial) -> str:
    if record.runs_programs:
        return f"all programs run: {count_text(record.nodes, 'node')}, seed {record.seed}, {record.runtime}"
    size = f"{count_text(record.nodes, 'node')}, {count_text(record.parameters, 'parameter')}"
    starts = f"training goes on after {seconds_text(record.trained_s)}" if record.trained_s else "training begins"
    return f"{starts}: {size}, seed {record.seed}, {record.runtime}"


def _node(record: records.Node) -> str:
    life = _if(record.incarnation > 1, f" (incarnation {record.incarnation})")
    where = _if(record.host, f" on host {record.host}")
    process = _if(record.pid, f"process {record.pid}")
    return _listed(f"{record.name} {record.state}{where}{life}", record.reason, process)


def _update(record: records.Update) -> str:
    return _listed(
        f"update {record.version:,} from push {record.step:,} of {record.worker}",
        bytes_text(record.bytes),
        _entries(record.entries),
        f"staleness {record.staleness:,}",
        f"loss {number_text(record.loss)}",
    )


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count:,} entries"


def _step(record: records.Step) -> str:
    return _listed(
        f"step {record.step:,}{_history(record.history)}",
        _if(record.made, f"{record.made:,} made in all"),
        _if(record.loss is not None, f"loss {number_text(record.loss)}"),
        _if(record.gradient_lag is not None, f"its gradient lags by {count_text(record.gradient_lag or 0, 'step')}"),
        _if(record.input_lag is not None, f"its inputs lag by {count_text(record.input_lag or 0, 'step')}"),
    )


def _history(history: int) -> str:
    return f" of history {history}" if history else ""


def _diverged(record: records.Diverged) -> str:
    what = not_finite_text(record.what, record.tensor)
    return f"not finite in step {record.step:,}{_history(record.history)}: {what}"


def _taught(record: records.Taught) -> str:
    what = "inputs" if record.inputs else "gradients"
    step = f"step {record.step:,}{_history(record.history)}"
    return f"the module of {what} of {record.shard} was taught {step}: loss {number_text(record.loss)}"


def _resumed(record: records.Resumed) -> str:
    return _listed(f"all shards resume from step {record.step:,}{_history(record.history)}", record.reason)


def _evaluated(record: records.Evaluated) -> str:
    which = "final evaluation" if record.final else "evaluation"
    return _listed(
        f"{which} of update {record.version:,}",
        *(each.told(record.measured.get(each.name)) for each in declared(record.measured)),
        *(
            each.told(record.validation[each.name], VALIDATION)
            for each in declared(record.validation)
            if each.name in record.validation
        ),
    )


def _clients(record: records.Clients) -> str:
    after = ", before and after fine-tuning" if record.tuned else ""
    return f"update {record.version:,} measured on {count_text(len(record.clients), 'client')} of their own{after}"


def _refused(record: records.Refused) -> str:
    times = _if(record.count > 1, f" ({record.count:,} times)")
    push = _if(record.step >= 0, f"push {record.step:,} of ")
    return f"refused {push}{record.worker or record.peer}, {record.code}: {record.reason}{times}"


def _dropped(record: records.Dropped) -> str:
    return f"dropped {count_text(record.count, 'message')} of the {record.socket} network: {record.reason}"


def _unauthenticated(record: records.Unauthenticated) -> str:
    connections = count_text(record.count, "connection")
    return f"refused {connections} to a {record.socket} socket: without the secret of the run"


def _traffic(record: records.Traffic) -> str:
    return _listed(
        "data socket so far",
        f"{bytes_text(record.ingress_payload)} in",
        f"{bytes_text(record.egress_payload)} out",
        _if(record.pulls, f"{count_text(record.pulls, 'model')} sent with {bytes_text(record.pull_bytes)}"),
        _if(
            record.has_own_interface,
            f"{bytes_text(record.ingress_interface)} in and {bytes_text(record.egress_interface)} out "
            f"through {record.interface}",
        ),
    )


def _messages(record: records.Messages) -> str:
    received = f"{record.count:,} × {record.message} from {record.source}"
    return f"received so far: {received}, {bytes_text(record.bytes)}"


def _phases(record: records.Phases) -> str:
    return _listed(f"time of {count_text(record.steps, 'step')} so far", *_spent(record, "steps"))


def _shard_phases(record: records.ShardPhases) -> str:
    return _listed("time so far", *_spent(record))


def _spent(record: records.Record, *others: str) -> Iterator[str]:
    for name in record.__struct_fields__:
        if name not in others:
            yield f"{name.removesuffix('_s')} {seconds_text(getattr(record, name))}"


def _crossing(what: str, whom: str, version: int, size: int) -> str:
    return _listed(f"{what} {whom}", _if(version >= 0, f"version {version:,}"), _if(size, bytes_text(size)))


def _link(record: records.Link) -> str:
    return _listed(
        f"link held by {record.mechanism}{_if(record.interface, f' on {record.interface}')}",
        _if(record.cut, "cut"),
        _if(record.apart, f"cut off from {', '.join(record.apart)}"),
        *(f"at most {rate_text(rate)} to and from {node}" for node, rate in record.narrowed.items()),
        _direction("up", record.uplink_asked, record.uplink_held),
        _direction("down", record.downlink_asked, record.downlink_held),
        *(
            _if(getattr(record, each.field), f"{each.key} {each.seen_text(getattr(record, each.field))}")
            for each in IMPAIRMENTS
        ),
        _if(record.problem, f"not as asked: {record.problem}"),
        _if(record.differed, f"{record.differed:,} looks differed: {'; '.join(record.differences)}"),
    )


def _direction(name: str, asked: int | None, held: int | None) -> str:
    limit = "unlimited" if asked is None else rate_text(asked)
    return f"{name} {limit}" + _if(held != asked, f" (held {'unlimited' if held is None else rate_text(held)})")


def _usage(record: records.Usage) -> str:
    return _listed(
        f"used {seconds_text(record.cpu_s)} of CPU time in {seconds_text(record.time_s)} so far",
        _if(record.cpus_held is not None, f"cap {number_text(record.cpus_held)} cores"),
        _if(record.starved_s, f"{seconds_text(record.starved_s)} without a core it was promised"),
        _if(record.throttled_s, f"{seconds_text(record.throttled_s)} held back by its cap"),
        _if(record.memory_bytes is not None, f"{bytes_text(record.memory_bytes)} of memory at most"),
        _if(record.uplink_bytes is not None, f"{bytes_text(record.uplink_bytes)} up"),
        _if(record.downlink_bytes is not None, f"{bytes_text(record.downlink_bytes)} down"),
    )


def _connections(record: records.Connections) -> str:
    return _listed(
        f"{count_text(record.count, 'connection')} with {record.peer} so far",
        f"{bytes_text(record.acked_bytes)} sent",
        f"{bytes_text(record.received_bytes)} received",
        _if(record.round_trip_s is not None, f"smallest round trip {seconds_text(record.round_trip_s)}"),
    )


def _bypass(record: records.Bypass) -> str:
    return f"{bytes_text(record.bytes)} passed {record.interface}, and not the node's link"


def _seen(record: records.Seen) -> str:
    return _listed(
        f"{record.name} seen from outside for {seconds_text(record.time_s)}",
        _if(record.cpu_s is not None, f"{_give_or_take(record.cpu_s, record.cpu_error_s, seconds_text)} of CPU time"),
        _if(record.cpus_held is not None, f"cap {number_text(record.cpus_held)} cores"),
        _if(
            record.above,
            f"{number_text(record.cpus_above)} cores for all below {record.above}, used up for "
            f"{seconds_text(record.above_s)}",
        ),
        _if(record.memory_bytes is not None, f"{bytes_text(record.memory_bytes)} of memory at most"),
        _if(
            record.uplink_bytes is not None,
            f"{_give_or_take(record.uplink_bytes, record.uplink_error_bytes, bytes_text)} up",
        ),
        _if(
            record.downlink_bytes is not None,
            f"{_give_or_take(record.downlink_bytes, record.downlink_error_bytes, bytes_text)} down",
        ),
        _if(record.differed, f"{record.differed:,} looks differed: {'; '.join(record.differences)}"),
        _if(record.unread, f"not read: {'; '.join(record.unread)}"),
    )


def _give_or_take(value: float | None, error: float, text: Callable[[float | None], str]) -> str:
    return text(value) + _if(error, f" ± {text(error)}")


def _transfers(record: records.Transfers) -> str:
    whose = f"from {record.name} to {record.to}" if record.to else f"{record.direction} of {record.name}"
    return _listed(
        f"{count_text(record.messages, 'message')} {whose} so far",
        bytes_text(record.bytes),
        f"on their way for {seconds_text(record.time_s)}",
        f"asked {seconds_text(record.asked_s)}",
        _if(record.early, f"{record.early:,} too early"),
        _if(record.error_s, f"clocks may be wrong by {seconds_text(record.error_s)} of that"),
        _if(record.impossible, f"{record.impossible:,} came before they had left"),
    )


def _clock(record: records.Clock) -> str:
    return _listed(
        "the node's clock is not the controller's",
        f"{record.offset_s:+,.6f} s to add, and {1e6 * record.drift:+,.1f} µs more each second",
        f"known to {1000 * record.error_s:,.3f} ms",
        f"round trip {1000 * record.round_trip_s:,.3f} ms",
    )


def _host_load(record: records.HostLoad) -> str:
    return _listed(
        f"{f'host {record.host}' if record.host else 'the host'} was {percent_text(record.busy)} busy",
        f"load {number_text(record.load)} a core",
        f"sleepers woke {number_text(1000 * record.lag_s)} ms late",
        _if(record.steal, f"{percent_text(record.steal)} stolen"),
        _if(
            abs(slew := record.slew or 0.0) >= SLEW_SHOWN,
            f"its clock ran {percent_text(abs(slew))} {'fast' if slew > 0 else 'slow'}",
        ),
        _if(record.received_bytes_s is not None, _network(record)),
    )


def _network(record: records.HostLoad) -> str:
    came, went = (rate_text(8 * (bytes_s or 0.0)) for bytes_s in (record.received_bytes_s, record.sent_bytes_s))
    rate = _if(record.rate_bit_s, f", of {rate_text(record.rate_bit_s)} each way")
    return f"{came} came from other hosts, {went} went to them{rate}"


def _unanswered(record: records.Unanswered) -> str:
    what = "the join" if record.step < 0 else f"push {record.step:,}"
    return f"gave up waiting for the answer to {what}: {record.reason}"


def _pushes(record: records.Pushes) -> str:
    return f"{count_text(record.begun, 'update')} begun in this incarnation, {record.pushed:,} pushed"


def _measured(record: records.Measured) -> str:
    return f"measured {', '.join(f'{name} {number_text(value)}' for name, value in record.measured.items())}"


def _exited(record: records.Exited) -> str:
    life = _if(record.incarnation > 1, f" (incarnation {record.incarnation})")
    left = _if(record.left, f"{record.left:,} of what it had started left, and killed")
    return _listed(f"the program of {record.name} ended{life}", record.text, left)


def _output(record: records.Output) -> str:
    return _listed(
        f"{bytes_text(record.bytes)} of output",
        _if(record.left_out_bytes, f"{bytes_text(record.left_out_bytes)} of it left out of the log"),
        _if(record.dropped, f"{count_text(record.dropped, 'measure')} beyond those of a second dropped"),
        _if(record.unusable, f"{count_text(record.unusable, 'value')} that are no finite number"),
        *(f"no {name}: {why}" for name, why in record.unread.items()),
    )


def _progress(record: records.Progress) -> str:
    steps = f"{count_text(record.begun, 'step')} begun, {record.made:,} made"
    return f"{steps} since step {record.since:,}{_history(record.history)}"


def _fault(record: records.Fault) -> str:
    return _listed(
        f"{record.action} {record.change}".rstrip()
        + _if(not record.peer, f" of {record.target}")
        + f" ({record.name})",
        record.trigger,
        _if(record.problem, f"could not be done: {record.problem}"),
        _if(record.no_op, f"nothing to do: {record.no_op}"),
    )


def _appended(record: records.Appended) -> str:
    waited_s = record.waited_s / record.waited if record.waited else 0.0
    return _listed(
        f"{bytes_text(record.bytes)} of log written so far, in {seconds_text(record.append_s)}",
        f"{record.entries:,} entries",
        _if(record.syncs, f"{count_text(record.syncs, 'sync')}, for which a message waited {1000 * waited_s:.1f} ms"),
        _if(record.saved, f"{count_text(record.saved, 'update')} found that the last checkpoint lacked"),
    )


def _restored(record: records.Restored) -> str:
    text = f"the server (incarnation {record.incarnation}) resumes from update {record.version:,}"
    return text if record.replayed is None else f"{text}; it replayed {record.replayed:,} from its log"


_TEXTS: dict[type[records.Record], Callable[[Any], str]] = {
    records.Trial: _trial,
    records.Continued: lambda record: f"the trial is resumed after {seconds_text(record.trained_s)} of training",
    records.Node: _node,
    records.Update: _update,
    records.Step: _step,
    records.Diverged: _diverged,
    records.Taught: _taught,
    records.Resumed: _resumed,
    records.Progress: _progress,
    records.BackedUp: lambda record: f"backup of all shards after step {record.step:,}{_history(record.history)}",
    records.Evaluated: _evaluated,
    records.Clients: _clients,
    records.Finished: lambda record: _listed(f"no more updates after update {record.version:,}", record.reason),
    records.Refused: _refused,
    records.Dropped: _dropped,
    records.Unauthenticated: _unauthenticated,
    records.Traffic: _traffic,
    records.Messages: _messages,
    records.Phases: _phases,
    records.ShardPhases: _shard_phases,
    records.Sent: lambda record: _crossing(f"sent {record.message} to", record.to, record.version, record.bytes),
    records.Received: lambda record: _crossing(
        f"received {record.message} from", record.sender, record.version, record.bytes
    ),
    records.Link: _link,
    records.Usage: _usage,
    records.Connections: _connections,
    records.Bypass: _bypass,
    records.Seen: _seen,
    records.Appended: _appended,
    records.Transfers: _transfers,
    records.Clock: _clock,
    records.HostLoad: _host_load,
    records.Joined: lambda record: (
        f"{record.worker} joined{_if(record.joins, ' again')} (incarnation {record.incarnation})"
    ),
    records.Left: lambda record: f"{record.worker} has left (incarnation {record.incarnation}): {record.reason}",
    records.AtWork: lambda record: f"{record.worker} is at work on a push",
    records.Unanswered: _unanswered,
    records.Pushes: _pushes,
    records.Fault: _fault,
    records.Restored: _restored,
    records.Measured: _measured,
    records.Exited: _exited,
    records.Output: _output,
    records.Note: lambda record: f"note: {record.text}",
    records.Ended: lambda record: _listed(f"the trial is over, {record.outcome}", record.reason),
}
