"""Parts of a method that are the user's own: found by import path, checked, and watched while they work.

`package.module:Name` names what the module of a built-in part has as its `Compression`, `Aggregation`, `LocalWork` or
`Optimizer`, which is a class, or as its `rule` or `exchange`, which is a function. Its settings are a dataclass called
`Config`, an attribute of it or beside it in its module; without one it has no settings.

Whatever it raises, and whatever it returns that nobody could use, becomes an `OwnCodeError` that names the part, what
it was asked for and the line in the user's file. Who asked adds the step, and the runtime the node.
"""

import contextlib
import dataclasses
import functools
import inspect
import math
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from edgebed.algorithms.aggregator import Aggregator
from edgebed.algorithms.compressor import Compressor, Form, Piece
from edgebed.algorithms.descent import Descent
from edgebed.algorithms.exchange.exchanged import Exchanged
from edgebed.algorithms.layerwise.rule import Rule
from edgebed.algorithms.local_work.base import Done, LocalWork
from edgebed.algorithms.update import Applied, ModelUpdate
from edgebed.core import imports
from edgebed.core.errors import OwnCodeError, ScenarioError

CALLED = MappingProxyType(
    {
        "aggregation": "Aggregation",
        "compression": "Compression",
        "local_work": "LocalWork",
        "optimizer": "Optimizer",
        "learning": "rule",
        "exchange": "exchange",
    }
)
"""Kind -> what a built-in part's module calls that which does the work."""


SENT_AS = ("float32", "float16", "int8", "uint8", "int32", "int64")
"""Types that pieces travel as."""
_Checks = Mapping[str, Callable[..., str] | None]
"""Name of a method -> what says what is wrong with its result; None: nothing can be."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoSettings:
    """The settings of a part without a `Config`."""


def own_part(kind: str, name: str, python_path: Sequence[str] = ()) -> Any:
    """What a built-in part's module has, of the part that `name` names: its `Config`, and what does the work.

    ScenarioError where the module, the name or what stands there is not usable.
    """
    return _watched(kind, name, imports.resolve(name, python_path))


@functools.lru_cache(maxsize=256)
def _watched(kind: str, name: str, found: Any) -> SimpleNamespace:
    is_class = inspect.isclass(found)
    if kind in CLASSES:
        base, methods = CLASSES[kind]
        if not is_class or not issubclass(found, base):
            wanted = f"subclass of {base.__module__}.{base.__name__}"
            raise ScenarioError(f"{name}: not a {wanted}, as {_article(kind)} is; see docs/creating-a-method.md")
        made: Any = _watched_class(_Part(kind, name, found), methods)
    elif is_class:
        raise ScenarioError(f"{name}: a class, where {_article(kind)} is a function; see docs/creating-a-method.md")
    else:
        made = _Part(kind, name, found).guarded(found, FUNCTIONS[kind])
    note = getattr(sys.modules.get(found.__module__), "NOTE", "")
    return SimpleNamespace(**{"Config": _config_of(name, found), CALLED[kind]: made, "NOTE": note})


def _article(kind: str) -> str:
    text = kind.replace("_", " ")
    return f"{'an' if text[0] in 'aeiou' else 'a'} {text}"


def _config_of(name: str, found: Any) -> type:
    """The settings of a class, or of one that it is made from, or of a function."""
    for each in getattr(found, "__mro__", (found,)):
        config = getattr(each, "Config", None) or getattr(sys.modules.get(each.__module__), "Config", None)
        if config is None:
            continue
        if not (inspect.isclass(config) and dataclasses.is_dataclass(config)):
            raise ScenarioError(
                f"{name}: its Config is no dataclass; write @dataclass(frozen=True, kw_only=True) above"
            )
        return config
    return NoSettings


def _watched_class(part: "_Part", methods: "_Checks") -> type:
    """A class made from the user's, whose methods say whose they are where they fail."""
    found, body = part.found, {"__module__": part.found.__module__, "__doc__": part.found.__doc__}
    for method, check in {"__init__": None, **methods}.items():
        declared = inspect.getattr_static(found, method, None)
        if isinstance(declared, classmethod):
            body[method] = classmethod(part.guarded(declared.__func__, check))
        elif isinstance(declared, property):
            body[method] = property(part.guarded(declared.fget, check))
        elif inspect.isfunction(declared):
            body[method] = part.guarded(declared, check)
    if part.kind == "compression" and _maker(found, "compress") not in _maker(found, "forms").__mro__:
        body["forms"] = None  # they are said by a class that does not make what is sent
    return type(found.__name__, (found,), body)


