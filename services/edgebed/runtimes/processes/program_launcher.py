"""Programs of the user's as processes of this machine, as root: each in a namespace, a cgroup and mounts of its node.

    launch --> witness --"the link is held"--> program (emulation/enter.py) --> its output, through a pipe
               |                               |
               Link, Usage, ...                its end: what it had started is killed, the witness looks once more

What faults do is done to every process of the node's cgroup; to its link by the process that holds the namespaces, and
to its cap here. A program that is launched again has the namespace, the cgroup and the scratch folder of the one
before. What a killed controller leaves, a program's own children in their cgroup, the next command removes.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from edgebed.core.actions import ACTIONS
from edgebed.core.console import say
from edgebed.core.errors import InfrastructureError
from edgebed.core.last_words import END_S, how_it_ended, signal_name
from edgebed.core.linux import allow_open_files
from edgebed.core.plan import ProgramsPlan
from edgebed.core.planned.command import Member
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.program import Limits, ProgramPlan, Ready
from edgebed.emulation.cgroups import Cgroups, remove_leftovers
from edgebed.emulation.enter import SCRATCH, Entry
from edgebed.emulation.local import LocalMechanisms
from edgebed.emulation.means import mechanisms_of
from edgebed.emulation.namespaces import Namespaces
from edgebed.emulation.orders import Began, HelperChange, Opens
from edgebed.emulation.outside.kernel_sight import Place, networks_of_all
from edgebed.emulation.outside.looks import cpu_folder
from edgebed.emulation.resources import processes
from edgebed.emulation.switch import INTERFACE
from edgebed.emulation.witness.witness import WitnessLine, WitnessRequest
from edgebed.roles.events import Injected, NodeStarted, ProgramExited
from edgebed.runtimes.live.sockets import FILES_BESIDE
from edgebed.runtimes.processes.local_launcher import LocalLauncher
from edgebed.runtimes.programs import told
from edgebed.runtimes.programs.files import copy_files
from edgebed.runtimes.programs.happenings import Called, Happening, Said, Witnessed

ENDED = "its program has ended"
READ_BYTES = 1 << 16
ENTRY_BYTES = 32 * os.sysconf("SC_PAGESIZE")
"""Bytes that a word of a command may not have (MAX_ARG_STRLEN of linux/binfmts.h)."""
FILES_A_NODE = 6
"""Files of a program's that this process has open: two pipes to its witness, its output and its end, and two logs."""
LAST_READS = 64
"""Reads of what a program has left in its pipe when it ends; what it had started may have written without an end."""
Heard = Callable[[], Iterator[Happening]]


@dataclass
class _Life:
    """A program, from when its witness is started until that has ended."""

    plan: ProgramPlan
    witness: "subprocess.Popen[bytes]"
    witnessed: bytes = b""
    """The beginning of a line of the witness's."""
    process: "subprocess.Popen[bytes] | None" = None
    listens: bool = False
    """Whether somebody listens on the port that shows that it is ready."""
    begun_ns: int = 0
    """When the program was started, by the clock of files: one of an earlier life does not show that it is ready."""
    exited: ProgramExited | None = None
    """How the program has ended; None: it has not."""
    descriptors: list[int] = field(default_factory=list)


