"""`edgebed events --run`: a command of the user's gets each event; what becomes of it keeps nothing from being told."""

import json
import sys
from pathlib import Path

import pytest

from edgebed.cli import hook
from edgebed.core.errors import ScenarioError
from edgebed.reports.live.events import EventFilter, event_lines

SCRIPT = """
import sys
event = sys.stdin.read()
with open(sys.argv[1], "a") as file:
    file.write(event)
sys.exit(3 if '"ended"' in event else 0)
"""


@pytest.fixture
def command(tmp_path: Path) -> str:
    """A program that writes its standard input to a file, and fails for the last event."""
    (tmp_path / "told.py").write_text(SCRIPT)
    return f"{sys.executable} '{tmp_path / 'told.py'}' '{tmp_path / 'told.jsonl'}'"


def test_a_command_gets_each_event_as_the_journal_has_it(sample_run, tmp_path, command):
    """Of those that are chosen, one after the other; where it fails that is said."""
    said = []
    selection = EventFilter(kinds=["ended", "node"], trials=["asgd"])
    shown = list(event_lines(sample_run.folder, selection, tell=hook.runner_of(command, said.append)))
    told = [json.loads(line) for line in (tmp_path / "told.jsonl").read_text().splitlines()]

    assert told == [json.loads(line) for line in event_lines(sample_run.folder, selection, json=True)]
    assert len(told) == len(shown)
    assert said == [f"--run: {sys.executable} ended with exit code 3"]


def test_a_command_that_takes_too_long_is_ended(monkeypatch):
    """And the next event is told."""
    said = []
    monkeypatch.setattr(hook, "LONGEST_S", 0.05)
    run = hook.runner_of("sleep 10", said.append)
    run("{}")
    run("{}")

    assert said == ["--run: sleep took longer than 0.05 s, and was ended"] * 2


@pytest.mark.parametrize(
    ("command", "said"),
    [("no-such-program --x", "there is no command 'no-such-program'"), ("'", "is no command"), ("  ", "there is no")],
)
def test_what_cannot_be_run_is_refused_before_anything_is_told(command, said):
    """With what is allowed."""
    with pytest.raises(ScenarioError, match=said):
        hook.runner_of(command, print)
