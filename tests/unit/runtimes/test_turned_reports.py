"""Whatever a node that has the secret of a run reports, the journal can be read and summarised, and the run resumed."""

import math
import tempfile
import time
import typing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from sample_runs import make_plan

from edgebed.core import records
from edgebed.core.planned.fault import FaultPlan, FaultStep, Injection, Trigger
from edgebed.core.recorded.reach import UNTOLD_MAX
from edgebed.core.units import LARGEST
from edgebed.journal.journal import JournalWriter, read_journal
from edgebed.journal.run_folder import TrialFolder
from edgebed.metrics.openmetrics import SampleStore
from edgebed.metrics.replay import TrialFacts, replay
from edgebed.metrics.trial_metrics import TrialMetrics
from edgebed.planning.planning import plan_trials
from edgebed.roles.control.admission import Admission, NodeInputs
from edgebed.roles.control.controller import Controller, Phase
from edgebed.roles.control.record_permissions import OWED, TEXT_MAX
from edgebed.roles.events import MessageReceived, NodeExited
from edgebed.running.results import Trial
from edgebed.running.resume import past_of
from edgebed.runtimes.live.heartbeat import HEARTBEAT
from edgebed.runtimes.live.live_controller import MESSAGE_BYTES, LiveController
from edgebed.runtimes.live.rate_limit import ALLOWANCE, SAVED_S, TOLD_APART
from edgebed.runtimes.watch import StatusFeed
from edgebed.scenario.load import load_scenario
from edgebed.wire import frames, messages
from edgebed.wire.errors import RemoteWireError

SHARDS = {
    "name": "turned",
    "task": {"data": "digits", "model": "mlp", "batch_size": 10},
    "fleet": {"edge": {"count": 2}},
    "stop": {"updates": 1000},
    "method": {"preset": "synthetic-gradients"},
}
SERVED = {"shards": {"modules": "apart", "traffic": "store"}}
PLANS = {
    "updates": make_plan,
    "shards": lambda: plan_trials(load_scenario(SHARDS))[0].plan,
    "served shards": lambda: plan_trials(load_scenario(SHARDS | SERVED))[0].plan,
}
FAULT = FaultPlan(
    name="late",
    node="edge-1",
    trigger=Trigger(at_update=900),
    steps=(FaultStep(after_s=0.0, injection=Injection(node="edge-1", action="freeze")),),
)
OWED_BY_NODES = [kind for kind, roles in OWED.items() if roles and issubclass(kind, records.Record)]


class Anything:
    """What a controller needs beside it, and what is asked of it here comes to nothing."""

    def __getattr__(self, name):
        return lambda *_, **__: None

    def probe(self):
        """Nobody looks."""
        return Anything()

    def take(self, *_):
        """There is nothing."""
        return ()

    refusals = take


class Staged:
    """A controller of a trial whose nodes all train, in a folder."""

    def __init__(self, plan, folder):
        self.plan, self.folder = plan, TrialFolder(Path(folder))
        self.folder.make(plan)
        heart = Controller(plan, Admission(plan, lambda _: NodeInputs(), time.monotonic_ns()), "process")
        metrics = TrialMetrics()
        metrics.start_trial(plan, "turned/0001", "process", 0.0)
        self.journal = JournalWriter(self.folder.journal)
        watch = StatusFeed(heart, lambda _: None, metrics.observe)
        self.shell = LiveController(heart, Anything(), self.journal, Anything(), watch)
        self.shell.endpoint = Anything()
        self.shell._carry_out(heart.launch(self.shell.now()))
        self.reported = dict.fromkeys(heart.members, 0)
        for said in (messages.Hello, messages.Ready):
            for node in heart.members:
                self.say(said(sender=node, **({"pid": 1} if said is messages.Hello else {})))
        assert heart.phase is Phase.RUNNING

    def say(self, message):
        """A message comes, if the wire takes it at all."""
        try:
            decoded, payload = frames.decode(frames.encode(message), "management")
        except RemoteWireError:
            return
        self.shell._received(MessageReceived(f"{message.sender}~1", decoded, payload, 100))

    def report(self, node, *said):
        """A node reports records of now."""
        now = self.shell.now()
        first, self.reported[node] = self.reported[node], self.reported[node] + len(said)
        before = self.shell.reported.get(f"{node}~1", 0)
        self.say(messages.Report(sender=node, first=first, records=tuple((now, record) for record in said)))
        if self.shell.reported.get(f"{node}~1", 0) == before:
            self.reported[node] = before

    def told(self):
        """What nodes have said that is in the journal, and why something is not."""
        self.shell._release()
        entries = list(read_journal(self.folder.journal))
        dropped = [
            record for _, node, record in entries if node == "controller" and isinstance(record, records.Dropped)
        ]
        return [(node, record) for _, node, record in entries if node != "controller"], dropped

    def faults(self):
        """Names of the faults that were asked for, in order."""
        return [cause.name for cause in self.shell.heart.injector.asked.causes()]

    def notes(self):
        """Notes of the controller."""
        entries = read_journal(self.folder.journal)
        return [record.text for _, node, record in entries if node == "controller" and isinstance(record, records.Note)]

    def check(self):
        """Read all that can be, and return the summary."""
        self.shell._release()
        summary = Trial(self.folder).summary
        msgspec.json.encode(summary)
        msgspec.json.encode(self.shell.watch.state.status(1e3, 1.0))
        past = past_of(self.folder)
        assert past is not None
        assert past.updates <= UNTOLD_MAX * (1 + sum(self.reported.values()))
        replay(
            self.plan,
            lambda: read_journal(self.folder.journal),
            TrialFacts("turned/0001", "process", 0.0),
            SampleStore(),
        )
        return summary


