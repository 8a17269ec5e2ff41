"""What the process runtime survives: killed, frozen, missing, late and doubled nodes, and hostile messages.

Method: a real run of a small scenario in a process of its own; as soon as its journal shows that training goes on,
something is done to it. The journal, the exit code and the processes that are left tell what came of it.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
import zmq
from staged_trial import StagedTrial, TellingLauncher
from waiting import until
from warm_command import WarmCommand

from edgebed.core import records
from edgebed.journal.journal import read_journal
from edgebed.journal.series import Series
from edgebed.journal.start_up import start_up_of
from edgebed.runtimes.live.sockets import data_socket, management_socket
from edgebed.wire import frames as codec
from edgebed.wire import messages

SCENARIO = """
name: failures
question: What does a run live through?
task: { data: digits, model: small, batch_size: 10 }
method: adacomp
fleet: { edge: { count: 3, waiting: 10ms } }
evaluation: { every: 50 updates }
stop: { updates: 400 }
deadlines: { join: 30s, stall: 5s }
"""
DEADLINE_S = 60.0


class Live:
    """A run in a process of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        scenario = folder / "failures.yaml"
        scenario.write_text(SCENARIO)
        self.process = WarmCommand("run", str(scenario), "--runs-dir", str(folder / "runs"), *options)

    @property
    def journal(self) -> Path:
        """Where the trial is journaled."""
        return self.folder / "runs/failures/0001/adacomp/events.jsonl"

    def series(self) -> Series:
        """What the journal says now."""
        return Series.from_journal(self.journal) if self.journal.exists() else Series.empty()

    def train(self) -> "Live":
        """Wait until updates are applied."""
        until(lambda: self.process.poll() is not None or len(self.series().updates) > 20, "training", every_s=0.02)
        assert self.process.poll() is None, self.process.communicate()
        self.descendants = psutil.Process(self.process.pid).children(recursive=True)
        return self

    def pid(self, node: str) -> int:
        """The process of `node`."""
        return next(n.pid for _, n in self.series().nodes if n.name == node and n.state == "joined")

    def end(self) -> int:
        """Wait for the run's end and for every process it started; return its exit code."""
        self.out, self.err = self.process.communicate(timeout=DEADLINE_S)
        _, alive = psutil.wait_procs(self.descendants, timeout=10)
        assert alive == []
        return self.process.returncode

    def last_state(self, node: str) -> records.Node:
        """How `node` ended."""
        return next(n for _, n in reversed(self.series().nodes) if n.name == node)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """A run that trains."""
    run = Live(tmp_path).train()
    yield run
    run.process.kill()
    run.process.wait()


def test_the_fork_server_has_one_thread_and_no_socket(live: Live) -> None:
    """A fork copies one thread only, and a lock or a socket of another would be copied in any state."""
    (fork_server,) = psutil.Process(live.process.pid).children()

    assert fork_server.num_threads() == 1
    assert fork_server.net_connections() == []
    assert len(fork_server.children()) == 5


def test_a_killed_worker_is_noticed_and_the_others_finish(live: Live) -> None:
    """Asynchronous training needs no particular worker; the journal says how the one ended."""
    assert Path(f"/proc/{live.pid('edge-1')}/comm").read_text() == "edge-1\n", "as ps, top and pgrep show it"
    os.kill(live.pid("edge-1"), signal.SIGKILL)

    assert live.end() == 0
    assert live.last_state("edge-1").state == "died"
    assert "SIGKILL" in live.last_state("edge-1").reason
    assert len(live.series().updates) == 400
    assert "degraded: deaths: worker edge-1 died unasked: killed by SIGKILL" in live.out


def test_a_frozen_worker_does_not_hold_the_run_and_is_gone_afterwards(live: Live) -> None:
    """It answers nothing any more, not even the request to stop, and is killed then."""
    os.kill(live.pid("edge-2"), signal.SIGSTOP)

    assert live.end() == 0
    assert live.last_state("edge-2").state == "died"
    assert "stop" in live.last_state("edge-2").reason


def test_when_all_workers_die_the_run_ends_at_once_and_names_the_last(live: Live) -> None:
    """Nobody is left to wait for."""
    for node in ("edge-0", "edge-1", "edge-2"):
        os.kill(live.pid(node), signal.SIGKILL)

    assert live.end() == 3
    assert "no worker is left" in live.series().ended.reason


@pytest.mark.parametrize("node", ["server", "evaluator"])
def test_without_server_or_evaluator_the_run_fails_and_says_so(live: Live, node: str) -> None:
    """Neither can be done without; exit code 3 is the infrastructure's."""
    os.kill(live.pid(node), signal.SIGKILL)

    assert live.end() == 3
    assert f"the {node} died: killed by SIGKILL" in live.series().ended.reason
    assert (live.folder / "runs/failures/0001/report.html").exists()


