"""The transformations that examples ask for, on arrays of (32, 32, 3) values in [0, 1]."""

from collections.abc import Callable, Sequence
from typing import Any

import torch


class ToTensor:
    """(H, W, C) -> (C, H, W)."""

    def __call__(self, image: Any) -> torch.Tensor:
        """Return it as a tensor."""
        return torch.as_tensor(image).permute(2, 0, 1).contiguous()


class Normalize:
    """Subtract the mean, divide by the deviation, each (C,)."""

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self.mean, self.std = (torch.tensor(each)[:, None, None] for each in (mean, std))

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        """Return it normalised."""
        return (image - self.mean) / self.std


class Compose:
    """One after the other."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, image: Any) -> Any:
        """Return what comes of it."""
        for transform in self.transforms:
            image = transform(image)
        return image
