"""Exports of runs of programs: tables, curves, data frames."""

import csv
import io

import numpy as np
import pytest
from program_runs import finished_run

import edgebed
from edgebed.core.measures.trial import program_measures
from edgebed.exporting import csv_files
from edgebed.exporting.curves import curves_of
from edgebed.exporting.formats import export_files


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of two trials."""
    return finished_run(tmp_path_factory.mktemp("exported"), seed=3)


@pytest.fixture(scope="module")
def tables(run):
    """Its CSV files by name: a list of rows."""
    folder = export_files(run, list(run.begun.values()), "csv", None)
    assert all(csv_files.is_ours(path.relative_to(folder)) for path in folder.iterdir())
    return {path.stem: list(csv.DictReader(io.StringIO(path.read_text()))) for path in folder.iterdir()}


def test_the_trials_have_every_measure_of_the_programs(tables):
    """A row a trial, in the order of the run, with what programs told and what is known of all."""
    slow, fast = tables["trials"]
    names = list(program_measures(["loss", "step"]))

    assert [name for name in slow if name in names] == names
    assert (slow["final_loss"], slow["max_step"]) == (str(1 / 3 + 0.03), "2.0")
    assert (slow["traffic_bytes"], fast["traffic_bytes"]) == ("6500000", "12500000")
    assert (slow["restarts"], slow["exit_code"], slow["outcome"], slow["met"]) == ("1", "0", "completed", "true")


def test_measures_and_ends_have_a_row_each(tables):
    """What each node told, when; and each end of a program, in all its lives."""
    told = [
        row for row in tables["measures"] if (row["trial"], row["node"], row["measure"]) == ("slow", "home-1", "step")
    ]

    assert [(row["time_s"], row["value"]) for row in told] == [("1.0", "0.0"), ("2.0", "1.0"), ("3.0", "2.0")]
    assert [(row["node"], row["code"], row["signal"]) for row in tables["exits"] if row["trial"] == "fast"] == [
        ("home-1", "", "SIGKILL"), ("home-0", "0", ""), ("home-1", "0", ""),
    ]  # fmt: skip
    assert {"nodes", "faults", "links", "hosts", "connections"} < tables.keys()
    assert "evaluations" not in tables


def test_curves_have_a_point_for_each_number_that_was_told(run):
    """A tag a measure and node; a step is how often the node had told it."""
    curves = {curve.name: curve for curve in curves_of(run.begun["slow"].series)}

    assert list(curves) == ["told/loss/home-0", "told/loss/home-1", "told/step/home-0", "told/step/home-1"]
    assert np.array_equal(curves["told/step/home-0"].value, [0.0, 1.0, 2.0])
    assert np.array_equal(curves["told/step/home-0"].version, [1, 2, 3])


def test_data_frames_have_the_same_tables(run):
    """`to_pandas` gives each; a table that runs of programs have not is empty."""
    pytest.importorskip("pandas")

    assert list(edgebed.to_pandas(run)["restarts"]) == [1, 1]
    assert len(edgebed.to_pandas(run.begun["slow"], "measures")) == 12
    assert edgebed.to_pandas(run, "updates").empty
