"""Faults are done when they are due, whatever triggers them; nodes come back; nothing waits for those that do not."""

import heapq

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebed.roles import records
from edgebed.roles.controller import Controller, Given, Past, Phase
from edgebed.roles.director import BY_HAND, ON_FAILURE
from edgebed.roles.events import (
    Answer,
    Checked,
    Inject,
    Injected,
    Journal,
    NodeExited,
    NodeStarted,
    Ordered,
    Received,
    Send,
    Stop,
    Wake,
    Woken,
)  # fmt: skip
from edgebed.scenario.plan import Fault, FaultStep, Injection, LinkChange, Trigger
from edgebed.wire import messages


class World:
    """A controller in virtual time, and nodes that do what is done to them; `deaf` nodes never say goodbye."""

    def __init__(self, plan, past=None, now=0.0, version=0):
        self.heap, self.count, self.now = [], 0, now
        self.versions = {"server": version}
        self.controller = Controller(
            plan, lambda node: Given(version=self.versions.get(node.node, 0)), "test", past=past
        )
        self.lives, self.journal, self.sent, self.answers, self.injected = {}, [], [], [], []
        self.failing, self.deaf, self.over = set(), set(), False
        self.do_all(self.controller.launch(now))
        for name in self.controller.members:
            self.live(name)

    def live(self, name):
        """A life begins: the node starts, says hello and is ready as soon as it is configured."""
        self.lives[name] = f"{name}~{self.lives.get(name, '~0').rpartition('~')[2]}1"
        self.do(NodeStarted(name))
        self.say(name, messages.Hello(sender=name, pid=1))
        self.say(name, messages.Ready(sender=name, data_address=f"data {self.lives[name]}", management_address="m"))

    def say(self, name, message):
        """A node's message to the controller."""
        self.do(Received(self.lives.get(name, ""), message, (), 0))

    def report(self, name, record):
        """A node's record."""
        self.say(name, messages.Report(sender=name, first=0, records=((self.now, record),)))

    def update(self, version, worker="edge-0"):
        """The server has applied so many updates."""
        self.report("server", records.Update(worker=worker, incarnation=1, step=0, version=version, base=0, staleness=0,
                                             entries=1, bits=1, bytes=1, loss=1.0))  # fmt: skip

    def do(self, event):
        """Hand the event over and carry out what follows."""
        if not self.over:
            self.do_all(self.controller.handle(event, self.now))

    def do_all(self, effects):
        """Carry these out."""
        for effect in effects:
            if isinstance(effect, Journal):
                self.journal.append((self.now, effect.record))
            elif isinstance(effect, Send):
                self.sent.append((self.now, effect.to, effect.message))
                name = effect.to.partition("~")[0]
                if isinstance(effect.message, messages.Stop) and name not in self.deaf:
                    self.at(self.now, Received(effect.to, messages.Bye(sender=name, reason="done"), (), 0))
            elif isinstance(effect, Wake):
                self.at(effect.at_s, Woken(effect.token))
            elif isinstance(effect, Inject):
                self.inject(effect)
            elif isinstance(effect, Answer):
                self.answers.append(effect)
            elif isinstance(effect, Stop):
                self.over = True

    def inject(self, effect):
        """Done after a tenth of a second, as is a life's end or beginning."""
        name, action = effect.injection.node, effect.injection.action
        self.injected.append((self.now, name, action))
        problem = "no" if action in self.failing else ""
        self.at(self.now + 0.1, Injected(effect.number, problem))
        if problem:
            return
        if action in ("kill", "memory"):
            self.at(self.now + 0.1, NodeExited(name, "killed by SIGKILL"))
        elif action == "launch":
            self.at(self.now + 0.1, name)
        elif action == "freeze":
            self.deaf.add(name)
        elif action == "thaw":
            self.deaf.discard(name)

    def at(self, at_s, event):
        """The event is due then."""
        self.count += 1
        heapq.heappush(self.heap, (at_s, self.count, event))

    def until(self, at_s):
        """Let time pass."""
        while self.heap and self.heap[0][0] <= at_s and not self.over:
            self.now, _, event = heapq.heappop(self.heap)
            if isinstance(event, str):
                self.live(event)
            else:
                self.do(event)
        self.now = max(self.now, at_s)
        return self

    def faults(self):
        """(action, target, problem or moot) of the faults journaled."""
        found = [record for _, record in self.journal if isinstance(record, records.Fault)]
        return [(record.action, record.target, record.problem or record.moot) for record in found]

    def state(self, name):
        """A node's."""
        return self.controller.members[name].state

    def told(self, kind, name=""):
        """The messages of a kind that were sent (to a node)."""
        return [m for _, to, m in self.sent if isinstance(m, kind) and (not name or to.startswith(f"{name}~"))]

    def ended(self):
        """(outcome, reason)."""
        (record,) = [record for _, record in self.journal if isinstance(record, records.Ended)]
        return record.outcome, record.reason


