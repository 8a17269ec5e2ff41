"""The end of a trial that Prometheus watches: nodes may serve their last metrics, and are waited for so much longer."""

import pytest
from evaluated import evaluation

from edgebed.roles.control.admission import Admission, NodeInputs
from edgebed.roles.control.controller import Controller
from edgebed.roles.control.ending import GRACE_S
from edgebed.roles.events import Interrupted, Send, Wake
from edgebed.wire import messages


@pytest.fixture
def controller(make_plan, received):
    """One whose nodes run, and who says that a scrape may take 21 s."""
    plan = make_plan()
    made = Controller(plan, Admission(plan, lambda node: NodeInputs()), "process", linger_s=lambda: 21.0)
    made.launch(0.0)
    for name in made.members:
        made.handle(received(messages.Hello(sender=name, pid=1)), 0.0)
        made.handle(received(messages.Ready(sender=name, data_address="d", management_address="m")), 0.0)
    return made


def lingers(effects):
    """What each node that is told to stop may do."""
    return [e.message.linger_s for e in effects if isinstance(e, Send) and isinstance(e.message, messages.Stop)]


def test_nodes_may_linger_and_grace_begins_afterwards(controller, received):
    """A node that waits for its last scrape is not taken for dead."""
    final = evaluation(version=10, accuracy=0.9, loss=0.3, final=True)
    effects = controller.handle(received(messages.Report(sender="evaluator", first=0, records=((1.0, final),))), 1.0)

    assert lingers(effects) == [21.0] * len(controller.members)
    assert effects[-1] == Wake(1.0 + 21.0 + GRACE_S, "grace")


def test_who_interrupts_a_run_does_not_wait_for_prometheus(controller):
    """Ctrl-C ends it as quickly as ever."""
    effects = controller.handle(Interrupted(), 1.0)

    assert lingers(effects) == [0.0] * len(controller.members)
    assert effects[-1] == Wake(1.0 + GRACE_S, "grace")


def test_who_interrupts_while_nodes_linger_ends_that(controller, received):
    """They are told to stop once more; what the trial came to stays."""
    final = evaluation(version=10, accuracy=0.9, loss=0.3, final=True)
    controller.handle(received(messages.Report(sender="evaluator", first=0, records=((1.0, final),))), 1.0)

    assert lingers(controller.handle(Interrupted(), 2.0)) == [0.0] * len(controller.members)
    assert controller.ending.outcome == "completed"
