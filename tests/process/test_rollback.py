"""All shards of a run in progress are rolled back by hand."""

from collections.abc import Callable

from edgebed.core import records
from edgebed.journal.series import Series

SCENARIO = """
name: by-hand
question: Can it be rolled back?
task: { data: digits, model: eight-layer, width: 4, batch_size: 32 }
method: back-propagation
fleet: { edge: { count: 2 } }
evaluation: { every: 500 updates }
checkpoints: { every: 60 updates }  # ten of them: all are kept, however late the user is
stop: { updates: 600 }
"""
FLAT = """
name: by-hand
question: And without shards?
task: { data: digits, model: small, batch_size: 10 }
method: asgd
fleet: { edge: { count: 2, waiting: 10ms } }
stop: { updates: 100000 }
"""
Begin = Callable[..., "LiveRun"]  # noqa: F821 # of conftest.py, which is no module to import from


def test_all_shards_go_on_from_the_newest_backup_that_is_not_beyond(begin: Begin) -> None:
    """What they had learnt since is given up, learnt anew, and counted; a step before all backups is refused."""
    run = begin(SCENARIO, "--emulation", "model")
    run.has(lambda r: isinstance(r, records.BackedUp) and r.step >= 120, "a few backups")
    code, _, err = run.command("rollback", "by-hand", "--step", "7")
    assert code == 2
    assert "there is no backup of step 7 or before" in err

    code, out, _ = run.command("rollback", "by-hand", "--step", "90")
    assert (code, out.strip()) == (0, "by-hand/0001 resumed from step 60")

    assert run.end() == 0
    resumed = run.all(records.Resumed)
    assert [(each.history, each.step, each.reason) for each in resumed] == [(0, 0, ""), (1, 60, "rolled back by hand")]
    assert [each.step for each in run.all(records.BackedUp) if each.history == 1] == list(range(120, 601, 60))
    again = [each.step for each in run.all(records.Step) if each.history == 1]
    assert sorted(again) == sorted([*range(60, 600), *range(60, 600)])
    books = Series.from_journal(run.trial / "events.jsonl").accounting
    assert books.problems == ()
    assert books.total.applied == 2 * 600
    assert books.total.rolled_back == books.total.begun - books.total.applied >= 2 * 60


def test_a_run_without_shards_cannot_be_rolled_back(begin: Begin) -> None:
    """It says why, and goes on."""
    run = begin(FLAT, "--emulation", "model").trains()

    code, _, err = run.command("rollback", "by-hand", "--step", "50")

    assert code == 2
    assert "the method 'asgd' makes no backups of shards" in err
