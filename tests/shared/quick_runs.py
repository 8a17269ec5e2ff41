"""`edgebed.run` for tests that look at no report: to draw one takes longer than many a run."""

import functools

from edgebed.running.run import run as run_scenario
from edgebed.running.run import without_report

run = functools.partial(run_scenario, without_report)
