"""Faults done to real processes: by the kernel for root, by the nodes themselves where nothing else holds links.

One run suffers most kinds at once, each on a node of its own; the tests look at what its journal tells of them.
"""

import json
from dataclasses import dataclass
from typing import Any

import psutil
import pytest
from patiently import TooLateError, patiently
from quick_runs import run as run_quickly

from edgebed.core.errors import ScenarioError
from edgebed.emulation import means
from edgebed.running.results import Run

SCENARIO = {
    "name": "faults",
    "question": "Is what the scenario asks for done to the nodes, and undone?",
    "task": {"data": "digits", "model": "small", "batch_size": 10},
    "method": "adacomp",
    "evaluation": {"every": "1h"},
    "deadlines": {"check": "250ms"},
}
NODES = {"killed": {}, "frozen": {}, "cut": {}, "slow": {"uplink": "8mbit"}, "capped": {"cpus": 0.5},
         "mended": {"uplink": "8mbit", "cpus": 0.5}}  # fmt: skip
FLEET = {name: {"count": 1, "waiting": "5ms", **settings} for name, settings in NODES.items()}
FAULTS = [
    {"restart": "killed-0", "at": "1s", "delay": "500ms"},
    {"freeze": "frozen-0", "at": "1s", "for": "1500ms"},
    {"cut": "cut-0", "at": "1s", "for": "1500ms"},
    {"link": "slow-0", "at": "1s", "uplink": "1mbit", "for": "1500ms"},
    {"cpus": "capped-0", "at": "1s", "to": 0.1},
    {"cut": "mended-0", "at": "1s", "for": "1500ms"},
    {"link": "mended-0", "at": "1s", "uplink": "1mbit", "for": "1500ms"},
    {"cpus": "mended-0", "at": "1s", "to": 0.1, "for": "1500ms"},
    {"restart": "mended-0", "at": "2s", "delay": "1s"},
]
DONE_S = 1.0
"""Between asking and doing on a machine that may be busy with other tests; the bench says how long it takes."""


@pytest.fixture(scope="session", autouse=True)
def rights():
    """Of root, with which the kernel carries faults out."""
    if reason := means.why_no_namespaces() or means.why_no_cgroups():
        pytest.skip(f"neither namespaces nor cgroups: {reason}; run the tests as root")


@dataclass
class Told:
    """A run's only journal."""

    run: Run
    emulation: str

    def __post_init__(self) -> None:
        """Read it."""
        (trial,) = self.run.trials.values()
        lines = trial.folder.journal.read_text().splitlines()
        self.records: list[dict[str, Any]] = [json.loads(line) for line in lines]
        self.began_s = next(each["t"] for each in self.of("node", state="running"))

    def of(self, kind: str, **fields: Any) -> list[dict[str, Any]]:
        """The records of a kind that have these values."""
        asked = {"kind": kind} | fields
        return [each for each in self.records if all(each.get(name) == value for name, value in asked.items())]

    def done_s(self, node: str, action: str) -> float:
        """When a fault was done."""
        (fault,) = self.of("fault", target=node, action=action)
        return fault["t"]

    def updates(self, worker: str, since_s: float, until_s: float = float("inf")) -> list[dict[str, Any]]:
        """Those of a worker that the server applied between two times."""
        return [each for each in self.of("update", worker=worker) if since_s < each["t"] < until_s]

    def unresponsive_s(self, node: str, since_s: float, until_s: float) -> float:
        """For how long a node was noted not to answer between two times."""
        states = [(each["t"], each["state"]) for each in self.of("node", name=node)]
        ends = [t for t, _ in states[1:]] + [until_s]
        return sum(
            max(0.0, min(end, until_s) - max(t, since_s))
            for (t, state), end in zip(states, ends, strict=True)
            if state == "unresponsive"
        )


@pytest.fixture(scope="module", params=["kernel", "model"])
def told(request, tmp_path_factory) -> Told:
    """A run with all of FAULTS, carried out by the kernel, or without it."""
    scenario = SCENARIO | {"fleet": FLEET, "faults": FAULTS, "stop": {"time": "8s"}}
    run = run_quickly(scenario, emulation=request.param, runs_dir=tmp_path_factory.mktemp(request.param))
    return Told(run, request.param)


