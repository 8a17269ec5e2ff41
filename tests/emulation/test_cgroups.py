"""Caps that the kernel holds: with real processes in version 1, and on a tree of plain files in version 2."""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tasks import one_array

from edgebed.core.errors import InfrastructureError
from edgebed.core.plan import Method, Part, Task, TrainingNode, WorkerPlan
from edgebed.core.process_names import process_name
from edgebed.emulation import cgroups, means
from edgebed.emulation.caps import cpu_quota_us
from edgebed.emulation.cgroups import PREFIX, Cgroups, enter, mounts, remove_leftovers

pytestmark = [pytest.mark.process, pytest.mark.alone]  # it measures in wall-clock time

MIB = 2**20
WINDOW_S = 1.0
ENTER = "import sys; from edgebed.emulation.cgroups import enter; enter(sys.argv[1:]); print('in', flush=True)\n"
SPIN = f"{ENTER}while True: pass"
HOG = f"{ENTER}held = []\nwhile True: held.append(bytes([1]) * 2**20)"
CONTROLLER = """
import sys, time
from edgebed.emulation.cgroups import Cgroups
cgroups = Cgroups()
for folder in set(cgroups.parents.values()):
    (folder / "edge-0").mkdir()
    print(folder, flush=True)
print(flush=True)
time.sleep(600)
"""

BYSTANDER = """
import codecs, os, sys
from pathlib import Path
from edgebed.emulation import cgroups
from edgebed.core.errors import InfrastructureError
codecs.lookup("ascii")  # the interpreter may lie where another user reads nothing
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
cgroups.REMOVE_S_MAX = 3600.0
print(cgroups.remove_leftovers(print))
try:
    cgroups._remove(Path(sys.argv[1]))
except InfrastructureError as error:
    print(error)
"""


def node(cpus: float | None = None, memory_bytes: int | None = None) -> TrainingNode:
    """A worker with these caps."""
    task = Task(model="-", inputs=one_array((1,)), outputs=2, layout=(), batch_size=1, gradient_time_s=0.01)
    part = Part(name="-")
    method = Method(name="-", parts={"aggregation": part, "compression": part, "local_work": part})
    return WorkerPlan(
        node="edge-0", device_class="edge", seed=1, task=task, method=method, cpus=cpus,
        memory_bytes=memory_bytes,
    )  # fmt: skip


@pytest.fixture
def real():
    """This machine's cgroups."""
    if os.geteuid() != 0:
        pytest.skip("cgroups need root: run the tests as root")
    made = Cgroups()
    yield made
    made.remove()


@contextlib.contextmanager
def process(code: str, *arguments: str):
    """A process that has said its first line."""
    with subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True) as started:
        try:
            started.first = started.stdout.readline()
            yield started
        finally:
            started.kill()


def test_a_node_gets_the_share_of_a_core_that_it_is_capped_at(real):
    """One that would compute all the time; on a busy machine it may get less, so the best of three windows counts."""
    folders = real.make(node(cpus=0.5))
    shares = []
    with process(SPIN, *folders):
        for _ in range(3):
            before_s, began_s = real.account("edge-0").cpu_s, time.monotonic()
            time.sleep(WINDOW_S)
            shares.append((real.account("edge-0").cpu_s - before_s) / (time.monotonic() - began_s))

    assert max(shares) == pytest.approx(0.5, abs=0.06)
    assert real.account("edge-0").throttled_periods >= 1


def test_a_node_beyond_its_memory_is_killed_and_its_account_tells(real):
    """Peak, limit and the kill are known after its end, which a container's would not be."""
    folders = real.make(node(memory_bytes=48 * MIB))
    with process(HOG, *folders) as hog:
        status = hog.wait(timeout=30)
    account = real.account("edge-0")

    assert status == -signal.SIGKILL
    assert account.oom_kills == 1
    assert account.memory_limit_bytes == 48 * MIB
    assert 40 * MIB < account.peak_bytes <= 48 * MIB


def test_a_cap_changes_while_a_node_computes_and_goes(real):
    """Halved, and taken away: the kernel holds it at once."""
    folders = real.make(node(cpus=0.5))
    with process(SPIN, *folders):
        held = [real.account("edge-0").cpu_limit_cores]
        for cpus in (0.1, None, 0.25):
            real.cap_cpus("edge-0", cpus)
            held.append(real.account("edge-0").cpu_limit_cores)

    assert held == [0.5, 0.1, None, 0.25]
    assert real.capped == {"edge-0": 0.25}


