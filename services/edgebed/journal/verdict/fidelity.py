"""The verdict on a trial: did the conditions that its plan asks for hold, as far as they were measured? Pure.

    plan, series --> rows of what was asked, held, measured --> rules --> `degraded` and why, or
                     measured.py                                fault_, staleness_, evaluation_, link_, traffic_, …
                 --> what measured it, for how long         --> `unknown` and what was not observed, or `trusted`
                     evidence.py

In a simulation links and caps are a model, which nobody measures: what holds there is `modelled`, and the rules about
faults and staleness alone can degrade it.

Each rule has a threshold and says which figures broke it and what to do; docs/verdict.md has them in a table. What was
not asked for is not judged. A device or a link that is slow because of another condition that was asked for, a fault
done to a node included, is as it should be, and so is a host that is busy with nodes without caps; such things are
remarks.
"""

from typing import Literal

import msgspec

from edgebed.core.plan import Plan, ProgramsPlan, TrainingPlan
from edgebed.core.quantities import bytes_text, count_text
from edgebed.core.runtimes import is_virtual
from edgebed.journal.accounts.skipped_evaluations import skipped_text
from edgebed.journal.missed_faults import missed_faults
from edgebed.journal.series import Series
from edgebed.journal.series_faults import SERVER, unasked_losses
from edgebed.journal.verdict.controller_rules import CONTROLLER_RULES, remade
from edgebed.journal.verdict.effect_rules import EFFECT_RULES
from edgebed.journal.verdict.evaluation_rules import EVALUATION_RULES
from edgebed.journal.verdict.evidence import SHORT_S, TOO_SHORT, Evidence, claims_of, evidence_of, unobserved
from edgebed.journal.verdict.fault_rules import DONE_RULES, FAULT_RULES
from edgebed.journal.verdict.findings import Judged, Observed, Rule, can_be_spoiled
from edgebed.journal.verdict.host_rules import HOST_RULES
from edgebed.journal.verdict.hosts import HostConditions, hosts_of
from edgebed.journal.verdict.link_rules import LINK_RULES
from edgebed.journal.verdict.measured import NodeConditions, rows_of
from edgebed.journal.verdict.presence import Presence
from edgebed.journal.verdict.program_rules import PROGRAM_RULES, idle
from edgebed.journal.verdict.seen_rules import SEEN_RULES
from edgebed.journal.verdict.staleness_rules import STALENESS_RULES
from edgebed.journal.verdict.stop_rules import STOP_RULES
from edgebed.journal.verdict.traffic_rules import TRAFFIC_RULES
from edgebed.planning.virtual_time import virtual_time_text

SIMULATED = "simulated: links, caps and times are a model, not measured"
NOT_JUDGED = "expect.verdict: whether conditions can be trusted is not judged in a simulation"
NOTHING_ASKED = "nothing was asked of the emulation: no link, no cap, no waiting time"

Verdict = Literal["trusted", "degraded", "modelled", "unknown"]


