"""What holds links and caps in processes, and what a run says of it: from the plan and what the machine allows."""

import msgspec
import pytest
from tasks import one_array

from edgebed.core.errors import InfrastructureError, KernelLackError, ScenarioError, lacking
from edgebed.core.plan import Method, Part, ProgramsPlan, ServerPlan, Task, TrainingPlan, WorkerPlan
from edgebed.core.planned.fault import FaultPlan, FaultStep, Injection, Trigger
from edgebed.core.planned.link import LinkChange, LinkPlan
from edgebed.core.planned.program import Program, ProgramPlan
from edgebed.emulation import means
from edgebed.emulation.local import LocalMechanisms, local_mechanisms
from edgebed.emulation.means import Mechanisms, check_conditions, check_mechanisms
from edgebed.emulation.namespaces import PORTS_MAX

SLOW = LinkPlan(uplink_bit_s=1_000_000)
LATE = LinkPlan(latency_s=0.04)
BOTH = LinkPlan(uplink_bit_s=1_000_000, latency_s=0.04)
NOT_ROOT = "that takes root"


def plan_of(
    *links: LinkPlan, count: int = 1, cpus: float | None = None, memory_bytes: int | None = None
) -> TrainingPlan:
    """A server, and workers with these links and caps."""
    task = Task(model="-", inputs=one_array((1,)), outputs=2, layout=(), batch_size=1, gradient_time_s=0.01)
    part = Part(name="-")
    method = Method(name="-", parts={"aggregation": part, "compression": part, "local_work": part})
    server = ServerPlan(node="server", device_class="server", seed=1, task=task, method=method)
    workers = [
        WorkerPlan(
            node=f"edge-{number}", device_class="edge", seed=1, task=task, method=method, link=link,
            cpus=cpus, memory_bytes=memory_bytes,
        )
        for number, link in enumerate(links * count)
    ]  # fmt: skip
    return TrainingPlan(scenario="-", trial="-", question="-", seed=1, nodes=(server, *workers))


def with_fault(plan: TrainingPlan, action: str, node: str = "edge-0", **settings: object) -> TrainingPlan:
    """The same plan with one fault, as planning marks the node for it."""
    step = FaultStep(after_s=0.0, injection=Injection(node=node, action=action, **settings))
    fault = FaultPlan(name=f"{action}-1", node=node, trigger=Trigger(at_s=1.0), steps=(step,))
    changeable = action in ("cut", "heal", "link")
    nodes = tuple(msgspec.structs.replace(each, changeable=changeable and each.node == node) for each in plan.nodes)
    return msgspec.structs.replace(plan, faults=(fault,), nodes=nodes)


@pytest.fixture
def allowed(monkeypatch):
    """Let this process be allowed or not allowed to use the kernel's means, for the reason given.

    It is a right that is missing, unless the kernel is `lacking` something.
    """

    def allow(namespaces: str = "", cgroups: str = "", *, lacking: bool = False) -> None:
        monkeypatch.setattr("edgebed.emulation.means.kernel_lacks_links", lambda: lacking)
        monkeypatch.setattr("edgebed.emulation.means.why_no_namespaces", lambda: namespaces)
        monkeypatch.setattr("edgebed.emulation.means.why_no_cgroups", lambda: cgroups)
        monkeypatch.setattr("edgebed.emulation.local.why_no_namespaces", lambda: namespaces)
        monkeypatch.setattr("edgebed.emulation.local.why_no_cgroups", lambda: cgroups)

    return allow


def held_by(means: Mechanisms, plan: TrainingPlan) -> list[tuple[str, str]]:
    """Mechanism and delay of each worker's link."""
    return [(means.mechanism(node), means.delay(node)) for node in plan.workers()]


def test_each_link_is_held_by_what_there_is():
    """A link without limits needs nothing; latency needs netem, or the transport."""
    plan = plan_of(SLOW, LATE, BOTH, LinkPlan())

    assert held_by(Mechanisms("model"), plan) == [("model", ""), ("none", "line"), ("model", "line"), ("none", "")]
    for place in ("namespaces", "docker"):
        assert held_by(Mechanisms(place), plan) == [("tc", ""), ("none", "line"), ("tc", "line"), ("none", "")]
        assert held_by(Mechanisms(place, netem=True), plan) == [
            ("tc", ""), ("tc", "netem"), ("tc", "netem"), ("none", "")
        ]  # fmt: skip