def test_what_a_node_did_in_an_earlier_life_is_not_its_own(real):
    """It enters the cgroup of that life, whose account goes on: neither the kill nor the peak is the new one's."""
    folders = real.make(node(memory_bytes=48 * MIB))
    real.begin_incarnation("edge-0")
    with process(HOG, *folders) as hog:
        hog.wait(timeout=30)
    first = real.account("edge-0")
    real.begin_incarnation("edge-0")
    with process(f"{ENTER}input()", *folders):
        second = real.account("edge-0")
    real.begin_incarnation("edge-0")
    with process(HOG, *folders) as hog:
        hog.wait(timeout=30)
    third = real.account("edge-0")

    assert [life.oom_kills for life in (first, second, third)] == [1, 0, 1]
    assert real.version == 2 or second.peak_bytes < 40 * MIB < third.peak_bytes


def test_nothing_is_left_even_of_a_process_that_does_not_end(real):
    """What is in a trial's cgroups at its end is the trial's own."""
    with process(SPIN, *real.make(node())) as spinning:
        real.remove()

        assert spinning.wait(timeout=5) == -signal.SIGKILL
    assert not any(folder.exists() for folder in real.parents.values())


def test_what_a_killed_controller_left_is_removed_and_what_a_living_one_has_is_not(real):
    """The folder's name tells whose it is."""
    real.make(node())
    with process(CONTROLLER) as controller:
        left = [Path(line.strip()) for line in (controller.first, *iter(controller.stdout.readline, "\n"))]
        while_alive = remove_leftovers(lambda _: None)
        kept = [folder.is_dir() for folder in left]
    said = []
    removed = remove_leftovers(said.append)

    assert while_alive == 0
    assert all(kept)
    assert removed == 1
    assert said == ["removed 1 cgroup whose controller is gone"]
    assert not any(folder.exists() for folder in left)
    assert all(folder.is_dir() for folder in real.parents.values())


def test_what_root_has_left_costs_another_user_no_time_and_no_traceback(real):
    """Every start of a run looks for it. If it waited for what it may not remove, the test would run out of time."""
    real.make(node())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as gone:
        name = f"{PREFIX}{process_name(gone.pid).replace('/', '_')}_0"
        gone.kill()
    left = [mount / name for mount in set(mounts().values())]
    nodes = [folder / "edge-0" for folder in left]
    for folder in nodes:
        folder.mkdir(parents=True)
    try:
        with process(SPIN, *map(str, nodes)) as spinning:
            found = subprocess.run(
                [sys.executable, "-c", BYSTANDER, *map(str, left)], capture_output=True, text=True, check=False,
                timeout=60,
            )  # fmt: skip

            assert (found.stderr, spinning.poll()) == ("", None)
            reason = f"the cgroup {nodes[0]} cannot be removed: Permission denied"
            assert found.stdout.splitlines() == ["0", reason]
    finally:
        removed = remove_leftovers(lambda _: None)
    assert removed == 1
    assert not any(folder.exists() for folder in left)


# --- version 2, on plain files ---------------------------------------------------------------------------------------

KERNELS_FILES = {
    "cgroup.procs": "", "cgroup.subtree_control": "", "cpu.max": "max 100000", "memory.max": "max",
    "memory.swap.max": "max", "memory.peak": "7", "memory.events": "low 0\noom_kill 2",
}  # fmt: skip


