"""What large fleets need of the controller: its CPU time and memory, what it journals, what is kept for Prometheus.

The controller is the real one, with real sockets. Its nodes are stand-ins, thousands in a process, which say hello,
send heartbeats and report once a second what nodes of a real run had reported in their seconds. Each worker pushes
once in ten seconds, so the server's stand-in reports an update for each ten workers a second.
"""

import contextlib
import json
import os
import signal
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psutil
import zmq
from numpy.typing import NDArray

import edgebed
from edgebed.core import records
from edgebed.core.package import fingerprint
from edgebed.core.planned.fault import Injection
from edgebed.core.runtimes import Runtime
from edgebed.emulation.host_load import HostProbe
from edgebed.journal.run_folder import RunFolder
from edgebed.planning.planning import plan_trials
from edgebed.roles.events import NodeStarted
from edgebed.running.run import run_trials
from edgebed.runtimes.hosting import TrialHost
from edgebed.runtimes.live.authentication import Credentials, new_identity
from edgebed.runtimes.live.heartbeat import HEARTBEAT
from edgebed.runtimes.live.runtime import LiveRuntime
from edgebed.runtimes.live.sockets import management_socket
from edgebed.runtimes.runtime import Assignment
from edgebed.scenario.load import load_scenario
from edgebed.wire import frames as codec
from edgebed.wire import messages

SIZES = (1_000, 3_000)
PROCESSES = 6
SETTLE_S = 5.0
RECORDED_S = 10
"""Nodes tell some things once in so many seconds."""
PAUSE_S = 10
"""Seconds between two pushes of a worker."""
TASK = {"model": "small", "data": "benchmarks.controller:data", "batch_size": 1}
_fork, _spawn = get_context("fork"), get_context("spawn")


def data() -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
    """An example for each worker, of which nobody learns anything."""
    x, y = np.zeros((SIZES[-1], 1, 8, 8), np.uint8), (np.arange(SIZES[-1]) % 10).astype(np.uint8)
    return x, y, x[:10], y[:10]


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """A row for each number of workers."""
    with tempfile.TemporaryDirectory() as folder:
        seconds, page_bytes = _recorded(Path(folder))
    return [_row(workers, 2.0 if quick else 20.0, seconds, page_bytes) for workers in ((100,) if quick else SIZES)]


def _recorded(folder: Path) -> tuple[list[list[str]], int]:
    """What a worker of a real run reported in each of some seconds, as JSON, and the size of its page of metrics."""
    port, pages = 9177, list[int]()

    class Looking:
        """Looks at a node's page before the run ends."""

        def trial_started(self, plan: Any) -> None: ...

        def trial_ended(self, summary: Any) -> None: ...

        def update(self, status: Any) -> None:
            if status.updates and not pages:
                pages.append(_page_bytes(port))

    scenario = {
        "name": "recorded",
        "task": TASK,
        "method": "asgd",
        "fleet": {"edge": {"count": 2, "waiting": "1s", "uplink": "20mbit", "downlink": "20mbit"}},
        "evaluation": {"every": "1h"},
        "stop": {"time": "14s"},
    }
    run = edgebed.run(scenario, runs_dir=folder, port=port, progress=Looking())
    (trial,) = run.trials.values()
    said = [(t, record) for t, node, record in trial.events() if node == "edge-0"]
    found = [list[str]() for _ in range(RECORDED_S)]
    for t, record in said:
        second = int(t - said[0][0]) - 1
        if 0 <= second < RECORDED_S:
            found[second].append(msgspec.json.encode(record).decode())
    return found, pages[0]


def _page_bytes(port: int) -> int:
    targets = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/targets"))
    address = next(each["targets"][0] for each in targets if each["labels"]["role"] == "worker")
    return len(urllib.request.urlopen(f"http://{address}/metrics").read())


