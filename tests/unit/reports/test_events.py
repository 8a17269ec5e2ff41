"""`edgebed events`: a journal's entries in time order, as JSON or in words, also while they are being written.

Method: sample runs whose journals are appended to between two looks; the lock says whether the run goes on.
"""

import contextlib
import json
import typing

import pytest
from evaluated import evaluation
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core import records
from edgebed.core.errors import EdgebedError, ScenarioError
from edgebed.journal.following import GrowingFile
from edgebed.journal.journal import JournalWriter
from edgebed.reports.live.event_text import event_text
from edgebed.reports.live.events import EventFilter, InOrder, event_lines

ALL = EventFilter()


def any_record(kind):
    """Records of a kind with whatever its fields may hold."""
    fields = typing.get_type_hints(kind)
    words = st.text().map(lambda text: f"a{text}")
    values = {
        name: words if fields[name] is str else st.from_type(fields[name]) for name in kind.__struct_fields__
    }  # fmt: skip
    return st.fixed_dictionaries(values).map(lambda values: kind(**values))


@pytest.mark.parametrize("kind", records.RECORDS)
def test_every_record_has_words(kind):
    """On one line that moves no cursor, whatever a node has put into it."""

    @given(any_record(kind))
    def check(record):
        text = event_text(record)
        assert text
        assert text.isprintable()

    check()


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (records.Node(name="edge-0", state="died", reason="killed by SIGKILL"), "edge-0 died: killed by SIGKILL"),
        (records.Node(name="edge-0", state="joined", incarnation=2, pid=9), "edge-0 joined (incarnation 2): process 9"),
        (
            records.Fault(name="cut-1", action="link", target="edge-0", asked_s=1.0, trigger="at 3s",
                          change="uplink 1mbit"),
            "link uplink 1mbit of edge-0 (cut-1): at 3s",
        ),
        (
            evaluation(version=1200, accuracy=0.9725, loss=0.123, final=True),
            "final evaluation of update 1,200: accuracy 97.25 %, loss 0.123",
        ),
        (
            records.Update(worker="edge-0", incarnation=1, step=4, version=1201, base=1199, staleness=1, entries=2,
                           bits=64, bytes=12_680, loss=float("nan")),
            "update 1,201 from push 4 of edge-0: 12.7 kB, 2 entries, staleness 1, loss not finite",
        ),
        (
            records.Link(mechanism="tc", interface="eth1", uplink_asked=10**6, uplink_held=2 * 10**6, latency_s=0.02),
            "link held by tc on eth1: up 1 mbit (held 2 mbit), down unlimited, latency 20 ms",
        ),
        (
            records.Seen(name="edge-0", time_s=10.0, cpu_s=1.0, cpu_error_s=0.05, uplink_bytes=2 * 10**6, differed=3,
                         differences=("link: x",), unread=()),
            "edge-0 seen from outside for 10.0 s: 1.00 s ± 0.05 s of CPU time, 2 MB up, 3 looks differed: link: x",
        ),
        (
            records.Refused(peer="edge-0~1", worker="edge-0", code="late", reason="its round is over", step=7),
            "refused push 7 of edge-0, late: its round is over",
        ),
        (
            records.Step(step=9, made=3, loss=0.5, gradient_lag=1),
            "step 9: 3 made in all, loss 0.5, its gradient lags by 1 step",
        ),
        (records.Ended(outcome="completed", reason="enough"), "the trial is over, completed: enough"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, records.Record) else "",
)  # fmt: skip
def test_words_say_what_happened(record, text):
    """With units, and no more than there is to say."""
    assert event_text(record) == text


def test_json_lines_are_those_of_the_files_and_name_their_trial(sample_run):
    """In time order, a trial after the other; nothing else differs."""
    lines = [json.loads(line) for line in event_lines(sample_run.folder, ALL, json=True)]

    for name, trial in sample_run.trials.items():
        written = [json.loads(line) for line in trial.folder.journal.read_text().splitlines()]
        assert [line for line in lines if line["trial"] == name] == [
            {"trial": name, **line} for line in sorted(written, key=lambda line: line["t"]) if line["kind"] != "trial"
        ]
    assert len(lines) == sum(len(trial.folder.journal.read_text().splitlines()) for trial in sample_run.trials.values())


