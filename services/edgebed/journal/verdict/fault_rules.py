"""Rules of the verdict about faults: what was asked for was done, and in time, and nothing else happened to nodes.

A fault that was asked for is a condition like any other: a node that was killed, frozen, cut off or changed as asked is
as it should be, and so is one with which there was nothing to do, e.g. because it had died before. These rules hold in
virtual time, too.
"""

from collections.abc import Iterator
from itertools import groupby

from edgebed.core import quantities
from edgebed.core.actions import ACTIONS
from edgebed.core.plan import ServerPlan
from edgebed.journal.series_faults import BY_HAND, TimedFault
from edgebed.journal.verdict.findings import Finding, Observed, Rule, seconds_text
from edgebed.roles.control.fault_text import AS_PLANNED

LATE_S = 0.25
"""Seconds by which a fault to one node may be late."""
LATE_A_NODE_S = 0.05
"""Seconds more by which a fault to several nodes at once may be late, for each node: 1 s to twenty."""


def undone(trial: Observed) -> Iterator[Finding]:
    """Faults that could not be done. What a user asked for by hand was answered at once."""
    failed = [done for done in trial.faults if done.record.problem and done.record.name != BY_HAND]
    if failed:
        first = failed[0].record
        more = f", and {len(failed) - 1:,} more" if len(failed) > 1 else ""
        yield Finding(f"faults: {first.action} of {first.target} could not be done: {first.problem}{more}")


def missed(trial: Observed) -> Iterator[Finding]:
    """Faults that did not happen, since training ended before.

    A trial that somebody stopped, or that ended amid a recurring fault or before its first moment, is not to blame.
    """
    alone = [each for each in trial.missed if not each.no_op and not each.goes_on]
    going_on = [each for each in trial.missed if each.goes_on]
    ended = f"training ended at {quantities.seconds_text(trial.trained_s)}"
    if alone:
        more = f", and {len(alone) - 1:,} more" if len(alone) > 1 else ""
        text = f"faults: {alone[0].text} did not happen, {ended}{more}; train longer, or ask for it sooner"
        yield Finding(text, is_fault=not trial.was_stopped)
    if going_on:
        name = going_on[0].fault.name
        times = quantities.count_text(len(going_on), "time")
        yield Finding(f"faults: {name} was to recur; {times} did not happen, {ended}", is_fault=False)


def unfrozen(trial: Observed) -> Iterator[Finding]:
    """Nodes that were frozen as asked, and went on."""
    found = [(count, name) for name, count in trial.went_on.items() if count]
    if found:
        count, name = max(found)
        more = f", and {len(found) - 1:,} more nodes went on" if len(found) > 1 else ""
        yield Finding(
            f"faults: {name} was frozen, and {quantities.count_text(count, 'update')} came all the same{more}; the "
            "freeze did not hold, or somebody ended it"
        )


def deaths(trial: Observed) -> Iterator[Finding]:
    """Nodes that died, or never came, unasked; the evaluator is no condition of the experiment."""
    lost = list({node.name: node for node in reversed(trial.lost)}.values())[::-1]
    if lost:
        first = lost[0]
        role = next((f"{node.plan.role} " for node in trial.workers if node.name == first.name), "")
        what = "died unasked" if first.state == "died" else "never came"
        reason = f": {first.reason}" if first.reason else ""
        more = f", and {len(lost) - 1:,} more" if len(lost) > 1 else ""
        yield Finding(f"deaths: {role}{first.name} {what}{reason}{more}; see its log (edgebed logs)")


def late(trial: Observed) -> Iterator[Finding]:
    """Faults that the scenario asked for and that came too late; by hand nothing is prepared, and no time promised."""
    timely = [
        done
        for done in trial.faults
        if done.was_done and not ACTIONS[done.record.action].takes_time and done.record.name != BY_HAND
    ]
    found = []
    for _, group in groupby(sorted(timely, key=_moment), key=_moment):
        together = list(group)
        allowed_s = max(LATE_S, LATE_A_NODE_S * len(together))
        found += [done for done in together if done.delay_s > allowed_s]
    if found:
        worst = max(found, key=lambda done: done.delay_s)
        what = f"{worst.record.action} of {worst.record.target}"
        others = f", and {len(found) - 1:,} others were late" if len(found) > 1 else ""
        yield Finding(
            f"faults: {what} was done {seconds_text(worst.delay_s)} after it was asked for{others}; perhaps the host "
            "was busy, or too much was asked for at once"
        )


def _moment(done: TimedFault) -> tuple[float, str]:
    """A key for faults that were asked for at once."""
    return done.asked_t, done.record.name


def silences(trial: Observed) -> Iterator[Finding]:
    """Workers that the server gave up since nothing came from them, though no fault was the cause of it."""
    gone = {node.name for node in trial.lost}
    found = [
        left.worker
        for t, left in trial.left
        if left.reason == "silence" and left.worker not in gone and not _is_explained(trial, left.worker, t)
    ]
    if found:
        times = quantities.count_text(len(found), "time")
        others = f", {times} in all" if len(found) > 1 else ""
        yield Finding(
            f"silence: {found[0]} left by silence, of {_silence_s(trial):g} s and with no fault behind it"
            f"{others}; find what held it up (edgebed logs), or raise deadlines.silence"
        )


def _is_explained(trial: Observed, worker: str, t: float) -> bool:
    """Whether a fault of the worker or of the server was in force in the silence before `t`, or shortly before that.

    TCP may be silent for as long again as a link was cut.
    """
    since_s = t - 2.0 * _silence_s(trial)
    in_force: set[tuple[str, str]] = set()
    for done in trial.faults:
        target, action = done.record.target, done.record.action
        if target not in (worker, trial.server.name) or not done.was_done or done.t > t:
            continue
        if done.t >= since_s:
            return True
        undoes = ACTIONS[action].undoes
        for ended in undoes or (action,):
            in_force.discard((target, ended))
        if not undoes and not done.record.change.startswith(AS_PLANNED):
            in_force.add((target, action))
    return bool(in_force)


def _silence_s(trial: Observed) -> float:
    """Seconds after which the server gives a silent worker up."""
    plan = trial.server.plan
    return (plan.silence_s if isinstance(plan, ServerPlan) else None) or 0.0


DONE_RULES: tuple[Rule, ...] = (undone, missed, late, deaths)
"""Rules that hold whatever nodes run."""
FAULT_RULES: tuple[Rule, ...] = (*DONE_RULES, unfrozen, silences)
