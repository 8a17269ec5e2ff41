"""Links on other kernels than this machine's: one that has netem, and ones that lack something, booted as a process.

The tests that need netem are test_netem.py's, and run inside. Skipped where no kernel can be booted.
"""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import booted_kernel
import pytest
from booted_kernel import MODULES

import edgebed
from edgebed.core import records
from edgebed.journal.series import Series

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent.relative_to(ROOT)
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color", "no", "--timeout", "0")
EDGEBED = (sys.executable, "-m", "edgebed")
SCENARIO = {
    "name": "lossy",
    "question": "Does a run hold where the kernel delays and loses packets?",
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "method": "adacomp",
    "fleet": {"edge": {"count": 1, "uplink": "10mbit", "downlink": "20mbit", "latency": "20ms", "loss": "1%",
                       "waiting": "200ms"}},
    "evaluation": {"every": "1h"},
    "stop": {"updates": 60},
}  # fmt: skip
EACH_MODULE = f"""
from booted_kernel import load
from edgebed.core.errors import InfrastructureError
from edgebed.emulation import switch
for module in (None, *{MODULES}):
    load([module] if module else [])
    try:
        print(switch.probe())
    except InfrastructureError as error:
        print(type(error).__name__, error)
"""


@pytest.fixture
def boot(monkeypatch) -> Callable[..., tuple[int, str]]:
    """Exit code of a command in a kernel of its own, and what it said; it begins in the checkout, and finds it."""
    if reason := booted_kernel.why_no_kernel():
        pytest.skip(f"no kernel can be booted: {reason}")
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}/services:{ROOT}/tests/shared")
    monkeypatch.delenv("EDGEBED_TEST_REPORT", raising=False)

    def run(*command: str, seconds: float = 100.0, **options) -> tuple[int, str]:
        output = io.BytesIO()
        code = booted_kernel.run(command, seconds=seconds, output=output, **options)
        return code, output.getvalue().decode(errors="replace")

    return run


@pytest.mark.timed
def test_links_hold_on_a_kernel_that_has_netem(boot):
    """Latency, jitter and loss: asked, read back and measured, by the tests that need netem."""
    code, said = boot(*PYTEST, "-m", "netem and not campaign", f"{HERE}/test_netem.py")

    assert code == 0, said
    assert "skipped" not in said


def test_each_thing_that_a_kernel_lacks_is_named(boot):
    """By what it is and the module that has it, until nothing is lacking; netem alone can be done without."""
    code, said = boot(sys.executable, "-c", EACH_MODULE, without=MODULES)

    assert code == 0, said
    lacking = ["bridge", "veth", "tbf", "ifb", "ingress", "u32 or mirred", "u32 or mirred"]
    assert [line.partition(" (modprobe")[0] for line in said.splitlines()] == [
        *(f"KernelLackError this kernel has no {what}" for what in lacking),
        "Features(netem=False)",
        "Features(netem=True)",
    ]


def test_without_the_package_the_reason_says_what_to_install(monkeypatch):
    """In a word, with exit code 3; so does a test that is skipped for it."""
    monkeypatch.setenv("PATH", "/nowhere")
    command = [sys.executable, booted_kernel.__file__, "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (3, "no linux.uml: apt-get install user-mode-linux\n")


@pytest.mark.campaign
def test_a_command_that_does_not_end_is_ended_with_its_kernel(boot):
    """After its time, whatever it does; nothing of what it wrote is there, and its exit code is its own otherwise."""
    mark = ROOT / "tests/emulation/.written"
    assert boot("bash", "-c", f"trap '' TERM; touch {mark}; sleep 1000", seconds=6.0) == (
        124, f"touch: cannot touch '{mark}': Read-only file system\n",
    )  # fmt: skip
    assert boot("bash", "-c", "echo said; exit 7") == (7, "said\n")


@pytest.mark.campaign
def test_all_tests_of_emulation_pass_on_a_kernel_that_has_netem(boot):
    """Those that measure no times; those that need netem with all that a campaign has time for."""
    code, said = boot(*PYTEST, "-m", "not timed", str(HERE), f"--ignore={HERE}/{Path(__file__).name}", seconds=900.0)

    print(said)
    assert code == 0
    assert "skipped" not in said


@pytest.mark.campaign
def test_programs_run_where_netem_delays_and_cgroups_are_of_version_2(boot):
    """A latency that is not made turns the verdict; lives, ends and memory caps are as on this machine."""
    chosen = "latency or next_life or how_programs_end"
    code, said = boot(*PYTEST, "-k", chosen, "tests/process/test_program_mutants.py", "tests/process/test_programs.py",
                      seconds=500.0)  # fmt: skip

    print(said)
    assert code == 0
    assert "skipped" not in said


@pytest.mark.campaign
def test_a_run_over_links_of_latency_and_loss_is_trusted(boot, tmp_path):
    """The process runtime, end to end: netem is read back by the node, packets are lost, and nobody is late for it.

    Trusted, unless the one slow core is late by itself, which is said of the host and of nothing else.
    """
    scenario = tmp_path / "lossy.yaml"
    scenario.write_text(json.dumps(SCENARIO))
    command = (*EDGEBED, "run", str(scenario), "--runtime", "process", "--emulation", "kernel", "--runs-dir")
    code, said = boot(*command, str(tmp_path / "runs"), seconds=500.0, writes=tmp_path)

    print(said)
    assert code == 0
    (trial,) = edgebed.load("lossy", runs_dir=tmp_path / "runs").trials.values()
    series = Series.from_journal(trial.folder.journal)
    assert not [reason for reason in trial.summary.fidelity.reasons if not reason.startswith("host")]
    last: records.Link = series.links["edge-0"][-1]
    assert (last.mechanism, last.delay, last.latency_s, last.loss, last.problem) == ("tc", "netem", 0.02, 0.01, "")
    worker = next(row for row in trial.summary.fidelity.nodes if row.node == "edge-0")
    for way in (worker.uplink, worker.downlink):
        assert 0.0 < way.drops < 0.05
        assert 0.02 <= way.delay_s < 0.05


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("without", "emulation", "said"),
    [
        (("bridge",), "kernel", "error: the kernel cannot hold links here: this kernel has no bridge (modprobe bridge"),
        (("bridge",), "auto", ".loss: packets cannot be lost here: this kernel has no bridge (modprobe bridge"),
        (("sch_netem",), "kernel", ".loss: packets cannot be lost here: this kernel has no netem (modprobe sch_netem"),
    ],
)
def test_a_run_that_a_kernel_cannot_do_is_not_the_users_mistake(boot, tmp_path, without, emulation, said):
    """Exit code 3, nothing started, and nobody who is root already is told to become it."""
    scenario = tmp_path / "lossy.yaml"
    scenario.write_text(json.dumps(SCENARIO))
    command = (*EDGEBED, "run", str(scenario), "--runtime", "process", "--emulation", emulation, "--runs-dir")
    code, output = boot(*command, str(tmp_path / "runs"), without=without, writes=tmp_path, seconds=500.0)

    assert code == 3, output
    words = " ".join(output.split())  # lines break at words
    assert said in words
    assert "as root" not in words
    assert not list(tmp_path.glob("runs/*/*"))