def inject(node, action, after_s=0.0, **fields):
    """A step."""
    return FaultStep(after_s=after_s, injection=Injection(node=node, action=action, **fields))


def fault(node, *steps, name="fault-1", **trigger):
    """A fault of one node."""
    return Fault(name=name, node=node, trigger=Trigger(**trigger), steps=steps)


@pytest.fixture(scope="session")
def make_world(make_plan):
    """`make_world(*faults, num_workers=2, past=None, **plan_fields)`."""

    def make(*faults, num_workers=2, past=None, **fields):
        return World(make_plan(num_workers, faults=faults, **fields), past)

    return make


# --- triggers --------------------------------------------------------------------------------------------------------


def test_a_fault_by_time_is_done_then_and_undone_later(make_world):
    """The record's own time is that of its being done, and it says when it was asked."""
    world = make_world(fault("edge-0", inject("edge-0", "freeze"), inject("edge-0", "thaw", 5.0), at_s=10.0)).until(20)

    assert world.injected == [(10.0, "edge-0", "freeze"), (15.0, "edge-0", "thaw")]
    (done_s, record), (_, thaw) = [(t, r) for t, r in world.journal if isinstance(r, records.Fault)]
    assert (done_s, record.asked_s, record.trigger) == (10.1, 10.0, "at 10s")
    assert (thaw.name, thaw.asked_s, thaw.problem) == ("fault-1", 15.0, "")


def test_a_fault_by_update_is_done_once_when_so_many_are_applied(make_world):
    """A report may tell of several at once."""
    world = make_world(fault("edge-1", inject("edge-1", "kill"), at_update=100))
    world.update(99)
    assert world.injected == []
    world.update(101)
    world.update(102)

    assert [(name, action) for _, name, action in world.injected] == [("edge-1", "kill")]


def test_a_worker_at_a_point_proceeds_when_the_fault_is_done(make_world):
    """Not before; a frozen one finds the message after its thaw."""
    world = make_world(fault("edge-0", inject("edge-0", "freeze"), inject("edge-0", "thaw", 2.0), point="after-push"))
    world.say("edge-0", messages.Reached(sender="edge-0", fault=0, step=7))
    assert not world.told(messages.Proceed)
    world.until(1.0)

    assert len(world.told(messages.Proceed, "edge-0")) == 1
    (record,) = [r for _, r in world.journal if isinstance(r, records.Fault)]
    assert record.trigger == "after-push 7"
    assert len(world.until(5.0).faults()) == 2


def test_a_worker_that_is_killed_at_a_point_is_told_nothing(make_world):
    """It is gone."""
    world = make_world(fault("edge-0", inject("edge-0", "kill"), point="during-pull"))
    world.say("edge-0", messages.Reached(sender="edge-0", fault=0, step=0))
    world.until(1.0)

    assert world.state("edge-0") == "died"
    assert not world.told(messages.Proceed)


def test_a_worker_at_a_point_proceeds_when_the_fault_cannot_be_done(make_world):
    """It never waits for ever."""
    world = make_world(fault("edge-0", inject("edge-0", "kill"), point="after-push"))
    world.failing.add("kill")
    world.say("edge-0", messages.Reached(sender="edge-0", fault=0, step=0))
    world.until(1.0)

    assert world.faults() == [("kill", "edge-0", "no")]
    assert world.told(messages.Proceed, "edge-0")


