"""A start on a busy machine: it is waited for, as long as the machine is busy, and named where it comes to nothing."""

from edgebed.core import patience, records
from edgebed.roles.control.admission import Admission, NodeInputs
from edgebed.roles.control.controller import Controller
from edgebed.roles.events import Journal, Wake, Woken
from edgebed.wire import messages


def test_a_busy_machine_is_waited_for_and_named(make_plan, received) -> None:
    """As many times as long as threads want each of its cores, up to ten times; an idle one not longer."""
    plan = make_plan()
    controller = Controller(plan, Admission(plan, lambda _: NodeInputs()), "process")
    controller.launch(0.0)
    for name in [*controller.members][:-1]:
        controller.handle(received(messages.Hello(sender=name, pid=1)), 0.0)
        controller.handle(received(messages.Ready(sender=name, data_address="d", management_address="m")), 0.0)

    assert controller.handle(Woken("join", load=2.5), 60.0) == [Wake(150.0, "join")]
    assert controller.handle(Woken("join", load=40.0), 150.0) == [Wake(600.0, "join")]
    missing, *_ = controller.handle(Woken("join", load=40.0), 600.0)
    assert isinstance(missing, Journal)
    assert isinstance(missing.record, records.Node)
    assert missing.record.reason == (
        "not ready, and none has come up for 600 s (deadlines.join: 1m, and this machine is busy: 40 threads want "
        "each core)"
    )


def test_the_load_is_that_of_the_kernel(monkeypatch, tmp_path) -> None:
    """What wants to run now, or in the last minute; a machine that does not say it is waited for as an idle one."""
    monkeypatch.setattr(patience, "LOADAVG", tmp_path / "loadavg")
    monkeypatch.setattr(patience.os, "cpu_count", lambda: 2)
    assert patience.threads_a_core() == 0.0

    for text, load in (("6.00 0.10 0.10 1/200 77\n", 3.0), ("0.10 9.00 9.00 40/200 77\n", 20.0), ("nonsense", 0.0)):
        patience.LOADAVG.write_text(text)
        assert patience.threads_a_core() == load
