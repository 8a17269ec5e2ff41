"""A task tried before anything starts: its model and its objective, with examples of each part of the data.

So an input outside the model's vocabulary, a loss that is no scalar, sums that cannot be added and measures without a
value are found where the user's code has them. Tried are the first and the last batch of each part, and the examples
whose whole numbers are the lowest and the highest.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.overrides import TorchFunctionMode

from edgebed.core import imports
from edgebed.core.errors import ScenarioError
from edgebed.core.measures.task import Sums, added
from edgebed.core.plan import Task
from edgebed.core.quantities import count_text
from edgebed.learning import weights
from edgebed.learning.allocator import EVALUATION_CHUNK
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.data_sets.examples import Examples
from edgebed.learning.inputs import batch_of
from edgebed.learning.models import registry as models
from edgebed.learning.models.token_models import TOKEN_MODELS
from edgebed.learning.network import plain_sum
from edgebed.learning.objectives.objective import Batch, Objective, Supervised, called
from edgebed.learning.objectives.registry import objective_of_task

Locating = Callable[[str], AbstractContextManager[None]]
"""A context that tells at which key of the scenario what fails in it was given."""
TRIED = 64
"""Examples that are tried at once, at most."""
DRAWS = 8
"""How often sums that are drawn at random are compared, at most."""
CLIENTS_TRIED = 32
"""Clients whose measures are tried each by itself, those with the fewest examples."""
FACTOR = 1.5
"""Within which sums that are drawn at random have to add up."""
DISTURBANCES = (0.1, 1.0, 10.0)
"""Deviations of what is added to a model's weights, so that measures that an untrained model has none of are tried."""
PARTS = {"train": "training", "validation": "validation", "test": "test"}
WITHIN_LOSS = {
    "classification": ("Softmax", "Sigmoid"), "multi-label": ("Sigmoid", "Softmax"), "next-token": ("Softmax",),
}  # fmt: skip
"""Modules that turn scores into probabilities, by the objectives whose loss does so itself."""
DRAWING = (
    "rand", "randn", "randint", "normal", "bernoulli", "poisson", "multinomial", "dropout", "uniform", "exponential",
    "log_normal", "cauchy", "geometric", "random",
)  # fmt: skip
"""Torch's functions that draw, those ending with `_like` or `_` too."""
DIFFERENCES = ("sub", "rsub", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
"""Torch's functions of outputs and targets that make a table of them where one has an axis more."""


def try_task(task: Task, data: DataSet, locating: Locating) -> str:
    """Return what there is to be warned of; "" if there is nothing.

    ScenarioError with the first thing that is wrong, and the user's line where code of the user's failed.
    """
    objective = objective_of_task(task)
    size = min(task.batch_size, TRIED)
    if task.model in TOKEN_MODELS:
        with locating("task.data"):
            _check_tokens(task, data)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        with locating("task.model"):
            model = models.build_for(task, with_weights=True)
        for which, part in data.parts.items():
            for told, places in _tried(part, size):
                where, batch = f"the {told} {PARTS[which]} examples", batch_of(task, part, places)
                with locating("task.model"):
                    _try_model(task, model.train(which == "train"), objective, batch, where)
                with locating("task.objective"):
                    if which == "train":
                        _try_loss(task, model, objective, batch, where)
                    else:
                        _sums_of(task, model, objective, batch, where)
        with locating("task.objective"):
            _check_values(task.objective.name, objective, _try_sums(task, model, objective, data.test))
            if imports.is_import_path(task.objective.name):
                _check_state(task, model, objective, data, size)
                _try_disturbed(task, model, objective, data.test)
        return _squashed(task, model, batch_of(task, data.train, slice(0, size)))


def _squashed(task: Task, model: torch.nn.Module, batch: Batch) -> str:
    """Say so where what the model gives comes from a module that its loss has in itself; "" if it does not."""
    kinds = WITHIN_LOSS.get(task.objective.name, ())
    if not kinds:
        return ""
    given: dict[str, list[torch.Tensor]] = {}
    hooks = [
        each.register_forward_hook(lambda module, _, found: given.setdefault(type(module).__name__, []).append(found))
        for each in model.modules()
        if type(each).__name__ in kinds
    ]
    with torch.no_grad():
        outputs = called(model, batch.inputs)
    for hook in hooks:
        hook.remove()
    last = next((kind for kind, found in given.items() if any(each is outputs for each in found)), "")
    return last and (
        f"{task.model} ends with {last}, which the loss of {task.objective.name} applies itself; leave it out, or the "
        "model learns slowly and its measures are not what they seem"
    )


def try_size(task: Task, data: DataSet, size: int) -> None:
    """ScenarioError where the model and its objective do not train on so few examples at once."""
    objective = objective_of_task(task)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        model, batch = models.build_for(task), batch_of(task, data.train, slice(0, size))
        try:
            _loss_of(objective, model, batch)
        except (Exception, SystemExit) as error:
            raise ScenarioError(
                f"{task.model}: a mini-batch has {count_text(size, 'example')}, and it does not train on so few "
                f"({error}). Give another batch_size, a higher min_examples, or a model without batch normalisation"
            ) from error


def try_clients(task: Task, examples: Examples, names: Sequence[str]) -> None:
    """ScenarioError where the measures have no values of a single client's examples."""
    assert examples.clients is not None
    objective = objective_of_task(task)
    found, sizes = np.unique(examples.clients[examples.clients >= 0], return_counts=True)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        model = models.build_for(task, with_weights=True)
        for client in found[np.argsort(sizes, kind="stable")][:CLIENTS_TRIED].tolist():
            whose = f"examples of client '{names[client]}' alone"
            batch = batch_of(task, examples, np.flatnonzero(examples.clients == client)[:EVALUATION_CHUNK])
            sums = _sums_of(task, model, objective, batch, f"the {whose}")
            _check_values(task.objective.name, objective, sums, f" of the {whose}")


def _check_tokens(task: Task, data: DataSet) -> None:
    """Check that a built-in model of tokens knows all of them."""
    for which, part in data.parts.items():
        tokens = part.inputs[""]
        lowest, highest = int(tokens.min()), int(tokens.max())
        if lowest < 0 or highest >= task.outputs:
            raise ScenarioError(
                f"{task.model}: the {PARTS[which]} inputs are tokens from {lowest} to {highest}; the model knows "
                f"{task.outputs}, numbered 0 to {task.outputs - 1}: those of the targets, or what a DataSet says by "
                "outputs="
            )


def _tried(part: Examples, size: int) -> Iterator[tuple[str, NDArray[np.int64] | slice]]:
    """Yield what is tried of a part, and where that is."""
    size = min(size, len(part))
    yield "first batch of the", slice(0, size)
    yield "last batch of the", slice(len(part) - size, len(part))
    whole = [array.reshape(len(part), -1) for array in part.inputs.values() if array.dtype == np.int64 and array.size]
    if whole:
        places = [place for array in whole for place in (array.min(axis=1).argmin(), array.max(axis=1).argmax())]
        yield "lowest and highest of the", np.unique(places)


def _try_model(task: Task, model: torch.nn.Module, objective: Objective, batch: Batch, where: str) -> None:
    try:
        with torch.no_grad():
            outputs = called(model, batch.inputs)
    except (Exception, SystemExit) as error:
        raise ScenarioError(
            f"{task.model}: it does not take {where}, {_arrays(batch.inputs)}: {imports.reason(error, model.forward)}"
        ) from error
    expected = objective.shape(task.outputs, task.targets) if isinstance(objective, Supervised) else None
    found = tuple(outputs.shape) if isinstance(outputs, torch.Tensor) else None
    if expected is None or found == (batch.size, *expected) or (expected == (1,) and found == (batch.size,)):
        return
    got = _kind(outputs) if found is None else f"shape {found}"
    at = imports.begins(imports.resolve(task.model)) if imports.is_import_path(task.model) else ""
    raise ScenarioError(
        f"{task.model}: for {batch.size} examples the model gives {got}, where {task.objective.name} needs "
        f"{(batch.size, *expected)}{at}"
    )


def _try_loss(task: Task, model: torch.nn.Module, objective: Objective, batch: Batch, where: str) -> None:
    name, at = task.objective.name, _at(objective, "loss")
    try:
        with _NoTable(batch.size):
            loss: Any = _loss_of(objective, model, batch)
    except (Exception, SystemExit) as error:
        told = imports.reason(error, _method(objective, "loss"))
        raise ScenarioError(f"{name}: it fails at the loss of {where}, {_given(task, batch)}: {told}") from error
    if not isinstance(loss, torch.Tensor) or loss.ndim or not loss.is_floating_point():
        got = f"{loss.dtype} of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else _kind(loss)
        raise ScenarioError(f"{name}: its loss is {got}; return a tensor of one number, the mean over the batch{at}")
    if not loss.requires_grad:
        raise ScenarioError(
            f"{name}: its loss does not depend on the model's parameters, so there is nothing to learn; compute it of "
            f"the outputs, without item(), detach(), argmax() or numpy{at}"
        )
    parameters = [each for each in weights.trained(model) if each.is_parameter]
    try:
        gradients = torch.autograd.grad(loss, [each.tensor for each in parameters], materialize_grads=True)
    except (Exception, SystemExit) as error:
        told = imports.reason(error, _method(objective, "loss"))
        raise ScenarioError(f"{name}: its loss has no gradient: {told}") from error
    broken = [each.name for each, of in zip(parameters, gradients, strict=True) if not of.isfinite().all()]
    if not loss.isfinite() or broken:
        what = f"loss of {where} is {loss.item():g}" if not loss.isfinite() else (
            f"gradient of {where} is not finite at '{broken[0]}'"
        )  # fmt: skip
        raise ScenarioError(
            f"{name}: its {what} before anything is learnt; look for a logarithm or a root of 0 or less, a division "
            f"by 0, and inputs or targets that are large{at}"
        )
    if imports.is_import_path(name):
        _check_mean(name, model, objective, batch, at)


def _check_mean(name: str, model: torch.nn.Module, objective: Objective, batch: Batch, at: str) -> None:
    """Check that the loss of examples that are all there twice is not twice as large, if it has a loss of these."""
    draws = _Draws()
    try:
        with torch.no_grad(), draws:
            once = float(_loss_of(objective, model, batch))
            draws.again()
            twice = float(_loss_of(objective, model, _doubled(batch)))
    except (Exception, SystemExit):  # noqa: BLE001 # the examples of a batch, or their number, may mean something
        return
    if once and math.isclose(twice, 2 * once, rel_tol=1e-3):
        raise ScenarioError(
            f"{name}: its loss is a sum: of a batch of the same examples twice it is twice as large; return the mean "
            f"over the batch, so that a learning rate means the same with any batch size{at}"
        )


class _Draws(TorchFunctionMode):
    """Remembers what torch draws; from `again` on it gives that once more, twice where twice as many are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[torch.Tensor] = []
        self.place: int | None = None

    def again(self) -> None:
        """Begin to give what was drawn."""
        self.place = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call torch's function."""
        found = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name.removesuffix("_like").strip("_") not in DRAWING or not isinstance(found, torch.Tensor):
            return found
        if self.place is None:
            self.drawn.append(found.clone())
        elif self.place < len(self.drawn):
            given, self.place = self.drawn[self.place], self.place + 1
            if given.ndim and found.shape == (2 * len(given), *given.shape[1:]):
                given = torch.cat((given, given))
            return found.copy_(given) if found.shape == given.shape else found
        return found


def _loss_of(objective: Objective, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
    """Return the loss as training has it computed, with what torch draws at random the same each time."""
    torch.default_generator.manual_seed(0)
    return objective.loss(model.train(), batch)


def _check_state(task: Task, model: torch.nn.Module, objective: Objective, data: DataSet, size: int) -> None:
    """Check that a call of the objective does not depend on the calls before: each process makes others."""
    name, at = task.objective.name, imports.begins(type(objective))
    train, test = (batch_of(task, part, slice(0, min(size, len(part)))) for part in (data.train, data.test))
    found, kept = [], []
    for _ in range(2):
        buffers = [(each, each.tensor.clone()) for each in weights.trained(model) if not each.is_parameter]
        with torch.no_grad():
            loss = float(_loss_of(objective, model, train))
            for each, before in buffers:
                each.put_back()
                each.tensor.copy_(before)
        values = _check_values(name, objective, _sums_of(task, model, objective, test, "test examples"))
        found.append({"loss": loss, **{f"measure '{key}'": value for key, value in values.items()}})
        kept.append(_kept(objective))
    for key, first in found[0].items():
        if not np.isclose(first, found[1][key], rtol=1e-5, equal_nan=True):
            raise ScenarioError(
                f"{name}: its {key} of the same examples is {first:g}, and then {found[1][key]:g}, though torch is "
                f"seeded alike; draw by torch alone, and keep nothing from call to call{at}"
            )
    if changed := [key for key, value in kept[1].items() if value != kept[0].get(key)]:
        raise ScenarioError(
            f"{name}: each call of it changes its '{changed[0]}'. Several processes have an objective each, of which "
            "each makes other calls: keep what follows from the settings alone, such as a table that is made "
            f"once{at}"
        )


def _kept(objective: Objective) -> dict[str, str]:
    """What an objective and its own classes keep, by name."""
    kinds = type(objective).__mro__
    own = [each for each in kinds if not f"{each.__module__}.".startswith(("edgebed.", "builtins.", "abc."))]
    all_kept = [item for of in (*reversed(own), objective) for item in vars(of).items()]
    return {key: _text_of(value) for key, value in all_kept if not key.startswith(("__", "_abc_"))}


def _text_of(value: Any) -> str:
    """What is in a value, as far as numbers, containers, modules and generators go."""
    match value:
        case torch.Tensor() | np.ndarray():
            return np.asarray(value.detach().cpu() if isinstance(value, torch.Tensor) else value).tobytes().hex()
        case torch.nn.Module():
            return _text_of(dict(value.state_dict()))
        case torch.Generator():
            return _text_of(value.get_state())
        case np.random.Generator():
            return str(value.bit_generator.state)
        case dict():
            return str([(_text_of(key), _text_of(each)) for key, each in value.items()])
        case list() | tuple():
            return str([_text_of(each) for each in value])
        case _:
            return repr(value)


class _NoTable(TorchFunctionMode):
    """Refuses to take (B,) targets from (B, 1) outputs, or the other way around, which is a table of (B, B)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.shapes = [(size,), (size, 1)]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call torch's function."""
        pair = [each for each in args[:2] if isinstance(each, torch.Tensor)]
        if getattr(func, "__name__", "").strip("_") in DIFFERENCES and len(pair) == 2:
            shapes, size = [tuple(each.shape) for each in pair], self.shapes[0][0]
            if size > 1 and sorted(shapes) == self.shapes and pair[0].requires_grad != pair[1].requires_grad:
                raise ScenarioError(
                    f"the difference of shapes {shapes[0]} and {shapes[1]} has {size} x {size} numbers, not {size}; "
                    "bring both to one shape, e.g. outputs[:, 0]"
                )
        return func(*args, **(kwargs or {}))


def _try_sums(task: Task, model: torch.nn.Module, objective: Objective, examples: Examples, of: str = "") -> Sums:
    """Check that sums can be added, and that the measures have values of them, by the model `of` other weights."""
    name, at = task.objective.name, _at(objective, "sums")
    half = min(len(examples), 2 * TRIED) // 2
    cuts = [slice(0, half), slice(half, 2 * half)] if half else [slice(0, 1)]

    def drawn(seed: int) -> list[Sums]:
        batches = (batch_of(task, examples, cut) for cut in (*cuts, slice(0, cuts[-1].stop)))
        return [_sums_of(task, model, objective, batch, "test examples", seed) for batch in batches]

    *parts, whole = first = drawn(0)
    if len({tuple(sorted(each)) for each in first}) > 1:
        others = ", ".join(sorted(set().union(*first) - set(whole).intersection(*parts)))
        raise ScenarioError(f"{name}: its sums have other names for other batches: {others}{at}")
    for key, (value, _) in whole.items():
        if any(np.shape(part[key][0]) != np.shape(value) for part in parts):
            told = f"{half} examples has shape {np.shape(parts[0][key][0])}, that of {2 * half} {np.shape(value)}"
            raise ScenarioError(f"{name}: its sum '{key}' of {told}; add up over the examples: .sum(){at}")
    again = drawn(1)
    is_drawn = any(not np.array_equal(again[0][key][0], parts[0][key][0], equal_nan=True) for key in whole)
    draws = [first, again, *(drawn(seed) for seed in range(2, DRAWS))] if is_drawn else [first]
    total = added(parts)
    for key, (value, weight) in whole.items():
        of_parts, of_weights = total[key]
        if not _add_up(draws, key):
            raise ScenarioError(
                f"{name}: its sum '{key}' does not add up: {len(cuts)} batches give {_told(of_parts)} with weight "
                f"{of_weights:g}, and one of all their examples {_told(value)} with weight {weight:g}{of}; return the "
                f"sum over the examples, not their mean, and as weight their number{at}"
            )
    return whole


def _add_up(draws: list[list[Sums]], key: str) -> bool:
    """Whether a sum of batches, and its weight, are those of all their examples, of which each draw has the last.

    One draw alone is exact but for rounding in single precision; of several some are about so.
    """
    pairs = [[np.array([each[key][k] for each in draw], np.float64) for draw in draws] for k in range(2)]
    with np.errstate(all="ignore"):
        if len(draws) == 1:
            weight = float(pairs[1][0][-1])
            return all(
                np.allclose(each[:-1].sum(axis=0), each[-1], rtol=0.0, equal_nan=True,
                            atol=1e-3 * np.abs(each[:-1]).sum(axis=0) + floor)
                for (each,), floor in zip(pairs, (1e-7 * abs(weight), 0.0), strict=True)
            )  # fmt: skip
        for of_draws in pairs:
            ratios = [
                np.linalg.norm(each[:-1].sum(axis=0)) / np.linalg.norm(each[-1]) for each in of_draws if each[-1].any()
            ]
            if ratios and (min(ratios) > FACTOR or max(ratios) < 1.0 / FACTOR):
                return False
    return True


def _try_disturbed(task: Task, model: torch.nn.Module, objective: Objective, examples: Examples) -> None:
    """Try the sums of models whose weights are more and more disturbed, by the same draws each time."""
    generator = torch.Generator().manual_seed(0)
    for deviation in DISTURBANCES:
        with torch.no_grad():
            for each in weights.trained(model):
                if each.is_parameter:
                    each.tensor.add_(torch.randn(each.tensor.shape, generator=generator), alpha=deviation)
        try:
            with np.errstate(all="ignore"):
                sums = _sums_of(task, model, objective, batch_of(task, examples, slice(0, 2 * TRIED)), "")
        except ScenarioError:  # outputs may be as large as none that training makes
            return
        if not all(np.isfinite(value).all() for value, _ in sums.values()):
            return
        _try_sums(task, model, objective, examples, f", by a model with {deviation:g} x N(0, 1) added to its weights")


def _check_values(name: str, objective: Objective, sums: Sums, of: str = "") -> dict[str, float]:
    """Return the values of the measures; those that are not finite are a matter of a model that has learnt nothing."""
    at = _at(objective, "values")
    try:
        values: Any = objective.values(sums)
    except ScenarioError as error:
        raise ScenarioError(*(f"{name}: {problem}{_at(objective, 'sums')}" for problem in error.problems)) from error
    except (Exception, SystemExit) as error:
        told = imports.reason(error, type(objective).values)
        hint = f". {PLAIN_SUMS}" if isinstance(error, TypeError | AttributeError) else ""
        raise ScenarioError(f"{name}: its values cannot be made of its sums{of}: {told}{hint}") from error
    declared = [each.name for each in objective.measures]
    if missing := [each for each in declared if each not in values] if isinstance(values, dict) else []:
        at = _at(objective, "sums")
        raise ScenarioError(
            f"{name}: `sums` has no '{missing[0]}', of which the measure '{missing[0]}' is the mean, and `values` does "
            f"not make it of others{at}"
        )
    if not isinstance(values, dict) or sorted(map(str, values)) != sorted(declared):
        got = ", ".join(map(str, values)) or "nothing" if isinstance(values, dict) else _kind(values)
        raise ScenarioError(
            f"{name}: its values are {got}; return a dict with a number for each of {', '.join(declared)}{at}"
        )
    found: dict[str, float] = {}
    for each in objective.measures:
        try:
            found[each.name] = value = float(values[each.name])
        except (TypeError, ValueError, RuntimeError):
            raise ScenarioError(f"{name}: its {each.name} is {_kind(values[each.name])}, not a number{at}") from None
        if each.is_share and not (0.0 <= value <= 1.0 or math.isnan(value)):
            raise ScenarioError(
                f"{name}: its {each.name} is {value:g}, and a share is from 0 to 1; leave out unit='share', or divide "
                f"by what it is a share of{at}"
            )
        if math.isnan(value) and not of and not sums.get(each.name, (0.0, 1.0))[1]:
            at = _at(objective, "sums")
            raise ScenarioError(f"{name}: its sum '{each.name}' has weight 0; give the number of examples{at}")
    return found


def _sums_of(task: Task, model: torch.nn.Module, objective: Objective, batch: Batch, where: str, seed: int = 0) -> Sums:
    name, at = task.objective.name, _at(objective, "sums")
    try:
        with torch.inference_mode():
            torch.default_generator.manual_seed(seed)
            sums: Any = objective.sums(model.eval(), batch)
    except (Exception, SystemExit) as error:
        told = imports.reason(error, _method(objective, "sums"))
        raise ScenarioError(f"{name}: it fails at the sums of {where}, {_given(task, batch)}: {told}") from error
    if not isinstance(sums, dict):
        raise ScenarioError(f"{name}: its sums are {_kind(sums)}; return a dict of names, each with {PAIR}{at}")
    found: Sums = {}
    for key, pair in sums.items():
        try:
            total, weight = pair if isinstance(pair, tuple | list) else ()
            found[key] = plain_sum(total), float(weight)
        except (TypeError, ValueError, RuntimeError):
            raise ScenarioError(f"{name}: its sum '{key}' is {_kind(pair)}; give {PAIR}{at}") from None
    return found


PLAIN_SUMS = "Sums are floats and numpy's arrays here, no tensors: compute with math and numpy"
PAIR = "a pair of the sum and its weight, e.g. (errors.sum(), len(targets))"


def _method(objective: Objective, which: str) -> Callable[..., Any]:
    """The method that an author writes for its loss or its sums."""
    of_outputs = f"{which}_of" if isinstance(objective, Supervised) else which
    found: Callable[..., Any] = getattr(type(objective), of_outputs, getattr(type(objective), which))
    return found


def _at(objective: Objective, which: str) -> str:
    """The line where a method of the user's begins, in brackets; "" for what comes with edgebed."""
    function = _method(objective, which)
    return "" if function.__module__.startswith("edgebed.") else imports.begins(function)


def _kind(value: Any) -> str:
    """What something is, in words."""
    kind = type(value).__name__
    of = f" of {len(value)}" if isinstance(value, tuple | list) else ""
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}{of}"


def _told(value: Any) -> str:
    """A sum as messages show it."""
    return f"{float(value):.6g}" if not np.shape(value) else f"numbers from {np.min(value):.6g} to {np.max(value):.6g}"


def _given(task: Task, batch: Batch) -> str:
    """What an objective is given."""
    return f"with {task.model} and targets {_arrays(batch.targets)}"


def _arrays(given: torch.Tensor | dict[str, torch.Tensor]) -> str:
    """Inputs or targets of a batch, e.g. `int64 (8, 5) from 0 to 6`."""
    by_name = given if isinstance(given, dict) else {"": given}
    return (
        ", ".join(
            f"{name} {str(x.dtype).removeprefix('torch.')} {tuple(x.shape)}".strip()
            + (f" from {x.min():g} to {x.max():g}" if x.numel() and x.dtype != torch.bool else "")
            for name, x in by_name.items()
        )
        or "none"
    )


def _doubled(batch: Batch) -> Batch:
    """The examples of a batch, all of them twice."""

    def doubled(given: torch.Tensor | dict[str, torch.Tensor]) -> torch.Tensor | dict[str, torch.Tensor]:
        if isinstance(given, dict):
            return {name: torch.cat((each, each)) for name, each in given.items()}
        return torch.cat((given, given))

    return Batch(doubled(batch.inputs), doubled(batch.targets), 2 * batch.size)
