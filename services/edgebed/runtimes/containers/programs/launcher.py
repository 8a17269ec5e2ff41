"""Programs of the user's in containers: each in the place that a holder keeps for its node (holder.py).

    launch --> witness, in the holder's namespace --"the link is held"--> program --> its output, attached
                   |                                                        |
                   Link, Usage, ...                                         the engine says how it ended

A life has a thread that manages it, and one that hears its witness. What faults do to a program, the engine does to its
container (container.py); to its link, the holder. The witness reads the cgroup that the engine has made for the
program, from the machine's own tree, and finds it by the program's process.
"""

import base64
import json
import secrets
import shutil
import tarfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import requests
from docker.errors import APIError, DockerException, NotFound

from edgebed.core.actions import ACTIONS, LINK_ACTIONS
from edgebed.core.errors import EdgebedError, InfrastructureError
from edgebed.core.last_words import SIGNALLED, is_by_signal, signal_name
from edgebed.core.linux import monotonic_clock
from edgebed.core.patience import patience
from edgebed.core.plan import ProgramsPlan
from edgebed.core.planned.command import Member
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.program import ProgramPlan, Ready
from edgebed.emulation.namespaces import Home
from edgebed.emulation.orders import Ask, Began, HelperChange, Opens, Watched
from edgebed.emulation.readback import PATIENCE_S
from edgebed.emulation.witness.witness import WitnessLine, WitnessRequest
from edgebed.roles.events import Injected, NodeStarted, ProgramExited
from edgebed.runtimes.containers import limits
from edgebed.runtimes.containers.container import ENDED, Container
from edgebed.runtimes.containers.engine import Conversation, attached, conversing, explained
from edgebed.runtimes.containers.hosts.sight import ContainerSight
from edgebed.runtimes.containers.launcher import STARTERS, EngineLauncher, Incarnation
from edgebed.runtimes.containers.leftovers import remove_container
from edgebed.runtimes.containers.links import Links
from edgebed.runtimes.containers.programs.clocks import WitnessClock
from edgebed.runtimes.containers.programs.holder import FILES, SCRATCH, Holder
from edgebed.runtimes.containers.programs.images import images_of
from edgebed.runtimes.containers.site import Site, find_data
from edgebed.runtimes.programs import told
from edgebed.runtimes.programs.files import copy_files
from edgebed.runtimes.programs.happenings import Called, Said, Witnessed

WITNESS = ("python", "-m", "edgebed.emulation.witness")
LOOK_S = 0.1
CLOCK_S = 0.25
"""Seconds from one look whether a witness on another host is to be asked for its clock to the next."""
FILE_LOOK_S = 0.5
PARTS_MAX = 64
"""Parts of a program's output that wait to be read; then the program waits."""


class Life(Incarnation):
    """A program from one start to its end."""

    def __init__(self, node: ProgramPlan, number: int) -> None:
        """`number` of the incarnation, from 1."""
        super().__init__(node)
        self.plan = node
        self.number = number
        self.witness: Conversation | None = None
        self.clock: WitnessClock | None = None
        """The clock that its witness reads; None: the controller's own."""
        self.is_in_time = False
        """Whether its witness's clock is known."""
        self.url = ""
        """The program's own address, which its witness serves."""
        self.is_ready = False
        """Whether its port is open, or its file is there, that shows that it is ready."""
        self.has_ended = False
        self.started_at = ""
        """When the engine started it, as the engine writes it."""
        self.room = threading.BoundedSemaphore(PARTS_MAX)


