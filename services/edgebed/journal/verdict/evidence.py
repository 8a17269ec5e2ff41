"""The evidence of a verdict: what measured each condition that was asked for, for how long, and by which bound. Pure.

    plan, series --> claims, one for each condition, source and node --> `Evidence`: a row for each class or host
                                                                    --> what was not observed, in words

Evidence is owed for the time in which a node took part in training (presence.py). What is known of less than nine
tenths of it is not known: nobody can say that it held. Messages are counted instead: those that were measured, of those
that were applied. They are owed where each worker has the whole model; of shards, those that come while the receiver
computes are not timed.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgebed.core.actions import LINK_ACTIONS
from edgebed.core.plan import Plan
from edgebed.core.planned.link import PROPERTIES, LinkPlan, Property
from edgebed.core.planned.program import ProgramPlan
from edgebed.core.quantities import all_text
from edgebed.core.recorded.measured import HOST_LOAD_S, Usage
from edgebed.journal.series import Floats, Series
from edgebed.journal.verdict.findings import (
    STARVED_MAX,
    STARVED_WORST_MAX,
    Judged,
    Observed,
    is_promised,
    of_class,
    seconds_text,
    share_text,
    takes_time,
    the,
)
from edgebed.journal.verdict.host_rules import CAP_TOLERANCE, DEVICE_TOLERANCE, JOB_S, LAG_MAX_S, SLEW_MAX, STEAL_MAX
from edgebed.journal.verdict.link_rules import EARLY_MAX, HANDLING_S, RATE_TOLERANCE
from edgebed.journal.verdict.lots import MESSAGES_MIN
from edgebed.journal.verdict.presence import OUT_OF_REACH, Incarnation, Presence, Span
from edgebed.journal.verdict.seen_rules import DIFFERENCE_MAX, NOBODY, unread
from edgebed.journal.verdict.stop_rules import STOPPED_MAX, STOPPED_MIN_S

OBSERVED_MIN = 0.9
"""Share of the time that a node took part, of which a condition must have been measured."""
PROBE_STARTS_S = 10.0
"""Seconds that the probe of one of several hosts, a container, may need until its first record."""
AFTER_FAULT_S = 10.0
"""Seconds after a fault of a link during which messages may be under way that met it, and are not timed."""

READ_BACK = "read back by the node from tc"
STATED = "stated by the node, which holds it itself"
MESSAGES = "messages"
BY_CGROUP = "its cgroup"
BY_PROCESS = "its process"
SCHEDSTAT = "the kernel's schedstat"
OWN_CLOCK = "gaps of its own clock"
OWN_JOBS = "CPU time of its work"
PROBE = "the host's probe"
CONTROLLER = "the controller"
OUTSIDE = "the controller, from outside"
OWN_ACCOUNT = "what the node says of itself"

AS_ASKED = "as asked, once a second"
IN_TIME = (
    f"{share_text(1.0 + RATE_TOLERANCE)} of the time asked, and {seconds_text(HANDLING_S)}; {share_text(EARLY_MAX)} of "
    "them may come sooner than their bytes allow"
)
CAP = f"{share_text(1.0 - CAP_TOLERANCE)} to {share_text(1.0 + CAP_TOLERANCE)} of the cap"
STARVED = f"waiting at most {share_text(STARVED_MAX)}, one node {share_text(STARVED_WORST_MAX)}"
STOPPED = f"at most {share_text(STOPPED_MAX)} of the time, or {seconds_text(STOPPED_MIN_S)}"
DEVICE = f"at most {share_text(1.0 + DEVICE_TOLERANCE)} of the device's, and {seconds_text(JOB_S)} a job"
AT_MOST_CAP = "at most the cap"
KEPT_TIME = (
    f"steal at most {share_text(STEAL_MAX)}; waking up at most {seconds_text(LAG_MAX_S)} late; a clock at most "
    f"{share_text(SLEW_MAX)} fast or slow"
)
DONE = "each done, and in time"
ALIKE = f"a difference of {share_text(DIFFERENCE_MAX)}"

NO_USAGE = "records of what was used are missing"
NO_LINK = "records of what holds the link are missing"
NO_MESSAGES = "records of how long messages took are missing"
NO_SCHEDSTAT = "the kernel did not tell how long threads waited for a core (schedstat)"
NO_DEVICE = "the journal does not tell how long work takes on the device; a newer one does"
NO_MEMORY = "the kernel did not tell it"
NO_STOPS = "the journal does not tell; a newer one does, where the kernel has schedstat"
NO_HOST = "records of it are missing: did the controller or its probe stand still, or was it out of reach?"
NO_RECORDS = (NO_USAGE, NO_LINK, NO_MESSAGES, NO_HOST)
TOO_SHORT = "too short to be measured; run for ten seconds or more"
SHORT_S = 10.0
"""Seconds of training below which it is no wonder that records are missing."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What measured a condition, which was asked of all nodes of a class or of a host, and of how much of their time.

    Seconds are those of the node of which the smallest share was observed.
    """

    condition: str
    subject: str
    """The class of the nodes, or the host."""
    nodes: int = 0
    """Number of these nodes; 0: the subject is no class."""
    measured_by: str
    bound: str
    """What the condition is judged by."""
    node: str = ""
    """The node of which the smallest share was observed; empty: it was observed of all of them."""
    owed_s: float
    """Seconds for which evidence is owed: the node took part in training."""
    observed_s: float
    missing: str = ""
    """What is missing where too little was observed."""

    @property
    def share(self) -> float:
        """The share of the time that was observed, of the node with the smallest."""
        return self.observed_s / self.owed_s if self.owed_s else 1.0


class Claim(NamedTuple):
    """What one source knows of a condition of one node, or of what has no node."""

    condition: str
    measured_by: str
    bound: str
    owed_s: float
    observed_s: float
    missing: str
    """What is missing where too little was observed; empty: nothing is owed, and the rest counts by itself."""
    node: Judged | None = None
    subject: str = ""
    messages: float | None = None
    """Number of messages that it is about, which are judged where those of the class are enough; None: about none."""

    @property
    def about(self) -> str:
        """The class of its node, or its subject."""
        return self.node.plan.device_class if self.node else self.subject

    @property
    def share(self) -> float:
        """The share of the time owed that was observed."""
        return self.observed_s / self.owed_s if self.owed_s else 1.0


def claims_of(trial: Observed, series: Series) -> list[Claim]:
    """What is known of each condition that the plan asks for, of each node but the evaluator."""
    is_timed, presence = takes_time(trial.plan), Presence(series)
    found = [claim for node in trial.nodes for claim in _of_node(node, trial, presence, is_timed=is_timed)]
    found += _of_hosts(trial.plan, presence) if is_timed else ()
    if trial.plan.faults:
        found.append(Claim("faults", CONTROLLER, DONE, series.trained_s, series.trained_s, "", subject="the trial"))
    return list(_of_enough(found))


def _of_enough(claims: Sequence[Claim]) -> Iterator[Claim]:
    """The claims without those about so few messages of a class that nobody judges how long they took."""
    counts = defaultdict[tuple[str, str], float](float)
    for claim in claims:
        counts[claim.about, claim.condition] += claim.messages or 0.0
    for claim in claims:
        if claim.messages is None or counts[claim.about, claim.condition] >= MESSAGES_MIN:
            yield claim


def evidence_of(claims: Iterable[Claim]) -> tuple[Evidence, ...]:
    """The claims by condition, class or host, and source."""
    members: dict[tuple[str, ...], list[Claim]] = {}
    for claim in claims:
        members.setdefault((claim.about, claim.condition, claim.measured_by, claim.bound), []).append(claim)
    return tuple(_row(subject, alike) for (subject, *_), alike in members.items())


def _row(subject: str, alike: Sequence[Claim]) -> Evidence:
    least = min(alike, key=lambda claim: claim.share)
    is_less = least.share < 1.0 and least.node is not None
    return Evidence(
        condition=least.condition,
        subject=subject,
        nodes=len(alike) if least.node else 0,
        measured_by=least.measured_by,
        bound=least.bound,
        node=least.node.name if is_less and least.node else "",
        owed_s=round(least.owed_s, 3),
        observed_s=round(least.observed_s, 3),
        missing=least.missing if least.share < OBSERVED_MIN else "",
    )


def unobserved(trial: Observed, claims: Iterable[Claim]) -> tuple[str, ...]:
    """What was not observed of nine tenths of its time, in words: a text for each class, or host, and cause."""
    groups: dict[tuple[str, str], list[Claim]] = {}
    for claim in claims:
        if claim.share < OBSERVED_MIN and claim.missing:
            is_short = trial.trained_s < SHORT_S and claim.missing in NO_RECORDS
            groups.setdefault((claim.about, TOO_SHORT if is_short else claim.missing), []).append(claim)
    return tuple(_text(trial, subject, missing, alike) for (subject, missing), alike in groups.items())


def _text(trial: Observed, subject: str, missing: str, alike: Sequence[Claim]) -> str:
    least = min(alike, key=lambda claim: claim.share)
    what = all_text(dict.fromkeys(claim.condition for claim in alike))
    nodes = list({claim.node.name: claim.node for claim in alike if claim.node}.values())
    everybody = [node for node in trial.nodes if node.plan.device_class == subject]
    whose = of_class(nodes, everybody) if nodes else subject
    lacking_s = least.owed_s - least.observed_s
    return f"not observed for {seconds_text(lacking_s)} of {seconds_text(least.owed_s)}: {what} of {whose}; {missing}"


# --- nodes ------------------------------------------------------------------------------------------------------------


def _of_node(node: Judged, trial: Observed, presence: Presence, *, is_timed: bool) -> Iterator[Claim]:
    """What is known of a node's conditions; nothing where it never took part."""
    owed_s = sum(life.owed.length_s for life in presence.lives(node.name))
    if not owed_s:
        return
    ends = presence.series.usage.get(node.name, ())

    def claim(condition: str, by: str, bound: str, known: Iterable[Usage], missing: str) -> Claim:
        used_s = sum(end.time_s for end in ends)
        missing = NO_USAGE if used_s < OBSERVED_MIN * owed_s else missing
        observed_s = min(owed_s, sum(end.time_s for end in known))
        return Claim(condition, by, bound, owed_s, observed_s, missing, node)

    plan = node.plan
    yield from _of_link(node, trial, presence, owed_s)
    if plan.cpus is not None:
        by = BY_CGROUP if any(end.throttled_s is not None for end in ends) else BY_PROCESS
        yield claim("CPU cap", by, CAP, ends, NO_USAGE)
    if is_promised(plan):
        known = [end for end in ends if end.starved_s is not None]
        yield claim("promised core", SCHEDSTAT, STARVED, known, NO_SCHEDSTAT)
    if plan.core is not None:
        known = [end for end in ends if end.device_s is not None]
        yield claim("device speed", OWN_JOBS, DEVICE, known, NO_DEVICE)
    if plan.memory_bytes is not None:
        by = BY_CGROUP if any(end.memory_held_bytes is not None for end in ends) else BY_PROCESS
        known = [end for end in ends if end.memory_bytes is not None]
        yield claim("memory cap", by, AT_MOST_CAP, known, NO_MEMORY)
    seen_s = min(owed_s, sum(life.last.time_s for life in trial.seen.get(node.name, ())))
    if is_timed and isinstance(plan, ProgramPlan):  # which has no clock of its own to look at
        yield Claim("stops", OUTSIDE, STOPPED, owed_s, seen_s, NOBODY, node)
    elif is_timed:
        known = [end for end in ends if end.stopped_s is not None]
        yield claim("stops", OWN_CLOCK, STOPPED, known, NO_STOPS)
    if _link_conditions(plan.link) or plan.cpus is not None:
        why = unread(trial).get(node.name)
        yield Claim(OWN_ACCOUNT, f"{OUTSIDE}; not seen: {why}" if why else OUTSIDE, ALIKE, owed_s, seen_s, "", node)


