"""What of a module training changes, which travels, and what it does not, which every node is given once.

    trained    parameters that ask for a gradient; persistent floating-point buffers, such as running means
    constant   frozen parameters; all other buffers, such as masks, tables of positions and token numbers

Which persistent buffers training changes is found by training (`changed_by_training`); those that it leaves alone are
made constant when a task's model is built. A tensor that several places share is one, and stays shared. A whole number
by itself, such as batch normalisation's count of batches, is neither: each node counts for itself.
"""

from collections.abc import Container, Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from edgebed.learning.objectives.objective import called

MOVED = 0.01
"""How far parameters are moved to see which buffers follow them."""


class Weight(NamedTuple):
    """A parameter or buffer of a module."""

    name: str
    """Name as in torch's `state_dict`; the first of several."""
    tensor: Tensor
    places: list[tuple[nn.Module, str]]
    """Modules that have the tensor, and its name in each."""

    @property
    def is_parameter(self) -> bool:
        """Whether the tensor is a parameter; else it is a buffer."""
        return isinstance(self.tensor, nn.Parameter)

    @property
    def now(self) -> Tensor:
        """Return what is in the tensor's place: a module may put another one there while it computes."""
        found = getattr(*self.places[0])
        assert isinstance(found, Tensor)
        return found

    def put_back(self) -> None:
        """Put the tensor itself back, with the values of what is in its place."""
        if (now := self.now) is not self.tensor:
            self.tensor.copy_(now.detach())
            for owner, key in self.places:
                setattr(owner, key, self.tensor)


def trained(module: nn.Module) -> list[Weight]:
    """Return what training changes, in the order of the flat vector: module by module, parameters before buffers."""
    return [weight for weight in _weights(module) if _is_trained(weight)]


def constants(module: nn.Module) -> list[Weight]:
    """Return what training does not change, in the order of `trained`."""
    return [weight for weight in _weights(module) if not _is_trained(weight) and not _is_count(weight.tensor)]


def flat(module: nn.Module) -> NDArray[np.float32]:
    """Return the fresh (n,) vector of what is trained."""
    found: NDArray[np.float32] = torch.cat([each.tensor.detach().reshape(-1) for each in trained(module)]).numpy()
    return found


def fill(module: nn.Module, theta: NDArray[np.float32]) -> None:
    """Give the module this (n,) vector of what is trained. ValueError where it is another module's."""
    weights = trained(module)
    sizes = [weight.tensor.numel() for weight in weights]
    if theta.shape != (sum(sizes),):
        raise ValueError(f"weights of shape {theta.shape}, not ({sum(sizes)},)")
    for weight, piece in zip(weights, np.split(theta, np.cumsum(sizes))[:-1], strict=True):
        weight.tensor.data = torch.from_numpy(piece.copy()).view(weight.tensor.shape)


def packed(module: nn.Module) -> NDArray[np.uint8]:
    """Return (c,) bytes of the constants, one after the other; none where there are none."""
    return np.concatenate([np.zeros(0, np.uint8), *(_bytes(weight.tensor) for weight in constants(module))])


def unpack(module: nn.Module, data: NDArray[np.uint8]) -> None:
    """Give the module these (c,) constants. ValueError where they are those of a module with others."""
    weights = constants(module)
    sizes = [weight.tensor.nbytes for weight in weights]
    if data.shape != (sum(sizes),):
        raise ValueError(
            f"constants of {data.size} bytes for a model with {sum(sizes)}: it is built in another way here"
        )
    for weight, piece in zip(weights, np.split(data, np.cumsum(sizes))[:-1], strict=True):
        weight.tensor.data = torch.from_numpy(piece.copy()).view(weight.tensor.dtype).view(weight.tensor.shape)


def hold_constant(module: nn.Module, changing: Container[str]) -> list[tuple[nn.Module, str]]:
    """Make all buffers constant but the `changing` ones; return where those are that were not."""
    held = []
    for weight in trained(module):
        if not weight.is_parameter and weight.name not in changing:
            for owner, key in weight.places:
                owner.register_buffer(key, weight.tensor, persistent=False)
                held.append((owner, key))
    return held


def changed_by_training(module: nn.Module, inputs: Tensor | dict[str, Tensor]) -> dict[str, Weight]:
    """Return by name the persistent buffers that training changes, of any type; the module is used up.

    Some follow the inputs and some the parameters, so it computes twice, and the parameters move in between. Raises
    what the module raises.
    """
    buffers = _buffers(module)
    before = {name: _bytes(weight.tensor).copy() for name, weight in buffers.items()}
    if before:
        called(module.train(), inputs)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(MOVED)
        called(module, inputs)
    after = {name: _bytes(weight.tensor) for name, weight in _buffers(module).items()}
    return {name: weight for name, weight in buffers.items() if not np.array_equal(before[name], after[name])}


def _buffers(module: nn.Module) -> dict[str, Weight]:
    """Return the buffers that training may change: all persistent ones but the counts."""
    found = {weight.name: weight for weight in _weights(module) if _is_persistent(weight)}
    return {name: weight for name, weight in found.items() if not _is_count(weight.tensor)}


def _weights(module: nn.Module) -> Iterator[Weight]:
    found: dict[int, Weight] = {}
    for prefix, owner in module.named_modules():
        own = [
            *owner.named_parameters(recurse=False, remove_duplicate=False),
            *owner.named_buffers(recurse=False, remove_duplicate=False),
        ]
        for key, tensor in own:
            weight = found.setdefault(id(tensor), Weight(f"{prefix}.{key}" if prefix else key, tensor, []))
            weight.places.append((owner, key))
    return iter(found.values())


def _is_trained(weight: Weight) -> bool:
    if weight.is_parameter:
        return weight.tensor.requires_grad
    return weight.tensor.is_floating_point() and _is_persistent(weight)


def _is_persistent(weight: Weight) -> bool:
    """Whether a buffer is persistent; a parameter is none."""
    owner, key = weight.places[0]
    non_persistent = owner._non_persistent_buffers_set  # noqa: SLF001 - torch tells it nowhere else
    return not weight.is_parameter and key not in non_persistent


def _is_count(tensor: Tensor) -> bool:
    return tensor.dim() == 0 and not tensor.is_floating_point()


def _bytes(tensor: Tensor) -> NDArray[np.uint8]:
    """Return the bytes of a tensor's values, which are compared as they are: NaN is NaN."""
    found: NDArray[np.uint8] = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
    return found
