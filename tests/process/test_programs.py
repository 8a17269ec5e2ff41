"""Programs of the user's as processes, as root: three small Python programs over plain sockets, on links of 10 mbit.

Method: real trials with plans made by hand. What the programs print, the journal and the kernel tell what was done.
"""

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest
from program_trials import ProgramTrial, nodes, plan, python, run

from edgebed.core import records
from edgebed.core.planned.fault import AtMeasure, FaultPlan, FaultStep, Injection, Trigger
from edgebed.core.planned.program import Ends, OutputMeasure, Program, Ready
from edgebed.core.process_names import own_process_name, process_name
from edgebed.emulation.cgroups import PREFIX, remove_leftovers
from edgebed.emulation.means import why_no_cgroups, why_no_namespaces
from edgebed.journal.journal import read_journal

pytestmark = pytest.mark.skipif(bool(why_no_namespaces() or why_no_cgroups()), reason="that takes root")

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


def left(pid: int, name: str) -> list[object]:
    """What there is of the trials of the process of this number and name: processes that it began, and cgroups."""
    begun = psutil.Process(pid).children(recursive=True) if psutil.pid_exists(pid) else []
    helpers = [each for each in begun if any(word.startswith("edgebed.emulation.") for word in each.cmdline())]
    return [*helpers, *Path("/sys/fs/cgroup").glob(f"**/{PREFIX}{name.replace('/', '_')}_*")]


def own_left() -> list[object]:
    """What there is of this process's trials."""
    return left(os.getpid(), own_process_name())


def test_what_a_program_sends_passes_its_link(tmp_path: Path) -> None:
    """Two clients send a megabyte each to a server that is ready when it listens; none is quicker than its link."""
    files = tmp_path / "app"
    files.mkdir()
    (files / "server.py").write_text(SERVER)
    server, *clients = nodes((sys.executable, "server.py"), python(CLIENT), python(CLIENT))
    server = msgspec.structs.replace(server, ready=Ready(port=PORT), device_class="hub")
    clients = [msgspec.structs.replace(each, after=("hub",)) for each in clients]
    program = Program(files=str(files), measures=(OutputMeasure(name="got", pattern="got=([0-9]+)"),))
    trial = run(tmp_path, plan([server, *clients], program=program))

    assert trial.ended == records.Ended(outcome="completed", reason="all programs have ended")
    assert [record.measured for record in trial.all(records.Measured, "home-0")] == [{"got": BYTES}] * 2
    began = {record.name: t for t, _, record in trial.entries if isinstance(record, records.Node)
             and record.state == "started"}  # fmt: skip
    ready_s = next(t for t, _, record in trial.entries if isinstance(record, records.Node) and record.state == "ready")
    assert min(began["home-1"], began["home-2"]) >= ready_s > began["home-0"]
    last_s = trial.entries[-1][0]
    assert last_s - ready_s >= 2 * BYTES * 8 / 10e6, "the server's link carries no more"
    got = {record.peer: record.received_bytes for record in trial.all(records.Connections, "home-0")}
    assert got == {"home-1": BYTES + 1, "home-2": BYTES + 1}, "TCP counts the end of a connection as a byte"
    assert not (trial.folder.path / "files").exists()
    assert own_left() == []


def test_a_killed_program_keeps_its_place_in_its_next_life(tmp_path: Path) -> None:
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
    trial = run(tmp_path, plan(nodes(python(text)), program=program, faults=(kill,)))

    assert trial.output("home-0").splitlines() == ["life 1 10.0.0.1 False", "step=1", "life 2 10.0.0.1 True"]
    first, second = trial.exits("home-0")
    assert (first.signal, first.asked, second.code, second.incarnation) == ("SIGKILL", True, 0, 2)
    assert [(record.action, record.problem, record.no_op) for record in trial.all(records.Fault)] == [
        ("kill", "", ""), ("launch", "", "")
    ]  # fmt: skip
    assert trial.ended.outcome == "completed"
    assert (trial.folder.path / "scratch" / "home-0" / "mark").exists(), "what it wrote is kept"
    assert own_left() == []


def test_freezes_act_on_all_of_a_program_and_cuts_on_its_link(tmp_path: Path) -> None:
    """A frozen program's child stands still, too; of a node that is cut nothing arrives, and its program runs on."""
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
    trial = run(tmp_path, plan(nodes(python(hear), python(TICKS), python(beat)), faults=faults, stop_time_s=4.0))

    assert gaps(trial, "home-1", "main") > 1.2
    assert gaps(trial, "home-1", "child") > 1.2
    assert gaps(trial, "home-0", "main") > 1.2
    assert trial.ended.reason == "4s have passed"
    assert {record.asked for node in trial.plan.nodes for record in trial.exits(node.node)} == {True}
    cut = [record for record in trial.all(records.Link, "home-2") if record.cut]
    assert cut, "its witness knows of the cut"
    assert not any(record.differed for record in trial.all(records.Link))
    assert own_left() == []


