"""The commands that act by hand, against a controller's end that does as the test says."""

import json
import threading

import pytest
from command_line import command_line
from node_plans import plan_of_role

from edgebed.core.plan import TrainingPlan
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkChange
from edgebed.journal.run_folder import RunFolder, write_atomically
from edgebed.roles.events import CommandResult
from edgebed.runtimes.live.control import Control


def plan(classes):
    """A trial with so many workers of each class."""
    names = [("server", "server", "server"), ("evaluator", "evaluator", "evaluator")]
    names += [(f"{name}-{k}", "worker", name) for name, count in classes.items() for k in range(count)]
    nodes = tuple(plan_of_role(node=node, role=role, device_class=device_class) for node, role, device_class in names)
    return TrainingPlan(scenario="tiny", trial="asgd", question="", seed=1, nodes=nodes)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A folder of runs that the environment points to."""
    monkeypatch.setenv("EDGEBED_RUNS_DIR", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture
def edgebed(monkeypatch, capsys):
    """Runs a command line in this process; gives (exit code, standard output, standard error)."""
    call = command_line(monkeypatch, capsys)
    return lambda words: call(*words.split())


def make_run(runs, runtime="process", classes=None, scenario="tiny"):
    """A run whose only trial has begun."""
    folder = RunFolder.create(runs, scenario)
    folder.write_manifest(seed=1, runtime=runtime, command=[], trials=["asgd"])
    folder.trial("asgd").make(plan(classes or {"edge": 2, "slow": 1}))
    return folder


class Controlled:
    """A controller's end in a thread: answers every order with `problem` and remembers what it asked for."""

    def __init__(self, folder, problem):
        self.injections, self.problem = [], problem
        self.control = Control(folder.path)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        """Until the test is over."""
        while not self.over.wait(0.005):
            for ordered in self.control.orders():
                self.injections += ordered.injections
                self.control.answer(CommandResult(ordered.ticket, self.problem))

    def close(self):
        """Leave nothing."""
        self.over.set()
        self.thread.join()
        self.control.close()


@pytest.fixture
def live(runs):
    """Makes a run in progress whose controller answers."""
    held, controlled = [], []

    def make(problem="", **settings):
        folder = make_run(runs, **settings)
        hold = folder.locked()
        hold.__enter__()
        held.append(hold)
        controlled.append(Controlled(folder, problem))
        return controlled[-1]

    yield make
    for each in controlled:
        each.close()
    for hold in held:
        hold.__exit__(None, None, None)


def injections(action, *nodes, **settings):
    """One for each node."""
    return [Injection(node=node, action=action, **settings) for node in nodes]


@pytest.mark.parametrize(
    ("words", "asked", "said"),
    [
        ("kill edge-0", injections("kill", "edge-0"), "killed edge-0 of tiny/0001 in 0."),
        ("freeze edge", injections("freeze", "edge-0", "edge-1"), "froze edge-0, edge-1 of "),
        ("thaw edge-1 edge edge-1", injections("thaw", "edge-1", "edge-0"), "thawed edge-1, edge-0 of "),
        ("cut workers", injections("cut", "edge-0", "edge-1", "slow-0"), "cut edge-0, edge-1, slow-0 of "),
        ("heal server slow", injections("heal", "server", "slow-0"), "healed server, slow-0 of "),
        ("restart slow", [*injections("kill", "slow-0"), *injections("launch", "slow-0")], "restarted slow-0 of "),
        ("cpus edge 0.5", injections("cpus", "edge-0", "edge-1", cpus=0.5), "set cpus 0.5 of edge-0, edge-1 of "),
        ("cpus edge-0 as-planned", injections("cpus", "edge-0"), "set cpus as-planned of edge-0 of "),
        (
            "link set edge-0 --uplink 1mbit --downlink 2mbit --latency 40ms --jitter 5ms --loss 1%",
            injections("link", "edge-0", change=LinkChange(
                uplink_bit_s=10**6, downlink_bit_s=2 * 10**6, latency_s=0.04, jitter_s=0.005, loss=0.01,
            )),
            "set the link of edge-0 of ",
        ),
        ("link set slow --as-planned", injections("link", "slow-0"), "set the link of slow-0 of "),
    ],
)  # fmt: skip
def test_each_command_asks_for_what_it_says(edgebed, live, words, asked, said):
    """Nodes by name and by class, each once; the answer says who, where and how long."""
    controlled = live()
    code, out, err = edgebed(words)

    assert (code, err) == (0, "")
    assert controlled.injections == asked
    assert out.startswith(said)
    assert out.endswith(" s\n")


