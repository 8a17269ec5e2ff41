"""Plans of programs: ranks, commands, links and faults; what a runtime cannot run, and what is warned of."""

import json

import pytest
from command_line import command_line

from edgebed.core.errors import InfrastructureError, ScenarioError
from edgebed.core.package import SHIPPED
from edgebed.core.planned.fault import AtMeasure, Trigger
from edgebed.core.planned.link import LinkPlan
from edgebed.core.planned.program import Ends, OutputMeasure, Page, Ready
from edgebed.emulation import means
from edgebed.planning import program_plans
from edgebed.planning.link_warnings import check_links
from edgebed.planning.program_plans import check_programs, plan_programs, program_warnings
from edgebed.planning.warnings import HostCapacity
from edgebed.scenario.load import load_scenario, resolved_yaml

RING = r"""
name: ring
question: What does a step cost?
seed: 7
program:
  run: python train.py --peers {addresses}
  env: { THREADS: 1, MODE: slow }
  ends: { log: 'all done', of: hub }
  measures: { loss: 'loss=(\S+)', accuracy: json, step: { log: 'step (\d+)', of: home-0 } }
  limits: { processes: 64, scratch: 1MiB }
fleet:
  hub: { run: "python 'my server.py'", ready: { port: 8000, time: 3s }, env: { MODE: fast } }
  home: { count: 3, cpus: 0.5, memory: 512MiB, uplink: 5mbit, link_steps: [{ at: 5s, uplink: 1mbit }], after: hub }
faults:
  - { cut: home-2, at_measure: { step: 50, of: home-0 }, for: 20s }
  - { kill: { class: home, random: 1 }, at: 30s }
  - { freeze: hub, at_measure: { loss: "<= 0.5" } }
on_failure: restart-all
stop: { time: 5m }
deadlines: { join: 20s, silence: 5s, check: 500ms }
expect: { exit_code: "== 0", final_loss: "<= 1.2", traffic_bytes: "<= 400MB", verdict: trusted }
"""
HERE = HostCapacity(cpus=4, memory_bytes=8 << 30)


@pytest.fixture
def ring(load):
    """Loads a scenario's text with `--set` options."""
    return lambda *sets, text=RING: load(text, *sets)


@pytest.fixture
def plan(ring):
    """The plan of the only trial of a scenario's text."""
    return lambda *sets, text=RING: plan_programs(ring(*sets, text=text))[0].plan


def test_ranks_go_through_the_classes_in_their_order(plan):
    """A node has its class's command, or the program's, word by word, and its number in the class."""
    nodes = plan().nodes

    assert [(each.node, each.rank, each.index) for each in nodes] == [
        ("hub-0", 0, 0), ("home-0", 1, 0), ("home-1", 2, 1), ("home-2", 3, 2),
    ]  # fmt: skip
    assert nodes[0].run == ("python", "my server.py")
    assert {each.run for each in nodes[1:]} == {("python", "train.py", "--peers", "{addresses}")}
    assert [each.environment for each in nodes[:2]] == [
        {"THREADS": "1", "MODE": "fast"},
        {"THREADS": "1", "MODE": "slow"},
    ]
    assert [(each.after, each.ready) for each in nodes[:2]] == [
        ((), Ready(port=8000, after_s=3.0)),
        (("hub",), Ready()),
    ]


def test_caps_links_and_limits_of_time_are_those_of_any_trial(plan):
    """With the faults' draws made, and links told of that faults change."""
    found = plan()

    assert (found.trial, found.seed, found.stop_time_s) == ("program", 7, 300.0)
    assert (found.join_deadline_s, found.silence_s, found.check_s) == (20.0, 5.0, 0.5)
    assert (found.on_failure, found.expects_trusted) == ("restart-all", True)
    assert found.expectations[:2] == (("exit_code", "==", 0.0), ("final_loss", "<=", 1.2))
    hub, home = found.nodes[:2]
    assert (hub.cpus, hub.memory_bytes, hub.link) == (None, None, LinkPlan())
    assert (home.cpus, home.memory_bytes, home.check_s) == (0.5, 512 << 20, 0.5)
    assert (home.link.uplink_bit_s, [each.uplink_bit_s for each in home.link.changes]) == (5_000_000, [1_000_000])
    assert [each.node for each in found.nodes if each.changeable] == ["home-2"]
    cut, kill, freeze = found.faults
    assert cut.trigger == Trigger(at_measure=AtMeasure(measure="step", value=50.0, of="home-0"))
    assert freeze.trigger.at_measure == AtMeasure(measure="loss", value=0.5, comparison="<=")
    assert kill.node.startswith("home-")


def test_the_program_has_what_ends_it_and_what_its_output_tells(plan):
    """In the order of the scenario; a pattern that is empty means lines that are JSON."""
    program = plan().program

    assert program.ends == Ends(kind="log", log="all done", of="hub")
    assert program.measures == (
        OutputMeasure(name="loss", pattern=r"loss=(\S+)"),
        OutputMeasure(name="accuracy", pattern=""),
        OutputMeasure(name="step", pattern=r"step (\d+)", of="home-0"),
    )
    assert (program.limits.processes, program.limits.scratch_bytes) == (64, 1 << 20)


def test_a_page_is_that_of_the_class_or_of_the_program(plan):
    """A measure that is a metric has no expression."""
    found = plan(
        "program.prometheus={ port: 9100 }",
        "fleet.hub.prometheus={ port: 9200, path: /own }",
        "program.measures.accuracy={ prometheus: 'accuracy{split=\"val\"}', of: hub }",
    )

    assert [node.page for node in found.nodes] == [Page(port=9200, path="/own"), *[Page(port=9100)] * 3]
    assert found.program.measures[1] == OutputMeasure(
        name="accuracy", pattern="", metric='accuracy{split="val"}', of="hub"
    )
    assert {node.page for node in plan().nodes} == {None}


