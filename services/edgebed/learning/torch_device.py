"""Where torch computes: on the CPU, or in virtual time on the device that `$EDGEBED_TORCH_DEVICE` names.

Nodes of the live runtimes are the CPU's always: what their core takes is what is measured. In virtual time a device
takes what it takes by its plan, whatever computes. So an accelerator changes how soon a run is over, and the last bits
of its weights, as another torch or another kind of CPU does.
"""

import os

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edgebed.core.errors import ScenarioError

VARIABLE = "EDGEBED_TORCH_DEVICE"
CPU = "cpu"
SEED_MASK = 2**63 - 1


def chosen() -> str:
    """The torch device that the user chose, `cpu` or such as `cuda` or `cuda:1`, ready to compute the same each time.

    ScenarioError where torch has none of that name here.
    """
    name = os.environ.get(VARIABLE) or CPU
    if name == CPU:
        return name
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS may add up in another order
    try:
        torch.zeros(1, device=name)
    except Exception as error:
        raise ScenarioError(
            f"${VARIABLE}: torch {torch.__version__} has no device {name!r} here; allowed are cpu, and what this torch "
            f"was built for and finds, such as cuda or cuda:1 ({str(error).splitlines()[0]})"
        ) from error
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined] # it would cost time alone
    torch.backends.cudnn.allow_tf32 = False  # 10 bits of a product's 23 would be left
    return name


def describe(name: str) -> str:
    """The device as a manifest has it: the name that its maker gives it, where torch knows that."""
    return torch.cuda.get_device_name(name) if torch.device(name).type == "cuda" else name


def seed(name: str, key: int) -> None:
    """Seed what a model draws at random on this device."""
    if name == CPU:
        torch.default_generator.manual_seed(key & SEED_MASK)
    else:
        torch.manual_seed(key & SEED_MASK)


def own_tensor(array: NDArray[np.float32], name: str) -> Tensor:
    """A copy of an array on the device, so that no result depends on where in memory the array came to lie."""
    return torch.from_numpy(array).to(name, copy=True)


def to_numpy(tensor: Tensor) -> NDArray[np.float32]:
    """The tensor's values; on the CPU they are the tensor's own memory."""
    array: NDArray[np.float32] = tensor.detach().cpu().contiguous().numpy()
    return array
