r"""The shell of the controller of programs: hosts its heart in real time, and reads what programs say.

    launcher --started, ended, done--> heart --> launcher, journal
        \----output--> NODE.log, measures --> journal; ready, or the line that ends the trial --> heart
         \---a witness's records--> journal, and a look from outside

It alone writes the journal. Launchers differ: processes of this machine, or containers.
"""

import select
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import msgspec

from edgebed.core import records
from edgebed.core.last_words import addition, last_of
from edgebed.core.patience import threads_a_core
from edgebed.core.plan import ProgramsPlan
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.program import ProgramPlan, Ready
from edgebed.emulation.orders import Call
from edgebed.emulation.outside.lookout import Outside
from edgebed.emulation.outside.looks import Sight
from edgebed.journal.journal import JournalWriter
from edgebed.roles.control.controller import Phase
from edgebed.roles.control.members import State
from edgebed.roles.events import (
    ApplyInjection,
    CommandResult,
    Effect,
    EndNode,
    EndProgram,
    Event,
    Injected,
    Interrupted,
    Journal,
    LineSeen,
    NodeStarted,
    ProgramExited,
    ReadySeen,
    Wake,
    Woken,
)  # fmt: skip
from edgebed.roles.programs.controller import ProgramController
from edgebed.runtimes.live.control import Control
from edgebed.runtimes.live.timers import Timers
from edgebed.runtimes.programs.barriers import Barriers
from edgebed.runtimes.programs.happenings import Called, Happening, Said, Witnessed
from edgebed.runtimes.programs.output import KEPT_BYTES, Line, OutputLog, OutputReader
from edgebed.runtimes.trial_shell import Probe, TrialShell
from edgebed.runtimes.watch import SHOW_S, StatusFeed

LOOK_S = 0.1
"""Time from one look whether a program is ready to the next."""
AGAIN_S = 0.02
"""Time until a launch is tried again whose node's last program has left processes."""
TAIL_BYTES = 4096
READY, ENDS = "ready", "ends"
"""Lines of output that are waited for."""


class ProgramLauncher(Protocol):
    """What a runtime must be able to do with programs."""

    notes: tuple[str, ...]

    def fileno(self) -> int:
        """A file descriptor that is readable when `poll_events` has events."""
        ...

    def launch(self, node: str) -> bool:
        """Start a node's program once its link is held. Never blocks: False means try again later."""
        ...

    def inject(self, number: int, injection: Injection) -> None:
        """Have an action but `launch` done to a node; `Injected(number)` is among the happenings. Never blocks."""
        ...

    def end(self, node: str) -> None:
        """Ask a program to end, in its own way. Never blocks."""
        ...

    def shows_ready(self, node: str, ready: Ready) -> bool:
        """Whether the port is open, or the file there, that shows that a program is ready."""
        ...

    def open_barrier(self, node: str, barrier: str) -> None:
        """Let a program go on that waits at a barrier. Never blocks."""
        ...

    def poll_events(self) -> Iterator[Happening]:
        """What has happened since the last call; called when `fileno` is readable."""
        ...

    def probe(self) -> Probe:
        """Begin to look how busy the hosts are; the trial begins. Never blocks."""
        ...

    def sight(self) -> Sight | None:
        """Where nodes can be seen from outside, for one thread; None: nowhere. Never blocks."""
        ...

    def began(self, monotonic_s: float) -> None:
        """Note when the trial began, on the controller's monotonic clock."""
        ...

    def close(self) -> None:
        """Stop everything that still runs."""
        ...


