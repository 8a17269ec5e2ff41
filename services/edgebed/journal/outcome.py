"""The outcome of a run in one word, one line and one exit code: its trials' ends, expectations and conditions; pure.

The gravest decides, in this order:

    130  interrupted   somebody ended a trial
    3    no result     a trial failed, broke off or did not begin
    3    accounting does not close   edgebed's own failure, in a trial that ran to its end
    1    diverged      a loss of a trial was not finite
    1    not met       an expectation was not
    0    met; or completed, where nothing was expected

The badge joins that to the conditions, those of the trial that fared worst: `met, degraded (host CPU)`.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from edgebed.journal.programs.summary import ProgramSummary
from edgebed.journal.summary import TrialSummary

AnySummary = TrialSummary | ProgramSummary
Tone = Literal["good", "bad", "unknown"]
WORST_FIRST = ("degraded", "unknown", "modelled", "trusted")
HELD = frozenset(("modelled", "trusted"))
UNCLOSED = "accounting does not close"


class RunOutcome(NamedTuple):
    """The outcome of a run."""

    exit_code: int
    result: str
    """met, not met, completed, diverged, accounting does not close, interrupted, no result, or running"""
    conditions: str
    """degraded, unknown, modelled or trusted; empty where no trial has trained"""
    causes: tuple[str, ...]
    """Why conditions are degraded, e.g. `host CPU`."""
    badge: str
    """Result and conditions on one line."""
    text: str
    """The result in a sentence or two."""


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The whole run, as in `summary.json`."""

    scenario: str
    question: str
    runtime: str
    seed: int
    exit_code: int
    result: str = ""
    """The outcome: met, not met, completed (nothing was expected), diverged, accounting does not close, interrupted, no
    result, or running."""
    conditions: str = ""
    """The verdict on the trial whose conditions fared worst: degraded, unknown, modelled or trusted; empty where no
    trial has trained. Of a run in progress, the verdict until now."""
    causes: tuple[str, ...] = ()
    """Why conditions are degraded, e.g. host CPU."""
    badge: str = ""
    """Result and conditions on one line; for a run in progress `running`, with the conditions until now if any."""
    text: str = ""
    """The result in a sentence or two."""
    trials: tuple[TrialSummary, ...]
    programs: tuple[ProgramSummary, ...] = ()
    """The trials whose nodes run programs of the user's; then there are no others."""
    not_begun: tuple[str, ...] = ()
    """Trials that were planned and did not begin."""
    notes: tuple[str, ...] = ()
    """What the controller wants a reader to know, e.g. that caps are not held."""


def outcome_of(trials: Sequence[AnySummary], not_begun: Sequence[str] = (), *, is_running: bool = False) -> RunOutcome:
    """The outcome of a run of these trials; `not_begun` names those that were planned besides."""
    code = 3 if is_running else _exit_code(trials, not_begun)
    result = "running" if is_running else _result(code, trials, not_begun)
    conditions, causes = _conditions(trials)
    parts = [_diverged_text(trials) if result == "diverged" else result]
    if conditions:
        why = f" ({', '.join(causes)})" if causes else ""
        parts.append(f"conditions {conditions}" if conditions == "unknown" else conditions + why)
    text = " ".join((_text(result, trials, not_begun), *_unheard(trials)))
    return RunOutcome(code, result, conditions, causes, ", ".join(parts), text)


def tone_of(exit_code: int, result: str, conditions: str) -> Tone:
    """The tone of a run's badge. good: all is well, conditions included; bad: it is not; else unknown."""
    if exit_code == 0 and conditions in HELD:
        return "good"
    return "bad" if exit_code == 1 or result == UNCLOSED else "unknown"


def outcome_text(summary: AnySummary) -> str:
    """How a trial ended, and whether its accounting closes; before its final evaluation with what was measured last."""
    if unclosed := _unclosed([summary]):
        return f"{summary.outcome}, {UNCLOSED}: {_problem_text(unclosed[0])}"
    if summary.outcome == "diverged" and summary.diverged:
        return f"diverged at update {summary.diverged.update:,}: {summary.diverged.text} is not finite"
    reason = f": {summary.reason}" if summary.reason else ""
    if isinstance(summary, ProgramSummary) or summary.final or not summary.last:
        return f"{summary.outcome}{reason}"
    told = summary.headline.told(summary.last.get(summary.headline.name))
    return f"{summary.outcome}{reason}; {told} at update {summary.last_version or 0:,}"


