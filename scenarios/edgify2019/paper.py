"""Edgify.ai 2019, Distributed training on edge devices: communication compression, a blog post.

The post's claims, computed from encoded vectors (rates.py, totals.py) and rounded weights (weights.py), or measured in
runs of `scenarios/edgify2019/` (accuracy.py, containers.py, network.py). Its tables are lost; where a row has a value
from one of them, it follows from the post's words.
"""

from edgebed.studies.papers.paper import Headline, Paper

from . import accuracy, containers, network, rates, totals
from .cells import CELLS

HEADLINES = (
    Headline(
        claim="8-bit integers and zip make what is sent eight times smaller",
        rows=(
            "f2i-zip-weights-resnet18-10",
            "f2i-zip-weights-model-scale-resnet18-10",
            "f2i-zip-change-resnet18-10",
            "f2i-zip-change-model-scale-resnet18-10",
        ),
        chart="By what is sent",
        found="The rate of weights is {f2i-zip-weights-resnet18-10} with a scale for each tensor, and "
        "{f2i-zip-weights-model-scale-resnet18-10} with one for the whole model. The post does not say which it has. "
        "What federated learning sends, changes, lies on both sides.",
    ),
    Headline(
        claim="The baseline's accuracy is kept, with 8-bit integers as with DGC",
        rows=("loss-int8", "loss-dgc", "loss-dgc-hundred-epochs", "federated-int8-keeps", "federated-int8-similar"),
        chart="Large batch",
        found="On average a ResNet of 8 layers loses {loss-int8} by 8-bit integers and {loss-dgc} by DGC in 12 "
        "epochs, and {loss-dgc-hundred-epochs} by DGC in a hundred epochs of an eighth of the images; what is below "
        "zero was gained. Federated learning changes by {federated-int8-keeps}. What the seeds tell of it is below.",
    ),
    Headline(
        claim="With 10 classes federated learning sends five times as much as large batch, with 1,000 a third",
        rows=(
            *totals.FACTOR_ROWS.values(),
            "factor-published-resnet18-10",
            "factor-published-resnet18-1000",
        ),
        found="The direction holds; the factors are {factor-warm-up-eight-zip-resnet18-10} and "
        "{factor-warm-up-eight-resnet18-1000}. The post's own follow where its eight times are counted and the warm-up "
        "that it describes is not, with a mini-batch that was chosen so.",
    ),
    Headline(
        claim="With a learning rate that falls on a plateau DGC stalls",
        rows=("plateau-stalls", "cosine-over-plateau"),
        chart="Schedules",
        found="In 12 epochs of a ResNet of 8 layers it does not: none over DGC is {plateau-stalls}.",
    ),
    Headline(
        claim="Weights that are rounded to 8 bits while training are a bad strategy",
        rows=("weights-lose",),
        found="In 200 steps of one worker the loss is higher with each of six seeds.",
    ),
)

PAPER = Paper(
    name="edgify2019",
    citation="Edgify.ai research team: Distributed training on edge devices: communication compression. Blog post, "
    "2019.",
    text="""\
Two ways of training on devices are compared, by what they send: *large batch*, where the gradients of every mini-batch
are averaged, with deep gradient compression (DGC), and *federated learning*, where models that were trained apart are
averaged, with 8-bit integers and zip (F2I). The text of the post is what is left of it; its tables and figures are
lost. What it leaves open is read as follows.

- The post trains on CIFAR-10. The values on this page are of CIFAR-10, re-compressed: a copy that went through JPEG, so
  that its images are close to the published ones and not equal to them.
- F2I: the largest magnitude of the entries that share a scale becomes 127, each entry the nearest integer; nothing is
  remembered of what rounding takes away. A tensor's entries share one, unless said otherwise. Zip is DEFLATE at its
  usual level.
- DGC compresses convolutions alone, and sends biases, batch normalisation and the dense layer whole; it leaves out 75,
  93.75, 98.4375 and 99.6 % in the first four epochs and 99.9 % after them. Where nothing else is said it finds the
  largest exactly where the post takes a sample, and clips nothing. Of a training of 12 epochs those four are a third.
- Federated learning sends how far an epoch of a worker's own went; workers use momentum, which each round begins anew.
- Of 32 workers with 1,562 images each a mini-batch has 128 images, so that an epoch is 13 steps. The post does not say
  how many. 128 was chosen because the post's factors then follow from its rates, without the warm-up; half as many
  would make twice as many pushes. So the rows `factor-published` are *consistent*: the post agrees with itself under
  this reading, which confirms nothing else. The same holds of the rates of DGC at 8 bytes an entry, whose published
  values are lost and were worked out again from the post's words.
- Rates and totals are those of its ResNets at full size. Accuracies are those of a smaller ResNet with 75,290
  parameters, 4 workers and 12 epochs or rounds, unless said otherwise: they say what compressions cost, not what
  ResNet-18 reaches.
- Images are standardised one by one, and neither flipped nor shifted; there is no weight decay.
""",
    window=1,
    stated="Numbers of seeds, first readings and the rows that count were stated on 28 November 2026, when all runs "
    "had been made but those that were begun since.",
    cells=CELLS,
    tables=(
        rates.SIZES,
        rates.F2I,
        rates.DGC,
        totals.TOTALS,
        accuracy.ACCURACY,
        accuracy.MODEL_SCALE,
        accuracy.CLIPPED,
        accuracy.HUNDRED_EPOCHS,
        accuracy.WORKERS_32,
        accuracy.RESNET18,
        accuracy.SCHEDULES,
        accuracy.WEIGHTS,
        containers.TABLE,
        network.TABLE,
    ),
    headlines=HEADLINES,
)
