"""The accounting of updates, against a random fleet that knows what really became of each of them."""

import random
from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_fleet import Fleet, update
from shuffled import accounting_of, check_shuffled

from edgebed.core import records
from edgebed.journal.accounts.ledger import Ledger
from edgebed.journal.accounts.update_accounts import UpdateAccounting
from edgebed.journal.folds import Timeline


def counts_of(total):
    """The same of a ledger, without what only lives can tell."""
    counts = Counter(total.refused)
    counts.update(applied=total.applied, flight=total.lost_in_flight, server=total.lost_with_server)
    return +counts


def lost(counts):
    """The same, without the difference between what was lost in flight and with a server that died afterwards."""
    return Counter({"lost": counts["flight"] + counts["server"]}) + Counter(
        {fate: count for fate, count in counts.items() if fate not in ("flight", "server")}
    )


def explain(accounting):
    """For a failing assertion."""
    return f"{accounting.problems} {accounting.total}"


@settings(max_examples=3 * settings.default.max_examples)
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 600))
def test_what_is_told_at_once_is_accounted_for_exactly(seed, steps):
    """Each fate's count is the truth; what is left of each life is one update in progress at most.

    What was lost in flight counts as lost with the server if that died before it saw the worker again.
    """
    fleet = Fleet(random.Random(seed), steps, prompt=True)
    accounting = accounting_of(fleet.end())

    assert accounting.closes, explain(accounting)
    assert lost(counts_of(accounting.total)) == lost(fleet.true_counts())
    assert accounting.total.lost_in_flight <= fleet.true_counts()["flight"]
    assert accounting.total.applied == fleet.server.version
    rest = accounting.total.unfinished + accounting.total.lost_with_worker
    assert accounting.total.begun == sum(fleet.true_counts().values()) + rest
    assumed = accounting.total.begun - sum(worker.begun for worker in fleet.ever)
    assert 0 <= assumed <= sum(worker.is_silent for worker in fleet.ever), "of whom a controller heard"
    assert accounting.total.unfinished <= len(fleet.workers)


@settings(max_examples=3 * settings.default.max_examples)
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 600))
def test_who_ended_without_a_controller_was_at_an_update(seed, steps):
    """The books have it as begun, and lost with its worker, also in virtual time: no one was there to be told."""
    fleet = Fleet(random.Random(seed), steps, prompt=True, is_wrong=False, has_cuts=False)
    accounting = accounting_of(fleet.end())

    assert accounting.closes, explain(accounting)
    assert accounting.total.begun == sum(worker.begun + bool(worker.is_silent) for worker in fleet.ever)


@settings(max_examples=3 * settings.default.max_examples)
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 600))
def test_the_books_close_whatever_was_lost_with_crashes(seed, steps):
    """Reports lag behind and die with their nodes."""
    fleet = Fleet(random.Random(seed), steps, prompt=False)
    accounting = accounting_of(fleet.end())

    assert accounting.closes, explain(accounting)
    assert accounting.total.applied == fleet.server.version
    found, truth = counts_of(accounting.total), fleet.true_counts()
    untold = (truth - found).total() - max(0, truth["flight"] - found["flight"])
    assert found["flight"] <= truth["flight"] + untold, "what the server did with a push may have died with its report"


@settings(max_examples=3 * settings.default.max_examples)
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 600))
def test_who_died_without_a_word_was_at_its_next_update_if_all_had_been_answered(seed, steps):
    """The books have it as begun and lost, even where it pulled; of who died before its answer they may have one, too.

    Not if the server had taken it to have left before it sent the answer: nobody knows more, without clocks.
    """
    fleet = Fleet(random.Random(seed), steps, prompt=False, server_dies=False, has_cuts=False, is_wrong=False)
    accounting = accounting_of(fleet.end())

    assert accounting.closes, explain(accounting)
    ledgers = {(ledger.worker, ledger.incarnation): ledger for ledger in accounting.lives}
    for worker in fleet.ever:
        ledger = ledgers.get((worker.name, worker.incarnation), Ledger())
        is_pulling = bool(worker.is_at_another) and worker.state == "waiting"
        begun = worker.begun + is_pulling
        assert ledger.begun in ((begun,) if worker.is_at_another else (begun, begun + 1))
        if worker.is_at_another:
            assert ledger.lost_with_worker == 1


@settings(max_examples=3 * settings.default.max_examples)
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 400), share=st.floats(0, 1))
def test_the_books_close_wherever_the_journal_breaks_off(seed, steps, share):
    """Also before anything has begun."""
    journal = Fleet(random.Random(seed), steps, prompt=False).end()
    accounting = accounting_of(journal[: int(share * len(journal))])

    assert accounting is None or accounting.closes, explain(accounting)


def kept(fleet):
    """Places of the updates that are in the final model."""
    return [
        place
        for place, (_, _, record) in enumerate(fleet.journal)
        if isinstance(record, records.Update)
        and fleet.truth[record.worker, record.incarnation, record.step] == record.version
    ]