def test_a_worker_at_a_point_that_nobody_knows_proceeds(make_world):
    """A plan of another code."""
    world = make_world()
    world.say("edge-0", messages.Reached(sender="edge-0", fault=3, step=0))

    assert world.told(messages.Proceed, "edge-0")


# --- lives -----------------------------------------------------------------------------------------------------------


def test_a_node_that_is_restarted_has_a_new_incarnation(make_world):
    """Killed, and launched when its time has come."""
    world = make_world(fault("edge-0", inject("edge-0", "kill"), inject("edge-0", "launch", 3.0), at_s=1.0)).until(10)

    assert world.state("edge-0") == "running"
    assert world.controller.members["edge-0"].incarnation == 2
    assert [message.incarnation for message in world.told(messages.Configure, "edge-0")] == [1, 2]
    assert len(world.told(messages.Start, "edge-0")) == 2


def test_a_launch_waits_for_the_end_of_the_life_before(make_world):
    """Both are asked for at once, as by hand."""
    world = make_world()
    orders = Injection(node="edge-0", action="kill"), Injection(node="edge-0", action="launch")
    world.do(Ordered(1, orders))
    assert [action for _, _, action in world.injected] == ["kill"]
    world.until(1.0)

    assert world.state("edge-0") == "running"
    assert world.answers == [Answer(1, "")]


def test_a_new_life_finds_its_link_and_its_cap_as_they_were(make_world):
    """The device died, its street did not; nothing of that is journaled as a fault."""
    change = LinkChange(uplink_bit_s=1_000_000)
    world = make_world(
        fault("edge-0", inject("edge-0", "link", change=change), inject("edge-0", "cut", 1.0),
              inject("edge-0", "cpus", 1.0, cpus=0.5), at_s=1.0),
        fault("edge-0", inject("edge-0", "kill"), inject("edge-0", "launch", 1.0), at_s=5.0),
    ).until(10.0)  # fmt: skip

    assert [action for t, _, action in world.injected if t > 6.05] == ["link", "cut", "cpus"]
    told = [message.injection.action for message in world.told(messages.Inject, "edge-0")]
    assert told == 2 * ["link", "cut", "cpus"]
    assert len(world.faults()) == 5


def test_changes_of_one_link_add_up_until_it_is_as_planned_again(make_world):
    """The later one counts where both say something; each is journaled in the words of a scenario."""
    first = LinkChange(uplink_bit_s=1_000_000, latency_s=0.04)
    second = LinkChange(uplink_bit_s=2_000_000, loss=0.01)
    restart = inject("edge-0", "kill"), inject("edge-0", "launch", 1.0)
    world = make_world(
        fault("edge-0", inject("edge-0", "link", change=first), inject("edge-0", "link", 30.0), at_s=1.0),
        fault("edge-0", inject("edge-0", "link", change=second), at_s=2.0),
        fault("edge-0", *restart, at_s=10.0),
        fault("edge-0", *restart, at_s=40.0),
    ).until(50.0)

    changes = [record.change for _, record in world.journal if isinstance(record, records.Fault) and record.change]
    assert changes == ["uplink 1mbit, latency 40ms", "uplink 2mbit, loss 1%", "as planned"]
    again = [m.injection.change for t, to, m in world.sent
             if to == "edge-0~011" and isinstance(m, messages.Inject)]  # fmt: skip
    assert again == [LinkChange(uplink_bit_s=2_000_000, latency_s=0.04, loss=0.01), None]
    assert not [m for _, to, m in world.sent if to == "edge-0~0111" and isinstance(m, messages.Inject)]


