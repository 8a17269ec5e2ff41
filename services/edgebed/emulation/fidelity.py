"""The verdict on a trial: did the conditions that its plan asks for hold, as far as they were measured? Pure.

    plan, series --> rows of what was asked, held, measured --> rules --> `trusted`, or `degraded` and why
                     measured.py                                link_rules.py, host_rules.py, fault_rules.py

Each rule has a threshold and says which figures broke it and what to do; docs/verdict.md has them in a table. What was
not asked for is not judged. A device or a link that is slow because of another condition that was asked for, a fault
done to a node included, is as it should be, and so is a host that is busy with nodes without caps; such things are
remarks.
"""

from typing import Literal

import msgspec

from edgebed.emulation.fault_rules import FAULT_RULES
from edgebed.emulation.findings import Judged, Observed, can_be_spoiled
from edgebed.emulation.host_rules import HOST_RULES
from edgebed.emulation.link_rules import LINK_RULES
from edgebed.emulation.measured import Host, NodeConditions, host_of, rows_of
from edgebed.observe.series import Series
from edgebed.scenario.plan import Plan

SIMULATED = "simulated: every condition holds by construction"
NOTHING_ASKED = "nothing was asked of the emulation: no link, no cap, no waiting time"
TOO_SHORT = "too short to be measured; train for ten seconds or more"


class Fidelity(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict, and what it rests on."""

    verdict: Literal["trusted", "degraded", "unknown"]
    """unknown: nothing of what was asked for was measured."""
    reasons: tuple[str, ...] = ()
    """Why it is degraded, each as `cause: who, by how much; what to do`; or why nothing is known."""
    remarks: tuple[str, ...] = ()
    """What else a reader should know."""
    host: Host | None = None
    """None: nobody looked."""
    nodes: tuple[NodeConditions, ...] = ()

    @property
    def causes(self) -> tuple[str, ...]:
        """What its reasons begin with, each once, e.g. `host CPU`, `link`."""
        return tuple(dict.fromkeys(reason.partition(":")[0] for reason in self.reasons))

    @property
    def is_trusted(self) -> bool:
        """Whether what was asked for held."""
        return self.verdict == "trusted"


def judge(plan: Plan, series: Series) -> Fidelity | None:
    """The verdict on a trial; None where it never trained."""
    if series.trial is None:
        return None
    rows = rows_of(plan, series)
    undone = [finding for rule in FAULT_RULES for finding in rule(series.faults)]
    if series.trial.runtime == "simulation":
        reasons = tuple(finding.text for finding in undone)
        return Fidelity(verdict="degraded" if reasons else "trusted", reasons=reasons, remarks=(SIMULATED,), nodes=rows)
    host = host_of(series)
    nodes = tuple(Judged(node, row) for node, row in zip(plan.nodes, rows, strict=True) if node.role != "evaluator")
    trial = Observed(plan, nodes, host, sum(row.cpus_measured or 0.0 for row in rows), series.faults)
    findings = undone + [finding for rule in (*LINK_RULES, *HOST_RULES) for finding in rule(trial)]
    reasons = tuple(finding.text for finding in findings if finding.is_fault)
    asked = any(can_be_spoiled(node) or node.memory_bytes for node in plan.nodes)
    if asked and not reasons and not any(node.row.time_s for node in nodes):
        return Fidelity(verdict="unknown", reasons=(TOO_SHORT,), host=host, nodes=rows)
    advice = dict.fromkeys(finding.advice for finding in findings if finding.advice)
    remarks = (*advice, *(finding.text for finding in findings if not finding.is_fault))
    return Fidelity(
        verdict="degraded" if reasons else "trusted",
        reasons=reasons,
        remarks=remarks if asked else (NOTHING_ASKED, *remarks),
        host=host,
        nodes=rows,
    )
