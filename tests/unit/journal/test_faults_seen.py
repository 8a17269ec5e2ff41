"""What a reader sees of faults: the series after a restored server, times until back, tables, marks."""

import re

import msgspec
import pytest
from evaluated import evaluation

from edgebed.core import records
from edgebed.journal.journal import JournalWriter
from edgebed.journal.series import Series
from edgebed.journal.series_faults import unasked_losses
from edgebed.journal.summary import summarise
from edgebed.reports.run import charts
from edgebed.reports.run.brief import results_brief
from edgebed.reports.run.faults_text import (
    UPDATES,
    accounting_legend,
    accounting_line,
    accounting_rows,
    fault_rows,
    faults_line,
)
from edgebed.reports.run.report import report_page
from edgebed.reports.writing.html import to_html
from edgebed.reports.writing.terminal import show


def series_of(folder, entries):
    """The series of a journal with these entries."""
    path = folder / "events.jsonl"
    with JournalWriter(path) as journal:
        journal.write_many(entries)
    return Series.from_journal(path)


def update(version, worker="edge-0", step=0, size=100):
    """An update with what matters here."""
    return records.Update(
        worker=worker, incarnation=1, step=step, version=version, base=version - 1, staleness=0, entries=1, bits=32,
        bytes=size, loss=1.0,
    )  # fmt: skip


def fault(action, target="edge-0", asked_s=1.0, name="f-1", **more):
    """Something done to a node."""
    return records.Fault(name=name, action=action, target=target, asked_s=asked_s, **more)


def node(state):
    """What became of `edge-0`."""
    return records.Node(name="edge-0", state=state)


def trial():
    """Training begins, or goes on."""
    return records.Trial(scenario="s", trial="t", seed=1, runtime="process", nodes=3, parameters=1)


RESTORED = [
    (10.0, "controller", trial()),
    *((10.0 + k, "server", update(k, step=k - 1)) for k in range(1, 6)),
    (13.1, "evaluator", evaluation(3, 0.3)),
    (15.1, "evaluator", evaluation(5, 0.9)),
    (15.2, "server", records.Traffic(ingress_payload=500, egress_payload=900)),
    (16.0, "controller", records.Restored(version=3, incarnation=2)),
    (17.0, "server", update(4, step=6)),
    (17.1, "evaluator", evaluation(4, 0.4)),
    (18.0, "server", update(5, step=7)),
    (18.1, "evaluator", evaluation(5, 0.5, final=True)),
    (18.2, "server", records.Traffic(ingress_payload=200, egress_payload=300)),
]


def test_what_a_restored_server_had_lost_is_taken_out(tmp_path):
    """The series are those of the final model; what the lost updates cost stays in the ingress."""
    series = series_of(tmp_path, RESTORED)

    assert series.updates.version.tolist() == [1, 2, 3, 4, 5]
    assert series.updates.t.tolist() == [1, 2, 3, 7, 8]
    assert series.updates.ingress_bytes.tolist() == [100, 200, 300, 600, 700]
    assert (series.evaluations.version.tolist(), series.evaluations.values.tolist()) == ([3, 4, 5], [0.3, 0.4, 0.5])
    assert series.traffic[-1][1] == records.Traffic(ingress_payload=700, egress_payload=1200)


def test_a_server_that_is_restored_and_does_nothing_more_has_cost_its_ingress(tmp_path):
    """Nothing follows the checkpoint."""
    series = series_of(tmp_path, RESTORED[:10])

    assert series.updates.version.tolist() == [1, 2, 3]
    assert (series.server.ingress_bytes, series.evaluations.version.tolist()) == (500, [3])


def test_a_resumed_run_keeps_its_time_and_has_one_end(tmp_path):
    """Time counts from the first start of training; the first end was none."""
    resumed = [
        (15.5, "controller", records.Ended(outcome="interrupted", reason="Ctrl-C")),
        RESTORED[9],
        (16.5, "controller", trial()),
        *RESTORED[10:],
    ]
    broken_off = series_of(tmp_path, RESTORED[:9] + resumed)
    ended = (19.0, "controller", records.Ended(outcome="completed", reason=""))

    assert (broken_off.updates.t[-1], broken_off.outcome) == (8.0, "unfinished")
    assert broken_off.training_s == 10.0
    (tmp_path / "again").mkdir()
    assert series_of(tmp_path / "again", [*RESTORED[:9], *resumed, ended]).outcome == "completed"