def test_a_link_that_faults_change_is_held_though_its_plan_limits_nothing():
    """So that it can be cut, and delayed, where the kernel has no netem by the transport."""
    plan = with_fault(plan_of(LinkPlan(), LinkPlan()), "cut")

    assert held_by(Mechanisms("model"), plan) == [("model", "line"), ("none", "")]
    assert held_by(Mechanisms("namespaces"), plan) == [("tc", "line"), ("none", "")]
    assert held_by(Mechanisms("namespaces", netem=True), plan) == [("tc", "netem"), ("none", "")]


def test_faults_alone_are_reason_enough_for_namespaces_and_cgroups(allowed):
    """And the run says what carries them out, and why it is not the kernel."""
    allowed()
    cut, capped = with_fault(plan_of(LinkPlan()), "cut"), with_fault(plan_of(LinkPlan()), "cpus", cpus=0.5)

    assert (local_mechanisms(cut, "kernel").mechanisms.place, local_mechanisms(cut, "kernel").cgroups) == (
        "namespaces",
        False,
    )
    assert (local_mechanisms(capped, "kernel").mechanisms.place, local_mechanisms(capped, "kernel").cgroups) == (
        "model",
        True,
    )
    assert list(LocalMechanisms(plan=cut, mechanisms=Mechanisms("namespaces")).notes()) == [
        "Links are as fast as the machine, unless a fault or a user changes them.",
        "What faults do to links is done by the kernel's queues (tc) in a network namespace for each node.",
    ]
    assert "CPU caps are held by the kernel (cgroups)." in local_mechanisms(capped, "kernel").notes()
    allowed(namespaces="no veth here")
    assert list(local_mechanisms(cut, "auto").notes()) == [
        "The kernel does not hold links: no veth here.",
        "Links are as fast as the machine, unless a fault or a user changes them.",
        "What faults do to links is done by the transport's own model of a link.",
    ]


@pytest.mark.parametrize(
    ("action", "node", "words"),
    [
        ("memory", "edge-0", "edge-0 is to run into its memory cap"),
        ("cpus", "server", "the server's CPU cap is to change"),
    ],
)
def test_a_fault_that_only_a_cgroup_can_carry_out_is_refused_before_anything_starts(allowed, action, node, words):
    """With what to do; containers have cgroups, and a worker's CPU cap is held by pacing."""
    allowed(cgroups=NOT_ROOT)
    plan = with_fault(plan_of(LinkPlan(), memory_bytes=1 << 28), action, node)

    with pytest.raises(ScenarioError, match=f"fault {action}-1: {words}, .*: {NOT_ROOT}. Run as root, with --runtime"):
        check_mechanisms([plan], "process", "auto")
    with pytest.raises(ScenarioError, match="--emulation model asks for that"):
        check_mechanisms([plan], "process", "model")
    check_mechanisms([plan], "docker", "auto")
    check_mechanisms([plan], "simulation", "auto")
    check_mechanisms([with_fault(plan, "cpus")], "process", "auto")
    allowed()
    check_mechanisms([plan], "process", "auto")


def test_a_run_says_which_of_the_kernels_means_acted():
    """And nothing of what was not asked for."""
    links = LocalMechanisms(plan=plan_of(BOTH), mechanisms=Mechanisms("namespaces", netem=True))
    caps = LocalMechanisms(plan=plan_of(LinkPlan(), cpus=0.5, memory_bytes=1), cgroups=True)

    assert list(links.notes()) == [
        "Rates of links are held by the kernel's queues (tc) in a network namespace for each node.",
        "Latency and jitter of links are made by the kernel (netem).",
        "Links without a limit are as fast as the machine, unless a fault or a user changes them.",
    ]
    assert list(caps.notes()) == [
        "Links are as fast as the machine, unless a fault or a user changes them.",
        "CPU caps are held by the kernel (cgroups).",
        "Memory caps are held by the kernel (cgroups); pages that nodes share, as torch's, do not count.",
    ]