def test_the_other_end_of_a_link_hears_what_is_asked_of_it_also_in_a_new_life(make_world):
    """The server compares what comes with what a link may carry; a worker's cap is none of its business."""
    change = LinkChange(uplink_bit_s=1_000_000)
    world = make_world(
        fault("edge-0", inject("edge-0", "link", change=change), inject("edge-0", "cpus", cpus=0.5), at_s=1.0),
        fault("server", inject("server", "kill"), inject("server", "launch", 1.0), at_s=5.0),
        fault("server", inject("server", "cut"), at_s=8.0),
    ).until(10.0)

    assert [(m.injection.node, m.injection.action) for m in world.told(messages.Inject, "server")] == [
        ("edge-0", "link"), ("edge-0", "link"), ("server", "cut"),
    ]  # fmt: skip
    assert [(m.injection.node, m.injection.action) for m in world.told(messages.Inject, "edge-1")] == [
        ("server", "cut")
    ]
    assert len(world.faults()) == 5


def test_the_server_goes_on_from_its_checkpoint_and_all_hear_where_it_is(make_world):
    """Every running node is told to start again, with the new address."""
    world = make_world(fault("server", inject("server", "kill"), inject("server", "launch", 2.0), at_s=5.0)).until(5.5)
    assert world.state("server") == "died"
    world.versions["server"] = 40
    world.until(10.0)

    assert [r for _, r in world.journal if isinstance(r, records.Restored)] == [
        records.Restored(version=40, incarnation=2)
    ]
    assert [m.server_address for m in world.told(messages.Start, "edge-1")] == ["data server~01", "data server~011"]
    assert world.controller.phase is Phase.RUNNING


def test_a_finish_that_the_server_missed_is_said_when_it_is_back(make_world):
    """The time was over while it was away."""
    restart = inject("server", "kill"), inject("server", "launch", 10.0)
    world = make_world(fault("server", *restart, at_s=5.0), stop_time_s=8.0).until(20.0)

    assert [m.reason for m in world.told(messages.Finish, "server")] == ["8 s have passed"]


def test_a_death_under_a_policy_is_followed_by_a_new_life(make_world):
    """Also one that nobody planned."""
    world = make_world(on_failure="restart", restart_delay_s=2.0)
    world.do(NodeExited("edge-0", "exit code 1"))
    world.until(1.9)
    assert world.state("edge-0") == "died"
    world.until(3.0)

    assert world.state("edge-0") == "running"
    (record,) = [r for _, r in world.journal if isinstance(r, records.Fault)]
    assert (record.name, record.action) == (ON_FAILURE, "launch")


def test_a_planned_restart_keeps_its_delay_under_a_policy(make_world):
    """The policy's own would come first."""
    steps = inject("edge-0", "kill"), inject("edge-0", "launch", 8.0)
    world = make_world(fault("edge-0", *steps, at_s=1.0), on_failure="restart").until(8.9)

    assert world.state("edge-0") == "died"
    assert world.until(10.0).state("edge-0") == "running"


def test_a_policy_may_end_the_trial(make_world):
    """It says which node, and why."""
    world = make_world(on_failure="stop")
    world.do(NodeExited("edge-0", "exit code 1"))
    world.until(1.0)

    assert world.ended() == ("failed", "edge-0 died: exit code 1 (on_failure: stop)")


# --- checks ----------------------------------------------------------------------------------------------------------

EVERYBODY = frozenset({"server", "evaluator", "edge-0", "edge-1"})


def test_two_missed_checks_in_a_row_are_a_failure_and_one_sign_ends_it(make_world):
    """One is not; the server hears nothing of it."""
    world = make_world()
    world.do(Checked(EVERYBODY - {"edge-0"}))
    world.do(Checked(EVERYBODY))
    world.do(Checked(EVERYBODY - {"edge-0"}))
    assert world.state("edge-0") == "running"
    world.do(Checked(EVERYBODY - {"edge-0"}))
    assert world.state("edge-0") == "unresponsive"
    world.do(Checked(EVERYBODY))

    assert world.state("edge-0") == "running"
    assert not world.told(messages.Failed)


def test_an_oracle_tells_the_server(make_world):
    """Of a death, and of a missing sign of life."""
    world = make_world(detector="oracle")
    world.do(NodeExited("edge-0", "exit code 1"))
    world.do(Checked(EVERYBODY - {"edge-1"}))
    world.do(Checked(EVERYBODY - {"edge-1"}))

    assert [message.node for message in world.told(messages.Failed, "server")] == ["edge-0", "edge-1"]


