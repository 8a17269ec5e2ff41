"""A node's course: say hello, receive a plan, build the node, host it, say goodbye.

    node                      controller
      | --- hello ------------->  |
      | <-- configure ----------  |   the node's plan; its data part, or the initial model
      | <-- time? ------------->  |   where the controller is on another host
      | --- built ------------->  |   with a cgroup of its own: its CPU cap is set now
      | --- ready ------------->  |   where it can be reached
      | <-- start --------------  |   where the server is
      | --- report, report, … ->  |
      | <-- stop ---------------  |
      | --- bye --------------->  |

The data socket is opened only after `configure`.
"""

import gc
import math
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import msgspec
import zmq

from edgebed.core.errors import DamagedFileError, EdgebedError, OwnCodeError
from edgebed.core.framing import MTU
from edgebed.core.linux import allow_open_files, monotonic_clock
from edgebed.core.package import fingerprint
from edgebed.core.plan import Security, Task
from edgebed.emulation.cgroups import wait_until_capped
from edgebed.emulation.conditions import EffectiveLink
from edgebed.emulation.model.link_model import link_model_of
from edgebed.emulation.namespaces import inside
from edgebed.emulation.netlink import LinkReader
from edgebed.emulation.readback import FIRST_HELD_S, ChangedLink, Delay, LinkMeter, Mechanism, StatedLink
from edgebed.emulation.resources import ROOT, InterfaceBytes, cgroup_folders, throttled_s
from edgebed.emulation.tcp import IncomingCount
from edgebed.metrics.discovery import Visits, serve_metrics
from edgebed.metrics.exporter import NodeMetrics
from edgebed.metrics.table import EVALUATOR
from edgebed.roles.events import Heart
from edgebed.roles.server.parameter_server import ParameterServer
from edgebed.runtimes.live.authentication import Credentials, new_identity
from edgebed.runtimes.live.clocks.following import FollowedClock, SameClock
from edgebed.runtimes.live.data_endpoints import DataDealer, DataRouter, patience_s
from edgebed.runtimes.live.data_ends import DataEnds
from edgebed.runtimes.live.endpoint import DealerEndpoint, RouterEndpoint
from edgebed.runtimes.live.group_commit import GroupCommit
from edgebed.runtimes.live.heartbeat import heartbeats
from edgebed.runtimes.live.live_node import LiveNode
from edgebed.runtimes.live.message_limits import ConnectionLimiter, SocketLimits
from edgebed.runtimes.live.meters import RefusalMeter, TransfersMeter, UsageMeter
from edgebed.runtimes.live.paced_link import PacedLink
from edgebed.runtimes.live.shell.connection_counts import ConnectionCounts
from edgebed.runtimes.live.shell.connections import Connections
from edgebed.runtimes.live.shell.device import NO_CAP, NodeDevice, fill_memory
from edgebed.runtimes.live.shell.gaps import GapDetector
from edgebed.runtimes.live.shell.held_back import HeldBack
from edgebed.runtimes.live.shell.lifetime import Lifetime
from edgebed.runtimes.live.shell.lingering import linger
from edgebed.runtimes.live.shell.log_meter import LogMeter
from edgebed.runtimes.live.shell.metering import Metering
from edgebed.runtimes.live.shell.reporter import Reporter
from edgebed.runtimes.live.sockets import (
    FILES_BESIDE,
    HIGH_WATER_MARK,
    SHARDS_ROOM,
    bind,
    data_socket,
    management_socket,
)
from edgebed.runtimes.log_file import FolderOnDisk
from edgebed.runtimes.node_building import live_node
from edgebed.runtimes.server_log import ServerLog
from edgebed.wire import messages
from edgebed.wire.compressed import largest_bytes
from edgebed.wire.shared_links import links_of
from edgebed.wire.tensors import Buffer, decode_dense, split_frames

HELLO_TIMEOUT_S = 60.0
WATCHERS = 4
"""Connections to a server that are nobody's, or of a node that has come back."""

Context = zmq.Context[zmq.Socket[bytes]]