@pytest.fixture(scope="module")
def plans():
    """The plan of a trial of each family of methods."""
    made = {}

    def plan(name):
        made[name] = made.get(name) or msgspec.structs.replace(PLANS[name](), faults=(FAULT,))
        return made[name]

    return plan


@pytest.fixture
def stage(plans, tmp_path):
    """`stage("shards")`: a controller of such a trial."""
    staged = []

    def make(name="updates"):
        staged.append(Staged(plans(name), tmp_path / name))
        return staged[-1]

    yield make
    for each in staged:
        each.journal.close()


def values_of(declared, names):
    """A strategy for the values of a field, small and large, possible and not."""
    if typing.get_origin(declared) is typing.Annotated:
        return values_of(typing.get_args(declared)[0], names)
    if typing.get_origin(declared) is typing.Literal:
        return st.sampled_from(typing.get_args(declared))
    if typing.get_origin(declared) is dict:
        return st.dictionaries(st.sampled_from(["accuracy", "loss", "x" * 300]), values_of(float, names), max_size=3)
    if typing.get_origin(declared) is tuple:
        return st.lists(st.sampled_from(["a: b", "x" * TEXT_MAX]), max_size=2).map(tuple)
    if typing.get_args(declared):
        return st.one_of([values_of(each, names) for each in typing.get_args(declared)])
    return {
        int: st.sampled_from([-1, 0, 1, 2, 5, 9, 500, 5000, UNTOLD_MAX, 10**6, 2**31, LARGEST - 1, LARGEST]),
        float: st.sampled_from([-1.0, 0.0, 0.5, 1.0, 9e15, 1e308, math.nan, math.inf]),
        bool: st.booleans(),
        str: st.sampled_from(names),
        type(None): st.none(),
    }[declared]


def reports(nodes):
    """A strategy for records of nodes, as (node, record)."""
    names = [*nodes, "", "data", "up", "model", "late", "edge-9", "x" * 300]

    def record(kind):
        fields = {field.name: values_of(field.type, names) for field in msgspec.structs.fields(kind)}
        return st.fixed_dictionaries(fields).map(lambda values: kind(**values))

    return st.tuples(st.sampled_from(nodes), st.sampled_from(records.RECORDS).flatmap(record))


def results_of(summary):
    """What a trial has come to."""
    return summary.outcome, summary.diverged, summary.updates, summary.accounting


UPDATE = records.Update(
    worker="edge-0", incarnation=1, step=0, version=1, base=0, staleness=0, entries=1, bits=1, bytes=1, loss=0.5
)
TRANSFERS = records.Transfers(name="edge-0", direction="up", messages=1, bytes=1, time_s=1.0, asked_s=1.0)


