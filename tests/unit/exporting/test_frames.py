"""Runs as pandas' data frames, beside the CSV files of the same runs."""

import importlib.util

import pytest
from finished_runs import RISING, finished_run

import edgebed
from edgebed.exporting import csv_files
from edgebed.exporting.subjects import TABLES

NO_PANDAS = "no pandas: pip install 'edgebed[pandas]'"


@pytest.mark.parametrize("table", [table.name for table in TABLES])
def test_a_frame_is_the_csv_file(tmp_path, table):
    """The same columns, rows and values, whatever was not measured."""
    pandas = pytest.importorskip("pandas", reason=NO_PANDAS)
    run = finished_run(tmp_path / "runs", {"asgd": RISING, "adacomp": RISING})
    frame = edgebed.to_pandas(run, table)
    csv_files.write(run, list(run.trials.values()), tmp_path)
    file = tmp_path / f"{table}.csv"

    if file.exists():
        written = pandas.read_csv(file, dtype=frame.dtypes.to_dict(), keep_default_na=False, na_values=["", "nan"])
        cells, texts = (each.astype(object).where(each.notna() & (each != ""), None) for each in (frame, written))
        pandas.testing.assert_frame_equal(cells, texts)
    else:
        assert list(frame.columns)
        assert frame.empty


def test_trials_and_several_runs_have_their_rows_one_after_the_other(tmp_path):
    """By run and trial, as the first columns say."""
    pytest.importorskip("pandas", reason=NO_PANDAS)
    runs = [finished_run(tmp_path, {"asgd": RISING, "adacomp": RISING}, seed=seed) for seed in (1, 2)]
    frame = edgebed.to_pandas([runs[0].trials["asgd"], runs[1]], "evaluations")

    assert list(frame.groupby(["run", "trial"]).size()) == [4, 4, 4]
    assert list(frame["run"].unique()) == [run.folder.name for run in runs]
    assert frame["accuracy"].max() == RISING[-1]


def test_an_unknown_table_is_refused(tmp_path):
    """With those that there are."""
    pytest.importorskip("pandas", reason=NO_PANDAS)
    with pytest.raises(edgebed.ScenarioError, match=r"table: 'evaluation' is unknown; .*evaluations"):
        edgebed.to_pandas(finished_run(tmp_path, {"asgd": RISING}), "evaluation")


def test_without_pandas_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    """It is no dependency."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pandas" else find(name))
    with pytest.raises(edgebed.ScenarioError, match=r"pip install 'edgebed\[pandas\]'"):
        edgebed.to_pandas(finished_run(tmp_path, {"asgd": RISING}))
