"""A node that cannot tell of itself, since it is a program of the user's, has a witness beside it, which does.

    python -m edgebed.emulation.witness REQUEST

    it says    {"url": ..., "clock": ...}      the kernel holds the link as asked: the program may begin
               {"t": ..., "record": {...}}     `Link`, `Usage`, `Connections` or `Bypass`, from looks a second apart
               {"call": ...}                   what the program says to its address (address.py), or its page (page.py)
               {"asked": ..., "theirs": ...}   what its clock showed when that was asked, in nanoseconds
               {"listens": true}               somebody listens on the port that shows that the program is ready
               {"problem": ...}                why it ends
    it hears   {"began": ...}, {"change": {...}, "number": ...}     as those do who hold links (orders.py)
               {"opens": ...}                  a barrier that the program waits at opens
               {"pid": ...}                    which process the program is, where its cgroup is another each time
               {"ask": ...}                    what does its clock show?
               {"ended": true}                 the program has ended

Lines are JSON; times are those of this machine's monotonic clock. It sits in the node's network namespace, so what it
counts there is the program's, and stays outside its cgroup, which it reads; of a thread's waiting for a core it misses
what came after its last look, and of a cgroup that goes with the program as well. When the program has ended, or its
standard input closes, it looks once more, tells all, and ends; it is killed when the thread that started it ends. For
each incarnation there is another.
"""

import math
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from edgebed.core.errors import EdgebedError, InfrastructureError
from edgebed.core.linux import die_with_parent, monotonic_clock
from edgebed.core.planned.fault import Injection
from edgebed.core.planned.link import LinkPlan
from edgebed.core.planned.program import OutputMeasure, Page
from edgebed.core.recorded.measured import LOOK_S, Bypass, Connections, Link, Usage
from edgebed.emulation.conditions import EffectiveLink
from edgebed.emulation.namespaces import Home, inside
from edgebed.emulation.netlink import BadAnswerError, LinkReader
from edgebed.emulation.orders import Call, HelperCommand, Lines, Watched
from edgebed.emulation.outside.looks import cpu_folder
from edgebed.emulation.readback import FIRST_HELD_S, ChangedLink, Delay, LinkMeter
from edgebed.emulation.resources import ROOT, CgroupUsage, cgroup_folders, processes
from edgebed.emulation.witness.connections import ConnectionMeter
from edgebed.emulation.witness.usage import LinkUsage, Reading, UsageCount, Waiting

if TYPE_CHECKING:
    from edgebed.emulation.witness.address import Address
SAYING = threading.Lock()
"""Held by the thread that writes lines."""
PORT_S = 0.1
"""Seconds from one look at the port to the next."""
ENDED = msgspec.json.encode(Watched(ended=True))


class WitnessRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which node is to be watched, and what was asked of it."""

    node: str
    home: Home
    cgroup: dict[str, str] = {}
    """Folders of its cgroup, as `Cgroups.folders` has them; none: those that the program's process turns out to be
    in."""
    port: int | None = None
    """The port that shows that the program is ready; None: none does."""
    names: dict[str, str]
    """Nodes by their addresses."""
    measures: tuple[OutputMeasure, ...] = ()
    """What the program may tell at its address, and what is looked for on its page."""
    page: Page | None = None
    """The program's page for Prometheus; None: none is known."""
    link: LinkPlan = LinkPlan()
    changeable: bool = False
    """Whether faults will change the link."""
    delay: Delay = ""
    """What makes latency and jitter."""
    cpus: float | None = None
    """Cap of CPU in cores; None: none."""
    injected: tuple[Injection, ...] = ()
    """What was done to its link and cap before, and holds from the beginning."""


class WitnessLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a witness says; a line with a `url` says that the link is held."""

    t: float = 0.0
    """Time of the record, in seconds of the monotonic clock."""
    clock: str = ""
    """The name of that clock (core/linux.py)."""
    record: Link | Usage | Connections | Bypass | None = None
    listens: bool = False
    call: Call | None = None
    asked: int = 0
    """The question for its clock, as it came."""
    theirs: int = 0
    """What it showed then, in nanoseconds."""
    url: str = ""
    """Where the program's address is."""
    problem: str = ""


