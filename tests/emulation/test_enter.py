"""A program that is started where its node is: real namespaces, cgroups and mounts, and what becomes of its process."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from waiting import until

from edgebed.emulation.enter import IGNORED_BY_PYTHON, NOT_ENTERED, NOT_EXECUTABLE, NOT_FOUND, SCRATCH

pytestmark = pytest.mark.process  # it starts processes

ABOUT_ITSELF = """
import json, os, socket
from pathlib import Path
try:
    Path("written").touch()
    wrote = "it"
except OSError as error:
    wrote = error.strerror
print(json.dumps({
    "interfaces": sorted(name for _, name in socket.if_nameindex()), "hostname": socket.gethostname(),
    "self": socket.gethostbyname(socket.gethostname()), "hub": socket.gethostbyname("hub-0"),
    "environment": dict(os.environ), "cwd": os.getcwd(), "wrote": wrote, "niceness": os.nice(0),

    "cgroups": Path("/proc/self/cgroup").read_text(),
}))
"""
PARENT = """
import subprocess, sys
program = subprocess.Popen([sys.executable, "-m", "edgebed.emulation.enter", sys.argv[1]])
print(program.pid, flush=True)
program.wait()
"""


def tells(holder, **other: object) -> dict[str, object]:
    """What a program in it finds about itself."""
    done = holder.run(sys.executable, "-c", ABOUT_ITSELF, **other)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_program_is_in_its_nodes_network_and_cgroup_and_knows_all_nodes_by_name(holder):
    """Its own hostname is the node's, and so its address on the data network: the one it has to others."""
    before = Path("/etc/hosts").read_bytes()
    told = tells(holder, niceness=3)

    assert told["interfaces"] == ["data", "edgebed-down", "lo"]  # what is received is led through the third
    assert (told["hostname"], told["self"]) == ("home-0", holder.homes["home-0"].address)
    assert told["hub"] == holder.homes["hub-0"].address
    assert told["niceness"] == 3
    for folder in holder.folders().values():
        assert folder.rpartition("/edgebed_")[2] in told["cgroups"]
    assert Path("/etc/hosts").read_bytes() == before
    assert os.uname().nodename != "home-0"
    mounted = Path("/proc/self/mountinfo").read_text()
    assert "/etc/hosts" not in mounted
    assert str(holder.files) not in mounted


def own_ignored() -> int:
    """The signals that this process ignores, but for those that Python does by itself."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("SigIgn")]
    return int(line.split()[1], 16) & ~sum(1 << number - 1 for number in IGNORED_BY_PYTHON)


def test_a_program_has_the_environment_that_it_is_given_and_nothing_of_its_starters(holder):
    """No signal is ignored, no file is open but the three, and the process is the one that was started."""
    program = subprocess.Popen(
        holder.command("sh", "-c", 'echo $$ "$GREETING" "$*" "$PYTHONPATH"; trap; ls /proc/self/fd', "-", "a b"),
        stdout=subprocess.PIPE,
        text=True,
    )
    first, *files = program.communicate(timeout=60)[0].split("\n")

    assert first == f"{program.pid} hello you a b "
    assert files == ["0", "1", "2", "3", ""]  # the last is that of the folder
    ignored = int(holder.run("grep", "SigIgn", "/proc/self/status").stdout.split()[1], 16)
    assert not ignored & ~own_ignored(), "but what this process was started to ignore"


def test_a_programs_files_are_its_working_directory_and_read_only(holder):
    """Without files it is a folder that it may write to."""
    (holder.files / "train.sh").write_text("#!/bin/sh\ncat note\n")
    (holder.files / "train.sh").chmod(0o755)
    (holder.files / "note").write_text("here")
    with_files, without = tells(holder, files=str(holder.files)), tells(holder)

    assert (with_files["cwd"], with_files["wrote"]) == (str(holder.files), "Read-only file system")
    assert (without["cwd"], without["wrote"]) == (str(holder.scratch), "it")
    assert holder.run("./train.sh", files=str(holder.files)).stdout == "here"
    assert holder.run("touch", f"{SCRATCH}/kept", files=str(holder.files)).returncode == 0
    assert (holder.scratch / "kept").exists()
    assert not Path(SCRATCH, "kept").exists(), "nobody else sees it there"
    (holder.files / "written").touch()  # whoever started it sees the folder as it was


@pytest.mark.parametrize(
    ("argv", "code", "why"),
    [
        (("no-such-command", "-v"), NOT_FOUND, "edgebed: no-such-command: not found in {path}"),
        (("./none.sh",), NOT_FOUND, "edgebed: ./none.sh: not found from {scratch}"),
        (("./orphan.sh",), NOT_FOUND, "or its first line names an interpreter that is not"),
        (("./plain.txt",), NOT_EXECUTABLE, "edgebed: ./plain.txt: cannot be run: Permission denied"),
        (("./nothing",), NOT_EXECUTABLE, "edgebed: ./nothing: cannot be run: Exec format error"),
    ],
    ids=["on no path", "no file", "no interpreter", "no right", "no program"],
)
def test_a_command_that_cannot_be_run_is_named_in_a_sentence(holder, argv, code, why):
    """With the exit code that a shell has for it."""
    for name, text, mode in (("orphan.sh", "#!/no/such\n", 0o755), ("plain.txt", "", 0o644), ("nothing", "?", 0o755)):
        (holder.scratch / name).write_text(text)
        (holder.scratch / name).chmod(mode)
    done = holder.run(*argv)

    assert (done.returncode, done.stdout) == (code, "")
    assert why.format(path=os.environ["PATH"], scratch=holder.scratch) in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("what", ["namespace", "files", "scratch", "cgroups"])
def test_a_place_that_is_not_there_is_named(holder, what):
    """The command has not begun."""
    missing = ("/no/such/place",) if what == "cgroups" else "/no/such/place"
    done = holder.run("touch", str(holder.files / "begun"), **{what: missing})

    assert done.returncode == NOT_ENTERED
    assert "the place of home-0 cannot be entered" in done.stderr
    assert "No such file or directory" in done.stderr
    assert not (holder.files / "begun").exists()


def test_a_program_ends_with_the_process_that_started_it(holder):
    """However that ends."""
    argument = holder.command("sleep", "600")[-1]
    starter = subprocess.Popen([sys.executable, "-c", PARENT, argument], stdout=subprocess.PIPE, text=True)
    program = psutil.Process(int(starter.stdout.readline()))
    until(lambda: program.name() == "sleep", "the program", every_s=0.02)
    starter.send_signal(signal.SIGKILL)
    starter.communicate()

    program.wait(timeout=20)
    assert not psutil.pid_exists(program.pid)
