"""`edgebed.run` for tests that look at no report, since to draw one takes longer than many a run.

A simulation computes in this process alone: with several tests at a time there is no core for others.
"""

import functools

from edgebed.running.run import run as run_scenario
from edgebed.running.run import without_report

run = functools.partial(run_scenario, without_report, processes=1)