class Fidelity(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a trial's conditions, and what it rests on."""

    verdict: Verdict
    """The verdict: trusted or degraded; modelled: a simulation in which all happened that was asked for; unknown:
    something of that was not measured."""
    reasons: tuple[str, ...] = ()
    """Why the conditions are degraded, each as `cause: who, by how much; what to do`; or what is not known."""
    remarks: tuple[str, ...] = ()
    """What else a reader should know."""
    host: HostConditions | None = None
    """The machine during training; None: not observed, or there are several."""
    hosts: tuple[HostConditions, ...] = ()
    """Each of several machines during training."""
    nodes: tuple[NodeConditions, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    """What measured each condition, for how long, and by which bound; none in a simulation."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdict in lines: `trusted` or `modelled`; or `degraded: …` or `unknown: …` for each reason."""
        return tuple(f"{self.verdict}: {reason}" for reason in self.reasons) or (self.verdict,)

    @property
    def causes(self) -> tuple[str, ...]:
        """Why conditions are degraded in a word or two each, e.g. `host CPU`; none where they are not."""
        words = (reason.partition(":")[0] for reason in self.reasons)
        return tuple(dict.fromkeys(words)) if self.verdict == "degraded" else ()


def judge(plan: Plan, series: Series) -> Fidelity | None:
    """The verdict on a trial; None where it never trained."""
    if series.trial is None:
        return None
    trial = _observed(plan, series)
    is_simulated = is_virtual(series.trial.runtime)
    findings = [finding for rule in _rules(plan, is_simulated=is_simulated) for finding in rule(trial)]
    reasons = tuple(finding.text for finding in findings if finding.is_fault)
    advice = dict.fromkeys(finding.advice for finding in findings if finding.advice)
    remarks = (*advice, *(finding.text for finding in findings if not finding.is_fault))
    rows = tuple(node.row for node in trial.everybody)
    if is_simulated:
        assert isinstance(plan, TrainingPlan), "virtual time runs no programs"
        told = [SIMULATED, f"virtual time: {virtual_time_text(plan)}"] + [NOT_JUDGED] * plan.expects_trusted
        verdict: Verdict = "degraded" if reasons else "modelled"
        return Fidelity(verdict=verdict, reasons=reasons, remarks=(*told, *remarks), nodes=rows)
    asked = any(can_be_spoiled(node) or node.memory_bytes for node in plan.nodes)
    claims = claims_of(trial, series)
    unknown = unobserved(trial, claims)
    if asked and not any(node.row.time_s for node in trial.nodes) and trial.trained_s < SHORT_S:
        unknown = (TOO_SHORT,)
    if reasons:
        verdict, remarks = "degraded", (*remarks, *unknown)
    else:
        verdict, reasons = ("unknown", unknown) if unknown else ("trusted", ())
    remarks = remarks if asked else (NOTHING_ASKED, *remarks)
    return Fidelity(
        verdict=verdict,
        reasons=reasons,
        remarks=remarks,
        host=trial.hosts.get(""),
        hosts=tuple(load for host, load in trial.hosts.items() if host),
        nodes=rows,
        evidence=evidence_of(claims),
    )


def _rules(plan: Plan, *, is_simulated: bool) -> tuple[Rule, ...]:
    """The rules that a trial is judged by."""
    kernel = (*LINK_RULES, idle, *HOST_RULES, *SEEN_RULES, *STOP_RULES)
    if isinstance(plan, ProgramsPlan):
        return (*DONE_RULES, *EFFECT_RULES, *kernel, *PROGRAM_RULES)
    rules = (*FAULT_RULES, *STALENESS_RULES, *EVALUATION_RULES, remade)
    return rules if is_simulated else (*rules, *EFFECT_RULES, *CONTROLLER_RULES, *TRAFFIC_RULES, *kernel)


def _observed(plan: Plan, series: Series) -> Observed:
    """The facts that the rules look at."""
    everybody = tuple(map(Judged, plan.nodes, rows_of(plan, series)))
    presence = Presence(series)
    frozen = {name: freezes for name in presence.done if (freezes := presence.frozen(name))}
    watching = {node.name for node in everybody if node.plan.role == "evaluator"}
    losses = unasked_losses([(t, node) for t, node in series.nodes if t <= series.trained_s], series.faults)
    explained = {
        (each.name, each.incarnation) for _, each in series.programs.exits if each.asked or each.consequence_of
    }
    return Observed(
        plan=plan,
        everybody=everybody,
        hosts=hosts_of(series),
        frozen=frozen,
        went_on={name: presence.went_on(name, freezes) for name, freezes in frozen.items()},
        passed={(name, SERVER): count_text(count, "update") for name, count in presence.passed().items()}
        | {two: bytes_text(size) for two, size in series.programs.passed.items()},
        faults=series.faults,
        survivors=presence.survivors(),
        missed=missed_faults(plan, series),
        skipped=skipped_text(plan, series) if isinstance(plan, TrainingPlan) else "",
        lost=tuple(
            node for node in losses if node.name not in watching and (node.name, node.incarnation) not in explained
        ),
        left=tuple((t, record) for t, record in series.server.left if t <= series.trained_s),
        pushes=series.server.pushes,
        was_restored=bool(series.server.restored),
        traffic=series.traffic[-1][1] if series.traffic else None,
        trained_s=series.trained_s,
        updates=len(series.updates),
        alone_s=series.unobserved_s,
        alone_updates=series.server.unobserved_updates,
        seen=series.seen,
        programs=series.programs,
        carried=_carried(series),
        remade_updates=series.server.remade_updates,
        was_stopped=series.outcome in ("interrupted", "failed"),
    )


def _carried(series: Series) -> dict[str, int]:
    """Bytes that passed each node's link in both directions, as far as it told."""
    found: dict[str, int] = {}
    for node, lives in series.usage.items():
        known = [(life.uplink_bytes, life.downlink_bytes) for life in lives if life.uplink_bytes is not None]
        if known and len(known) == len(lives):
            found[node] = sum(sent + (came or 0) for sent, came in known)
    return found
