"""The docker runtime's launcher: each node is a container, with a thread that manages it from start to removal.

    create, join both networks, attach --> start --> set its link --> copy its output --> how did it end? --> remove

Its memory is capped from the beginning, its CPU when the node is built: loading torch is not what is emulated.
At most four containers are being started at a time: more make the engine slower, not faster. A container is removed as
soon as it has ended; its output is in the run's folder then. A node that is launched again gets a container of the same
name when the one before is gone, and appends to its log. What faults do to a container is container.py's.
"""

import os
import queue
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from docker.errors import NotFound

from edgebed.core.errors import EdgebedError, InfrastructureError
from edgebed.core.imports import reason
from edgebed.core.last_words import describe_exit_code, end_of, last_line, out_of_memory
from edgebed.core.plan import Injection, NodePlan, Plan
from edgebed.core.records import Clock
from edgebed.roles.events import Injected, NodeExited, NodeStarted
from edgebed.runtimes.containers import limits
from edgebed.runtimes.containers.container import Container
from edgebed.runtimes.containers.engine import CALL_S_MAX, attached, connect, explained
from edgebed.runtimes.containers.labels import LABEL_VOLUME
from edgebed.runtimes.containers.leftovers import remove_container
from edgebed.runtimes.containers.links import Links
from edgebed.runtimes.containers.project import ImageNames
from edgebed.runtimes.containers.register import forget_containers, note_containers
from edgebed.runtimes.containers.server_volume import MOUNTED_AT, prepare_volume
from edgebed.runtimes.containers.site import Site, find_site

STARTERS = 4
CONNECTIONS_A_NODE = 4  # its thread, its output, its helper, and what is done to it
LauncherEvent = NodeStarted | NodeExited | Injected
_MEMORY = re.compile(r"^edgebed-node: memory (.*)$", re.MULTILINE)