def _of_link(node: Judged, trial: Observed, presence: Presence, owed_s: float) -> Iterator[Claim]:
    """What is known of a node's link: read back, as often as the node looks at itself, and by messages."""
    series, conditions = presence.series, _link_conditions(node.plan.link)
    links = series.links.get(node.name, ())
    changed = [each for each in _changed_conditions(node, trial) if links and each not in conditions]
    if conditions or changed:
        by = READ_BACK if links and "tc" in (link.mechanism for link in links) else STATED
        lives_s = sorted((end.time_s for end in series.usage.get(node.name, ())), reverse=True)
        observed_s = min(owed_s, sum(lives_s[: len(links)]))
        missing = NO_USAGE if len(links) >= len(lives_s) else NO_LINK
        for condition in (*conditions, *(("MTU",) if conditions and by == READ_BACK else ())):
            yield Claim(condition, by, AS_ASKED, owed_s, observed_s, missing, node)
        for condition in changed:  # nobody owes what was not planned
            yield Claim(condition, by, AS_ASKED, observed_s, observed_s, "", node)
    is_shaped = node.plan.pushes and (node.plan.link.shaped or trial.server.plan.link.shaped)
    if is_shaped and not trial.is_lossy(node):
        pulls = series.traffic[-1][1].pulls if series.traffic else len(series.updates)
        models_a_push = min(1.0, pulls / max(1, len(series.updates)))  # a worker may push several times for one model
        ways = (("pushes", "up", trial.server.name), ("models", "down", node.name))
        for what, direction, receiver in ways:
            timed, left_out = node.way(direction).messages, node.way(direction).left_out
            expected = _expected(node.name, receiver, trial, presence, left_out)
            expected *= models_a_push if direction == "down" else 1.0
            if count := max(expected, timed):
                share = min(1.0, timed / expected) if expected >= 1.0 else 1.0
                observed_s, condition = share * owed_s, f"time of {what}"
                yield Claim(condition, MESSAGES, IN_TIME, owed_s, observed_s, NO_MESSAGES, node, messages=count)


