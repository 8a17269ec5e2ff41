"""The configuration of Prometheus, its recording rules and alerts, as `promtool` sees them."""

import subprocess
from pathlib import Path

import pytest
from real_prometheus import require_tools

CONFIGURATION = Path(__file__).parents[2] / "dashboards/prometheus/prometheus.yml"


@pytest.fixture(autouse=True)
def tools() -> None:
    """Promtool is here."""
    require_tools()


def test_promtool_accepts_the_configuration() -> None:
    """As strictly as it can."""
    checked = subprocess.run(
        ["promtool", "check", "config", "--lint=all", "--lint-fatal", CONFIGURATION],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_promtool_finds_that_every_rule_does_what_it_should() -> None:
    """Each alert fires when it should and not before; recorded values are those that were worked out by hand."""
    tests = sorted((Path(__file__).parent / "rules").glob("*.yml"))
    checked = subprocess.run(["promtool", "test", "rules", *tests], capture_output=True, text=True, check=False)

    assert len(tests) == 2
    assert checked.returncode == 0, checked.stdout + checked.stderr