class ProgramLauncher(LocalLauncher):
    """Starts programs and reports what they say, and their ends. InfrastructureError where the kernel refuses."""

    plan: ProgramsPlan
    cgroups: Cgroups
    namespaces: Namespaces
    name = "process"

    def __init__(self, plan: ProgramsPlan, folder: Path, log_folder: Path) -> None:
        """`folder` gets a copy of the user's files, for as long as the trial lasts, and what programs write."""
        super().__init__(plan)
        self.plans = {node.node: node for node in plan.nodes}
        self.folder = folder.absolute()
        self.log_folder = log_folder
        self.lives: dict[str, _Life] = {}
        self.incarnations: dict[str, int] = defaultdict(int)
        self.sources: dict[int, Heard] = {}
        """What hears each file descriptor that is waited on."""
        self.changes: dict[int, Injection] = {}
        """Changes of links that have been asked for and not answered."""
        self.before: dict[str, list[Injection]] = defaultdict(list)
        """What was done to each node while it had no witness."""
        self.began_s: float | None = None
        try:
            self._make()
        except BaseException:
            self.stack.close()
            raise

    def _make(self) -> None:
        remove_leftovers(say)
        nodes = len(self.plan.nodes)
        allow_open_files(FILES_BESIDE + FILES_A_NODE * nodes, f"a controller of {nodes:,} programs")
        self.cgroups = Cgroups()
        self.stack.callback(self.cgroups.remove)
        self.entered = {node.node: self.cgroups.make(node) for node in self.plan.nodes}
        self.mechanisms = mechanisms_of("process", "kernel")
        self.notes = tuple(LocalMechanisms(plan=self.plan, mechanisms=self.mechanisms, cgroups=True).notes())
        if self.plan.program.limits != Limits():
            self.notes += ("program.limits hold in containers alone: nothing limits processes and scratch here.",)
        links = {node.node: node.link for node in self.plan.nodes}
        changeable = [node.node for node in self.plan.nodes if node.changeable]
        self.namespaces = Namespaces(links, self.log_folder / "namespaces.log", changeable)
        self.stack.callback(self.namespaces.close)
        self.members = [
            Member(node.node, node.device_class, node.index, self.namespaces.homes[node.node].address)
            for node in self.plan.nodes
        ]
        self.files = ""
        if self.plan.program.files:
            copy = self.folder / "files"
            self.stack.callback(shutil.rmtree, copy, ignore_errors=True)
            self.files = str(copy_files(self.plan.program.files, copy))
        self.listen()
        self.stack.callback(self._kill_all)

    # --- a program's life ---------------------------------------------------------------------------------------

    def launch(self, node: str) -> bool:
        """Start a program's witness, and then the program; False if its last life is not over."""
        if node in self.lives or self._processes(node):
            return False
        self.incarnations[node] += 1
        self.cgroups.begin_incarnation(node)
        plan = self.plans[node]
        request = WitnessRequest(
            node=node,
            home=self.namespaces.homes[node],
            cgroup={name: str(folder) for name, folder in self.cgroups.folders(node).items()},
            port=plan.ready.port,
            names={each.address: each.node for each in self.members},
            measures=self.plan.program.measures_of(plan),
            page=plan.page,
            link=plan.link,
            changeable=plan.changeable,
            delay=self.mechanisms.delay(plan),
            cpus=plan.cpus,
            injected=tuple(self.before.pop(node, ())),
        )
        command = [sys.executable, "-m", "edgebed.emulation.witness", msgspec.json.encode(request).decode()]
        try:
            with self._log_of_witness(node).open("ab") as log:
                witness = subprocess.Popen(  # noqa: S603 # every word is ours
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0, process_group=0
                )
        except OSError as error:
            raise InfrastructureError(f"what watches {node} cannot be started: {error}") from error
        assert witness.stdout is not None
        os.set_blocking(witness.stdout.fileno(), False)
        life = self.lives[node] = _Life(plan, witness)
        self._hear(witness.stdout.fileno(), lambda: self._hear_witness(life))
        if self.began_s is not None:
            self._order(life, Began(self.began_s))
        return True

    def _hear_witness(self, life: _Life) -> Iterator[Happening]:
        assert life.witness.stdout is not None
        node = life.plan.node
        try:
            data = os.read(life.witness.stdout.fileno(), READ_BYTES)
        except BlockingIOError:  # it was another's with this number that had something
            return
        if not data:
            self._unhear(life.witness.stdout.fileno())
            why = how_it_ended(life.witness, self._log_of_witness(node))
            if life.exited is None:
                raise InfrastructureError(f"what watches the link and the cgroup of {node} ended: {why}")
            self._forget(life)
            yield life.exited
            return
        *lines, life.witnessed = (life.witnessed + data).split(b"\n")
        for text in lines:
            line = msgspec.json.decode(text, type=WitnessLine)
            if line.problem:
                raise InfrastructureError(f"{node}: {line.problem}")
            if line.record is not None:
                yield Witnessed(node, line.t, line.record)
            elif line.listens:
                life.listens = True
            elif line.call is not None:
                yield Called(node, line.call)
            elif life.process is None:
                yield from self._begin(life, line.url)

    def _begin(self, life: _Life, url: str) -> Iterator[Happening]:
        """Start the program, now that its link is held."""
        node, output = life.plan.node, os.pipe2(os.O_CLOEXEC)
        try:
            entry = msgspec.json.encode(self._entry(life, url)).decode()
            if len(entry) >= ENTRY_BYTES:
                raise InfrastructureError(
                    f"{node} cannot be started: its command, its variables and the names of all nodes have "
                    f"{len(entry):,} bytes, and the kernel takes {ENTRY_BYTES:,}; put what is long into a file"
                )
            command = [sys.executable, "-m", "edgebed.emulation.enter", entry]
            life.process = subprocess.Popen(  # noqa: S603 # every word is ours
                command, stdin=subprocess.DEVNULL, stdout=output[1], stderr=output[1], start_new_session=True
            )
            life.descriptors = [output[0], os.pidfd_open(life.process.pid)]
        except OSError as error:
            raise InfrastructureError(f"{node} cannot be started: {error}") from error
        finally:
            os.close(output[1])
        os.set_blocking(output[0], False)
        self.pids[node] = life.process.pid
        self._hear(output[0], lambda: self._hear_output(life))
        self._hear(life.descriptors[1], lambda: self._hear_end(life))
        yield NodeStarted(node)

    def _entry(self, life: _Life, url: str) -> Entry:
        plan, scratch = life.plan, self.folder / "scratch" / life.plan.node
        scratch.mkdir(parents=True, exist_ok=True)
        os.utime(scratch)
        life.begun_ns = scratch.stat().st_ctime_ns
        own = {name: value for name, value in os.environ.items() if not name.startswith("EDGEBED_")}
        argv, variables = told.command(
            plan,
            self.members,
            seed=self.plan.seed,
            incarnation=self.incarnations[plan.node],
            interface=INTERFACE,
            url=url,
            scratch=SCRATCH,
        )
        return Entry(
            node=plan.node,
            namespace=self.namespaces.homes[plan.node].namespace,
            cgroups=self.entered[plan.node],
            hosts=told.hosts(self.members),
            files=self.files,
            scratch=str(scratch),
            argv=argv,
            environment=own | variables,
        )

    def _hear_output(self, life: _Life, reads: int = 1) -> Iterator[Happening]:
        """Read what a program has said, and what it had started."""
        output = life.descriptors[0]
        for _ in range(reads):
            try:
                data = os.read(output, READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                self._unhear(output)
                return
            yield Said(life.plan.node, data)

    def _hear_end(self, life: _Life) -> Iterator[Happening]:
        """Kill what a program that has ended had started, and have its witness look a last time."""
        assert life.process is not None
        assert life.witness.stdin is not None
        node, code = life.plan.node, life.process.poll()
        if code is None:  # it was another's with this number that had ended
            return
        self._unhear(life.descriptors[1])
        del self.pids[node]
        left = self._signal_all(node, signal.SIGKILL)
        if life.descriptors[0] in self.sources:
            yield from self._hear_output(life, LAST_READS)
        life.exited = ProgramExited(
            node=node,
            code=None if code < 0 else code,
            signal=signal_name(-code) if code < 0 else "",
            oom=bool(self.cgroups.account(node).oom_kills),
            left=left,
        )
        life.witness.stdin.close()

    def _forget(self, life: _Life) -> None:
        for descriptor in life.descriptors:
            self._unhear(descriptor)
            os.close(descriptor)
        assert life.witness.stdout is not None
        life.witness.stdout.close()
        del self.lives[life.plan.node]

    def shows_ready(self, node: str, ready: Ready) -> bool:
        """Whether a program's node has the port open, or the file, that shows that it is ready."""
        pid = self.pids.get(node)
        if pid is None:
            return False
        life = self.lives[node]
        found = life.listens
        if ready.file is not None and not found:
            inside = (f"/proc/{pid}/root", f"/proc/{pid}/cwd", str(self.folder / "scratch" / node))
            folders = inside[:1] if ready.file.startswith("/") else inside[1:]
            with suppress(OSError):  # it is ending
                files = [Path(folder, ready.file.lstrip("/")) for folder in folders]
                found = any(file.stat().st_ctime_ns >= life.begun_ns for file in files if file.exists())
        return found

    def _place(self, node: str) -> Place:
        network, keeper = self.namespaces.homes[node].namespace, self.namespaces.process.pid
        return super()._place(node)._replace(network=network, keeper=keeper)

    # --- what is done to it -------------------------------------------------------------------------------------

    def inject(self, number: int, injection: Injection) -> None:
        """Have an action but `launch` done to a node; `Injected(number)` is among the events. Never blocks."""
        node, traits = self.plans[injection.node], ACTIONS[injection.action]
        if injection.change and (problem := self.mechanisms.why_not(node, injection.change)):
            self.tell(Injected(number, problem))
        elif traits.by == "link":
            self.changes[number] = injection
            self.namespaces.inject(number, injection)
        elif traits.by == "cap":
            self.tell(Injected(number, self._cap(injection)))
        elif traits.signal is None:
            self.tell(Injected(number, f"{injection.action} is nothing that can be done to a program"))
        elif node.node not in self.pids:
            self.tell(Injected(number, no_op=ENDED))
        else:
            self._signal_all(node.node, traits.signal)
            self.tell(Injected(number))

    def _cap(self, injection: Injection) -> str:
        """Change a node's cap of CPU; return why not, empty if it is done."""
        planned = self.plans[injection.node].cpus
        try:
            self.cgroups.cap_cpus(injection.node, planned if injection.cpus is None else injection.cpus)
        except InfrastructureError as error:
            return str(error)
        self._is_done(injection)
        return ""

    def end(self, node: str) -> None:
        """Ask a program, and what it has started, to end."""
        self._signal_all(node, signal.SIGTERM)

    def _is_done(self, injection: Injection) -> None:
        """Have the witness of each node concerned know what was done to link or cap; without one the next is told."""
        for node in filter(None, (injection.node, injection.peer)):
            if node in self.lives:
                self._order(self.lives[node], HelperChange(injection, 0))
            else:
                self.before[node].append(injection)

    def _signal_all(self, node: str, number: signal.Signals) -> int:
        """Send a signal to all processes of a node, until there is none that has not had it; return how many had it."""
        sent: set[int] = set()
        while fresh := self._processes(node) - sent:
            for pid in fresh:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            sent |= fresh
        return len(sent)

    def _processes(self, node: str) -> set[int]:
        folder = cpu_folder(self.cgroups.folders(node))
        assert folder is not None
        own = {self.pids[node]} if node in self.pids else set()
        return own.union(processes(folder))

    # --- what is heard ------------------------------------------------------------------------------------------

    def poll_events(self) -> Iterator[Happening]:
        """What has happened since the last call; called when `fileno` is readable."""
        readable = self.readable()
        while self.injected:
            yield self.injected.popleft()
        if self.namespaces.fileno() in readable:
            for answer in self.namespaces.answers():
                assert answer.done is not None
                if not answer.problem:
                    self._is_done(self.changes[answer.done])
                del self.changes[answer.done]
                yield Injected(answer.done, answer.problem)
        for descriptor in readable:
            if heard := self.sources.get(descriptor):
                yield from heard()

    def began(self, monotonic_s: float) -> None:
        """Note that the trial began: links change with time from here on."""
        super().began(monotonic_s)
        self.began_s = monotonic_s
        for life in self.lives.values():
            self._order(life, Began(monotonic_s))

    def open_barrier(self, node: str, barrier: str) -> None:
        """Let a program go on that waits at a barrier."""
        if node in self.lives:
            self._order(self.lives[node], Opens(barrier))

    def _order(self, life: _Life, order: Began | HelperChange | Opens) -> None:
        """Tell a witness something; one that is ending need not know."""
        assert life.witness.stdin is not None
        with suppress(OSError, ValueError):
            life.witness.stdin.write(msgspec.json.encode(order) + b"\n")

    def _hear(self, descriptor: int, heard: Heard) -> None:
        self.sources[descriptor] = heard
        self.poll.register(descriptor, select.EPOLLIN)

    def _unhear(self, descriptor: int) -> None:
        if self.sources.pop(descriptor, None):
            self.poll.unregister(descriptor)

    def _log_of_witness(self, node: str) -> Path:
        return self.log_folder / f"{node}.witness.log"

    def _kill_all(self) -> None:
        """Kill all programs and witnesses, and wait for them; and what has left its cgroup, but not its network."""
        for life in [*self.lives.values()]:
            self._signal_all(life.plan.node, signal.SIGKILL)
            for process in (life.process, life.witness):
                if process:
                    process.kill()
                    process.wait(END_S)
            assert life.witness.stdin is not None
            life.witness.stdin.close()
            self._forget(life)
        with suppress(OSError):  # they are gone
            own = {Path(home.namespace).stat().st_ino for home in self.namespaces.homes.values()}
            for pid, network in networks_of_all().items():
                if network in own and pid != self.namespaces.process.pid:
                    os.kill(pid, signal.SIGKILL)
        for folder in (*(self.folder / "scratch").glob("*"), self.folder / "scratch"):
            with suppress(OSError):  # there is something in it, which is kept, or there is none
                folder.rmdir()
