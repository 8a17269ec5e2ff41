"""The accounts of layer shards, line by line: two shards, a death after a backup, and all that may be wrong there."""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from edgebed.core import records
from edgebed.journal.accounts.ledger import Accounting
from edgebed.journal.accounts.step_accounts import FATES
from edgebed.journal.accounts.update_accounts import UpdateAccounting
from edgebed.journal.folds import Timeline
from edgebed.journal.journal import Entry, JournalWriter
from edgebed.journal.series import Series
from edgebed.journal.summary import summarise
from edgebed.reports.run.faults_text import STEPS, accounting_line, accounting_rows
from edgebed.roles.layerwise.histories import HISTORIES

Lines = list[tuple[str, records.Record]]
Change = Callable[[Lines], Iterable[tuple[str, records.Record]]]


def state(name: str, what: str, incarnation: int = 1) -> tuple[str, records.Record]:
    """What the controller sees of a node."""
    return "controller", records.Node(name=name, state=what, incarnation=incarnation)


def joined(name: str, incarnation: int = 1) -> tuple[str, records.Record]:
    """What the server sees of it."""
    return "server", records.Joined(worker=name, incarnation=incarnation)


def steps(history: int, start: int, end: int, *names: str) -> Lines:
    """Both shards make these, or those that are named."""
    of = names or ("edge-0", "edge-1")
    return [(name, records.Step(step=step, history=history)) for step in range(start, end) for name in of]


def progress(
    name: str, history: int, since: int, begun: int = 0, made: int = 0, incarnation: int = 1
) -> tuple[str, records.Record]:
    """Outputs go up in each step that is begun, and a gradient comes down for each that is made."""
    below = "" if name == "edge-0" else "edge-0"
    up = {"outputs_sent": begun, "gradients_used": made}
    down = {"inputs_used": begun, "gradients_sent": made}
    return name, records.Progress(
        incarnation=incarnation, history=history, since=since, begun=begun, made=made, below=below,
        **(down if below else up),
    )  # fmt: skip


def lines() -> Lines:
    """Six steps; the upper shard dies at step 4, and all go on from a backup of step 3."""
    return [
        *(state(name, "joined") for name in ("server", "edge-0", "edge-1")),
        ("controller", records.Trial(scenario="s", trial="t", seed=1, runtime="process", nodes=4, parameters=1)),
        joined("edge-0"),
        joined("edge-1"),
        ("server", records.Resumed(history=0, step=0)),
        progress("edge-0", 0, 0),
        progress("edge-1", 0, 0),
        *steps(0, 0, 3),
        ("server", records.BackedUp(history=0, step=3)),
        *steps(0, 3, 4),
        progress("edge-1", 0, 0, begun=5, made=4),
        ("controller", records.Fault(name="kill-1", action="kill", target="edge-1", asked_s=1.0)),
        state("edge-1", "died"),
        state("edge-1", "joined", 2),
        joined("edge-1", 2),
        ("server", records.Resumed(history=1, step=3)),
        progress("edge-0", 0, 0, begun=5, made=4),
        progress("edge-0", 1, 3),
        progress("edge-1", 1, 3, incarnation=2),
        *steps(1, 3, 6),
        ("server", records.BackedUp(history=1, step=6)),
        ("server", records.Finished(version=6, reason="6 steps were made", history=1)),
        progress("edge-0", 1, 3, begun=3, made=3),
        progress("edge-1", 1, 3, begun=3, made=3, incarnation=2),
        state("edge-0", "stopped"),
        state("edge-1", "stopped", 2),
        ("controller", records.Ended(outcome="completed", reason="")),
    ]


def accounting_of(journal: Iterable[tuple[str, records.Record]]) -> Accounting | None:
    """Of these lines, a hundredth of a second apart."""
    entries: list[Entry] = [(0.01 * k, node, record) for k, (node, record) in enumerate(journal)]
    return UpdateAccounting(Timeline()).add_all(entries).close()


def counts_of(accounting: Accounting | None) -> dict[str, int]:
    """What became of how many steps."""
    assert accounting is not None
    assert accounting.closes, accounting.problems
    counts = +Counter({name: getattr(accounting.total, name) for name in FATES})
    assert accounting.total.begun == counts.total()
    return dict(counts)


