"""The controller's shell: lives of nodes told apart, signs of life gathered, launches reported when they are done."""

import time
from collections import deque

import pytest
from evaluated import MEASURES, evaluation
from node_plans import plan_of_role

from edgebed.core import records
from edgebed.core.plan import TrainingPlan
from edgebed.core.planned.fault import Injection
from edgebed.journal.journal import JournalWriter, read_journal
from edgebed.roles.control.admission import Admission, NodeInputs
from edgebed.roles.control.controller import Controller, Phase
from edgebed.roles.control.record_permissions import OWED
from edgebed.roles.events import (
    ApplyInjection,
    HealthChecked,
    Injected,
    Interrupted,
    MessageReceived,
    NodeExited,
    NodeStarted,
    Send,
)
from edgebed.runtimes.live.heartbeat import HEARTBEAT
from edgebed.runtimes.live.live_controller import LAST_WORDS_S, LiveController
from edgebed.runtimes.watch import StatusFeed
from edgebed.wire import messages

ROLES = {"server": "server", "evaluator": "evaluator", "edge-0": "worker", "edge-1": "worker"}
FIRST, SECOND = "edge-0~1111", "edge-0~2222"


class Launcher:
    """Notes what it is asked for."""

    def __init__(self):
        self.launched, self.injected, self.capped, self.busy = [], [], [], False
        self.clocks = []

    def launch(self, node, address, secret):
        """Takes nothing while it is busy."""
        if not self.busy:
            self.launched.append(node)
        return not self.busy

    def inject(self, number, injection):
        """Done at some later time."""
        self.injected.append((number, injection.action))

    def clock_told(self, node, clock):
        """How a node's clock differs."""
        self.clocks.append((node, clock))

    def cap(self, node):
        """Done at some later time."""
        self.capped.append(node)

    def sight(self):
        """Nobody sees its nodes."""


class Unheard:
    """Where messages to nodes go."""

    def __init__(self):
        self.sent = []

    def send(self, to, message, payload, *, is_vital=True):
        """To nobody."""
        self.sent.append((to, message))

    def refusals(self, socket):
        """Nobody was."""
        return ()


@pytest.fixture
def shell(tmp_path):
    """A controller with a server, an evaluator and two workers, the first of which is there."""
    nodes = tuple(plan_of_role(node=name, role=role) for name, role in ROLES.items())
    plan = TrainingPlan(scenario="-", trial="-", question="-", seed=1, nodes=nodes, measures=MEASURES)
    heart = Controller(plan, Admission(plan, lambda _: NodeInputs()), "test")
    events = []
    handle = heart.handle
    heart.handle = lambda event, now: events.append(event) or handle(event, now)
    with JournalWriter(tmp_path / "events.jsonl") as journal:
        watch = StatusFeed(heart, lambda _: None, lambda *_: None)
        shell = LiveController(heart, Launcher(), journal, lambda *_: None, watch)
        shell.events, shell.path = events, journal.path
        shell.endpoint = Unheard()
        say(shell, FIRST, messages.Hello(sender="edge-0", pid=1))
        say(shell, FIRST, messages.Ready(sender="edge-0"))
        yield shell


def say(shell, peer, message):
    """A message has come."""
    shell._received(MessageReceived(peer, message, (), 0))


def report(shell, peer, first, text):
    """One record of the worker's, with its number."""
    note = (1.0, records.Note(text=text))
    say(shell, peer, messages.Report(sender="edge-0", first=first, records=(note,)))


def texts(shell):
    """What was noted, and what was dropped."""
    said = [record for _, _, record in read_journal(shell.path)]
    return [each.text for each in said if isinstance(each, records.Note)], [
        each.reason for each in said if isinstance(each, records.Dropped)
    ]


def second_life(shell):
    """The worker has died, and another says hello."""
    shell._handle(NodeExited("edge-0", "killed by SIGKILL"))
    say(shell, SECOND, messages.Hello(sender="edge-0", pid=2))