def _link_conditions(link: LinkPlan) -> tuple[str, ...]:
    """What a plan asks of a link."""
    moments = (link, *link.changes)
    found = (each for each in PROPERTIES.values() if any(getattr(moment, each.field) for moment in moments))
    return tuple(dict.fromkeys(map(_condition, found)))


def _condition(asked: Property) -> str:
    """The condition that a property is a part of: jitter belongs to latency."""
    return {"rate": f"{asked.key} rate", "delay": "latency", "packets": asked.key}[asked.kind]


def _changed_conditions(node: Judged, trial: Observed) -> Iterator[str]:
    """What faults, or a user, asked of a node's link, each once."""
    records = [done.record for done in trial.faults if done.record.target == node.name and not done.record.problem]
    words = [part.partition(" ")[0] for each in records if each.action == "link" for part in each.change.split(", ")]
    return iter(dict.fromkeys(_condition(each) for key, each in PROPERTIES.items() if key in words))


def _expected(worker: str, receiver: str, trial: Observed, presence: Presence, left_out: int) -> float:
    """Updates of a worker whose messages the receiver must have timed: it lived to tell, and no fault met the link.

    `left_out`: messages that the receiver says were met by one.
    """
    series = presence.series
    if worker not in series.workers:
        return 0
    times = series.updates.t[series.updates.worker == series.workers.index(worker)]
    is_owed = _any(times, (life.owed for life in presence.lives(receiver)))
    done = (each for end in (worker, trial.server.name) for each in presence.done.get(end, ()))
    is_met = _any(times, (Span(t, t + AFTER_FAULT_S) for t, action in done if action in LINK_ACTIONS))
    return float(is_owed.sum() - max(left_out, (is_owed & is_met).sum()))


