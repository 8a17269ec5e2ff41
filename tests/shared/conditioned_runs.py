"""Runs with links that the kernel held as they were asked for, or did not."""

import msgspec
from sample_runs import make_plan, sample_entries

from edgebed.core import records
from edgebed.core.planned.link import LinkPlan
from edgebed.journal.journal import JournalWriter
from edgebed.journal.run_folder import RunFolder
from edgebed.running.results import Run

MBIT = 1_000_000
WORKERS = ("edge-0", "phone-0")
PROBLEM = "uplink: the kernel holds 20mbit, asked 10mbit"


def run_of(root, *, problem="", expects_trusted=False, sent_bytes=1_410_000, runtime="process"):
    """A run whose workers' uplinks were asked to be 10 mbit, which the kernel held or did not."""
    folder = RunFolder.create(root, "sample")
    folder.write_manifest(seed=7, runtime=runtime, command=["edgebed"], trials=["adacomp"], sets=())
    plan = make_plan(workers=WORKERS)
    link = LinkPlan(uplink_bit_s=10 * MBIT)
    nodes = tuple(
        msgspec.structs.replace(node, link=link, cpus=None) if node.role == "worker" else node for node in plan.nodes
    )
    plan = msgspec.structs.replace(plan, nodes=nodes, expects_trusted=expects_trusted)
    trial = folder.trial("adacomp")
    trial.make(plan)
    held = 20 * MBIT if problem else 10 * MBIT
    with JournalWriter(trial.journal) as journal:
        (t, name, begun), *entries = sample_entries(updates=190, workers=WORKERS)
        journal.write_many([(t, name, msgspec.structs.replace(begun, runtime=runtime)), *entries])
        for name in WORKERS:
            said = records.Link(
                mechanism="tc", delay="line", uplink_asked=10 * MBIT, uplink_held=held, problem=problem,
                differed=1 if problem else 0, differences=(problem,) if problem else (),
            )  # fmt: skip
            took = records.Transfers(
                name=name,
                direction="up",
                messages=100,
                bytes=sent_bytes,
                time_s=1.01,
                asked_s=1.0,
                latency_s=0.0,
                delay_s=0.0003,
            )
            journal.write(0.5, name, said)
            used = records.Usage(time_s=3.0, cpu_s=1.5, starved_s=0.15, stopped_s=0.0, memory_bytes=50_000_000)
            journal.write(3.0, name, used)
            journal.write(3.0, "server", took)
            journal.write(3.0, name, msgspec.structs.replace(took, direction="down"))
        journal.write(3.0, "server", records.Usage(time_s=3.0, cpu_s=1.0, starved_s=0.1, stopped_s=0.0))
        for t in (1.0, 3.0):
            load = records.HostLoad(busy=0.5, steal=0.0, load=1.0, lag_s=0.001, cores=2)
            journal.write(t, "controller", load)
    return Run(folder)