def test_many_nodes_are_counted(edgebed, live):
    """A line stays a line."""
    controlled = live(classes={"edge": 20})
    _, out, _ = edgebed("kill edge")

    assert len(controlled.injections) == 20
    assert out.startswith("killed edge-0, edge-1, edge-2, edge-3, edge-4, edge-5, … (20 nodes) of tiny/0001 in ")


def test_json_tells_the_same(edgebed, live):
    """For scripts."""
    live()
    told = json.loads(edgebed("cpus edge-0 0.5 --json")[1])

    assert told.pop("seconds") >= 0.0
    assert told == {
        "actions": ["cpus"], "cpus": 0.5, "run": "tiny/0001", "trial": "asgd", "nodes": ["edge-0"],
    }  # fmt: skip


def test_what_the_controller_says_is_said(edgebed, live):
    """In its words, with the exit code of a mistake in the command."""
    live(problem="edge-0: it is frozen already")

    assert edgebed("freeze edge-0") == (2, "", "error: tiny/0001: edge-0: it is frozen already\n")
    code, _, err = edgebed("freeze edge-0 edge-1")
    assert (code, err) == (2, "error: tiny/0001: edge-0: it is frozen already; the rest is done\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "kill edge-7",
            "error: no node 'edge-7'; there are server, evaluator, edge-0, edge-1, slow-0; a class (edge, slow) or ",
        ),
        ("link set edge-0", "error: link set: give what is to change (--uplink, "),
        ("link set edge-0 --as-planned --uplink 1mbit", "error: link set: give what is to change (--uplink, "),
        ("link set edge-0 --uplink 1mbps", "error: --uplink: not a rate: '1mbps'"),
        ("link set edge-0 --loss 100%", "error: --loss: a link that loses all packets carries nothing"),
        (
            "cpus edge-0 many",
            "error: cpus: 'many' is not a number of cores from 0.01 to 10000, e.g. 0.5, nor 'as-planned'\n",
        ),
        ("cpus edge-0 0.001", "error: cpus: '0.001' is not a number of cores from 0.01 "),
        ("cpus edge-0 1e9", "error: cpus: '1e9' is not a number of cores from 0.01 "),
        ("cpus edge-0 0", "error: cpus: '0' is not a number"),
        ("cpus edge-0 nan", "error: cpus: 'nan' is not a number"),
        ("kill edge-0 --run big", "error: no run 'big'; there are tiny/0001"),
    ],
)
def test_the_users_mistakes_are_found_before_anything_is_asked(edgebed, live, words, said):
    """Each with what is allowed."""
    controlled = live()
    code, out, err = edgebed(words)

    assert (code, out) == (2, "")
    assert err.startswith(said)
    assert controlled.injections == []


def test_without_a_run_in_progress_there_is_nothing_to_act_on(edgebed, runs):
    """Neither where there is none, nor where it is over."""
    none = f"error: no run is in progress in {runs}; its folder is given with --runs-dir\n"

    assert edgebed("kill edge-0") == (2, "", none)
    folder = make_run(runs)
    write_atomically(folder.summary, b"{}")
    assert edgebed("kill edge-0") == (2, "", none)
    code, _, err = edgebed("kill edge-0 --run tiny")
    assert (code, err) == (2, f"error: run tiny/0001 is not in progress; none is, in {runs}\n")


def test_of_several_runs_in_progress_one_has_to_be_named(edgebed, live):
    """By the ways in which runs have names; a simulation is none of them."""
    first, second = live(), live(scenario="other")
    code, _, err = edgebed("kill edge-0")
    assert (code, err) == (2, "error: several runs are in progress: other/0001, tiny/0001; say which with --run\n")

    assert edgebed("kill edge-0 --run other")[0] == 0
    assert (len(first.injections), len(second.injections)) == (0, 1)


def test_nobody_can_act_on_a_simulation(edgebed, live):
    """It is over before anybody could; its faults are the scenario's."""
    live(runtime="simulation")
    code, _, err = edgebed("kill edge-0")

    assert code == 2
    assert err.startswith("error: run tiny/0001 is a simulation, which runs in virtual time: nobody can act on it")


def test_a_run_between_two_trials_says_so(edgebed, runs):
    """It is in progress, and nobody listens."""
    with make_run(runs).locked():
        code, _, err = edgebed("kill edge-0")

    assert code == 2
    assert "nobody listens at control.sock: the run is between two trials" in err
