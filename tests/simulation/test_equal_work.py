"""scenarios/federated/equal-work.yaml: gradients and averaged models go through as many examples."""

from pathlib import Path

import pytest
from quick_runs import run as run_quickly

pytestmark = pytest.mark.simulation

SCENARIO = Path(__file__).parents[2] / "scenarios/federated/equal-work.yaml"


def test_both_go_through_as_many_examples_and_averaging_sends_less(tmp_path: Path) -> None:
    """An update of averaging is a worker's whole pass, and a round of four is four of them."""
    run = run_quickly(SCENARIO, runtime="simulation", runs_dir=tmp_path)
    gradients, averages = (run.trials[name].summary for name in ("gradients", "averages"))

    assert run.exit_code == 0
    assert (gradients.updates, gradients.examples_per_update) == (1440, 10)
    assert (averages.updates, averages.examples_per_update) == (40, 359.5)  # of four, two have 359
    assert averages.server.ingress_bytes * 30 < gradients.server.ingress_bytes
