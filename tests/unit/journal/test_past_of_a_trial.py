"""What a journal tells of a trial that is to go on: `running/resume.py`."""

from pathlib import Path

import logged_server
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core import records
from edgebed.core.errors import DamagedFileError, ScenarioError
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange
from edgebed.journal.checkpoints import CheckpointStore
from edgebed.journal.journal import JournalWriter
from edgebed.journal.run_folder import TrialFolder
from edgebed.journal.series import Series
from edgebed.running.resume import past_of

TRIAL = records.Trial(scenario="s", trial="t", seed=1, runtime="process", nodes=2, parameters=6)


def update(version: int, payload_bytes: int) -> records.Update:
    """An update of that version."""
    return records.Update(
        worker="edge-0", incarnation=0, step=0, version=version, base=0, staleness=0, entries=1, bits=64,
        bytes=payload_bytes, loss=1.0,
    )  # fmt: skip


@given(st.lists(st.tuples(st.integers(1, 500), st.integers(0, 10_000)), max_size=20))
def test_the_bytes_of_all_updates_are_those_of_the_summary(tmp_path_factory, updates):
    """Also of versions that were made twice, since a server was restored."""
    folder = TrialFolder(tmp_path_factory.mktemp("trial"))
    write(folder.journal, [TRIAL, *(update(*each) for each in updates)])
    past = past_of(folder)

    assert past is not None
    assert (
        past.update_bytes
        == Series.from_journal(folder.journal).server.ingress_bytes
        == sum(size for _, size in updates)
    )
    assert past.updates == max((version for version, _ in updates), default=0)


def test_what_has_passed_the_server_is_that_of_all_its_lives(tmp_path):
    """So the totals of a trial that goes on do not fall."""
    folder = TrialFolder(tmp_path)
    lives = [records.Traffic(ingress_payload=size, egress_payload=size + 1, pull_bytes=size) for size in (5, 70, 20)]
    joined = records.Node(name="server", state="joined", incarnation=1)
    write(folder.journal, [TRIAL, *lives[:2], joined, lives[2]])
    past = past_of(folder)

    assert past is not None
    assert past.traffic is not None
    assert (past.traffic.ingress_payload, past.traffic.egress_payload, past.traffic.pull_bytes) == (90, 92, 90)


def test_what_was_done_by_hand_to_links_and_caps_is_told_and_what_could_not_be_done_is_not(tmp_path):
    """With when it was asked for, in seconds of training; a freeze is of the life that is over."""
    folder = TrialFolder(tmp_path)

    def by_hand(action, asked_s, **more):
        return records.Fault(name="by hand", action=action, target="edge-0", asked_s=asked_s, **more)

    lines = [
        by_hand("link", 5.0, change="uplink 20kbit, latency 40ms"), by_hand("cut", 6.0, no_op="it is cut already"),
        by_hand("cpus", 7.0, change="0.1"), by_hand("link", 8.0, change="loss 1%", problem="no netem"),
        by_hand("freeze", 9.0), records.Fault(name="cut-1", action="cut", target="edge-0", asked_s=9.0),
    ]  # fmt: skip
    with JournalWriter(folder.journal) as journal:
        journal.write(2.0, "controller", TRIAL)
        for record in lines:
            journal.write(record.asked_s, "controller", record)
    past = past_of(folder)

    assert past is not None
    assert past.by_hand == (
        (3.0, Injection(node="edge-0", action="link", change=LinkChange(uplink_bit_s=20_000, latency_s=0.04))),
        (4.0, Injection(node="edge-0", action="cut")),
        (5.0, Injection(node="edge-0", action="cpus", cpus=0.1)),
    )
    write(folder.journal, [TRIAL, by_hand("link", 5.0, change="uplink fast")])
    with pytest.raises(DamagedFileError, match="link of edge-0 by hand: "):
        past_of(folder)


def test_a_time_that_a_node_cannot_have_reported_moves_no_clock(tmp_path):
    """A node that turned against its run said so; the trial goes on when the controller had it."""
    folder = TrialFolder(tmp_path)
    with JournalWriter(folder.journal) as journal:
        for t, node, record in (
            (1.0, "controller", TRIAL),
            (30.0, "controller", records.Note(text="mine")),
            (9e15, "edge-0", records.Note(text="from the future")),
            (35.0, "server", update(1, 10)),
        ):
            journal.write(t, node, record)

    past = past_of(folder)
    assert past is not None
    assert past.until_s == 35.0
    assert past.trained_s <= 34.0


@pytest.fixture
def folder(tmp_path):
    """A trial's folder whose journal is gone."""
    made = TrialFolder(tmp_path)
    made.server_log.mkdir()
    made.checkpoints.mkdir()
    return made


def log_of(pushes: int) -> bytes:
    """The log of a server that has taken so many."""
    logged = logged_server.LoggedServer("asgd")
    for what in ["start", *["push"] * pushes]:
        logged.do(what, "edge-0")
    return logged.content


def test_updates_without_a_journal_are_not_thrown_away(folder):
    """Whether a log has them or a checkpoint, in a file or on an engine: nothing is removed, and it is said."""
    (folder.server_log / "server.log").write_bytes(log_of(2))
    with pytest.raises(ScenarioError, match=r"does not say that training began, and there is a log .*Put the journal"):
        past_of(folder)
    assert (folder.server_log / "server.log").exists()

    (folder.server_log / "server.log").rename(folder.server_log / "volume")
    with pytest.raises(ScenarioError, match="there is a log of its server on a container engine"):
        past_of(folder)

    (folder.server_log / "volume").unlink()
    CheckpointStore(folder, np.zeros(2, np.float32)).keep(7, np.ones(2, np.float32), final=False)
    with pytest.raises(ScenarioError, match=r"there is a checkpoint of update 7"):
        past_of(folder)
    assert folder.latest_checkpoint.exists()


def test_a_trial_that_has_no_update_has_not_begun(folder):
    """Its server had begun a log when the controller ended; a log that cannot be read may have updates."""
    log = folder.server_log / "server.log"
    log.write_bytes(log_of(0))
    CheckpointStore(folder, np.zeros(2, np.float32)).keep(0, np.ones(2, np.float32), final=False)
    assert past_of(folder) is None

    log.write_bytes(b"x" * 100)
    with pytest.raises(DamagedFileError, match=r"server\.log: damaged at byte 0"):
        past_of(folder)


def test_a_resume_from_the_checkpoint_awaits_nothing_of_the_log(tmp_path):
    """The server that comes up has none."""
    folder = TrialFolder(tmp_path)
    write(folder.journal, [TRIAL, update(1, 10), update(2, 10)])

    assert past_of(folder).durable == 2
    assert past_of(folder, from_checkpoint=True).durable == 0


def write(journal: Path, said: list[records.Record]) -> None:
    """One record a second."""
    writer = JournalWriter(journal)
    for t, record in enumerate(said):
        writer.write(float(t), "server", record)
    writer.close()