def _row(workers: int, seconds: float, recorded: list[list[str]], page_bytes: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        controller = _spawn.Process(target=_control, args=(workers, recorded, folder))
        controller.start()
        try:
            return {
                "workers": workers,
                "page_bytes": page_bytes,
                **_watch(controller.pid or 0, workers, seconds, folder),
            }
        finally:
            for child in psutil.Process(controller.pid).children(recursive=True):
                child.kill()
            controller.kill()
            controller.join()


def _watch(pid: int, workers: int, seconds: float, folder: str) -> dict[str, Any]:
    """What the controller used in these seconds of training, a second."""
    journal, process, began_s = Path(folder) / "fleet/0001/asgd/events.jsonl", psutil.Process(pid), time.monotonic()
    while not journal.exists() or b'"kind":"update"' not in journal.read_bytes():
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            raise RuntimeError("the controller has ended")
        time.sleep(0.5)
    up_s, up_cpu_s = time.monotonic() - began_s, sum(process.cpu_times()[:2])
    time.sleep(SETTLE_S)
    before, size, at_s = process.cpu_times(), journal.stat().st_size, time.monotonic()
    lines = journal.read_bytes().count(b"\n")
    time.sleep(seconds)
    after, grown, took_s = process.cpu_times(), journal.stat().st_size - size, time.monotonic() - at_s
    content = journal.read_bytes()
    return {
        "up_s": up_s,
        "up_cpu_s": up_cpu_s,
        "cpu": (after.user + after.system - before.user - before.system) / took_s,
        "journal_bytes_s": grown / took_s,
        "lines_s": (content.count(b"\n") - lines) / took_s,
        "memory_bytes": process.memory_info().rss,
        "files": process.num_fds(),
        "missed": content.count(b"no heartbeat"),
    }


def _control(workers: int, recorded: list[list[str]], folder: str) -> None:
    """Run a trial of so many stand-ins, until killed."""
    scenario = {
        "name": "fleet",
        "task": TASK,
        "method": "asgd",
        "fleet": {"edge": {"count": workers, "waiting": f"{PAUSE_S}s"}},
        "evaluation": {"every": "1h"},
        "stop": {"time": "1h"},
        "deadlines": {"join": "10m"},
    }
    planned = plan_trials(load_scenario(scenario))
    with TrialHost(StandIns(recorded), 0) as host:
        run_trials(planned, RunFolder.create(Path(folder), "fleet"), host, None)


class StandIns(LiveRuntime):
    """Nodes that train nothing."""

    name: Runtime = "process"

    def __init__(self, recorded: list[list[str]]) -> None:
        self.recorded = recorded

    def prepare(self, say: Callable[[str], None]) -> tuple[str, dict[str, Any]]:
        """Pages are for this machine alone."""
        return "127.0.0.1", {}

    def launcher(self, assignment: Assignment) -> "StandInLauncher":
        """What starts them."""
        return StandInLauncher([node.node for node in assignment.planned.plan.nodes], self.recorded)

    def close(self) -> None:
        """Nothing is left."""


class StandInLauncher:
    """Starts all nodes, a share of them in each of some processes, once all are to be started."""

    name = "process"
    notes: tuple[str, ...] = ()
    host = "127.0.0.1"

    def __init__(self, names: list[str], recorded: list[list[str]]) -> None:
        self.names, self.recorded = names, recorded
        self.started: list[str] = []
        self.number = 0
        self.signal = os.eventfd(0, os.EFD_NONBLOCK)

    def fileno(self) -> int:
        """Readable when nodes were started."""
        return self.signal

    def launch(self, node: str, controller_address: str, secret: str) -> bool:
        """Start them all, when the last is to be started."""
        self.started.append(node)
        self.number += 1
        os.eventfd_write(self.signal, 1)
        if self.number == len(self.names):
            for place in range(PROCESSES):
                told = (self.names[place::PROCESSES], controller_address, secret, self.recorded)
                _fork.Process(target=_stand_in, args=told, daemon=True).start()
        return True

    def inject(self, number: int, injection: Injection) -> None:
        """Nothing: no fault is asked for."""

    def cap(self, node: str) -> None:
        """Nothing: they have no caps."""

    def poll_events(self) -> Iterator[NodeStarted]:
        """Nodes that were started since the last call."""
        os.eventfd_read(self.signal)
        started, self.started = self.started, []
        yield from map(NodeStarted, started)

    def probe(self) -> HostProbe:
        """Begin to look how busy this machine is."""
        return HostProbe()

    def sight(self) -> None:
        """Nowhere: no kernel has them."""

    def began(self, monotonic_s: float) -> None:
        """Nothing: no link changes."""

    def clock_told(self, node: str, clock: records.Clock) -> None:
        """Nothing: they have one clock."""

    def close(self) -> None:
        """Forget the signal; the processes end with the controller's."""
        os.close(self.signal)


class StandIn:
    """A node as the controller sees it."""

    def __init__(self, name: str, context: zmq.Context[Any], address: str, credentials: Credentials) -> None:
        self.name = name
        self.identity = new_identity(name)
        self.socket = management_socket(context, zmq.DEALER, credentials, self.identity)
        self.socket.connect(address)
        self.signs = management_socket(context, zmq.DEALER, credentials, self.identity + HEARTBEAT)
        self.signs.connect(address)
        self.alive: list[Any] = []
        self.epoch_ns = self.reported = self.version = 0
        self.is_ready = self.is_training = False

    def send(self, message: messages.AnyMessage) -> None:
        """Send the controller a message."""
        self.socket.send_multipart(codec.encode(message, ()))

    def hear(self) -> bool:
        """Take the next message, if any."""
        try:
            parts = self.socket.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return False
        message, _ = codec.decode(parts, "management")
        if isinstance(message, messages.Configure):
            self.epoch_ns, self.is_ready = message.epoch_ns, True
            self.alive = codec.encode(messages.Alive(sender=self.name, incarnation=message.incarnation), ())
            self.send(messages.Ready(sender=self.name, data_address=f"{self.name}", metrics_address="127.0.0.1:1"))
        elif isinstance(message, messages.Start):
            self.is_training = True
        return True

    def report(self, said: Sequence[records.AnyRecord]) -> None:
        """Report records of now."""
        t = round((time.monotonic_ns() - self.epoch_ns) * 1e-9, 6)
        durable = self.reported if self.name == "server" else None
        told = tuple((t, record) for record in said)
        self.send(messages.Report(sender=self.name, first=self.reported, records=told, durable=durable))
        self.reported += len(told)


def _stand_in(names: list[str], address: str, secret: str, recorded: list[list[str]]) -> None:
    """So many nodes in this process: a turn of all of them each second. It ends with the controller's process."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the controller's handler would only note that it is to end
    context: zmq.Context[Any] = zmq.Context()
    context.set(zmq.MAX_SOCKETS, 3 * len(names) + 100)
    credentials, code = Credentials.of(secret), fingerprint()
    nodes = [StandIn(name, context, address, credentials) for name in names]
    for node in nodes:
        node.send(messages.Hello(sender=node.name, pid=os.getpid(), code=code))
    while not all(node.is_ready for node in nodes):
        if not sum(node.hear() for node in nodes):
            time.sleep(0.05)
    for turn in count():
        due_s = time.monotonic() + 1.0
        for node in nodes:
            while node.hear():
                pass
            with contextlib.suppress(zmq.Again):  # not connected yet
                node.signs.send_multipart(node.alive, zmq.NOBLOCK)
            if node.is_training:
                node.report(_said(node, turn, recorded, len(names) * PROCESSES))
        time.sleep(max(0.0, due_s - time.monotonic()))


def _said(node: StandIn, turn: int, recorded: list[list[str]], workers: int) -> list[records.AnyRecord]:
    """What a node reports in a second."""
    if node.name.startswith("edge-"):
        texts = [text.replace('"edge-0"', f'"{node.name}"') for text in recorded[turn % len(recorded)]]
        return [msgspec.json.decode(text, type=records.AnyRecord) for text in texts]
    if node.name != "server":
        return []
    said = list[records.AnyRecord]()
    for place in range(workers // PAUSE_S):
        worker, node.version = f"edge-{turn % PAUSE_S + PAUSE_S * place}", node.version + 1
        said.append(
            records.Update(
                worker=worker, incarnation=1, step=turn // PAUSE_S, version=node.version, base=node.version - 1,
                staleness=0, entries=1000, bits=64000, bytes=8000, loss=1.0, sent=8000,
            )
        )  # fmt: skip
    return said