class ProgramUsage(UsageCount):
    """Counts the `Usage` of the program in a cgroup. InfrastructureError where the kernel counts no CPU time of it."""

    def __init__(self, request: WitnessRequest, effective: EffectiveLink, reader: LinkReader) -> None:
        folders = {name: Path(folder) for name, folder in request.cgroup.items()}
        super().__init__(
            request.node,
            effective,
            folders,
            Waiting(self._threads),
            LinkUsage(reader, effective, time.monotonic),
            float(len(os.sched_getaffinity(0))),
        )
        self._planned = self._cpus = request.cpus
        self._is_last = False
        self._counted: CgroupUsage | None = None
        """What the cgroup counted at the last look."""
        self._is_gone = False

    @property
    def cpus(self) -> float | None:
        """The cap that is asked for now, in cores."""
        return self._cpus

    @property
    def is_last(self) -> bool:
        """Whether the program has ended."""
        return self._is_last

    def end(self) -> None:
        """Note that the next look is the last."""
        self._is_last = True

    def inject(self, time_s: float, injection: Injection) -> None:
        """Note what was done to the node's cap; what is done to its link, its meter notes."""
        if injection.node == self.name and injection.action == "cpus":
            self._cpus = self._planned if injection.cpus is None else injection.cpus

    def read(self, now: float, began_s: float | None) -> Iterator[Usage]:
        """As its base, once there is a cgroup."""
        folder = cpu_folder(self.folders)
        self._is_gone = folder is not None and not folder.is_dir()
        return super().read(now, began_s) if folder and (self._counted or not self._is_gone) else iter(())

    def account(self, *, but: str | None = None) -> CgroupUsage:
        """What the cgroup counts, or counted at the last look before it was gone."""
        if self._counted is None or not self._is_gone:
            found, folder = super().account(), cpu_folder(self.folders)
            self._is_gone = found.cpu_s is None and folder is not None and not folder.is_dir()
            if self._is_gone:  # while it was read
                return self._counted or found
            self._counted = found
        return self._counted

    def look(self, now: float, cgroup: CgroupUsage) -> Reading:
        """What all processes of the cgroup have used."""
        if self._is_gone:  # what passed the link is told all the same, of a life without another look
            before = self.before or Reading(now, 0.0, None, 0.0, None, 0)
            return before if self.usage.time_s else before._replace(t=now)
        if cgroup.cpu_s is None:
            raise InfrastructureError(f"the kernel does not count the CPU time of {cpu_folder(self.folders)}")
        return Reading(now, cgroup.cpu_s, self.waiting.read(), 0.0, cgroup.throttled_s, cgroup.throttled_periods or 0)

    def more(self, now: float) -> dict[str, Any]:
        """There is nothing more that is known of a program."""
        return {}

    def _threads(self) -> Iterator[str]:
        folder = cpu_folder(self.folders)
        for pid in processes(folder) if folder else ():
            with suppress(OSError):  # it has just ended
                yield from (f"/proc/{pid}/task/{thread}" for thread in os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208


class Witness:
    """Watches a node; made in any namespace. Raises InfrastructureError."""

    def __init__(self, request: WitnessRequest) -> None:
        self.request = request
        self.effective = EffectiveLink(request.link)
        with inside(request.home.namespace):
            self.reader = LinkReader(request.home.address)
            self.connections = ConnectionMeter(self.reader, request.names)
            self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.address: Address | None = None
        threading.Thread(target=self._serve, daemon=True).start()
        self.link = LinkMeter(request.node, self.effective, self.reader, request.delay)
        is_asked = request.link.shaped or request.changeable
        self.meter = self.link if is_asked else ChangedLink(request.node, lambda: self.link, FIRST_HELD_S)
        self.usage = ProgramUsage(request, self.effective, self.reader)
        self.began_s: float | None = None
        self.next_s = time.monotonic()
        """When it looks next: at once where it has just heard what it counts from."""
        self.port = request.port
        for injection in request.injected:
            self._inject(injection)

    def hear(self, line: bytes) -> None:
        """Obey an order; an empty one ends it."""
        command = msgspec.json.decode(line or ENDED, type=HelperCommand)
        if command.ask:
            _say([WitnessLine(asked=command.ask, theirs=time.monotonic_ns())])
        if command.ended:
            self.usage.end()
        if command.pid:
            self.usage.folders = cgroup_folders(command.pid, ROOT)
        if command.began is not None:
            self.began_s = command.began
        if command.pid or command.began is not None:
            self.next_s = time.monotonic()
        if command.change is not None:
            self._inject(command.change)
        if command.opens and self.address:
            self.address.open(command.opens)

    def _serve(self) -> None:
        """Serve the program's address once it is called: what serves it takes 6 MB, and most programs do not call."""
        select.select([self.listener], [], [])
        from edgebed.emulation.witness.address import Address

        def called(call: Call) -> None:
            _say([WitnessLine(time.monotonic(), call=call)])

        names = [each.name for each in self.request.measures]
        self.address = Address(self.listener, called, names, len(self.request.names))
        self.address.serve_forever()

    def begin_reading(self) -> None:
        """Read the program's page from now on, once a second, where measures are looked for on it."""
        if self.request.page and any(each.metric for each in self.request.measures):
            with inside(self.request.home.namespace):
                threading.Thread(target=self._read, args=(self.request.page,), daemon=True).start()

    def _read(self, page: Page) -> None:
        from edgebed.emulation.witness.page import PageReader

        reader, before = PageReader(page, self.request.measures), Call()
        while True:
            call = reader.read()
            if call.measured or call.unread != before.unread:
                _say([WitnessLine(time.monotonic(), call=call)])
            before = call
            time.sleep(LOOK_S)

    def shows_ready(self) -> bool:
        """Whether the port is open that shows that the program is ready; it is said once."""
        if self.port is None or not self.connections.listens(self.port):
            return False
        self.port = None
        return True

    def look(self) -> Iterator[WitnessLine]:
        """Yield what there is to journal now."""
        now = time.monotonic()
        self.next_s = now + LOOK_S
        yield from (WitnessLine(now, record=each) for each in self.meter.read(now, self.began_s))
        yield from (WitnessLine(now, record=each) for each in self.usage.read(now, self.began_s))
        with suppress(OSError, BadAnswerError):  # the kernel does not answer; the link's meter says so
            told = self.connections.read(now, is_last=self.usage.is_last)
            yield from (WitnessLine(now, record=each) for each in told)

    def _inject(self, injection: Injection) -> None:
        time_s = 0.0 if self.began_s is None else time.monotonic() - self.began_s
        for meter in (self.meter, self.usage):
            meter.inject(time_s, injection)


def main() -> int:
    """Watch until standard input closes."""
    if not die_with_parent(os.getppid()):
        return 1
    try:
        _watch(Witness(msgspec.json.decode(sys.argv[1], type=WitnessRequest)))
    except EdgebedError as error:
        _say([WitnessLine(problem=str(error))])
        return error.exit_code
    return 0


def _watch(witness: Witness) -> None:
    lines = Lines(0)

    def hear_all() -> None:
        while line := lines.read(-math.inf):
            witness.hear(line)

    witness.link.wait_until_held(hear_all)
    _say([WitnessLine(time.monotonic(), monotonic_clock(), url=witness.url)])
    witness.begin_reading()
    while not witness.usage.is_last:
        next_s = witness.next_s
        line = lines.read(next_s if witness.port is None else min(next_s, time.monotonic() + PORT_S))
        if line is not None:
            witness.hear(line)
        if witness.shows_ready():
            _say([WitnessLine(listens=True)])
        if time.monotonic() >= next_s:
            _say(witness.look())
    _say(witness.look())


def _say(lines: Iterable[WitnessLine]) -> None:
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    with SAYING:
        while text:
            text = text[os.write(1, text) :]