def test_a_node_without_a_sign_of_life_is_restarted_by_a_policy(make_world):
    """It is killed first."""
    world = make_world(on_failure="restart")
    for _ in range(2):
        world.do(Checked(EVERYBODY - {"edge-0"}))
    world.until(5.0)

    assert [action for _, _, action in world.injected] == ["kill", "launch"]
    assert world.state("edge-0") == "running"


def test_a_policy_brings_back_those_that_the_scenario_freezes_for_good(make_world):
    """So the trial goes on, though for a moment nobody trains."""
    frozen = (fault(f"edge-{k}", inject(f"edge-{k}", "freeze"), at_s=1.0) for k in range(2))
    world = make_world(*frozen, on_failure="restart").until(2.0)
    for _ in range(2):
        world.do(Checked(EVERYBODY - {"edge-0", "edge-1"}))
    world.until(5.0)

    assert not world.over
    assert [world.state(f"edge-{k}") for k in range(2)] == ["running", "running"]


def test_a_node_that_comes_while_the_server_is_frozen_is_told_where_it_is(make_world):
    """It can be reached there as soon as it is thawed, of which nobody else need be told."""
    steps = inject("edge-0", "kill"), inject("edge-0", "launch", 3.0)
    world = make_world(fault("edge-0", *steps, at_s=1.0))
    for _ in range(2):
        world.do(Checked(EVERYBODY - {"server"}))
    assert world.until(5.0).state("server") == "unresponsive"

    assert world.state("edge-0") == "running"
    assert [message.server_address for message in world.told(messages.Start, "edge-0")] == ["data server~01"] * 2
    assert len(world.told(messages.Start, "edge-1")) == 1


# --- ends ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["kill", "freeze", "cut"])
def test_a_trial_ends_at_once_when_nobody_is_left(make_world, action):
    """However they went; a frozen one is not waited for."""
    world = make_world(*(fault(f"edge-{k}", inject(f"edge-{k}", action), at_s=1.0 + k) for k in range(2))).until(3.0)

    outcome, reason = world.ended()
    assert outcome == "failed"
    assert "no worker is left" in reason


@pytest.mark.parametrize(("action", "undone"), [("kill", "launch"), ("freeze", "thaw"), ("cut", "heal")])
def test_a_trial_goes_on_while_somebody_comes_back(make_world, action, undone):
    """Nobody is there for half a minute, longer than a stall may last."""
    faults = [
        fault(f"edge-{k}", inject(f"edge-{k}", action), inject(f"edge-{k}", undone, 30.0), at_s=1.0) for k in (0, 1)
    ]
    world = make_world(*faults, stall_deadline_s=5.0).until(35.0)

    assert not world.over
    assert world.state("edge-0") == "running"
    world.until(45.0)
    assert world.ended()[1] == "no update was applied for 5 s"


def test_a_dead_server_ends_the_trial_and_is_named(make_world):
    """Unless it comes back."""
    world = make_world(fault("server", inject("server", "kill"), at_s=1.0)).until(3.0)

    assert world.ended() == ("failed", "the server died: killed by SIGKILL")


@pytest.mark.parametrize("action", ["freeze", "cut"])
def test_a_server_that_is_stopped_for_good_ends_the_trial_and_is_named(make_world, action):
    """Nobody can train with it; one that is to come back is waited for."""
    world = make_world(fault("server", inject("server", action), at_s=1.0)).until(1.5)

    assert world.ended() == ("failed", "the server is frozen or cut off, and nothing undoes it")
    undone = {"freeze": "thaw", "cut": "heal"}[action]
    other = make_world(fault("server", inject("server", action), inject("server", undone, 9.0), at_s=1.0)).until(9.0)
    assert not other.over


def test_nodes_that_are_frozen_by_hand_may_be_thawed_by_hand(make_world):
    """The trial does not end at once."""
    world = make_world()
    world.do(Ordered(1, tuple(Injection(node=f"edge-{k}", action="freeze") for k in range(2))))
    world.until(2.0)

    assert not world.over


