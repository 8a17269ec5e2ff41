"""Holm's correction within a table: of twenty tables without anything to find, chance gives one a finding at most.

Holm 1979, A simple sequentially rejective multiple test procedure. A finding's p value is the least error that its test
may allow itself and still come to it: the interval at one minus that is the widest that says the same.
"""

import math
from collections.abc import Callable, Mapping

from edgebed.studies.reproduction.findings import Finding, Judged
from edgebed.studies.statistics import CONFIDENCE

ERROR = 1 - CONFIDENCE
LEAST = 1e-12
"""An error below which p values are not told apart."""
STEPS = 40
JudgeAt = Callable[[float], Judged]
"""What is found by an interval of this confidence."""
OPEN: tuple[Finding | None, ...] = (None, "not distinguishable")
ALIKE: Mapping[Finding, Finding] = {"in direction": "reproduced"}
"""Findings whose direction is one."""


def p_value(judge_at: JudgeAt) -> float:
    """The least error at which the finding at 95 % is still come to, in its direction; 1 where there is none."""
    found = _direction(judge_at(CONFIDENCE).finding)
    if found in OPEN:
        return 1.0
    low, high = math.log(LEAST), math.log(ERROR)
    if _direction(judge_at(1 - LEAST).finding) == found:
        return LEAST
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if _direction(judge_at(1 - math.exp(middle)).finding) == found else (middle, high)
    return math.exp(high)


def holm(p_values: Mapping[str, float], tests: int) -> dict[str, float]:
    """The confidence that each test of a table must have, by name; `tests` are those that the table states.

    From the smallest p value on a test may err one time in 20 over the number of tests that are left, itself included,
    until one does not hold; those after it are tested as that one is.
    """
    levels: dict[str, float] = {}
    failed: float | None = None
    for place, (name, p) in enumerate(sorted(p_values.items(), key=lambda each: each[1])):
        level = failed or ERROR / (tests - place)
        if p > level:
            failed = level
        levels[name] = 1 - level
    return levels


def _direction(finding: Finding | None) -> Finding | None:
    return None if finding is None else ALIKE.get(finding, finding)
