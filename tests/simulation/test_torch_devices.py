"""Whole runs on every torch device that there is."""

from pathlib import Path

import pytest
import torch

import edgebed
from edgebed.learning import torch_device

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("preset", ["asgd", "synthetic-gradients", "decoupled-greedy"])
def test_a_run_names_its_device_and_repeats_there(
    preset: str, device: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same journal, and in the manifest what computed where that was not the CPU."""
    monkeypatch.setenv(torch_device.VARIABLE, device)
    shards = {} if preset == "asgd" else {"shards": {"cuts": "even"}}
    given = {
        "name": "device",
        "task": {"data": "synthetic", "model": "four-layer"},
        "method": {"preset": preset},
        "fleet": {"edge": {"count": 2}},
        "stop": {"updates": 20},
        **shards,
    }
    runs = [edgebed.run(given, runtime="simulation", runs_dir=tmp_path) for _ in range(2)]

    engine = None if device == "cpu" else {"torch_device": torch_device.describe(device)}
    assert runs[0].folder.read_manifest().get("engine") == engine
    first, second = (run.folder.trial(preset).journal.read_bytes() for run in runs)
    assert first == second