@dataclass(frozen=True, kw_only=True)
class NodeEnvironment:
    """What the runtime tells a node before it says hello."""

    node: str
    controller_address: str
    secret: str = field(repr=False)
    """The secret of the run, in hexadecimal digits."""
    security: Security = "plain"
    """How the sockets of the data network authenticate each other."""
    data_host: str = "127.0.0.1"
    management_host: str = "127.0.0.1"
    pace_cpus: bool = False
    """Whether the node holds itself back, as no cgroup holds its CPU cap here."""
    mechanism: Mechanism = "none"
    """The mechanism that limits the rates of the node's link: nothing, the kernel's queues, or the transport's own
    model."""
    delay: Delay = ""
    """The mechanism that makes the link's latency and jitter: nothing, the kernel, or the transport's own delay line.
    """
    namespace: str = ""
    """Path of the network namespace that the data sockets belong in; empty: the process's own."""
    cgroups: tuple[str, ...] = ()
    """Folders of the cgroups that the process moves into before anything else."""
    log_folder: str = ""
    """Server: folder of its log, which outlasts the node; empty: there is none."""
    contained: bool = False
    """Whether the node is alone in a container: the cgroup that it finds itself in is its own."""

    @cached_property
    def credentials(self) -> Credentials:
        """What the node's sockets show, and ask for."""
        return Credentials.of(self.secret, self.security)

    @property
    def own_cgroup(self) -> bool:
        """Whether the node's cgroup is its own."""
        return self.contained or bool(self.cgroups)

    @property
    def links_by_kernel(self) -> bool:
        """Whether the kernel does what faults do to the node's link."""
        return self.contained or bool(self.namespace) or self.mechanism == "tc"


def run_node(here: NodeEnvironment) -> int:
    """Run the node; return the process's exit code."""
    context: Context = zmq.Context()
    data_context: Context = zmq.Context() if here.namespace else context
    try:
        return _run(here, context, data_context)
    except OwnCodeError as error:
        print(error.on(here.node), file=sys.stderr)
        return error.exit_code
    except EdgebedError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    finally:
        data_context.destroy()
        context.destroy()  # each socket lingers as its network demands: reports still leave


def _run(here: NodeEnvironment, context: Context, data_context: Context) -> int:
    identity = new_identity(here.node)
    socket = management_socket(context, zmq.DEALER, here.credentials, identity)
    management = DealerEndpoint(socket, "controller", "management", _complain)
    management.lost_for_s(0.0)  # from here on the end of the connection is noticed
    socket.connect(here.controller_address)
    management.send(messages.Hello(sender=here.node, pid=os.getpid(), code=fingerprint()), [])
    configured = _await_configure(management)
    if configured is None:
        return 1
    configure, frames = configured
    alive = messages.Alive(sender=here.node, incarnation=configure.incarnation)
    check_s = configure.plan.check_s
    is_same = configure.clock == monotonic_clock() != ""
    clock = None if is_same else FollowedClock(here.node)
    with heartbeats(context, here.controller_address, here.credentials, identity, alive, check_s, clock=clock):
        if clock and not clock.wait(HELLO_TIMEOUT_S):
            print(f"the controller did not tell the time within {HELLO_TIMEOUT_S:g} s", file=sys.stderr)
            return 1
        life = Lifetime(configure.epoch_ns, clock or SameClock(), dict(configure.errors))
        try:
            node, visits = _build(here, context, data_context, management, configure, frames, life)
        except DamagedFileError as error:
            management.send(messages.Bye(sender=here.node, reason=str(error), recurs=True), [])
            raise
        del configured, configure, frames  # a second copy of the data
        gc.freeze()  # what a node is made of stays
        gc.enable()
        reason = node.run()
        linger(node.life, visits, management)
    print(f"{here.node}: {reason}", file=sys.stderr)
    management.send(messages.Bye(sender=here.node, reason=reason), [])
    return 0


def _await_configure(management: DealerEndpoint) -> tuple[messages.Configure, list[Buffer]] | None:
    deadline_s = time.monotonic() + HELLO_TIMEOUT_S
    while time.monotonic() < deadline_s:
        management.flush()
        management.socket.poll(100 if management.outbox else 1_000)
        for event in management.receive(limit=1):
            if isinstance(event.message, messages.Configure):
                return event.message, list(event.frames)
            if isinstance(event.message, (messages.Refuse, messages.Stop)):
                print(f"refused: {event.message.reason}", file=sys.stderr)
                return None
    print(f"no answer from the controller within {HELLO_TIMEOUT_S:g} s; is a firewall in between?", file=sys.stderr)
    return None


def _with_sources(task: Task, sources: Sequence[tuple[str, str]]) -> Task:
    """The task, with the paths of its own modules as this node finds them."""
    if not sources:
        return task
    folder = Path(tempfile.mkdtemp(prefix="edgebed-"))
    for path, text in sources:
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return msgspec.structs.replace(task, python_path=(str(folder),))