class _NodeOutput:
    """The output of one node, in all lives of its program."""

    def __init__(self, node: ProgramPlan, plan: ProgramsPlan, path: Path, kept_bytes: int) -> None:
        of_node, ends = ("", node.node, node.device_class), plan.program.ends
        self.measures = {each.name: each.pattern for each in plan.program.measures_of(node) if not each.metric}
        self.awaited = {READY: node.ready.log} if node.ready.log is not None else {}
        if ends.kind == "log" and ends.of in of_node:
            self.awaited[ENDS] = ends.log
        self.log = OutputLog(path, kept_bytes)
        self.dropped = self.unusable = 0
        self.unread: dict[str, str] = {}
        """Why measures were not found on the program's page."""
        self.begin()

    def begin(self) -> None:
        """Begin with the output of a new life."""
        self.reader = OutputReader(self.measures, self.awaited, time.monotonic)
        self.tail = b""
        self.started_s = time.monotonic()

    def take(self, data: bytes) -> list[Line]:
        """Keep what was said, and return the lines in which something was found."""
        self.log.write(data)
        self.tail = (self.tail + data)[-TAIL_BYTES:]
        return self.reader.read(data)

    def end(self) -> list[Line]:
        """End with a life's output."""
        found = self.reader.close()
        self.dropped += self.reader.dropped
        self.unusable += self.reader.unusable
        return found

    def last_line(self) -> str:
        """The life's last line, as an addition to how it ended."""
        return addition(last_of(self.tail.decode(errors="replace")))

    def close(self) -> records.Output:
        """Complete the log; say how much of the output is in it."""
        self.log.close()
        return records.Output(
            bytes=self.log.bytes,
            left_out_bytes=self.log.left_out_bytes,
            dropped=self.dropped,
            unusable=self.unusable,
            unread=self.unread,
        )