def _any(times: Floats, spans: Iterable[Span]) -> NDArray[np.bool_]:
    """For each time, whether it is in any of these parts of the training."""
    found = np.zeros(len(times), dtype=np.bool_)
    for span in spans:
        found |= (times >= span.since_s) & (times <= span.until_s)
    return found


# --- hosts ------------------------------------------------------------------------------------------------------------


def _of_hosts(plan: Plan, presence: Presence) -> Iterator[Claim]:
    """What is known of how busy each host was, while nodes were there."""
    for host, spans in _presences(plan, presence).items():
        loads_s = [t for t, _ in presence.series.hosts.get(host, ())]
        if host and loads_s and loads_s[0] - HOST_LOAD_S <= PROBE_STARTS_S:
            spans = [Span(max(span.since_s, loads_s[0] - HOST_LOAD_S), span.until_s) for span in spans]  # noqa: PLW2901
        owed_s = sum(span.length_s for span in spans)
        observed_s = sum(span.within(_covered(loads_s)) for span in spans)
        if owed_s:
            yield Claim("load", PROBE, KEPT_TIME, owed_s, observed_s, NO_HOST, subject=the(host))


def _presences(plan: Plan, presence: Presence) -> dict[str, list[Span]]:
    """For each host, when any node took part there; of several, one whose nodes are out of reach may be so itself."""
    series, found = presence.series, dict[str, list[Span]]()
    is_alone = series.hosts.keys() == {""} or not any(node.host for node in plan.nodes)
    for node in plan.nodes:
        if node.role != "evaluator" and (is_alone or node.host):
            lives = presence.lives(node.node, *(() if is_alone else (OUT_OF_REACH,)))
            spans = (_of_life(life, series.trained_s) for life in lives)
            found.setdefault("" if is_alone else node.host, []).extend(spans)
    return {host: _merged(spans) for host, spans in sorted(found.items())}


def _of_life(life: Incarnation, trained_s: float) -> Span:
    """The part of a node's life in which its host was to be observed: the record that was due dies with the host."""
    since_s, until_s = life.span
    is_gone = not life.reported and until_s < trained_s
    return Span(since_s, max(since_s, until_s - HOST_LOAD_S) if is_gone else until_s)


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Parts of the training that are in any of these, none of them twice."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.since_s <= merged[-1].until_s:
            merged[-1] = Span(merged[-1].since_s, max(merged[-1].until_s, span.until_s))
        else:
            merged.append(span)
    return merged


def _covered(told_s: Sequence[float]) -> list[Span]:
    """The parts of the training that records of a host, which came at these times, are about.

    A record is about the time since the one before; a busy host is a moment late. Where one is missing, it is about its
    own two seconds.
    """
    found: list[Span] = []
    for t in told_s:
        before_s = found[-1].until_s if found else t - HOST_LOAD_S
        found.append(Span(before_s if t - before_s < 2.0 * HOST_LOAD_S else t - HOST_LOAD_S, t))
    return found