@pytest.fixture
def version_2(tmp_path, monkeypatch) -> Path:
    """A machine whose kernel makes its files in each new cgroup, and keeps one that has processes."""
    base = tmp_path / "sys/fs/cgroup"

    def make(folder: Path) -> None:
        folder.mkdir()
        for name, text in KERNELS_FILES.items():
            (folder / name).write_text(text)

    def remove(folder: Path) -> None:
        if (folder / "cgroup.procs").read_text():
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        shutil.rmtree(folder)

    base.parent.mkdir(parents=True)
    make(base)
    (base / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    monkeypatch.setattr(cgroups, "make_folder", make)
    monkeypatch.setattr(cgroups, "remove_folder", remove)
    return base


def texts(folder: str | Path, *names: str) -> list[str]:
    """What is in the files of a cgroup."""
    return [(Path(folder) / name).read_text() for name in names]


def test_version_2_holds_both_caps_in_one_folder_and_no_swap(version_2, tmp_path):
    """Control is handed down from the root to the trial, and from the trial to its nodes."""
    made = Cgroups(tmp_path)
    (folder,) = made.make(node(cpus=0.25, memory_bytes=64 * MIB))
    usage = made.account("edge-0")

    assert texts(folder, "cpu.max", "memory.max", "memory.swap.max") == ["25000 100000", str(64 * MIB), "0"]
    assert texts(version_2, "cgroup.subtree_control") == ["+cpu +memory"]
    assert texts(Path(folder).parent, "cgroup.subtree_control") == ["+cpu +memory"]
    assert (usage.cpu_limit_cores, usage.memory_limit_bytes, usage.oom_kills) == (0.25, 64 * MIB, 2)


def test_version_2_without_caps_holds_nothing_and_its_root_is_written_once(version_2, tmp_path):
    """What the machine's owner has enabled is left as it is."""
    (version_2 / "cgroup.subtree_control").write_text("cpuset cpu memory")
    (folder,) = Cgroups(tmp_path).make(node())

    assert texts(folder, "cpu.max", "memory.max") == ["max 100000", "max"]
    assert texts(version_2, "cgroup.subtree_control") == ["cpuset cpu memory"]


def test_version_2_changes_a_cap_and_tells_kills_of_lives_apart(version_2, tmp_path):
    """The kernel counts on."""
    made = Cgroups(tmp_path)
    (folder,) = made.make(node(cpus=0.5))

    made.cap_cpus("edge-0", 0.1)
    changed = texts(folder, "cpu.max")
    made.cap_cpus("edge-0", None)
    made.begin_incarnation("edge-0")
    before = made.account("edge-0").oom_kills
    (Path(folder) / "memory.events").write_text("low 0\noom_kill 3")

    assert (changed, texts(folder, "cpu.max")) == (["10000 100000"], ["max 100000"])
    assert (before, made.account("edge-0").oom_kills) == (0, 1)


def test_a_process_enters_by_its_number_and_all_is_removed_when_it_has_left(version_2, tmp_path):
    """The kernel keeps a cgroup with processes, which this one must not kill: it is in none of the kernel's."""
    made = Cgroups(tmp_path)
    (folder,) = made.make(node())
    enter([folder])

    assert texts(folder, "cgroup.procs") == [str(os.getpid())]

    (Path(folder) / "cgroup.procs").write_text("")
    made.remove()

    assert not Path(folder).parent.exists()


def test_a_kernel_without_a_controller_says_which(version_2, tmp_path):
    """As one that was started with its memory accounting off."""
    (version_2 / "cgroup.controllers").write_text("cpu io pids\n")

    with pytest.raises(InfrastructureError, match="no cgroup controller for memory in"):
        mounts(tmp_path)


def test_where_control_is_not_handed_down_nothing_is_left(version_2, tmp_path):
    """As in a container that sees its own cgroup as the root."""
    (version_2 / "cgroup.subtree_control").unlink()

    with pytest.raises(InfrastructureError, match=r"cgroup\.subtree_control cannot be read"):
        Cgroups(tmp_path)
    assert [folder for folder in version_2.iterdir() if folder.is_dir()] == []


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EROFS, errno.EACCES])
def test_where_the_kernel_refuses_to_hand_control_down_nodes_are_paced(version_2, tmp_path, monkeypatch, number):
    """As in a container, whose cgroup has processes or cannot be written; nothing is left, and the reason is told."""
    write = os.write

    def refusing(descriptor: int, data: bytes) -> int:
        if data == b"+cpu +memory":
            raise OSError(number, os.strerror(number))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", refusing)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(means, "Cgroups", lambda: Cgroups(tmp_path))
    reason = means.why_no_cgroups.__wrapped__()

    assert reason.startswith(f"{version_2} does not hand control of CPU and memory down, as in a container: ")
    assert reason.endswith(os.strerror(number))
    assert [folder for folder in version_2.iterdir() if folder.is_dir()] == []


def test_a_process_of_another_namespace_is_not_mistaken_for_this_ones_own_group(version_2, tmp_path, monkeypatch):
    """The kernel gives such a one the number 0."""
    made = Cgroups(tmp_path)
    (folder,) = made.make(node())
    (Path(folder) / "cgroup.procs").write_text("0\n")
    killed = []
    monkeypatch.setattr(os, "kill", lambda *arguments: killed.append(arguments))
    monkeypatch.setattr(cgroups, "REMOVE_S_MAX", 0.05)

    with pytest.raises(InfrastructureError, match="cannot be removed: Device or resource busy"):
        made.remove()
    assert killed == []


def test_a_machine_without_cgroups_says_so(tmp_path):
    """And has no leftovers."""
    with pytest.raises(InfrastructureError, match="no cgroup controller for cpu and memory in"):
        Cgroups(tmp_path)
    assert remove_leftovers(print, tmp_path) == 0


@pytest.mark.parametrize(("cpus", "quota_us"), [(0.5, 50_000), (2.0, 200_000), (0.001, 1_000)])
def test_a_cap_is_a_quota_for_each_tenth_of_a_second(cpus, quota_us):
    """The kernel accepts a millisecond at least."""
    assert cpu_quota_us(cpus) == quota_us
