"""Programs of the user's as processes, as root: what holds of them everywhere, and what is of processes alone.

Method: real trials with plans made by hand. What the programs print, the journal and the kernel tell what was done.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import psutil
import pytest
from msgspec.structs import replace
from program_laws import PORT, SLEEP, TICKS, ProgramLaws, fault, gaps
from program_trials import nodes, plan, python, run

from edgebed.core import records
from edgebed.core.errors import InfrastructureError
from edgebed.core.framing import packet_bytes, segment_bytes
from edgebed.core.planned.fault import FaultPlan, FaultStep, Injection, Trigger
from edgebed.core.planned.link import LinkChange
from edgebed.core.planned.program import Limits, OutputMeasure, Program
from edgebed.core.process_names import own_process_name, process_name
from edgebed.emulation.cgroups import PREFIX, remove_leftovers
from edgebed.emulation.means import why_no_cgroups, why_no_namespaces
from edgebed.journal.journal import read_journal

pytestmark = pytest.mark.skipif(bool(why_no_namespaces() or why_no_cgroups()), reason="that takes root")


def left(pid: int, name: str) -> list[object]:
    """What there is of the trials of the process of this number and name: processes that it began, and cgroups."""
    begun = psutil.Process(pid).children(recursive=True) if psutil.pid_exists(pid) else []
    helpers = [each for each in begun if any(word.startswith("edgebed.emulation.") for word in each.cmdline())]
    return [*helpers, *Path("/sys/fs/cgroup").glob(f"**/{PREFIX}{name.replace('/', '_')}_*")]


def own_left() -> list[object]:
    """What there is of this process's trials."""
    return left(os.getpid(), own_process_name())


class TestProgramsInProcesses(ProgramLaws):
    """Each in a namespace and a cgroup."""

    runtime = "process"
    command = sys.executable
    left = 2

    def nothing_is_left(self) -> None:
        """No process, and no cgroup."""
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


@pytest.mark.timed
def test_between_two_a_rate_holds_and_a_third_has_what_the_links_leave(tmp_path: Path) -> None:
    """Within a tenth in most half seconds in which it holds; both ends read it back."""
    talk = f"""
import os, socket, threading, time
def send(other):
    with socket.create_connection((other, {PORT})) as way:
        while True:
            way.sendall(bytes(16384))
def take():
    with listener.accept()[0] as way:
        began, size = time.monotonic(), 0
        while data := way.recv(1 << 16):
            size += len(data)
            if time.monotonic() > began + 0.5:
                print("took", size, time.monotonic() - began, flush=True)
                began, size = time.monotonic(), 0
listener = socket.create_server(("", {PORT}))
if os.environ["EDGEBED_NODE"] == "home-0":
    time.sleep(0.5)
    for other in ("home-1", "home-2"):
        threading.Thread(target=send, args=(other,)).start()
else:
    take()
"""
    slow = Injection(node="home-1", action="link", peer="home-0", change=LinkChange(uplink_bit_s=1_000_000))
    steps = (FaultStep(after_s=0.0, injection=slow), FaultStep(after_s=6.0, injection=replace(slow, change=None)))
    fault = FaultPlan(name="slow", node="home-1", trigger=Trigger(at_s=1.0), steps=steps)
    trial = run(tmp_path, plan(nodes(*[python(talk)] * 3), faults=(fault,), stop_time_s=9.0))

    def rate_bit_s(node: str, least: float, most: float) -> float:
        took = map(str.split, trial.output(node).splitlines())
        return median(rate for _, size, took_s in took if least < (rate := 8 * int(size) / float(took_s)) < most)

    narrowed, third = rate_bit_s("home-1", 0.0, 3e6), rate_bit_s("home-2", 7e6, 1e9)

    assert narrowed == pytest.approx(1e6 * segment_bytes() / packet_bytes(), rel=0.1)
    assert third == pytest.approx(9e6 * segment_bytes() / packet_bytes(), rel=0.1)
    for node, peer in (("home-0", "home-1"), ("home-1", "home-0")):
        assert [each.narrowed for each in trial.all(records.Link, node)] == [{}, {peer: 1_000_000}, {}]
    assert not any(each.differed for each in trial.all(records.Link))
    assert not any(each.problem or each.no_op for each in trial.all(records.Fault))


def test_all_programs_start_anew_together(tmp_path: Path) -> None:
    """`restart-all`: one ends with 1 in its first life; in the next all end with 0."""
    text = "import os, sys, time; time.sleep(0.3); sys.exit(os.environ['EDGEBED_INCARNATION'] == '1')"
    wait = "import os, time; os.environ['EDGEBED_INCARNATION'] == '1' and time.sleep(60)"
    trial = run(tmp_path, plan(nodes(python(text), python(wait)), on_failure="restart-all", restart_delay_s=0.1))

    assert [(record.code, record.signal) for record in trial.exits("home-0")] == [(1, ""), (0, "")]
    assert [(record.code, record.signal) for record in trial.exits("home-1")] == [(None, "SIGKILL"), (0, "")]
    assert trial.ended == records.Ended(outcome="completed", reason="all programs have ended")


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


AWAY = """
import os, pathlib, sys, time
where = sys.argv[1]
if os.fork() == 0:
    if where == "network":
        os.execvp("nsenter", ["nsenter", "-t", os.environ["PPID"], "-n", "sleep", "60"])
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":")
        if "edgebed" in path:
            folder = pathlib.Path("/sys/fs/cgroup", names, *[path.strip("/"), "below"][: 2 * (where == "below")])
            folder.mkdir(exist_ok=True)
            (folder / "cgroup.procs").write_text(str(os.getpid()))
    time.sleep(60)
time.sleep(5)
"""


def test_who_leaves_its_network_or_its_cgroup_is_seen_and_nobody_is_left(tmp_path: Path) -> None:
    """Where no link and no cap holds it; a cgroup that a program makes in its own is as good as that."""
    runs = [(*python(AWAY), where) for where in ("cgroup", "below", "network")]
    away = f'PPID=$PPID exec {sys.executable} -c "$0" network'
    runs[2] = ("sh", "-c", away.replace("{", "{{"), python(AWAY)[2])
    trial = run(tmp_path, plan(nodes(*runs)))
    seen = {each.name: each.differences for each in trial.all(records.Seen)}

    assert [each.left for node in ("home-0", "home-1", "home-2") for each in trial.exits(node)] == [0, 1, 1]
    assert ["was in its network, and not in its cgroup" in each for each in seen["home-0"]] == [True]
    assert seen.get("home-1", ()) == ()
    assert ["(sleep) was in another network" in each for each in seen["home-2"]] == [True]
    assert own_left() == []


def test_a_program_that_is_told_more_than_the_kernel_takes_is_refused(tmp_path: Path) -> None:
    """With how much it is."""
    told = nodes(python("pass"), environment={"LONG": "x" * 200_000})
    with pytest.raises(InfrastructureError, match=r"home-0 cannot be started: .* have 20\d,\d+ bytes, and the kernel"):
        run(tmp_path, plan(told))
    assert [*own_left(), *tmp_path.rglob("*.end")] == []


def test_limits_that_only_containers_hold_are_told(tmp_path: Path) -> None:
    """Once, before anything starts."""
    program = Program(limits=Limits(scratch_bytes=1 << 20))
    trial = run(tmp_path, plan(nodes(python("pass")), program=program))

    assert ["program.limits hold in containers alone" in each.text for each in trial.all(records.Note)].count(True) == 1
