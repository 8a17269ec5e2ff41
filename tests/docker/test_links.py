"""Links of containers: limited by the kernel as asked, set by a helper alone, read back by the node."""

import json
import os
import time

import docker
import pytest
from quick_runs import run as run_quickly

from edgebed.core import records
from edgebed.core.errors import InfrastructureError
from edgebed.core.framing import burst_bytes, wire_bytes
from edgebed.core.planned.link import LinkChange
from edgebed.planning.planning import plan_trials
from edgebed.running.results import Trial
from edgebed.runtimes.containers.engines import Engines
from edgebed.runtimes.containers.links import Links
from edgebed.runtimes.containers.project import ImageNames
from edgebed.runtimes.containers.site import find_site
from edgebed.scenario.load import load_scenario

pytestmark = pytest.mark.timed

NAME = f"linked-{os.getpid()}"
BASE = {
    "name": NAME,
    "question": "Do links hold?",
    "seed": 3,
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "method": "asgd",
    "evaluation": {"every": "100000 updates"},
    "stop": {"time": "6s"},
}
BULK = BASE | {
    "task": {"data": "digits", "model": "mlp", "batch_size": 10},
    "fleet": {"edge": {"count": 1, "uplink": "10mbit", "downlink": "50mbit"}},
}
STEPS = BASE | {
    "method": {"preset": "comp-asgd", "compression": {"fraction": 0.62}},  # some 12.7 kB a push
    "fleet": {
        "idle": {"count": 1, "uplink": "2mbit", "waiting": "150ms"},
        "stepping": {
            "count": 1,
            "uplink": "10mbit",
            "waiting": "100ms",
            "link_steps": [{"at": "2s", "uplink": "2mbit"}],
        },
        "victim": {"count": 1, "uplink": "10mbit", "waiting": "100ms"},
    },
}
TAMPER = """
from pyroute2 import IPRoute
from edgebed.emulation.conditions import LinkState
from edgebed.emulation.netlink import LinkReader
from edgebed.emulation.tc import Features, Shaper
from edgebed.emulation.resources import own_address
reader = LinkReader(own_address('{subnet}'))
Shaper(IPRoute(), reader.interface, Features(netem=False)).apply(LinkState(uplink_bit_s={rate_bit_s}))
"""
STRANGER = """
from pyroute2 import IPRoute
with IPRoute() as ip:
    (index,) = ip.link_lookup(ifname='eth0')
    ip.tc('add', 'tbf', index, handle=0x770000, parent=0xffffffff, rate=125000, burst=5000, limit=50000)
"""
READ = """
import json
from edgebed.emulation.netlink import LinkReader
from edgebed.emulation.resources import own_address
reader = LinkReader(own_address('{subnet}'))
print(json.dumps([queue and queue.rate_bit_s for queue in reader.queues()]))
"""


def with_right(client: docker.DockerClient, container: str, program: str) -> None:
    """Run a program in a container's network namespace with the right to change it."""
    client.containers.run(
        ImageNames.named().server, entrypoint=["python", "-c", program], user="0:0",
        network_mode=f"container:{container}",
        cap_drop=["ALL"], cap_add=["NET_ADMIN"], remove=True,
    )  # fmt: skip


def inside(client: docker.DockerClient, container: str, command: list[str]) -> str:
    """What a command prints in a container, as its own user."""
    started = client.api.exec_create(container, command)["Id"]
    output = client.api.exec_start(started).decode()
    assert client.api.exec_inspect(started)["ExitCode"] == 0, output
    return output


def data_subnet(client: docker.DockerClient, container: dict) -> str:
    """The subnet of the internal one of its networks."""
    networks = [client.networks.get(name).attrs for name in container["NetworkSettings"]["Networks"]]
    return next(network["IPAM"]["Config"][0]["Subnet"] for network in networks if network["Internal"])


def links_of(trial: Trial, node: str) -> list[tuple[float, records.Link]]:
    """What a node journaled of its link, with the time since training began."""
    began_s = next(t for t, _, record in trial.events() if isinstance(record, records.Trial))
    return [
        (t - began_s, record) for t, who, record in trial.events() if who == node and isinstance(record, records.Link)
    ]


def messages_of(trial: Trial, sender: str, message: str, worker: str) -> list[tuple[int, float]]:
    """Payload of the messages of a kind, and how long each was on its way."""
    receiver = "server" if sender == worker else worker
    return [
        (record.bytes, t - record.sent_s)
        for t, who, record in trial.events()
        if isinstance(record, records.Received) and (who, record.sender, record.message) == (receiver, sender, message)
    ]


def alone_s(payload_bytes: int, rate_bit_s: int) -> float:
    """How long a message takes after a silence."""
    return (wire_bytes(payload_bytes) - burst_bytes(rate_bit_s)) * 8 / rate_bit_s


def test_bulk_passes_at_the_rates_asked(engine, tmp_path) -> None:
    """Both ways within 10 %, by the quickest of many large messages; the kernel holds what was asked."""
    run = run_quickly(BULK, runtime="docker", runs_dir=tmp_path, trace=True, set=["stop.time=4s"])

    (trial,) = run.trials.values()
    assert trial.summary.outcome == "completed"
    for sender, message, rate_bit_s in (("edge-0", "push", 10_000_000), ("server", "model", 50_000_000)):
        took = [(size, took_s) for size, took_s in messages_of(trial, sender, message, "edge-0") if size > 50_000]
        assert len(took) > 5
        assert min(took_s / alone_s(size, rate_bit_s) for size, took_s in took) == pytest.approx(1.0, rel=0.1)
    ((at_s, held),) = links_of(trial, "edge-0")
    assert at_s < 1.0, "at its first look"
    assert (held.mechanism, held.uplink_held, held.downlink_held) == ("tc", 10_000_000, 50_000_000)
    assert (held.uplink_burst, held.downlink_burst, held.problem) == (1600, 3000, "")
    notes = [record.text for _, _, record in trial.events() if isinstance(record, records.Note)]
    assert any("(tc)" in note for note in notes)


