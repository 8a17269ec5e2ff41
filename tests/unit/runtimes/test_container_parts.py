"""What of the docker runtime needs no engine: limits from a plan, labels, owners, addresses, last words."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebed.core.errors import InfrastructureError
from edgebed.core.last_words import describe_exit_code, describe_status, last_line
from edgebed.core.plan import TrainingNode
from edgebed.emulation.resources import own_address
from edgebed.planning.memory import Need, container_bytes
from edgebed.planning.planning import plan_trials
from edgebed.runtimes.containers import limits, project
from edgebed.runtimes.containers.launcher import memory_at_end, out_of_memory
from edgebed.runtimes.containers.project import ImageNames
from edgebed.runtimes.containers.site import EngineNetwork, Site
from edgebed.scenario.load import load_scenario

SCENARIO = {
    "name": "limits",
    "question": "?",
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "method": "asgd",
    "fleet": {"edge": {"count": 2}},
    "stop": {"updates": 10},
}


@pytest.fixture(scope="module")
def node() -> TrainingNode:
    """A worker without caps."""
    return plan_trials(load_scenario(SCENARIO, ()))[0].plan.node("edge-0")


@given(cpus=st.floats(0.01, 64), memory_bytes=st.integers(2**20, 2**40))
def test_a_cap_is_what_the_engine_is_told(node, cpus, memory_bytes) -> None:
    """CPU as quota over period within one part in a thousand, at first a core at least; memory with no swap on top."""
    settings = limits.host_settings(msgspec.structs.replace(node, cpus=cpus), memory_bytes)
    capped = limits.cpu_settings(cpus)

    assert settings["cpu_quota"] / settings["cpu_period"] == pytest.approx(max(1.0, cpus), abs=1e-5)
    assert capped["cpu_quota"] / capped["cpu_period"] == pytest.approx(cpus, abs=1e-5)
    assert settings["mem_limit"] == settings["memswap_limit"] == memory_bytes
    assert "nano_cpus" not in settings


def test_a_cap_is_taken_away_by_a_word_of_its_own(node) -> None:
    """The engine takes a quota of 0 for no change."""
    assert limits.cpu_settings(None)["cpu_quota"] == -1
    assert limits.cpu_settings(0.25) == {"cpu_period": 100_000, "cpu_quota": 25_000}


@pytest.mark.parametrize(
    ("named", "engine", "parent"),
    [
        (None, {"CgroupDriver": "cgroupfs"}, "/"),
        (None, {"CgroupDriver": "cgroupfs", "SecurityOptions": ["name=rootless"]}, ""),
        (None, {"CgroupDriver": "systemd", "SecurityOptions": None}, ""),
        ("", {"CgroupDriver": "cgroupfs"}, ""),
        ("edgebed.slice", {"CgroupDriver": "systemd"}, "edgebed.slice"),
    ],
)
def test_where_all_containers_weigh_as_one_process_each_node_weighs_as_one(node, monkeypatch, named, engine, parent):
    """An engine without systemd has them in one cgroup; the environment has the last word."""
    monkeypatch.delenv(limits.CGROUP_PARENT, raising=False)
    if named is not None:
        monkeypatch.setenv(limits.CGROUP_PARENT, named)

    assert limits.cgroup_parent(engine) == parent
    assert limits.host_settings(node, 2**30, parent=parent).get("cgroup_parent", "") == parent


@given(need=st.integers(0, 2**40))
def test_without_a_cap_memory_is_limited_all_the_same(node, need) -> None:
    """Far above what the node needs, so that it is no emulation; a cap of the scenario's holds whatever is needed."""
    uncapped = container_bytes(node, Need({"model": need}))

    assert uncapped >= max(2**30, 4 * need)
    assert container_bytes(msgspec.structs.replace(node, memory_bytes=2**28), Need({"model": need})) == 2**28


def test_without_caps_the_cpu_is_not_limited_but_rights_are(node) -> None:
    """No capability, no way to gain one, nothing to write to but /tmp and a server's volume."""
    settings = limits.host_settings(node, 2**30)

    assert not {"cpu_quota", "cpu_period", "mounts"} & settings.keys()
    (mount,) = limits.host_settings(node, 2**30, "edgebed-log-1")["mounts"]
    assert (mount["Type"], mount["Source"], mount["Target"]) == ("volume", "edgebed-log-1", "/var/lib/edgebed")
    assert settings["cap_drop"] == ["ALL"]
    assert settings["read_only"]


@pytest.mark.parametrize(("cpus", "threads"), [(None, 1), (0.1, 1), (1, 1), (1.5, 2), (2, 2), (3.01, 4)])
def test_threads_follow_the_cap(node, cpus, threads) -> None:
    """As many as the cap can feed; more would only be throttled."""
    capped = msgspec.structs.replace(node, cpus=cpus)

    assert limits.num_threads(capped) == threads
    told = limits.environment(capped, "tcp://10.0.0.1:1", "5e", "curve", "10.1.0.0/16", "10.2.0.0/16", "tc", "line")
    assert told["OMP_NUM_THREADS"] == str(threads)
    assert (told["EDGEBED_SECRET"], told["EDGEBED_SECURITY"]) == ("5e", "curve")


def site(project: str | None) -> Site:
    """Somewhere."""
    data = EngineNetwork("1" * 64, "10.1.0.0/16", "10.1.0.1")
    return Site(data=data, name="edgebed-limits-0001", labels={"edgebed.run": "limits/0001"}, project=project)


