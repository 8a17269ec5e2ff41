"""The papers that can be reproduced, by name; a new one is a file beside this one and a line here.

A paper of one's own needs neither: it is named by its import path, `package.module:NAME`.
"""

from pathlib import Path

from edgebed.errors import ScenarioError
from edgebed.learning.imports import is_import_path, load_module
from edgebed.papers.paper import Paper
from edgebed.scenario.problems import choose

PAPERS = {
    name: f"edgebed.papers.{name}:PAPER" for name in ("chen2019", "edgify2019", "hardy2017", "tao2018", "tong2016")
}
"""Name -> where it is declared; imported when it is asked for."""


def find_paper(name: str) -> Paper:
    """The paper called `name`, or declared at that import path; ScenarioError with the papers there are."""
    place = PAPERS.get(name, name)
    if not is_import_path(place):
        raise ScenarioError(f"there is no paper '{name}'; {choose(name, (*PAPERS, 'package.module:NAME'))}")
    module_name, _, attribute = place.partition(":")
    module = load_module(place, module_name, (str(Path.cwd()),) if name == place else ())
    found = getattr(module, attribute, None)
    if not isinstance(found, Paper):
        papers = [key for key, value in vars(module).items() if isinstance(value, Paper)]
        has = f"it has {', '.join(papers)}" if papers else "it has none; see docs/reproducing.md"
        raise ScenarioError(f"{place}: module '{module_name}' has no paper '{attribute}'; {has}")
    if found.mistakes:
        raise ScenarioError(*(f"{place}: {mistake}" for mistake in found.mistakes))
    return found


def all_papers() -> tuple[Paper, ...]:
    """Every paper that comes with edgebed."""
    return tuple(find_paper(name) for name in PAPERS)
