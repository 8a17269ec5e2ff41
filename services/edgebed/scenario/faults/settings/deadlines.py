"""Time limits of a trial as a scenario gives them; planning/deadlines.py has those that it leaves out."""

from typing import Annotated

from pydantic import AfterValidator

from edgebed.core import units
from edgebed.scenario.section import Duration, Section

CHECK_MIN_S = 0.1  # heartbeats come a few times as often, from every node


def not_too_often(check_s: float) -> float:
    """A time between checks; ValueError where they come too often."""
    if check_s < CHECK_MIN_S:
        raise ValueError(f"{units.format_duration(check_s)} is below {units.format_duration(CHECK_MIN_S)}")
    return check_s


class Deadlines(Section):
    """Time limits of a trial."""

    join: Duration = 60.0
    """How long to wait for nodes that do not come, counted again whenever one starts, joins or becomes ready; then
    training starts without the workers that are not ready, and the trial ends if the server or the evaluator is not."""
    stall: Duration | None = None
    """How long a trial may make no progress; ten times as long while the evaluator measures the final model, or a
    worker says that it works on a push. If left out, three times as long as the slowest push takes by the plan, and a
    minute at least."""
    silence: Duration | None = None
    """How long a worker may be silent: the server takes one from which nothing has come for so long to have left, and
    nobody waits for it. A worker that computes or pauses for more than a third of that, or of `stall`, says so in a
    message. If left out, three times as long as the slowest push takes by the plan, and a minute at least."""
    check: Annotated[Duration, AfterValidator(not_too_often)] = 1.0
    """Time between the controller's checks: a node without a heartbeat in two of them in a row has failed; with the
    next one it is back."""
