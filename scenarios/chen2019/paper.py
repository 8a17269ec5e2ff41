"""Chen, Zhao, Li, Zhao 2019, Exploring the use of synthetic gradients for distributed deep learning, HotEdge.

The claims of the paper's section 4, and how runs of `scenarios/chen2019/` measure them.
"""

from edgebed.studies.papers.paper import Paper

from . import caps
from .accuracy import DESCENT, FIGURE, GREEDY, MODULES, TABLE
from .cells import CELLS
from .deployment import DEPLOYMENT, IN_CONTAINERS, LINKS

OF_MEAN, BY_DESCENT = "mean loss", "plain gradient descent"
COSTS = ("four-layers-gap", "eight-layers-gap", "vgg16-gap", "wider")


PAPER = Paper(
    name="chen2019",
    window=1,
    cells=CELLS,
    tables=(TABLE, FIGURE, MODULES, DESCENT, GREEDY, DEPLOYMENT, LINKS, IN_CONTAINERS, caps.TABLE),
)
