"""Scenarios by name: those in `scenarios/` of the current folder, and those that come with edgebed.

`faults/churn` and `scenarios/faults/churn.yaml` both name the file of that path, so that a command which names one of
edgebed's own works in any folder. A file that is there is always what its path says.
"""

from pathlib import Path

from edgebed.core.errors import ScenarioError
from edgebed.core.package import SHIPPED
from edgebed.scenario.mistakes.problems import choose
from edgebed.scenario.source import neighbours

FOLDER = "scenarios"
SUFFIXES = (".yaml", ".yml")


def scenario_file(given: object) -> Path:
    """Return the file that a user's path or name means; ScenarioError with the names there are for an unknown name.

    The path of a file that is not there, or cannot be looked for, is returned as it is: reading it says why.
    """
    if not isinstance(given, str | Path):
        allowed = "a file, the name of one that comes with edgebed, or a mapping with what a file would have"
        raise ScenarioError(f"{given!r:.80} is no scenario; give {allowed}")
    path = Path(given)
    try:
        return _found(path)
    except OSError:
        return path


def shipped_scenarios() -> list[str]:
    """Return the names of the scenarios that come with edgebed."""
    folder = SHIPPED / FOLDER
    return sorted(str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.yaml"))


def _found(path: Path) -> Path:
    if path.exists() and not path.is_dir():
        return path
    named = path if path.suffix in SUFFIXES else Path(FOLDER, f"{path}{SUFFIXES[0]}")
    for root in (Path(), SHIPPED):
        if named.parts[0] == FOLDER and (root / named).is_file():
            return root / named
    if path.suffix in SUFFIXES or path.exists():
        return path
    names = shipped_scenarios()
    meant = next((name for name in names if name.endswith(f"/{path}")), path)
    raise ScenarioError(
        f"{path}: there is no such file, nor a scenario of that name; {choose(meant, names)}{neighbours(path.parent)}"
    )