def test_the_run_lives_and_every_fault_is_recorded_as_done(told):
    """With the time asked and the time done; nothing was impossible."""
    told_of = [each for each in told.of("fault") if each["target"] != "mended-0"]
    faults = {(each["target"], each["action"]): each for each in told_of}

    assert told.run.exit_code == 0
    assert set(faults) == {
        ("killed-0", "kill"), ("killed-0", "launch"), ("frozen-0", "freeze"), ("frozen-0", "thaw"), ("cut-0", "cut"),
        ("cut-0", "heal"), ("slow-0", "link"), ("capped-0", "cpus"),
    }  # fmt: skip
    for fault in told_of:
        assert (fault.get("problem", ""), fault.get("no_op", "")) == ("", "")
        assert 0.0 <= fault["t"] - fault["asked_s"] < DONE_S


def test_a_node_that_is_killed_and_launched_again_trains_in_its_second_life(told):
    """The first is known to have died, and how."""
    (died,) = told.of("node", name="killed-0", state="died")
    again_s = told.done_s("killed-0", "launch")

    assert (died["incarnation"], died["reason"].partition(";")[0]) == (1, "killed by SIGKILL")
    assert {each["incarnation"] for each in told.updates("killed-0", 0.0, again_s)} == {1}
    assert {each["incarnation"] for each in told.updates("killed-0", again_s)} == {2}


def test_a_frozen_node_does_nothing_is_noticed_and_goes_on(told):
    """What it had sent before, one update at most, may still be applied. It goes on a moment before that is noted.

    On a busy machine it may miss a check at other times too.
    """
    frozen_s, thawed_s = told.done_s("frozen-0", "freeze"), told.done_s("frozen-0", "thaw")
    (asked_s,) = (
        each["asked_s"] for each in told.of("fault") if (each["target"], each["action"]) == ("frozen-0", "thaw")
    )
    states = [(each["t"], each["state"]) for each in told.of("node", name="frozen-0")]

    assert told.updates("frozen-0", told.began_s, frozen_s)
    assert len(told.updates("frozen-0", frozen_s, asked_s)) <= 1
    assert told.updates("frozen-0", thawed_s)
    assert told.unresponsive_s("frozen-0", frozen_s, thawed_s) > 0.0
    assert "running" in {state for t, state in states if t > asked_s}
    assert states[-1][1] == "stopped"


def test_nothing_passes_a_cut_and_after_the_heal_it_goes_on(told):
    """What had passed may still be applied. The node lives and can be talked to: watching takes another network.

    On a busy machine it may miss a check all the same; a frozen node is silent for two thirds of such a time.
    """
    cut_s, healed_s = told.done_s("cut-0", "cut"), told.done_s("cut-0", "heal")

    assert told.updates("cut-0", told.began_s, cut_s)
    assert len(told.updates("cut-0", cut_s, healed_s)) <= 1
    assert told.updates("cut-0", healed_s)
    assert told.unresponsive_s("cut-0", cut_s, healed_s) < (healed_s - cut_s) / 2


def test_whoever_holds_a_link_says_that_it_is_cut_changed_and_as_planned_again(told):
    """Read back from the kernel where that holds it; what faults ask for is no deviation."""
    links = {node: told.of("link", node=node) for node in ("cut-0", "slow-0")}
    mechanism = "tc" if told.emulation == "kernel" else "model"

    assert [each.get("cut", False) for each in links["cut-0"]] == [False, True, False]
    assert [each["uplink_held"] for each in links["slow-0"]] == [8_000_000, 1_000_000, 8_000_000]
    for records in links.values():
        assert {each["mechanism"] for each in records} == {mechanism}
        assert [each.get("problem", "") for each in records] == ["", "", ""]


def test_a_smaller_cap_slows_a_node_down(told):
    """By a cgroup, which tells of it, or by pacing."""
    capped_s = told.done_s("capped-0", "cpus")
    (*_, usage) = told.of("usage", node="capped-0")

    assert told.updates("capped-0", capped_s)
    assert usage.get("cpus_held") == (0.1 if told.emulation == "kernel" else None)


def test_what_ended_while_a_node_was_dead_has_ended_for_its_next_life(told):
    """Its cut, its slower link and its smaller cap, which namespace and cgroup had kept."""
    ends = [each for each in told.of("fault", target="mended-0") if "it is not there" in each.get("no_op", "")]
    (joined,) = told.of("node", name="mended-0", state="joined", incarnation=2)
    link = [each for each in told.of("link", node="mended-0") if each["t"] > joined["t"]][-1]
    (*_, usage) = told.of("usage", node="mended-0")

    assert {each["action"] for each in ends} == {"heal", "link", "cpus"}
    assert told.updates("mended-0", joined["t"])
    assert (link.get("cut", False), link["uplink_held"], link.get("problem", "")) == (False, 8_000_000, "")
    assert usage.get("cpus_held") == (0.5 if told.emulation == "kernel" else None)


