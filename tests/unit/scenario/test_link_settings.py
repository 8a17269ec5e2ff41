"""Links in a scenario: what is read, what is refused and where, and the link that a node is told."""

import re
from pathlib import Path

import pytest
from tests.shared.plan_text import plan_text

from edgebed.core.errors import InfrastructureError, ScenarioError, lacking
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.emulation.means import Mechanisms, mechanisms_of, place_of
from edgebed.planning.link_warnings import check_links, link_warnings, loss_refusal, pace_warnings
from edgebed.planning.planning import plan_trials
from edgebed.planning.warnings import HostCapacity
from edgebed.reports.plan.description import describe_plan
from edgebed.reports.plan.links import LinkRow, link_grid, link_rows, link_text
from edgebed.scenario.load import load_scenario, resolved_yaml

LINKED = """\
name: linked
question: Who has which link?
seed: 3
task: { data: digits, model: small }
method: adacomp
fleet:
  phone: { count: 3, uplink: 5mbit, downlink: 30mbit, latency: 40ms, jitter: 5ms }
  hub: {}
server: { uplink: 100mbit, downlink: 50mbit, latency: 2ms }
stop: { updates: 10 }
"""
TRACE = "time_s,up_mbit,down_mbit\n0,1,2\n10,0.5,4\n40,,\n"
MBIT = 1_000_000


@pytest.fixture
def links(load):
    """`links(*sets)`: the link of each node of the plan."""
    return lambda *sets: {node.node: node.link for node in plan_trials(load(LINKED, *sets))[0].plan.nodes}


@pytest.fixture
def trace(load):
    """A trace beside the scenario."""
    load()  # goes into the folder of the test
    Path("lte.csv").write_text(TRACE, encoding="utf-8")
    return "lte.csv"


def test_a_link_is_that_of_the_class_or_of_the_server_and_the_evaluator_has_none(links):
    """In base units; what is left out is as fast as the machine."""
    phone = LinkPlan(uplink_bit_s=5 * MBIT, downlink_bit_s=30 * MBIT, latency_s=0.04, jitter_s=0.005)
    server = LinkPlan(uplink_bit_s=100 * MBIT, downlink_bit_s=50 * MBIT, latency_s=0.002)

    assert links() == {
        "server": server, "evaluator": LinkPlan(), "phone-0": phone, "phone-1": phone, "phone-2": phone,
        "hub-0": LinkPlan(),
    }  # fmt: skip


def test_steps_become_changes(links):
    """Only what a step names changes."""
    steps = "fleet.hub.link_steps=[{at: 30s, uplink: 1mbit}, {at: 1m, loss: 0.5%, latency: 10ms, jitter: 0s}]"

    assert links(steps)["hub-0"] == LinkPlan(
        changes=(
            LinkChange(at_s=30.0, uplink_bit_s=MBIT),
            LinkChange(at_s=60.0, loss=0.005, latency_s=0.01, jitter_s=0.0),
        )
    )