def test_words_are_in_columns(sample_run):
    """Time, trial, node, what; one line of them an entry."""
    lines = list(event_lines(sample_run.folder, EventFilter(kinds=["ended", "node"], trials=["asgd"])))

    assert lines[0] == "     0.100 s  asgd     controller  server joined"
    assert [line.split()[2:4] for line in lines] == [["asgd", "controller"]] * 7
    assert lines[-1].endswith("the trial is over, completed: stopped after 600 updates")


def test_filters_choose_trials_kinds_and_nodes(sample_run):
    """A node's are those that it says and those about it; several of one filter add up, filters cut each other."""
    entries = [
        (20.0, "controller", records.Fault(name="edge-1", action="kill", target="edge-0", asked_s=1.0)),
        (20.1, "server", records.Joined(worker="edge-0", incarnation=2)),
    ]
    with JournalWriter(sample_run.trials["asgd"].folder.journal) as journal:
        journal.write_many(entries)

    def chosen(**wanted):
        lines = event_lines(sample_run.folder, EventFilter(**wanted), json=True)
        return [json.loads(line) for line in lines]

    kinds = {line["kind"] for line in chosen(nodes=["edge-0"])}
    assert kinds == {"node", "update", "fault", "joined", "phases"}
    assert {line.get("worker", "edge-0") for line in chosen(nodes=["edge-0"])} == {"edge-0"}
    assert chosen(nodes=["edge-1"], kinds=["fault"]) == []
    assert [line["trial"] for line in chosen(kinds=["ended"])] == ["asgd", "adacomp"]
    assert [line["trial"] for line in chosen(kinds=["ended"], trials=["adacomp"])] == ["adacomp"]
    assert {line["node"] for line in chosen(nodes=["server", "evaluator"], kinds=["finished", "evaluated"])} == {
        "server",
        "evaluator",
    }


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"trials": ["sgd"]}, "no trial 'sgd'; there are asgd, adacomp"),
        ({"nodes": ["edge-9"]}, "no node 'edge-9'; there are controller, server, evaluator, edge-0"),
        ({"kinds": ["faults"]}, "no kind of event 'faults'; there are trial, continued, node, update, .*, ended"),
    ],
    ids=["trial", "node", "kind"],
)
def test_a_filter_that_fits_nothing_lists_what_there_is(sample_run, wanted, said):
    """A typing mistake is no empty answer."""
    with pytest.raises(ScenarioError, match=said):
        list(event_lines(sample_run.folder, EventFilter(**wanted)))


def test_a_trial_that_has_not_begun_can_be_chosen(sample_run):
    """It is in the manifest."""
    sample_run.folder.write_manifest(seed=7, runtime="process", command=[], trials=["asgd", "adacomp", "later"])

    assert list(event_lines(sample_run.folder, EventFilter(trials=["later"]))) == []


def test_a_line_that_was_cut_is_left_out_and_a_broken_one_named(sample_run):
    """A kill cuts the last; before it nothing may be broken."""
    journal = sample_run.trials["asgd"].folder.journal
    whole = len(list(event_lines(sample_run.folder, ALL)))
    with journal.open("a") as file:
        file.write('{"t":30.0,"node":"server","ki')
    assert len(list(event_lines(sample_run.folder, ALL))) == whole
    with journal.open("a") as file:
        file.write("\n")
    with pytest.raises(EdgebedError, match=r"asgd/events\.jsonl:\d+: not a line of a journal"):
        list(event_lines(sample_run.folder, ALL))


