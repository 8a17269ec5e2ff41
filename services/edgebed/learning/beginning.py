"""What a trial's nodes begin with: the model as its author's function makes it in the controller, and nowhere else.

So pretrained weights reach every node from one place: what is trained by way of the server, what is constant with a
node's data. What builds a model is imported with the first one: a scenario is refused without.
"""

import numpy as np
from numpy.typing import NDArray

from edgebed.core.plan import TrainingNode, TrainingPlan


class Beginning:
    """Initial model of one trial, and its constants."""

    def __init__(self, plan: TrainingPlan) -> None:
        """Build the model; ScenarioError if that fails."""
        from edgebed.learning import weights
        from edgebed.learning.models import registry as models

        self._task = plan.nodes[0].task
        self._model = models.initial_model(self._task, plan.seed)
        self.theta = weights.flat(self._model)
        """(n,) what is trained."""
        self._packed: dict[tuple[int, int] | None, NDArray[np.uint8]] = {}
        """Packed constants by (first layer, end), or of the whole model by None."""

    def constants(self, node: TrainingNode) -> NDArray[np.uint8]:
        """(c,) bytes of the constants that the node needs, as in weights.py; none for a node without layers."""
        if node.role not in ("worker", "evaluator"):
            return np.zeros(0, np.uint8)
        from edgebed.learning import weights
        from edgebed.learning.models.layers import joined, layers_of

        shard = node.shard
        layers = (shard.first, shard.end) if shard else None
        if layers not in self._packed:
            self._packed[layers] = weights.packed(
                joined(layers_of(self._task.model, self._model)[slice(*layers)]) if layers else self._model
            )
        return self._packed[layers]