@pytest.mark.parametrize(
    ("name", "node", "said", "why"),
    [
        ("updates", "edge-0", records.Step(step=2**53, made=10**6), "Step, which no worker owes"),
        ("updates", "edge-0", records.Step(step=5000, made=5000), "Step, which no worker owes"),
        ("updates", "edge-0", records.Progress(incarnation=1, history=0, since=0, begun=5, made=9),
         "Progress, which no worker owes"),
        ("updates", "edge-0", records.Taught(shard="edge-0", step=1, loss=1.0), "Taught, which no worker owes"),
        ("updates", "server", records.BackedUp(history=0, step=2**53), "BackedUp, which no server owes"),
        ("updates", "server", records.Resumed(history=0, step=1), "Resumed, which no server owes"),
        ("updates", "server", replace(UPDATE, version=2**53), "update 9,007,199,254,740,992, where none beyond 0 was"),
        ("updates", "server", replace(UPDATE, base=5), "update 1 of base 5 with staleness 0"),
        ("updates", "server", replace(UPDATE, worker="edge-9"), "of 'edge-9', which is no worker"),
        ("updates", "edge-0", records.Pushes(incarnation=9, begun=1, pushed=1), "of incarnation 9, in incarnation 1"),
        ("updates", "edge-0", records.Unanswered(incarnation=0, joins=0, step=0, reason=""), "of incarnation 0, in"),
        ("updates", "edge-0", records.Dropped(socket="x" * 200, reason=""), f"socket {'x' * 40!r}"),
        ("updates", "edge-0", records.Note(text="x" * 5000), "text of more than 4,096 characters"),
        ("updates", "edge-0", replace(TRANSFERS, to="edge-1"), "of 'edge-1', which it exchanges nothing with"),
        ("updates", "edge-0", replace(TRANSFERS, direction="away"), "direction 'away'"),
        ("updates", "edge-0", records.Sent(to="server", message="push"), "nothing is traced"),
        ("shards", "edge-0", records.Pushes(incarnation=1, begun=1, pushed=1), "Pushes, which no shard owes"),
        ("shards", "server", UPDATE, "Update, which no server of shards owes"),
        ("shards", "edge-1", records.Step(step=2**53), "step 9,007,199,254,740,992, where none beyond 0 was reported"),
        ("shards", "edge-0", records.Step(step=5, made=6), "6 updates complete with step 5"),
        ("shards", "edge-1", records.Step(step=5, made=900), "900 updates complete with step 5"),
        ("shards", "edge-0", records.Step(step=5, every=10_000), "step 5 of every 10,000, of a shard"),
        ("shards", "edge-0", records.Progress(incarnation=1, history=0, since=0, begun=5, made=9), "9 of 5 steps"),
        ("shards", "edge-0", records.Progress(incarnation=1, history=0, since=0, begun=2**53), "where none beyond 0"),
        ("shards", "edge-0", records.Progress(incarnation=2, history=0, since=0), "of incarnation 2, in incarnation 1"),
        ("shards", "edge-0", records.Taught(shard="edge-1", step=1, loss=1.0), "of a module of 'edge-1'"),
        ("shards", "server", records.BackedUp(history=0, step=2**53), "where none beyond 0 was reported"),
        ("served shards", "store", records.Step(step=1), "Step, which no store owes"),
    ],
)  # fmt: skip
def test_what_a_node_does_not_owe_or_what_cannot_be_is_counted_and_told_once(stage, name, node, said, why):
    """It changes nothing: no progress, no fault that waits for updates, no account."""
    staged = stage(name)
    before = results_of(staged.check())
    for _ in range(30):
        staged.report(node, said)

    told, dropped = staged.told()
    assert told == []
    assert all(why in record.reason for record in dropped), dropped
    assert sum(record.count for record in dropped) == 30
    assert len(dropped) <= TOLD_APART + 1
    assert staged.faults() == []
    assert results_of(staged.check()) == before


def test_what_is_owed_is_taken_and_triggers_what_waits_for_it(stage):
    """The last shard's steps are updates of the model, as is whatever the server of workers says."""
    shards, updates = stage("shards"), stage("updates")
    for step in range(899):
        shards.report("edge-1", records.Step(step=step, made=step + 1, loss=0.5))
        updates.report("server", replace(UPDATE, version=step + 1, base=step, step=step))
    for staged in (shards, updates):
        assert (staged.faults(), staged.told()[1]) == ([], [])
    shards.report("edge-1", records.Step(step=899, made=900, loss=0.5))
    updates.report("server", replace(UPDATE, version=900, base=899, step=899))

    for staged in (shards, updates):
        assert staged.faults() == ["late"]
        assert (staged.told()[1], staged.check().updates) == ([], 900)


def test_a_report_that_falls_is_another_life_or_none(stage):
    """A counter that begins anew, time and again, would be remembered as so many lives."""
    staged = stage("updates")
    for cpu_s in (5.0, 4.0, 6.0, 5.9):
        staged.report("edge-0", records.Usage(time_s=10.0, cpu_s=cpu_s))
    staged.shell._handle(NodeExited("edge-0", "killed by SIGKILL"))
    staged.say(messages.Hello(sender="edge-0", pid=2))
    staged.report("edge-0", records.Usage(time_s=1.0, cpu_s=1.0))

    told, dropped = staged.told()
    assert [record.cpu_s for _, record in told] == [5.0, 6.0, 1.0]
    assert {record.reason.partition(": ")[2] for record in dropped} == {
        "Usage that cannot be: cpu_s is less than it was"
    }


