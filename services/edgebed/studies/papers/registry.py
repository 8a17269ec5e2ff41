"""The papers that can be reproduced: each is declared in `scenarios/<name>/paper.py`, beside its scenarios.

They are looked for in the current folder, then among those that come with edgebed. A paper elsewhere is named by its
import path, `package.module:NAME`.
"""

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from edgebed.core.errors import ScenarioError
from edgebed.core.imports import is_import_path, load_module, reason
from edgebed.core.package import SHIPPED
from edgebed.scenario.mistakes.problems import choose
from edgebed.studies.papers.paper import Paper
from edgebed.studies.papers.prose import with_prose

FILE = "paper.py"
NAME = "PAPER"


def papers() -> Mapping[str, Path]:
    """The folder of every paper there is, by name."""
    roots = dict.fromkeys(root / "scenarios" for root in (SHIPPED, Path.cwd()))
    return dict(sorted((path.parent.name, path.parent) for root in roots for path in root.glob(f"*/{FILE}")))


def find_paper(name: str) -> Paper:
    """The paper called `name`, or declared at that import path; ScenarioError with the papers there are."""
    there = papers()
    if not isinstance(name, str):
        raise ScenarioError(f"{name!r:.80} is no paper; {choose('', (*there, 'package.module:NAME'))}")
    if name in there:
        place, module, attribute = f"{there[name] / FILE}", _load(there[name]), NAME
    elif is_import_path(name):
        module_name, _, attribute = name.partition(":")
        place, module = name, load_module(name, module_name, (str(Path.cwd()),))
    else:
        raise ScenarioError(f"there is no paper '{name}'; {choose(name, (*there, 'package.module:NAME'))}")
    found = getattr(module, attribute, None)
    if not isinstance(found, Paper):
        declared = [key for key, value in vars(module).items() if isinstance(value, Paper)]
        has = f"it has {', '.join(declared)}" if declared else "it has none; see docs/reproducing.md"
        raise ScenarioError(f"{place}: there is no paper '{attribute}'; {has}")
    if found.mistakes:
        raise ScenarioError(*(f"{place}: {mistake}" for mistake in found.mistakes))
    prose = Path(module.__file__ or "").with_suffix(".md")
    return with_prose(found, prose) if prose.exists() else found


def module_of(folder: Path) -> str:
    """Name of a paper's module; those beside it are imported relative to it, e.g. `from .measures import …`."""
    return f"paper_{folder.name}"


def _load(folder: Path) -> ModuleType:
    """The module that declares a paper, a package of all files beside it; imported once."""
    name, file = module_of(folder), folder.resolve() / FILE
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(file):
        return known
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=[str(file.parent)])
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the paper's file has the user's own code
        del sys.modules[name]
        raise ScenarioError(f"{folder / FILE}: importing it failed: {reason(error)}") from error
    return module