def test_a_restarted_nodes_lives_add_up_whatever_they_count(tmp_path):
    """The second life may have done more at its first word than the first at its last."""

    def joined(incarnation):
        return records.Node(name="edge-0", state="joined", incarnation=incarnation)

    def phases(steps):
        return records.Phases(steps=steps, compute_s=1.0, encode_s=0.0, wait_s=0.0, pause_s=0.0)

    entries = [
        (0.0, "controller", joined(1)), (1.0, "edge-0", phases(3)), (2.0, "edge-0", phases(5)),
        (3.0, "controller", joined(2)), (4.0, "edge-0", phases(9)),
    ]  # fmt: skip

    assert series_of(tmp_path, entries).server.phases["edge-0"].steps == 14


@pytest.mark.parametrize("action", ["heal", "thaw", "launch"])
def test_back_after_counts_until_the_server_hears_of_the_node(tmp_path, action):
    """What it heard before is not counted, though it was reported later; nor what others say."""
    entries = [
        (0.0, "controller", trial()),
        (5.02, "controller", fault(action, asked_s=5.0)),
        (5.01, "server", update(1)),
        (5.5, "server", update(2, "edge-1")),
        (6.02, "server", records.Joined(worker="edge-0", incarnation=1, joins=1)),
        (6.1, "server", update(3, step=1)),
    ]
    (done,) = series_of(tmp_path, entries).faults

    assert done.back_s == pytest.approx(1.0)
    assert done.delay_s == pytest.approx(0.02)


def test_a_node_that_is_gone_again_is_not_back(tmp_path):
    """The next cut comes first; and the server is back when it hears of anybody."""
    entries = [
        (1.0, "controller", fault("heal")),
        (2.0, "controller", fault("cut")),
        (3.0, "controller", fault("heal")),
        (3.5, "controller", fault("launch", "server")),
        (4.0, "server", update(1)),
    ]
    faults = series_of(tmp_path, entries).faults

    assert [done.back_s for done in faults] == [None, None, 1.0, 0.5]


def test_a_node_that_dies_by_itself_is_away_from_its_death_on(tmp_path):
    """However often it is launched until it is back; what is killed is away from that on, though it dies later."""
    entries = [
        (0.0, "controller", trial()),
        (2.0, "controller", node("died")),
        (3.0, "controller", fault("launch", asked_s=3.0, name="on_failure")),
        (3.5, "controller", node("died")),
        (4.5, "controller", fault("launch", asked_s=4.5, name="on_failure")),
        (5.0, "controller", node("joined")),
        (5.25, "server", records.Joined(worker="edge-0", incarnation=3)),
        (7.0, "controller", fault("kill", asked_s=7.0)),
        (7.5, "controller", node("died")),
        (8.0, "controller", fault("launch", asked_s=8.0)),
        (9.0, "server", records.Joined(worker="edge-0", incarnation=4)),
    ]
    faults = series_of(tmp_path, entries).faults

    assert [done.away_s for done in faults] == [None, 3.25, None, 2.0]
    assert [done.back_s for done in faults] == [None, 0.75, None, 1.0]


def test_a_node_that_a_resumed_run_started_is_gone_no_longer(tmp_path):
    """When it is killed later, what counts is that."""
    entries = [
        (0.0, "controller", trial()),
        (2.0, "controller", node("died")),
        (5.0, "controller", node("joined")),
        (7.0, "controller", fault("kill", asked_s=7.0)),
        (8.0, "controller", fault("launch", asked_s=8.0)),
        (9.0, "server", records.Joined(worker="edge-0", incarnation=3)),
    ]

    assert [done.away_s for done in series_of(tmp_path, entries).faults] == [None, 2.0]


@pytest.mark.parametrize(("take", "bring"), [("cut", "heal"), ("freeze", "thaw")])
def test_a_node_that_is_cut_off_or_frozen_is_so_after_a_resume(tmp_path, take, bring):
    """Its next incarnation joins the controller, and is away on until the fault ends."""
    entries = [
        (0.0, "controller", trial()),
        (2.0, "controller", fault(take, asked_s=2.0)),
        (4.0, "controller", node("died")),
        (5.0, "controller", node("joined")),
        (7.0, "controller", fault(bring, asked_s=7.0)),
        (7.5, "server", records.Joined(worker="edge-0", incarnation=2)),
    ]

    assert [(done.away_s, done.back_s) for done in series_of(tmp_path, entries).faults] == [(None, None), (5.5, 0.5)]


