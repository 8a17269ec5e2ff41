"""The links of nodes in containers: a helper container for each sets it, from within the node's network namespace.

    node's container (no capability)  <-- same namespace -->  helper (NET_ADMIN alone): tc, ifb

So no node can change its own link. A helper has done its work when the kernel holds the link, before the node may talk;
one whose link changes with time stays as long as its node and follows the link's timeline (emulation/shaping.py). A
container that starts anew has a new namespace, and gets a new helper.
"""

import secrets
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress

import docker
import msgspec

from edgebed.emulation.means import Means
from edgebed.emulation.orders import Answer, Began, Order
from edgebed.errors import EdgebedError, InfrastructureError
from edgebed.runtimes.containers import limits
from edgebed.runtimes.containers.engine import Conversation, conversing
from edgebed.runtimes.containers.leftovers import remove_container
from edgebed.runtimes.containers.site import Site
from edgebed.scenario.plan import NodePlan, Plan

COMMAND = ("python", "-m", "edgebed.emulation.shaping")
ANSWER_S_MAX = 30.0


class Links:
    """Sets the links of a trial's nodes."""

    def __init__(
        self,
        client: docker.DockerClient,
        site: Site,
        image: str,
        plan: Plan,
        complain: Callable[[EdgebedError], None],
    ) -> None:
        """`image` is the helpers'; `complain` is told of one that fails while training goes on.

        Raises InfrastructureError where the engine's kernel cannot do what the plan asks for.
        """
        self.client = client
        self.site = site
        self.image = image
        self.complain = complain
        self.lock = threading.Lock()
        self.began_s: float | None = None
        self.kept: dict[str, Conversation] = {}
        """With helpers that stay with their nodes."""
        links = [node.link for node in plan.nodes]
        self.netem = any(link.delayed or link.lossy for link in links) and self._probe()
        self.means = Means("docker", self.netem)
        if not self.netem and any(link.lossy for link in links):
            raise InfrastructureError(
                "packets cannot be lost here: the engine's kernel has no netem. Take the loss away, or load it: "
                "modprobe sch_netem"
            )

    def set(self, node: NodePlan, number: int, container: str) -> str:
        """Have the link of a running container set, now and in future; return the helper, which may be gone already.

        Raises InfrastructureError where it cannot be set. The helper is to be released with its node.
        """
        labels = self.site.labels_of_helper(node, number)
        name = f"{self.site.container_name(node)}-link-{secrets.token_hex(2)}"  # the one before may not quite be gone
        helper = self._create(name, COMMAND, labels, f"container:{container}", stdin_open=True)
        try:
            with ExitStack() as stack:
                talk = stack.enter_context(conversing(self.client, helper))
                self.client.api.start(helper)
                talk.say(msgspec.json.encode(Order(self.site.data.subnet, self.netem, node.link)))
                _heard(talk)
                if node.link.changes:
                    with self.lock:
                        self.kept[helper] = talk
                        self._tell_begin(talk)
                    listening = node.node, helper, talk, stack.pop_all()
                    name = f"{node.node}-link"
                    threading.Thread(target=self._listen, args=listening, name=name, daemon=True).start()
        except BaseException:
            self.release(helper)
            raise
        return helper

    def release(self, helper: str) -> None:
        """Remove a helper whose node has ended."""
        with self.lock:
            self.kept.pop(helper, None)
        remove_container(self.client, helper)

    def began(self, monotonic_s: float) -> None:
        """Training began, at this time of the machine's monotonic clock."""
        with self.lock:
            self.began_s = monotonic_s
            for talk in self.kept.values():
                self._tell_begin(talk)

    def _tell_begin(self, talk: Conversation) -> None:
        if self.began_s is not None:
            with suppress(OSError):  # it has ended, as whoever listens to it knows
                talk.say(msgspec.json.encode(Began(self.began_s)))

    def _listen(self, node: str, helper: str, talk: Conversation, stack: ExitStack) -> None:
        """Until a helper ends; that it has failed unless it was released."""
        with stack:
            try:
                line = talk.hear()
            except OSError:  # of the connection to the engine
                line = b""
            with self.lock:
                failed = self.kept.pop(helper, None) is not None
            if failed:
                problem = msgspec.json.decode(line, type=Answer).problem if line else _ended(talk)
                self.complain(InfrastructureError(f"the link of {node} does not change any more: {problem}"))

    def _probe(self) -> bool:
        """Whether the engine's kernel has netem: tried in a container without any network."""
        name = f"{self.site.name}-probe"
        helper = self._create(name, (*COMMAND, "--probe"), self.site.labels, "none", stdin_open=False)
        try:
            with conversing(self.client, helper) as talk:
                self.client.api.start(helper)
                return bool(_heard(talk).netem)
        finally:
            remove_container(self.client, helper)

    def _create(
        self, name: str, command: tuple[str, ...], labels: dict[str, str], network: str, *, stdin_open: bool
    ) -> str:
        api = self.client.api
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


def _heard(talk: Conversation) -> Answer:
    """What a helper answers. Raises InfrastructureError if that is a problem."""
    try:
        line = talk.hear(ANSWER_S_MAX)
    except TimeoutError as error:
        raise InfrastructureError(
            f"the helper that sets the link has said nothing for {ANSWER_S_MAX:g} s. Is the machine too busy?"
        ) from error
    if not line:
        raise InfrastructureError(f"{_ended(talk)}. Is its image of this code? scripts/build-images builds it")
    answer = msgspec.json.decode(line, type=Answer)
    if answer.problem:
        raise InfrastructureError(answer.problem)
    return answer


def _ended(talk: Conversation) -> str:
    words = talk.complaints.decode(errors="replace").strip().rpartition("\n")[2]
    return f"the helper that sets the link ended: {words or 'without a word'}"