def test_a_trace_begins_for_every_node_at_a_place_of_its_own(links, trace):
    """That the seed decides; latency may stand beside it."""
    rates = (f"fleet.phone.link_trace={trace}", "fleet.phone.uplink=null", "fleet.phone.downlink=null")
    first, again, other = links(*rates), links(*rates), links(*rates, "seed=4")
    offsets = {first[f"phone-{k}"].offset_s for k in range(3)}

    assert first == again
    assert len(offsets) == 3
    assert all(0.0 <= offset_s < 40.0 for offset_s in offsets)
    assert other["phone-0"].offset_s not in offsets
    assert first["phone-0"].changes == (
        LinkChange(at_s=0.0, uplink_bit_s=MBIT, downlink_bit_s=2 * MBIT),
        LinkChange(at_s=10.0, uplink_bit_s=MBIT // 2, downlink_bit_s=4 * MBIT),
    )
    assert (first["phone-0"].period_s, first["phone-0"].latency_s) == (40.0, 0.04)


def test_a_trace_is_looked_for_beside_the_scenario_file_or_of_a_dict_here(tmp_path, monkeypatch):
    """Wherever the command runs."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/s.yaml").write_text(LINKED, encoding="utf-8")
    (tmp_path / "sub/lte.csv").write_text(TRACE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    scenario = load_scenario("sub/s.yaml", ["fleet.hub.link_trace=lte.csv"])
    given = {
        "name": "d", "task": {"data": "digits", "model": "small"}, "method": "asgd", "stop": {"updates": 1},
        "fleet": {"hub": {"link_trace": "lte.csv"}},
    }  # fmt: skip

    assert scenario.trials["adacomp"].fleet["hub"].link_trace.path == tmp_path / "sub/lte.csv"
    with pytest.raises(ScenarioError, match=r"^fleet\.hub\.link_trace: lte\.csv cannot be read: No such file"):
        load_scenario(given)
    monkeypatch.chdir("sub")
    assert load_scenario(given).trials["asgd"].fleet["hub"].link_trace.path == tmp_path / "sub/lte.csv"


def test_the_resolved_form_finds_its_trace_from_anywhere(load, trace, tmp_path):
    """It stands in the run's folder."""
    scenario = load(LINKED, f"fleet.hub.link_trace={trace}")
    (tmp_path / "elsewhere").mkdir()
    resolved = tmp_path / "elsewhere/scenario.yaml"
    resolved.write_text(resolved_yaml(scenario), encoding="utf-8")

    assert load_scenario(resolved).trials == scenario.trials


def test_variants_and_options_change_links(load, trace):
    """Key by key; a trace takes the place of rates that are taken away."""
    text = LINKED + (
        "variants:\n  slow: { fleet: { phone: { uplink: 1mbit } }, pull: changed-since }\n"
        f"  lte: {{ fleet: {{ phone: {{ link_trace: {trace}, uplink: null, downlink: null }} }} }}\n"
    )
    plans = [planned.plan for planned in plan_trials(load(text, "variants.slow.server.downlink=1gbit"))]
    slow, lte = (plan.node("phone-0").link for plan in plans)

    assert (slow.uplink_bit_s, slow.downlink_bit_s) == (MBIT, 30 * MBIT)
    assert lte.period_s == 40.0
    assert [plan.node("server").link.downlink_bit_s for plan in plans] == [1000 * MBIT, 50 * MBIT]
    assert [plan.node("server").pull for plan in plans] == ["changed-since", "full"]


def test_a_run_may_be_expected_to_be_trusted(load):
    """It is no comparison of a measure."""
    (trusted,), (silent,) = (plan_trials(load(LINKED + extra)) for extra in ("expect: { verdict: trusted }\n", ""))

    assert (trusted.plan.expects_trusted, trusted.plan.expectations) == (True, ())
    assert not silent.plan.expects_trusted
    assert describe_plan(trusted).expectations == ("verdict trusted",)


# --- what holds links ------------------------------------------------------------------------------------------------

LOSSY_LATER = "fleet.hub.link_steps=[{at: 1s, loss: 1%}]"


def test_what_holds_links_follows_from_the_runtime_and_from_what_was_asked():
    """The simulation has the model that processes have without root."""
    places = [place_of("docker"), place_of("process", "kernel"), place_of("process", "model"), place_of("simulation")]

    assert places == ["docker", "namespaces", "model", None]
    assert [mechanisms_of("process", "model").by_kernel, mechanisms_of("docker").by_kernel] == [False, True]


@pytest.mark.parametrize(("runtime", "emulation"), [("simulation", "auto"), ("process", "model")])
def test_a_loss_that_nothing_makes_is_refused_where_it_stands(load, runtime, emulation):
    """A model of a link delays and never loses; what to do is in the message."""
    scenario = load(LINKED, LOSSY_LATER)
    with pytest.raises(ScenarioError) as by_option:
        check_links(scenario, plan_trials(scenario), runtime, emulation)
    in_file = load(LINKED.replace("5ms }", "5ms, loss: 1% }") + "variants: { a: {}, b: { method: asgd } }\n")
    with pytest.raises(ScenarioError) as by_file:
        check_links(in_file, plan_trials(in_file), runtime, emulation)

    assert str(by_option.value).startswith(f"--set {LOSSY_LATER}: packets cannot be lost here: the link is held by the")
    assert str(by_file.value).startswith("s.yaml:7:89: fleet.phone.loss: packets cannot be lost here: ")
    assert len(by_file.value.problems) == 1
    assert "Remove the loss, or let the kernel hold the link: --runtime docker" in str(by_file.value)


def test_a_loss_needs_netem_where_the_kernel_holds_the_link():
    """Where that cannot be known beforehand, the nodes' containers will show."""
    assert loss_refusal(Mechanisms("namespaces", netem=False)) == (
        "packets cannot be lost here: this kernel has no netem (modprobe sch_netem loads it, where it was built). "
        "Or remove the loss"
    )
    assert loss_refusal(Mechanisms("docker", netem=True)) is None
    assert loss_refusal(Mechanisms("docker", netem=None)) is None


@pytest.mark.parametrize(
    ("held_by", "emulation", "lack"),
    [
        (Mechanisms("namespaces", netem=False), "kernel", "this kernel has no netem"),
        (Mechanisms("namespaces", netem=False), "auto", "this kernel has no netem"),
        (Mechanisms("model"), "auto", "this kernel has no bridge"),
    ],
)
def test_a_loss_that_the_kernel_cannot_make_is_the_kernels_lack(load, monkeypatch, held_by, emulation, lack):
    """It is no mistake in the scenario, though the message says where it is; nobody is told to become root."""
    monkeypatch.setattr("edgebed.planning.link_warnings.mechanisms_of", lambda *_: held_by)
    monkeypatch.setattr("edgebed.planning.link_warnings.kernel_lacks_links", lambda: held_by.place == "model")
    monkeypatch.setattr("edgebed.planning.link_warnings.why_no_namespaces", lambda: lacking("bridge", "bridge"))
    scenario = load(LINKED, LOSSY_LATER)

    with pytest.raises(InfrastructureError) as refused:
        check_links(scenario, plan_trials(scenario), "process", emulation)

    assert str(refused.value).startswith(f"--set {LOSSY_LATER}: packets cannot be lost here: {lack} (modprobe ")
    assert "root" not in str(refused.value)
    assert refused.value.exit_code == 3


def test_without_loss_nothing_is_refused(load):
    """Latency can be made everywhere."""
    scenario = load(LINKED)

    for runtime in ("simulation", "process", "docker"):
        check_links(scenario, plan_trials(scenario), runtime)


# --- what a plan shows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("link", "text"),
    [
        (LinkPlan(), "no limit"),
        (LinkPlan(uplink_bit_s=10 * MBIT, downlink_bit_s=100 * MBIT), "up 10mbit down 100mbit"),
        (LinkPlan(latency_s=0.04, jitter_s=0.005, loss=0.01), "40ms±5ms loss 1%"),
        (LinkPlan(latency_s=0.04, changes=(LinkChange(at_s=1.0, loss=0.1),)), "40ms steps 1"),
        (LinkPlan(changes=(LinkChange(at_s=1.0, uplink_bit_s=MBIT),)), "steps 1"),
        (
            LinkPlan(
                period_s=40.0,
                latency_s=0.04,
                uplink_bit_s=MBIT,
                downlink_bit_s=MBIT,
                changes=(
                    LinkChange(at_s=0.0, uplink_bit_s=MBIT, downlink_bit_s=MBIT),
                    LinkChange(at_s=9.0, uplink_bit_s=MBIT, downlink_bit_s=1_250_000),
                ),
            ),
            "trace 40s up 1mbit down 1mbit..1.25mbit 40ms",
        ),
    ],
)
def test_a_link_is_shown_in_one_line(link, text):
    """With what it begins with; a trace with what it ranges over."""
    assert link_text(link) == text


