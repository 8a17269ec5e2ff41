"""The scenarios of programs that need nothing but torch and perl: each meets what it expects, as root."""

import json
import os
import sys
from pathlib import Path

import pytest
from warm_command import WarmCommand

from edgebed.core.package import SHIPPED
from edgebed.emulation.means import why_no_cgroups, why_no_namespaces

RECIPES = ("perl", "ring", "sockets")
LIMIT_S = 200.0


@pytest.mark.skipif(bool(why_no_namespaces() or why_no_cgroups()), reason="that takes root")
@pytest.mark.timeout(LIMIT_S + 30)
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_meets_what_it_expects(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through its faults, to its end, with the Python that has torch."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    scenario = SHIPPED / f"scenarios/programs/{name}.yaml"
    command = WarmCommand("run", str(scenario), "--runtime", "process", "--runs-dir", str(tmp_path), "--json")
    out, err = command.communicate(timeout=LIMIT_S)

    assert command.returncode == 0, err
    assert json.loads(out)["programs"]