def test_between_two_nothing_passes_and_a_third_reaches_both(tmp_path: Path) -> None:
    """Nobody gets an error, and the next life of one of the two is cut off from the other as well."""
    talk = f"""
import os, socket, time
me = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
me.bind(("", {PORT}))
me.settimeout(0.05)
own = os.environ["EDGEBED_NODE"]
while True:
    for other in ("home-0", "home-1", "home-2"):
        me.sendto(own.encode(), (other, {PORT}))
    try:
        for _ in range(3):
            print(f"tick={{me.recv(99).decode()}} {{time.monotonic()}}", flush=True)
    except TimeoutError:
        pass
"""
    between = [
        FaultStep(after_s=after_s, injection=Injection(node="home-0", action=action, peer="home-1"))
        for after_s, action in ((0.0, "cut"), (3.0, "heal"))
    ]
    faults = (
        FaultPlan(name="between", node="home-0", trigger=Trigger(at_s=1.0), steps=tuple(between)),
        fault("home-1", (0.0, "kill"), (0.3, "launch"), at_s=1.5),
    )
    trial = run(tmp_path, plan(nodes(*[python(talk)] * 3), faults=faults, stop_time_s=6.0))

    assert gaps(trial, "home-0", "home-1") > 2.5
    assert gaps(trial, "home-1", "home-0") > 2.5
    assert gaps(trial, "home-0", "home-2") < 2.5
    assert gaps(trial, "home-2", "home-0") < 2.5
    assert "Error" not in trial.output("home-0") + trial.output("home-2")
    assert {each.apart for each in trial.all(records.Link, "home-1")} == {(), ("home-0",)}
    assert not any(each.differed for each in trial.all(records.Link))
    assert not any(each.problem for each in trial.all(records.Fault))
    assert own_left() == []


def test_all_programs_start_anew_together(tmp_path: Path) -> None:
    """`restart-all`: one ends with 1 in its first life; in the next all end with 0."""
    text = "import os, sys, time; time.sleep(0.3); sys.exit(os.environ['EDGEBED_INCARNATION'] == '1')"
    wait = "import os, time; os.environ['EDGEBED_INCARNATION'] == '1' and time.sleep(60)"
    trial = run(tmp_path, plan(nodes(python(text), python(wait)), on_failure="restart-all", restart_delay_s=0.1))

    assert [(record.code, record.signal) for record in trial.exits("home-0")] == [(1, ""), (0, "")]
    assert [(record.code, record.signal) for record in trial.exits("home-1")] == [(None, "SIGKILL"), (0, "")]
    assert trial.ended == records.Ended(outcome="completed", reason="all programs have ended")


def test_how_programs_end_is_told(tmp_path: Path) -> None:
    """By code, by signal, and out of memory; what one had started and left is killed, and counted."""
    ends = [
        python("import sys; print('so long'); sys.exit(3)"),
        python("import os; os.kill(os.getpid(), 11)"),
        python("data = b'x' * (1 << 28)\nprint(len(data))"),
        python("import subprocess; subprocess.Popen(['sleep', '600']); subprocess.Popen(['sleep', '600'])"),
    ]
    programs = list(nodes(*ends))
    programs[2] = msgspec.structs.replace(programs[2], memory_bytes=1 << 26)
    trial = run(tmp_path, plan(programs))
    exits = [trial.exits(node.node)[-1] for node in trial.plan.nodes]

    assert [(each.code, each.signal, each.oom, each.left) for each in exits] == [
        (3, "", False, 0), (None, "SIGSEGV", False, 0), (None, "SIGKILL", True, 0), (0, "", False, 2)
    ]  # fmt: skip
    assert trial.ended.outcome == "failed"
    assert "home-0: exit code 3, home-1: SIGSEGV, home-2: out of memory" in trial.ended.reason
    reasons = {record.name: record.reason for record in trial.all(records.Node) if record.state in ("died", "stopped")}
    assert reasons["home-0"] == "exit code 3; last line: 'so long'"
    assert own_left() == []


def test_a_command_that_is_not_there_fails_the_trial(tmp_path: Path) -> None:
    """With its name and 127."""
    trial = run(tmp_path, plan(nodes(("no-such-command",), python(SLEEP)), on_failure="restart"))

    assert trial.ended.outcome == "failed"
    assert trial.ended.reason.startswith("home-0: exit code 127")
    assert "no-such-command: not found" in trial.ended.reason
    assert [record.signal for record in trial.exits("home-1")] == ["SIGTERM"]