@pytest.mark.parametrize("first", [2**53, 10**7, 0])
def test_records_that_were_lost_are_noted_where_there_can_have_been_any(stage, first):
    """A line of a node in a second, of no more than it may report; numbers that fall are nobody's."""
    staged = stage("updates")
    staged.report("edge-0", *[records.Note(text="one")] * 3)
    for begin in (10, 20, 30):
        staged.reported["edge-0"] = begin
        staged.report("edge-0", records.Note(text="later"))
    for _ in range(100):
        staged.reported["edge-0"] = first
        staged.report("edge-0", records.Note(text="strange"))

    told, dropped = staged.told()
    assert [record.text for _, record in told] == ["one"] * 3 + ["later"] * 3
    assert sum(record.count for record in dropped) == 100
    assert all(f"edge-0 reports record {first:,}, after 31" in record.reason for record in dropped)
    assert staged.notes() == ["25 records of edge-0 were lost on the way"]


def with_left(staged, node, bytes_left):
    """The controller, whose clock stands still, once the node may write no more than that."""
    now = staged.shell.now()
    staged.shell.now = lambda: now
    staged.shell.budget.left[node] = now, SAVED_S, bytes_left / ALLOWANCE.bytes
    return staged


def test_a_message_costs_its_node_as_a_record_does(stage):
    """Each may have a line in the journal: who says nothing but that is heard for a while."""
    staged, heard = with_left(stage("updates"), "edge-0", 10.5 * MESSAGE_BYTES), []
    staged.shell.heart.handle = lambda event, now: heard.append(event) or []
    for _ in range(30):
        staged.say(messages.Reached(sender="edge-0", fault=0, step=0))

    _, dropped = staged.told()
    assert len(heard) == 10
    assert {record.reason for record in dropped} == {"edge-0 says more than a worker may"}
    assert sum(record.count for record in dropped) == 20


def test_the_time_is_told_as_long_as_there_is_budget(stage):
    """Whoever asks all the time is answered as often as it may write."""
    staged, answered = with_left(stage("updates"), "edge-0", 10.5 * MESSAGE_BYTES), []
    staged.shell.endpoint.send = lambda *said, **_: answered.append(said)
    message = messages.AskTime(sender="edge-0", asked_ns=1)
    for _ in range(30):
        staged.shell._received(MessageReceived(f"edge-0~1{HEARTBEAT}", message, (), 20))

    assert len(answered) == 10


def test_a_server_that_trains_says_once_that_it_is_ready(stage):
    """Later the number of what the journal has of its log is not forgotten for it."""
    staged = stage("updates")
    staged.shell.durable = 7
    staged.say(messages.Ready(sender="server"))

    assert staged.shell.durable == 7


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_any_record_of_any_node_leaves_a_journal_that_can_be_read_summarised_and_resumed(plans, name):
    """With any numbers and any names, in any order; nothing that is told takes long because of its size."""
    plan = plans(name)

    @settings(deadline=5_000)
    @given(st.lists(reports([node.node for node in plan.nodes]), max_size=12))
    def holds(told):
        with tempfile.TemporaryDirectory() as folder:
            staged = Staged(plan, folder)
            for node, record in told:
                staged.report(node, record)
            staged.check()
            staged.journal.close()

    holds()


@pytest.mark.parametrize("kind", OWED_BY_NODES, ids=lambda kind: kind.__name__)
def test_what_is_added_up_stays_countable_however_often_it_is_said(stage, kind):
    """The largest numbers, and nothing, by turns: also where what comes of them is of another type."""
    staged = stage("shards" if OWED[kind] <= OWED[records.Messages] else "updates")
    owners = [name for name, duty in staged.shell.permissions.duties.items() if duty in OWED[kind]]
    words = {"socket": "data", "code": "late", "direction": "up", "message": "model", "every": 1, "below": ""}
    words |= {"accuracy": 1.0, "base": 0, "staleness": 0, "incarnation": 1}

    def record(turn):
        number = LARGEST * (turn % 2)
        least = {int: number, float: float(number), str: "edge-0"}
        fields = {field.name: least.get(plain(field.type), ()) for field in msgspec.structs.fields(kind)}
        return kind(
            **fields | {name: value for name, value in (words | {"version": turn + 1}).items() if name in fields}
        )

    for node in owners[:2]:
        for first in range(0, 2200, 50):
            if first % 550 == 0:
                staged.shell.budget.left.clear()
            staged.report(node, *map(record, range(first, first + 50)))
    staged.check()


def plain(declared):
    """The plain type that a field has beside None."""
    if typing.get_origin(declared) is typing.Annotated:
        return typing.get_args(declared)[0]
    return next((plain(each) for each in typing.get_args(declared) if each is not type(None)), declared)