def _complain(reason: str) -> None:
    print(f"dropped a message: {reason}", file=sys.stderr)


def _build(
    here: NodeEnvironment,
    context: Context,
    data_context: Context,
    management: DealerEndpoint,
    configure: messages.Configure,
    frames: list[Buffer],
    life: Lifetime,
) -> tuple[LiveNode, Visits]:
    plan = configure.plan
    arrays = {
        name: decode_dense(tensor, parts) for name, (tensor, parts) in split_frames(configure.tensors, frames).items()
    }
    heart, work = live_node(configure, arrays, _with_sources(plan.task, configure.sources))
    metrics = NodeMetrics(plan.role)
    pages, port = serve_metrics(metrics.registry, here.management_host)
    ready = messages.Ready(sender=plan.node, metrics_address=f"{here.management_host}:{port}")
    reader = None
    if here.namespace or here.mechanism == "tc":
        with inside(here.namespace):
            reader = LinkReader(here.data_host)
    links = links_of(configure.links)
    timelines = {name: EffectiveLink(link) for name, link in (links | {plan.node: plan.link}).items()}
    data, ready = _open(here, data_context, configure, ready, timelines)
    interface = watch = None
    if plan.role == "server":
        watch_socket = data_socket(context, zmq.ROUTER, here.credentials)
        ready = msgspec.structs.replace(ready, management_address=bind(watch_socket, here.management_host))
        watch = RouterEndpoint(watch_socket, "data", _complain)
    if plan.listens:
        interface = InterfaceBytes(reader.interface, reader.bytes) if reader else InterfaceBytes.at(here.data_host)
    fill = fill_memory if here.own_cgroup else lambda: NO_CAP
    device = NodeDevice(plan, work, paces_cpus=here.pace_cpus, fill_memory=fill)
    log, commits = _log(here, heart, life.now())
    reporter = Reporter(plan.node, management, metrics, life, log)
    incoming = IncomingCount(ready.data_address) if ready.data_address else None
    metering = Metering(plan, reporter, life, device.times, interface, incoming)
    metering.tell_clock()
    reporter.report()  # what the controller may not know of log and clock comes before the node is ready
    asking = {"data": data.router, "management": watch}
    metering.meters.append(RefusalMeter({name: end for name, end in asking.items() if end}))
    gaps = GapDetector(partial(throttled_s, cgroup_folders(None, ROOT) if here.own_cgroup else {}))
    gaps.start()
    connections_seen = ConnectionCounts(data.numbers)
    usage = UsageMeter(
        plan, device, life, own_cgroup=here.own_cgroup, link=reader, gaps=gaps,
        connections=connections_seen if reader else None,
    )  # fmt: skip
    metering.meters.append(usage)
    if log:
        metering.meters.append(LogMeter(log, commits, life))
    if any(link.shaped for link in (plan.link, *links.values())):
        metering.transfers = TransfersMeter(
            plan, life, links, delay=here.delay, mtu=_mtu(here, reader),
            held_back=HeldBack(usage.folders, lambda: device.cpus, life.now),
            connections=connections_seen if here.links_by_kernel else None,
        )  # fmt: skip
        metering.meters.append(metering.transfers)
    link = PacedLink(plan, link_model_of(plan, here.mechanism, here.delay), by_kernel=here.links_by_kernel)
    connections = Connections(data, link, metering, timelines=timelines if plan.connects_to else None, watch=watch)
    _guard(configure, heart, data.router, watch, ready)
    node = LiveNode(plan, heart, life, device, management, reporter, metering, connections, log, commits)
    _await_conditions(here, node, reader)
    data.complain_to(reporter.complain)
    if watch:
        watch.complain = lambda reason: reporter.complain(reason, "management")
    management.send(log.tell(ready) if log else ready, [])
    return node, pages.visits


def _mtu(here: NodeEnvironment, reader: LinkReader | None) -> int:
    """The MTU of the node's data network; an Ethernet's where the interface is shared by all on the machine."""
    if reader is None and here.contained:
        reader = LinkReader(here.data_host)
        reader.close()
    return reader.mtu if reader else MTU