class ProgramShell(TrialShell):
    """Hosts the heart for one trial; `run` returns when the trial is over and every program is gone."""

    def __init__(
        self,
        heart: ProgramController,
        launcher: ProgramLauncher,
        journal: JournalWriter,
        watch: StatusFeed,
        control: Control | None,
        log_folder: Path,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        """`kept_bytes`: of the beginning of each node's output, and as many of the end."""
        self.heart: ProgramController = heart
        self.launcher: ProgramLauncher = launcher
        self.journal, self.watch, self.control = journal, watch, control
        self.epoch_ns = time.monotonic_ns()
        self.timers: Timers[Event] = Timers()
        self.to_launch: deque[tuple[str, int]] = deque()
        """Nodes to be launched, each with the number of the effect that asks for it."""
        self.launched: dict[str, int] = {}
        """Nodes whose launch is under way, likewise."""
        self.outputs = {
            node.node: _NodeOutput(node, heart.plan, log_folder / f"{node.node}.log", kept_bytes)
            for node in heart.plan.nodes
        }
        self.barriers = Barriers()
        self.has_begun = self.is_over = False

    def run(self) -> None:
        """Host the heart until the trial is over; leave nothing running, however often the user asks."""
        with self._interruptible():
            try:
                for text in self.launcher.notes:
                    self._journal(records.Note(text=text))
                if sight := self.launcher.sight():
                    self.outside = Outside(sight, list(self.outputs))
                self._carry_out(self.heart.launch(self.now()))
                self._serve()
            finally:
                if self.probe:
                    self.probe.close()
                if self.outside:
                    self.outside.lookout.close()
                self._close_launcher()
                for output in self.outputs.values():
                    output.log.close()
        self.watch.interrupted |= self.interruptions > 0

    def _serve(self) -> None:
        poll = select.poll()
        for source in (self.launcher, self.control):
            if source:
                poll.register(source.fileno(), select.POLLIN)
        next_look_s = next_release_s = 0.0
        while not self.is_over:
            now = self.now()
            self.watch.tick(now)
            if now >= next_release_s:
                self._release()
                next_release_s = now + 1.0
            if now >= next_look_s:
                self._look_whether_ready()
                next_look_s = now + LOOK_S
            self._journal_all(self.outside.take() if self.outside else ())
            self._launch()
            is_coming = State.STARTED in {member.state for member in self.heart.members.values()}
            wait_s = AGAIN_S if self.to_launch else LOOK_S if is_coming else SHOW_S
            due_s = min(now + wait_s, self.timers.next_s)
            poll.poll(max(0, int((due_s - now) * 1000) + 1))
            self._turn()

    def _turn(self) -> None:
        """Handle what has happened, what is due, and what the user asks for."""
        for happening in self.launcher.poll_events():
            self._happened(happening)
        for ordered in self.control.orders() if self.control else ():
            self._handle(ordered)
        for due in self.timers.due(self.now):
            is_joining = isinstance(due, Woken) and due.token == "join"
            self._handle(msgspec.structs.replace(due, load=threads_a_core()) if is_joining else due)
        if self.interruptions and not self.watch.interrupted:
            self.watch.interrupted = True
            self._handle(Interrupted())
        if self.interruptions > 1:
            self.interruptions = 1  # asked twice: whoever is still there is killed
            self._handle(Woken("grace"))

    def _launch(self) -> None:
        for _ in range(len(self.to_launch)):
            node, number = self.to_launch.popleft()
            if self.launcher.launch(node):
                self.launched[node] = number
            else:
                self.to_launch.append((node, number))

    def _happened(self, event: Happening) -> None:
        if isinstance(event, Said):
            self._found(event.node, self.outputs[event.node].take(event.data))
            return
        if isinstance(event, Witnessed):
            self._witnessed(event)
            return
        if isinstance(event, Called):
            self._called(event.node, event.call)
            return
        if isinstance(event, ProgramExited):
            self.barriers.left(event.node)
            output = self.outputs[event.node]
            self._found(event.node, output.end())
            event = msgspec.structs.replace(event, said=output.last_line())
        elif isinstance(event, NodeStarted):
            self.outputs[event.node].begin()
        self._handle(event)
        if isinstance(event, NodeStarted) and event.node in self.launched:
            self._handle(Injected(self.launched.pop(event.node)))

    def _called(self, node: str, call: Call) -> None:
        """Take in what a program has told at its address or on its page, or let those go on that have waited for it."""
        if not call.barrier:
            output = self.outputs[node]
            unread = output.unread | call.unread
            output.unread = {name: why for name, why in unread.items() if name not in call.measured}
            self._found(node, output.reader.told(call.measured))
            return
        for each in self.barriers.came(node, call.barrier, call.nodes):
            self.launcher.open_barrier(each, call.barrier)

    def _found(self, node: str, lines: list[Line]) -> None:
        """Journal what a program has measured; tell the heart what it waits for."""
        for line in lines:
            if line.measured:
                self._journal(records.Measured(measured=line.measured), node)
            if READY in line.seen:
                self._handle(ReadySeen(node))
            if ENDS in line.seen or (line.measured and self.heart.awaits_measures):
                self._handle(LineSeen(node, line.measured, is_end=ENDS in line.seen))

    def _witnessed(self, event: Witnessed) -> None:
        t = event.monotonic_s - self.epoch_ns * 1e-9
        self._write(t, event.node, event.record)
        if self.outside and self.has_begun:
            incarnation = self.heart.members[event.node].incarnation
            self.outside.told(event.node, incarnation, self.epoch_ns * 1e-9, [(t, event.record)])

    def _look_whether_ready(self) -> None:
        for node in self.heart.plan.nodes:
            if self.heart.members[node.node].state is not State.STARTED:
                continue
            after_s, started_s = node.ready.after_s, self.outputs[node.node].started_s
            is_late = after_s is not None and time.monotonic() >= started_s + after_s
            if is_late or self.launcher.shows_ready(node.node, node.ready):
                self._handle(ReadySeen(node.node))

    def _handle(self, event: Event) -> None:
        effects = self.heart.handle(event, self.now())
        if self.heart.is_ending:
            self._end_probe()  # its last look comes into the journal before the trial's end
            if self.outside:
                self.outside.ended(time.monotonic())
        self._carry_out(effects)
        if self.heart.phase is Phase.RUNNING and not self.has_begun:
            self.has_begun = True
            self._note_begin(self.heart.began_s)

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Journal):
                self._note(effect.record)
                self._journal(effect.record)
            elif isinstance(effect, ApplyInjection) and effect.injection.action == "launch":
                self.to_launch.append((effect.injection.node, effect.number))
            elif isinstance(effect, ApplyInjection):
                self.launcher.inject(effect.number, effect.injection)
            elif isinstance(effect, EndProgram):
                self.launcher.end(effect.node)
            elif isinstance(effect, Wake):
                self.timers.add(effect.at_s, Woken(effect.token))
            elif isinstance(effect, CommandResult) and self.control:
                self.control.answer(effect)
            elif isinstance(effect, EndNode):
                self.is_over = True

    def _release(self) -> None:
        """Journal what has been gathered; at the end also how much there is of outputs."""
        super()._release()
        if self.heart.phase is Phase.OVER:
            for node, output in self.outputs.items():
                self._journal(output.close(), node)
