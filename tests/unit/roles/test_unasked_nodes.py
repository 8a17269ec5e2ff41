"""Nodes that come without being launched, and hellos that are refused: few, whatever a node says."""

from edgebed.core import records
from edgebed.roles.control.admission import UNASKED_MAX
from edgebed.roles.control.members import State
from edgebed.wire import messages


def test_a_node_that_nobody_has_launched_comes_back_a_few_times(fleet):
    """Each is sent what it needs; one that is launched is let in however often that was, and a goodbye is short."""
    fleet.start()
    lives = []
    for life in range(UNASKED_MAX + 3):
        peer = f"edge-0~{life}"
        fleet.do(fleet.received(messages.Bye(sender="edge-0", reason="z" * 4000), (), lives[-1] if lives else ""))
        if isinstance(fleet.hello("edge-0", peer)[-1].message, messages.Configure):
            lives.append(peer)

    assert len(lives) == UNASKED_MAX
    assert [note.text for note in fleet.records(records.Note)] == [
        f"refused 'edge-0~{UNASKED_MAX}': edge-0 has come {UNASKED_MAX} times without being launched"
    ]
    reasons = {record.reason for record in fleet.records(records.Node) if record.state == "died"}
    assert reasons == {"z" * 500}
    fleet.controller.members.become("edge-0", State.EXPECTED)
    assert isinstance(fleet.hello("edge-0", "edge-0~launched")[-1].message, messages.Configure)


def test_of_refused_hellos_one_of_each_node_and_kind_is_noted(fleet):
    """Whatever the names of their connections; all are answered, and whom nobody knows is one."""
    fleet.start()
    answered = [fleet.hello(node, f"{node}~{k}")[-1].to for k in range(20) for node in ("edge-0", "edge-1", f"who-{k}")]

    assert len(answered) == len(set(answered)) == 60
    assert len(fleet.records(records.Note)) == 3
