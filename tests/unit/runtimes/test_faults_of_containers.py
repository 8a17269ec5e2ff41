"""What is done to a container on purpose, where an engine would answer in its own time: order, ends, refusals."""

import queue
import threading
import types
from collections.abc import Iterator

import pytest
from docker.errors import APIError
from node_plans import plan_of_role

from edgebed.core.actions import Action
from edgebed.core.errors import InfrastructureError
from edgebed.core.plan import TrainingPlan, WorkerPlan
from edgebed.core.planned.fault import Injection
from edgebed.roles.events import Injected
from edgebed.runtimes.containers.container import ENDED, FREEZE_TRIES, Container
from edgebed.runtimes.containers.launcher import ContainerLauncher, Incarnation

DEADLINE_S = 20.0


class Engine:
    """Stands in for the engine: it does nothing until it is allowed to."""

    def __init__(self) -> None:
        self.did: list[tuple[str, int | None]] = []
        self.asked = threading.Semaphore(0)
        self.allowed = threading.Semaphore(0)
        self.state = {"Running": True, "Paused": False}
        self.refuses = False
        self.why = "Container 1234 is not what it should be"
        self.api = types.SimpleNamespace(
            kill=lambda _, signal: self._do("kill"),
            pause=lambda _: self._do("pause"),
            unpause=lambda _: self._do("unpause"),
            update_container=lambda _, cpu_period, cpu_quota: self._do("update", cpu_quota),
            inspect_container=lambda _: {"State": self.state},
        )

    def _do(self, what: str, quota: int | None = None) -> None:
        self.asked.release()
        assert self.allowed.acquire(timeout=DEADLINE_S)
        self.did.append((what, quota))
        if self.refuses:
            raise APIError("refused", explanation=self.why)


def worker() -> WorkerPlan:
    """The plan of a node."""
    return plan_of_role(node="edge-0", role="worker", device_class="edge", cpus=0.5)


@pytest.fixture
def engine() -> Engine:
    """One that waits."""
    return Engine()


@pytest.fixture
def told() -> queue.SimpleQueue[Injected | InfrastructureError]:
    """What the controller is told."""
    return queue.SimpleQueue()


@pytest.fixture
def container(engine, told) -> Iterator[Container]:
    """One that runs, of a node with half a core."""
    links = types.SimpleNamespace(forget=lambda _: None, release=lambda _: None)
    made = Container(engine, links, worker(), 1, "1234", told.put)
    yield made
    for _ in range(8):
        engine.allowed.release()
    made.close()


def do(container: Container, number: int, action: Action, cpus: float | None = None) -> None:
    """Ask for something."""
    container.inject(number, Injection(node="edge-0", action=action, cpus=cpus))


def test_a_kill_is_done_when_the_output_has_ended(engine, container, told) -> None:
    """Not when the engine has taken the networks apart; it is told once."""
    do(container, 1, "kill")
    assert engine.asked.acquire(timeout=DEADLINE_S)
    assert told.empty()
    container.end()

    assert told.get(timeout=DEADLINE_S) == Injected(1)
    engine.allowed.release()
    container.close()
    assert told.empty()


def test_a_kill_is_done_at_the_latest_when_the_engine_says_so(engine, container, told) -> None:
    """Output may still be on its way."""
    do(container, 1, "kill")
    engine.allowed.release()

    assert told.get(timeout=DEADLINE_S) == Injected(1)


def test_things_are_done_in_the_order_asked(engine, container, told) -> None:
    """However long the engine takes for the first; a cap returns to that of the plan."""
    container.cap()
    engine.allowed.release()
    for number, (action, cpus) in enumerate([("freeze", None), ("cpus", 0.1), ("cpus", None), ("thaw", None)]):
        do(container, number, action, cpus)
    do(container, 4, "memory")
    for _ in range(4):
        engine.allowed.release()

    assert [told.get(timeout=DEADLINE_S) for _ in range(5)] == [Injected(number) for number in range(5)]
    done = [("pause", None), ("update", 10_000), ("update", 50_000), ("unpause", None)]
    assert engine.did == [("update", 50_000), *done]


