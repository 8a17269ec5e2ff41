"""What is done to nodes from outside in virtual time: they are launched and killed, faults are injected."""

from collections.abc import Callable

from edgebed.core.actions import ACTIONS
from edgebed.core.last_words import out_of_memory
from edgebed.core.planned.fault import Injection
from edgebed.roles.events import ApplyInjection, Event, Injected, NodeExited
from edgebed.runtimes.simulation.devices import SimulatedDevices
from edgebed.runtimes.simulation.fleet import Fleet
from edgebed.runtimes.simulation.simulated_network import SimulatedNetwork
from edgebed.runtimes.simulation.simulated_node import SimulatedIncarnation, Up


class SimulatedLauncher:
    """Does to nodes what the launchers of live runtimes do; all of it takes no time but a restart."""

    def __init__(
        self,
        fleet: Fleet,
        network: SimulatedNetwork,
        devices: SimulatedDevices,
        tell: Callable[[Event], None],
        end: Callable[[SimulatedIncarnation], None],
    ) -> None:
        """`tell` tells the controller of an event, `end` removes a node."""
        self.fleet = fleet
        self.network = network
        self.devices = devices
        self.tell = tell
        self.end = end

    def launch(self, node: str, after_s: float) -> None:
        """Start a node, which comes up after some seconds."""
        self.fleet[node] = incarnation = SimulatedIncarnation(node, self.devices.plans[node])
        self.fleet.agenda.add(self.fleet.agenda.now + after_s, incarnation, Up())

    def inject(self, asked: ApplyInjection) -> Injected:
        """Do an action to a node; return what came of it."""
        node, injection = asked.injection.node, asked.injection
        match injection.action:
            case "cut":
                self.network.cut(node, injection.peer)
            case "heal":
                self.network.heal(node, injection.peer)
            case "link":
                return Injected(asked.number, self.network.change(injection))
            case "cpus":
                self.devices.cap(node, injection.cpus)
            case "launch" if node in self.fleet:
                return Injected(asked.number, "it is there already")
            case "launch":
                self.launch(node, self.devices.plans[node].restart_s)
            case _ if node not in self.fleet:
                return Injected(asked.number, no_op="it has ended")
            case _:
                self._inject_incarnation(self.fleet[node], injection)
        return Injected(asked.number)

    def _inject_incarnation(self, incarnation: SimulatedIncarnation, injection: Injection) -> None:
        match injection.action:
            case "memory":
                cap = self.devices.plans[incarnation.name].memory_bytes
                self._kill(incarnation, out_of_memory({} if cap is None else {"limit": cap, "peak": cap}))
            case "freeze":
                self.fleet.freeze(incarnation)
            case "thaw":
                self.fleet.thaw(incarnation)
            case _:
                signal = ACTIONS[injection.action].signal
                self._kill(incarnation, f"killed by {signal and signal.name}")

    def _kill(self, incarnation: SimulatedIncarnation, reason: str) -> None:
        self.end(incarnation)
        self.tell(NodeExited(incarnation.name, reason))