def test_a_node_that_was_killed_on_purpose_is_no_warning(tmp_path, make_sample_plan):
    """One that died of itself is, also after it was killed and launched; and one that a policy killed."""
    died = [(name, records.Node(name=name, state="died", reason="why")) for name in ("edge-0", "edge-1", "phone-0")]
    entries = [
        (2.0, "controller", fault("kill", "edge-0")),
        (1.9, "controller", died[0][1]),
        (2.0, "controller", fault("kill", "edge-1", name="on_failure")),
        (2.1, "controller", died[1][1]),
        (3.0, "controller", fault("kill", "phone-0")),
        (3.1, "controller", died[2][1]),
        (4.0, "controller", records.Node(name="phone-0", state="joined", incarnation=2)),
        (5.0, "controller", msgspec.structs.replace(died[2][1], reason="of itself")),
    ]
    summary = summarise(make_sample_plan(), series_of(tmp_path, entries))

    assert summary.warnings == ("edge-1 died: why", "phone-0 died: of itself")


def test_what_was_before_training_is_not_taken_for_later(tmp_path, make_sample_plan):
    """A node joined 2.05 s after the launch; it was killed 2 s after training began, and died."""
    entries = [
        (2.05, "controller", records.Node(name="edge-0", state="joined", incarnation=1)),
        (3.0, "controller", trial()),
        (5.02, "controller", fault("kill", asked_s=5.0)),
        (5.1, "controller", records.Node(name="edge-0", state="died", incarnation=1)),
    ]
    assert summarise(make_sample_plan(), series_of(tmp_path, entries)).warnings == ()


AT_ONCE = [
    (2.0 + k / 100, "controller", fault("freeze", f"edge-{k}", 2.0, "freeze-1", trigger="at 2s")) for k in range(5)
]


def test_what_was_asked_at_once_is_one_row(tmp_path):
    """With the latest of its times; what failed or had nothing to do stands apart."""
    entries = [
        *AT_ONCE,
        (2.1, "controller", fault("freeze", "edge-5", 2.0, "freeze-1", trigger="at 2s", no_op="it is not there: died")),
        (3.0, "controller", fault("thaw", "edge-0", 3.0)),
        (3.3, "server", update(1)),
        (4.0, "controller", fault("link", "edge-1", 4.0, change="uplink 1mbit", problem="no such device")),
    ]
    rows = list(fault_rows(series_of(tmp_path, entries).faults))

    assert rows == [
        ("freeze-1", "freeze", "edge-0, edge-1, edge-2 and 2 more", "2.00 s", "40 ms", "",
         "1.99 s until the end: not back", "at 2s"),
        ("freeze-1", "freeze", "edge-5", "2.00 s", "nothing to do: it is not there: died", "", "", "at 2s"),
        ("f-1", "thaw", "edge-0", "3.00 s", "0 ms", "0.30 s", "1.30 s", ""),
        ("f-1", "link uplink 1mbit", "edge-1", "4.00 s", "could not be done: no such device", "", "", ""),
    ]  # fmt: skip


def lossy():
    """A worker that loses an update in flight, and dies with another."""
    return [
        (0.0, "server", records.Joined(worker="edge-0", incarnation=1)),
        (1.0, "server", update(1)),
        (2.0, "edge-0", records.Unanswered(incarnation=1, joins=0, step=1, reason="broke")),
        (2.1, "server", records.Joined(worker="edge-0", incarnation=1, joins=1)),
        (3.0, "server", msgspec.structs.replace(update(2, step=2), joins=1)),
        (4.0, "edge-0", records.Pushes(incarnation=1, begun=4, pushed=3)),
        (5.0, "controller", fault("kill", asked_s=4.99)),
        (5.0, "controller", records.Node(name="edge-0", state="died", incarnation=1)),
        (6.0, "server", records.Finished(version=2, reason="")),
        (6.0, "controller", records.Ended(outcome="completed", reason="")),
    ]