def test_a_frozen_server_ends_the_run_at_the_stall_deadline(live: Live) -> None:
    """No connection breaks and no process ends, but nothing goes on either."""
    os.kill(live.pid("server"), signal.SIGSTOP)

    assert live.end() == 3
    assert "no update was applied for 5 s" in live.series().ended.reason


@pytest.mark.parametrize(
    ("send", "number"),
    [(os.kill, signal.SIGTERM), (os.killpg, signal.SIGINT)],
    ids=["SIGTERM to the controller", "SIGINT to its group"],
)
def test_ctrl_c_ends_the_run_in_order(live: Live, send: Callable[[int, int], None], number: int) -> None:
    """Nodes say goodbye, the report is written, the exit code is 130; a terminal signals the whole group."""
    send(live.process.pid, number)

    assert live.end() == 130
    assert live.series().outcome == "interrupted"
    assert all(live.last_state(node).state == "stopped" for node in ("server", "evaluator", "edge-0"))
    assert (live.folder / "runs/failures/0001/report.html").exists()
    assert "Traceback" not in live.err


def test_a_second_ctrl_c_waits_for_nobody(live: Live) -> None:
    """A frozen node would be waited for; asked twice, the run ends at once, and still says how."""
    os.kill(live.pid("edge-0"), signal.SIGSTOP)
    live.process.send_signal(signal.SIGINT)
    until(lambda: any(node.state == "stopped" for _, node in live.series().nodes), "the first goodbye", every_s=0.02)
    live.process.send_signal(signal.SIGINT)

    assert live.end() == 130
    assert live.series().outcome == "interrupted"


def test_a_killed_controller_leaves_no_process_and_a_readable_journal(live: Live) -> None:
    """Nobody is there to clean up, so everybody has to see it by themselves."""
    os.kill(live.process.pid, signal.SIGKILL)

    assert live.end() == -signal.SIGKILL
    assert live.series().outcome == "unfinished"
    assert len(live.series().updates) > 20


def test_a_killed_fork_server_takes_its_nodes_along(live: Live) -> None:
    """The run fails with a message instead of a traceback."""
    (fork_server,) = psutil.Process(live.process.pid).children()
    fork_server.kill()

    assert live.end() == 3
    assert "error: the fork server ended" in live.err
    assert "Traceback" not in live.err
    assert live.series().outcome == "failed"


def test_a_full_disk_ends_the_run_with_the_path(tmp_path: Path) -> None:
    """The limit on file sizes stands in for the disk: the journal's write fails in the middle of the run."""
    scenario = tmp_path / "failures.yaml"
    scenario.write_text(SCENARIO)
    limited = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000));"
        "from edgebed.cli.main import main; sys.argv = sys.argv[1:]; main()"
    )
    command = [
        sys.executable, "-c", limited, "edgebed", "run", str(scenario), "--runs-dir", str(tmp_path / "runs"),
        "--set", "server.durability=none",
    ]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)

    assert ended.returncode == 3
    assert "events.jsonl" in ended.stderr
    assert "Traceback" not in ended.stderr
    list(read_journal(tmp_path / "runs/failures/0001/adacomp/events.jsonl"))


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    """Found before anything is started."""
    with zmq.Context() as context, context.socket(zmq.REP) as taken:
        port = taken.bind_to_random_port("tcp://127.0.0.1")
        run = Live(tmp_path, "--port", str(port))
        _, errors = run.process.communicate(timeout=DEADLINE_S)

    assert run.process.returncode == 3
    assert f"127.0.0.1:{port}: the port is in use" in errors


@pytest.mark.timeout(300)  # a busy machine joins late, and is waited for
def test_a_worker_that_never_joins_is_missing_and_the_others_train(tmp_path: Path) -> None:
    """After the join deadline the trial goes on without it."""

    class Forgetful(TellingLauncher):
        def launch(self, node: str, controller_address: str, secret: str) -> bool:
            return node == "edge-1" or super().launch(node, controller_address, secret)

    series = StagedTrial(tmp_path, SCENARIO, "deadlines.join=15s", launcher=Forgetful).run()

    assert series.outcome == "completed"
    assert any(node.name == "edge-1" and node.state == "missing" for _, node in series.nodes)
    assert set(series.workers) == {"edge-0", "edge-2"}


def test_every_node_is_heard_to_start_before_it_trains(tmp_path: Path) -> None:
    """Started, or faster than that with its hello; each phase of the start-up is journaled and none runs backwards."""
    stage = StagedTrial(tmp_path, SCENARIO)
    series = stage.run()
    start_up = start_up_of(stage.planned.plan, series)

    assert {"joined", "running"} <= series.reached_s.keys()
    assert start_up.nodes == 5
    assert 0 < start_up.joined_s <= start_up.training_s < start_up.contributed_s
    assert 0 < start_up.started_s <= start_up.training_s