def _maker(found: type, name: str) -> type:
    """The class, of those that one is made from, whose attribute of that name it has."""
    return next(each for each in found.__mro__ if name in vars(each))


class _Part(NamedTuple):
    """Whose a function is."""

    kind: str
    name: str
    found: Any

    def guarded(self, function: Any, check: Callable[..., str] | None) -> Callable[..., Any]:
        """Return the function, watched; `check` says what is wrong with a result, of what the function was given."""

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            try:
                result = function(*arguments, **named)
            except OwnCodeError:
                raise
            except (Exception, SystemExit) as error:
                message = " ".join(str(error).split())
                said = f"{type(error).__name__}: {message}" if message else type(error).__name__
                raise OwnCodeError(self._failed(function, said, error)) from error
            if check and (wrong := check(result, *arguments)):
                raise OwnCodeError(self._failed(function, wrong))
            return result

        return call

    def _failed(self, function: Any, said: str, error: BaseException | None = None) -> str:
        doing = "" if function is self.found else f" in {function.__name__}"
        return f"{self.kind.replace('_', ' ')} {self.name} failed{doing}: {said}{self._place(function, error)}"

    def _place(self, function: Any, error: BaseException | None) -> str:
        """The last line of the user's own that was gone through, else where the function or the class begins."""
        module = sys.modules.get(self.name.partition(".")[0].partition(":")[0])
        own = [Path(each) for each in getattr(module, "__path__", ())] or [
            Path(getattr(module, "__file__", None) or "")
        ]
        for frame in reversed(traceback.extract_tb(error.__traceback__) if error else ()):
            if any(Path(frame.filename).is_relative_to(place) for place in own):
                return f" ({frame.filename}:{frame.lineno})"
        with contextlib.suppress(TypeError):  # what is compiled is in no file
            file = inspect.getsourcefile(function) or ""
            if any(Path(file).is_relative_to(place) for place in own):
                return imports.begins(function)
        return imports.begins(self.found)


# --- what is wrong with what a part returns --------------------------------------------------------------------------


def _wrong_update(update: Any, size: int) -> str:
    """Say what is wrong with an array of n entries; empty: nothing is."""
    if not isinstance(update, ModelUpdate):
        return f"{_kind(update)}, where an Update is wanted"
    values: Any = update.values
    indices: Any = update.indices
    if update.size != size:
        return f"an update of a vector of {update.size}, not of {size}"
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        return f"values that are {_shape(values)}, not a flat array"
    if indices is None:
        return "" if len(values) == size else f"{len(values)} values without positions, of a vector of {size}"
    if not isinstance(indices, np.ndarray) or indices.shape != values.shape or indices.dtype.kind not in "iu":
        return f"positions that are {_shape(indices)}, for values that are {_shape(values)}"
    if len(indices) and (indices[0] < 0 or indices[-1] >= size or (np.diff(indices) <= 0).any()):
        return f"positions that are not strictly increasing from 0 to below {size}"
    return ""


def _wrong_pieces(result: Any, compressor: Compressor, *_: Any) -> str:
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[0], tuple):
        return f"returned {_kind(result)}, not (pieces, memory)"
    pieces = result[0]
    for piece in pieces:
        if not isinstance(piece, Piece) or not isinstance(piece.update, ModelUpdate):
            return f"returned {_kind(piece)} among the pieces, not a Piece with an Update"
        if wrong := _wrong_update(piece.update, piece.update.size) or _unsendable(piece.update):
            return f"returned a piece {piece.name!r} with {wrong}"
    names = tuple(piece.name for piece in pieces)
    if names != tuple(compressor.travels):
        said = ", ".join(compressor.travels)
        return f"returned the pieces {', '.join(names) or '(none)'}, where its `travels` says {said}"
    for piece, form in zip(pieces, compressor.forms or (), strict=False):
        update, is_sparse = piece.update, piece.update.indices is not None
        kind = update.values.dtype.name
        packed = piece.deflate and update.entries > 0
        if wrong := form.objection(update.size, kind, update.entries, is_sparse=is_sparse, is_packed=packed):
            return f"returned a piece {piece.name!r} other than its `forms` says: {wrong}"
    return ""


def _wrong_forms(result: Any, compressor: Compressor, *_: Any) -> str:
    if result is None:
        return ""
    if not isinstance(result, tuple) or not all(isinstance(form, Form) for form in result):
        return f"returned {_kind(result)}, neither None nor a tuple of Forms"
    names = tuple(form.name for form in result)
    return "" if names == tuple(compressor.travels) else f"returned forms of {', '.join(names)}, unlike its `travels`"


