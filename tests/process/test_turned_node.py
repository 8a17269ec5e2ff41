"""Somebody with the secret of a live run: what it can have the server and the controller hold is bounded."""

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import zmq
from raw_zmtp import admitted, frame
from staged_trial import StagedTrial
from waiting import until

from edgebed.core import records
from edgebed.journal.journal import read_journal
from edgebed.runtimes.live.authentication import USER
from edgebed.runtimes.live.sockets import REPORT_BYTES_MAX, management_socket

SCENARIO = """
name: turned
question: Does a run go on although a node has turned against it?
task: { data: digits, model: small, batch_size: 10 }
method: asgd
fleet: { edge: { count: 2, waiting: 20ms } }
evaluation: { every: 1000 updates }
stop: { time: 10m }
"""
GROWTH_MAX = 60_000_000  # bytes; some 5 MB where the machine has time
FLOOD_MAX = 500_000_000
PARTS = (bytes(500_000), bytes(5_000), bytes(1))
"""Frames of a message without an end."""


def test_messages_without_an_end_cost_little_and_the_run_goes_on(tmp_path: Path) -> None:
    """At each socket of the server, in frames of any size, over one connection or many; and at the controller's."""
    stage = StagedTrial(tmp_path, SCENARIO)
    series = stage.run(attack)

    assert series.outcome == "interrupted"  # by the test, when it was done
    assert series.server.refused.keys() <= {"finished"}
    assert {node.state for _, node in series.nodes}.isdisjoint({"died", "unresponsive"})
    assert series.accounting.closes, series.accounting.problems
    dropped = [record for _, _, record in read_journal(stage.folder.journal) if isinstance(record, records.Dropped)]
    assert {record.socket for record in dropped} == {"data", "management"}
    assert all("without the end of a message" in record.reason for record in dropped)


def attack(stage: StagedTrial) -> None:
    """All of it in the middle of training, and at last the end of the run."""
    try:
        goes_on(stage)
        ready, here = stage.heart.members["server"].ready, psutil.Process()
        server = psutil.Process(stage.launcher.pids["server"])
        for address in (ready.data_address, ready.management_address):
            for part in PARTS:
                with watched(server):
                    assert flood(stage, address, part) < FLOOD_MAX
            with watched(server), contextlib.ExitStack() as stack:
                many = [stack.enter_context(enter(stage, address)) for _ in range(50)]
                for each in many:
                    with contextlib.suppress(OSError):
                        each.sendall(frame(bytes(60_000), more=True))
                time.sleep(2.0)
        with watched(here):
            flood_controller(stage)
        goes_on(stage)
    finally:
        stage.controller.interruptions = 1


@contextlib.contextmanager
def watched(process: psutil.Process) -> Iterator[None]:
    """Fail where a process grows meanwhile."""
    before = process.memory_info().rss
    yield
    grown = process.memory_info().rss - before
    print(f"{process.pid} has grown by {grown / 1e6:.1f} MB")
    assert grown < GROWTH_MAX


def goes_on(stage: StagedTrial) -> None:
    """Wait until some more updates have been applied."""
    before = stage.watch.state.updates
    until(lambda: stage.watch.state.updates > before + 20, "updates", every_s=0.02)


def enter(stage: StagedTrial, address: str) -> socket.socket:
    """A connection of somebody who has the secret."""
    return admitted(address, USER, stage.launcher.credentials.password)


def flood(stage: StagedTrial, address: str, part: bytes) -> int:
    """Send one message without an end; return how many bytes were taken."""
    parts, taken = frame(part, more=True) * max(1, 1_000_000 // len(part)), 0
    with contextlib.suppress(OSError), enter(stage, address) as connection:
        while taken < FLOOD_MAX:
            taken += connection.send(parts)
    print(f"{len(part)} bytes a frame: {taken / 1e6:.1f} MB were taken")
    return taken


def flood_controller(stage: StagedTrial) -> None:
    """Send a message so long that it might have no end; libzmq sends none of it before it has all."""
    part = bytes(REPORT_BYTES_MAX)
    with zmq.Context() as context, management_socket(context, zmq.DEALER, stage.launcher.credentials) as client:
        client.linger = 0
        monitor = client.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        client.connect(stage.launcher.address)
        client.send_multipart([part] * (FLOOD_MAX // len(part)), copy=False)
        assert monitor.poll(30_000), "it was not ended"
        monitor.close()
