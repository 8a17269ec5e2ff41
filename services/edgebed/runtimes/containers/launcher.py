"""The docker runtime's launcher: each node is a container, with a thread that manages it from start to removal.

    create, join both networks, attach --> start --> set its link --> copy its output --> how did it end? --> remove

Its memory is capped from the beginning, its CPU when the node is built: loading torch is not what is emulated.
At most four containers of a host are being started at a time: more make the engine slower, not faster. A container is
removed as soon as it has ended; its output is in the run's folder then. A node that is launched again gets a container
of the same name when the one before is gone, and appends to its log. What faults do to a container is container.py's.
"""

import os
import queue
import re
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import requests
from docker.errors import APIError, DockerException, NotFound

from edgebed.core.console import say
from edgebed.core.errors import EdgebedError, InfrastructureError
from edgebed.core.imports import reason
from edgebed.core.last_words import describe_exit_code, end_of, last_line, out_of_memory
from edgebed.core.plan import NodePlan, Plan, TrainingNode, TrainingPlan
from edgebed.core.planned.fault import Injection
from edgebed.core.records import Clock
from edgebed.emulation.host_load import HostProbe
from edgebed.roles.events import Injected, NodeExited, NodeStarted
from edgebed.runtimes.containers import limits
from edgebed.runtimes.containers.container import Container
from edgebed.runtimes.containers.engine import CALL_S_MAX, attached, explained
from edgebed.runtimes.containers.engines import Engines, HostWatch
from edgebed.runtimes.containers.hosts.probes import HostProbes
from edgebed.runtimes.containers.hosts.sight import ContainerSight
from edgebed.runtimes.containers.labels import LABEL_VOLUME
from edgebed.runtimes.containers.leftovers import remove_container
from edgebed.runtimes.containers.links import Links
from edgebed.runtimes.containers.project import ImageNames
from edgebed.runtimes.containers.register import forget_containers, note_containers
from edgebed.runtimes.containers.relaying import Relaying
from edgebed.runtimes.containers.server_volume import MOUNTED_AT, prepare_volume
from edgebed.runtimes.containers.site import ManagedSite, Site, find_site

STARTERS = 4
CONNECTIONS_A_NODE = 4  # its thread, its output, its helper, and what is done to it
TRIES = 3
"""How often a container is started where the engine fails at it: one that is busy does, and so does the manager of a
swarm, which has 20 s to let another host's container into an overlay."""
Result = TypeVar("Result")
_MEMORY = re.compile(r"^edgebed-node: memory (.*)$", re.MULTILINE)


class Incarnation:
    """A node from one start to its end, which is reported once."""

    def __init__(self, node: NodePlan) -> None:
        self.node = node
        self.thread = threading.current_thread()
        """The thread that manages its container."""
        self.is_over = False
        self.is_lost = False
        """Whether its host does not answer any more, for which nobody waits."""
        self.lock = threading.Lock()

    @property
    def is_in_progress(self) -> bool:
        """Whether the node cannot be started anew yet."""
        return self.thread.is_alive() and not self.is_lost

    def end(self, *, is_lost: bool = False) -> bool:
        """Note the node's end; return whether that is news, to be reported."""
        with self.lock:
            was_over, self.is_over = self.is_over, True
            self.is_lost |= is_lost
        return not was_over


