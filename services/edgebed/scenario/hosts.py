"""`hosts`: the machines whose engines run the containers, and which node is placed on which.

Nodes that serve the others (server, evaluator, store, modules) go to the first host, and workers to where they leave
most free: the largest first, each to the host that is then the least full of promised cores and memory, if that has the
memory. The same hosts and fleet give the same placement. `classes` of a host go there, or to others that list them, and
nowhere else.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import Field, PlainValidator

from edgebed.core.errors import ScenarioError
from edgebed.core.planned.hosts import ENGINE_PATTERN, FORMS, LOCAL
from edgebed.core.runtimes import TRAITS, Runtime
from edgebed.core.units import format_memory
from edgebed.scenario.links import Rate
from edgebed.scenario.mistakes.problems import Problem, choose, show
from edgebed.scenario.section import Memory, Section, of_pattern

if TYPE_CHECKING:
    from edgebed.scenario.schema import AnyTrial

FILE = "hosts.yaml"
"""File beside a scenario with its hosts."""
SERVING = ("server", "evaluator", "store", "modules")
"""Roles that are placed like classes."""
UNCAPPED_CORES = 1.0
"""Cores that a node without a CPU cap counts for."""


def _read_engine(given: object) -> str:
    if isinstance(given, str) and re.fullmatch(ENGINE_PATTERN, given):
        return given
    raise ValueError(f"not an engine: {show(given)}; {', '.join(FORMS)}")


EngineName = Annotated[
    str, PlainValidator(_read_engine), of_pattern("engine", f"^({ENGINE_PATTERN})$", LOCAL, "ssh://lab@board-7")
]


class HostSection(Section):
    """A machine with a container engine."""

    engine: EngineName = LOCAL
    """How the engine is reached: `local`, as the docker command does here; `context:NAME`, a context of that command;
    `ssh://user@host`; `tcp://host:port`; `unix:///path`. Whoever reaches it is root on that machine."""
    tls: str = ""
    """With `tcp://`: folder with `ca.pem`, `cert.pem` and `key.pem`, relative to the file that says so."""
    classes: list[str] = Field(default=[])
    """Classes of devices, or `server`, `evaluator`, `store` and `modules`, that are placed here, or on other hosts that
    list them, and nowhere else."""
    cores: int | None = Field(default=None, ge=1)
    """Cores for its nodes; asked of the engine if left out."""
    memory: Memory | None = None
    """Memory for its nodes; asked of the engine if left out."""
    rate: Rate | None = None
    """Rate of its network to the other hosts, against which the verdict holds what passed; read from the interface if
    left out."""


class Promise(NamedTuple):
    """What a node may use, by its caps."""

    node: str
    device_class: str
    cores: float
    memory_bytes: int


def place(hosts: Mapping[str, HostSection], promises: Sequence[Promise]) -> dict[str, str]:
    """Return the host of each node by its name; none where there are no hosts. Cores that are unknown count as one."""
    if not hosts:
        return {}
    cores, memory = dict.fromkeys(hosts, 0.0), dict.fromkeys(hosts, 0)
    placed: dict[str, str] = {}

    def fullness(host: str, node: Promise) -> tuple[bool, float]:
        has = hosts[host]
        of_cores = (cores[host] + node.cores) / (has.cores or 1)
        of_memory = (memory[host] + node.memory_bytes) / has.memory if has.memory else 0.0
        return of_memory > 1.0, max(of_cores, of_memory)

    for node in sorted(promises, key=_rank):
        chosen = min(_allowed(hosts, node.device_class), key=lambda host: fullness(host, node))  # the first of equals
        cores[chosen] += node.cores
        memory[chosen] += node.memory_bytes
        placed[node.node] = chosen
    return placed


def overfull(hosts: Mapping[str, HostSection], promises: Sequence[Promise]) -> Iterator[tuple[str, str]]:
    """Yield each host whose nodes are promised more memory than it has, and how much more."""
    placed = place(hosts, promises)
    for name, host in hosts.items():
        memory_bytes = sum(each.memory_bytes for each in promises if placed[each.node] == name)
        if host.memory and memory_bytes > host.memory:
            asked, has = format_memory(memory_bytes), format_memory(host.memory)
            yield (
                name,
                f"the nodes of host {name} are promised {asked} of {has}. Use more hosts, fewer workers or lower caps.",
            )


def require_use(file: str | Path | None, runtime: Runtime, trials: Iterable["AnyTrial"]) -> None:
    """ScenarioError where a file of hosts was named, and the runtime has no use for it: no fault names a host of it.

    What the environment names holds for all runtimes, and may be of use to another.
    """
    if file is None or TRAITS[runtime].has_containers or str(file) == os.environ.get("EDGEBED_HOSTS"):
        return
    if not any(trial.hosts.keys() & _texts([fault.model_dump() for fault in trial.faults]) for trial in trials):
        raise ScenarioError(
            f"--hosts: in the {runtime} runtime all nodes are on this machine, and no fault names a host of {file}; "
            "--runtime docker runs nodes on those hosts"
        )


def _texts(value: Any) -> set[str]:
    """Return all texts in what a file says."""
    if isinstance(value, dict | list | tuple):
        return {text for each in (value.values() if isinstance(value, dict) else value) for text in _texts(each)}
    return {value} if isinstance(value, str) else set()


def host_problems(hosts: Mapping[str, HostSection], classes: Collection[str] | None = None) -> Iterator[Problem]:
    """Yield names that mean something else, classes that there are not (None: unknown), and TLS without TCP."""
    for name, host in hosts.items():
        if classes and name in classes:
            yield Problem((name,), f"'{name}' is a class of the fleet, too; choose another name", at_key=True)
        for k, each in enumerate(host.classes):
            if classes and each not in classes and each not in SERVING:
                known = choose(each, (*classes, *SERVING))
                yield Problem((name, "classes", str(k)), f"no class {show(each)}; {known}", choice=known)
        if host.tls and not host.engine.startswith("tcp://"):
            yield Problem((name, "tls"), f"only with tcp://, not with {host.engine}")


def _rank(node: Promise) -> tuple[bool, float, int]:
    """Return what nodes are placed by: those that serve first, then the largest."""
    return node.device_class not in SERVING, -node.cores, -node.memory_bytes


def _allowed(hosts: Mapping[str, HostSection], device_class: str) -> list[str]:
    """Return the hosts that nodes of this class may be placed on."""
    wanted = [name for name, host in hosts.items() if device_class in host.classes]
    return wanted or (list(hosts)[:1] if device_class in SERVING else list(hosts))