def test_an_interruption_says_for_how_long_nodes_are_waited_for(shell):
    """With how not to wait."""
    shown = []
    shell.watch.show = shown.append
    shell.watch.tick(0.0)
    shell.watch.interrupted, shell.watch.next_s = True, 0.0
    shell._handle(Interrupted())
    shell.watch.tick(1.0)

    assert [status.awaited for status in shown] == ["", "nodes have 5 s to end; Ctrl-C again: at once"]


def test_reports_of_a_life_that_is_over_are_kept_and_numbered_apart(shell):
    """Their records are evidence; the heart hears of its nodes' present lives alone. A stranger's are none."""
    report(shell, FIRST, 0, "one")
    second_life(shell)
    report(shell, SECOND, 0, "anew")
    handed_over = len(shell.events)
    report(shell, FIRST, 1, "late")
    report(shell, "edge-0~9999", 0, "strange")

    notes, dropped = texts(shell)
    assert notes == ["one", "anew", "late"]
    assert dropped == ["from 'edge-0~9999': Report of a stranger"]
    assert len(shell.events) == handed_over


def test_a_checkpoint_of_a_server_that_is_gone_is_not_kept(shell):
    """It belongs to a lineage that ends with it."""
    say(shell, "server~1", messages.Hello(sender="server", pid=3))
    shell._handle(NodeExited("server", "killed by SIGKILL"))
    say(shell, "server~1", messages.Checkpoint(sender="server", version=7, tensors=()))

    assert texts(shell)[1] == ["from 'server~1': Checkpoint of a stranger"]


@pytest.mark.parametrize(
    ("said", "name"),
    [
        (evaluation(version=1, accuracy=0.999, loss=0.0, final=True), "Evaluated"),
        (records.Update(worker="edge-1", incarnation=1, step=0, version=1, base=0, staleness=0, entries=1, bits=1,
                        bytes=1, loss=0.0), "Update"),
        (records.Finished(version=1, reason="so I say"), "Finished"),
        (records.Resumed(history=1, step=0, reason="so I say"), "Resumed"),
        (records.Ended(outcome="completed", reason="so I say"), "Ended"),
    ],
)  # fmt: skip
def test_what_results_are_made_of_is_believed_from_the_role_that_owes_it(shell, said, name):
    """A worker's word neither ends the run nor counts, also from an incarnation that is over; its own notes do."""
    shell.heart.phase, shell.has_begun = Phase.RUNNING, True
    for begin, peer in enumerate((FIRST, FIRST)):
        told = ((1.0, said), (1.0, records.Note(text=f"mine {begin}")))
        say(shell, peer, messages.Report(sender="edge-0", first=2 * begin, records=told))
        if not begin:
            second_life(shell)

    journal = list(read_journal(shell.path))
    assert [record for _, node, record in journal if isinstance(record, type(said)) and node == "edge-0"] == []
    assert texts(shell) == (["mine 0", "mine 1"], [f"from {FIRST!r}: {name}, which no worker owes"] * 2)
    assert shell.heart.phase is Phase.RUNNING


@pytest.mark.parametrize("off", [9e15, 70.0, -9e15])
def test_what_is_not_of_this_trial_by_the_controllers_clock_is_not_journaled(off, shell):
    """A node's clock may be a minute ahead; with the time of a node that has turned no run could be resumed."""
    times = {"strange": shell.now() + off, "ahead": shell.now() + 30.0, "mine": 1.0}
    told = tuple((t, records.Note(text=text)) for text, t in times.items())
    say(shell, FIRST, messages.Report(sender="edge-0", first=0, records=told))

    notes, (dropped,) = texts(shell)
    assert notes == ["ahead", "mine"]
    assert dropped.startswith(f"edge-0 reports something of {times['strange']:g} s, at ")


