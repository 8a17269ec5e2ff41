"""A kind of fault that is the user's own: a class like that of a built-in one, found by its import path.

An entry has the import path where a built-in kind has its key: `{ mypackage.faults:Doze: edge-0, at: 30s }`. What it
does is in the plan, so no node has to have the class.
"""

import functools
import inspect
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field, create_model

from edgebed.core import imports
from edgebed.core.errors import ScenarioError
from edgebed.scenario.docstrings import attribute_docstrings
from edgebed.scenario.faults.settings.entry import FaultSection
from edgebed.scenario.mistakes.problems import Problem, Problems


class OwnKind(FaultSection):
    """What a kind is besides if it is the user's own."""

    path: ClassVar[str]
    """The import path, which is the key that holds its target."""


def own_kind(path: str, python_path: Sequence[str]) -> type[FaultSection]:
    """The kind at an import path, with that as its key; `Problems` where there is none that could be used."""
    try:
        found: Any = imports.resolve(path, python_path)
    except ScenarioError as error:
        raise Problems([Problem((path,), text, at_key=True) for text in error.problems]) from None
    if not inspect.isclass(found) or not issubclass(found, FaultSection) or not hasattr(found, "kind"):
        wanted = "a subclass of edgebed.scenario.faults.settings.entry.FaultSection with a `kind`"
        raise Problems([Problem((path,), f"{path}: not {wanted}; see docs/creating-a-fault.md", at_key=True)])
    if found.kind not in found.model_fields:
        missing = f"{path}: its kind is {found.kind!r}, and it has no such field for the target"
        raise Problems([Problem((path,), missing, at_key=True)])
    return _own_kind(path, found)


@functools.lru_cache(maxsize=64)
def _own_kind(path: str, found: Any) -> type[FaultSection]:
    kind = _renamed(path, found)
    kind.path = path
    return kind


def _renamed(path: str, found: Any) -> type[OwnKind]:
    """Return the class with its target written and read under the import path."""
    target = found.model_fields[found.kind]
    declared = Annotated[(target.annotation, *target.metadata)] if target.metadata else target.annotation
    fields: dict[str, Any] = {
        found.kind: (declared, Field(alias=path, description=attribute_docstrings(found).get(found.kind)))
    }
    return create_model(found.__name__, __base__=(found, OwnKind), __module__=found.__module__, **fields)
