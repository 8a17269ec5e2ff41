"""What holds links and caps in processes, and what a run says of it: from the plan and what the machine allows."""

import pytest

from edgebed.emulation import means
from edgebed.emulation.local import Local, local_of
from edgebed.emulation.means import Means, check_means
from edgebed.emulation.namespaces import PORTS_MAX
from edgebed.errors import ScenarioError
from edgebed.scenario.plan import Link, Method, NodePlan, Part, Plan, Task

SLOW = Link(uplink_bit_s=1_000_000)
LATE = Link(latency_s=0.04)
BOTH = Link(uplink_bit_s=1_000_000, latency_s=0.04)
NOT_ROOT = "that takes root"


def plan_of(*links: Link, count: int = 1, cpus: float | None = None, memory_bytes: int | None = None) -> Plan:
    """A server, and workers with these links and caps."""
    task = Task(model="-", input_shape=(1,), classes=2, layout=(), batch_size=1, gradient_time_s=0.01)
    part = Part(name="-")
    method = Method(name="-", aggregation=part, compression=part, local_work=part)
    server = NodePlan(node="server", role="server", device_class="server", seed=1, task=task, method=method)
    workers = [
        NodePlan(
            node=f"edge-{number}", role="worker", device_class="edge", seed=1, task=task, method=method, link=link,
            cpus=cpus, memory_bytes=memory_bytes,
        )
        for number, link in enumerate(links * count)
    ]  # fmt: skip
    return Plan(scenario="-", trial="-", question="-", seed=1, nodes=(server, *workers))


@pytest.fixture
def allowed(monkeypatch):
    """Let this process be allowed or not allowed to use the kernel's means, for the reason given."""

    def allow(namespaces: str = "", cgroups: str = "") -> None:
        monkeypatch.setattr("edgebed.emulation.means.why_no_namespaces", lambda: namespaces)
        monkeypatch.setattr("edgebed.emulation.means.why_no_cgroups", lambda: cgroups)
        monkeypatch.setattr("edgebed.emulation.local.why_no_namespaces", lambda: namespaces)
        monkeypatch.setattr("edgebed.emulation.local.why_no_cgroups", lambda: cgroups)

    return allow


def held_by(means: Means, plan: Plan) -> list[tuple[str, str]]:
    """Mechanism and delay of each worker's link."""
    return [(means.mechanism(node), means.delay(node)) for node in plan.workers()]


def test_each_link_is_held_by_what_there_is():
    """A link without limits needs nothing; latency needs netem, or the transport."""
    plan = plan_of(SLOW, LATE, BOTH, Link())

    assert held_by(Means("model"), plan) == [("model", ""), ("none", "line"), ("model", "line"), ("none", "")]
    for place in ("namespaces", "docker"):
        assert held_by(Means(place), plan) == [("tc", ""), ("none", "line"), ("tc", "line"), ("none", "")]
        assert held_by(Means(place, netem=True), plan) == [
            ("tc", ""), ("tc", "netem"), ("tc", "netem"), ("none", "")
        ]  # fmt: skip


def test_a_run_says_which_of_the_kernels_means_acted():
    """And nothing of what was not asked for."""
    links = Local(plan=plan_of(BOTH), means=Means("namespaces", netem=True))
    caps = Local(plan=plan_of(Link(), cpus=0.5, memory_bytes=1), cgroups=True)

    assert list(links.notes()) == [
        "Rates of links are held by the kernel's queues (tc) in a network namespace for each node.",
        "Latency and jitter of links are made by the kernel (netem).",
        "Links without a limit are as fast as the machine.",
    ]
    assert list(caps.notes()) == [
        "Links are as fast as the machine.",
        "CPU caps are held by the kernel (cgroups).",
        "Memory caps are held by the kernel (cgroups); pages that nodes share, as torch's, do not count.",
    ]


def test_a_run_says_why_the_kernel_did_not_act():
    """Once for links and once for caps."""
    plan = plan_of(BOTH, cpus=0.5, memory_bytes=1)

    assert list(Local(plan=plan, why_model=NOT_ROOT, why_paced=NOT_ROOT).notes()) == [
        "The kernel does not hold links: that takes root.",
        "Rates of links are held by the transport's own model of a link.",
        "Latency and jitter of links are made by the transport's own delay line.",
        "Links without a limit are as fast as the machine.",
        "The kernel does not hold caps: that takes root.",
        "CPU caps below one core are held by pacing: workers and the evaluator stretch their own work.",
        "Memory caps are not held.",
    ]


def test_the_kernel_is_asked_only_for_what_the_plan_needs(allowed):
    """Without links there is no reason to say why there are no namespaces."""
    allowed(namespaces="no veth here", cgroups="read-only")
    neither, capped = local_of(plan_of(Link()), "auto"), local_of(plan_of(Link(), cpus=0.5), "auto")

    assert (neither.means.place, neither.cgroups, neither.why_model, neither.why_paced) == ("model", False, "", "")
    assert (capped.cgroups, capped.why_model, capped.why_paced) == (False, "", "read-only")
    assert local_of(plan_of(SLOW), "auto").why_model == "no veth here"
    assert local_of(plan_of(SLOW, cpus=0.5), "model") == Local(plan=plan_of(SLOW, cpus=0.5))


def test_the_kernel_is_used_as_far_as_it_can_be_had(allowed):
    """Cgroups without namespaces, as in a container with a cgroup tree of its own."""
    allowed(namespaces="no veth here")
    local = local_of(plan_of(SLOW, cpus=0.5), "auto")

    assert (local.means.place, local.cgroups) == ("model", True)


def test_the_kernel_alone_is_refused_where_it_cannot_be_had(allowed):
    """Each for what the plan asks of it."""
    allowed(namespaces="no veth here", cgroups="read-only")

    check_means([plan_of(Link()), plan_of(SLOW)], "process", "auto")
    check_means([plan_of(Link())], "process", "kernel")
    with pytest.raises(ScenarioError, match="kernel cannot hold links here: no veth here"):
        check_means([plan_of(Link()), plan_of(SLOW)], "process", "kernel")
    with pytest.raises(ScenarioError, match="kernel cannot hold caps here: read-only"):
        check_means([plan_of(Link(), memory_bytes=1)], "process", "kernel")


def test_more_nodes_than_a_bridge_takes_are_refused_with_what_to_do(allowed):
    """The transport's model has no such limit."""
    allowed()
    too_many = plan_of(SLOW, count=PORTS_MAX)

    with pytest.raises(ScenarioError, match=r"1024 nodes .* takes 1023\. Take fewer workers, or --emulation model"):
        check_means([too_many], "process", "auto")
    check_means([plan_of(SLOW, count=PORTS_MAX - 1)], "process", "auto")
    check_means([too_many], "process", "model")
    check_means([plan_of(Link(), count=PORTS_MAX)], "process", "auto")


def test_another_runtime_has_its_own_means():
    """An option that contradicts them is refused, one that agrees is not."""
    check_means([], "docker", "kernel")
    check_means([], "simulation", "model")
    for runtime, emulation in (("docker", "model"), ("simulation", "kernel")):
        with pytest.raises(ScenarioError, match="leave it out"):
            check_means([], runtime, emulation)


def test_whoever_is_not_root_is_not_allowed(monkeypatch):
    """That is known without trying."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    assert means.why_no_namespaces.__wrapped__() == NOT_ROOT
    assert means.why_no_cgroups.__wrapped__() == NOT_ROOT
