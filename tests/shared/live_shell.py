"""A live node's shell, composed of its real parts, for tests that host a heart of their own."""

from collections.abc import Mapping

from edgebed.core.plan import TrainingNode
from edgebed.emulation.conditions import EffectiveLink
from edgebed.metrics.exporter import NodeMetrics
from edgebed.roles.events import Heart
from edgebed.roles.work import JobRunner
from edgebed.runtimes.live.data_ends import DataEnds
from edgebed.runtimes.live.endpoint import DealerEndpoint
from edgebed.runtimes.live.live_node import LiveNode
from edgebed.runtimes.live.paced_link import PacedLink
from edgebed.runtimes.live.shell.connections import Connections
from edgebed.runtimes.live.shell.device import NodeDevice
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.runtimes.live.shell.metering import Metering
from edgebed.runtimes.live.shell.reporter import Reporter


def shell_of(
    plan: TrainingNode,
    heart: Heart,
    management: DealerEndpoint,
    data: DataEnds,
    life: Lifetime,
    *,
    runner: JobRunner | None = None,
    link: PacedLink | None = None,
    metrics: NodeMetrics | None = None,
    timelines: Mapping[str, EffectiveLink] | None = None,
) -> LiveNode:
    """The shell as `live/node.py` makes it, without meters; it holds its own CPU cap."""
    device = NodeDevice(plan, runner, paces_cpus=True)
    reporter = Reporter(plan.node, management, metrics or NodeMetrics(plan.role), life)
    metering = Metering(plan, reporter, life, device.times)
    connections = Connections(data, link or PacedLink(plan), metering, timelines=timelines)
    return LiveNode(plan, heart, life, device, management, reporter, metering, connections)