@pytest.mark.parametrize(
    ("given", "ends"),
    [("all", Ends()), ("first", Ends(kind="first")), ("hub", Ends(kind="class", of="hub")),
     ("home-1", Ends(kind="class", of="home-1"))],
)  # fmt: skip
def test_a_trial_ends_with_all_the_first_a_class_or_a_node(plan, given, ends):
    """Each form is a word."""
    assert plan(f"program.ends={given}").program.ends == ends


def test_what_is_resolved_is_the_same_scenario(ring, plan):
    """With every default written out, and loaded anew."""
    text = resolved_yaml(ring())

    assert ring(text=text).trials == ring().trials
    assert plan(text=text) == plan()


def test_each_variant_is_a_trial_with_links_of_its_own(ring):
    """As of trials that train; each node has its place in a trace."""
    variants = "variants: { slow: { fleet: { home: { uplink: 1mbit } } }, played: { fleet: { home: { uplink: null, "
    variants += "link_steps: [], link_trace: lte-synthetic } } } }\n"
    slow, played = (each.plan for each in plan_programs(ring(text=RING + variants)))

    assert (slow.trial, slow.nodes[1].link.uplink_bit_s) == ("slow", 1_000_000)
    assert len({node.link.offset_s for node in played.nodes[1:]}) == 3


def test_nodes_are_placed_on_hosts_which_have_memory_for_them(ring, plan):
    """By their promises, as any node."""
    hosts = "hosts: { a: { classes: [hub], cores: 2, memory: 1GiB }, b: { cores: 2, memory: 4GiB, classes: [home] } }\n"

    assert [node.host for node in plan(text=RING + hosts).nodes] == ["a", "b", "b", "b"]
    with pytest.raises(ScenarioError, match="the nodes of host b are promised 1536MiB of 1GiB"):
        plan("hosts.b.memory=1GiB", text=RING + hosts)


def test_runtimes_that_cannot_run_programs_say_why(ring):
    """Virtual time never, and no model of a link."""
    with pytest.raises(ScenarioError, match=r"^virtual time cannot run a program: .*; use --runtime process as root"):
        check_programs(ring(), "simulation")
    with pytest.raises(ScenarioError, match=r"^--emulation model: .* leave the option out$"):
        check_programs(ring(), "process", "model")
    several = ring(text=RING + "hosts: { a: { cores: 2, memory: 1GiB }, b: { cores: 2, memory: 4GiB } }\n")

    check_programs(several, "docker")
    check_programs(several, "process")


def test_latency_is_refused_where_nothing_makes_it(ring, monkeypatch):
    """A delay line is in edgebed's own nodes; packets are lost by netem alone, as always."""
    monkeypatch.setattr("edgebed.planning.link_warnings.mechanisms_of", lambda *_: means.Mechanisms("namespaces"))

    check_links(ring(), plan_programs(ring()), "process")
    for key in ("latency=5ms", "link_steps=[{at: 1s, latency: 5ms}]"):
        late = ring(f"fleet.home.{key}")
        with pytest.raises(InfrastructureError, match=r"latency cannot be made here: .* Or leave it out"):
            check_links(late, plan_programs(late), "process")


def test_doubts_are_warned_of(plan, monkeypatch):
    """Of a class that others wait for, of caps too small to begin with, of links, of the machine."""
    monkeypatch.setattr(program_plans, "why_no_namespaces", lambda: "")

    def warned(*sets):
        return "\n".join(program_warnings(plan(*sets), "process", HERE))

    assert warned() == ""
    assert warned("fleet.hub.ready=null").startswith("hub: others wait for it, and nothing shows when it is ready")
    assert warned("fleet.hub.cpus=0.01").startswith("hub: with 0.01 cores it has 200ms of a core until deadlines.join")
    assert "to acknowledge 1gbit takes" in warned("fleet.home.downlink=1gbit")
    assert "the CPU caps add up to 6 cores, but this machine has 4" in warned("fleet.home.cpus=2")
    assert warned("program.image=mine").startswith("image and build have no effect in the process runtime")
    monkeypatch.setattr(program_plans, "why_no_namespaces", lambda: "that takes root")
    assert warned() == "these programs cannot run here in the process runtime: that takes root."


def test_a_scenario_of_programs_is_no_scenario_that_trains(ring):
    """Whatever needs a method says so, and edgebed's own names stay."""
    with pytest.raises(ScenarioError, match=r"\.yaml: its nodes run programs of your own, and this is for"):
        _ = ring().training
    assert ring().runs_programs
    assert not load_scenario("quickstart").runs_programs


@pytest.mark.parametrize("name", ["ring", "sockets"])
def test_the_plan_of_a_scenario_that_comes_with_edgebed_is_shown(name, monkeypatch, capsys):
    """Each class with its command, its link and its readiness; faults; what ends it and what is measured."""
    monkeypatch.chdir(SHIPPED)
    edgebed = command_line(monkeypatch, capsys)

    code, out, err = edgebed("plan", f"programs/{name}")
    assert code == 0, err
    for part in ("home", "cut, heal after", "Measured: loss by loss=", "Expected: exit_code == 0"):
        assert part in out

    code, out, err = edgebed("plan", f"programs/{name}", "--json")
    (found,) = json.loads(out)
    assert [row["device_class"] for row in found["classes"]] == {"ring": ["home"], "sockets": ["hub", "home"]}[name]
    assert found["num_nodes"] == {"ring": 3, "sockets": 4}[name]
