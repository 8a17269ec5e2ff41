"""Makes `edgebed.run` and `edgebed.resume`, which write reports."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, cast

from edgebed.reports.run.runs_index import write_report_and_index
from edgebed.running.results import Run
from edgebed.running.resume import resume as resume_run
from edgebed.running.run import ReportWriter
from edgebed.running.run import run as run_scenario

P = ParamSpec("P")


def reported(function: Callable[Concatenate[ReportWriter, P], Run]) -> Callable[P, Run]:
    """Hand the writer of reports to `function`; help and signature are those of the other arguments."""

    @functools.wraps(function)
    def run(*args: P.args, **settings: P.kwargs) -> Run:
        return function(write_report_and_index, *args, **settings)

    signature = inspect.signature(function)
    cast(Any, run).__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])
    return run


run = reported(run_scenario)
resume = reported(resume_run)
