"""What holds of programs wherever they run: a class of tests, with real trials of small Python programs.

Plans are made by hand, with links of 10 mbit. What the programs print, and the journal, tell what was done.
"""

import itertools
import re
from pathlib import Path
from typing import Any

import msgspec
from program_trials import ProgramTrial, nodes, plan, python, run

from edgebed.core import records
from edgebed.core.plan import ProgramsPlan
from edgebed.core.planned.fault import AtMeasure, FaultPlan, FaultStep, Injection, Trigger
from edgebed.core.planned.program import Ends, OutputMeasure, Page, Program, Ready
from edgebed.core.runtimes import Runtime

BYTES = 1_000_000
PORT = 8000
SERVER = f"""
import os, socket
listener = socket.create_server(("", {PORT}))
for _ in range(2):
    client, _ = listener.accept()
    got = 0
    while data := client.recv(65536):
        got += len(data)
    print(f"got={{got}}")
"""
CLIENT = f"""
import os, socket
with socket.create_connection(("home-0", {PORT})) as server:
    server.sendall(bytes({BYTES}))
"""
TICKS = """
import os, sys, time
child = os.fork()
while True:
    os.write(1, f"tick={'child' if child == 0 else 'main'} {time.monotonic()}\\n".encode())
    time.sleep(0.1)
"""
"""A program and its child, each telling the time."""
CALL = """
import json, os, time, urllib.request
from urllib.error import HTTPError
def post(path, **body):
    data = json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(os.environ["EDGEBED_URL"] + path, data, method="POST")):
        pass
def told(what):
    print(what, time.monotonic(), flush=True)
"""
MEET = (
    CALL
    + """
for round in range(3):
    time.sleep(0.5 * int(os.environ["RANK"]))
    told(f"came {round}")
    post("/barriers/round")
    told(f"went {round}")
for step in range(200):
    post("/measures", loss=step)
try:
    post("/measures", los=1)
except HTTPError as error:
    print(error.code, error.read().decode())
"""
)
CALLED = Program(measures=(OutputMeasure(name="loss", pattern=""), OutputMeasure(name="point", pattern="")))
UP = """
import os, pathlib, time
time.sleep(1.2)
pathlib.Path(os.environ["TMPDIR"], "up").touch()
time.sleep(2.0)
raise SystemExit(int(os.environ["EDGEBED_INCARNATION"] == "1"))
"""
QUICK_BYTES = 300_000
QUICK = (
    CALL
    + f"""
import socket
def sent():
    (line,) = [line for line in open("/proc/net/dev") if os.environ["GLOO_SOCKET_IFNAME"] + ":" in line]
    return int(line.split()[9])
post("/barriers/go", nodes=1)
before = sent()
with socket.create_connection(("home-0", {PORT})) as server:
    server.sendall(bytes({QUICK_BYTES}))
    server.shutdown(socket.SHUT_WR)
    server.recv(1)
print(f"sent={{sent() - before}}", flush=True)
"""
)
PAGE = """
import http.server
class Page(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Page.asked += 1
        text = f'# TYPE loss gauge\\nloss{{split="train"}} 9\\nloss{{split="val"}} {Page.asked}\\nsteps_total 7\\n'
        self.send_response(200 if self.path == "/all" else 404)
        self.end_headers()
        self.wfile.write(text.encode())
    def log_message(self, *_):
        pass
http.server.HTTPServer(("", 9100), Page).serve_forever()
"""
SLEEP = "import time; time.sleep(60)"


def fault(node: str, *steps: tuple[float, str], **trigger: object) -> FaultPlan:
    """A fault of a node: (seconds after its trigger, action)."""
    done = tuple(FaultStep(after_s=s, injection=Injection(node=node, action=action)) for s, action in steps)
    return FaultPlan(name="fault", node=node, trigger=Trigger(**trigger), steps=done)


def gaps(trial: ProgramTrial, node: str, who: str) -> float:
    """The longest time between two ticks of a process of a node's."""
    lines = trial.output(node).splitlines()
    times = [float(line.split()[1]) for line in lines if line.startswith(f"tick={who} ")]
    return max(after - before for before, after in itertools.pairwise(times))


