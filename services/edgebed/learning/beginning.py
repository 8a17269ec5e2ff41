"""What a trial's nodes begin with: the model as its author's function makes it in the controller, and nowhere else.

So pretrained weights reach every node from one place: what is trained by way of the server, what is constant with a
node's data.
"""

import numpy as np
from numpy.typing import NDArray

from edgebed.learning import models, weights
from edgebed.learning.layers import joined, layers_of
from edgebed.scenario.plan import NodePlan, Plan


class Beginning:
    """Of one trial."""

    def __init__(self, plan: Plan) -> None:
        """ScenarioError if the model cannot be built."""
        self._task = plan.nodes[0].task
        self._model = models.initial_model(self._task, plan.seed)
        self.theta = weights.flat(self._model)
        """(n,) what is trained."""
        self._packed: dict[tuple[int, int] | None, NDArray[np.uint8]] = {}
        """By first layer and end, or of the whole model."""

    def constants(self, node: NodePlan) -> NDArray[np.uint8]:
        """(c,) bytes of those that the node needs, as in weights.py; none for a node without layers."""
        if node.role not in ("worker", "evaluator"):
            return np.zeros(0, np.uint8)
        layers = (node.shard.first, node.shard.end) if node.shard else None
        if layers not in self._packed:
            self._packed[layers] = weights.packed(
                joined(layers_of(self._task.model, self._model)[slice(*layers)]) if layers else self._model
            )
        return self._packed[layers]