def test_a_plan_says_how_long_a_model_and_a_push_take(load):
    """All bytes of an Ethernet over the slower of the two links, and the latency of both; at best and at worst."""
    steps = "fleet.phone.link_steps=[{at: 9s, downlink: 10mbit}]"
    (planned,) = plan_trials(load(LINKED, steps))
    server, phone, hub = link_rows(planned.plan, 144_800, 14_480)

    assert (server.pull_s, server.push_s) == (None, None)
    assert phone.pull_s == pytest.approx((0.042 + 8 * 151_400 / 30e6, 0.042 + 8 * 151_400 / 10e6))
    assert phone.push_s == pytest.approx((0.042 + 8 * 15_140 / 5e6,) * 2)
    assert hub.pull_s == pytest.approx((0.002 + 8 * 151_400 / 100e6,) * 2)


def test_the_text_of_a_plan_has_the_links_and_what_holds_them(load):
    """A row for each class and the server."""
    (planned,) = plan_trials(load(LINKED))
    text = plan_text(
        describe_plan(planned, runtime="process", emulation="model", host=HostCapacity(cpus=64, memory_bytes=2**40))
    )

    assert re.search(r"phone +up 5mbit down 30mbit 40ms±5ms +47\.4 ms +42\.7 ms", text)
    assert "Links are held by the transport's own model of a link." in text


