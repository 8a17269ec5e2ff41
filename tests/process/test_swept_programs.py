"""A sweep of a program of the user's: each variant at each point is run for real, once."""

import sys
from pathlib import Path

import pytest

import edgebed
from edgebed.emulation import means
from edgebed.journal.run_folder import runs_of
from edgebed.reports.studies.study import RunOptions

APP = """
import os, socket
if os.environ["EDGEBED_CLASS"] == "hub":
    with socket.create_server(("", 8000)) as server:
        client, got = server.accept()[0], 0
        while data := client.recv(65536):
            got += len(data)
        print(f"got={got}")
else:
    with socket.create_connection(("hub-0", 8000)) as server:
        server.sendall(bytes(int(os.environ["SIZE"])))
"""
SCENARIO = """
name: swept
question: What does it take?
program: {{ files: app, run: "{python} app.py", measures: {{ got: 'got=([0-9]+)' }} }}
fleet:
  hub: {{ ready: {{ port: 8000 }} }}
  home: {{ downlink: 10mbit, after: hub }}
expect: {{ final_got: ">= 500000" }}
variants: {{ small: {{ program: {{ env: {{ SIZE: 1000 }} }} }}, large: {{ program: {{ env: {{ SIZE: 500000 }} }} }} }}
sweep: {{ over: {{ fleet.home.uplink: [10mbit, 2mbit] }} }}
"""


@pytest.mark.timeout(240)
def test_each_variant_is_run_at_each_point_once(tmp_path: Path) -> None:
    """What is there is not run again, but with other files of the user's; a program that fails is named."""
    if reason := means.why_no_namespaces() or means.why_no_cgroups():
        pytest.skip(f"{reason}; run the tests as root")
    scenario, app, runs = tmp_path / "swept.yaml", tmp_path / "app" / "app.py", tmp_path / "runs"
    app.parent.mkdir()
    app.write_text(APP)
    scenario.write_text(SCENARIO.format(python=sys.executable))
    resumed = RunOptions(resume=True, runs_dir=runs)

    first = edgebed.sweep(scenario, run_options=RunOptions(runs_dir=runs))
    points = first.result.points
    assert first.problems == ()
    assert [(each.point, each.run) for each in points] == [
        ("small, uplink 2mbit", "swept/0001"),
        ("large, uplink 2mbit", "swept/0002"),
        ("small, uplink 10mbit", "swept/0003"),
        ("large, uplink 10mbit", "swept/0004"),
    ]
    assert [each.summary.final["got"] for each in points] == [1000, 500_000, 1000, 500_000]
    assert [each.summary.met for each in points] == [False, True, False, True]
    assert points[1].summary.time_s >= 500_000 * 8 / 2e6, "its link carries no more"
    again = edgebed.sweep(scenario, run_options=resumed)
    assert (again.result, len(runs_of(runs, "swept"))) == (first.result, 4)
    assert first.page == runs / "sweeps" / "swept.html"

    app.write_text("raise SystemExit(3)")
    chosen = {"sweep.methods": ["large"], "sweep.over": {"fleet.home.uplink": ["2mbit"]}}
    broken = edgebed.sweep(scenario, set=chosen, run_options=resumed)
    assert [(each.run, each.summary.outcome) for each in broken.result.points] == [("swept/0005", "failed")]
    assert broken.problems[0].startswith("large, uplink 2mbit: ")