def test_a_trial_that_ends_tells_whoever_waits(make_world):
    """Nobody waits for an answer for ever."""
    world = make_world()
    world.do(Ordered(1, (Injection(node="edge-0", action="freeze"),)))
    world.do(NodeExited("server", "exit code 1"))
    world.until(10.0)

    assert [answer.problem for answer in world.answers] == ["the trial has ended"]


# --- by hand, and by several -----------------------------------------------------------------------------------------


def test_what_is_asked_by_hand_is_journaled_and_answered(make_world):
    """Through the same code."""
    world = make_world()
    world.do(Ordered(5, (Injection(node="edge-0", action="cut"),)))
    assert world.answers == []
    world.until(1.0)

    assert world.answers == [Answer(5, "")]
    (record,) = [r for _, r in world.journal if isinstance(r, records.Fault)]
    assert (record.name, record.action, record.target) == (BY_HAND, "cut", "edge-0")
    assert [message.injection.action for message in world.told(messages.Inject, "edge-0")] == ["cut"]


@pytest.mark.parametrize(
    ("node", "action", "words"),
    [
        ("edge-9", "kill", "no node 'edge-9'; there are server, evaluator, edge-0, edge-1"),
        ("edge-0", "heal", "edge-0: it is not cut"),
        ("edge-0", "launch", "edge-0: it is running"),
        ("evaluator", "cut", "evaluator: it has no link: watching is not traffic"),
        ("edge-0", "memory", "edge-0: it has no memory cap to run into"),
    ],
)
def test_what_cannot_be_done_is_answered_with_the_reason(make_world, node, action, words):
    """At once."""
    world = make_world()
    world.do(Ordered(1, (Injection(node=node, action=action),)))

    assert world.answers == [Answer(1, words)]


def test_an_order_for_several_nodes_is_answered_once_with_all_that_could_not_be_done(make_world):
    """What is moot at once does not answer for what is still under way."""
    world = make_world()
    world.do(Ordered(1, (Injection(node="edge-1", action="freeze"),)))
    world.until(1.0)
    world.do(Ordered(2, tuple(Injection(node=f"edge-{k}", action="heal") for k in range(2))))
    world.do(Ordered(3, tuple(Injection(node=f"edge-{k}", action="freeze") for k in (1, 0))))
    world.until(2.0)

    assert world.answers[1:] == [
        Answer(2, "edge-0: it is not cut; edge-1: it is not cut"),
        Answer(3, "edge-1: it is frozen already"),
    ]


def test_a_dead_node_is_restarted_by_hand_without_being_killed(make_world):
    """There is nothing to kill, and that is no problem."""
    world = make_world()
    world.do(Ordered(1, (Injection(node="edge-0", action="kill"),)))
    world.until(1.0)
    assert world.state("edge-0") == "died"
    world.do(Ordered(2, (Injection(node="edge-0", action="kill"),)))
    world.do(Ordered(3, tuple(Injection(node="edge-0", action=action) for action in ("kill", "launch"))))
    world.until(2.0)

    assert world.state("edge-0") == "running"
    assert world.answers == [Answer(1, ""), Answer(2, "edge-0: it is not there (died)"), Answer(3, "")]


def test_a_node_that_two_users_restart_at_once_is_started_once_and_both_are_answered(make_world):
    """The second comes before the first life has ended."""
    world = make_world()
    orders = Injection(node="edge-0", action="kill"), Injection(node="edge-0", action="launch")
    world.do(Ordered(1, orders))
    world.now = 0.05
    world.do(Ordered(2, orders))
    world.until(3.0)

    assert [action for _, _, action in world.injected] == ["kill", "launch"]
    assert world.answers == [
        Answer(2, "edge-0: it is being killed; edge-0: it is to be launched already"),
        Answer(1, ""),
    ]