def _await_conditions(here: NodeEnvironment, node: LiveNode, reader: LinkReader | None) -> None:
    """Return when the kernel holds the node's link and CPU cap: before that it may not talk. Its link is metered then.

    Raises InfrastructureError where it does not in time.
    """
    plan, meters, link = node.plan, node.metering.meters, EffectiveLink(node.plan.link)
    if reader is not None and here.mechanism == "tc":
        meter = LinkMeter(plan.node, link, reader, here.delay)
        meters.append(meter)
        meter.wait_until_held(node.hear)
    elif plan.link.shaped or plan.changeable:
        meters.append(StatedLink(plan.node, link, here.mechanism, here.delay))
    elif plan.role != "evaluator":
        after_s = FIRST_HELD_S if here.links_by_kernel else 0.0
        meters.append(ChangedLink(plan.node, lambda: _meter_of_changed(here, plan.node, link, reader), after_s))
    if here.own_cgroup:
        node.management.send(messages.Built(sender=plan.node), [])
        wait_until_capped(lambda: node.device.cpus, node.hear)


def _meter_of_changed(
    here: NodeEnvironment, node: str, link: EffectiveLink, reader: LinkReader | None
) -> LinkMeter | StatedLink:
    """The meter of a link of which nothing was asked, once it is changed: what changes it holds it from then on."""
    if here.links_by_kernel:
        return LinkMeter(node, link, reader or LinkReader(here.data_host), "netem")
    return StatedLink(node, link, "model", "line")


def _guard(
    configure: messages.Configure,
    heart: Heart,
    router: DataRouter | None,
    watch: RouterEndpoint | None,
    ready: messages.Ready,
) -> None:
    """Limit the sockets of a server: against too many connections, and against messages without an end.

    What shards send each other nobody bounds, nor what they send their server.
    """
    if watch:
        nodes = frozenset((EVALUATOR,))
        watch.limits = SocketLimits.for_messages(ready.management_address, 0, at_once=WATCHERS, nodes=nodes)
    if router and configure.plan.role == "server":
        largest = largest_bytes(heart.compression) if isinstance(heart, ParameterServer) else math.inf
        at_once, nodes = len(configure.peers) + WATCHERS, frozenset(configure.peers)
        router.limits = SocketLimits.for_messages(ready.data_address, largest, at_once, nodes=nodes)
    all_limits = [end.limits for end in (router, watch) if end and end.limits]
    if all_limits:
        ConnectionLimiter(*all_limits).start()


def _log(here: NodeEnvironment, heart: Heart, now: float) -> tuple[ServerLog | None, GroupCommit | None]:
    """The log of a server that keeps one, from which it has gone on, and what waits for the disk."""
    if not here.log_folder or not isinstance(heart, ParameterServer) or not heart.logs:
        return None, None
    log = ServerLog(heart, FolderOnDisk(Path(here.log_folder)))
    try:
        log.begin(now)
    except DamagedFileError as error:
        raise DamagedFileError(f"{here.log_folder}/{error}") from error
    if heart.plan.durability != "fsync":
        return log, None
    commits = GroupCommit(log)
    commits.start()
    return log, commits


def _open(
    here: NodeEnvironment,
    context: Context,
    configure: messages.Configure,
    ready: messages.Ready,
    timelines: Mapping[str, EffectiveLink],
) -> tuple[DataEnds, messages.Ready]:
    """The node's ends on the data network, and the address at which it is reached."""
    plan = configure.plan
    if plan.listens:
        allow_open_files(FILES_BESIDE + len(configure.peers), plan.node)
    router, dealers = None, {}
    is_of_shards = plan.method.is_layerwise and plan.role != "evaluator"
    room = SHARDS_ROOM if is_of_shards else HIGH_WATER_MARK
    links = {name: timeline.at(0.0) for name, timeline in timelines.items()}
    patience, own = patience_s(*links.values()), links.pop(plan.node)
    slowest = max((patience_s(own, other) for other in links.values()), default=patience)
    with inside(here.namespace):  # where the context's threads stay, which make its connections
        if plan.listens:
            socket = data_socket(context, zmq.ROUTER, here.credentials, patience_s=slowest, room=room)
            ready = msgspec.structs.replace(ready, data_address=bind(socket, here.data_host))
            router = DataRouter(socket, _complain)
        for name in plan.connects_to:
            socket = data_socket(context, zmq.DEALER, here.credentials, new_identity(plan.node), patience, room)
            dealers[name] = DataDealer(socket, _complain, name, always_asks=is_of_shards)
    return DataEnds(router, dealers), ready
