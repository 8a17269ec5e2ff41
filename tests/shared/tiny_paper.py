"""A paper of two tables that is reproduced in seconds: bundled digits, a small model, some thousand updates."""

from pathlib import Path

from edgebed.studies.papers.paper import Paper

SCENARIO = """
name: tiny-digits
question: Which of them learns?
seed: 7
task: { data: digits, model: small, batch_size: 10 }
fleet: { edge: { count: 3, waiting: { exponential: 20ms } } }
checkpoints: { every: 20 updates }
evaluation: { every: 120 updates }
stop: { updates: 1200 }
variants:
  asgd: { method: asgd }
  adacomp: { method: adacomp }
"""
MODULE = """
from edgebed.studies.papers.paper import AtLeast, Cell, Curve, Never, Paper, Row, Sign, Table


def last(cell):
    return lambda trials: 100 * trials[cell].summary.final["accuracy"]


PAPER = Paper(
    name="tiny",
    citation="Nobody 2026, A tiny paper.",
    text="It is *tiny*.",
    window=2,
    cells={
        "asgd": Cell(scenario="digits.yaml", variant="asgd"),
        "adacomp": Cell(scenario="digits.yaml", variant="adacomp", scale=0.5),
    },
    tables=(
        Table(
            title="Table 1: accuracy",
            seeds=2,
            text="Of the last model.",
            rows={
                "asgd": Row(
                    what="ASGD", cells=("asgd",), measure=last("asgd"), unit="%", claim=AtLeast(value=15.0),
                    note="More than chance | by far.",
                ),
                "difference": Row(
                    what="AdaComp less ASGD", cells=("asgd", "adacomp"), unit="points", claim=Sign(sign=-1),
                    measure=lambda trials: last("adacomp")(trials) - last("asgd")(trials),
                ),
            },
            curves=(Curve(title="Accuracy over updates", cells=("asgd", "adacomp"), over="updates"),),
        ),
        Table(
            title="Table 2: bytes",
            seeds=2,
            rows={
                "push": Row(
                    what="A push of AdaComp", cells=("adacomp",), unit="bytes",
                    measure=lambda trials: trials["adacomp"].summary.value("push_bytes_mean"),
                ),
                "perfect": Row(
                    what="No mistake", cells=("adacomp",), unit="updates", claim=Never(),
                    measure=lambda trials: None,
                ),
            },
        ),
    ),
)
"""


def write_paper(folder: Path) -> None:
    """Lay it into `folder` as a user would: `papers_of_mine.py` and `scenarios/tiny/`."""
    scenarios = folder / "scenarios/tiny"
    scenarios.mkdir(parents=True)
    (scenarios / "digits.yaml").write_text(SCENARIO)
    (folder / "papers_of_mine.py").write_text(MODULE)


def tiny_paper() -> Paper:
    """The same, without a file."""
    names: dict[str, object] = {}
    exec(MODULE, names)
    paper = names["PAPER"]
    assert isinstance(paper, Paper)
    return paper
