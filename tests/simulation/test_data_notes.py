"""What there is to say of a data set is said wherever its results are read."""

from pathlib import Path

import edgebed
from edgebed.planning.planning import plan_trials
from edgebed.reports.plan.description import describe_plan
from edgebed.scenario.load import load_scenario

SETS = """
import numpy as np

from edgebed import DataSet

def told():
    x, y = np.eye(4, dtype=np.float32).repeat(5, axis=0), np.arange(4).repeat(5)
    return DataSet(train=(x, y), test=(x, y), outputs=4, note="unlike any <other>")
"""
SCENARIO = """
name: noted
task: { data: "notedsets:told", model: small, batch_size: 2 }
method: asgd
fleet: { edge: { count: 2 } }
stop: { updates: 2 }
"""


def test_plan_manifest_and_report_say_what_there_is_to_say_of_the_data(tmp_path: Path) -> None:
    """And nothing of data of which there is nothing to say."""
    (tmp_path / "notedsets.py").write_text(SETS)
    file = tmp_path / "noted.yaml"
    file.write_text(SCENARIO)
    (planned,) = plan_trials(load_scenario(file))
    noted, plain = (
        edgebed.run(file, runtime="simulation", processes=1, runs_dir=tmp_path / "runs", set=sets)
        for sets in ([], ["task.data=synthetic"])
    )

    assert "task.data: notedsets:told: unlike any <other>." in describe_plan(planned, runtime="simulation").warnings
    assert noted.manifest["data"] == {"notedsets:told": "unlike any <other>"}
    assert "unlike any &lt;other&gt;" in noted.folder.report.read_text()
    assert "data" not in plain.manifest