def without(node: str = "", kind: type = records.Record, **values: Any) -> Change:
    """No line of that kind, by that node, with these values."""

    def change(journal: Lines) -> Iterable[tuple[str, records.Record]]:
        return [line for line in journal if not _is(line, node, kind, values)]

    return change


def twice(node: str, kind: type, **values: Any) -> Change:
    """Each line of that kind comes twice."""

    def change(journal: Lines) -> Iterable[tuple[str, records.Record]]:
        return [line for line in journal for _ in range(2 if _is(line, node, kind, values) else 1)]

    return change


def changed(node: str, kind: type, found: dict[str, Any], **values: Any) -> Change:
    """Lines that say what is `found` say these values."""

    def change(journal: Lines) -> Iterable[tuple[str, records.Record]]:
        return [
            (who, replace(line, **values) if _is((who, line), node, kind, found) else line) for who, line in journal
        ]

    return change


def both(first: Change, second: Change) -> Change:
    """One after the other."""
    return lambda journal: second(list(first(journal)))


def _is(line: tuple[str, records.Record], node: str, kind: type, values: dict[str, Any]) -> bool:
    who, record = line
    is_meant = isinstance(record, kind) and node in ("", who)
    return is_meant and all(getattr(record, name, None) == value for name, value in values.items())


def test_every_step_is_accounted_for() -> None:
    """Those until the backup are in the model, one later one was made, and one was in progress at either shard."""
    accounting = accounting_of(lines())

    assert counts_of(accounting) == {"applied": 12, "rolled_back": 3, "lost_with_worker": 1}
    assert [(life.worker, life.incarnation, life.begun) for life in accounting.lives] == [
        ("edge-0", 1, 8),
        ("edge-1", 1, 5),
        ("edge-1", 2, 3),
    ]


