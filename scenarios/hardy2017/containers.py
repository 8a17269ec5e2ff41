"""What figure 3 says, measured again in containers: twenty workers with capped processors and shaped links."""

from edgebed.studies.claims_text import share_text
from edgebed.studies.measures import reach
from edgebed.studies.papers.confirming import both_ways, confirming_rows
from edgebed.studies.papers.measure import Measure
from edgebed.studies.papers.measuring import difference, ratio, reached_by
from edgebed.studies.papers.paper import Cell, Row, Table

from .measures import SENT, accuracy, push_bytes

SCALE = 0.01
"""Share of the updates: 2,500 of 250,000."""
REACHED = 0.9
"""An accuracy that twenty workers reach within so many updates."""
CELLS = both_ways(
    {
        "asgd": Cell(scenario="figure-3-narrow.yaml", variant="asgd"),
        "adacomp-0.01": Cell(scenario="figure-3-narrow.yaml", variant="adacomp-1-in-100"),
    },
    "fleet.edge={count: 20, cpus: 0.08, memory: 320MB, uplink: 20mbit, downlink: 50mbit, "
    "waiting: {uniform: [400ms, 1200ms]}}",
    "task.gradient_time=15ms",
    "evaluation.every=125 updates",
    scale=SCALE,
)


def of_both(ending: str) -> tuple[str, str]:
    """The cells of ASGD and of AdaComp with this ending."""
    return f"asgd{ending}", f"adacomp-0.01{ending}"


def accuracy_row(ending: str) -> Row:
    """How much better AdaComp's model is."""
    asgd, adacomp = of_both(ending)
    return Row(
        what="AdaComp 0.01 over ASGD", cells=(adacomp, asgd), measure=difference(accuracy(adacomp), accuracy(asgd)),
        unit="points",
    )  # fmt: skip


def push_row(ending: str) -> Row:
    """How many times smaller AdaComp's pushes are."""
    asgd, adacomp = of_both(ending)
    return Row(
        what="A push: ASGD's over AdaComp's, our encoding", cells=(asgd, adacomp),
        measure=ratio(push_bytes(asgd, SENT), push_bytes(adacomp, SENT)), unit="x",
    )  # fmt: skip


def ingress_row(ending: str) -> Row:
    """How many times less the server receives until an accuracy by AdaComp."""

    def to(cell: str) -> Measure:
        return reached_by(
            cell,
            lambda trial: reach(trial.evaluations, REACHED),
            lambda trial, reached: SENT.ingress(trial, reached.updates),
        )

    asgd, adacomp = of_both(ending)
    return Row(
        what=f"Ingress to {share_text(REACHED)}: ASGD's over AdaComp's, our encoding",
        cells=(asgd, adacomp), measure=ratio(to(asgd), to(adacomp)), unit="x",
    )  # fmt: skip


TABLE = Table(
    title="Figure 3 in containers",
    seeds=5,
    other_setting=True,
    text="Twenty containers with 0.08 of a core, 320 MB, 20 mbit up and 50 down make a hundredth of the updates, "
    "of which the paper says nothing. Which method is better, and how many bytes it takes, is compared with "
    "virtual time at the same size: a point, two per cent of the size of a push and a third of the ingress "
    "are what they may differ by, stated before the runs.",
    rows={
        **confirming_rows("order-adacomp-0.01-over-asgd", accuracy_row, 1.0),
        **confirming_rows("push-ratio-ours", push_row, 0.02),
        **confirming_rows("reduction-90-ours", ingress_row, 0.33),
    },
)