def _unsendable(update: ModelUpdate) -> str:
    values = update.values
    if values.dtype.name not in SENT_AS:
        return f"{values.dtype} values; what can be sent is {', '.join(SENT_AS)}"
    return "" if values.flags.c_contiguous else "values that do not lie one after the other; send a copy"


def _wrong_restored(result: Any, compressor: Compressor, *_: Any) -> str:
    wrong = _wrong_update(result, compressor.size)
    return f"returned {wrong}" if wrong else ""


def _wrong_applied(result: Any, aggregator: Aggregator, *_: Any) -> str:
    if result is not None and not isinstance(result, Applied):
        return f"returned {_kind(result)}, not an Applied or None"
    theta: Any = aggregator.theta
    if not isinstance(theta, np.ndarray) or theta.dtype != np.float32 or theta.ndim != 1:
        return f"left a model that is {_shape(theta)}, not flat float32"
    return ""


def _wrong_done(result: Any, work: Any, gradient: Any, vectors: Mapping[str, Any], *_: Any) -> str:
    if not isinstance(result, Done):
        return f"returned {_kind(result)}, not a Done of vectors, measures and memory"
    if not isinstance(result.vectors, dict) or result.vectors.keys() != vectors.keys():
        return f"returned vectors that are {_kind(result.vectors)}, not a dict of {', '.join(vectors)}"
    for name, given in vectors.items():
        vector = result.vectors[name]
        if not isinstance(vector, np.ndarray) or vector.shape != given.shape or vector.dtype != np.float32:
            return f"returned {name} as a vector that is {_shape(vector)}, not float32 {given.shape}"
    if not isinstance(result.measures, dict) or not isinstance(result.measures.get("loss"), float | np.floating):
        return "returned measures without the number `loss`"
    return ""


def _wrong_count(result: Any, *_: Any) -> str:
    return "" if isinstance(result, int) and result >= 1 else f"returned {result!r}, not a number from 1"


def _wrong_step(result: Any, descent: Descent, parameters: Any, *_: Any) -> str:
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], tuple):
        return f"returned {_kind(result)}, not (step, moments)"
    if len(result[1]) != descent.moments:
        return f"returned {len(result[1])} moments, where its `moments` says {descent.moments}"
    wrong = [each for each in (result[0], *result[1]) if getattr(each, "shape", None) != parameters.shape]
    return f"returned {_shape(wrong[0])}, not {tuple(parameters.shape)}" if wrong else ""


def _wrong_rule(result: Any, *_: Any) -> str:
    return "" if isinstance(result, Rule) else f"returned {_kind(result)}, not a Rule"


def _wrong_exchanged(result: Any, array: Any = None, *_: Any) -> str:
    if not isinstance(result, Exchanged):
        return f"returned {_kind(result)}, not an Exchanged"
    shape = getattr(array, "shape", result.shape)
    return "" if result.shape == shape else f"returned an array of shape {result.shape}, not {shape}"


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}" if value is not None else "None"


def _shape(value: Any) -> str:
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else _kind(value)


def _wrong_number(result: Any, *_: Any) -> str:
    is_number = isinstance(result, int | float) and not isinstance(result, bool) and 0 <= result < math.inf
    return "" if is_number else f"returned {result!r}, not a number from 0"


def _wrong_copies(result: Any, *_: Any) -> str:
    return "" if result is None else _wrong_number(result)


def _wrong_share(result: Any, *_: Any) -> str:
    return (
        ""
        if result is None or (isinstance(result, float) and 0 <= result <= 1)
        else (f"returned {result!r}, neither None nor a share from 0 to 1")
    )


CLASSES: Mapping[str, tuple[type, _Checks]] = {
    "compression": (
        Compressor,
        {
            "compress": _wrong_pieces,
            "restore": _wrong_restored,
            "forms": _wrong_forms,
            "copies": _wrong_number,
            "share": _wrong_share,
        },
    ),
    "aggregation": (
        Aggregator,
        {
            **dict.fromkeys(("push", "joined", "left", "expire"), _wrong_applied),
            **dict.fromkeys(("expected", "pulled", "late")),
            "together": _wrong_count,
            "holds": _wrong_number,
        },
    ),
    "local_work": (LocalWork, {"batches": _wrong_count, "run": _wrong_done, "copies": _wrong_copies}),
    "optimizer": (Descent, {"step": _wrong_step}),
}
"""Kind of a part that is a class -> what it is made from, and its methods with what may be wrong with their results."""
FUNCTIONS: Mapping[str, Callable[..., str]] = {"learning": _wrong_rule, "exchange": _wrong_exchanged}
"""Kind of a part that is a function -> the same of it."""
