"""What came of a run, in an exit code, a word and a badge; and where these show."""

import io
import json

import msgspec
import pytest
from rich.console import Console

from edgebed.core import records
from edgebed.journal.accounts.update_accounts import Accounting, Ledger
from edgebed.journal.outcome import outcome_of, outcome_text, tone_of
from edgebed.journal.series_divergence import Divergence
from edgebed.journal.verdict.fidelity import Fidelity
from edgebed.reports.run.brief import results_brief
from edgebed.reports.run.report import report_page
from edgebed.reports.writing.html import to_html
from edgebed.reports.writing.terminal import show

MASK = Divergence(update=5, node="edge-0", step=1, what="buffer", tensor="mask")
OPEN = Accounting(
    closes=False, problems=("edge-0: 1 of its updates are missing without a reason",), total=Ledger(), lives=()
)
BUSY = Fidelity(verdict="degraded", reasons=("host CPU: edge waited; fewer nodes", "host CPU: server", "link: slow"))


@pytest.fixture
def good(sample_run):
    """The summary of a trial that met its expectation, under conditions that held."""
    summary = sample_run.trials["asgd"].summary
    return msgspec.structs.replace(summary, fidelity=Fidelity(verdict="trusted"), accounting=None)


@pytest.fixture
def other(good):
    """The same with what is given."""
    return lambda **given: msgspec.structs.replace(good, **given)


def missed(trial):
    """The same trial, which fails its expectation."""
    return msgspec.structs.replace(trial, expectations=(msgspec.structs.replace(trial.expectations[0], met=False),))


def test_the_gravest_of_all_trials_decides(good, other):
    """Interrupted, no result, accounts that do not close, diverged, not met: each before those that follow."""
    diverged = other(outcome="diverged", diverged=MASK)
    failed, interrupted = other(outcome="failed"), other(outcome="interrupted")
    found = [
        outcome_of(trials)[:2]
        for trials in (
            [good, good], [other(expectations=())], [good, missed(good)], [missed(good), diverged],
            [diverged, other(accounting=OPEN)], [other(accounting=OPEN), failed], [failed, interrupted, good], [],
        )
    ]  # fmt: skip

    assert found == [
        (0, "met"), (0, "completed"), (1, "not met"), (1, "diverged"),
        (3, "accounting does not close"), (3, "no result"), (130, "interrupted"), (3, "no result"),
    ]  # fmt: skip
    assert outcome_of([good], ["adacomp"])[:2] == (3, "no result")
    assert outcome_of([good], is_running=True)[:2] == (3, "running")


def test_accounts_that_do_not_close_are_edgebeds_own_failure(other):
    """It is named, and says what to do; of a trial that broke off nobody can expect it."""
    found = outcome_of([other(accounting=OPEN)])

    assert found.text == (
        "edgebed's own accounting does not close: asgd: edge-0: 1 of its updates are missing without a reason. Its "
        "numbers cannot be relied on: please report it, and keep the run's folder."
    )
    assert (found.badge, tone_of(*found[:3])) == ("accounting does not close, trusted", "bad")
    assert outcome_text(other(accounting=OPEN)) == f"completed, accounting does not close: {OPEN.problems[0]}"
    assert not other(accounting=OPEN).met
    assert outcome_of([other(accounting=OPEN, outcome="interrupted")]).exit_code == 130
    assert outcome_of([other(accounting=msgspec.structs.replace(OPEN, closes=True))]).exit_code == 0


def test_the_badge_has_the_worst_conditions_with_their_causes(good, other):
    """Each cause once, in order; a trial that never trained has none."""
    busy, unknown = other(fidelity=BUSY), other(fidelity=Fidelity(verdict="unknown", reasons=("too short",)))
    late = other(fidelity=Fidelity(verdict="degraded", reasons=("faults: late", "link: slow")))

    assert outcome_of([good, busy, unknown, late]).badge == "met, degraded (host CPU, link, faults)"
    assert outcome_of([good, unknown]).badge == "met, conditions unknown"
    assert outcome_of([good]).badge == "met, trusted"
    assert outcome_of([other(fidelity=None, outcome="failed")]).badge == "no result"


def test_green_is_a_run_of_which_all_is_well(good, other):
    """Conditions included; red is what was missed or diverged."""

    def tone(trials):
        return tone_of(*outcome_of(trials)[:3])

    tones = {
        "good": tone([good]),
        "met, degraded": tone([other(fidelity=BUSY)]),
        "unknown": tone([other(fidelity=Fidelity(verdict="unknown"))]),
        "missed": tone([missed(good)]),
        "failed": tone([other(outcome="failed")]),
    }

    assert tones == {
        "good": "good", "met, degraded": "unknown", "unknown": "unknown", "missed": "bad", "failed": "unknown"
    }  # fmt: skip


def test_the_badge_of_a_run_that_diverged_says_where(good, other):
    """The trial's name where there are several; the sentence has the expectations as well."""
    diverged = other(outcome="diverged", diverged=MASK)

    assert outcome_of([diverged]).badge == "diverged at update 5 (buffer mask at edge-0), trusted"
    both = outcome_of([good, diverged, diverged])
    assert both.badge == "asgd diverged at update 5 (buffer mask at edge-0) and 1 more, trusted"
    assert outcome_of([missed(diverged)]).text == ("asgd diverged, and ran to the end. 1 of 1 expectations not met.")


@pytest.fixture
def diverged_run(tmp_path, make_sample_run, make_sample_entries):
    """A run as it is left whose second update was made with a buffer that is not finite."""
    entries = [
        (t, node, msgspec.structs.replace(record, loss=float("nan")))
        if isinstance(record, records.Update) and record.version > 1
        else (t, node, record)
        for t, node, record in make_sample_entries(updates=60)
    ]
    first = next(record for _, _, record in entries if isinstance(record, records.Update) and record.version == 2)
    said = records.Diverged(incarnation=first.incarnation, step=first.step, what="buffer", tensor="mask")
    at = next(k for k, (_, node, _) in enumerate(entries) if node == "server")
    return make_sample_run(tmp_path, {"asgd": [*entries[:at], (entries[at][0], first.worker, said), *entries[at:]]})


def test_a_run_that_diverged_says_so_first_and_last(diverged_run):
    """On the first line of results and report, in their table, and on the last line before the report's path."""
    out = io.StringIO()
    show(results_brief(diverged_run), Console(file=out, width=200))
    first, *_, last, _ = out.getvalue().splitlines()
    page = to_html(report_page(diverged_run))
    node = diverged_run.summary.trials[0].diverged.node
    badge = f"diverged at update 2 (buffer mask at {node})"

    assert first.startswith(f"sample (process): {badge}")
    assert last.startswith(badge)
    assert f'<p class="badge bad">{badge}' in page
    assert page.index(badge) < page.index("<h2>")
    assert f"diverged at update 2: buffer mask at {node} is not finite" in page
    assert json.loads(diverged_run.summary_json())["badge"].startswith(badge)
