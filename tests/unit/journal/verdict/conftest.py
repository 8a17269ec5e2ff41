"""Trials as the verdict sees them: a small fleet's plan, and what its nodes said."""

import dataclasses

import msgspec
from node_plans import TASK, plan_of_role

from edgebed.core import records
from edgebed.core.plan import TensorLayout, TrainingPlan
from edgebed.core.planned.link import LinkPlan
from edgebed.journal.series import Series
from edgebed.journal.series_faults import TimedFault
from edgebed.journal.verdict.fidelity import judge

MBIT = 1_000_000
TEN_MBIT = LinkPlan(uplink_bit_s=10 * MBIT, downlink_bit_s=10 * MBIT)
WORKERS = ("edge-0", "edge-1", "edge-2", "edge-3")
GIB = 2**30


def plan_of(server=None, **asked):
    """Four workers of one class and a server; `asked` of each worker, `server` of it."""
    task = msgspec.structs.replace(TASK, gradient_time_s=0.01, layout=(TensorLayout("w", (10,)),), batch_size=16)

    def node(name, role, **more):
        return plan_of_role(node=name, role=role, device_class=name.split("-")[0], task=task, **more)

    workers = (node(name, "worker", **asked) for name in WORKERS)
    nodes = (node("server", "server", **(server or {})), node("evaluator", "evaluator"), *workers)
    return TrainingPlan(scenario="s", trial="t", question="?", seed=1, nodes=nodes)


def trial(runtime="process"):
    """The record that training begins with."""
    return records.Trial(scenario="s", trial="t", seed=1, runtime=runtime, nodes=6, parameters=10)


def usage(time_s=20.0, cpu_s=2.0, starved_s=0.1, stopped_s=0.0, **more):
    """A node that did well."""
    return records.Usage(time_s=time_s, cpu_s=cpu_s, starved_s=starved_s, stopped_s=stopped_s, **more)


def transfers(name="edge-0", direction="up", share=1.0, messages=100, asked_s=1.0, size=13_000, **more):
    """Messages that took `share` of the time asked."""
    return records.Transfers(
        name=name, direction=direction, messages=messages, bytes=messages * size, time_s=share * asked_s,
        asked_s=asked_s, **more,
    )  # fmt: skip


def held(link=TEN_MBIT, mechanism="tc", **more):
    """A link that the kernel holds as asked."""
    fields = {
        "uplink_asked": link.uplink_bit_s, "downlink_asked": link.downlink_bit_s,
        "uplink_held": link.uplink_bit_s, "downlink_held": link.downlink_bit_s,
    }  # fmt: skip
    return records.Link(mechanism=mechanism, **(fields | more))


def host(busy=0.5, steal=0.0, lag_s=0.001, cores=2, load=1.0, **more):
    """A machine with time to spare."""
    return records.HostLoad(busy=busy, steal=steal, load=load, lag_s=lag_s, cores=cores, **more)


QUIET = (host(),)
WELL = (usage(),)


def series_of(workers=(), server=(), loads=QUIET, runtime="process"):
    """What every worker and the server say, a record for each life; Transfers name whom they are about."""
    said = [(name, workers) for name in WORKERS] + [("server", server)]
    measured = {"links": {}, "usage": {}, "transfers": {}}
    for name, said_by in said:
        for record in said_by:
            if isinstance(record, records.Transfers):
                renamed = msgspec.structs.replace(record, name=name)
                measured["transfers"].setdefault((name, record.direction, record.to), []).append(renamed)
            else:
                kind = "links" if isinstance(record, records.Link) else "usage"
                measured[kind].setdefault(name, []).append(record)
    hosts = {}
    for load in loads:
        hosts.setdefault(load.host, []).append((2.0 * (len(hosts.get(load.host, ())) + 1), load))
    hosts = {name: tuple(told) for name, told in hosts.items()}
    whole = {kind: {key: tuple(each) for key, each in found.items()} for kind, found in measured.items()}
    return dataclasses.replace(Series.empty(), trial=trial(runtime), hosts=hosts, **whole)


def verdict_on(plan, *workers, server=WELL, **more):
    """The verdict and its causes: what stands before each reason's colon."""
    fidelity = judge(plan, series_of(workers or WELL, server, **more))
    return fidelity.verdict, [reason.partition(":")[0] for reason in fidelity.reasons]


LATE = transfers(asked_s=1.0, share=2.0)
"""100 messages that took a second longer than asked: 0.4 s more than TCP and their handling explain."""


def done(action="kill", target="edge-0", *, late_s=0.0, asked_t=5.0, name="f-1", **more):
    """Something that was done to a node."""
    record = records.Fault(name=name, action=action, target=target, asked_s=asked_t, **more)
    return TimedFault(asked_t + late_s, record, asked_t)


def with_server(series, **told):
    """The same trial, whose server told this."""
    return dataclasses.replace(series, server=dataclasses.replace(series.server, **told))


def with_faults(series, *faults):
    """The same trial, with these done to it."""
    return dataclasses.replace(series, faults=faults)
