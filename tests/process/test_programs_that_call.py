"""Programs that call the address their witness serves: barriers, measures, and a fault that waits for one."""

import re
from pathlib import Path

import pytest
from program_trials import nodes, plan, python, run

from edgebed.core import records
from edgebed.core.planned.fault import AtMeasure, FaultPlan, FaultStep, Injection, Trigger
from edgebed.core.planned.program import OutputMeasure, Program
from edgebed.emulation.means import why_no_cgroups, why_no_namespaces

pytestmark = pytest.mark.skipif(bool(why_no_namespaces() or why_no_cgroups()), reason="that takes root")

CALL = """
import json, os, time, urllib.request
from urllib.error import HTTPError
def post(path, **body):
    data = json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(os.environ["EDGEBED_URL"] + path, data, method="POST")):
        pass
def told(what):
    print(what, time.monotonic(), flush=True)
"""
MEET = (
    CALL
    + """
for round in range(3):
    time.sleep(0.5 * int(os.environ["RANK"]))
    told(f"came {round}")
    post("/barriers/round")
    told(f"went {round}")
for step in range(200):
    post("/measures", loss=step)
try:
    post("/measures", los=1)
except HTTPError as error:
    print(error.code, error.read().decode())
"""
)
DIES = CALL + "post('/measures', point=1); time.sleep(60)"
MEASURES = Program(measures=(OutputMeasure(name="loss", pattern=""), OutputMeasure(name="point", pattern="")))


def test_a_barrier_holds_until_all_are_there_and_nothing_of_it_is_on_the_link(tmp_path: Path) -> None:
    """Nobody goes before the last has come, three times; what is told is journaled, and carried by no link."""
    trial = run(tmp_path, plan(nodes(python(MEET), python(MEET)), program=MEASURES))
    outputs = [trial.output(f"home-{k}") for k in range(2)]
    for number in range(3):
        came, went = (
            [float(re.search(rf"{what} {number} ([.0-9]+)", output)[1]) for output in outputs]
            for what in ("came", "went")
        )
        assert min(went) >= max(came)

    for k, output in enumerate(outputs):
        told = [record.measured for record in trial.all(records.Measured, f"home-{k}")]
        assert told == [{"loss": float(step)} for step in range(200)]
        assert "400 no measure 'los'; program.measures has: loss, point" in output
        assert trial.all(records.Usage, f"home-{k}")[-1].uplink_bytes < 10_000
        assert not trial.all(records.Bypass, f"home-{k}")
    assert trial.ended.outcome == "completed"


def test_a_fault_waits_for_a_point_that_a_program_tells(tmp_path: Path) -> None:
    """A point is a measure; the program is killed once it has told it."""
    kill = FaultPlan(
        name="kill-1",
        node="home-0",
        trigger=Trigger(at_measure=AtMeasure(measure="point", value=1)),
        steps=(FaultStep(after_s=0.0, injection=Injection(node="home-0", action="kill")),),
    )
    trial = run(tmp_path, plan(nodes(python(DIES)), program=MEASURES, faults=(kill,)))

    assert [record.action for record in trial.all(records.Fault)] == ["kill"]
    assert [record.signal for record in trial.exits("home-0")] == ["SIGKILL"]
