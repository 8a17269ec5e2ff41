"""A node's container while it runs, and faults done to it, one after the other in the order asked.

    kill                SIGKILL by the engine; done when the node's output has ended, or else when the engine says so
    freeze, thaw        the engine's pause and unpause: the kernel runs none of its threads, and answers TCP for it
    cpus                the engine's update of its quota; that of a node which starts, when it is built
    cut, heal, link     orders to the helper that holds its link (links.py); a node without one gets one; what is
                        between two nodes is held at both ends
    memory              nothing: the node fills its own

The engine needs a second or more to remove a dead container's networks, so its answer to a kill does not show when the
node has died; the end of the node's output does.
"""

import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any, Literal

import docker
import requests
from docker.errors import APIError, DockerException

from edgebed.core.actions import ACTIONS, KILLS, LINK_ACTIONS
from edgebed.core.errors import EdgebedError, InfrastructureError
from edgebed.core.imports import reason
from edgebed.core.plan import NodePlan
from edgebed.core.planned.fault import Injection
from edgebed.emulation.caps import starting_cpus
from edgebed.roles.events import Injected
from edgebed.runtimes.containers import limits
from edgebed.runtimes.containers.engine import explained
from edgebed.runtimes.containers.links import Helper, Links

FREEZE_TRIES = 5
ENDED = "its container has ended"
UNLUCKY = "unable to freeze"
"""Text of an error: with version 1 of cgroups a busy machine may keep the engine from freezing a container, which then
runs on."""