def _exit_code(trials: Sequence[AnySummary], not_begun: Sequence[str]) -> int:
    if any(trial.outcome == "interrupted" for trial in trials):
        return 130
    if not trials or not_begun or not all(trial.is_sound for trial in trials):
        return 3
    return 0 if all(trial.met for trial in trials) else 1


def _result(code: int, trials: Sequence[AnySummary], not_begun: Sequence[str]) -> str:
    if code == 130:
        return "interrupted"
    if not trials or not_begun or not all(trial.ran_to_end for trial in trials):
        return "no result"
    if code == 3:
        return UNCLOSED
    if any(trial.outcome == "diverged" for trial in trials):
        return "diverged"
    if code == 1:
        return "not met"
    return "met" if any(each.met for trial in trials for each in trial.expectations) else "completed"


def _unclosed(trials: Sequence[AnySummary]) -> list[AnySummary]:
    """Trials that ran to their end, and whose updates are not all accounted for."""
    return [trial for trial in trials if trial.ran_to_end and not trial.is_sound]


def _problem_text(trial: AnySummary) -> str:
    """The first reason why the accounting does not close."""
    return trial.accounting.problems[0] if trial.accounting else ""


def _conditions(trials: Sequence[AnySummary]) -> tuple[str, tuple[str, ...]]:
    """The worst verdict of all trials that have one, and the causes of all that are degraded."""
    known = [trial.fidelity for trial in trials if trial.fidelity]
    worst = min((each.verdict for each in known), key=WORST_FIRST.index, default="")
    causes = (cause for each in known for cause in each.causes)
    return worst, tuple(dict.fromkeys(causes))


def _diverged_text(trials: Sequence[AnySummary]) -> str:
    """The first trial that diverged: at which update, and what was not finite."""
    diverged = [trial for trial in trials if trial.outcome == "diverged"]
    first, who = diverged[0].diverged, f"{diverged[0].trial} " if len(trials) > 1 else ""
    where = f" at update {first.update:,} ({first.text})" if first else ""
    more = f" and {len(diverged) - 1} more" if len(diverged) > 1 else ""
    return f"{who}diverged{where}{more}"


def _text(result: str, trials: Sequence[AnySummary], not_begun: Sequence[str]) -> str:
    if result == "running":
        return "No result yet: the run is still running."
    if not trials:
        return "No result: no trial has begun."
    broken = [f"{trial.trial} {trial.outcome}" for trial in trials if not trial.ran_to_end]
    if broken or not_begun:
        absent = f"{', '.join(not_begun)} did not begin" if not_begun else ""
        return f"No result: {'; '.join(filter(None, (', '.join(broken), absent)))}."
    if unclosed := _unclosed(trials):
        problems = "; ".join(f"{each.trial}: {_problem_text(each)}" for each in unclosed)
        return (
            f"edgebed's own accounting does not close: {problems}. Its numbers cannot be relied on: "
            "please report it, and keep the run's folder."
        )
    diverged = ", ".join(trial.trial for trial in trials if trial.outcome == "diverged")
    ended = [f"{diverged} diverged, and ran to the end."] if diverged else []
    return " ".join([*ended, *_expected(trials, nothing_else=not diverged)])


def _unheard(trials: Sequence[AnySummary]) -> Iterator[str]:
    """A sentence on each class none of whose pushes was applied."""
    for trial in trials:
        for clause in trial.unheard:
            yield f"In {trial.trial}, {clause}." if len(trials) > 1 else f"{clause[0].upper()}{clause[1:]}."


def _expected(trials: Sequence[AnySummary], *, nothing_else: bool) -> list[str]:
    """Whether expectations were met, or that there are none."""
    expectations = [expectation for trial in trials for expectation in trial.expectations]
    if not expectations:
        return ["The scenario expects nothing in particular."] if nothing_else else []
    judged = [expectation.met for expectation in expectations if expectation.met is not None]
    if not judged:
        return ["What the scenario expects is not judged in a simulation."]
    if failed := judged.count(False):
        return [f"{failed} of {len(judged)} expectations not met."]
    words = {1: "The expectation is met.", 2: "Both expectations are met."}
    return [words.get(len(judged), f"All {len(judged)} expectations are met.")]