@pytest.mark.timeout(600)
def test_out_of_memory_is_told_of_the_life_that_was(tmp_path):
    """The account of the cgroup goes on in the second life, which ends otherwise."""

    def attempt(times: int) -> Told:
        """A run in which what comes after the memory is full comes so many times as late."""
        faults = [
            {"memory": "edge-0", "at": "500ms"},
            {"restart": "edge-0", "at": f"{2 * times}s", "delay": "0s"},
            {"kill": "edge-0", "at": f"{5 * times}s"},
        ]
        fleet = {"edge": {"count": 1, "memory": "300MiB"}, "other": {"count": 1}}
        scenario = SCENARIO | {"fleet": fleet, "faults": faults, "stop": {"time": f"{6 * times}s"}}
        told = Told(run_quickly(scenario, runs_dir=tmp_path), "kernel")
        deaths_s = [each["t"] for each in told.of("node", name="edge-0", state="died")]
        if len(deaths_s) < 2:
            raise TooLateError("the second life had not begun when it was to be killed, or the run ended before it did")
        if deaths_s[0] > told.began_s + 2 * times:
            raise TooLateError("the memory was not full before the restart")
        return told

    told = patiently(attempt)
    reasons = [each["reason"].partition(";")[0] for each in told.of("node", name="edge-0", state="died")]

    assert told.run.exit_code == 0
    assert reasons == ["out of memory: killed by the kernel at its limit of 300MiB, peak 300MiB", "killed by SIGKILL"]
    assert {each["incarnation"] for each in told.of("update", worker="edge-0")} == {1, 2}


def test_nodes_that_are_frozen_until_the_end_are_not_waited_for_and_none_is_left(tmp_path):
    """A process that is stopped hears nobody, and is killed all the same."""
    before = {each.pid for each in psutil.Process().children(recursive=True)}
    faults = [{"freeze": {"class": "edge", "count": 2}, "at": "1s"}]
    scenario = SCENARIO | {"fleet": {"edge": {"count": 3}}, "faults": faults, "stop": {"time": "2s"}}
    told = Told(run_quickly(scenario, runs_dir=tmp_path), "auto")
    frozen = {each["target"] for each in told.of("fault", action="freeze")}
    stopped = {each["name"]: each.get("reason", "") for each in told.of("node", state="stopped")}

    assert len(frozen) == 2
    assert {stopped[node] for node in frozen} == {"frozen until the end"}
    assert {each.pid for each in psutil.Process().children(recursive=True)} <= before


def test_what_needs_a_cgroup_is_refused_where_there_is_none(tmp_path):
    """Before anything starts."""
    faults = [{"memory": "edge-0", "at": "1s"}]
    scenario = SCENARIO | {"fleet": {"edge": {"count": 1, "memory": "300MiB"}}, "faults": faults}

    with pytest.raises(ScenarioError, match="edge-0 is to run into its memory cap, which the kernel alone can hold"):
        run_quickly(scenario | {"stop": {"time": "2s"}}, emulation="model", runs_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_a_kernel_a_worker_is_cut_off_from_the_server_and_a_shard_from_no_neighbour(tmp_path):
    """A worker's only way is its link; a shard has several."""
    cut = {"cut": {"between": ["edge-0", "server"]}, "at": "1s", "for": "2s"}
    settings = {"fleet": {"edge": {"count": 2, "waiting": "20ms"}}, "faults": [cut], "stop": {"time": "6s"}}
    told = Told(run_quickly(SCENARIO | settings, emulation="model", runs_dir=tmp_path / "runs"), "auto")
    (begun,), (over,) = (told.of("fault", action=action) for action in ("cut", "heal"))
    during = {
        worker: [each for each in told.of("update", worker=worker) if begun["t"] + 0.5 < each["t"] < over["asked_s"]]
        for worker in ("edge-0", "edge-1")
    }
    layers = {"task": {"data": "digits", "model": "eight-layer", "batch_size": 10}, "method": "decoupled-greedy"}
    layers |= {"fleet": {"edge": {"count": 2}}, "evaluation": {"every": "50 updates"}}
    between = {"cut": {"between": ["edge-0", "edge-1"]}, "at": "1s"}

    assert during["edge-0"] == []
    assert during["edge-1"]
    assert [each for each in told.of("update", worker="edge-0") if each["t"] > over["t"]]
    with pytest.raises(
        ScenarioError, match="edge-0 is to be cut off from edge-1 and not from others, which the kernel"
    ):
        run_quickly(SCENARIO | settings | layers | {"faults": [between]}, emulation="model", runs_dir=tmp_path / "none")