class Container:
    """The container of one incarnation of a node."""

    def __init__(
        self,
        client: docker.DockerClient,
        links: Links,
        node: NodePlan,
        number: int,
        container_id: str,
        tell: Callable[[Injected | EdgebedError], None],
        others: "Mapping[str, Container] | None" = None,
    ) -> None:
        """`number` counts the nodes of its class from 1; `tell` is called from any thread.

        `others` are the last containers of the trial's nodes.
        """
        self.client = client
        self.links = links
        self.node = node
        self.number = number
        self.id = container_id
        self.tell = tell
        self.others = {} if others is None else others
        self.address = ""
        """Address on the data network of a node whose link faults change; empty: it is not known yet."""
        self.linking = threading.Lock()
        """For whoever has the link changed: a fault between two nodes is the other one's as well."""
        self.lock = threading.Lock()
        self.cpus = node.cpus
        """CPU cap in cores that is asked for now; None: none."""
        self.cpus_set = starting_cpus(node.cpus)
        """CPU cap in cores that the engine has set; None: none."""
        self.is_capped = False
        """Whether that cap is to hold: not while the node starts."""
        self.asked: queue.SimpleQueue[tuple[int, Injection] | Literal["cap"] | None] = queue.SimpleQueue()
        self.open: set[int] = set()
        """Numbers of the actions that were asked for and have no answer yet."""
        self.killing: int | None = None
        self.has_ended = False
        self.worker: threading.Thread | None = None
        """The thread that does what is asked; begins with the first action."""
        self.link_is_set = threading.Event()
        self.helper: Helper | None = None

    def inject(self, number: int, injection: Injection) -> None:
        """Have an action done; `Injected(number)` is reported. Never blocks."""
        with self.lock:
            self.open.add(number)
            if self._ask((number, injection)):
                return
        self._answer(Injected(number, no_op=ENDED))

    def cap(self) -> None:
        """Have the node's CPU cap set, once: it is built. Never blocks; a failure is told as an error."""
        with self.lock:
            if not self.is_capped:
                self.is_capped = True
                self._ask("cap")

    def _ask(self, what: tuple[int, Injection] | Literal["cap"]) -> bool:
        """Have the worker do something; False if the node has ended."""
        if self.has_ended:
            return False
        self.asked.put(what)
        if self.worker is None:
            self.worker = threading.Thread(target=self._work, name=f"{self.node.node}-actions", daemon=True)
            self.worker.start()
        return True

    def set_link(self) -> None:
        """Have the link set, if it is limited or a fault changes it; until then the node is not ready.

        Raises InfrastructureError where that fails, unless the node has ended, which is reported soon.
        """
        try:
            if self.links.is_held(self.node):
                self.helper = self.links.set(self.node, self.number, self.id)
            if self.node.changeable:
                self.address = self.links.site.data.address_of(self.client, self.id)
        except (InfrastructureError, APIError):
            if self._is_running():
                raise
        finally:
            self.link_is_set.set()

    def end(self) -> None:
        """Note that the container's output has ended, and so has the node."""
        with self.lock:
            self.has_ended = True
            self.asked.put(None)
        self.link_is_set.set()  # nobody waits for the link any more
        if self.killing is not None:
            self._answer(Injected(self.killing))
        if self.helper:
            self.links.forget(self.helper)

    def close(self) -> None:
        """Release the helper, and wait until no action is in progress."""
        self.end()
        self._release_helper()
        if self.worker:
            self.worker.join()
        self._release_helper()  # a helper that was made meanwhile

    def _release_helper(self) -> None:
        helper, self.helper = self.helper, None
        if helper:
            self.links.release(helper)

    # --- in the worker's thread ---------------------------------------------------------------------------------

    def _work(self) -> None:
        while asked := self.asked.get():
            if asked == "cap":
                self._hold_cap()
                continue
            number, injection = asked
            if injection.action in KILLS:
                self.killing = number
            self._answer(self._done(number, injection))

    def _hold_cap(self) -> None:
        """Set the cap that is asked for by now."""
        if self.cpus is None:
            return
        try:
            with explained(f"the CPU cap of {self.node.node}"):
                self._set_cap()
        except EdgebedError as error:
            if not self.has_ended and self._is_running():
                self.tell(error)

    def _set_cap(self) -> None:
        cpus = self.cpus
        self.client.api.update_container(self.id, **limits.cpu_settings(cpus))
        self.cpus_set = cpus

    def _done(self, number: int, injection: Injection) -> Injected:
        """Do an action, unless the node has ended, and return what came of it."""
        try:
            if self.has_ended:
                return Injected(number, no_op=ENDED)
            with explained(f"the container of {self.node.node}"):
                self._do(number, injection)
        except EdgebedError as error:
            return Injected(number, no_op=ENDED) if self.has_ended else Injected(number, str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the controller waits for an answer
            return Injected(number, reason(error))
        return Injected(number)

    def _do(self, number: int, injection: Injection) -> None:
        api = self.client.api
        match injection.action:
            case action if action in KILLS:
                api.kill(self.id, signal=ACTIONS[action].signal)
            case "freeze":
                self._pause(api.pause, paused=True)
            case "thaw":
                self._pause(api.unpause, paused=False)
            case "cpus":
                self.cpus = self.node.cpus if injection.cpus is None else injection.cpus
                if self.is_capped:
                    self._set_cap()
            case action if action in LINK_ACTIONS:
                if injection.change and (problem := self.links.mechanisms.why_not(self.node, injection.change)):
                    raise InfrastructureError(problem)
                self._change_link(number, injection)

    def _pause(self, call: Callable[[str], None], *, paused: bool) -> None:
        """Pause or unpause the container. The engine refuses what is done already; what it failed at is tried again."""
        for tries_left in reversed(range(FREEZE_TRIES)):
            try:
                return call(self.id)
            except APIError as error:
                state = self.state()
                if state["Running"] and state["Paused"] is paused:
                    return None
                if UNLUCKY not in str(error) or not state["Running"] or not tries_left:
                    raise
        return None

    def _change_link(self, number: int, injection: Injection) -> None:
        ends = [self] + ([self.others[injection.peer]] if injection.peer in self.others else [])
        addresses = {end.node.node: end.address for end in ends if end.address} if injection.peer else {}
        for end in ends:
            try:
                with end.linking:
                    if end is self or not end.has_ended:
                        end._helper_that_stays().change(number, injection, addresses)  # noqa: SLF001
            except InfrastructureError:
                if end is self or not end.has_ended:  # its next life is told
                    raise

    def _helper_that_stays(self) -> Helper:
        self.link_is_set.wait()
        if self.helper is None or not self.helper.stays:
            self._release_helper()
            self.helper = self.links.set(self.node, self.number, self.id, stays=True)
        return self.helper

    def state(self) -> dict[str, Any]:
        """What the engine says of it."""
        state: dict[str, Any] = self.client.api.inspect_container(self.id)["State"]
        return state

    def _is_running(self) -> bool:
        try:
            return bool(self.state()["Running"])
        except (DockerException, requests.RequestException, OSError):  # removed, or its host does not answer
            return False

    def _answer(self, answer: Injected) -> None:
        with self.lock:
            if answer.number not in self.open:
                return  # a kill: the output had ended before the engine answered
            self.open.remove(answer.number)
        self.tell(answer)