@given(seed=st.integers(0, 2**32), steps=st.integers(100, 500))
def test_an_update_that_is_dropped_or_doubled_is_noticed(seed, steps):
    """Of those in the final model; the others' traces may have gone with their server."""
    draw = random.Random(seed)
    fleet = Fleet(draw, steps, prompt=draw.random() < 0.5)
    journal, places = fleet.end(), kept(fleet)
    if not places:
        return
    place = draw.choice(places)

    assert not accounting_of(journal[:place] + journal[place + 1 :]).closes
    assert not accounting_of([*journal[: place + 1], *journal[place:]]).closes


@given(seed=st.integers(0, 2**32), steps=st.integers(100, 500))
def test_a_word_that_is_missing_is_noticed(seed, steps):
    """Of an update lost in flight, whose worker went on and said so."""
    draw = random.Random(seed)
    fleet = Fleet(draw, steps, prompt=True, server_dies=False)
    journal = fleet.end()
    begun = {}
    for _, node, record in journal:
        if isinstance(record, records.Pushes):
            begun[node, record.incarnation] = record.begun
    for place, (_, node, record) in enumerate(journal):
        if isinstance(record, records.Unanswered) and record.step >= 0:
            key = node, record.incarnation
            if fleet.truth[(*key, record.step)] == "flight" and begun[key] >= record.step + 2:
                accounting = accounting_of(journal[:place] + journal[place + 1 :])
                assert accounting.total.unexplained == 1
                assert not accounting.closes


def joined(worker="edge-0", incarnation=1, joins=0):
    """The server's word for a join."""
    return records.Joined(worker=worker, incarnation=incarnation, joins=joins)


def pushes(begun, pushed, incarnation=1):
    """The worker's own count."""
    return records.Pushes(incarnation=incarnation, begun=begun, pushed=pushed)


def three_updates():
    """A trial of one worker."""
    applied = [(float(k), "server", update("edge-0", 1, 0, k, k + 1)) for k in range(3)]
    return [
        (0.0, "server", joined()),
        *applied,
        (4.0, "edge-0", pushes(4, 3)),
        (5.0, "server", records.Finished(version=3, reason="updates")),
        (6.0, "controller", records.Ended(outcome="completed", reason="")),
    ]


def test_a_trial_without_faults_closes():
    """What is in progress at the end is unfinished."""
    accounting = accounting_of(three_updates())

    assert accounting.closes
    assert (accounting.total.begun, accounting.total.applied, accounting.total.unfinished) == (4, 3, 1)