@pytest.mark.timeout(300)  # a busy machine joins late, and is waited for
def test_a_worker_that_joins_late_takes_part_from_then_on(tmp_path: Path) -> None:
    """It comes when training has long begun; it was missing and is running afterwards."""

    class Late(TellingLauncher):
        def launch(self, node: str, controller_address: str, secret: str) -> bool:
            if node == "edge-1":
                self.late = (node, controller_address, secret)
                return True
            return super().launch(node, controller_address, secret)

    def bring(stage: StagedTrial) -> None:
        until(lambda: stage.watch.state.updates > 50, "training", deadline_s=250.0, every_s=0.02)
        TellingLauncher.launch(stage.launcher, *stage.launcher.late)

    series = StagedTrial(tmp_path, SCENARIO, "deadlines.join=15s", launcher=Late).run(bring)

    assert series.outcome == "completed"
    states = [node.state for _, node in series.nodes if node.name == "edge-1"]
    assert states[:5] == ["expected", "missing", "joined", "ready", "running"]
    assert "edge-1" in series.workers


def test_a_second_process_of_the_same_name_is_refused(tmp_path: Path) -> None:
    """The first stays; the second is told why and ends."""

    def double(stage: StagedTrial) -> None:
        until(lambda: stage.watch.state.updates > 20, "training", every_s=0.02)
        credentials = stage.launcher.credentials
        with zmq.Context() as context, management_socket(context, zmq.DEALER, credentials, "edge-0~2") as client:
            client.linger = 0
            client.connect(stage.launcher.address)
            client.send_multipart(codec.encode(messages.Hello(sender="edge-0", pid=1)))
            if client.poll(10_000):
                stage.answer, _ = codec.decode(client.recv_multipart(), "management")

    stage = StagedTrial(tmp_path, SCENARIO)
    series = stage.run(double)

    assert stage.answer.code == "duplicate"
    assert series.outcome == "completed"
    assert len(series.workers) == 3


ENDLESS = "stop.updates=1000000"
"""The test ends such a run, when it has done what it is to do."""


def goes_on_under(attack: Callable[[StagedTrial], None]) -> Callable[[StagedTrial], None]:
    """Attack in the middle of training, wait until it has gone on, and end the run."""

    def updates_come(stage: StagedTrial) -> None:
        since = stage.watch.state.updates
        until(lambda: stage.watch.state.updates > since + 20, "updates", every_s=0.02)

    def saboteur(stage: StagedTrial) -> None:
        try:
            updates_come(stage)
            attack(stage)
            updates_come(stage)
        finally:
            stage.controller.interruptions = 1

    return saboteur


def test_garbage_on_any_socket_is_counted_and_changes_nothing(tmp_path: Path) -> None:
    """Random frames and frames above the limit of somebody who has the secret, and an HTTP client."""

    def attack(stage: StagedTrial) -> None:
        ready = stage.heart.members["server"].ready
        random = np.random.default_rng(1)
        opened = {ready.data_address: data_socket, ready.management_address: data_socket}
        for address, kind in (opened | {stage.launcher.address: management_socket}).items():
            with zmq.Context() as context, kind(context, zmq.DEALER, stage.launcher.credentials) as client:
                client.linger = 5_000
                client.connect(address)
                for size in (0, 1, 100, 10_000):
                    client.send_multipart([random.bytes(size), random.bytes(size)])
                client.send(random.bytes(2**25))  # above every limit: the connection is ended
            host, port = address.removeprefix("tcp://").split(":")
            with socket.create_connection((host, int(port)), timeout=5) as http:
                http.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 10)

    series = StagedTrial(tmp_path, SCENARIO, ENDLESS).run(goes_on_under(attack))

    assert series.outcome == "interrupted"
    assert series.accounting.closes, series.accounting.problems
    assert series.dropped["data"] >= 4
    assert series.dropped["management"] >= 8


def test_a_flood_of_garbage_leaves_a_small_journal_and_is_counted_in_full(tmp_path: Path) -> None:
    """The first of each second are told apart, the others are a number; training goes on."""

    def flood(stage: StagedTrial) -> None:
        with zmq.Context() as context, data_socket(context, zmq.DEALER, stage.launcher.credentials) as client:
            client.linger = 5_000
            client.connect(stage.heart.members["server"].ready.data_address)
            for _ in range(2_000):
                client.send(b"x" * 1_000)
        until(lambda: sum(record.count for record in dropped(stage)) >= 2_000, "all to be read")

    def dropped(stage: StagedTrial) -> list[records.Dropped]:
        journal = read_journal(stage.folder.journal)
        return [record for _, _, record in journal if isinstance(record, records.Dropped)]

    stage = StagedTrial(tmp_path, SCENARIO, ENDLESS)
    series = stage.run(goes_on_under(flood))

    assert series.outcome == "interrupted"
    assert series.accounting.closes, series.accounting.problems
    assert series.dropped["data"] == 2_000
    assert len(dropped(stage)) < 200


def test_stopping_leaves_the_final_model(tmp_path: Path) -> None:
    """The server hands its model over when the last update is applied."""
    stage = StagedTrial(tmp_path, SCENARIO)
    stage.run()

    assert stage.folder.final_checkpoint.exists()
    assert np.isfinite(stage.checkpoints.latest.theta).all()