def test_a_node_cannot_fill_the_disk(shell):
    """What it reports beyond its budget is counted, and the journal grows by a line."""
    note = (1.0, records.Note(text="x"))
    for first in range(0, 300_000, 30_000):
        say(shell, FIRST, messages.Report(sender="edge-0", first=first, records=(note,) * 30_000))
    shell._journal_all(shell.flood.release())

    journal = [record for _, _, record in read_journal(shell.path)]
    dropped = [record for record in journal if isinstance(record, records.Dropped)]
    assert {record.reason for record in dropped} == {"edge-0 reports more than a worker may"}
    assert sum(record.count for record in dropped) == 210_000
    assert sum(isinstance(record, records.Note) for record in journal) == 90_000


@pytest.mark.parametrize("kept", ["Checkpoint", "Keep"])
def test_what_training_goes_on_from_is_the_servers(shell, kept):
    """No other node's model is kept: to keep one would fail here."""
    more = {"version": 7} if kept == "Checkpoint" else {"step": 7, "parts": ()}
    say(shell, FIRST, getattr(messages, kept)(sender="edge-0", tensors=(), **more))

    assert texts(shell)[1] == [f"from {FIRST!r}: {kept}, which no worker owes"]


def test_the_number_of_what_is_in_the_log_is_the_servers(shell):
    """A worker's would make the journal skip what the server says next."""
    note = (1.0, records.Note(text="mine"))
    say(shell, FIRST, messages.Report(sender="edge-0", first=0, records=(note,), durable=1000))

    assert shell.durable == 0
    assert texts(shell)[0] == ["mine"]


@pytest.mark.parametrize("durability", ["log", "fsync"])
def test_a_server_hears_what_the_journal_has_once_it_would_outlast_what_the_server_outlasts(durability, shell):
    """With `fsync` a power cut: the journal is synced before, and before anybody starts. With `log` at once."""
    shell.is_synced = durability == "fsync"
    heard = []
    shell.endpoint.send = lambda to, message, *_, **__: heard.append((message, shell.journal.is_synced))
    say(shell, "server~1", messages.Hello(sender="server", pid=3))
    said = (1.0, records.Joined(worker="edge-0", incarnation=1))
    say(shell, "server~1", messages.Report(sender="server", first=0, records=(said,), durable=0))
    journaled = messages.Journaled(sender="controller", durable=1)
    assert [each for each in heard if each[0] == journaled] == [(journaled, False)] * (durability == "log")
    shell._release()
    shell._carry_out([Send("edge-0~1", messages.Start(sender="controller"))])

    assert [each for each in heard if each[0] == journaled] == [(journaled, durability == "fsync")]
    assert heard[-1] == (messages.Start(sender="controller"), durability == "fsync")


def test_every_kind_of_record_has_a_role_that_owes_it():
    """One that is added says who may say it."""
    kinds = set(records.Record.__subclasses__())

    assert {kind for kind in OWED if issubclass(kind, records.Record)} == kinds


def test_a_node_that_is_built_is_capped_and_not_one_of_an_earlier_life(shell):
    """It says `ready` when it has found its cap; a life that is over is not the one that starts."""
    second_life(shell)
    say(shell, FIRST, messages.Built(sender="edge-0"))
    before = list(shell.launcher.capped)
    say(shell, SECOND, messages.Built(sender="edge-0"))

    assert (before, shell.launcher.capped) == ([], ["edge-0"])
    assert shell.heart.members["edge-0"].state == "joined"


def test_signs_of_the_present_life_count_once_a_check(shell):
    """They come from a connection of their own, named after the first."""
    shell.heart.phase, shell.has_begun = Phase.RUNNING, True
    say(shell, f"{FIRST}!alive", messages.Alive(sender="edge-0", incarnation=1))
    shell._check()
    shell._check()
    second_life(shell)
    say(shell, f"{FIRST}!alive", messages.Alive(sender="edge-0", incarnation=1))
    shell._check()
    say(shell, f"{SECOND}!alive", messages.Alive(sender="edge-0", incarnation=2))
    shell._check()

    checks = [event.alive for event in shell.events if isinstance(event, HealthChecked)]
    assert checks == [{"edge-0"}, set(), set(), {"edge-0"}]
    assert shell.next_check_s == pytest.approx(shell.now() + shell.heart.plan.check_s, abs=0.5)