def test_a_cap_holds_from_when_the_node_is_built(engine, container, told) -> None:
    """What is asked of it before that is held then, and no sooner: it has to start. Once is enough."""
    do(container, 1, "cpus", 0.1)
    do(container, 2, "cpus", 0.2)
    assert [told.get(timeout=DEADLINE_S) for _ in range(2)] == [Injected(1), Injected(2)]
    assert engine.did == []

    container.cap()
    container.cap()
    do(container, 3, "cpus", 0.3)
    engine.allowed.release(2)

    assert told.get(timeout=DEADLINE_S) == Injected(3)
    assert engine.did == [("update", 20_000), ("update", 30_000)]


@pytest.mark.parametrize("is_running", [True, False])
def test_an_engine_that_sets_no_cap_ends_the_run_unless_the_node_has_ended(engine, container, told, is_running) -> None:
    """Its end is told by its output; a node without its cap would be another device."""
    engine.refuses, engine.state = True, {"Running": is_running, "Paused": False}
    engine.allowed.release(2)
    container.cap()
    do(container, 1, "freeze")
    answers = [told.get(timeout=DEADLINE_S) for _ in range(1 + is_running)]

    assert isinstance(answers[-1], Injected)
    assert [str(each) for each in answers[:-1]] == [
        "the CPU cap of edge-0: Container 1234 is not what it should be."
    ] * is_running


def test_what_is_so_already_is_done(engine, container, told) -> None:
    """The engine refuses to freeze a frozen container."""
    engine.refuses, engine.state = True, {"Running": True, "Paused": True}
    engine.allowed.release(2)
    do(container, 1, "freeze")
    do(container, 2, "thaw")

    assert told.get(timeout=DEADLINE_S) == Injected(1)
    assert told.get(timeout=DEADLINE_S) == Injected(
        2, "the container of edge-0: Container 1234 is not what it should be."
    )


def test_a_freeze_that_the_engine_did_not_get_done_is_tried_again(engine, container, told) -> None:
    """Not for ever."""
    engine.refuses, engine.why = True, "OCI runtime pause failed: unable to freeze: unknown"
    engine.allowed.release(2)
    do(container, 1, "freeze")
    for _ in range(3):
        assert engine.asked.acquire(timeout=DEADLINE_S)  # two have failed, the third waits
    engine.refuses = False
    engine.allowed.release()
    assert told.get(timeout=DEADLINE_S) == Injected(1)
    assert engine.did == [("pause", None)] * 3

    engine.refuses = True
    engine.allowed.release(FREEZE_TRIES)
    do(container, 2, "freeze")
    assert "unable to freeze" in told.get(timeout=DEADLINE_S).problem
    assert len(engine.did) == 3 + FREEZE_TRIES


def test_nothing_is_done_to_a_node_that_has_ended(engine, container, told) -> None:
    """Neither what is asked then, nor what waited for something else to be done."""
    do(container, 1, "freeze")
    do(container, 2, "thaw")
    assert engine.asked.acquire(timeout=DEADLINE_S)
    container.end()
    do(container, 3, "kill")
    engine.allowed.release()

    answers = [told.get(timeout=DEADLINE_S) for _ in range(3)]
    assert answers == [Injected(3, no_op=ENDED), Injected(1), Injected(2, no_op=ENDED)]
    assert engine.did == [("pause", None)]


def test_a_node_is_not_launched_again_before_its_last_container_is_gone() -> None:
    """The end of the one would be taken for that of the other."""
    gone = threading.Event()
    launcher = ContainerLauncher.__new__(ContainerLauncher)  # without an engine
    launcher.plan = TrainingPlan(scenario="-", trial="-", question="-", seed=1, nodes=(worker(),))
    launcher.lives = {"edge-0": Incarnation(worker())}
    launcher.lives["edge-0"].thread = threading.Thread(target=gone.wait, daemon=True)
    launcher.lives["edge-0"].thread.start()

    assert not launcher.launch("edge-0", "tcp://10.0.0.1:1", "5e")
    gone.set()
