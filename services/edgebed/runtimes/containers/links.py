"""The links of nodes in containers: a helper container for each sets it, from within the node's network namespace.

    node's container (no capability)  <-- same namespace -->  helper (NET_ADMIN alone): tc, ifb

So no node can change its own link. A helper has done its work when the kernel holds the link, before the node may talk;
one whose link changes with time, or by faults, stays as long as its node: it follows the link's timeline and
carries out orders (emulation/shaping.py). A container that starts anew has a new namespace, and gets a new helper.
"""

import queue
import secrets
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress

import docker
import msgspec
import requests
from docker.errors import APIError, DockerException

from edgebed.core.errors import EdgebedError, InfrastructureError
from edgebed.core.patience import patience
from edgebed.core.plan import NodePlan, Plan, ProgramsPlan
from edgebed.core.planned.fault import Injection
from edgebed.core.records import Clock
from edgebed.emulation.means import NO_NETEM, Mechanisms
from edgebed.emulation.orders import Began, ClockLine, HelperChange, HelperClock, HelperReply, HelperSetup
from edgebed.runtimes.containers import limits
from edgebed.runtimes.containers.engine import Conversation, conversing
from edgebed.runtimes.containers.engines import Engines, answers
from edgebed.runtimes.containers.leftovers import remove_container
from edgebed.runtimes.containers.site import Site

COMMAND = ("python", "-m", "edgebed.emulation.shaping")
ANSWER_S = 30.0
"""Within which a helper on an idle machine has answered for certain."""
TRIES = 2
SILENT = "the helper that sets the link has said nothing"


class SilentHelperError(InfrastructureError):
    """A helper has said nothing: another one may."""


class Helper:
    """A container that sets a node's link. Once that has been set, a helper that stays can be asked for more."""

    def __init__(
        self, node: str, client: docker.DockerClient, container: str, talk: Conversation, *, stays: bool
    ) -> None:
        self.node = node
        self.client = client
        self.container = container
        self.stays = stays
        self.interface = ""
        """The interface that has the link, in the node's network namespace."""
        self.talk = talk
        self.lock = threading.Lock()
        self.answers: queue.SimpleQueue[HelperReply | None] = queue.SimpleQueue()
        """Answers to orders; None: the helper has ended."""

    def say(self, message: Began | HelperClock | HelperChange) -> None:
        """Send an order. Raises OSError if the helper has ended."""
        with self.lock:
            self.talk.say(msgspec.json.encode(message))

    def change(self, number: int, injection: Injection, addresses: dict[str, str] | None = None) -> None:
        """Have the link cut, healed or changed; the kernel holds it when this returns. From one thread at a time.

        `addresses` of the nodes between which it is, if it is between two.

        Raises InfrastructureError where that fails.
        """
        waits_s, waited = patience(ANSWER_S)
        try:
            self.say(HelperChange(injection, number, addresses or {}))
            while answer := self.answers.get(timeout=waits_s):
                if answer.done == number:  # else an answer that came too late
                    if answer.problem:
                        raise InfrastructureError(answer.problem)
                    return
        except queue.Empty as error:
            raise InfrastructureError(f"{SILENT} {waited}") from error
        except OSError as error:
            raise InfrastructureError(_ended(self.talk)) from error
        self.answers.put(None)
        raise InfrastructureError(_ended(self.talk))


