"""Watching a run from another terminal.

Method: a real run; meanwhile `edgebed events --follow` and `edgebed watch` as other processes, with and without a
terminal. What they say is compared with the journals and with what the run itself says at its end.
"""

import contextlib
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from fcntl import ioctl
from pathlib import Path

import pytest

SCENARIO = """
name: watched
question: Is it seen from elsewhere?
task: { data: digits, model: small, batch_size: 10 }
method: adacomp
fleet: { edge: { count: 2, waiting: 10ms }, slow: { count: 1, waiting: 20ms } }
evaluation: { every: 100 updates }
stop: { updates: 300 }
expect: { updates: ">= 300" }
deadlines: { join: 30s, stall: 30s }
"""
TWO = SCENARIO + "variants: { one: {}, two: { method: asgd } }\n"
ENDLESS = SCENARIO.replace("updates: 300 }", "updates: 100000 }")
DEADLINE_S = 60.0
ROWS, COLUMNS = 20, 80
STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What a terminal acts on: colours, places."""
Begin = Callable[..., "LiveRun"]  # noqa: F821 # of conftest.py, which is no module to import from


class Terminal:
    """A command on a pseudo-terminal, and what it writes there."""

    def __init__(self, run, *words: str) -> None:
        self.mine, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        command = [sys.executable, "-m", "edgebed", *words, "--runs-dir", str(run.runs)]
        environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment | {"TERM": "xterm-256color"},
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self.text = ""
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # its end
            while part := os.read(self.mine, 65536):
                self.text += part.decode(errors="replace")

    def shows(self, pattern: str) -> None:
        """Wait until it has shown that."""
        deadline_s = time.monotonic() + DEADLINE_S
        while not re.search(pattern, self.text):
            assert time.monotonic() < deadline_s, f"{pattern!r} is not in {self.text[-2000:]!r}"
            time.sleep(0.02)

    def end(self) -> int:
        """Wait for its end; its exit code."""
        code = self.process.wait(DEADLINE_S)
        self.reader.join(DEADLINE_S)
        os.close(self.mine)
        return code


def begun(run) -> None:
    """Wait until the run can be named."""
    run.until(lambda: any(run.runs.glob("*/0001/manifest.json")), "the run's folder")


def results(text: str) -> str:
    """The table, the chart and the verdict."""
    plain = STYLE.sub("", text)
    return plain[plain.index("watched (process)") :].replace("\r\n", "\n")


def journal_of(run, trial: str) -> list[dict]:
    """Its lines, each with its trial."""
    lines = (run.path / trial / "events.jsonl").read_text().splitlines()
    return [{"trial": trial} | json.loads(line) for line in lines]


def repr_of(line: dict) -> str:
    """What to sort lines by."""
    return json.dumps(line, sort_keys=True)


def test_a_run_of_two_trials_is_followed_to_its_end(begin: Begin) -> None:
    """Events and views from before the first trial; the same results and exit code as the run's own."""
    run = begin(TWO)
    begun(run)
    follower = run.start("events", "watched", "--follow", "--json")
    terminal = Terminal(run, "watch", "watched")
    code, out, err = run.command("watch", "watched")
    told, complaint = follower.communicate(timeout=DEADLINE_S)

    assert (run.end(), code, terminal.end()) == (0, 0, 0), (run.err, err, terminal.text)
    assert results(out) == results(run.out)
    assert results(terminal.text)[:40] == results(run.out)[:40]
    assert "✓ one completed" in terminal.text
    training = r"(training|final evaluation|stopping|over), [\d,]+ of 300 updates"
    assert re.search(rf"two: (starting, \d of \d nodes ready, \d+\.\d+ s|{training})", err)
    assert "\x1b" not in out + err
    assert [line for line in err.splitlines() if "completed" in line] == [
        line for line in run.err.splitlines() if "completed" in line
    ]
    assert (follower.returncode, complaint) == (0, "")
    lines = [json.loads(line) for line in told.splitlines()]
    for trial in ("one", "two"):
        mine = [line for line in lines if line["trial"] == trial]
        assert sorted(mine, key=repr_of) == sorted(journal_of(run, trial), key=repr_of)
    assert [line["trial"] for line in lines] == sorted(line["trial"] for line in lines)


def test_a_terminal_shows_classes_and_troubles_and_ctrl_c_leaves_the_run_alone(begin: Begin) -> None:
    """In lines that fit it; then the run goes on."""
    run = begin(ENDLESS, "--emulation", "model").trains()
    terminal = Terminal(run, "watch", "watched")
    terminal.shows(r"edge  2 nodes +[\d.]+ updates/s")
    assert run.command("freeze", "slow-0")[0] == 0
    terminal.shows(r"slow-0: freeze \(by hand\)")
    os.killpg(terminal.process.pid, signal.SIGINT)

    assert terminal.end() == 130
    assert f"no longer watching; run {run.path.parent.name}/0001 continues: edgebed watch watched/0001" in terminal.text
    assert "Traceback" not in terminal.text
    plain = STYLE.sub("", terminal.text)
    assert max(len(line) for line in plain.replace("\r", "\n").splitlines()) <= COLUMNS
    updates = len(run.entries())
    run.until(lambda: len(run.entries()) > updates, "more of the journal")
    assert run.process.poll() is None
    os.kill(run.process.pid, signal.SIGINT)
    assert run.end() == 130


@pytest.mark.parametrize(
    "words", [("watch",), ("events", "--follow"), ("logs", "--follow")], ids=lambda words: words[0]
)
def test_nobody_waits_for_a_controller_that_was_killed(begin: Begin, words: tuple[str, ...]) -> None:
    """What follows a run ends with it; `watch` tells that there is no result."""
    run = begin(ENDLESS, "--emulation", "model").trains()
    follower = run.start(words[0], "watched", *words[1:])
    time.sleep(1.0)  # until it has begun to look
    assert follower.poll() is None
    os.kill(run.process.pid, signal.SIGKILL)
    out, err = follower.communicate(timeout=DEADLINE_S)
    run.end()

    assert follower.returncode == (3 if words[0] == "watch" else 0), err
    assert ("No result: adacomp unfinished" in out) == (words[0] == "watch")
    assert "Traceback" not in err


def test_a_run_that_is_over_is_shown_at_once_and_a_reader_may_leave(begin: Begin, tmp_path: Path) -> None:
    """`watch` as `show`, with the run's exit code; `events | head` ends quietly, also while it follows."""
    run = begin(SCENARIO.replace('updates: ">= 300"', 'final_accuracy: "> 0.9999"'))
    run.until(lambda: bool(run.entries()), "the journal")
    command = [sys.executable, "-m", "edgebed", "events", "watched", "--follow", "--runs-dir", str(run.runs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as follower:
        assert follower.stdout.readline().endswith(
            "note: Links are as fast as the machine, unless a fault or a user changes them.\n"
        )
        follower.stdout.close()
        assert follower.wait(DEADLINE_S) == 0
        assert follower.stderr.read() == ""
    assert run.end() == 1
    shown, watched = run.command("show", "watched"), run.command("watch", "watched")

    assert watched == (1, shown[1], shown[2])
    code, out, _ = run.command("events", "watched", "--kind", "ended")
    assert (code, out.count("\n")) == (0, 1)
    assert out.endswith("adacomp  controller  the trial is over, completed: 300 updates were applied\n")