def test_the_books_are_told_in_a_line_and_in_a_table(tmp_path, make_sample_plan):
    """Trials that tell nothing have dashes; those in which nothing was amiss have no line."""
    series = series_of(tmp_path, lossy())
    summary = summarise(make_sample_plan(), series)

    assert accounting_line(summary) == (
        "4 updates begun: 2 applied, 1 lost in flight, 1 lost with a worker; all accounted for"
    )
    assert faults_line(summary, series.faults) == (
        "faults: 1 × kill; done within 10 ms; longest away: edge-0 1.00 s until the end: not back"
    )
    assert (summary.server.updates_begun, summary.server.updates_lost, summary.server.updates_unexplained) == (4, 2, 0)
    rows = {row[0]: row[1:] for row in accounting_rows([series.accounting, None], UPDATES)}
    assert rows["+ lost in flight"] == ("1", "–")
    assert rows["is every update accounted for?"] == ("yes", "–")
    assert accounting_legend([None, series.accounting], UPDATES).startswith("lost with a worker: ")
    (tmp_path / "well").mkdir()
    well = summarise(make_sample_plan(), series_of(tmp_path / "well", [lossy()[place] for place in (0, 1, 9)]))
    assert accounting_line(well) is None
    assert accounting_legend([well.accounting, None], UPDATES) == ""


def test_books_that_do_not_close_are_a_warning(tmp_path, make_sample_plan):
    """And an expectation of them is not met."""
    entries = [entry for entry in lossy() if not isinstance(entry[2], records.Unanswered)]
    plan = make_sample_plan(expectations=(("updates_unexplained", "==", 0),))
    summary = summarise(plan, series_of(tmp_path, entries))

    assert summary.warnings == (
        "not every update is accounted for: edge-0: 1 of its updates are missing without a reason",
    )
    assert [each.met for each in summary.expectations] == [False]


def with_faults(entries, number):
    """A sample journal with so many kills and launches spread over its training."""
    times = [2.0 + 4.0 * k / number for k in range(number)]
    faults = [
        (t, "controller", fault("launch" if k % 2 else "kill", f"edge-{k % 2}", t - 0.01)) for k, t in enumerate(times)
    ]
    return sorted([*entries, *faults], key=lambda entry: entry[0])


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 200])
@pytest.mark.parametrize("name", charts.CHARTS)
def test_charts_mark_faults(tmp_path, make_sample_run, make_sample_entries, number, name):
    """A few with words, many with ticks; the axes stay what they were."""
    trials = {"asgd": with_faults(make_sample_entries(), number)}
    run = make_sample_run(tmp_path, trials)
    svg = charts.CHARTS[name]({"asgd": run.trials["asgd"].series}).svg

    assert (">kill<" in svg) == (number == 1 and name != "staleness")
    marks = svg.count("stroke-opacity: 0.55")
    assert bool(marks) == bool(number and name != "staleness")


@pytest.mark.slow
def test_the_report_and_the_terminal_tell_of_faults(tmp_path, make_sample_run, make_sample_entries):
    """A table, folded where it is long; text from outside is escaped."""
    some = [*make_sample_entries(), (8.0, "controller", fault("kill", problem="no <such> process"))]
    run = make_sample_run(tmp_path, {"asgd": with_faults(make_sample_entries(), 200), "adacomp": some})
    text = to_html(report_page(run))

    assert "What was done to the nodes" in text
    assert "<summary>200 actions</summary>" in text
    assert "could not be done: no &lt;such&gt; process" in text
    assert "<such>" not in text
    assert re.search(r"faults: 100 × kill, 100 × launch; done within", printed(run))


def printed(run):
    """What a terminal shows."""
    import io

    from edgebed.core.console import make_console

    stream = io.StringIO()
    show(results_brief(run), make_console(stream, width=100))
    return stream.getvalue()


def test_a_node_that_was_restarted_by_hand_has_not_died_of_itself(tmp_path):
    """Its launch is asked for together with the kill, and done when it has died."""
    entries = [
        (0.0, "controller", trial()),
        (1.01, "controller", fault("kill", asked_s=1.0, name="by hand")),
        (1.02, "controller", records.Node(name="edge-0", state="died", reason="killed by SIGKILL")),
        (1.1, "controller", fault("launch", asked_s=1.0, name="by hand")),
        (1.2, "controller", records.Node(name="edge-0", state="joined", incarnation=2)),
    ]
    series = series_of(tmp_path, entries)

    assert unasked_losses(series.nodes, series.faults) == []