class Links:
    """Sets the links of a trial's nodes."""

    def __init__(
        self,
        engines: Engines,
        site: Site,
        image: str,
        plan: Plan,
        complain: Callable[[EdgebedError], None],
    ) -> None:
        """`image` is the helpers'; `complain` is called with a failure of one during training.

        Raises InfrastructureError where the engine's kernel cannot do what the plan asks for.
        """
        self.engines = engines
        self.site = site
        self.image = image
        self.complain = complain
        self.lock = threading.Lock()
        self.began_s: float | None = None
        self.clocks: dict[str, ClockLine] = {}
        """How the controller's clock is had from a node's, and so from its helper's, where they are not the same."""
        self.staying: set[Helper] = set()
        """Helpers that stay with their nodes."""
        links = [node.link for node in plan.nodes]
        faults = [step.injection.change for fault in plan.faults for step in fault.steps if step.injection.change]
        lossy = any(link.lossy for link in links) or any(change.asks("packets") for change in faults)
        delayed = any(link.delayed for link in links) or any(change.asks("delay") for change in faults)
        self.netem = (delayed or lossy) and all(map(self._has_netem, self.engines.clients.values()))
        self.mechanisms = Mechanisms("docker", self.netem)
        if lossy and not self.netem:
            raise InfrastructureError(f"packets cannot be lost on an engine's host: {NO_NETEM}. Or remove the loss")
        if delayed and not self.netem and isinstance(plan, ProgramsPlan):
            raise InfrastructureError(f"latency cannot be made on an engine's host: {NO_NETEM}. Or leave it out")

    def is_held(self, node: NodePlan) -> bool:
        """Whether a node needs a helper from the beginning."""
        return node.changeable or self.mechanisms.mechanism(node) != "none"

    def set(self, node: NodePlan, number: int, container: str, *, stays: bool = False) -> Helper:
        """Have the link of a running container set, now and in future; return the helper, which may be gone already.

        It `stays` in any case where the link will change. Raises InfrastructureError where the link cannot be set. The
        helper is to be released with its node.
        """
        stays = stays or node.changeable or bool(node.link.changes)
        for tries_left in reversed(range(TRIES)):
            try:
                return self._set(node, number, container, stays=stays)
            except (SilentHelperError, APIError) as error:
                if not tries_left or not (isinstance(error, SilentHelperError) or error.is_server_error()):
                    raise
        raise AssertionError("the last try answers or fails")

    def _set(self, node: NodePlan, number: int, container: str, *, stays: bool) -> Helper:
        """Have the link of a running container set by one helper."""
        labels = self.site.labels_of_helper(node, number)
        name = f"{self.site.container_name(node)}-link-{secrets.token_hex(2)}"  # the last one may still exist
        client = self.engines.of(node)
        made = self._create(client, name, COMMAND, labels, f"container:{container}", stdin_open=True)
        try:
            return self.held_by(made, node, container, stays=stays)
        except BaseException:
            remove_container(client, made)
            raise

    def held_by(self, made: str, node: NodePlan, container: str, *, stays: bool) -> Helper:
        """Start a container that was made for it, with COMMAND, and have it set a node's link.

        `container`: the one that has the link, whose end is the helper's. Raises InfrastructureError.
        """
        client = self.engines.of(node)
        with ExitStack() as stack:
            talk = stack.enter_context(conversing(client, made))
            helper = Helper(node.node, client, made, talk, stays=stays)
            client.api.start(made)
            order = HelperSetup(self.site.data.subnet, self.netem, node.link, node.node, stays)
            talk.say(msgspec.json.encode(order))
            helper.interface = _heard(talk).interface
            if stays:
                with self.lock:
                    self.staying.add(helper)
                    self._tell_begin(helper)
                listening = node.node, container, helper, stack.pop_all()
                name = f"{node.node}-link"
                threading.Thread(target=self._listen, args=listening, name=name, daemon=True).start()
        return helper

    def forget(self, helper: Helper) -> None:
        """Note that the helper's node has ended: a failure of the helper is no longer reported."""
        with self.lock:
            self.staying.discard(helper)

    def release(self, helper: Helper) -> None:
        """Remove a helper whose node has ended."""
        self.forget(helper)
        remove_container(helper.client, helper.container)

    def began(self, monotonic_s: float) -> None:
        """Training began, at this time of the controller's monotonic clock."""
        with self.lock:
            self.began_s = monotonic_s
            for helper in self.staying:
                self._tell_begin(helper)

    def clock_told(self, node: str, clock: Clock) -> None:
        """Note how a node's clock differs from the controller's: its helper, on the same host, goes by that as well.

        It is told for the first time before the node is ready, and so before it talks on the data network.
        """
        with self.lock:
            self.clocks[node] = ClockLine(clock.offset_s, clock.own_s, clock.drift)
            for helper in self.staying:
                if helper.node == node:
                    self._tell_begin(helper)

    def _tell_begin(self, helper: Helper) -> None:
        with suppress(OSError):  # the helper has ended, as `_listen` knows
            if clock := self.clocks.get(helper.node):
                helper.say(HelperClock(clock))
            if self.began_s is not None:
                helper.say(Began(self.began_s))

    def _listen(self, node: str, container: str, helper: Helper, stack: ExitStack) -> None:
        """Read a helper's answers until it ends; report a failure unless its node has ended, too."""
        with stack:
            last = HelperReply()
            while answer := _next_answer(helper.talk):
                helper.answers.put(answer)
                last = answer
            helper.answers.put(None)
            with self.lock:
                failed = helper in self.staying
                self.staying.discard(helper)
            is_own = container == helper.container and answers(helper.client)  # without it the node is cut off
            if failed and (is_own or _is_running(helper.client, container)):
                problem = last.problem if last.problem and last.done is None else _ended(helper.talk)
                self.complain(InfrastructureError(f"the link of {node} does not change any more: {problem}"))

    def _has_netem(self, client: docker.DockerClient) -> bool:
        """Whether the engine's kernel has netem: tried in a container without any network."""
        name = f"{self.site.name}-probe"
        helper = self._create(client, name, (*COMMAND, "--probe"), self.site.labels, "none", stdin_open=False)
        try:
            with conversing(client, helper) as talk:
                client.api.start(helper)
                return bool(_heard(talk).netem)
        finally:
            remove_container(client, helper)

    def _create(
        self,
        client: docker.DockerClient,
        name: str,
        command: tuple[str, ...],
        labels: dict[str, str],
        network: str,
        *,
        stdin_open: bool,
    ) -> str:
        api = client.api
        made = api.create_container(
            self.image,
            name=name,
            entrypoint=list(command),
            user="0:0",
            labels=labels,
            stdin_open=stdin_open,
            host_config=api.create_host_config(network_mode=network, **limits.helper_settings()),
        )
        return str(made["Id"])


