"""What a journal tells of a trial that is to go on: `running/resume.py`."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from edgebed.core import records
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
    assert past.update_bytes == Series.from_journal(folder.journal).ingress_bytes == sum(size for _, size in updates)
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


def write(journal: Path, said: list[records.Record]) -> None:
    """One record a second."""
    writer = JournalWriter(journal)
    for t, record in enumerate(said):
        writer.write(float(t), "server", record)
    writer.close()
