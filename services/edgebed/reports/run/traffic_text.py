"""The bytes that nodes sent each other, in words and by kind, for the report and the terminal.

Up is the payload of the pushes, down that of the models. Beside them stands what crossed the server's interface where
it has one of its own: headers, and the packets that acknowledge the models, which on a slow link outweigh small pushes.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from edgebed.core.measures.trial import ShardMeasures
from edgebed.core.quantities import UNMEASURED, bytes_text, count_text
from edgebed.journal.summary import STEP_MESSAGES, TrialSummary


def interface_text(trial: TrialSummary, value: int | None) -> str:
    """Bytes at the interface with its name, e.g. `5.2 MB (eth0)`."""
    return UNMEASURED if value is None else f"{bytes_text(value)} ({trial.interface})"


def ingress_interface_text(trial: TrialSummary) -> str:
    """Bytes received at the interface, e.g. `5.2 MB (eth0), of it 3.1 MB (60 %) acknowledgements of pulls`."""
    text = interface_text(trial, trial.ingress_interface_bytes)
    if trial.ack_bytes is None or not trial.ingress_interface_bytes:
        return text
    share = trial.ack_bytes / trial.ingress_interface_bytes
    return f"{text}, of it {bytes_text(trial.ack_bytes)} ({100 * share:.0f} %) acknowledgements of pulls"


def whole_models_text(trial: TrialSummary) -> str:
    """The whole models that workers were sent, e.g. `20 models, 16.9 MB`."""
    served = trial.server
    if not served or not served.pulls:
        return UNMEASURED
    return _models_text(served.pulls - served.pulls_changed, (served.egress_bytes or 0) - served.pull_changed_bytes)


def changed_models_text(trial: TrialSummary) -> str:
    """The models with changed entries only that workers were sent, e.g. `20 models, 1.2 MB`."""
    served = trial.server
    return _models_text(served.pulls_changed, served.pull_changed_bytes) if served and served.pulls else UNMEASURED


def bytes_by_kind(trial: TrialSummary) -> dict[str, int]:
    """Payload of all messages by kind, as far as the journal says; {} where nothing was counted.

    The kinds are up and down at the server, or the kinds of messages among shards. Together they are all payload.
    """
    parts = _exchanged_by_kind(trial.shards) if trial.shards else _served_by_kind(trial)
    return {kind: size for kind, size in parts.items() if size > 0}


def lacks_messages(trial: TrialSummary) -> bool:
    """Whether more was pushed than was received: a server that is killed does not report its last messages."""
    pushed, received = trial.value("ingress_bytes"), trial.ingress_payload_bytes
    return pushed is not None and received is not None and received < pushed


def byte_rows(trials: Sequence[TrialSummary]) -> list[tuple[str, ...]]:
    """Rows on the bytes at the server, a column a trial."""
    return measured_rows([
        ("entries to push, at 32 bits a position", *map(_bits_text, trials)),
        ("up: payload of the pushes", *(bytes_text(trial.value("ingress_bytes")) for trial in trials)),
        ("up: of it, vectors beside the model", *(bytes_text(trial.value("beside_up_bytes")) for trial in trials)),
        ("up: payload of all messages", *(bytes_text(trial.ingress_payload_bytes) for trial in trials)),
        ("up: at the server's interface", *map(ingress_interface_text, trials)),
        ("down: whole models to workers", *map(whole_models_text, trials)),
        ("down: changed entries to workers", *map(changed_models_text, trials)),
        ("down: of it, vectors beside it", *(bytes_text(trial.value("beside_down_bytes")) for trial in trials)),
        ("down: payload of all messages", *(bytes_text(trial.egress_payload_bytes) for trial in trials)),
        ("down: at the server's interface", *(interface_text(trial, trial.egress_interface_bytes) for trial in trials)),
    ])  # fmt: skip


def measured_rows(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The rows in which some trial has a value."""
    return [row for row in rows if any(cell != UNMEASURED for cell in row[1:])]


def traffic_lines(trial: TrialSummary) -> Iterator[str]:
    """Lines for a terminal besides the table: nothing of what was not measured."""
    if trial.ingress_interface_bytes is not None:
        yield f"up, at the server's interface: {ingress_interface_text(trial)}"
    if trial.value("pulls_changed"):
        yield f"down: {whole_models_text(trial)} whole; {changed_models_text(trial)} of changed entries"
    elif trial.value("pulls"):
        yield f"down: {whole_models_text(trial)}"


def _served_by_kind(trial: TrialSummary) -> dict[str, int]:
    served = trial.server
    if served is None or trial.ingress_payload_bytes is None or trial.egress_payload_bytes is None:
        return {}
    down = min(served.egress_bytes or 0, trial.egress_payload_bytes)
    applied = min(served.ingress_bytes or 0, trial.ingress_payload_bytes)  # a killed server reported the sum before
    return {
        "up: pushes that were applied": applied,
        "up: pushes that were not, and joining": trial.ingress_payload_bytes - applied,
        "down: whole models": down - served.pull_changed_bytes,
        "down: changed entries of models": served.pull_changed_bytes,
        "down: all else": trial.egress_payload_bytes - down,
    }


def _exchanged_by_kind(shards: ShardMeasures) -> dict[str, int]:
    found: Counter[str] = Counter(dict.fromkeys(STEP_MESSAGES, 0))
    for each in shards.exchanges:
        found[each.message] += each.bytes
    return {**found, "sent and never received": (shards.exchanged_bytes or 0) - found.total()}


def _bits_text(trial: TrialSummary) -> str:
    return bytes_text(trial.server.bits / 8) if trial.server else UNMEASURED


def _models_text(number: int, size: int) -> str:
    return f"{count_text(number, 'model')}, {bytes_text(size)}"
