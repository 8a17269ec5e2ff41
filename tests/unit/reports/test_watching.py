"""`edgebed watch`: what is shown of a run that somebody else works on.

Method: sample runs that another holder of their lock appends to between two looks; a progress that keeps what it is
told.
"""

import contextlib

import pytest

from edgebed.core import records
from edgebed.journal.journal import JournalWriter
from edgebed.reports.live.watching import WatchedTrial, watch_run


class Told:
    """A progress that remembers."""

    def __init__(self):
        self.events = []

    def trial_started(self, plan):
        """It begins."""
        self.events.append(("started", plan.trial))

    def update(self, status):
        """It goes on."""
        self.events.append((status.state, status.trial, status.updates))

    def trial_ended(self, summary):
        """It is over."""
        self.events.append((summary.outcome, summary.trial, summary.updates))


@pytest.fixture
def world(tmp_path, make_sample_run, make_sample_plan, make_sample_entries):
    """A run of two trials that has just begun, and what can happen to it: `watch(what happens between looks)`."""
    run = make_sample_run(tmp_path, {"asgd": []})
    run.folder.write_manifest(seed=7, runtime="process", command=[], trials=["asgd", "adacomp"])
    entries = list(make_sample_entries())
    hold = contextlib.ExitStack()
    hold.enter_context(run.folder.locked())
    pauses = []

    class World:
        folder = run.folder

        def write(self, trial, first, last=None):
            """Entries of a whole trial."""
            if not self.folder.trial(trial).plan.exists():
                self.folder.trial(trial).make(make_sample_plan(trial))
            with JournalWriter(self.folder.trial(trial).journal) as journal:
                journal.write_many(entries[first:last])

        def end(self):
            """Nobody works on it any more."""
            hold.close()

        def watch(self, *script):
            """What is told while this happens, one thing after each look; how often it looked in vain after them."""
            told, steps = Told(), iter(script)

            def pause(_):
                pauses.append(0)
                next(steps, lambda: None)()

            watch_run(self.folder, told, pause)
            return told.events, len(pauses) - len(script)

    with hold:
        yield World()


def test_trials_are_shown_as_they_come_and_end(world):
    """Also one that begins and ends between two looks, which gets no status; the results are waited for."""
    events, waits = world.watch(
        lambda: world.write("asgd", 0, 200),
        lambda: world.write("asgd", 200),
        lambda: world.write("adacomp", 0),
        world.end,
        lambda: None,
        lambda: world.folder.report.write_text("here"),
    )

    assert events == [
        ("started", "asgd"), ("training", "asgd", 189), ("over", "asgd", 600), ("completed", "asgd", 600),
        ("started", "adacomp"), ("completed", "adacomp", 600),
    ]  # fmt: skip
    assert waits == 0


@pytest.mark.parametrize("killed_in", ["asgd", "between", "adacomp"])
def test_a_run_whose_controller_was_killed_is_over_at_once(world, killed_in):
    """There will be no results to wait for, and what its trial was at is told."""
    world.write("asgd", 0, 200 if killed_in == "asgd" else None)
    if killed_in == "adacomp":
        world.write("adacomp", 0, 100)
    events, waits = world.watch(lambda: None, world.end)

    assert events[-1][0] == ("completed" if killed_in == "between" else "unfinished")
    assert waits == 0


def test_a_trial_that_was_gone_on_with_is_not_over(world):
    """Its journal has an end in the middle."""
    world.write("asgd", 0, 200)
    with JournalWriter(world.folder.trial("asgd").journal) as journal:
        journal.write(5.0, "controller", records.Ended(outcome="interrupted", reason="x"))
    events, _ = world.watch(
        lambda: None,
        lambda: world.write("asgd", 0, 1),
        lambda: world.write("asgd", 200),
        world.end,
        lambda: world.folder.report.write_text("here"),
    )

    assert [event[0] for event in events] == ["started", "over", "training", "over", "completed"]


@pytest.mark.parametrize("is_simulated", [False, True])
def test_time_goes_on_since_the_last_record(world, is_simulated):
    """Where it is real; at the end it stands still."""
    now = 100.0
    world.write("asgd", 0, 1)
    watched = WatchedTrial(world.folder.trial("asgd"), is_simulated=is_simulated, clock=lambda: now)
    assert watched.look().elapsed_s == 0.0
    now = 107.0
    assert watched.look().elapsed_s == (0.0 if is_simulated else 7.0)
    world.write("asgd", 1)
    end_s = watched.look().elapsed_s
    now = 200.0
    assert watched.look().elapsed_s == end_s < 10.0
