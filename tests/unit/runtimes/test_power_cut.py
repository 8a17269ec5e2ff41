"""A trial whose machine loses its power, or whose server is killed, after every single thing that it asks of the disk.

What somebody was told is there afterwards, with the model's bits as they were, and every file is whole.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from logged_server import METHODS, SCRIPTS, WORKERS, LoggedServer, N, recover, server_of
from node_plans import plan_of_role
from power_cut import Recorder, disks, lay

from edgebed.core import records
from edgebed.core.errors import EdgebedError
from edgebed.core.plan import TrainingPlan
from edgebed.journal.checkpoints import CheckpointStore
from edgebed.journal.journal import JournalWriter, read_journal
from edgebed.journal.run_folder import RunFolder
from edgebed.roles.events import Append, Journal, MessageReceived, Send
from edgebed.roles.server.entries import is_durable
from edgebed.running.resume import past_of
from edgebed.runtimes.live.group_commit import GroupCommit
from edgebed.runtimes.live.live_node import LiveNode
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.runtimes.log_file import FolderInMemory, FolderOnDisk
from edgebed.runtimes.server_log import ServerLog
from edgebed.wire.messages import Join, Model

SCRIPT = [("push", worker) for _ in range(5) for worker in WORKERS]
LOG = "runs/quickstart/0001/asgd/server-log/server.log"
INITIAL = np.zeros(N, "f4")


class TrialOnDisk(LoggedServer):
    """A trial in a run's folder: a server with a log, and what its controller writes, in the controller's order."""

    def __init__(self, method, durability, root, recorder, *, bytes_min, held=True):
        self.durability, self.recorder, self.held = durability, recorder, held
        run = RunFolder.create(root / "runs", "quickstart")
        run.write_manifest(seed=3, runtime="process", command=(), trials=["asgd"])
        run.write_scenario("name: quickstart\n")
        recorder.note("begun", run.read_manifest())
        self.trial = run.trial("asgd")
        nodes = (server_of(method).plan, plan_of_role(role="evaluator", node="evaluator"))
        self.trial.make(TrainingPlan(scenario="-", trial="asgd", question="-", seed=3, nodes=nodes))
        self.events = JournalWriter(self.trial.journal)
        self.checkpoints = CheckpointStore(self.trial, INITIAL)
        for name in ("server", *WORKERS):
            self.write(records.Node(name=name, state="joined", incarnation=1))
        self.write(records.Trial(scenario="-", trial="asgd", seed=3, runtime="process", nodes=4, parameters=N))
        self.events.sync()
        recorder.note("trains", self.trial.read_plan())
        self.thetas, self.unwritten = {0: INITIAL.tobytes()}, []
        super().__init__(method, bytes_min=bytes_min)

    def write(self, record):
        """The controller writes a record."""
        self.events.write(self.now if hasattr(self, "now") else 0.0, "controller", record)

    def _begin(self):
        self.server = server_of(self.method, durability=self.durability)
        self.log = ServerLog(self.server, FolderOnDisk(self.trial.server_log), bytes_min=self.bytes_min)
        self.log.begin(self.now)
        self.commits = GroupCommit(self.log)

    def carry_out(self, effect):
        """As the live shell does."""
        if isinstance(effect, Append):
            super().carry_out(effect)
            self.thetas[self.server.aggregation.version] = self.server.aggregation.theta.tobytes()
        elif not (self.held and self.durability == "fsync" and self.commits.hold(effect)):
            self._say(effect)

    def _say(self, effect):
        if isinstance(effect, Send) and isinstance(effect.message, Model):
            self.recorder.note("version", effect.message.version)
        if isinstance(effect, Journal):
            self.unwritten.append((self.now, "server", effect.record))
        super().carry_out(effect)

    def commit(self):
        """The thread has synced; what was held is said, and the controller hears of it."""
        self.commits.commit()
        for effect in self.commits.released():
            self._say(effect)
        told, self.unwritten = self.unwritten, []
        self.events.write_many(told)
        self.durable = getattr(self, "durable", 0) + sum(is_durable(record) for _, _, record in told)

    def tell_durable(self):
        """The controller says what the journal has."""
        if self.durability == "fsync":
            self.events.sync()
        self.log.has_told(self.durable)

    def checkpoint(self, *, final=False):
        """The server hands its model over."""
        aggregation = self.server.aggregation
        self.checkpoints.keep(aggregation.version, aggregation.theta, final)
        self.recorder.note("checkpoint", aggregation.version)


def happened(method, durability, script=SCRIPT, *, bytes_min=1 << 20, every=2, held=True):
    """All that a trial asked of the disk, with what was told; and the bits of each version of its model."""
    with tempfile.TemporaryDirectory() as folder, Recorder(Path(folder)) as recorder:
        trial = TrialOnDisk(method, durability, Path(folder), recorder, bytes_min=bytes_min, held=held)
        for k, (what, worker) in enumerate(script):
            if k in (5, 9):
                trial.log.bound = 0.0  # it is begun anew behind this event
            trial.do(what, worker)
            if k % every == 0:
                trial.commit()
            if k % 4 == 3:
                trial.tell_durable()
            if k % 6 == 5:
                trial.checkpoint()
        trial.commit()
        trial.checkpoint(final=True)
        trial.write(records.Ended(outcome="completed", reason="-"))
        trial.events.close()
        recorder.note("ended", True)
        trial.log.close()
    return recorder.done, trial.thetas


def check_log(told, disk, thetas, method):
    """The server that goes on from the log; AssertionError or EdgebedError where it lacks what was told."""
    version = max((each[1] for each in told if each[0] == "version"), default=-1)
    content = disk.get(LOG)
    assert content or version < 0
    if not content:
        return None
    found = recover(content, method)
    assert found.server.aggregation.version >= version
    assert found.server.aggregation.theta.tobytes() == thetas[found.server.aggregation.version]
    return found.log


def check(told, disk, thetas, method):
    """What resuming this run finds; AssertionError or EdgebedError where that is not what was told."""
    log = check_log(told, disk, thetas, method)
    with tempfile.TemporaryDirectory() as folder:
        lay(disk, Path(folder))
        run = RunFolder(Path(folder) / "runs" / "quickstart" / "0001")
        _check_files(dict(told), run, run.trial("asgd"), log, thetas)


def _check_files(heard, run, trial, found, thetas):
    if "begun" in heard:
        assert run.read_manifest() == heard["begun"]
        assert run.scenario.read_text() == "name: quickstart\n"
    elif run.path.exists():
        run.read_manifest()
    if "trains" in heard or trial.plan.exists():
        assert trial.read_plan() == heard.get("trains", trial.read_plan())
    kept = CheckpointStore(trial, INITIAL).latest
    assert kept.version >= heard.get("checkpoint", 0)
    assert kept.theta.tobytes() == thetas[kept.version]
    if "ended" in heard:
        assert any(isinstance(record, records.Ended) for _, _, record in read_journal(trial.journal))
        assert trial.final_checkpoint.exists()
    if "trains" in heard:
        past = past_of(trial)
        assert past is not None
        assert past.incarnations == dict.fromkeys(("server", *WORKERS), 1)
        if found:
            assert found.told <= past.durable  # the log has whatever the journal lacks
            journaled = [r.version for _, _, r in read_journal(trial.journal) if isinstance(r, records.Update)]
            lacking = list(found.untold)[past.durable - found.told :]
            journaled += [record.version for _, record in lacking if isinstance(record, records.Update)]
            assert journaled == list(range(1, found.heart.aggregation.version + 1))


def check_all(done, thetas, method, how, checked=check_log):
    """Every disk that may be left, each once for what was told by then."""
    seen = set()
    for told, disk in disks(done, how):
        key = len(told), disk.get(LOG) if checked is check_log else tuple(sorted(disk.items()))
        if key not in seen:
            seen.add(key)
            checked(told, disk, thetas, method)


def is_renewed(done):
    """Whether the log was begun anew meanwhile."""
    return sum(what == "rename" and rest[1] == LOG for what, *rest in done) > 1


@pytest.mark.parametrize("method", sorted(METHODS))
def test_after_a_power_cut_at_any_moment_the_log_has_all_that_anybody_was_told(method):
    """With `fsync`: whatever was not synced is there, is not there, or is in part."""
    done, thetas = happened(method, "fsync")

    assert is_renewed(done)
    check_all(done, thetas, method, "power-cut")


@pytest.mark.parametrize("method", sorted(METHODS))
def test_after_a_kill_at_any_moment_the_log_has_all_that_anybody_was_told(method):
    """With `log`: the kernel has all that was written, but for a part of the last write."""
    done, thetas = happened(method, "log")

    assert is_renewed(done)
    check_all(done, thetas, method, "kill")


@pytest.mark.slow
@pytest.mark.parametrize(("durability", "how"), [("fsync", "power-cut"), ("fsync", "kill"), ("log", "kill")])
def test_whenever_it_breaks_off_a_run_can_be_resumed(durability, how):
    """Each file of its folder is whole, and journal and log together have each update once."""
    check_all(*happened("asgd", durability), "asgd", how, check)


@given(
    method=st.sampled_from(sorted(METHODS)), script=SCRIPTS, every=st.integers(1, 5), bytes_min=st.integers(0, 9_000),
    how=st.sampled_from([("fsync", "power-cut"), ("log", "kill")]),
)  # fmt: skip
def test_whatever_happens_the_log_has_what_was_told(method, script, every, bytes_min, how):
    """Any script."""
    durability, end = how
    done, thetas = happened(method, durability, script, bytes_min=bytes_min, every=every)
    check_all(done, thetas, method, end)


def test_a_snapshot_has_the_records_that_wait_for_the_disk():
    """The shell holds them back while the log is begun anew, and the entries that they came of are gone."""
    folder, pushes = FolderInMemory(), LoggedServer("asgd")
    server = server_of("asgd", durability="fsync")
    log = ServerLog(server, folder)
    log.begin(0.0)
    unused = [None] * 5
    node = LiveNode(server.plan, server, Lifetime(time.monotonic_ns()), *unused, log=log, commits=GroupCommit(log))
    node._handle(MessageReceived("edge-0", Join(sender="edge-0", incarnation=1), (), 100))
    pushes.steps["edge-0"], pushes.joined["edge-0"] = 0, 0
    push, frames = pushes._push("edge-0")
    log.bound = 0.0
    node._handle(MessageReceived("edge-0", push, frames, 100))
    with folder.read("server.log") as file:
        found = recover(file.read(), "asgd")

    assert found.replayed.updates == 0
    assert [type(record) for _, record in found.log.untold] == [records.Joined, records.Update]


def _without(what, where):
    """Nothing of that kind is asked of such files."""
    return lambda done: [each for each in done if not (each[0] == what and where(str(each[-1])))]


MISTAKES = {
    "new files are not synced before they are renamed": _without("sync", lambda path: "/." in path),
    "folders are not synced": _without("sync-folder", lambda path: True),
    "new folders' names are not synced": _without("sync-folder", lambda path: path.endswith(("asgd", "0001"))),
    "the log is not synced": _without("sync", lambda path: path.endswith("/server.log")),
    "the journal is not synced": _without("sync", lambda path: path.endswith("events.jsonl")),
}


def finds(done, thetas):
    """Whether a power cut shows that something is lost."""
    try:
        check_all(done, thetas, "asgd", "power-cut", check)
    except (AssertionError, EdgebedError, FileNotFoundError):
        return True
    return False


@pytest.mark.parametrize("mistake", sorted(MISTAKES))
def test_a_planted_mistake_is_found(mistake):
    """So the tests above can fail."""
    done, thetas = happened("asgd", "fsync")
    assert len(MISTAKES[mistake](done)) < len(done)

    assert finds(MISTAKES[mistake](done), thetas)


def test_an_answer_before_the_sync_is_found():
    """A server that does not wait for the disk."""
    assert finds(*happened("asgd", "fsync", held=False))
    assert not finds(*happened("asgd", "fsync"))
