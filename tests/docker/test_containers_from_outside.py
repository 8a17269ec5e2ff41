"""What the controller sees of real containers from outside: cgroups and the bridge's ports, or the engine's count."""

import os
from pathlib import Path

import pytest
from pyroute2 import IPRoute
from quick_runs import run as run_quickly

from edgebed.runtimes.containers.hosts import sight

pytestmark = pytest.mark.timed

NAME = f"seen-{os.getpid()}"
SCENARIO = {
    "name": NAME,
    "question": "Does the controller see what containers tell of themselves?",
    "seed": 3,
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "method": "asgd",
    "fleet": {"edge": {"count": 2, "cpus": 0.2, "uplink": "4mbit", "downlink": "4mbit"}},
    "evaluation": {"every": "5s"},
    "stop": {"time": "6s"},
}
ROOT = 0xFFFF_FFFF


def port_of(container: dict, ip: IPRoute) -> int:
    """The index of the host's end of a container's link to the data network: a port of that network's bridge."""
    networks = container["NetworkSettings"]["Networks"]
    (data,) = (each["NetworkID"] for name, each in networks.items() if name.endswith("-data"))
    (bridge,) = ip.link_lookup(ifname=f"br-{data[:12]}")
    folder = Path(f"/proc/{container['State']['Pid']}/root/sys/class/net")
    peers = {int((each / "iflink").read_text()) for each in folder.glob("eth*")}
    (port,) = (link["index"] for link in ip.get_links() if link["index"] in peers and link.get("IFLA_MASTER") == bridge)
    return port


def test_an_undisturbed_run_is_seen_as_it_tells_and_both_ends_are_read(tmp_path) -> None:
    """On the controller's own host, as root: CPU time, caps and memory of each container, and its port's bytes."""
    if os.geteuid():
        pytest.skip("the engine's cgroups and ports are root's: run the tests as root")
    run = run_quickly(SCENARIO, runtime="docker", runs_dir=tmp_path)
    (trial,) = run.trials.values()
    (summary,) = run.summary.trials

    assert trial.series.seen.keys() == {"server", "edge-0", "edge-1"}
    for node, (life,) in trial.series.seen.items():
        assert life.reported is not None
        assert life.seen is not None
        assert abs(life.reported.cpu_s - life.seen.cpu_s) <= life.seen.cpu_error_s + 0.1
        assert life.seen.uplink_bytes > 64_000
        if node != "server":  # whose link is not limited, so that it does not read its bytes
            assert abs(life.reported.uplink_bytes - life.seen.uplink_bytes) <= life.seen.uplink_error_bytes + 64_000
        assert life.last.cpus_held == (None if node == "server" else 0.2)
        assert life.last.memory_held_bytes
        assert life.last.unread == life.last.differences == ()
    assert not any("outside" in reason or "far end" in reason for reason in summary.fidelity.reasons)


def test_who_limits_a_port_of_the_bridge_or_a_container_is_found(engine, tmp_path, onlooker) -> None:
    """A tbf at the host's end of a container's veth, which the container never sees, and the engine's own update."""
    if os.geteuid():
        pytest.skip("the engine's cgroups and ports are root's: run the tests as root")

    def disturb() -> None:
        (victim,) = engine.containers(node="edge-1")
        with IPRoute() as ip:
            port = port_of(victim, ip)
            ip.tc("add", "tbf", port, handle=0x77_0000, parent=ROOT, rate=125_000, burst=5_000, limit=50_000)
        (other,) = engine.containers(node="edge-0")
        engine.client.api.update_container(other["Id"], cpu_period=100_000, cpu_quota=30_000)

    run = run_quickly(SCENARIO, runtime="docker", runs_dir=tmp_path, progress=onlooker(disturb))
    (summary,) = run.summary.trials
    reasons = summary.fidelity.reasons

    assert any(text.startswith("link: edge-1: a tbf of 1 mbit on what the node receives") for text in reasons), reasons
    assert any(text.startswith("CPU cap: edge-0: its cgroup held 0.3 cores, where 0.2") for text in reasons), reasons


def test_where_the_host_cannot_be_seen_the_engine_counts_and_what_is_not_read_is_said(tmp_path, monkeypatch) -> None:
    """As for a controller that is a container itself, or on another host than the node."""
    monkeypatch.setattr(sight, "ROOT", tmp_path / "other")
    longer = ["stop.time=14s"]  # nodes tell after ten seconds; when they end, the engine's answer comes too late
    run = run_quickly(SCENARIO, runtime="docker", runs_dir=tmp_path, set=longer)
    (trial,) = run.trials.values()
    (summary,) = run.summary.trials
    lives = [life for lives in trial.series.seen.values() for life in lives]

    assert lives
    for life in lives:
        assert life.last.unread == (
            f"caps of its cgroup: {sight.NOT_HERE}", f"{sight.FAR_END}: {sight.NOT_HERE}",
        )  # fmt: skip
        assert life.last.uplink_bytes is None
    assert any(life.seen and life.seen.cpu_s for life in lives)
    assert not any(reason.startswith("usage") for reason in summary.fidelity.reasons)