def test_a_run_says_why_the_kernel_did_not_act():
    """Once for links and once for caps."""
    plan = plan_of(BOTH, cpus=0.5, memory_bytes=1)

    assert list(LocalMechanisms(plan=plan, why_model=NOT_ROOT, why_paced=NOT_ROOT).notes()) == [
        "The kernel does not hold links: that takes root.",
        "Rates of links are held by the transport's own model of a link.",
        "Latency and jitter of links are made by the transport's own delay line.",
        "Links without a limit are as fast as the machine, unless a fault or a user changes them.",
        "The kernel does not hold caps: that takes root.",
        "CPU caps below one core are held by pacing: workers and the evaluator stretch their own work.",
        "Memory caps are not held.",
    ]


def test_the_kernel_is_asked_only_for_what_the_plan_needs(allowed):
    """Without links there is no reason to say why there are no namespaces."""
    allowed(namespaces="no veth here", cgroups="read-only")
    neither, capped = (
        local_mechanisms(plan_of(LinkPlan()), "auto"),
        local_mechanisms(plan_of(LinkPlan(), cpus=0.5), "auto"),
    )

    assert (neither.mechanisms.place, neither.cgroups, neither.why_model, neither.why_paced) == ("model", False, "", "")
    assert (capped.cgroups, capped.why_model, capped.why_paced) == (False, "", "read-only")
    assert local_mechanisms(plan_of(SLOW), "auto").why_model == "no veth here"
    assert local_mechanisms(plan_of(SLOW, cpus=0.5), "model") == LocalMechanisms(plan=plan_of(SLOW, cpus=0.5))


def test_the_kernel_is_used_as_far_as_it_can_be_had(allowed):
    """Cgroups without namespaces, as in a container with a cgroup tree of its own."""
    allowed(namespaces="no veth here")
    local = local_mechanisms(plan_of(SLOW, cpus=0.5), "auto")

    assert (local.mechanisms.place, local.cgroups) == ("model", True)


def test_the_kernel_alone_is_refused_where_it_cannot_be_had(allowed):
    """Each for what the plan asks of it; without a right there is something that the user can do."""
    allowed(namespaces=NOT_ROOT, cgroups="read-only")

    check_mechanisms([plan_of(LinkPlan()), plan_of(SLOW)], "process", "auto")
    check_mechanisms([plan_of(LinkPlan())], "process", "kernel")
    with pytest.raises(ScenarioError, match=f"kernel cannot hold links here: {NOT_ROOT}. Run as root of the machine"):
        check_mechanisms([plan_of(LinkPlan()), plan_of(SLOW)], "process", "kernel")
    with pytest.raises(ScenarioError, match="kernel cannot hold caps here: read-only"):
        check_mechanisms([plan_of(LinkPlan(), memory_bytes=1)], "process", "kernel")


def test_what_the_kernel_lacks_is_nobodys_mistake(allowed):
    """Another exit code than a user's mistake, what is lacking and what can be done; no advice to become root."""
    allowed(namespaces=lacking("bridge", "bridge"), lacking=True)

    check_mechanisms([plan_of(LinkPlan())], "process", "kernel")
    check_mechanisms([plan_of(SLOW)], "process", "auto")
    with pytest.raises(InfrastructureError) as refused:
        check_mechanisms([plan_of(SLOW)], "process", "kernel")

    assert str(refused.value) == (
        "the kernel cannot hold links here: this kernel has no bridge (modprobe bridge loads it, where it was built). "
        "Without it, links are held by --runtime process --emulation model and by --runtime simulation"
    )
    assert refused.value.exit_code == 3


