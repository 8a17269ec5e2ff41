"""Runs in MLflow, read by its own client from a file of SQLite."""

import shutil
import warnings

import pytest

import edgebed

pytest.importorskip("mlflow", reason="no mlflow: pip install 'edgebed[mlflow]'")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The address of an empty store, which is made once."""
    return f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/mlflow.db"


def tracked(store, name):
    """The client, and the runs in an experiment by the trial's tag."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mlflow.tracking import MlflowClient

        client = MlflowClient(tracking_uri=store)
    experiment = client.get_experiment_by_name(name)
    return client, {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}


@pytest.mark.slow
def test_trials_are_runs_of_the_scenario_s_experiment(root, export, store):
    """With their settings, their numbers, their curves and the report."""
    run = edgebed.load("plain", runs_dir=root)

    code, out, _ = export("plain", "--format", "mlflow", "--tracking-uri", store)
    client, found = tracked(store, "plain")

    assert (code, out) == (0, f"{store}: experiment plain: 2 runs written\n")
    assert set(found) == {"plain/0001 asgd", "plain/0001 adacomp"}
    for trial in run.trials.values():
        made, summary = found[f"plain/0001 {trial.name}"], trial.summary
        assert made.info.status == "FINISHED"
        assert made.data.params["method"] == trial.name
        assert (made.data.params["seed"], made.data.params["runtime"]) == ("3", "simulation")
        for name in ("updates", "ingress_bytes", "best_accuracy", "staleness_mean", "time_s"):
            assert made.data.metrics[name] == summary.value(name), name
        history = client.get_metric_history(made.info.run_id, "evaluation/accuracy")
        assert [metric.step for metric in history] == trial.series.evaluations.version.tolist()
        assert [metric.value for metric in history] == trial.series.evaluations.values.tolist()
        assert history[-1].timestamp - history[0].timestamp == pytest.approx(1000 * summary.time_s, abs=1)
        assert len(client.get_metric_history(made.info.run_id, "training/loss")) == summary.updates
        assert [file.path for file in client.list_artifacts(made.info.run_id)] == ["report.html"]
    assert found["plain/0001 adacomp"].data.params["method.compression.fraction"] == "0.1"
    assert "method.compression.fraction" not in found["plain/0001 asgd"].data.params
    assert not any(name.startswith(("task", "fleet")) for name in found["plain/0001 asgd"].data.params)


@pytest.mark.slow
def test_exporting_again_replaces_what_was_there(root, export, store, monkeypatch):
    """One trial of two, by the environment's address: the other one stays; nothing is there twice."""
    export("layers", "--format", "mlflow", "--tracking-uri", store)
    _, before = tracked(store, "layers")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)

    code, out, _ = export("layers", "--format", "mlflow")
    client, after = tracked(store, "layers")

    assert (code, out) == (0, f"{store}: experiment layers: 1 run written; 1 of an earlier export deleted\n")
    assert set(before) == set(after)
    ((name, old),) = before.items()
    assert after[name].info.run_id != old.info.run_id
    assert client.get_run(old.info.run_id).info.lifecycle_stage == "deleted"


@pytest.mark.slow
def test_a_run_that_broke_off_has_failed_there(root, export, store):
    """Its report is made for the purpose, and is not left in its folder."""
    run = edgebed.load("killed/2", runs_dir=root)

    assert export("killed/2", "--format", "mlflow", "--tracking-uri", store)[0] == 0
    client, found = tracked(store, "killed")

    (made,) = found.values()
    assert (made.info.status, made.data.tags["edgebed.outcome"]) == ("FAILED", "unfinished")
    assert made.data.metrics["updates"] == run.summary.trials[0].updates
    assert [file.path for file in client.list_artifacts(made.info.run_id)] == ["report.html"]
    assert not run.folder.report.exists()


def test_settings_that_were_set_are_parameters(root, export, store, tmp_path):
    """Though all trials have them in common."""
    copy = tmp_path / "plain" / "0001"
    shutil.copytree(root / "plain" / "0001", copy)
    manifest = copy / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"seed=3"', '"seed=3", "fleet.edge.count=3"'))

    export(copy, "--format", "mlflow", "--tracking-uri", store, "--trial", "asgd")
    _, found = tracked(store, "plain")

    assert found["plain/0001 asgd"].data.params["fleet.edge.count"] == "3"


@pytest.mark.parametrize(
    ("uri", "code", "reason"),
    [("sqlite:////there/is/none/mlflow.db", 2, "there is no folder"), ("strange://here", 3, "unsupported URI")],
    ids=["folder", "kind"],
)
def test_a_store_that_cannot_be_had_is_one_line(root, export, uri, code, reason):
    """It says which, and why."""
    left, out, error = export("plain", "--format", "mlflow", "--tracking-uri", uri)

    assert (left, out, error.count("\n")) == (code, "", 1)
    assert error.startswith("error: --tracking-uri: ")
    assert reason in error
