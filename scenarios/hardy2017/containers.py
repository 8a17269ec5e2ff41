"""What figure 3 says, measured again in containers with capped processors and shaped links: twenty, and a hundred."""

from collections.abc import Callable

from edgebed.studies.claims_text import share_text
from edgebed.studies.measures import reach
from edgebed.studies.papers.confirming import both_ways, confirming_rows
from edgebed.studies.papers.measure import Measure
from edgebed.studies.papers.measuring import difference, final_accuracy, of_summary, ratio, reached_by
from edgebed.studies.papers.paper import Cell, Row, Table, Unit

from .measures import SENT, accuracy, push_bytes

SCALE = 0.01
"""Share of the updates: 2,500 of 250,000."""
REACHED = 0.9
"""An accuracy that twenty workers reach within so many updates."""
ADACOMP = Cell(scenario="figure-3-narrow.yaml", variant="adacomp-1-in-100")
TWENTY = both_ways(
    {"asgd": Cell(scenario="figure-3-narrow.yaml", variant="asgd"), "adacomp-0.01": ADACOMP},
    "fleet.edge={count: 20, cpus: 0.08, memory: 320MB, uplink: 20mbit, downlink: 50mbit, "
    "waiting: {uniform: [400ms, 1200ms]}}",
    "task.gradient_time=15ms",
    "evaluation.every=125 updates",
    scale=SCALE,
)
OF_A_HUNDRED = "adacomp-0.01-of-100"
HUNDRED = both_ways(
    {OF_A_HUNDRED: ADACOMP},
    "fleet.edge={count: 100, cpus: 0.08, memory: 200MB, uplink: 20mbit, downlink: 50mbit, "
    "waiting: {uniform: [2s, 6s]}}",
    "task.gradient_time=15ms",
    "evaluation.every=500 updates",
    "deadlines.join=10m",
    scale=SCALE,
)
CELLS = {**TWENTY, **HUNDRED}


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
    rows={
        **confirming_rows("order-adacomp-0.01-over-asgd", accuracy_row, 1.0),
        **confirming_rows("push-ratio-ours", push_row, 0.02),
        **confirming_rows("reduction-90-ours", ingress_row, 0.33),
    },
)


def of_a_hundred(what: str, name: str, unit: Unit = "") -> Callable[[str], Row]:
    """Rows for a number of a run's summary with a hundred workers, by the ending of the cell's name."""

    def row(ending: str) -> Row:
        cell = f"{OF_A_HUNDRED}{ending}"
        return Row(what=f"{what}, a hundred workers", cells=(cell,), measure=of_summary(cell, name), unit=unit)

    return row


def accuracy_of_a_hundred(ending: str) -> Row:
    """The accuracy of the last model with a hundred workers."""
    cell = f"{OF_A_HUNDRED}{ending}"
    return Row(what="Last accuracy, a hundred workers", cells=(cell,), measure=final_accuracy(cell), unit="%")


TABLE_OF_A_HUNDRED = Table(
    title="A hundred containers",
    seeds=3,
    other_setting=True,
    rows={
        **confirming_rows("staleness-of-100", of_a_hundred("Mean staleness", "staleness_mean"), 0.02),
        **confirming_rows("push-of-100", of_a_hundred("Bytes of a push", "push_bytes_mean", "bytes"), 0.02),
        **confirming_rows("accuracy-of-100", accuracy_of_a_hundred, 5.0),
    },
)