@pytest.mark.parametrize(
    ("answer", "is_lack"), [(KernelLackError("veth", "veth"), True), (InfrastructureError("not permitted"), False)]
)
def test_a_lack_of_the_kernels_is_told_from_a_missing_right(monkeypatch, answer, is_lack):
    """By what the kernel answered when it was tried."""

    def fail() -> None:
        raise answer

    monkeypatch.setattr("edgebed.emulation.switch.probe", fail)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(means, "_hindrance", means._hindrance.__wrapped__)

    assert (means.kernel_lacks_links(), means.why_no_namespaces()) == (is_lack, str(answer))


def test_more_nodes_than_a_bridge_takes_are_refused_with_what_to_do(allowed):
    """The transport's model has no such limit."""
    allowed()
    too_many = plan_of(SLOW, count=PORTS_MAX)

    with pytest.raises(ScenarioError, match=r"1024 nodes .* takes 1023\. Take fewer workers, or --emulation model"):
        check_mechanisms([too_many], "process", "auto")
    check_mechanisms([plan_of(SLOW, count=PORTS_MAX - 1)], "process", "auto")
    check_mechanisms([too_many], "process", "model")
    check_mechanisms([plan_of(LinkPlan(), count=PORTS_MAX)], "process", "auto")


def test_another_runtime_has_its_own_means():
    """An option that contradicts them is refused, one that agrees is not."""
    check_mechanisms([], "docker", "kernel")
    check_mechanisms([], "simulation", "model")
    for runtime, emulation in (("docker", "model"), ("simulation", "kernel")):
        with pytest.raises(ScenarioError, match="leave it out"):
            check_mechanisms([], runtime, emulation)


def test_whoever_is_not_root_is_not_allowed(monkeypatch):
    """That is known without trying."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    assert str(means._hindrance.__wrapped__()) == NOT_ROOT
    assert means.why_no_cgroups.__wrapped__() == NOT_ROOT


@pytest.mark.parametrize(
    ("held_by", "link", "change", "words"),
    [
        (Mechanisms("namespaces", netem=True), LinkPlan(), LinkChange(loss=0.1, latency_s=0.1), ""),
        (Mechanisms("namespaces", netem=False), LinkPlan(), LinkChange(uplink_bit_s=1_000_000), ""),
        (
            Mechanisms("namespaces", netem=False),
            LATE,
            LinkChange(loss=0.1),
            "packets cannot be lost here: this kernel has no netem",
        ),
        (
            Mechanisms("namespaces", netem=False),
            SLOW,
            LinkChange(latency_s=0.1),
            "latency cannot be made here: this kernel has no netem",
        ),
        (Mechanisms("namespaces", netem=False), LATE, LinkChange(latency_s=0.1), ""),
        (Mechanisms("docker", netem=False), SLOW, LinkChange(jitter_s=0.1), "latency cannot be made here"),
        (Mechanisms("model"), LinkPlan(), LinkChange(latency_s=0.1), ""),
        (Mechanisms("model"), LinkPlan(), LinkChange(loss=0.1), "packets cannot be lost here: that takes links that"),
    ],
)
def test_a_link_that_nothing_can_change_so_is_refused_its_change(held_by, link, change, words):
    """Instead of answering that it is done. The transport's delay line is there from the beginning, or never."""
    reason = held_by.why_not(plan_of(link).workers()[0], change)

    assert reason.startswith(words)
    assert bool(reason) == bool(words)


@pytest.mark.parametrize("lacking", ["namespaces", "cgroups"])
def test_programs_are_refused_where_nothing_holds_their_conditions(allowed, lacking):
    """With what to do; no model of a link is in them."""
    node = ProgramPlan(node="home-0", device_class="home", seed=1, index=0, rank=0, run=("true",))
    plan = ProgramsPlan(scenario="-", trial="-", question="-", seed=1, nodes=(node,), program=Program())
    allowed(**{lacking: NOT_ROOT})

    with pytest.raises(ScenarioError, match=f"{NOT_ROOT}. Run as root of the machine$"):
        check_conditions([plan])
    allowed()
    check_conditions([plan])
    with pytest.raises(ScenarioError, match=f"{PORTS_MAX + 1} nodes are too many"):
        check_conditions([msgspec.structs.replace(plan, nodes=(node,) * (PORTS_MAX + 1))])
