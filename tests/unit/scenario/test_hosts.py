"""Hosts of a scenario: where they are written, what is refused, and which node is placed on which."""

import hypothesis.strategies as st
import pytest
from command_line import command_line
from hypothesis import given

from edgebed.core.errors import ScenarioError
from edgebed.planning.planning import plan_trials
from edgebed.scenario.hosts import HostSection, Promise, overfull, place, require_use
from edgebed.scenario.load import load_hosts, load_scenario, resolved_yaml

SCENARIO = {
    "name": "hosted",
    "task": {"model": "small", "data": "synthetic"},
    "method": "asgd",
    "fleet": {"phone": {"count": 3, "cpus": 0.5, "memory": "300MiB"}, "board": {"count": 2}},
    "stop": {"updates": 10},
}
MIB = 2**20
HOSTS = st.dictionaries(
    st.sampled_from("abcd"),
    st.builds(
        HostSection,
        cores=st.none() | st.integers(1, 8),
        memory=st.none() | st.integers(1, 8).map(lambda n: f"{256 * n}MiB"),
        classes=st.lists(st.sampled_from(["phone", "board", "server"]), max_size=2),
    ),
    min_size=1,
)
PROMISES = st.lists(
    st.tuples(st.sampled_from(["phone", "board", "server"]), st.sampled_from([0.2, 1.0]), st.integers(0, 512 * MIB)),
    max_size=12,
).map(lambda rows: [Promise(f"{name}-{k}", name, cores, size) for k, (name, cores, size) in enumerate(rows)])


def planned(**changes):
    """The plan of the scenario with other settings."""
    return plan_trials(load_scenario(SCENARIO | changes))[0].plan


@given(HOSTS, PROMISES)
def test_each_node_is_on_a_host_that_takes_its_class(hosts, promises):
    """One that lists the class, where any does; else any for workers, and the first for what serves them."""
    placed = place(hosts, promises)
    assert placed.keys() == {node.node for node in promises}
    for node in promises:
        listing = {name for name, host in hosts.items() if node.device_class in host.classes}
        anywhere = {next(iter(hosts))} if node.device_class == "server" else set(hosts)
        assert placed[node.node] in (listing or anywhere)
    assert place(hosts, promises) == placed


@given(st.integers(1, 5), st.integers(0, 20))
def test_equal_nodes_are_spread_evenly_over_equal_hosts(num_hosts, num_nodes):
    """By promised cores, or by memory: the counts of two hosts differ by one at most."""
    for size in (0, 100 * MIB):
        hosts = {f"h{k}": HostSection(cores=4, memory="1GiB") for k in range(num_hosts)}
        placed = list(place(hosts, [Promise(f"n-{k}", "n", 0.2, size) for k in range(num_nodes)]).values())
        counts = [placed.count(host) for host in hosts]
        assert max(counts) - min(counts) <= 1


@given(st.integers(1, 6))
def test_cores_decide_in_proportion(times):
    """A host with so many times the cores gets so many times the nodes."""
    hosts = {"small": HostSection(cores=2), "large": HostSection(cores=2 * times)}
    placed = list(place(hosts, [Promise(f"n-{k}", "n", 1.0, 0) for k in range(4 * (times + 1))]).values())
    assert placed.count("large") == times * placed.count("small")


def test_a_host_without_the_memory_is_left_alone_where_another_has_it():
    """Though it has more cores free."""
    hosts = {"big": HostSection(cores=1, memory="4GiB"), "tiny": HostSection(cores=64, memory="100MiB")}
    promises = [Promise(f"n-{k}", "n", 1.0, 300 * MIB) for k in range(4)]
    assert set(place(hosts, promises).values()) == {"big"}
    assert not list(overfull(hosts, promises))


def test_the_plan_says_where_each_node_is_and_nothing_where_there_are_no_hosts():
    """The server and the evaluator are on the first host, and what several hosts exchange is encrypted by default."""
    plan = planned(hosts={"a": {}, "b": {"classes": ["board"]}, "c": {"engine": "ssh://lab@c"}})
    assert {node.node: node.host for node in plan.nodes} == {
        "server": "a", "evaluator": "a", "board-0": "b", "board-1": "b", "phone-0": "c", "phone-1": "c", "phone-2": "c",
    }  # fmt: skip
    assert (plan.security, [host.name for host in plan.hosts]) == ("curve", ["a", "b", "c"])
    alone = planned()
    assert (alone.security, alone.hosts, {node.host for node in alone.nodes}) == ("plain", (), {""})
    assert planned(hosts={"a": {}}).security == "plain"
    assert planned(hosts={"a": {}, "b": {}}, security="plain").security == "plain"


