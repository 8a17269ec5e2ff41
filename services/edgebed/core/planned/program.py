"""A program of the user's that runs on each node, as the plan knows it: edgebed gives it conditions, and no method."""

from typing import ClassVar, Literal

import msgspec

from edgebed.core.bounds import Amount, Count, PositiveCount
from edgebed.core.planned.device_core import Core
from edgebed.core.planned.link import LinkPlan
from edgebed.core.planned.node import CommonPlan


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """What shows that a program is ready, the first of these that is met; without any it is once it runs."""

    port: PositiveCount | None = None
    """A TCP port that somebody listens on in the node's network namespace."""
    log: str | None = None
    """An expression that a line of its output matches."""
    file: str | None = None
    """A file in the program's working folder."""
    after_s: Amount | None = None
    """Time since it was started."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page that a program has for Prometheus, on the loopback of its node."""

    port: PositiveCount
    path: str = "/metrics"


class OutputMeasure(msgspec.Struct, frozen=True, kw_only=True):
    """A number that the program's output, or its page, tells again and again."""

    name: str
    pattern: str
    """An expression whose one group is the number; empty: the value of that name in lines that are JSON objects."""
    metric: str = ""
    """A metric of the program's page, with labels if need be, which alone is looked for then; empty: none."""
    of: str = ""
    """The class, or node, whose output it is looked for in; empty: all."""


class Ends(msgspec.Struct, frozen=True, kw_only=True):
    """What the trial ends with."""

    kind: Literal["all", "first", "class", "log"] = "all"
    """All programs have ended; the first has; those of a class have; a line of output was seen."""
    of: str = ""
    """`class`: the class or node; `log`: the class or node whose output it is looked for in; empty: all."""
    log: str = ""
    """`log`: the expression that a line matches."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a program's container may use beside its caps."""

    processes: PositiveCount = 1024
    """Processes and threads at a time."""
    scratch_bytes: PositiveCount = 256 << 20
    """Bytes of its folder for temporary files, which is in memory."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What the programs of all nodes of a trial have in common."""

    files: str = ""
    """Folder of the user's that each node has a copy of, read-only, as its working folder; empty: none."""
    build: str = ""
    """Folder that the image of nodes without one of their own is built from; empty: none is built."""
    ends: Ends = Ends()
    measures: tuple[OutputMeasure, ...] = ()
    """What is measured, the headline first."""
    limits: Limits = Limits()

    def measures_of(self, node: "ProgramPlan") -> tuple[OutputMeasure, ...]:
        """Return what is measured of a node."""
        return tuple(each for each in self.measures if each.of in ("", node.node, node.device_class))


class ProgramPlan(CommonPlan, frozen=True, kw_only=True, tag="program"):
    """The plan of a node that runs a program of the user's."""

    role: ClassVar[Literal["program"]] = "program"
    compute_speed: ClassVar[float] = 1.0
    core: ClassVar[Core | None] = None
    shard: ClassVar[None] = None
    pushes: ClassVar[bool] = False
    counts_messages: ClassVar[bool] = False
    link: LinkPlan = LinkPlan()
    changeable: bool = False
    """Whether a fault cuts or changes the node's link."""
    index: Count
    """Its number in its class, from 0."""
    rank: Count
    """Its number among all nodes, from 0."""
    run: tuple[str, ...]
    """The command, word by word, with placeholders for what is known when the node starts."""
    image: str = ""
    """Image of its container; empty: the one that is built, or else that of edgebed's workers."""
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    """Variables beside those that edgebed sets, with placeholders."""
    ready: Ready = Ready()
    page: Page | None = None
    """Its page for Prometheus; None: none is known."""
    after: tuple[str, ...] = ()
    """Classes whose nodes are to be ready before it is started."""