def test_small_pushes_steps_and_what_happens_behind_a_link_s_back(engine, tmp_path, onlooker) -> None:
    """One run, three workers: one pushes after silences, one's link changes, one's link is tampered with."""
    seen = {}

    def look() -> None:
        (victim,) = engine.containers(node="victim-0")
        with_right(
            engine.client, victim["Id"], TAMPER.format(subnet=data_subnet(engine.client, victim), rate_bit_s=10**6)
        )
        seen["capabilities"] = inside(engine.client, victim["Id"], ["grep", "^Cap", "/proc/self/status"])
        seen["helpers"] = [
            container for container in engine.containers() if "edgebed.link" in container["Config"]["Labels"]
        ]

    run = run_quickly(STEPS, runtime="docker", runs_dir=tmp_path, trace=True, progress=onlooker(look))

    (trial,) = run.trials.values()
    assert trial.summary.outcome == "completed"

    pushes = messages_of(trial, "idle-0", "push", "idle-0")
    assert pushes[0][0] == pytest.approx(12_700, rel=0.05)
    assert min(took_s / alone_s(size, 2_000_000) for size, took_s in pushes) == pytest.approx(1.0, rel=0.1)

    first, second = links_of(trial, "stepping-0")
    assert (first[1].uplink_held, second[1].uplink_held) == (10_000_000, 2_000_000)
    assert 2.0 <= second[0] <= 4.0, "a node looks every second"
    assert second[1].problem == ""
    pushes = messages_of(trial, "stepping-0", "push", "stepping-0")[-5:]
    assert min(took_s / alone_s(size, 2_000_000) for size, took_s in pushes) == pytest.approx(1.0, rel=0.1)

    assert list(dict.fromkeys(record.problem for _, record in links_of(trial, "victim-0"))) == [
        "",
        "uplink: the kernel holds 1mbit, asked 10mbit",
    ]

    lines = dict(line.split(":\t") for line in seen["capabilities"].splitlines())
    assert set(lines.values()) == {"0" * 16}, "a worker has no capability, and can get none"
    (helper,) = seen["helpers"]
    assert helper["Config"]["Labels"]["edgebed.link"] == "stepping-0", "only a link that changes keeps its helper"
    assert (helper["HostConfig"]["CapDrop"], helper["HostConfig"]["CapAdd"]) == (["ALL"], ["NET_ADMIN"])
    assert helper["HostConfig"]["ReadonlyRootfs"]


def test_compose_takes_no_container_of_a_run_for_its_own(engine) -> None:
    """Though it has built the image: `docker compose up` would print what a helper says."""
    engines = Engines()
    site = find_site(engines, f"{NAME}/0001", "asgd")
    try:
        api, image = engine.client.api, ImageNames.named().server
        labels = api.inspect_container(api.create_container(image, labels=site.labels)["Id"])["Config"]["Labels"]
    finally:
        site.clear(engine.client, networks=True)
        engines.close()

    built = api.inspect_image(image)["Config"]["Labels"]
    assert built["com.docker.compose.service"] == "parameter-server-image"
    assert labels["com.docker.compose.project"] == labels["com.docker.compose.service"] == ""


def test_a_container_that_starts_anew_is_limited_anew(engine) -> None:
    """By a new helper in its new namespace, as its link is by then; a stranger's limit is an error that says so."""
    scenario = load_scenario(BASE | {"fleet": {"edge": {"count": 1, "uplink": "10mbit", "link_steps": [
        {"at": "5s", "downlink": "2mbit"}, {"at": "1h", "uplink": "1mbit"}]}}})  # fmt: skip
    plan = plan_trials(scenario)[0].plan
    node = plan.node("edge-0")
    assert node.link.changes[0] == LinkChange(at_s=5.0, downlink_bit_s=2_000_000)
    api, image, problems = engine.client.api, ImageNames.named().server, []
    engines = Engines()
    site = find_site(engines, f"{NAME}/0001", "asgd")
    try:
        links = Links(engines, site, image, plan, problems.append)
        host_config = api.create_host_config(network_mode=site.data.id)
        sleeping = {"entrypoint": ["sleep", "600"], "labels": site.labels, "host_config": host_config}
        made = [api.create_container(image, **sleeping)["Id"] for _ in range(2)]
        read = ["python", "-c", READ.format(subnet=site.data.subnet)]
        api.start(made[0])
        links.set(node, 1, made[0])
        assert json.loads(inside(engine.client, made[0], read)) == [10_000_000, None]

        links.began(time.monotonic() - 6.0)
        api.restart(made[0], timeout=0)
        assert json.loads(inside(engine.client, made[0], read)) == [None, None], "its namespace is new"
        helper = links.set(node, 1, made[0])
        deadline_s = time.monotonic() + 10
        while json.loads(inside(engine.client, made[0], read)) != [10_000_000, 2_000_000]:
            assert time.monotonic() < deadline_s

        api.start(made[1])
        with_right(engine.client, made[1], STRANGER)
        with pytest.raises(InfrastructureError, match="eth0 already has a tbf 77: that edgebed did not put there"):
            links.set(node, 1, made[1])
        assert problems == []

        api.kill(helper.container)
        deadline_s = time.monotonic() + 10
        while not problems:
            assert time.monotonic() < deadline_s
        assert str(problems[0]).startswith("the link of edge-0 does not change any more: the helper that sets the link")
    finally:
        site.clear(engine.client, networks=True)
        engines.close()