@pytest.mark.parametrize(
    ("place", "record", "problem"),
    [
        (6, records.Finished(version=4, reason=""), "the final model is version 4, and 3 updates made it"),
        (1, records.Restored(version=0, incarnation=2),
         "edge-0: the server applied pushes of a join that it did not know (3 times)"),
        (5, records.Restored(version=9, incarnation=2),
         "the server was restored to a version with updates that nobody has reported"),
        (5, pushes(7, 6), "edge-0: 3 of its updates are missing without a reason"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_does_not_close(place, record, problem):
    """Each check on its own, told in words."""
    entries = three_updates()
    entries.insert(place, (4.5 if place > 4 else float(place - 1), "edge-0" if place > 4 else "server", record))

    assert problem in accounting_of(entries).problems


def test_the_last_word_of_a_worker_is_compared_with_what_the_server_has_seen():
    """Once it has reported everything; a word that is followed by another is not the last."""
    stopped = (4.6, "controller", records.Node(name="edge-0", state="stopped", incarnation=1))
    entries = three_updates()
    early = [*entries[:4], (4.5, "edge-0", pushes(3, 2)), *entries[4:], stopped]
    late = [*entries[:5], (4.5, "edge-0", pushes(3, 2)), *entries[5:]]

    assert accounting_of(early).closes
    assert accounting_of(late).closes
    problem = "edge-0: the server saw updates that the worker had not pushed"
    assert accounting_of([*late, stopped]).problems == (problem,)
    frozen = records.Node(name="edge-0", state="stopped", incarnation=1, reason="frozen until the end")
    assert accounting_of([*late, (4.6, "controller", frozen)]).closes, "its last word is old"


def died(*, said=(), cause=(), left=(), runtime="process"):
    """A trial of one worker that was killed after its third update had been applied, and answered."""
    entries = three_updates()
    trial = records.Trial(scenario="s", trial="t", seed=1, runtime=runtime, nodes=2, parameters=1)
    node = records.Node(name="edge-0", state="died", incarnation=1)
    joined = records.Node(name="edge-0", state="joined", incarnation=1)
    entries[4:5] = [*said, *cause, (4.5, "controller", node)]
    entries[3:3] = left
    return accounting_of([(0.0, "controller", joined), (0.0, "controller", trial), *entries])


def fault(action, trigger):
    """Something was done to the worker."""
    return records.Fault(name="f", action=action, target="edge-0", asked_s=4.4, trigger=trigger)


WORD = (1.5, "edge-0", pushes(3, 2))
KILL = (4.4, "controller", fault("kill", "at 4.4s"))
LEFT = (1.9, "server", records.Left(worker="edge-0", incarnation=1, reason="silence"))


@pytest.mark.parametrize(
    ("told", "lost"),
    [
        ({"said": [WORD], "cause": [KILL]}, 1),
        ({}, 1),
        ({"said": [WORD], "cause": [(1.9, "controller", fault("freeze", "at 1.9s")), KILL], "left": [LEFT]}, 0),
        ({"said": [WORD], "left": [LEFT]}, 0),
        ({"said": [WORD], "left": [LEFT, (1.9, "server", joined(joins=1))]}, 1),
        ({"said": [(4.5, "edge-0", pushes(3, 3))], "runtime": "simulation"}, 0),
        ({"said": [(4.5, "edge-0", pushes(4, 3))], "runtime": "simulation"}, 1),
        ({"said": [(3.5, "edge-0", pushes(4, 3))], "cause": [KILL]}, 1),
        ({"said": [(3.5, "edge-0", pushes(3, 3))], "cause": [(3.6, "controller", fault("kill", "after-pull 3"))]}, 0),
        ({"said": [(3.5, "edge-0", pushes(3, 3))],
          "cause": [(3.6, "controller", fault("freeze", "after-pull 3")), KILL]}, 0),
        ({"said": [(3.5, "edge-0", pushes(3, 3))],
          "cause": [(3.6, "controller", fault("freeze", "after-pull 3")),
                    (3.7, "controller", fault("thaw", "after-pull 3")), KILL]}, 1),
    ],
    ids=["an old word", "none", "frozen before its answer", "gone before its answer", "back before an old answer",
         "it waits, it says",
         "it computes, it says", "it computed before", "killed at a point", "killed while frozen at a point",
         "killed after that"],
)  # fmt: skip
def test_who_was_killed_was_at_its_next_update_unless_somebody_knows_better(told, lost):
    """One at most, lost with its worker."""
    accounting = died(**told)

    assert accounting.closes
    assert (accounting.total.begun, accounting.total.lost_with_worker) == (3 + lost, lost)


@pytest.mark.parametrize(("code", "lost"), [("late", 1), ("not-joined", 0)])
def test_a_refusal_is_no_answer_unless_the_model_follows(code, lost):
    """Who was killed after it had nothing to compute."""
    refused = records.Refused(peer="x", code=code, reason="", worker="edge-0", incarnation=1, joins=0, step=3)

    assert died(said=[(4.0, "server", refused)]).total.lost_with_worker == lost


@pytest.mark.parametrize(("again", "lost"), [(True, 1), (False, 0)])
def test_who_gave_up_an_answer_is_at_another_update_once_it_has_joined_anew(again, lost):
    """The one that it gave up is lost in flight."""
    given_up = records.Unanswered(incarnation=1, joins=0, step=3, reason="broke")
    said = [(3.8, "edge-0", pushes(4, 4)), (3.8, "edge-0", given_up), *[(4.0, "server", joined(joins=1))] * again]
    accounting = died(said=said)

    assert accounting.closes
    assert (accounting.total.lost_in_flight, accounting.total.lost_with_worker) == (1, lost)


def test_what_comes_late_of_an_older_join_does_not_undo_an_answer():
    """A push that was refused after the worker had joined anew, and had been sent a model."""
    refused = records.Refused(peer="x", code="not-joined", reason="", worker="edge-0", incarnation=1, joins=0, step=3)
    given_up = records.Unanswered(incarnation=1, joins=0, step=3, reason="broke")
    said = [(3.8, "edge-0", given_up), (4.0, "server", joined(joins=1)), (4.1, "server", refused)]

    assert died(said=said).total.lost_with_worker == 1


@settings(max_examples=3 * settings.default.max_examples)
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 600), prompt=st.booleans())
def test_neither_clocks_nor_the_way_of_lines_change_the_accounts(seed, steps, prompt):
    """However lines of different nodes lie between each other, and whatever their times are."""
    check_shuffled(Fleet(random.Random(seed), steps, prompt=prompt).end(), seed)


def test_a_journal_without_joins_and_pushes_is_not_judged():
    """There is nothing to account for."""
    entries = [entry for entry in three_updates() if not isinstance(entry[2], (records.Joined, records.Pushes))]

    assert accounting_of(entries) is None
    assert accounting_of([]).closes


def test_a_synchronous_round_refuses_who_is_late():
    """The worker goes on, and its update is counted by the code of the refusal."""
    late = records.Refused(peer="x", code="late", reason="", worker="edge-0", incarnation=1, joins=0, step=3)
    entries = three_updates()
    entries[4:5] = [(3.5, "server", late), (4.0, "edge-0", pushes(5, 4))]
    accounting = accounting_of(entries)

    assert accounting.closes
    assert accounting.total.refused == {"late": 1}


def test_a_quarter_of_a_million_updates_take_little_memory():
    """What the server has seen in a row is one entry."""
    books = UpdateAccounting(Timeline())
    books.add(0.0, "server", joined())
    record = update("edge-0", 1, 0, 0, 1)
    for k in range(1000):
        books.add(float(k), "server", msgspec.structs.replace(record, step=k, version=k + 1))

    assert len(books.lives["edge-0", 1].seen) == 1
