"""Event files for TensorBoard, read by TensorBoard's own reader."""

import datetime as dt
import shutil

import numpy as np
import pytest

pytest.importorskip("tensorboardX", reason="no tensorboardX: pip install 'edgebed[tensorboard]'")
accumulator = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator",
    reason="no tensorboard to read with: pip install tensorboard",
)


def read(folder):
    """What TensorBoard shows of one trial."""
    found = accumulator.EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    found.Reload()
    return found


@pytest.mark.slow
def test_curves_are_those_of_the_trial(run, export, tmp_path):
    """Steps are updates, wall times the run's start and the time of training."""
    assert export(run.path, "--format", "tensorboard", "--output", tmp_path / "out")[0] == 0

    start_s = dt.datetime.fromisoformat(run.manifest["started"]).timestamp()
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(run.trials)
    for trial in run.trials.values():
        found = read(tmp_path / "out" / trial.name)
        summary, evaluations, updates = trial.summary, trial.series.evaluations, trial.series.updates
        accuracy = found.Scalars("evaluation/accuracy")
        assert [event.step for event in accuracy] == evaluations.version.tolist()
        assert max(event.value for event in accuracy) == np.float32(summary.best["accuracy"])
        np.testing.assert_allclose([event.wall_time for event in accuracy], start_s + evaluations.t, rtol=0, atol=1e-5)
        loss = found.Scalars("training/loss")
        np.testing.assert_array_equal([event.value for event in loss], updates.loss.astype(np.float32))
        rates = found.Scalars("training/updates_per_s")
        times = np.diff([start_s, *(event.wall_time for event in rates)])
        assert float(times @ [event.value for event in rates]) == pytest.approx(summary.updates, rel=1e-4)
        has_pushes = not summary.shards
        assert ("training/ingress_bytes" in found.Tags()["scalars"]) == has_pushes
        if has_pushes:
            assert found.Scalars("training/ingress_bytes")[-1].value == np.float32(updates.ingress_bytes[-1])
            staleness = [event.value for event in found.Scalars("training/staleness")]
            assert np.mean(staleness) == pytest.approx(summary.server.staleness_mean, rel=1e-6)


def test_the_scenario_is_there_as_a_text(root, export, tmp_path):
    """With the trial's name and seed."""
    export("plain", "--format", "tensorboard", "--output", tmp_path / "out", "--trial", "adacomp")

    assert [path.name for path in (tmp_path / "out").iterdir()] == ["adacomp"]
    (event,) = read(tmp_path / "out" / "adacomp").Tensors("scenario/text_summary")
    (text,) = event.tensor_proto.string_val
    assert text.startswith(b"plain/0001: adacomp (simulation, seed 3)\n")
    assert b"\n    name: plain\n" in text


def test_exporting_again_leaves_one_file_a_trial(root, export, tmp_path):
    """Of the trials of the last export; two files would be two curves in one."""
    out = tmp_path / "out"
    export("plain", "--format", "tensorboard", "--output", out)
    for path in out.glob("*/*"):
        shutil.move(path, path.with_name("events.out.tfevents.0000000001.elsewhere"))

    assert export("plain", "--format", "tensorboard", "--output", out, "--trial", "asgd")[0] == 0

    (path,) = out.rglob("events*")
    assert path.parent.name == "asgd"
    assert [folder.name for folder in out.iterdir()] == ["asgd"]
    assert "elsewhere" not in path.name