def test_a_fault_of_a_host_is_one_of_each_node_on_it():
    """At the same moment."""
    plan = planned(hosts={"a": {"classes": ["board"]}, "b": {"classes": ["phone"]}}, faults=[{"kill": "b", "at": "5s"}])
    assert [fault.node for fault in plan.faults] == ["phone-0", "phone-1", "phone-2"]
    assert {fault.trigger.at_s for fault in plan.faults} == {5.0}


def test_hosts_are_read_from_a_file_beside_the_scenario_or_the_one_that_is_named(tmp_path):
    """The named one wins; both win over nothing, and the resolved scenario has them, so that a run can be resumed."""
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(resolved_yaml(load_scenario(SCENARIO)).replace("hosts: {}\n", ""), encoding="utf-8")
    (tmp_path / "hosts.yaml").write_text("beside: {}\n", encoding="utf-8")
    named_file = "named: {}\nsecond: { engine: 'tcp://e2:2376', tls: certificates }\n"
    (tmp_path / "other.yaml").write_text(named_file, encoding="utf-8")
    named = load_scenario(scenario, hosts=tmp_path / "other.yaml")
    for loaded, expected in ((load_scenario(scenario), ["beside"]), (named, ["named", "second"])):
        (trial,) = loaded.trials.values()
        assert list(trial.hosts) == expected
    assert trial.hosts["second"].tls == str(tmp_path / "certificates")
    again = tmp_path / "run/scenario.yaml"
    again.parent.mkdir()
    again.write_text(resolved_yaml(named), encoding="utf-8")
    assert load_scenario(again).trials == named.trials


@pytest.mark.parametrize("command", ["run", "plan"])
@pytest.mark.parametrize("runtime", ["process", "simulation"])
def test_a_named_file_of_hosts_that_no_node_is_placed_on_is_refused(tmp_path, monkeypatch, capsys, runtime, command):
    """Before anything starts."""
    (tmp_path / "scenario.yaml").write_text(resolved_yaml(load_scenario(SCENARIO)), encoding="utf-8")
    (tmp_path / "other.yaml").write_text("a: {}\nb: {}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    edgebed = command_line(monkeypatch, capsys)
    code, out, said = edgebed(command, "scenario.yaml", "--runtime", runtime, "--hosts", "other.yaml")
    assert (code, out) == (2, "")
    assert f"--hosts: in the {runtime} runtime all nodes are on this machine" in said
    assert "--runtime docker" in said
    assert not (tmp_path / "runs").exists()


def test_hosts_have_a_use_without_containers_where_a_fault_names_one(monkeypatch):
    """Nodes on it are those that it hits; what the environment names is of use to another runtime."""
    plain, hit = (
        load_scenario(SCENARIO | {"hosts": {"a": {}, "b": {}}, "faults": faults}).trials.values()
        for faults in ([{"kill": "phone-0", "at": "5s"}], [{"kill": "b", "at": "5s"}])
    )
    require_use("other.yaml", "simulation", hit)
    require_use("other.yaml", "docker", plain)
    require_use(None, "process", plain)
    monkeypatch.setenv("EDGEBED_HOSTS", "other.yaml")
    require_use("other.yaml", "process", plain)


def test_a_file_of_hosts_is_read_without_a_scenario_too(tmp_path):
    """With the same messages; what classes there are is not known then."""
    place = tmp_path / "hosts.yaml"
    place.write_text("a: {}\nb: { engine: 'ssh://lab@b', classes: [phone] }\n", encoding="utf-8")
    assert [(name, host.engine) for name, host in load_hosts(place).items()] == [("a", "local"), ("b", "ssh://lab@b")]
    place.write_text("a: { tls: certificates }\nB: {}\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match="not a name: 'B'") as error:
        load_hosts(place)
    assert f"{place}:2:1: hosts.B: " in str(error.value)