def test_the_times_of_a_class_are_in_one_unit(load):
    """So that they can be compared; beyond ten seconds in the report's units."""
    rows = [LinkRow(device_class="a", link="", pull_s=(0.0371,) * 2, push_s=(0.101, 1.26)),
            LinkRow(device_class="b", link="", pull_s=(0.5,) * 2, push_s=(12.34, 75.0)),
            LinkRow(device_class="server", link="")]  # fmt: skip

    assert [row[2:] for row in link_grid(rows).rows] == [
        ("37.1 ms", "101 ms..1,260 ms"),
        ("0.50 s", "12.3 s..75.0 s"),
        ("–", "–"),
    ]


def test_a_plan_says_why_nodes_delay_themselves(load):
    """Where the kernel holds the rates but has no netem."""
    (planned,) = plan_trials(load(LINKED))
    held_by = describe_plan(planned, runtime="docker").links_held_by

    assert held_by.endswith(", latency by the nodes themselves (this kernel has no netem)") == (
        mechanisms_of("docker").netem is False
    )


def test_a_plan_without_links_says_nothing_of_them(load, good):
    """Neither in the text nor as a warning."""
    (planned,) = plan_trials(load(good))
    description = describe_plan(planned, runtime="simulation")

    assert (description.links, description.links_held_by) == ((), "")
    assert "ink" not in plan_text(description)


@pytest.mark.parametrize(
    ("sets", "warning"),
    [
        (
            ("server=null", "fleet.hub={uplink: 1mbit, downlink: 100mbit}"),
            "hub: to acknowledge 100mbit takes 2.18mbit upwards, more than the uplink of 1mbit: it will receive no",
        ),
        (
            ("server=null", "fleet.hub.link_steps=[{at: 1s, downlink: 1gbit, uplink: 9mbit}]"),
            "hub: to acknowledge 1gbit takes 21.8mbit upwards",
        ),
        (
            ("server={uplink: 10mbit, downlink: 1gbit}", "fleet.phone.downlink=null"),
            "server: to acknowledge 1gbit takes 21.8mbit upwards",
        ),
        (
            ("server.downlink=10mbit",),
            "the workers' uplinks add up to 15mbit, the server's downlink is 10mbit: when many push at once",
        ),
        (
            ("server.uplink=80mbit",),
            "the workers' downlinks add up to 90mbit, the server's uplink is 80mbit: when many pull at once",
        ),
        (
            ("fleet.phone={loss: 1%, downlink: null}",),
            "phone: its downlink loses packets and has no rate: as many as TCP sends at once, up to 64 kB, are lost",
        ),
    ],
)
def test_links_that_get_in_each_others_way_are_warned_of(load, sets, warning):
    """Acknowledgements that do not fit upwards, and a server's link that all the workers' share."""
    calm, surprising = (plan_trials(load(LINKED, *options))[0].plan for options in ((), sets))

    assert list(link_warnings(calm)) == []
    (found,) = link_warnings(surprising)
    assert found.startswith(warning)


@pytest.mark.parametrize(
    ("count", "runtime", "emulation", "words"),
    [
        (70, "docker", "auto", ["the links change 700 times a second in all, which takes 0.595 cores (0.85 ms each)"]),
        (70, "process", "model", []),
        (70, "simulation", "auto", []),
        (50, "docker", "auto", []),
    ],
)
def test_links_that_change_more_often_than_the_machine_can_follow_are_warned_of(
    load, trace, count, runtime, emulation, words
):
    """Where the kernel has to be told of every change."""
    rows = "".join(f"{k / 10},1,2\n" for k in range(21))
    Path(trace).write_text(f"time_s,up_mbit,down_mbit\n{rows}", encoding="utf-8")
    (planned,) = plan_trials(load(LINKED, f"fleet.hub={{count: {count}, link_trace: {trace}}}"))

    assert [text.split(":")[0] for text in pace_warnings(planned.plan, runtime, emulation)] == words