def test_labels_say_what_a_container_is(node) -> None:
    """Those of Compose only where the controller is a service of Compose; its `ps` needs every one of them."""
    alone, composed = site(None).labels_of(node, 1), site("lab").labels_of(node, 1)

    assert alone == {
        "edgebed.run": "limits/0001",
        "edgebed.node": "edge-0",
        "edgebed.role": "worker",
        "edgebed.class": "edge",
    }
    assert alone.items() <= composed.items()
    prefix = "com.docker.compose."
    added = {name.removeprefix(prefix) for name in composed.keys() - alone.keys()}
    assert added == {"project", "service", "container-number", "oneoff", "config-hash"}
    assert composed[f"{prefix}project"] == "lab"


def test_a_node_finds_its_own_address_in_a_subnet() -> None:
    """Whatever the interface is called; without one it ends with a word."""
    assert own_address("127.0.0.0/8") == "127.0.0.1"
    with pytest.raises(InfrastructureError, match=r"no network interface here has an address in 203\.0\.113\.0/24"):
        own_address("203.0.113.0/24")


def test_a_helper_may_set_links_and_nothing_else(node) -> None:
    """One capability, nothing to write to, and labels that no search for nodes finds."""
    settings = limits.helper_settings()

    assert (settings["cap_drop"], settings["cap_add"]) == (["ALL"], ["NET_ADMIN"])
    assert settings["read_only"]
    assert settings["security_opt"] == ["no-new-privileges"]
    labels, composed = site(None).labels_of_helper(node, 1), site("lab").labels_of_helper(node, 1)
    assert labels == {"edgebed.run": "limits/0001", "edgebed.link": "edge-0"}
    assert labels.items() <= composed.items()
    service = "com.docker.compose.service"
    assert composed[service] != site("lab").labels_of(node, 1)[service]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder with a file for Compose, in which this code lies; no variable is set."""
    for name in ("COMPOSE_PROJECT_NAME", "EDGEBED_SERVER_IMAGE", "EDGEBED_WORKER_IMAGE"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "Edge Bed.2"
    folder.mkdir()
    (folder / "docker-compose.yml").touch()
    monkeypatch.setattr(project, "CHECKOUT", folder)
    return folder


def test_images_have_names_that_the_environment_may_change(monkeypatch, checkout) -> None:
    """An empty variable is none: Compose hands over such."""
    monkeypatch.setenv("EDGEBED_WORKER_IMAGE", "registry.example/worker:2")
    monkeypatch.setenv("EDGEBED_SERVER_IMAGE", "")

    images = ImageNames.named()

    assert images.of("worker") == images.of("evaluator") == "registry.example/worker:2"
    assert images.of("server") == "edgebed-parameter-server:edgebed2"


def test_a_checkout_has_images_of_its_own(monkeypatch, checkout) -> None:
    """By its folder, as Compose names it; what the shell or .env says of the project wins, as with Compose."""
    by_folder = ImageNames.named().worker
    (checkout / ".env").write_text(
        "# COMPOSE_PROJECT_NAME=no\nEDGEBED_WORKER_IMAGE=\nCOMPOSE_PROJECT_NAME='mine'\nEDGEBED_SERVER_IMAGE=s:1\n"
    )
    by_file = ImageNames.named()
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", "theirs")
    by_shell = ImageNames.named()

    assert by_folder == "edgebed-worker:edgebed2"
    assert (by_file.worker, by_file.server) == ("edgebed-worker:mine", "s:1")
    assert (by_shell.worker, by_shell.server) == ("edgebed-worker:theirs", "s:1")


def test_without_a_checkout_the_folder_that_one_is_in_counts(monkeypatch, checkout, tmp_path) -> None:
    """As for whoever has edgebed installed; elsewhere there is no folder to go by."""
    monkeypatch.setattr(project, "CHECKOUT", tmp_path)
    monkeypatch.chdir(tmp_path)
    nowhere = project.project_name()
    monkeypatch.chdir(checkout)

    assert (nowhere, project.project_name()) == ("edgebed", "edgebed2")


def test_how_a_node_ended_is_told_in_words(tmp_path) -> None:
    """The signal by its name, the code, and the last line that is not blank, without its colours."""
    log = tmp_path / "edge-0.log"

    assert describe_status(9) == "killed by SIGKILL"
    assert describe_status(3 << 8) == "exited with code 3"
    assert [describe_exit_code(code) for code in (0, 137, 255)] == [
        "exited with code 0",
        "killed by SIGKILL",
        "exited with code 255",
    ]
    assert last_line(log) == ""
    log.write_text("starting\n\x1b[31mValueError\x1b[0m: no\n\x1b[0m\n")
    assert last_line(log) == "; last line: 'ValueError: no'"
    assert last_line(log, log.stat().st_size) == "", "those were the words of an earlier life"


@pytest.mark.parametrize(
    ("log", "text"),
    [
        ("edgebed-node: memory peak=134217728 limit=134217728 oom_kills=1\n", "at its limit of 128MiB, peak 128MiB"),
        ("torch\nedgebed-node: memory limit=134217728 oom_kills=2\n", "at its limit of 128MiB"),
        ("edgebed-node: memory peak=134217728\n", "at the machine's limit, peak 128MiB"),
        ("killed before it could say a word", "at the machine's limit"),
    ],
)
def test_an_oom_kill_is_told_with_what_is_known_of_it(log, text) -> None:
    """Older kernels keep no peak in cgroup v2, and a container without a cap has no limit."""
    assert out_of_memory(memory_at_end(log)) == f"out of memory: killed by the kernel {text}"
