"""What every local work says that it holds is what it was seen to hold, and what does not say it is measured."""

from typing import Any

import numpy as np
import pytest
from part_settings import variants

from edgebed.algorithms.local_work.trial import LARGE, copies_held
from edgebed.algorithms.registry import LOCAL_WORKS, configure
from edgebed.core.plan import Part
from edgebed.planning.memory import needs_of
from edgebed.planning.planning import plan_trials
from edgebed.scenario.load import load_scenario

SPARE = 0.1
"""Copies that may be said beside those that were seen."""
NUMBERS: dict[str, tuple[Any, ...]] = {
    "momentum": (0.0, 0.9), "proximal": (0.0, 0.1), "steps": (4, 6), "weight_decay": (0.1,), "clip_norm": (0.1,),
}  # fmt: skip
CASES = [(name, settings) for name in LOCAL_WORKS for settings in variants(LOCAL_WORKS[name].Config, NUMBERS)]
OWN = """
from edgebed.algorithms.local_work.base import LocalWork, one

class Hoards(LocalWork):
    def run(self, gradient, vectors, batches, memory, at):
        slope, loss = gradient(vectors["theta"], batches[0])
        held = [slope + each for each in range(7)]
        return one(held[0], loss)

class Remembers(LocalWork):
    def run(self, gradient, vectors, batches, memory, at):
        slope, loss = gradient(vectors["theta"], batches[0])
        return one(slope, loss, [slope + each for each in range(3)])

class Says(Hoards):
    copies = 2.5
"""


@pytest.mark.parametrize("has_buffers", [False, True])
@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_what_a_local_work_says_is_what_it_holds(name: str, settings: dict[str, Any], has_buffers: bool) -> None:
    """With every switch that it has, with buffers and without: `copies` is where that is said."""
    config = configure("local_work", Part(name=name, settings=settings))
    work = LOCAL_WORKS[name].LocalWork(config, np.arange(LARGE) < 5 if has_buffers else None)

    seen = copies_held(work, batch_size=2)

    assert seen <= work.copies + 0.01
    assert work.copies <= seen + SPARE


@pytest.mark.parametrize(("work", "copies"), [("Hoards", 7.0), ("Remembers", 6.0), ("Says", 2.5)])
def test_what_an_own_local_work_holds_counts(tmp_path, monkeypatch, work: str, copies: float) -> None:
    """In what a worker needs, with what it remembers and the next of that; measured where the work does not say it."""
    (tmp_path / "hoarding.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def model_bytes(name: str) -> int:
        scenario = {
            "name": "mem", "task": {"data": "digits", "model": "small", "batch_size": 4},
            "method": {"preset": "fedavg", "local_work": {"name": name}}, "fleet": {"edge": {"count": 1}},
            "stop": {"updates": 10}, "evaluation": {"every": "5 updates"},
        }  # fmt: skip
        (planned,) = plan_trials(load_scenario(scenario))
        return needs_of(planned)["edge-0"].parts["model"]

    more = model_bytes(f"hoarding:{work}") - model_bytes("gradient-step")

    assert more / (4 * 4_810) == pytest.approx(copies, abs=0.1)
