"""Loss of scores that training minimises, as the task names it.

Shapes: B examples, K classes.
"""

import torch.nn.functional as F  # noqa: N812  # the name everybody knows it by
from torch import Tensor

from edgebed.core.plan import Loss


def loss_of(loss: Loss, scores: Tensor, labels: Tensor, *, summed: bool = False) -> Tensor:
    """Return the mean over the examples of (B, K) scores' loss, or its sum.

    `squared` is the squared distance of the softmax from the label as zeros and a one, from 0 to 2: Tong et al. 2016,
    Layer-wise asynchronous training of neural networks with synthetic gradients, as their programs have it.
    """
    if loss == "cross-entropy":
        return F.cross_entropy(scores, labels, reduction="sum" if summed else "mean")
    wanted = F.one_hot(labels, scores.shape[1]).to(scores.dtype)
    total = (scores.softmax(dim=1) - wanted).square().sum()
    return total if summed else total / len(scores)