class ProgramLaws:
    """The tests, for a runtime."""

    runtime: Runtime
    command: str
    """The Python there."""
    left: int
    """How many are told of two processes that a program has started and left."""

    def python(self, text: str) -> tuple[str, ...]:
        """The command that runs a text."""
        return self.command, *python(text)[1:]

    def run(self, path: Path, plan: ProgramsPlan, **settings: Any) -> ProgramTrial:
        """A trial that has ended, of which nothing is left."""
        trial = run(path, plan, runtime=self.runtime, **settings)
        self.nothing_is_left()
        return trial

    def nothing_is_left(self) -> None:
        """To be checked after each trial."""

    def test_what_a_program_sends_passes_its_link(self, tmp_path: Path) -> None:
        """Two clients send a megabyte each to a server that is ready when it listens; none is quicker than its link."""
        files = tmp_path / "app"
        files.mkdir()
        (files / "server.py").write_text(SERVER)
        server, *clients = nodes((self.command, "server.py"), self.python(CLIENT), self.python(CLIENT))
        server = msgspec.structs.replace(server, ready=Ready(port=PORT), device_class="hub")
        clients = [msgspec.structs.replace(each, after=("hub",)) for each in clients]
        program = Program(files=str(files), measures=(OutputMeasure(name="got", pattern="got=([0-9]+)"),))
        trial = self.run(tmp_path, plan([server, *clients], program=program))

        assert trial.ended == records.Ended(outcome="completed", reason="all programs have ended")
        assert [record.measured for record in trial.all(records.Measured, "home-0")] == [{"got": BYTES}] * 2
        began = {record.name: t for t, _, record in trial.entries if isinstance(record, records.Node)
                 and record.state == "started"}  # fmt: skip
        ready_s = next(
            t for t, _, record in trial.entries if isinstance(record, records.Node) and record.state == "ready"
        )
        assert min(began["home-1"], began["home-2"]) >= ready_s > began["home-0"]
        last_s = trial.entries[-1][0]
        assert last_s - ready_s >= 2 * BYTES * 8 / 10e6, "the server's link carries no more"
        got = {record.peer: record.received_bytes for record in trial.all(records.Connections, "home-0")}
        assert got == {"home-1": BYTES + 1, "home-2": BYTES + 1}, "TCP counts the end of a connection as a byte"
        assert not [*trial.folder.path.glob("files*")]

    def test_bytes_are_counted_from_the_moment_when_all_are_ready(self, tmp_path: Path) -> None:
        """By the interface's own counters, which the program reads: all is sent within a second, and then it ends."""
        files = tmp_path / "app"
        files.mkdir()
        (files / "server.py").write_text(SERVER.replace("range(2)", "range(1)"))
        server, client = nodes((self.command, "server.py"), self.python(QUICK))
        server = msgspec.structs.replace(server, ready=Ready(port=PORT), device_class="hub")
        client = msgspec.structs.replace(client, after=("hub",))
        trial = self.run(tmp_path, plan([server, client], program=Program(files=str(files))))

        sent = int(re.search(r"sent=([0-9]+)", trial.output("home-1"))[1])
        counted = trial.all(records.Usage, "home-1")[-1].uplink_bytes
        assert sent > QUICK_BYTES
        assert abs(counted - sent) < 2_000

    def test_a_killed_program_keeps_its_place_in_its_next_life(self, tmp_path: Path) -> None:
        """Its child is killed with it; address and scratch folder are the same, and it is told its incarnation."""
        text = """
import os, socket, subprocess, sys, time
print("life", os.environ["EDGEBED_INCARNATION"], socket.gethostbyname(socket.gethostname()), os.path.exists("mark"))
if os.path.exists("mark"):
    sys.exit(0)
open("mark", "w").close()
subprocess.Popen(["sleep", "600"])
print("step=1")
time.sleep(60)
"""
        at = AtMeasure(measure="step", value=1)
        kill = fault("home-0", (0.0, "kill"), (0.5, "launch"), at_measure=at)
        program = Program(measures=(OutputMeasure(name="step", pattern="step=([0-9]+)"),))
        trial = self.run(tmp_path, plan(nodes(self.python(text)), program=program, faults=(kill,)))

        address = trial.output("home-0").split()[2]
        assert not address.startswith("127.")
        assert trial.output("home-0").splitlines() == [f"life 1 {address} False", "step=1", f"life 2 {address} True"]
        first, second = trial.exits("home-0")
        assert (first.signal, first.asked, second.code, second.incarnation) == ("SIGKILL", True, 0, 2)
        assert [(record.action, record.problem, record.no_op) for record in trial.all(records.Fault)] == [
            ("kill", "", ""), ("launch", "", "")
        ]  # fmt: skip
        assert trial.ended.outcome == "completed"

    def test_freezes_act_on_all_of_a_program_and_cuts_on_its_link(self, tmp_path: Path) -> None:
        """A frozen program's child stands still, too; from a node that is cut nothing comes, and it runs on."""
        beat = f"""
import socket, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    out.sendto(b"x", ("home-0", {PORT}))
    time.sleep(0.1)
"""
        hear = f"""
import socket, time
heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
heard.bind(("", {PORT}))
while heard.recv(1):
    print(f"tick=main {{time.monotonic()}}")
"""
        faults = (
            fault("home-1", (0.0, "freeze"), (1.5, "thaw"), at_s=1.0),
            fault("home-2", (0.0, "cut"), (1.5, "heal"), at_s=1.0),
        )
        programs = nodes(self.python(hear), self.python(TICKS), self.python(beat))
        trial = self.run(tmp_path, plan(programs, faults=faults, stop_time_s=5.0))

        assert gaps(trial, "home-1", "main") > 1.2
        assert gaps(trial, "home-1", "child") > 1.2
        assert gaps(trial, "home-0", "main") > 1.2
        assert trial.ended.reason == "5s have passed"
        assert {record.asked for node in trial.plan.nodes for record in trial.exits(node.node)} == {True}
        cut = [record for record in trial.all(records.Link, "home-2") if record.cut]
        assert cut, "its witness knows of the cut"
        assert not any(record.differed for record in trial.all(records.Link))

    def test_how_programs_end_is_told(self, tmp_path: Path) -> None:
        """By code, by signal, and out of memory; what one had started and left is killed."""
        ends = [
            "import sys; print('so long'); sys.exit(3)",
            "import os; os.kill(os.getpid(), 11)",
            "data = b'x' * (1 << 28)\nprint(len(data))",
            "import subprocess; subprocess.Popen(['sleep', '600']); subprocess.Popen(['sleep', '600'])",
        ]
        programs = list(nodes(*(self.python(f"{CALL}post('/barriers/all')\n{end}") for end in ends)))
        programs[2] = msgspec.structs.replace(programs[2], memory_bytes=1 << 26)
        trial = self.run(tmp_path, plan(programs))
        exits = [trial.exits(node.node)[-1] for node in trial.plan.nodes]

        assert [(each.code, each.signal, each.oom, each.left) for each in exits] == [
            (3, "", False, 0), (None, "SIGSEGV", False, 0), (None, "SIGKILL", True, 0), (0, "", False, self.left)
        ]  # fmt: skip
        assert trial.ended.outcome == "failed"
        assert "home-0: exit code 3, home-1: SIGSEGV, home-2: out of memory" in trial.ended.reason
        reasons = {
            record.name: record.reason for record in trial.all(records.Node) if record.state in ("died", "stopped")
        }
        assert reasons["home-0"] == "exit code 3; last line: 'so long'"

    def test_a_command_that_is_not_there_fails_the_trial(self, tmp_path: Path) -> None:
        """With its name and 127."""
        trial = self.run(tmp_path, plan(nodes(("no-such-command",), self.python(SLEEP)), on_failure="restart"))

        assert trial.ended.outcome == "failed"
        assert trial.ended.reason.startswith("home-0: exit code 127")
        assert "no-such-command" in trial.ended.reason
        assert [record.signal for record in trial.exits("home-1")] == ["SIGTERM"]

    def test_readiness_is_a_port_a_line_a_file_or_a_time(self, tmp_path: Path) -> None:
        """Each class comes after the one before, and none before that shows that it is ready."""
        show = "import time\ntime.sleep(0.3)\n{}\ntime.sleep(60)"
        programs = list(
            nodes(
                self.python(show.format(f"import socket\nlistener = socket.create_server(('', {PORT}))")),
                self.python(show.format("print('now listening')")),
                self.python(show.format("open('up', 'w')")),
                self.python(SLEEP),
                self.python("print('all are there')"),
            )
        )
        shown = (Ready(port=PORT), Ready(log="listening$"), Ready(file="up"), Ready(after_s=0.5), Ready())
        for k, ready in enumerate(shown):
            after = (f"c{k - 1}",) if k else ()
            programs[k] = msgspec.structs.replace(programs[k], device_class=f"c{k}", ready=ready, after=after)
        trial = self.run(tmp_path, plan(programs, program=Program(ends=Ends(kind="log", log="all are there"))))

        states = [
            (record.name, record.state) for record in trial.all(records.Node) if record.state in ("started", "ready")
        ]
        assert states == [(f"home-{k}", state) for k in range(5) for state in ("started", "ready")]
        assert trial.ended == records.Ended(outcome="completed", reason="home-4 has said what matches 'all are there'")

    def test_a_file_of_an_earlier_life_does_not_show_that_a_program_is_ready(self, tmp_path: Path) -> None:
        """Its folder for temporary files stays over restarts."""
        programs = nodes(self.python(UP), ready=Ready(file="up"))
        trial = self.run(tmp_path, plan(programs, on_failure="restart", restart_delay_s=0.1))
        times = {(each.incarnation, each.state): t for t, _, each in trial.entries if isinstance(each, records.Node)}

        assert trial.ended.outcome == "completed"
        for life in (1, 2):
            assert times[life, "ready"] - times[life, "started"] >= 1.0

    def test_a_barrier_holds_until_all_are_there_and_nothing_of_it_is_on_the_link(self, tmp_path: Path) -> None:
        """Nobody goes before the last has come, three times; what is told is journaled, and carried by no link."""
        trial = self.run(tmp_path, plan(nodes(self.python(MEET), self.python(MEET)), program=CALLED))
        outputs = [trial.output(f"home-{k}") for k in range(2)]
        for number in range(3):
            came, went = (
                [float(re.search(rf"{what} {number} ([.0-9]+)", output)[1]) for output in outputs]
                for what in ("came", "went")
            )
            assert min(went) >= max(came)

        for k, output in enumerate(outputs):
            told = [record.measured for record in trial.all(records.Measured, f"home-{k}")]
            assert told == [{"loss": float(step)} for step in range(200)]
            assert "400 no measure 'los'; program.measures has: loss, point" in output
            assert trial.all(records.Usage, f"home-{k}")[-1].uplink_bytes < 10_000
            assert not trial.all(records.Bypass, f"home-{k}")
        assert trial.ended.outcome == "completed"

    def test_a_program_s_own_page_tells_measures_and_nothing_of_it_is_on_the_link(self, tmp_path: Path) -> None:
        """A value a second, each a measure like any other, at which a fault comes; why one is not there is told."""
        metrics = {"loss": 'loss{split="val"}', "steps": "steps_total", "speed": "steps_per_second", "both": "loss"}
        measures = tuple(OutputMeasure(name=name, pattern="", metric=metric) for name, metric in metrics.items())
        at = AtMeasure(measure="loss", value=3)
        faults = tuple(fault(f"home-{k}", (0.0, "kill"), at_measure=at) for k in range(2))
        there, elsewhere = nodes(self.python(PAGE), self.python(PAGE))
        there = msgspec.structs.replace(there, page=Page(port=9100, path="/all"))
        elsewhere = msgspec.structs.replace(elsewhere, page=Page(port=9100))
        trial = self.run(tmp_path, plan([there, elsewhere], program=Program(measures=measures), faults=faults))

        told = [(t, record.measured) for t, node, record in trial.entries if isinstance(record, records.Measured)]
        assert [measured for _, measured in told][:3] == [{"loss": k, "steps": 7.0} for k in (1.0, 2.0, 3.0)]
        assert told[2][0] - told[0][0] > 1.5, "it is asked once a second"
        assert [record.signal for record in trial.exits("home-0")] == ["SIGKILL"]
        first, second = (trial.all(records.Output, f"home-{k}")[-1].unread for k in range(2))
        where = "http://127.0.0.1:9100"
        assert first == {
            "speed": f"{where}/all has no steps_per_second",
            "both": f"{where}/all has 2 of loss: say which by their labels",
        }
        assert second.keys() == metrics.keys()  # it says 404, or nothing where it was killed a moment ago
        assert all(why.startswith(f"{where}/metrics does not answer: ") for why in second.values())
        for k in range(2):
            assert trial.all(records.Usage, f"home-{k}")[-1].uplink_bytes < 10_000
            assert not trial.all(records.Bypass, f"home-{k}")
