"""Conditions of programs that do not hold, in containers: each turns the verdict.

Method: that of processes (tests/shared/program_mutants.py); what is taken away is taken by the engine, and in holders.
"""

import os
import threading
from pathlib import Path

import pytest
from program_mutants import assert_each_turns
from program_trials import nodes, plan, python, run

from edgebed.emulation.resources import ROOT, cgroup_folders
from edgebed.runtimes.containers.leftovers import remove_network
from edgebed.runtimes.containers.limits import cpu_settings
from edgebed.runtimes.containers.programs.launcher import ContainedPrograms
from edgebed.runtimes.containers.site import EngineNetwork
from edgebed.runtimes.programs.shell import ProgramShell

pytestmark = [pytest.mark.timed, pytest.mark.timeout(400)]

UNSHAPE = """
from pyroute2 import IPRoute
with IPRoute() as ip:
    (index,) = ip.link_lookup(ifname="eth0")
    ip.tc("delete", index=index, parent=0xFFFFFFFF)
"""
SEND = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
    for _ in range(20):
        out.sendto(bytes(1000), (sys.argv[1], 9))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a counter of a cgroup is set back by root")
def test_each_mutant_turns_the_verdict_in_containers(engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of links, caps, ways, counters and faults."""
    api = engine.client.api
    second = EngineNetwork.inspected(
        engine.client, api.create_network(f"edgebed-second-{os.getpid()}", internal=True)["Id"]
    )

    def in_holder(launcher: ContainedPrograms, node: str, *command: str) -> None:
        made = api.exec_create(launcher.holders[node].id, ["python", "-c", *command], user="0:0")["Id"]
        said = api.exec_start(made)
        assert api.exec_inspect(made)["ExitCode"] == 0, said

    def take_away(launcher: ContainedPrograms) -> None:
        api.update_container(launcher.containers["uncapped-0"].id, **cpu_settings(None))
        pid = api.inspect_container(launcher.containers["recounted-0"].id)["State"]["Pid"]
        if counter := cgroup_folders(pid, ROOT).get("cpuacct"):
            threading.Timer(3.0, (counter / "cpuacct.usage").write_text, ["0"]).start()
        in_holder(launcher, "unshaped-0", UNSHAPE)
        api.connect_container_to_network(launcher.holders["bypassing-0"].id, second.id)
        in_holder(launcher, "bypassing-0", SEND, second.gateway)

    def begin(launcher: ContainedPrograms) -> None:
        threading.Thread(target=take_away, args=(launcher,)).start()

    try:
        assert_each_turns(
            tmp_path, monkeypatch, ContainedPrograms, "docker", begin, ContainedPrograms._tell, "eth1", times=3
        )
    finally:
        remove_network(engine.client, second.id)


def test_a_program_that_others_start_anew_has_died_unasked(engine, tmp_path: Path) -> None:
    """Its container runs again; what it does is not taken for what was asked."""

    def restart(shell: ProgramShell) -> None:
        assert isinstance(shell.launcher, ContainedPrograms)
        engine.client.api.restart(shell.launcher.containers["home-0"].id, timeout=0)

    sleep = "python", *python("import time; time.sleep(60)")[1:]
    trial = run(tmp_path, plan(nodes(sleep, sleep), stop_time_s=8.0), runtime="docker", look=restart)

    (exited, *_) = trial.exits("home-0")
    assert (exited.signal, exited.asked) == ("SIGTERM", False)
    assert trial.ended.outcome == "failed"