def _is_running(client: docker.DockerClient, container: str) -> bool:
    """Whether a container runs: the network of a node that has ended goes at once, and shaping it fails.

    One on a host that does not answer does not count: that is told by itself.
    """
    try:
        return bool(client.api.inspect_container(container)["State"]["Running"])
    except (DockerException, requests.RequestException, OSError):
        return False


def _heard(talk: Conversation) -> HelperReply:
    """The next answer of a helper. Raises InfrastructureError if that is a problem; SilentHelperError without any."""
    waits_s, waited = patience(ANSWER_S)
    try:
        line = talk.hear(waits_s)
    except TimeoutError as error:
        raise SilentHelperError(f"{SILENT} {waited}") from error
    if not line:
        raise InfrastructureError(f"{_ended(talk)}. Is its image of this code? scripts/build-images builds it")
    answer = msgspec.json.decode(line, type=HelperReply)
    if answer.problem:
        raise InfrastructureError(answer.problem)
    return answer


def _next_answer(talk: Conversation) -> HelperReply | None:
    """The next answer, whenever it comes; None when the helper has ended, or the connection to the engine."""
    with suppress(OSError):
        if line := talk.hear():
            return msgspec.json.decode(line, type=HelperReply)
    return None


def _ended(talk: Conversation) -> str:
    words = talk.complaints.decode(errors="replace").strip().rpartition("\n")[2]
    return f"the helper that sets the link ended: {words or 'without a word'}"
