"""Short live runs, whose journals tell what this machine takes for what virtual time has no model of."""

import tempfile
from collections.abc import Mapping
from typing import Any

from edgebed.core.errors import InfrastructureError
from edgebed.core.runtimes import Emulation, Runtime
from edgebed.journal.series import Series
from edgebed.running.run import run, without_report


def series_of(scenario: Mapping[str, Any], runtime: Runtime, emulation: Emulation) -> Series:
    """Run a scenario without variants; return its trial's series. InfrastructureError where it ends too early."""
    name = scenario["name"]
    with tempfile.TemporaryDirectory(prefix=f"edgebed-{name}-") as place:
        (trial,) = run(without_report, scenario, runtime=runtime, emulation=emulation, runs_dir=place).trials.values()
        series = trial.series
    if not series.ran_to_end:
        reason = series.ended.reason if series.ended else "it broke off"
        raise InfrastructureError(f"what a {name} takes cannot be measured here: {series.outcome}, {reason}")
    return series
