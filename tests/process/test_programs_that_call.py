"""A fault that waits for what a program tells by a call to the address that its witness serves."""

from pathlib import Path

import pytest
from program_laws import CALL, CALLED
from program_trials import nodes, plan, python, run

from edgebed.core import records
from edgebed.core.planned.fault import AtMeasure, FaultPlan, FaultStep, Injection, Trigger
from edgebed.emulation.means import why_no_cgroups, why_no_namespaces

pytestmark = pytest.mark.skipif(bool(why_no_namespaces() or why_no_cgroups()), reason="that takes root")

DIES = CALL + "post('/measures', point=1); time.sleep(60)"


def test_a_fault_waits_for_a_point_that_a_program_tells(tmp_path: Path) -> None:
    """A point is a measure; the program is killed once it has told it."""
    kill = FaultPlan(
        name="kill-1",
        node="home-0",
        trigger=Trigger(at_measure=AtMeasure(measure="point", value=1)),
        steps=(FaultStep(after_s=0.0, injection=Injection(node="home-0", action="kill")),),
    )
    trial = run(tmp_path, plan(nodes(python(DIES)), program=CALLED, faults=(kill,)))

    assert [record.action for record in trial.all(records.Fault)] == ["kill"]
    assert [record.signal for record in trial.exits("home-0")] == ["SIGKILL"]
