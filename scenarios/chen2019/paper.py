"""Chen, Zhao, Li, Zhao 2019, Exploring the use of synthetic gradients for distributed deep learning, HotEdge.

The claims of the paper's section 4, and how runs of `scenarios/chen2019/` measure them.
"""

from edgebed.studies.papers.paper import Headline, Paper, read_as

from . import caps
from .accuracy import DESCENT, FIGURE, GREEDY, MODULES, TABLE
from .cells import CELLS
from .deployment import DEPLOYMENT, IN_CONTAINERS, LINKS

OF_MEAN, BY_DESCENT = "mean loss", "plain gradient descent"
COSTS = ("four-layers-gap", "eight-layers-gap", "vgg16-gap", "wider")

HEADLINES = (
    Headline(
        claim="Synthetic gradients cost 0.7 points with four layers, 6.8 with eight and 14.9 with sixteen",
        rows=(*COSTS, *(read_as(row, OF_MEAN) for row in COSTS)),
        chart="Eight layers as published",
        found="With 2,000 steps in the place of 500,000 they cost {four-layers-gap} with four layers and "
        "{eight-layers-gap} with eight. What the paper's modules are taught is not known: with the gradient of the "
        "mini-batch's mean loss it is {four-layers-gap:mean-loss} with four "
        "layers, {eight-layers-gap:mean-loss} with eight and {vgg16-gap:mean-loss} with "
        "sixteen.",
    ),
    Headline(
        claim="They learn more slowly than back-propagation, the deeper the slower",
        rows=(
            "slower-four-layers", "slower-eight-layers", "four-layers-sg-50000", "depth-slows",
            read_as("depth-slows", BY_DESCENT), read_as("more-modules-slower", "mean loss"),
        ),
        chart="Four layers as published",
        found="They are slower. With four layers 90 % takes {reaches-four-layers-sg} by Adam; the paper has "
        "more than 90 % after 50,000 steps. With eight it takes {depth-slows} as many, by plain gradient descent "
        "{depth-slows:plain-gradient-descent}.",
    ),
    Headline(
        claim="Four containers make 185 steps a second with synthetic gradients, one device by back-propagation 166",
        rows=(
            "faster-than-whole-1", "faster-than-whole", "faster-than-whole-0.7", "faster-than-whole-capped-0.7",
            "faster-of-cores", "faster-of-cores-without-modules",
        ),
        found="Four devices of a core each, as the paper has them, were not run: they take four cores. With 0.4 of a "
        "core it is the other way round, {faster-than-whole}. By a profile of each layer it would be "
        "{faster-of-cores} with a core each, as the paper has them, and {faster-of-cores-without-modules} if modules "
        "cost nothing.",
    ),
)  # fmt: skip

PAPER = Paper(
    name="chen2019",
    citation="Y. Chen, K. Zhao, B. Li, M. Zhao: Exploring the use of synthetic gradients for distributed deep learning "
    "across cloud and edge resources. 2nd USENIX Workshop on Hot Topics in Edge Computing (HotEdge), 2019.",
    text="""\
Models whose layers lie on different devices are trained on MNIST, by back-propagation or with synthetic gradients. The
paper trains for 500,000 steps; here it is less than one in a hundred of that, except where a row says more. What the
paper leaves open is read as follows.

- VGG16 has 64 to 512 filters in the paper, and modules of the same widths; here it has a quarter of all, 16 to 128, and
  dense layers of 1,024 units. Of four and eight layers the paper gives no width but the 64 that widths begin with; here
  they have half of that, 32 filters of 5x5, and dense layers of 256 units. All have batch normalisation.
- VGG16 takes images of 28x28 by pools that round up. Eight layers have pools after the first, third and fifth.
- A module has one hidden layer as wide as the layer that it stands after, sees the labels, and ends in a layer that is
  zero at first. It is taught the gradient that the shard above computes from its own prediction.
- The paper names no optimizer, and has its rate of 3e-5 "as suggested in the related work" (Jaderberg et al. 2017): it
  is read to be that work's Adam. Pixels are scaled to [0, 1].
- An accuracy is the highest of the evaluations of a run.
""",
    window=1,
    stated="Numbers of seeds, first readings and the rows that count were stated on 28 November 2026, when all runs "
    "had been made but those that were begun since.",
    cells=CELLS,
    tables=(TABLE, FIGURE, MODULES, DESCENT, GREEDY, DEPLOYMENT, LINKS, IN_CONTAINERS, caps.TABLE),
    headlines=HEADLINES,
)