class ContainerLauncher:
    """Starts nodes as containers and reports their starts and ends."""

    name = "docker"

    def __init__(
        self, plan: Plan, memory_bytes: Mapping[str, int], run: str, log_folder: Path, server_log: Path
    ) -> None:
        """Find or make the networks, and the volume that `server_log` names; `run` is the run's name.

        `memory_bytes`: what each node's container may use. InfrastructureError where there is no engine, or not that
        volume.
        """
        self.plan = plan
        self.memory_bytes = memory_bytes
        self.log_folder = log_folder
        self.images = ImageNames.named()
        self.client = connect(connections=CONNECTIONS_A_NODE * len(plan.nodes) + STARTERS)
        note_containers()
        try:
            self.site: Site = find_site(self.client, run, plan.trial)
            try:
                self.volume = self._volume(server_log)
                with explained("the links of the nodes"):
                    self.links = Links(self.client, self.site, self.images.server, plan, self._complain)
            except BaseException:
                self.site.clear(self.client, networks=True)
                raise
        except BaseException:
            self.client.close()
            raise
        self.notes = tuple(self.links.mechanisms.notes(plan))
        self.host = self.site.host
        self.numbers = _numbers(plan)
        self.starting = threading.BoundedSemaphore(STARTERS)
        self.threads: dict[str, threading.Thread] = {}
        """The thread of each node's last container."""
        self.containers: dict[str, Container] = {}
        """The last container that was to start, by node."""
        self.closing = threading.Event()
        self.happened: queue.SimpleQueue[LauncherEvent | EdgebedError] = queue.SimpleQueue()
        self.bell_read, self.bell_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        """A file descriptor that is readable when `poll_events` has events."""
        return self.bell_read

    def launch(self, node: str, controller_address: str, secret: str) -> bool:
        """Have a node's container started, by a thread that waits for the engine; False while the last one is there."""
        before = self.threads.get(node)
        if before and before.is_alive():
            return False
        told = self.plan.node(node), controller_address, secret
        thread = threading.Thread(target=self._live, args=told, name=node, daemon=True)
        self.threads[node] = thread
        thread.start()
        return True

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

    def poll_events(self) -> Iterator[LauncherEvent]:
        """Events since the last call; call when `fileno` is readable."""
        os.read(self.bell_read, 65536)
        while not self.happened.empty():
            event = self.happened.get()
            if isinstance(event, EdgebedError):
                raise event
            yield event

    def began(self, monotonic_s: float) -> None:
        """Note that training began: links change with time from here on."""
        self.links.began(monotonic_s)

    def clock_told(self, node: str, clock: Clock) -> None:
        """Note how the clock of a node's host differs from the controller's."""
        self.links.clock_told(node, clock)

    def close(self) -> None:
        """Remove what is left: containers, then networks."""
        self.closing.set()
        try:
            with explained("what is left goes with `edgebed down`: removing the containers of the run"):
                self.site.clear(self.client, networks=False)
                for thread in self.threads.values():
                    thread.join(CALL_S_MAX)
                self.site.clear(self.client, networks=True)  # including what was being created meanwhile
            forget_containers()
        finally:
            self.client.close()
            if not any(thread.is_alive() for thread in self.threads.values()):  # else one might ring yet
                os.close(self.bell_read)
                os.close(self.bell_write)

    # --- the life of a container, in a thread of its own --------------------------------------------------------

    def _live(self, node: NodePlan, controller_address: str, secret: str) -> None:
        """Manage a node's container from before its start to after its end."""
        try:
            with explained(f"the container of {node.node}"):
                self._from_start_to_end(node, controller_address, secret)
        except EdgebedError as error:
            self._complain(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the controller must hear of it
            self._complain(InfrastructureError(f"the container of {node.node}: {reason(error)}"))

    def _from_start_to_end(self, node: NodePlan, controller_address: str, secret: str) -> None:
        with ExitStack() as stack:
            with self.starting:
                if self.closing.is_set():
                    return
                made = self._create(node, controller_address, secret)
                stack.callback(remove_container, self.client, made)
                output = stack.enter_context(attached(self.client, made))
                if self.closing.is_set():
                    return
                container = Container(self.client, self.links, node, self.numbers[node.node], made, self._tell)
                stack.callback(container.close)
                self.containers[node.node] = container  # the node may be built before the engine says that it runs
                self.client.api.start(made)
                self._tell(NodeStarted(node.node))
                container.set_link()
            log = self.log_folder / f"{node.node}.log"
            with log.open("ab", buffering=0) as file:
                begins_at = file.tell()
                for part in output:
                    file.write(part)
            container.end()
            self._tell(NodeExited(node.node, self._how_it_ended(node, made, log, begins_at)))

    def _volume(self, server_log: Path) -> str:
        """The volume of the server's log; empty where it keeps none."""
        if self.plan.server.durability == "none":
            return ""
        with explained("the volume of the server's log"):
            return prepare_volume(self.client, server_log, self.site.labels)

    def _create(self, node: NodePlan, controller_address: str, secret: str) -> str:
        api, site = self.client.api, self.site
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
                network_mode=site.management.id, **limits.host_settings(node, self.memory_bytes[node.node], volume)
            ),
            networking_config=api.create_networking_config({site.management.id: api.create_endpoint_config()}),
        )["Id"]
        try:
            api.connect_container_to_network(container, site.data.id)
        except BaseException:
            remove_container(self.client, container)
            raise
        return container

    def _how_it_ended(self, node: NodePlan, container: str, log: Path, begins_at: int) -> str:
        """How a container ended, in words. `begins_at`: where in the log its own output begins."""
        try:
            code = int(self.client.api.wait(container, timeout=CALL_S_MAX)["StatusCode"])
            state: dict[str, Any] = self.client.api.inspect_container(container)["State"]
        except NotFound:
            return "its container was removed"
        memory = memory_at_end(end_of(log, begins_at))
        if state.get("OOMKilled") or memory.get("oom_kills"):
            default = "" if node.memory_bytes else "; the scenario caps it at nothing else: set its `memory`"
            return out_of_memory(memory) + default
        return describe_exit_code(code) + last_line(log, begins_at)

    def _complain(self, error: EdgebedError) -> None:
        if not self.closing.is_set():  # then its container was taken away on purpose
            self._tell(error)

    def _tell(self, event: LauncherEvent | EdgebedError) -> None:
        self.happened.put(event)
        try:
            os.write(self.bell_write, b"!")
        except BlockingIOError:
            return  # it is ringing already


def memory_at_end(log: str) -> dict[str, int]:
    """`peak`, `limit` and `oom_kills` of a killed node, as its container printed them; unknown ones are absent."""
    said = _MEMORY.findall(log)
    pairs = (word.partition("=") for word in said[-1].split()) if said else ()
    return {name: int(value) for name, _, value in pairs if value.isdigit()}


def _numbers(plan: Plan) -> dict[str, int]:
    """Each node's place among those of its class, from 1."""
    seen: Counter[str] = Counter()
    numbers = {}
    for node in plan.nodes:
        seen[node.device_class] += 1
        numbers[node.node] = seen[node.device_class]
    return numbers