def test_a_line_whose_record_is_none_is_named_by_its_time(sample_run):
    """Its head may be as it should."""
    with sample_run.trials["asgd"].folder.journal.open("a") as file:
        file.write('{"t":30.0,"node":"controller","kind":"ended","outcome":0,"reason":""}\n')

    with pytest.raises(EdgebedError, match=r"asgd/events\.jsonl: at 30 s: not a line of a journal: Expected `str`"):
        list(event_lines(sample_run.folder, ALL))


def test_following_ends_with_the_run_and_knows_trials_that_begin_later(tmp_path, make_sample_run, make_sample_plan):
    """What comes late within a look is put where it belongs; the end needs no results, as after a kill."""
    note = records.Note(text="x")
    folder = make_sample_run(tmp_path, {"asgd": [(1.0, "a", note)]}).folder
    folder.write_manifest(seed=7, runtime="process", command=[], trials=["asgd", "adacomp"])
    hold = contextlib.ExitStack()

    def write(trial, *times):
        if not folder.trial(trial).plan.exists():
            folder.trial(trial).make(make_sample_plan(trial))
        with JournalWriter(folder.trial(trial).journal) as journal:
            journal.write_many((t, "a", note) for t in times)

    script = iter((
        lambda: write("asgd", 3.0, 4.0), lambda: write("asgd", 2.0, 5.0), lambda: None,
        lambda: write("adacomp", 0.5), hold.close,
    ))  # fmt: skip
    with hold:
        hold.enter_context(folder.locked())
        lines = list(event_lines(folder, ALL, json=True, follow=True, pause=lambda _: next(script)()))

    told = [(line["trial"], line["t"]) for line in map(json.loads, lines)]
    assert told == [*(("asgd", t) for t in (1.0, 2.0, 3.0, 4.0, 5.0)), ("adacomp", 0.5)]
    assert next(script, None) is None


@given(
    looks=st.lists(st.lists(st.integers(0, 100), max_size=8), max_size=8),
)
def test_what_is_put_in_order_comes_out_once(looks):
    """Nothing is lost or doubled, each look's own are in order, and nothing waits for more than one look."""
    order, given_on, come = InOrder(), [], []
    for look in looks:
        ripe = order.look([(float(t), b"%d" % t) for t in look], is_last=False)
        assert ripe == sorted(ripe)
        given_on += ripe
        assert len(given_on) >= len(come)
        come += look
    given_on += order.look([], is_last=True)

    assert sorted(t for t, _ in given_on) == sorted(come)


@given(times=st.lists(st.integers(0, 50), max_size=40), sizes=st.lists(st.integers(0, 6), min_size=40, max_size=40))
def test_what_comes_a_look_late_at_most_comes_out_in_order(times, sizes):
    """Two looks together are never newer than the next."""
    times = sorted(times)
    looks, place = [], 0
    for size in sizes:
        looks.append(times[place : place + size])
        place += size
    looks.append(times[place:])
    for before, after in zip(looks[::2], looks[1::2], strict=False):  # the newest of one come a look late
        late = before[len(before) // 2 :: 2]
        after[:0] = late
        del before[len(before) // 2 :: 2]
    order = InOrder()
    out = [t for look in looks for t, _ in order.look([(float(t), b"") for t in look], is_last=False)]
    out += [t for t, _ in order.look([], is_last=True)]

    assert out == sorted(float(t) for t in times)


@given(chunks=st.lists(st.text("ab\n", max_size=6).map(str.encode), max_size=12), cut=st.booleans())
def test_a_growing_file_gives_each_line_once(tmp_path, chunks, cut):
    """Whole ones only, but for the last look; one that is not there yet has none."""
    path = tmp_path / "lines"
    path.unlink(missing_ok=True)
    file, lines = GrowingFile(path), []
    assert list(file.new_lines(whole_only=False)) == []
    for chunk in chunks:
        with path.open("ab") as stream:
            stream.write(chunk)
        lines += file.new_lines(whole_only=True)
    lines += file.new_lines(whole_only=cut)
    text = b"".join(chunks)
    expected = text.split(b"\n")
    if cut or not expected[-1]:
        expected.pop()

    assert lines == expected
