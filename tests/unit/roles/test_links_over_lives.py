"""What a node's link and cap are, and what its other end takes the link for, follows the faults' order alone.

Whether the node was dead when one of them began or ended makes no difference, nor whether its runtime has a place that
outlives it, as network namespaces of processes do, or each life a new one, as containers do.
"""

from typing import NamedTuple

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from staged_world import World, fault, inject

from edgebed.core.planned.link import LinkChange
from edgebed.emulation.conditions import Override
from edgebed.roles.control.members import State
from edgebed.wire import messages

NODE, OTHER_END = "edge-0", "server"
SLOW, LATE = LinkChange(uplink_bit_s=1_000_000), LinkChange(latency_s=0.1)
KINDS = {
    "cut": [inject(NODE, "cut")],
    "heal": [inject(NODE, "heal")],
    "cut for": [inject(NODE, "cut"), inject(NODE, "heal", 1.0)],
    "cut between": [inject(NODE, "cut", peer=OTHER_END)],
    "cut between for": [inject(NODE, "cut", peer=OTHER_END), inject(NODE, "heal", 1.0, peer=OTHER_END)],
    "heal between": [inject(NODE, "heal", peer=OTHER_END)],
    "link": [inject(NODE, "link", change=LATE)],
    "link for": [inject(NODE, "link", change=SLOW), inject(NODE, "link", 1.0)],
    "cpus for": [inject(NODE, "cpus", cpus=0.5), inject(NODE, "cpus", 1.0)],
    "restart": [inject(NODE, "kill"), inject(NODE, "launch", 1.0)],
    "restart of its other end": [inject(OTHER_END, "kill"), inject(OTHER_END, "launch", 1.0)],
}
"""Faults by name; those with two steps last as long as is drawn."""


class Asked(NamedTuple):
    """What is asked of a link and a cap."""

    link: Override = Override()
    cpus: float | None = None

    def after(self, injection):
        """Return what is asked after one more injection."""
        return Asked(self.link.after(injection), injection.cpus if injection.action == "cpus" else self.cpus)


class Street(World):
    """What two runtimes hold at the node's place, and what its other end has heard of it."""

    def __init__(self, plan):
        self.outliving, self.of_this_life, self.heard = Asked(), Asked(), Asked()
        self.far_outliving, self.far_of_this_life = Asked(), Asked()
        """The other end's own link."""
        super().__init__(plan)

    def live(self, name):
        """Begin a life, at a new place in one of the runtimes."""
        self.of_this_life = Asked() if name == NODE else self.of_this_life
        if name == OTHER_END:
            self.heard = self.far_of_this_life = Asked()
        super().live(name)

    def inject(self, effect):
        """Hold from now on what is asked, where there is somebody at home."""
        if effect.injection.node == NODE:
            self.outliving, self.of_this_life = (
                each.after(effect.injection) for each in (self.outliving, self.of_this_life)
            )
        if far := effect.injection.at(OTHER_END):
            self.far_outliving, self.far_of_this_life = (
                each.after(far) for each in (self.far_outliving, self.far_of_this_life)
            )
        super().inject(effect)

    def do_all(self, effects):
        """Carry out effects; the other end hears in its present life."""
        super().do_all(effects)
        for effect in effects:
            message = getattr(effect, "message", None)
            if isinstance(message, messages.Inject) and effect.to == self.lives.get(OTHER_END):
                self.heard = self.heard.after(message.injection)


def faults_of(drawn):
    """Faults of a plan, no two steps of which are due at one time."""
    made = []
    for k, (kind, at_s, lasts_s) in enumerate(drawn):
        first, *rest = KINDS[kind]
        last = [msgspec.structs.replace(step, after_s=lasts_s + k / 1000) for step in rest]
        made.append(fault(first.injection.node, first, *last, name=f"fault-{k}", at_s=at_s + k / 100))
    return tuple(made)


def asked_by(faults):
    """What the faults come to in the order of their steps, read without the controller."""
    steps = [
        (each.trigger.at_s + step.after_s, each.name, is_own, step.injection)
        for each in faults
        for is_own, step in zip((True, False), each.steps, strict=False)
    ]
    held, asked = {"": set(), OTHER_END: set()}, Asked()
    for _, name, is_own, injection in sorted(steps, key=lambda each: each[0]):
        holders = held[injection.peer]
        if injection.action == "cut":
            holders.add(name)
        elif injection.action == "heal":
            holders &= set() if is_own else holders - {name}
        if injection.action != "heal" or not holders:
            asked = asked.after(injection)
    return asked


@given(st.lists(st.tuples(st.sampled_from(sorted(KINDS)), st.integers(1, 8), st.integers(1, 5)), max_size=9))
def test_a_link_and_a_cap_are_what_the_faults_come_to(make_plan, drawn):
    """Of a node that was dead at any of them, too; its other end knows, and knows nothing of the cap."""
    faults = faults_of(drawn)
    world = Street(make_plan(2, faults=faults, stall_deadline_s=1e6)).until(30.0)
    asked = asked_by(faults)

    assert world.state(NODE) == "running"
    assert world.outliving == world.of_this_life == asked
    assert world.heard.link == asked.link
    is_apart = (NODE,) if asked.link.apart else ()
    assert world.far_outliving.link.apart == world.far_of_this_life.link.apart == is_apart


def test_a_cut_that_ends_while_its_node_is_dead_has_ended_for_its_next_life(make_plan):
    """The journal says so when it is due."""
    cut = fault(NODE, inject(NODE, "cut"), inject(NODE, "heal", 1.5), name="cut", at_s=2.0)
    restart = fault(NODE, inject(NODE, "kill"), inject(NODE, "launch", 1.0), at_s=3.0)
    world = Street(make_plan(2, faults=(cut, restart))).until(10.0)

    assert ("heal", NODE, "it is not there (died); its next life will be so") in world.faults()
    assert not world.outliving.link.cut


def test_a_heal_of_a_dead_node_that_another_fault_cuts_as_well_says_so(make_plan):
    """Its next life is cut until that one is over, too."""
    cuts = [fault(NODE, inject(NODE, "cut"), inject(NODE, "heal", for_s), name=name, at_s=2.0)
            for name, for_s in (("short", 1.5), ("long", 9.0))]  # fmt: skip
    restart = fault(NODE, inject(NODE, "kill"), inject(NODE, "launch", 1.0), at_s=3.0)
    world = Street(make_plan(2, faults=(*cuts, restart))).until(10.0)

    assert ("heal", NODE, "it is not there (died); it is cut by long, too") in world.faults()
    assert world.outliving.link.cut
    assert not world.until(12.0).outliving.link.cut


def test_a_node_that_was_given_up_and_is_ready_after_all_hears_what_was_done_meanwhile(make_plan):
    """It is in the same life: it does not say hello again."""
    world = Street(make_plan(2, faults=(fault(NODE, inject(NODE, "cut"), at_s=1.0),)))
    member = world.controller.members[NODE]
    member.state = State.MISSING
    world.until(2.0)
    assert not world.outliving.link.cut
    world.say(NODE, messages.Ready(sender=NODE, data_address="d", management_address="m"))

    assert member.state is State.RUNNING
    assert world.outliving.link.cut
    assert world.heard.link.cut