class ContainedPrograms(EngineLauncher):
    """Starts programs in containers and reports what they say, and their ends."""

    lives: dict[str, Life]  # type: ignore[assignment] # these alone

    def __init__(self, plan: ProgramsPlan, run: str, folder: Path) -> None:
        """As `EngineLauncher`; `folder` gets a copy of the user's files until each node has its own."""
        self.plan = plan
        self.plans = {node.node: node for node in plan.nodes}
        self.folder = folder
        self.incarnations: dict[str, int] = defaultdict(int)
        self.caps = {node.node: node.cpus for node in plan.nodes}
        """CPU cap that is asked for now, in cores; None: none."""
        self.asked: dict[int, Injection] = {}
        """What is to be done to links and caps."""
        self.untold: dict[str, list[Injection]] = defaultdict(list)
        """What was done to each node while it had no witness."""
        self.telling = threading.Lock()
        """Held while a witness is told something, or becomes one that can be."""
        self.holders: dict[str, Holder] = {}
        self.ends: dict[str, Container] = {}
        """What does things to each node's link."""
        self.began_s: float | None = None
        super().__init__(plan, run)
        self.notes = tuple(self.links.mechanisms.notes(plan))

    # --- places, before anything is launched --------------------------------------------------------------------

    def _find_site(self, run: str) -> Site:
        return find_data(self.engines, run, self.plan.trial)

    def _prepare(self) -> None:
        self.own_images = images_of(self.plan, self.engines, self.images.worker)
        with explained("the links of the nodes"):
            self.links = Links(self.engines, self.site, self.images.server, self.plan, self._complain)
        with ExitStack() as stack, explained("the places of the programs"):
            archive = self._archive(stack) if self.plan.program.files else None
            with ThreadPoolExecutor(STARTERS) as pool:
                for holder in pool.map(partial(self._hold, archive), self.plan.nodes):
                    self.holders[holder.node.node] = holder
                self.members = [
                    Member(node.node, node.device_class, node.index, self.holders[node.node].address)
                    for node in self.plan.nodes
                ]
                list(pool.map(lambda holder: holder.write_hosts(self.members), self.holders.values()))

    def _archive(self, stack: ExitStack) -> Path:
        """An archive of the user's files, which all may read, until `stack` is closed."""
        copy, archive = self.folder / "files", self.folder / "files.tar"
        stack.callback(archive.unlink, missing_ok=True)
        with tarfile.open(archive, "w") as tar:
            tar.add(copy_files(self.plan.program.files, copy), ".", filter=_readable)
        shutil.rmtree(copy)
        return archive

    def _hold(self, archive: Path | None, node: ProgramPlan) -> Holder:
        scratch_bytes = self.plan.program.limits.scratch_bytes
        client, image = self.engines.of(node), self.images.server
        holder = Holder(client, self.links, node, image, scratch_bytes, archive, self._link_told, self.ends)
        self.ends[node.node] = holder.link
        return holder

    # --- a program's life, in a thread of its own ---------------------------------------------------------------

    def launch(self, node: str) -> bool:
        """Start a program's witness, and then the program; False if its last life is not over."""
        if not self._begin(Life(self.plans[node], self.incarnations[node] + 1)):
            return False
        self.incarnations[node] += 1
        return True

    def _from_start_to_end(self, life: Life) -> None:
        node = life.plan
        with ExitStack() as stack:
            with self.starting[node.host]:
                self.holders[node.node].require_alone()
                hearing = self._watch(life, stack)
                container, output = self._retried(node, stack, partial(self._started, life))
            self._tell(NodeStarted(node.node))
            if node.ready.file is not None:
                threading.Thread(target=self._look_for_file, args=(life, container), daemon=True).start()
            for part in output:
                while not life.room.acquire(timeout=1.0) and not self.closing.is_set():
                    pass
                self._tell(Said(node.node, part))
            self._await_end(life, container)
            life.has_ended = True
            container.end()
            with self.telling:
                self._order(life, Watched(ended=True))
            hearing.join(patience(PATIENCE_S)[0])  # the engine knows a moment later that memory was short
            exited = self._how_it_ended(life, container)
            if life.end():
                self._tell(exited)

    def _watch(self, life: Life, stack: ExitStack) -> threading.Thread:
        """Start a program's witness; return the thread that hears it, once the link is held."""
        node, client = life.plan, self.engines.of(life.plan)
        holder, api = self.holders[node.node], client.api
        request = WitnessRequest(
            node=node.node,
            home=Home(namespace="", address=holder.address),
            names={each.address: each.node for each in self.members},
            port=node.ready.port,
            measures=self.plan.program.measures_of(node),
            page=node.page,
            link=node.link,
            changeable=node.changeable,
            delay=self.links.mechanisms.delay(node),
            cpus=node.cpus,
            injected=self._take_untold(node.node),
        )
        host = api.create_host_config(network_mode=holder.place, **limits.witness_settings())
        made = api.create_container(
            self.images.server,
            name=f"{self.site.container_name(node)}-witness-{secrets.token_hex(2)}",  # the last one may still exist
            entrypoint=[*WITNESS, msgspec.json.encode(request).decode()],
            user="0:0",
            labels=self.site.labels_of_helper(node, node.index + 1),
            stdin_open=True,
            host_config=host | {"CgroupnsMode": "host"},
        )["Id"]
        stack.callback(remove_container, client, made)
        talk = stack.enter_context(conversing(client, made))
        api.start(made)
        with self.telling:
            life.witness = talk
            for injection in self._take_untold(node.node):
                self._order(life, HelperChange(injection, 0))
        waits_s, waited = patience(PATIENCE_S)
        try:
            first = self._heard(node.node, talk, talk.hear(waits_s))
        except TimeoutError as error:
            raise InfrastructureError(f"the witness of {node.node} has said nothing {waited}") from error
        life.url = first.url
        if first.clock != monotonic_clock():
            self._compare_clocks(life, talk)
        with self.telling:
            life.is_in_time = True
            self._tell_begin(life)
        hearing = threading.Thread(target=self._hear, args=(life, talk), name=f"{node.node}-witness", daemon=True)
        hearing.start()
        return hearing

    def _compare_clocks(self, life: Life, talk: Conversation) -> None:
        """Ask a witness on another host for its clock, until that is known."""
        life.clock, (waits_s, waited) = WitnessClock(), patience(PATIENCE_S)
        until_s, early = time.monotonic() + waits_s, []
        while life.clock.estimate is None and time.monotonic() < until_s:
            self._ask(life)
            with suppress(TimeoutError):
                line = self._heard(life.plan.node, talk, talk.hear(CLOCK_S))
                if line.asked:
                    self._take(life, line)
                else:
                    early.append(line)
        if life.clock.estimate is None:
            raise InfrastructureError(f"the witness of {life.plan.node} has not told its clock {waited}")
        for line in early:
            self._take(life, line)

    def _ask(self, life: Life) -> None:
        """Ask a witness for its clock, if it is time to."""
        if life.clock and (asked_ns := life.clock.due()):
            with self.telling:
                self._order(life, Ask(asked_ns))

    def _take(self, life: Life, line: WitnessLine) -> None:
        """Hand on what a witness has said, at the controller's time."""
        node, clock = life.plan.node, life.clock
        if line.record is not None:
            self._tell(Witnessed(node, clock.ours_s(line.t) if clock else line.t, line.record))
        elif line.call is not None:
            self._tell(Called(node, line.call))
        elif clock and line.asked and (news := clock.answered(line.asked, line.theirs)):
            self.links.clock_told(node, news)
            self._tell(Witnessed(node, time.monotonic(), news))
        life.is_ready |= line.listens

    def _hear(self, life: Life, talk: Conversation) -> None:
        """Take what a witness says until it ends."""
        node = life.plan.node
        try:
            while True:
                self._ask(life)
                with suppress(TimeoutError):
                    if not (data := talk.hear(CLOCK_S if life.clock else None)):
                        break
                    self._take(life, self._heard(node, talk, data))
            if not life.has_ended:
                self._heard(node, talk, b"")
        except EdgebedError as error:
            self._failed(life, error)
        except OSError:
            return  # the connection was closed on purpose

    def _heard(self, node: str, talk: Conversation, data: bytes) -> WitnessLine:
        """Read a line of a witness; InfrastructureError where it can do nothing more."""
        if not data:
            words = talk.complaints.decode(errors="replace").strip().rpartition("\n")[2] or "without a word"
            raise InfrastructureError(f"what watches the link and the cgroup of {node} ended: {words}")
        line = msgspec.json.decode(data, type=WitnessLine)
        if line.problem:
            raise InfrastructureError(f"{node}: {line.problem}")
        return line

    def _started(self, life: Life, stack: ExitStack) -> tuple[Container, Iterator[bytes]]:
        """Start a program; `stack` removes it. Return its container, and what it says."""
        node, client = life.plan, self.engines.of(life.plan)
        holder, api = self.holders[node.node], client.api
        command, variables = told.command(
            node,
            self.members,
            seed=self.plan.seed,
            incarnation=life.number,
            interface=holder.interface,
            url=life.url,
            scratch=SCRATCH,
        )
        cpus, mounts = self.caps[node.node], holder.mounts()
        settings = limits.program_settings(node, self.plan.program.limits, cpus, mounts, self.parents[node.host])
        made = api.create_container(
            self.own_images[node.node],
            name=self.site.container_name(node),
            entrypoint=list(command),
            environment={"HOME": SCRATCH} | variables,
            working_dir=FILES if self.plan.program.files else SCRATCH,
            labels=self.site.labels_of(node, node.index + 1),
            host_config=api.create_host_config(network_mode=holder.place, **settings),
        )["Id"]
        stack.callback(remove_container, client, made)
        output = stack.enter_context(attached(client, made))
        container = Container(client, self.links, node, node.index + 1, made, self._link_told)
        stack.callback(container.close)
        container.is_capped, container.cpus, container.cpus_set = True, cpus, cpus
        container.link_is_set.set()
        self.containers[node.node] = container
        api.start(made)
        state = container.state()
        life.started_at = state["StartedAt"]
        if state["Pid"]:
            with self.telling:
                self._order(life, Watched(state["Pid"]))
        return container, output

    def _look_for_file(self, life: Life, container: Container) -> None:
        """Look for the file that shows that a program is ready, until it is there or the program has ended.

        One that an earlier life has left does not show it: it was changed before the container was made.
        """
        file, api = life.plan.ready.file or "", container.client.api
        paths = [file] if file.startswith("/") else [f"{folder}/{file}" for folder in (FILES, SCRATCH)]
        url = f"{api.base_url}/v{api._version}/containers/{container.id}/archive"  # noqa: SLF001 # the library has no call for that
        made: datetime | None = None
        while not life.is_ready and not life.has_ended:
            with suppress(requests.RequestException, DockerException):
                made = made or datetime.fromisoformat(api.inspect_container(container.id)["Created"])
                changed = [_changed(api.head(url, params={"path": path})) for path in paths]
                life.is_ready = any(each >= made for each in changed if each)
            time.sleep(FILE_LOOK_S)

    def _await_end(self, life: Life, container: Container) -> None:
        """Return when a program that says nothing more has ended, or was started anew by others."""
        with suppress(NotFound):
            while (state := container.state())["Running"] and state["StartedAt"] == life.started_at:
                time.sleep(LOOK_S)

    def _how_it_ended(self, life: Life, container: Container) -> ProgramExited:
        """What the engine says of it; of one that was removed, or started anew by others, what they have done."""
        node = life.plan.node
        try:
            state = container.state()
        except NotFound:
            return ProgramExited(node=node, signal="SIGKILL")
        if state["StartedAt"] != life.started_at:
            return ProgramExited(node=node, signal="SIGTERM")
        code = int(state["ExitCode"])
        is_signal = is_by_signal(code)
        return ProgramExited(
            node=node,
            code=None if is_signal else code,
            signal=signal_name(code - SIGNALLED) if is_signal else "",
            oom=bool(state["OOMKilled"]),
        )

    def _ended(self, node: str, why: str) -> ProgramExited:
        return ProgramExited(node=node, signal="SIGKILL", said=why)

    # --- what is done to it -------------------------------------------------------------------------------------

    def inject(self, number: int, injection: Injection) -> None:
        """Have an action but `launch` done to a node; `Injected(number)` is among the events. Never blocks."""
        node, container = injection.node, self.containers.get(injection.node)
        by = ACTIONS[injection.action].by
        if by in ("link", "cap"):
            self.asked[number] = injection
        if injection.action in LINK_ACTIONS:
            self.holders[node].link.inject(number, injection)
            return
        if by == "cap":
            self.caps[node] = self.plans[node].cpus if injection.cpus is None else injection.cpus
        elif ACTIONS[injection.action].signal is None:
            self._tell(Injected(number, f"{injection.action} is nothing that can be done to a program"))
            return
        if container and not container.has_ended:
            container.inject(number, injection)
        else:
            self._link_told(Injected(number) if by == "cap" else Injected(number, no_op=ENDED))

    def _link_told(self, answer: Injected | EdgebedError) -> None:
        """Tell what came of an action; a witness hears what was done to link or cap, or else the next one does."""
        injection = self.asked.pop(answer.number, None) if isinstance(answer, Injected) else None
        if injection and isinstance(answer, Injected) and not answer.problem:
            for node in filter(None, (injection.node, injection.peer)):
                life = self.lives.get(node)
                with self.telling:
                    if life and life.witness and not life.has_ended:
                        self._order(life, HelperChange(injection, 0))
                    else:
                        self.untold[node].append(injection)
        self._tell(answer)

    def _take_untold(self, node: str) -> tuple[Injection, ...]:
        return tuple(self.untold.pop(node, ()))

    def open_barrier(self, node: str, barrier: str) -> None:
        """Let a program go on that waits at a barrier."""
        with self.telling:
            self._order(self.lives[node], Opens(barrier))

    def _tell_begin(self, life: Life) -> None:
        """Tell a witness when the trial began, by its own clock, once both are known."""
        if life.is_in_time and self.began_s is not None:
            self._order(life, Began(life.clock.theirs_s(self.began_s) if life.clock else self.began_s))

    def _order(self, life: Life, order: Ask | Began | HelperChange | Opens | Watched) -> None:
        """Tell a witness something; one that is ending need not know."""
        with suppress(OSError):
            if life.witness:
                life.witness.say(msgspec.json.encode(order))

    def end(self, node: str) -> None:
        """Ask a program to end."""
        if container := self.containers.get(node):
            threading.Thread(target=_terminate, args=(container,), daemon=True).start()

    # --- what is heard ------------------------------------------------------------------------------------------

    def poll_events(self) -> Iterator[Any]:
        """What has happened since the last call; called when `fileno` is readable."""
        for event in super().poll_events():
            if isinstance(event, Said):
                self.lives[event.node].room.release()
            yield event

    def shows_ready(self, node: str, ready: Ready) -> bool:
        """Whether the port is open, or the file there, that shows that a program is ready."""
        return self.lives[node].is_ready

    def sight(self) -> ContainerSight:
        """Where the programs' containers can be seen from outside."""
        memory_bytes = {node.node: node.memory_bytes for node in self.plan.nodes}
        return ContainerSight(self._container, memory_bytes, self.site.data.id)

    def began(self, monotonic_s: float) -> None:
        """Note that the trial began: links change with time from here on."""
        self.links.began(monotonic_s)
        with self.telling:
            self.began_s = monotonic_s
            for life in self.lives.values():
                self._tell_begin(life)

    def close(self) -> None:
        """Remove everything; nothing is done to links any more."""
        for holder in self.holders.values():
            holder.link.end()
        super().close()


def _changed(answer: requests.Response) -> datetime | None:
    """When a file of a container was changed last, as the engine says it; None: it is not there."""
    if not answer.ok:
        return None
    stat = json.loads(base64.b64decode(answer.headers["X-Docker-Container-Path-Stat"]))
    return datetime.fromisoformat(stat["mtime"])


def _readable(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """An entry of an archive that belongs to root, and that everybody may read."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode |= 0o555 if entry.isdir() else 0o444
    return entry


def _terminate(container: Container) -> None:
    with suppress(APIError, requests.RequestException):
        container.client.api.kill(container.id, signal="SIGTERM")
