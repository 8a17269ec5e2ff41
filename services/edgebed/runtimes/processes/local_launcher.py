"""What launchers on this machine have in common: how they are waited for, and where their nodes are seen."""

import os
import select
from collections import deque
from contextlib import ExitStack

from edgebed.core.plan import Plan
from edgebed.core.records import Clock
from edgebed.emulation.cgroups import Cgroups
from edgebed.emulation.host_load import HostProbe
from edgebed.emulation.namespaces import Namespaces
from edgebed.emulation.outside.kernel_sight import FAR_END, KernelSight, Place
from edgebed.roles.events import Injected


class LocalLauncher:
    """The base of such a launcher."""

    def __init__(self, plan: Plan) -> None:
        """Nothing is made yet."""
        self.plan = plan
        self.pids: dict[str, int] = {}
        """The process of each node that has one."""
        self.injected: deque[Injected] = deque()
        """Finished actions that are not reported yet."""
        self.cgroups: Cgroups | None = None
        self.namespaces: Namespaces | None = None
        self.stack = ExitStack()

    def listen(self) -> None:
        """Make what is waited on, once namespaces are there, if they are to be."""
        self.poll = select.epoll()
        self.stack.callback(self.poll.close)
        self.bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.stack.callback(os.close, self.bell)
        self.poll.register(self.bell, select.EPOLLIN)
        if self.namespaces:
            self.poll.register(self.namespaces, select.EPOLLIN)

    def fileno(self) -> int:
        """A file descriptor that is readable when `poll_events` has events."""
        return self.poll.fileno()

    def readable(self) -> list[int]:
        """The file descriptors that have something now; the bell has been heard."""
        readable = [descriptor for descriptor, _ in self.poll.poll(0)]
        if self.bell in readable:
            os.eventfd_read(self.bell)
        return readable

    def tell(self, injected: Injected) -> None:
        """Report what came of an action with the next events."""
        self.injected.append(injected)
        os.eventfd_write(self.bell, 1)

    def sight(self) -> KernelSight:
        """Where the nodes can be seen from outside: their processes, and what the kernel holds of caps and links."""
        return KernelSight(self._place, lambda: self.namespaces.made.bridge if self.namespaces else None)

    def _place(self, node: str) -> Place:
        """Where a node is to be seen."""
        made = self.namespaces.made if self.namespaces else None
        why = {"cgroup": not self.cgroups, FAR_END: made is None or node not in made.ports}
        return Place(
            life=made.bridge if made else "",
            folders=self.cgroups.folders(node) if self.cgroups else {},
            cpus=self.cgroups.capped.get(node) if self.cgroups else None,
            memory_bytes=self.plan.node(node).memory_bytes,
            pid=self.pids.get(node, 0),
            port=made.ports.get(node, 0) if made else 0,
            unread=tuple(f"{what}: the kernel holds none of its own" for what, is_absent in why.items() if is_absent),
        )

    def probe(self) -> HostProbe:
        """Begin to look how busy this machine is: all nodes are on it."""
        return HostProbe()

    def began(self, monotonic_s: float) -> None:
        """Note that training began: links change with time from here on."""
        if self.namespaces:
            self.namespaces.began(monotonic_s)

    def clock_told(self, node: str, clock: Clock) -> None:
        """Take no notice: whatever holds a node's link here reads this process's clock."""

    def close(self) -> None:
        """Kill what is left, wait for it, and leave no namespace and no cgroup."""
        self.stack.close()
