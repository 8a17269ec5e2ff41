"""What a controller shows of its run and what is read from the run's journal are the same.

Method: a run in virtual time with faults, one of them the server's end; every status that it showed, against one
computed from its journal as it was at the same moment.
"""

from pathlib import Path

import msgspec
import pytest
from quick_runs import run as run_quickly

from edgebed.core import records
from edgebed.journal.journal import decode_line
from edgebed.journal.trial_state import TrialState, TrialStatus
from edgebed.runtimes import watch

SCENARIO = {
    "name": "standing",
    "question": "Is it the same from elsewhere?",
    "task": {"data": "digits", "model": "small", "batch_size": 10, "gradient_time": "5ms"},
    "method": "adacomp",
    "fleet": {"edge": {"count": 3}, "phone": {"count": 2, "waiting": "50ms"}},
    "evaluation": {"every": "50 updates"},
    "checkpoints": {"every": "20 updates"},
    "stop": {"updates": 200},
    "faults": [
        {"kill": "phone-1", "at": "0.2s"},
        {"restart": "server", "at_update": 100, "delay": "1s"},
        {"cut": "edge-0", "at": "0.3s", "for": "0.3s"},
    ],
    "on_failure": "restart",
}
SHELL = {"state", "interrupted", "health", "updates_per_s", "classes"}
"""What depends on the controller's heart, or on the clock."""


class Shown:
    """A progress that keeps every status, with how long the journal was then."""

    def __init__(self, runs: Path) -> None:
        self.journal = runs / "standing" / "0001" / "adacomp" / "events.jsonl"
        self.statuses: list[tuple[int, TrialStatus]] = []

    def trial_started(self, _: object) -> None:
        """It begins."""

    def update(self, status: TrialStatus) -> None:
        """It goes on."""
        self.statuses.append((self.journal.stat().st_size, status))

    def trial_ended(self, _: object) -> None:
        """It is over."""


def test_the_controllers_view_is_that_of_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every moment: each figure, each trouble and its time, each class's states and share."""
    monkeypatch.setattr(watch, "SHOW_S", 0.0)  # after every event
    shown = Shown(tmp_path)
    run = run_quickly(SCENARIO, runtime="simulation", runs_dir=tmp_path, processes=1, progress=shown)
    standing = TrialState(run.trials["adacomp"].plan)
    lines = shown.journal.read_bytes().splitlines(keepends=True)
    size, last = 0, lines[-1]
    for until, status in shown.statuses:
        while size < until:
            size += len(lines[0])
            standing.add(*decode_line(lines.pop(0)))
        replayed = standing.status(status.elapsed_s + (standing.timeline.began_s or 0.0), 0.0)
        assert figures(replayed) == figures(status)

    told = {trouble.text for trouble in status.troubles}
    assert {"phone-1: kill (kill-1)", "server: kill (restart-2)", "edge-0: heal (cut-3)"} <= told
    assert isinstance(decode_line(last)[2], records.Ended)  # the last view may have it
    assert msgspec.json.decode(msgspec.json.encode(status), type=TrialStatus) == status


def figures(status: TrialStatus) -> dict[str, object]:
    """What a journal tells of it."""
    told = {name: getattr(status, name) for name in TrialStatus.__struct_fields__ if name not in SHELL}
    told["elapsed_s"] = round(status.elapsed_s, 6)
    return told | {"classes": [(each.name, each.states, each.share) for each in status.classes]}