def test_a_change_that_is_refused_leaves_everything_as_it_was(make_world):
    """Whoever was told of it hears what holds instead, and a new life knows nothing of it."""
    world = make_world(
        fault("edge-0", inject("edge-0", "kill"), inject("edge-0", "launch", 1.0), at_s=5.0),
    )
    slow, lossy = LinkChange(uplink_bit_s=1_000_000), LinkChange(loss=0.01)
    world.do(Ordered(1, (Injection(node="edge-0", action="link", change=slow),)))
    world.until(1.0)
    world.failing |= {"link", "cpus"}
    world.do(Ordered(2, (Injection(node="edge-0", action="link", change=lossy),)))
    world.do(Ordered(3, (Injection(node="edge-0", action="cpus", cpus=1e9),)))
    world.until(2.0)
    world.failing.clear()

    for node in ("edge-0", "server"):
        heard = [message.injection.change for message in world.told(messages.Inject, node)
                 if message.injection.action == "link"]  # fmt: skip
        assert heard == [slow, lossy, None, slow]
    caps = [m.injection.cpus for m in world.told(messages.Inject, "edge-0") if m.injection.action == "cpus"]
    assert caps == [1e9, None]
    before = len(world.injected)
    world.until(10.0)
    assert [action for _, _, action in world.injected[before:]] == ["kill", "launch", "link"]
    assert world.told(messages.Inject, "edge-0")[-1].injection.change == slow


def test_a_link_that_two_faults_cut_is_healed_when_both_are_over(make_world):
    """The second finds it cut; the first one's heal comes too early."""
    world = make_world(
        fault("edge-0", inject("edge-0", "cut"), inject("edge-0", "heal", 5.0), at_s=1.0, name="one"),
        fault("edge-0", inject("edge-0", "cut"), inject("edge-0", "heal", 5.0), at_s=3.0, name="two"),
    ).until(20.0)

    assert world.injected == [(1.0, "edge-0", "cut"), (8.0, "edge-0", "heal")]
    assert world.faults() == [
        ("cut", "edge-0", ""), ("cut", "edge-0", "it is cut already"), ("heal", "edge-0", "it is cut by two, too"),
        ("heal", "edge-0", ""),
    ]  # fmt: skip


def test_a_heal_of_its_own_ends_what_others_have_cut(make_world):
    """As one by hand does; it is no end of a fault of its own name."""
    world = make_world(
        fault("edge-0", inject("edge-0", "cut"), at_s=1.0, name="one"),
        fault("edge-0", inject("edge-0", "cut"), at_s=2.0, name="two"),
        fault("edge-0", inject("edge-0", "heal"), at_s=3.0, name="heal-3"),
    ).until(20.0)

    assert world.injected == [(1.0, "edge-0", "cut"), (3.0, "edge-0", "heal")]


# --- going on after the controller was gone --------------------------------------------------------------------------


def test_a_trial_that_goes_on_does_not_repeat_what_has_been(make_plan):
    """Neither faults by time nor by update; lives are counted on."""
    faults = (
        fault("edge-0", inject("edge-0", "freeze"), at_s=5.0),
        fault("edge-0", inject("edge-0", "freeze"), at_update=30),
        fault("edge-1", inject("edge-1", "freeze"), at_s=100.0),
    )
    plan = make_plan(2, faults=faults, stall_deadline_s=500.0)
    incarnations = {"server": 1, "evaluator": 1, "edge-0": 3, "edge-1": 1}
    past = Past(began_s=2.0, until_s=50.0, updates=50, incarnations=incarnations)
    world = World(plan, past, now=50.0, version=20)
    world.until(101.0).update(60)

    assert world.injected == []
    assert world.controller.members["edge-0"].incarnation == 4
    assert world.until(102.5).injected == [(102.0, "edge-1", "freeze")]


def test_what_was_due_while_a_trial_came_up_again_is_done_late(make_plan):
    """It belongs to no time that has been trained in; nor does a fault by update come twice for an older checkpoint."""
    faults = (
        fault("edge-0", inject("edge-0", "freeze"), at_s=48.0),
        fault("edge-1", inject("edge-1", "freeze"), at_s=47.9),
    )
    past = Past(began_s=2.0, until_s=49.95, updates=0, incarnations={})
    world = World(make_plan(3, faults=faults), past, now=51.0)

    assert world.until(52.0).injected == [(51.0, "edge-0", "freeze")]