def test_readiness_is_a_port_a_line_a_file_or_a_time(tmp_path: Path) -> None:
    """Each class comes after the one before, and none before that shows that it is ready."""
    show = "import time\ntime.sleep(0.3)\n{}\ntime.sleep(60)"
    programs = list(
        nodes(
            python(show.format(f"import socket\nlistener = socket.create_server(('', {PORT}))")),
            python(show.format("print('now listening')")),
            python(show.format("open('up', 'w')")),
            python(SLEEP),
            python("print('all are there')"),
        )
    )
    shown = (Ready(port=PORT), Ready(log="listening$"), Ready(file="up"), Ready(after_s=0.5), Ready())
    for k, ready in enumerate(shown):
        after = (f"c{k - 1}",) if k else ()
        programs[k] = msgspec.structs.replace(programs[k], device_class=f"c{k}", ready=ready, after=after)
    trial = run(tmp_path, plan(programs, program=Program(ends=Ends(kind="log", log="all are there"))))

    states = [(record.name, record.state) for record in trial.all(records.Node) if record.state in ("started", "ready")]
    assert states == [(f"home-{k}", state) for k in range(5) for state in ("started", "ready")]
    assert trial.ended == records.Ended(outcome="completed", reason="home-4 has said what matches 'all are there'")


def test_output_is_kept_up_to_a_limit(tmp_path: Path) -> None:
    """Its first and its last part; measures beyond what is taken in a second are counted."""
    text = "for k in range(3000):\n    print(f'step={k}')\nprint('step=nan')"
    program = Program(measures=(OutputMeasure(name="step", pattern="step=(.+)"),))
    trial = run(tmp_path, plan(nodes(python(text)), program=program), kept_bytes=1000)
    (output,) = trial.all(records.Output)
    lines = trial.output("home-0").splitlines()

    assert output.bytes == sum(len(f"step={k}\n") for k in range(3000)) + len("step=nan\n")
    assert output.left_out_bytes == output.bytes - 2000
    assert (lines[0], lines[-1]) == ("step=0", "step=nan")
    assert f"[edgebed: {output.left_out_bytes:,} bytes were left out here]" in lines
    assert output.unusable == 1
    assert len(trial.all(records.Measured)) + output.dropped == 3000


SCRIPT = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parents[1] / "shared")!r}]
from pathlib import Path
from program_trials import nodes, plan, python, run
run(Path(sys.argv[1]), plan(nodes(python({TICKS!r}), python({SLEEP!r}))))
"""


def begun(path: Path) -> "subprocess.Popen[bytes]":
    """A controller in a process of its own, whose trial has begun."""
    controller = subprocess.Popen([sys.executable, "-c", SCRIPT, str(path)], env=os.environ)
    journal = path / "run" / "program" / "events.jsonl"
    eventually(lambda: journal.exists() and '"kind":"trial"' in journal.read_text(), "the trial begins")
    return controller


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait until something is so; AssertionError if it is not within a minute."""
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(what)


def test_a_killed_controller_leaves_nothing_that_the_next_command_does_not_remove(tmp_path: Path) -> None:
    """Programs and witnesses end with it; what programs had started is in cgroups that are then removed."""
    controller = begun(tmp_path)
    name, helpers = process_name(controller.pid), psutil.Process(controller.pid).children(recursive=True)
    controller.kill()
    controller.wait()
    eventually(lambda: not any(each.is_running() for each in helpers), "witnesses and programs end")

    remove_leftovers(lambda _: None)  # as the trials of other tests that begin now do
    eventually(lambda: not left(controller.pid, name), "nothing is left")


def test_an_interrupted_trial_ends_in_order(tmp_path: Path) -> None:
    """Programs are asked to end by SIGTERM, all of their processes."""
    controller = begun(tmp_path)
    name = process_name(controller.pid)
    controller.send_signal(signal.SIGINT)
    controller.wait(timeout=60)

    entries = list(read_journal(tmp_path / "run" / "program" / "events.jsonl"))
    assert entries[-1][2] == records.Ended(outcome="interrupted", reason="the user ended the run")
    assert [record.signal for _, _, record in entries if isinstance(record, records.Exited)] == ["SIGTERM"] * 2
    assert left(controller.pid, name) == []


SCENARIO = """
name: by-hand
question: Does it do what the user asks for?
program: { run: python -c 'import time; time.sleep(600)' }
fleet: { home: { count: 2 } }
on_failure: restart
restart_delay: 100ms
"""


def test_programs_of_a_run_are_acted_on_by_hand(begin: Callable[..., "LiveRun"]) -> None:  # noqa: F821 # conftest.py's
    """From another terminal: one is killed, and restarted by the policy; a cut is undone; then the run is ended."""
    trial = begin(SCENARIO)
    trial.has(lambda record: isinstance(record, records.Trial), "the trial begins")
    assert trial.command("kill", "home-1")[0] == 0
    trial.until(lambda: trial.states("home-1").count("running") == 2, "its next life")
    assert trial.command("cut", "home")[0] == 0
    assert trial.command("heal", "home")[0] == 0
    assert trial.command("kill", "no-such-node")[0] == 2
    trial.process.send_signal(signal.SIGINT)
    trial.process.communicate(timeout=60)

    done = [(record.name, record.action, record.target) for record in trial.all(records.Fault)]
    assert done == [
        ("by hand", "kill", "home-1"),
        ("on_failure", "launch", "home-1"),
        *(("by hand", action, f"home-{k}") for action in ("cut", "heal") for k in range(2)),
    ]
    assert trial.process.returncode == 130
    assert own_left() == []