STEP, PROGRESS, RESUMED, BACKED_UP = records.Step, records.Progress, records.Resumed, records.BackedUp
MISSING = "1 of its steps are missing without a reason"
NOT_BEGUN = "made steps in a history that it had not begun"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (without("edge-0", STEP, history=1, step=4), f"edge-0: {MISSING}"),
        (without("edge-0", STEP, history=1, step=5), f"edge-0: {MISSING}"),
        (without("edge-0", STEP, history=0, step=3), f"edge-0: {MISSING}"),
        (without("edge-1", STEP, history=0, step=3), f"edge-1: {MISSING}"),
        (without("edge-1", STEP, history=0, step=0), f"edge-1: {MISSING}"),
        (twice("edge-0", STEP, history=0, step=3), "edge-0: made a step twice"),
        (changed("edge-1", STEP, {"history": 1, "step": 3}, step=2), "edge-1#2: made steps that are not its own"),
        (changed("edge-0", PROGRESS, {}, every=4), "edge-0: made steps that are not its own (5 times)"),
        (without("edge-1", PROGRESS, history=1, begun=0), f"edge-1: {NOT_BEGUN} (3 times)"),
        (changed("edge-1", STEP, {"history": 1, "step": 5}, history=2), f"edge-1: {NOT_BEGUN}"),
        (changed("edge-1", PROGRESS, {"begun": 5}, begun=3), "edge-1: made steps that it had not begun"),
        (changed("edge-0", PROGRESS, {"begun": 5}, begun=3, made=3), "edge-0: made steps that it had not begun"),
        (changed("edge-0", PROGRESS, {"begun": 3}, incarnation=2), "edge-0: two of its incarnations followed"),
        (
            changed("edge-1", PROGRESS, {"history": 1}, since=2),
            "edge-1: began a history at another step than the server said",
        ),
        (without("server", RESUMED, history=1), "shards followed a history that the server did not begin"),
        (twice("server", RESUMED, history=1), "the server began a history twice, or did not report one"),
        (
            changed("", records.Record, {"history": 1}, history=2),
            "the server began a history twice, or did not report one",
        ),
        (without("server", BACKED_UP, step=3), "all shards resumed from step 3, of which there was no backup"),
        (twice("server", BACKED_UP, step=3), "the server backed up a step twice"),
        (changed("server", BACKED_UP, {"step": 6}, history=0), "the server backed up another history than the present"),
        (changed("server", BACKED_UP, {"step": 6}, step=7), f"edge-0: {MISSING}"),
        (changed("server", records.Finished, {}, version=7), f"edge-0: {MISSING}"),
        (
            changed("server", records.Finished, {}, history=5),
            "the final model was made in a history that the server did not begin",
        ),
        (
            both(without("edge-1", history=0), without("server", records.Joined)),
            "edge-1: made 3 steps of the final model, which has 6 of its own",
        ),
        (
            changed("edge-1", PROGRESS, {"begun": 3}, inputs_used=4),
            "edge-1#2: used inputs that edge-0 had not sent",
        ),
        (
            changed("edge-0", PROGRESS, {"begun": 3}, gradients_used=4),
            "edge-0: used gradients that edge-1#2 had not sent",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(change: Change, problem: str) -> None:
    """A journal without a line, with one too many, or with another number does not close."""
    accounting = accounting_of(change(lines()))

    assert not accounting.closes
    assert any(each.startswith(problem) for each in accounting.problems), accounting.problems


def test_a_killed_shard_takes_its_last_words_along() -> None:
    """What it had made until the backup is proven; of the step that it was at nobody knows, and one is assumed."""
    gone = without("edge-1", PROGRESS, begun=5)
    silent = both(gone, without("edge-1", STEP, history=0, step=3))
    silent_for_long = both(silent, without("edge-1", STEP, history=0, step=2))

    assert counts_of(accounting_of(gone(lines()))) == {"applied": 12, "rolled_back": 3, "lost_with_worker": 1}
    assert counts_of(accounting_of(silent(lines()))) == {"applied": 12, "rolled_back": 2, "lost_with_worker": 1}
    assert counts_of(accounting_of(silent_for_long(lines()))) == {
        "applied": 12,
        "rolled_back": 2,
        "lost_with_worker": 1,
    }


def test_nothing_is_assumed_of_a_shard_that_had_made_all() -> None:
    """It dies between its last step and the end."""
    over = both(changed("controller", records.Node, {"state": "stopped"}, state="died"), without(kind=PROGRESS, made=3))

    assert counts_of(accounting_of(over(lines()))) == {"applied": 12, "rolled_back": 3, "lost_with_worker": 1}


def test_who_is_killed_while_the_trial_ends_takes_its_last_words_along() -> None:
    """Its neighbour used what it sent, and nobody has missed it since; its steps are in the model."""
    killed = changed("controller", records.Node, {"name": "edge-1", "state": "stopped"}, reason="killed by SIGKILL")
    silent = without("edge-1", PROGRESS, history=1, begun=3)

    assert counts_of(accounting_of(both(killed, silent)(lines()))) == counts_of(accounting_of(lines()))
    assert not accounting_of(silent(lines())).closes


def of_another_server(journal: Lines) -> Lines:
    """It is the server that died, with its last words: it had told of no backup."""
    first = HISTORIES
    changes = (
        without("server", BACKED_UP, step=3),
        without("controller", records.Fault),
        changed("controller", records.Node, {"name": "edge-1", "state": "died"}, name="server"),
        changed("controller", records.Node, {"name": "edge-1", "incarnation": 2}, incarnation=1),
        changed("server", records.Joined, {"incarnation": 2}, incarnation=1),
        changed("edge-1", PROGRESS, {}, incarnation=1),
        changed("", STEP, {"history": 1}, history=first),
        changed("", PROGRESS, {"history": 1}, history=first),
        changed("server", RESUMED, {"history": 1}, history=first),
        changed("server", BACKED_UP, {"history": 1}, history=first),
        changed("server", records.Finished, {}, history=first),
    )
    for change in changes:
        journal = list(change(journal))
    return journal


def test_what_a_server_takes_along_is_lost_with_it() -> None:
    """All that shards had begun since the backup from which its next life goes on."""
    assert counts_of(accounting_of(of_another_server(lines()))) == {"applied": 12, "lost_with_server": 4}


def test_a_server_may_die_before_it_has_told_of_a_history() -> None:
    """The shards have followed it."""
    journal = of_another_server(lines())

    assert counts_of(accounting_of(without("server", RESUMED, history=0)(journal)))["applied"] == 12


def test_what_comes_too_late_for_the_final_model_is_unfinished() -> None:
    """The time is over: the newest copy of all weights is the model, and shards were beyond it."""
    early = changed("server", records.Finished, {}, version=4)

    assert counts_of(accounting_of(early(lines()))) == {
        "applied": 8,
        "rolled_back": 3,
        "lost_with_worker": 1,
        "unfinished": 4,
    }


def test_the_final_model_may_be_of_a_history_that_was_given_up() -> None:
    """It is the newest copy that there is; what shards have made anew since is in none."""
    earlier = changed("server", records.Finished, {}, version=4, history=0)

    assert counts_of(accounting_of(earlier(lines()))) == {
        "applied": 8,
        "rolled_back": 1,
        "lost_with_worker": 1,
        "unfinished": 6,
    }


def test_a_step_in_every_two() -> None:
    """Outputs go up of every second step, and the upper shard makes those alone."""
    fewer = [
        (node, replace(record, every=2, begun=(record.begun + 1) // 2, made=(record.made + 1) // 2))
        if isinstance(record, PROGRESS) and node == "edge-1"
        else (node, record)
        for node, record in lines()
        if not (node == "edge-1" and isinstance(record, STEP) and record.step % 2)
    ]
    fewer = list(changed("edge-1", PROGRESS, {"history": 1, "made": 2}, begun=1, made=1)(fewer))

    assert counts_of(accounting_of(fewer)) == {"applied": 9, "rolled_back": 2, "lost_with_worker": 1}


@pytest.mark.parametrize("length", range(len(lines())))
def test_the_books_close_wherever_the_journal_breaks_off(length: int) -> None:
    """Also before anything has begun."""
    accounting = accounting_of(lines()[:length])

    assert accounting is None or accounting.closes, accounting.problems


def test_old_journals_tell_too_little() -> None:
    """They say what was made, and not what was begun."""
    assert accounting_of(without(kind=PROGRESS)(lines())) is None


def series_of(folder: Path, journal: Iterable[tuple[str, records.Record]]) -> Series:
    """Of these lines, written and read."""
    with JournalWriter(folder / "events.jsonl") as writer:
        for k, (node, record) in enumerate(journal):
            writer.write(0.01 * k, node, record)
    return Series.from_journal(folder / "events.jsonl")


def test_the_books_of_steps_are_told_in_a_line_and_in_a_table(tmp_path, make_sample_plan) -> None:
    """And in the summary, where those of updates are not."""
    series = series_of(tmp_path, lines())
    summary = summarise(make_sample_plan(), series)

    assert accounting_line(summary) == (
        "16 steps begun: 12 made, 1 lost with a shard, 3 rolled back; all accounted for"
    )
    rows = {row[0]: row[1:] for row in accounting_rows([series.accounting, None], STEPS)}
    assert rows["steps that shards began"] == ("16", "–")
    assert rows["= made: they are in the final model"] == ("12", "–")
    assert rows["is every step accounted for?"] == ("yes", "–")
    assert (summary.shards.steps_begun, summary.shards.steps_lost, summary.shards.steps_unexplained) == (16, 4, 0)
    assert summary.server is None


def test_books_of_steps_that_do_not_close_are_a_warning(tmp_path, make_sample_plan) -> None:
    """And an expectation of them is not met."""
    plan = make_sample_plan(expectations=(("steps_unexplained", "==", 0),))
    summary = summarise(plan, series_of(tmp_path, without("edge-0", STEP, history=1, step=4)(lines())))

    assert f"not every step is accounted for: edge-0: {MISSING}" in summary.warnings
    assert [each.met for each in summary.expectations] == [False]


def test_absurd_numbers_cost_nothing() -> None:
    """Steps are counted in spans."""
    far = changed("server", records.Finished, {}, version=10**18)

    accounting = accounting_of(far(lines()))

    assert accounting.total.unexplained == 2 * (10**18 - 6)