def test_there_are_no_checks_before_and_after_training(shell):
    """Whoever ends gives no more signs."""
    shell._check()

    assert shell.next_check_s == float("inf")


def test_a_launch_is_done_when_the_node_has_started(shell):
    """And not begun before the end of its last life has been handled; other nodes do not wait for that."""
    shell._happened(NodeExited("edge-0", "killed by SIGKILL"))
    shell._carry_out([ApplyInjection(7, Injection(node="edge-0", action="launch"))])
    shell.to_launch.append("evaluator")
    shell._launch("tcp://")
    assert shell.launcher.launched == ["evaluator"]

    assert shell.timers.next_s == pytest.approx(shell.now() + LAST_WORDS_S, abs=0.1)
    shell._handle(NodeExited("edge-0", "killed by SIGKILL"))
    shell.launcher.busy = True
    shell._launch("tcp://")
    shell.launcher.busy = False
    shell._launch("tcp://")
    assert Injected(7) not in shell.events
    shell._happened(NodeStarted("edge-0"))

    assert shell.launcher.launched == ["evaluator", "edge-0"]
    assert shell.events[-2:] == [NodeStarted("edge-0"), Injected(7)]
    assert (shell.to_launch, shell.asked, shell.launched) == (deque(), {}, {})


def test_a_launch_that_fails_is_told_with_the_reason_before_the_end(shell):
    """So nobody waits for the node."""
    shell._carry_out([ApplyInjection(7, Injection(node="edge-0", action="launch"))])
    shell._launch("tcp://")
    shell._happened(NodeExited("edge-0", "no such image"))

    assert shell.events[-1] == Injected(7, "no such image")


def test_everything_else_is_the_launchers(shell):
    """Which tells when it is done."""
    shell._carry_out([ApplyInjection(3, Injection(node="edge-0", action="freeze"))])
    shell._happened(Injected(3))

    assert shell.launcher.injected == [(3, "freeze")]
    assert shell.events[-1] == Injected(3)


def test_the_time_is_told_over_the_connection_of_heartbeats_alone(shell):
    """When the question was read and when it was answered, by the controller's own clock; no other life is told."""
    before_ns = time.monotonic_ns()
    for peer in (FIRST + HEARTBEAT, SECOND + HEARTBEAT, FIRST):
        say(shell, peer, messages.AskTime(sender="edge-0", asked_ns=7))
    asked = [(to, message) for to, message in shell.endpoint.sent if isinstance(message, messages.TellTime)]

    ((to, told),) = asked
    assert (to, told.asked_ns) == (FIRST + HEARTBEAT, 7)
    assert before_ns <= told.heard_ns <= told.told_ns <= time.monotonic_ns()


class LastLook:
    """A probe whose last look is done when it is closed."""

    def __init__(self):
        self.found = deque()

    def close(self):
        """It ends."""
        self.found.append((time.monotonic_ns(), records.HostLoad(busy=0.5, steal=0.0, load=1.0, lag_s=0.001)))

    def take(self):
        """What was found since the last call."""
        while self.found:
            yield self.found.popleft()


def test_the_last_look_at_the_host_is_in_the_journal_before_the_trials_end(shell):
    """However soon the nodes say goodbye: it covers the last seconds of the training."""
    shell.probe = LastLook()
    shell._handle(Interrupted())
    shell._handle(NodeExited("edge-0", ""))

    kinds = [type(record) for _, _, record in read_journal(shell.path)]
    assert kinds.count(records.HostLoad) == 1
    assert kinds.index(records.HostLoad) < kinds.index(records.Ended)


def test_what_a_node_says_of_its_clock_is_the_launchers_to_know(shell):
    """It is journaled, too."""
    clock = records.Clock(offset_s=1000.0, own_s=5.0, drift=0.0, error_s=0.25, round_trip_s=0.5)
    say(shell, FIRST, messages.Report(sender="edge-0", first=0, records=((1.0, clock),)))

    assert shell.launcher.clocks == [("edge-0", clock)]
    assert [record for _, _, record in read_journal(shell.path) if isinstance(record, records.Clock)] == [clock]