class EngineLauncher(ABC):
    """What launchers of containers have in common: engines, a thread for each node, and that nothing is left."""

    name = "docker"

    def __init__(self, plan: Plan, run: str) -> None:
        """Find or make the networks, and what else there is to be; `run` is the run's name.

        InfrastructureError where there is no engine on a host of the plan.
        """
        self.lives: dict[str, Incarnation] = {}
        """The last start of each node."""
        self.containers: dict[str, Container] = {}
        """The last container that was to start, by node."""
        self.closing = threading.Event()
        self.happened: queue.SimpleQueue[Any] = queue.SimpleQueue()
        """Events, and errors that end the trial."""
        self.images = ImageNames.named()
        addresses = [host.address for host in plan.hosts]
        self.rates = {host.name: host.rate_bit_s for host in plan.hosts}
        self.engines = Engines(addresses, connections=CONNECTIONS_A_NODE * len(plan.nodes) + STARTERS)
        self.hosts = HostWatch(self.engines, self._host_lost, self._host_back)
        self.starting = {host: threading.BoundedSemaphore(STARTERS) for host in self.engines.clients}
        self.bell_read, self.bell_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        note_containers(addresses)
        try:
            with explained("the engine"):
                self.parents = {
                    host: limits.cgroup_parent(client.info()) for host, client in self.engines.clients.items()
                }
            self.site = self._find_site(run)
            try:
                self._prepare()
            except BaseException:
                self._clear(networks=True)
                raise
        except BaseException:
            self.hosts.close()
            self.engines.close()
            self._close_bell()
            raise

    @abstractmethod
    def _find_site(self, run: str) -> Site:
        """Find or make the networks."""

    @abstractmethod
    def _prepare(self) -> None:
        """Make what all nodes need before the first is launched."""

    @abstractmethod
    def _ended(self, node: str, why: str) -> object:
        """The event that a node has ended, which can be told by nobody else."""

    @abstractmethod
    def _from_start_to_end(self, life: Any, *told: Any) -> None:
        """Manage a node's container from before its start to after its end, in a thread of its own."""

    def _begin(self, life: "Incarnation", *told: Any) -> bool:
        """Have a life managed by a thread; False while the last one is, or the node's host does not answer."""
        node = life.node
        before = self.lives.get(node.node)
        if (before and before.is_in_progress) or node.host in self.hosts.away:
            return False
        life.thread = threading.Thread(target=self._live, args=(life, *told), name=node.node, daemon=True)
        self.lives[node.node] = life
        life.thread.start()
        return True

    def fileno(self) -> int:
        """A file descriptor that is readable when `poll_events` has events."""
        return self.bell_read

    def poll_events(self) -> Iterator[Any]:
        """Events since the last call; there may be some when `fileno` is readable."""
        with suppress(BlockingIOError):
            os.read(self.bell_read, 65536)
        while not self.happened.empty():
            event = self.happened.get()
            if isinstance(event, EdgebedError):
                raise event
            yield event

    def _container(self, node: str) -> Container | None:
        """A node's container, while it runs and its link is set."""
        container = self.containers.get(node)
        return container if container and container.link_is_set.is_set() and not container.has_ended else None

    def probe(self) -> HostProbe | HostProbes:
        """Begin to look how busy the nodes' hosts are."""
        if not self.engines.are_many:
            return HostProbe()
        return HostProbes(self.engines.clients, {}, self.rates, self.images.server, self.site.labels, self.site.name)

    def close(self) -> None:
        """Remove what is left: containers, then networks."""
        self.closing.set()
        self.hosts.close()
        threads = [life.thread for life in self.lives.values() if life.is_in_progress]
        try:
            with explained("what is left goes with `edgebed down`: removing the containers of the run"):
                self._clear(networks=False)
                for thread in threads:
                    thread.join(CALL_S_MAX)
                self._clear(networks=True)  # including what was being created meanwhile
            if self.hosts.away:
                say(
                    f"what the run has on {', '.join(sorted(self.hosts.away))} is left there: no engine answers. The "
                    "next command removes it, when one answers again"
                )
            else:
                forget_containers()
        finally:
            self.engines.close()
            if not any(life.thread.is_alive() for life in self.lives.values()):  # else one might ring yet
                self._close_bell()

    def _close_bell(self) -> None:
        os.close(self.bell_read)
        bell, self.bell_write = self.bell_write, -1
        os.close(bell)

    def _clear(self, *, networks: bool) -> None:
        """Remove the trial's containers on all hosts that answer, and the `networks`, which the first one made."""
        for host, client in reversed(list(self.engines.clients.items())):
            if host in self.hosts.away:
                continue
            try:
                self.site.clear(client, networks=networks and client is self.engines.first)
            except (DockerException, requests.RequestException, OSError):
                if self.hosts.answers(host):
                    raise

    # --- hosts that do not answer any more, told by the threads that watch them ----------------------------------

    def _host_lost(self, host: str) -> None:
        """Report the nodes of a host as ended, and no more of them."""
        for node, life in list(self.lives.items()):
            if life.node.host == host and life.end(is_lost=True):
                if container := self.containers.get(node):
                    container.end()
                self._tell(self._ended(node, f"its host {host} does not answer"))

    def _host_back(self, host: str) -> None:
        """Remove what is left on a host of nodes that were reported as ended."""
        with explained(f"what is left on host {host}"):
            self.site.clear(self.engines.clients[host], networks=False)

    # --- the life of a container, in a thread of its own --------------------------------------------------------

    def _live(self, life: "Incarnation", *told: Any) -> None:
        """Manage a node's container from before its start to after its end."""
        node = life.node
        try:
            with explained(f"the container of {node.node}{f' on host {node.host}' if node.host else ''}"):
                self._from_start_to_end(life, *told)
        except EdgebedError as error:
            self._failed(life, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the controller must hear of it
            self._failed(life, InfrastructureError(f"the container of {node.node}: {reason(error)}"))

    def _failed(self, life: "Incarnation", error: EdgebedError) -> None:
        """Report why a container cannot be managed, unless its host does not answer: that ends all its nodes."""
        if not self.closing.is_set() and self.hosts.answers(life.node.host) and life.end():
            self._complain(error)

    def _retried(self, node: NodePlan, stack: ExitStack, start: Callable[[ExitStack], Result]) -> Result:
        """Start something by `start`, which gives its argument what is to be undone, as `stack` has it then.

        Where the engine fails at it, another one is started.
        """
        for tries_left in reversed(range(TRIES)):
            try:
                with ExitStack() as trying:
                    started = start(trying)
                    stack.enter_context(trying.pop_all())
                    return started
            except APIError as error:
                if not error.is_server_error() or not tries_left or self.closing.is_set():
                    raise
                say(f"the engine did not start {node.node}, which is tried again: {error.explanation or error}")
        raise AssertionError("the last try starts or fails")

    def _complain(self, error: EdgebedError) -> None:
        if not self.closing.is_set():  # then its container was taken away on purpose
            self._tell(error)

    def _tell(self, event: object) -> None:
        self.happened.put(event)
        with suppress(OSError):  # it is ringing already, or nobody hears it any more
            os.write(self.bell_write, b"!")


class ContainerLauncher(EngineLauncher):
    """Starts nodes as containers and reports their starts and ends."""

    site: ManagedSite

    def __init__(
        self, plan: TrainingPlan, memory_bytes: Mapping[str, int], run: str, log_folder: Path, server_log: Path
    ) -> None:
        """Find or make the networks, and the volume that `server_log` names; `run` is the run's name.

        `memory_bytes`: what each node's container may use. InfrastructureError where there is no engine on a host of
        the plan, or not that volume.
        """
        self.plan = plan
        self.memory_bytes = memory_bytes
        self.log_folder = log_folder
        self.server_log = server_log
        super().__init__(plan, run)
        self.relaying = Relaying(self.engines.first, self.site, self.images.server)
        self.notes = tuple(self.links.mechanisms.notes(plan))
        self.host = self.site.host
        self.numbers = _numbers(plan)

    def _find_site(self, run: str) -> ManagedSite:
        return find_site(self.engines, run, self.plan.trial)

    def _prepare(self) -> None:
        self.volume = self._volume(self.server_log)
        with explained("the links of the nodes"):
            self.links = Links(self.engines, self.site, self.images.server, self.plan, self._complain)

    def _ended(self, node: str, why: str) -> NodeExited:
        return NodeExited(node, why)

    def launch(self, node: str, controller_address: str, secret: str) -> bool:
        """Have a node's container started, by a thread that waits for the engine.

        False while the last one is there, or its host does not answer.
        """
        return self._begin(Incarnation(self.plan.node(node)), controller_address, secret)

    def inject(self, number: int, injection: Injection) -> None:
        """Have an action done to a node's container; `Injected(number)` is among the happenings. Never blocks."""
        container = self.containers.get(injection.node)
        if container:
            container.inject(number, injection)
        else:
            self._tell(Injected(number, f"{injection.node} has no container yet"))

    def cap(self, node: str) -> None:
        """Hold a node's CPU cap from now on: it is built. Never blocks."""
        self.containers[node].cap()

    def sight(self) -> ContainerSight:
        """Where the nodes' containers can be seen from outside."""
        return ContainerSight(self._container, self.memory_bytes, self.site.data.id)

    def began(self, monotonic_s: float) -> None:
        """Note that training began: links change with time from here on."""
        self.links.began(monotonic_s)

    def clock_told(self, node: str, clock: Clock) -> None:
        """Note how the clock of a node's host differs from the controller's."""
        self.links.clock_told(node, clock)

    def _from_start_to_end(self, life: "Incarnation", controller_address: str, secret: str) -> None:
        node = self.plan.node(life.node.node)
        with ExitStack() as stack:
            with self.starting[node.host]:
                started = self._retried(node, stack, partial(self._started, node, controller_address, secret))
                if started is None:
                    return
                container, output = started
                self._tell(NodeStarted(node.node))
                container.set_link()
            log = self.log_folder / f"{node.node}.log"
            with log.open("ab", buffering=0) as file:
                begins_at = file.tell()
                for part in output:
                    file.write(part)
            container.end()
            how = self._how_it_ended(node, container.id, log, begins_at)
            if life.end():
                self._tell(NodeExited(node.node, how))

    def _started(
        self, node: TrainingNode, controller_address: str, secret: str, stack: ExitStack
    ) -> tuple[Container, Iterator[bytes]] | None:
        """Start a node's container, which `stack` removes; return it with its output, None once the run is closing."""
        if self.closing.is_set():
            return None
        client = self.engines.of(node)
        made = self._create(node, self.relaying.address(controller_address), secret)
        stack.callback(remove_container, client, made)
        output = stack.enter_context(attached(client, made))
        if self.closing.is_set():
            return None
        container = Container(client, self.links, node, self.numbers[node.node], made, self._tell, self.containers)
        stack.callback(container.close)
        self.containers[node.node] = container  # the node may be built before the engine says that it runs
        client.api.start(made)
        return container, output

    def _volume(self, server_log: Path) -> str:
        """The volume of the server's log; empty where it keeps none."""
        if self.plan.server.durability == "none":
            return ""
        with explained("the volume of the server's log"):
            return prepare_volume(self.engines.of(self.plan.server), server_log, self.site.labels)

    def _create(self, node: TrainingNode, controller_address: str, secret: str) -> str:
        client, site = self.engines.of(node), self.site
        api = client.api
        volume = self.volume if node.role == "server" else ""
        labels = site.labels_of(node, self.numbers[node.node]) | ({LABEL_VOLUME: self.volume} if self.volume else {})
        container: str = api.create_container(
            self.images.of(node.role),
            name=site.container_name(node),
            hostname=node.node,
            user=limits.USER,
            environment=limits.environment(
                node,
                controller_address,
                secret,
                self.plan.security,
                site.data.subnet,
                site.management.subnet,
                self.links.mechanisms.mechanism(node),
                self.links.mechanisms.delay(node),
                MOUNTED_AT if volume else "",
            ),
            labels=labels,
            host_config=api.create_host_config(
                network_mode=site.management.id,
                **limits.host_settings(node, self.memory_bytes[node.node], volume, self.parents[node.host]),
            ),
            networking_config=api.create_networking_config({site.management.id: api.create_endpoint_config()}),
        )["Id"]
        try:
            api.connect_container_to_network(container, site.data.id)
        except BaseException:
            remove_container(client, container)
            raise
        return container

    def _how_it_ended(self, node: TrainingNode, container: str, log: Path, begins_at: int) -> str:
        """How a container ended, in words. `begins_at`: where in the log its own output begins."""
        try:
            api = self.engines.of(node).api
            code = int(api.wait(container, timeout=CALL_S_MAX)["StatusCode"])
            state: dict[str, Any] = api.inspect_container(container)["State"]
        except NotFound:
            return "its container was removed"
        memory = memory_at_end(end_of(log, begins_at))
        if state.get("OOMKilled") or memory.get("oom_kills"):
            default = "" if node.memory_bytes else "; the scenario caps it at nothing else: set its `memory`"
            return out_of_memory(memory) + default
        return describe_exit_code(code) + last_line(log, begins_at)


def memory_at_end(log: str) -> dict[str, int]:
    """`peak`, `limit` and `oom_kills` of a killed node, as its container printed them; unknown ones are absent."""
    said = _MEMORY.findall(log)
    pairs = (word.partition("=") for word in said[-1].split()) if said else ()
    return {name: int(value) for name, _, value in pairs if value.isdigit()}


def _numbers(plan: TrainingPlan) -> dict[str, int]:
    """Each node's place among those of its class, from 1."""
    seen: Counter[str] = Counter()
    numbers = {}
    for node in plan.nodes:
        seen[node.device_class] += 1
        numbers[node.node] = seen[node.device_class]
    return numbers