def test_what_a_fault_had_done_to_links_and_caps_holds_when_the_trial_goes_on(make_plan):
    """Until it is undone, however it was triggered: every node is a new one at the same place, and none is frozen."""
    slow = LinkChange(uplink_bit_s=1_000_000)
    faults = (
        fault("edge-0", inject("edge-0", "cut"), inject("edge-0", "heal", 20.0), at_s=10.0, name="by time"),
        fault("edge-1", inject("edge-1", "cut"), inject("edge-1", "heal", 2.0), at_s=10.0, name="over"),
        fault("edge-1", inject("edge-1", "link", change=slow), at_update=30, name="by update"),
        fault("edge-1", inject("edge-1", "cpus", cpus=0.5), inject("edge-1", "cpus", 50.0), at_update=40, name="cap"),
        fault("edge-2", inject("edge-2", "freeze"), inject("edge-2", "thaw", 20.0), at_s=10.0, name="freeze"),
        fault("edge-2", inject("edge-2", "kill"), inject("edge-2", "launch", 15.0), at_s=5.0, name="restart"),
    )
    asked_s = {("by time", "edge-0"): 12.0, ("by update", "edge-1"): 13.0, ("cap", "edge-1"): 14.0}
    past = Past(began_s=2.0, until_s=17.0, updates=50, incarnations={}, triggered_s=asked_s)
    world = World(make_plan(3, faults=faults), past, now=17.0)
    assert world.injected == [(17.0, "edge-0", "cut"), (17.0, "edge-1", "link"), (17.0, "edge-1", "cpus")]
    assert world.told(messages.Inject, "edge-1")[0].injection.change == slow
    assert world.until(63.0).faults() == [
        ("launch", "edge-2", "it is running"), ("thaw", "edge-2", "it is not frozen"), ("heal", "edge-0", ""),
    ]  # fmt: skip

    assert world.injected[3:] == [(32.0, "edge-0", "heal")]
    assert world.until(65.0).injected[4:] == [(64.0, "edge-1", "cpus")]


# --- anything at all -------------------------------------------------------------------------------------------------

ACTIONS = ("kill", "launch", "freeze", "thaw", "cut", "heal", "link", "cpus")
NODES = ("edge-0", "edge-1", "edge-2")


@st.composite
def any_faults(draw):
    """Up to eight faults of any kind at any time."""
    found = []
    for k in range(draw(st.integers(0, 8))):
        node = draw(st.sampled_from(NODES))
        times = sorted(draw(st.lists(st.floats(0, 10), max_size=3)))
        actions = [draw(st.sampled_from(ACTIONS)) for _ in times]
        steps = [inject(node, action, after_s) for action, after_s in zip(actions, times, strict=True)]
        found.append(
            fault(node, inject(node, draw(st.sampled_from(ACTIONS))), *steps, name=f"f{k}", at_s=draw(st.floats(0, 20)))
        )
    return found


@settings(max_examples=200, deadline=None)
@given(
    faults=any_faults(),
    policy=st.sampled_from(["ignore", "restart", "stop"]),
    failing=st.sets(st.sampled_from(ACTIONS)),
    deaths=st.lists(st.tuples(st.floats(0, 30), st.sampled_from((*NODES, "server"))), max_size=4),
)
def test_whatever_is_done_the_trial_ends_and_each_step_is_told(make_world, faults, policy, failing, deaths):
    """Every step that came due before the end has its record, and the trial ends by a deadline at the latest."""
    world = make_world(*faults, num_workers=3, on_failure=policy, stop_time_s=40.0, stall_deadline_s=10.0)
    world.failing = failing
    for at_s, name in deaths:
        world.at(at_s, NodeExited(name, "exit code 1"))
    world.until(200.0)

    outcome, reason = world.ended()
    assert outcome == "failed"  # no node trains here
    assert reason
    ended_s = next(t for t, r in world.journal if isinstance(r, records.Ended))
    due = sum(f.trigger.at_s + step.after_s < ended_s - 10.0 for f in faults for step in f.steps)
    assert len(world.faults()) >= due
