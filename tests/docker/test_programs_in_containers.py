"""Programs of the user's in containers: what holds of them everywhere, and what is of containers alone.

Method: real trials with plans made by hand. What the programs print, the journal and the engine tell what was done.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from leftovers import leftovers
from program_laws import SLEEP, ProgramLaws
from program_trials import nodes, plan, python, run
from waiting import until

from edgebed.core import records
from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.fault import FaultPlan, FaultStep, Injection, Trigger
from edgebed.core.planned.program import Limits, Program
from edgebed.runtimes.containers.labels import LABEL_HOLDER, LABEL_RUN
from edgebed.runtimes.containers.leftovers import containers_with, networks_with, remove_leftovers, remove_network
from edgebed.runtimes.containers.programs.holder import Holder
from edgebed.runtimes.containers.project import ImageNames
from edgebed.runtimes.programs.shell import ProgramShell

SLEEPS = "python", *python(SLEEP)[1:]
TELLS = "python", *python("""
import os
print(os.environ["HOME"], os.environ["TMPDIR"], os.listdir("."), os.path.exists("/host"), flush=True)
for place in ("/mine", "mine", "/tmp/mine"):
    try:
        open(place, "w").close()
        print("wrote", place)
    except OSError as error:
        print(error.strerror, place)
try:
    with open("/tmp/much", "wb") as much:
        much.write(bytes(2 << 20))
except OSError as error:
    print(error.strerror, "much")
""")[1:]  # fmt: skip


class TestProgramsInContainers(ProgramLaws):
    """Each in the place that its holder keeps; that nothing is left, conftest.py looks at."""

    runtime = "docker"
    command = "python"
    left = 0  # the kernel ends them with the program, and nobody counts


def test_a_program_is_in_the_data_network_alone_and_has_its_caps_and_no_right(engine, tmp_path: Path) -> None:
    """As the engine tells while it runs: one network, of its holder; caps, a cap changed by a fault; no capability."""
    found: list[dict[str, Any]] = []

    def look(_: ProgramShell) -> None:
        found.extend(engine.containers())

    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "data.txt").write_text("of the user's")
    own, other = nodes(SLEEPS, TELLS, cpus=0.5, memory_bytes=64 << 20)
    program = Program(files=str(tmp_path / "app"), limits=Limits(processes=20, scratch_bytes=1 << 20))
    cap = FaultStep(after_s=0.0, injection=Injection(node="home-0", action="cpus", cpus=0.2))
    slowed = FaultPlan(name="slowed", node="home-0", trigger=Trigger(at_s=0.5), steps=(cap,))
    trial = run(
        tmp_path, plan([own, other], program=program, faults=(slowed,), stop_time_s=5.0), runtime="docker", look=look
    )

    holders = {each["Id"]: each for each in found if LABEL_HOLDER in each["Config"]["Labels"]}
    (sleeper,) = [each for each in found if each["Config"]["Labels"].get("edgebed.node") == "home-0"]
    assert {len(each["NetworkSettings"]["Networks"]) for each in holders.values()} == {1}
    assert sleeper["NetworkSettings"]["Networks"] == {}
    host = sleeper["HostConfig"]
    assert host["NetworkMode"].removeprefix("container:") in holders
    assert (host["CapDrop"], host["CapAdd"], host["SecurityOpt"]) == (["ALL"], None, ["no-new-privileges"])
    assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (64 << 20, 64 << 20, 21)
    assert host["ReadonlyRootfs"]
    assert {each["Type"] for each in sleeper["Mounts"]} == {"volume"}, "no folder of the host"
    assert trial.output("home-1").splitlines() == [
        "/tmp /tmp ['data.txt'] False",
        "Read-only file system /mine",
        "Read-only file system mine",
        "wrote /tmp/mine",
        "No space left on device much",
    ]
    (capped,) = trial.all(records.Fault)
    assert (capped.action, capped.problem, capped.no_op) == ("cpus", "", "")
    last = trial.all(records.Usage, "home-0")[-1]
    assert (last.cpus_held, last.memory_held_bytes, last.differed) == (0.2, 64 << 20, 0)


def test_a_holder_in_a_second_network_starts_no_program(engine, tmp_path: Path, monkeypatch) -> None:
    """Traffic would pass no link there: with edgebed's own two networks it all did."""
    api = engine.client.api
    second = api.create_network(f"edgebed-second-{os.getpid()}", internal=True)["Id"]
    alone = Holder.require_alone

    def joined(holder: Holder) -> str:
        api.connect_container_to_network(holder.id, second)
        return alone(holder)

    monkeypatch.setattr(Holder, "require_alone", joined)
    try:
        with pytest.raises(InfrastructureError, match=r"home-0 is in the networks .*: what its program sends would "):
            run(tmp_path, plan(nodes(SLEEPS)), runtime="docker")
    finally:
        remove_network(engine.client, second)


def test_an_image_is_there_or_is_built_or_what_to_do_is_said(engine, tmp_path: Path) -> None:
    """That of a class before that of the program; one that is nowhere, and a folder that builds none, are refused."""
    missing = nodes(SLEEPS, image=f"none-{os.getpid()}:1")
    with pytest.raises(InfrastructureError, match=r"there is no image none-\d+:1. There: docker pull none-\d+:1, or"):
        run(tmp_path / "missing", plan(missing), runtime="docker")
    folder = tmp_path / "image"
    folder.mkdir()
    with pytest.raises(InfrastructureError, match=r"program\.build: /.*Dockerfile"):
        run(tmp_path / "none", plan(nodes(SLEEPS), program=Program(build=str(folder))), runtime="docker")
    (folder / "Dockerfile").write_text(f"FROM {ImageNames.named().server}\nENV MINE=built\n")
    says = "python", *python("import os; print(os.environ['MINE'])")[1:]
    named = msgspec.structs.replace(
        plan(nodes(says), program=Program(build=str(folder))), scenario=f"built-{os.getpid()}"
    )
    trial = run(tmp_path / "built", named, runtime="docker")
    engine.client.api.remove_image(f"edgebed-program:built-{os.getpid()}")

    assert trial.output("home-0") == "built\n"


SCRIPT = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parents[1] / "shared")!r}]
from pathlib import Path
from program_trials import nodes, plan, run
run(Path(sys.argv[1]), plan(nodes({SLEEPS!r})), runtime="docker")
"""


def test_what_a_killed_controller_leaves_the_next_command_removes(engine, tmp_path: Path) -> None:
    """Its program, witness and holder, in an order in which the holder's volumes go, too."""
    controller = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)])
    journal = tmp_path / "run" / "program" / "events.jsonl"
    until(lambda: journal.exists() and '"kind":"trial"' in journal.read_text(), "the trial begins")
    run_label = f"{LABEL_RUN}=programs-{controller.pid}/0001"
    containers = [engine.client.api.inspect_container(each["Id"]) for each in containers_with(engine.client, run_label)]
    volumes = {mount["Name"] for each in containers for mount in each["Mounts"] if mount["Type"] == "volume"}
    with leftovers():
        controller.kill()
        controller.wait()
        remove_leftovers(lambda _: None)

    assert (len(containers), len(volumes)) == (3, 1)
    assert containers_with(engine.client, run_label) == []
    assert networks_with(engine.client, run_label) == []
    assert volumes.isdisjoint(each["Name"] for each in engine.client.api.volumes()["Volumes"])
