"""The bytes at the server in words, for the report and the terminal.

The headline ingress is the payload of the pushes. Beside it stands what crossed the interface: headers, and the packets
that acknowledge the models that the server sent, which on a slow link outweigh small pushes.
"""

from collections.abc import Iterator

from edgebed.observe.quantities import UNMEASURED, bytes_text, count_text
from edgebed.observe.summary import TrialSummary

LOOPBACK = "lo"  # the whole machine shares it, so its bytes are not the server's alone


def interface_text(trial: TrialSummary, value: int | None) -> str:
    """Bytes at the interface with its name, e.g. `5.2 MB (eth0)`."""
    shared = ", shared by the machine" if trial.interface == LOOPBACK else ""
    return UNMEASURED if value is None else f"{bytes_text(value)} ({trial.interface}{shared})"


def ingress_interface_text(trial: TrialSummary) -> str:
    """The same of the ingress, e.g. `5.2 MB (eth0), of it 3.1 MB (60 %) acknowledgements of pulls`."""
    text = interface_text(trial, trial.ingress_interface_bytes)
    if trial.ack_bytes is None or not trial.ingress_interface_bytes:
        return text
    share = trial.ack_bytes / trial.ingress_interface_bytes
    percent = "" if trial.interface == LOOPBACK else f" ({100 * share:.0f} %)"
    return f"{text}, of it {bytes_text(trial.ack_bytes)}{percent} acknowledgements of pulls"


def whole_models_text(trial: TrialSummary) -> str:
    """The whole models that workers were sent, e.g. `20 models, 16.9 MB`."""
    if not trial.pulls:
        return UNMEASURED
    return _models_text(trial.pulls - trial.pulls_changed, trial.pull_bytes - trial.pull_changed_bytes)


def changed_models_text(trial: TrialSummary) -> str:
    """The same of those that held changed entries only."""
    return _models_text(trial.pulls_changed, trial.pull_changed_bytes) if trial.pulls else UNMEASURED


def traffic_lines(trial: TrialSummary) -> Iterator[str]:
    """What a terminal says of it besides the table: nothing of what was not measured, or is not the server's alone."""
    if trial.ingress_interface_bytes is not None and trial.interface != LOOPBACK:
        yield f"ingress at the interface: {ingress_interface_text(trial)}"
    if trial.pulls_changed:
        yield f"egress: {whole_models_text(trial)} whole; {changed_models_text(trial)} of changed entries"
    elif trial.pulls:
        yield f"egress: {whole_models_text(trial)}"


def _models_text(number: int, size: int) -> str:
    return f"{count_text(number, 'model')}, {bytes_text(size)}"
