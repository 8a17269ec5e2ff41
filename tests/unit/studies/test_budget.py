"""Which missing runs of a paper come first: what they decide, and what they cost."""

import dataclasses
from pathlib import Path

import pytest
from tiny_paper import tiny_paper

from edgebed.studies.cells.cells import CellRun, CellSpec
from edgebed.studies.papers.paper import Near, Reading
from edgebed.studies.reproduction.budget import (
    UNKNOWN_S,
    Candidate,
    Kind,
    Took,
    best_first,
    cost_s,
    kind_of,
    within,
    worths,
)

PAPER = tiny_paper()
ASGD = [CellRun("asgd", 1.0, seed) for seed in (1, 2)]
ADACOMP = [CellRun("adacomp", 0.5, seed) for seed in (1, 2)]


def candidate(run: CellRun, cost: float, worth: float, paper: str = "tiny") -> Candidate:
    """A missing run."""
    return Candidate(paper, run, 100, cost, worth)


def test_a_row_is_shared_among_the_runs_that_it_lacks() -> None:
    """A row of two cells and two seeds lacks four; one without a claim is worth nothing."""
    assert worths(PAPER, PAPER.rows, done=()) == {
        ASGD[0]: 1 / 2 + 1 / 4, ASGD[1]: 1 / 2 + 1 / 4, ADACOMP[0]: 1 / 4 + 1 / 2, ADACOMP[1]: 1 / 4 + 1 / 2
    }  # fmt: skip
    assert worths(PAPER, ["push"], done=()) == dict.fromkeys(ADACOMP, 0.0)


def test_a_row_that_confirms_nothing_is_worth_nothing() -> None:
    """Such as one that compares with what this project worked out itself."""
    (table, *_), row = PAPER.tables, PAPER.rows["difference"]
    of_our_own = dataclasses.replace(row, claim=Near(value=0.0, tolerance=1.0, published=False))
    paper = dataclasses.replace(PAPER, tables=(dataclasses.replace(table, rows={"own": of_our_own}),))

    assert set(worths(paper, ["own"], done=()).values()) == {0.0}


def test_another_way_to_measure_a_claim_is_worth_nothing() -> None:
    """Nor is a reading of a table: a claim counts once, by the row that was named for it."""
    (table, *_), row = PAPER.tables, PAPER.rows["difference"]
    rows = {**table.rows, "again": dataclasses.replace(row, beside="difference")}
    halved = Reading(name="halved", text="Half of the updates.", cells={"asgd": "adacomp"})
    paper = dataclasses.replace(PAPER, tables=(dataclasses.replace(table, rows=rows, readings=(halved,)),))

    assert set(worths(paper, ["again", "asgd:halved"], done=()).values()) == {0.0}
    assert worths(paper, paper.rows, done=()) == worths(PAPER, ["asgd", "difference"], done=())


def test_a_row_is_worth_the_seeds_that_its_table_states() -> None:
    """Whatever the first ones show: with fewer nothing would be found."""
    (table, *_) = PAPER.tables
    paper = dataclasses.replace(PAPER, tables=(dataclasses.replace(table, seeds=4),))

    assert worths(paper, ["asgd"], done=ASGD) == dict.fromkeys([CellRun("asgd", 1.0, seed) for seed in (3, 4)], 1 / 2)


def test_the_last_run_that_a_row_lacks_decides_it() -> None:
    """What is done is not asked for, and leaves the others with more of the row."""
    assert worths(PAPER, ["difference"], done=[*ASGD, ADACOMP[0]]) == {ADACOMP[1]: 1.0}
    assert worths(PAPER, PAPER.rows, done=[*ASGD, *ADACOMP]) == {}


KIND = Kind("simulation", "asgd", "cnn")
OTHER_MODEL = Kind("simulation", "asgd", "mlp")
OTHER = Kind("simulation", "adacomp", "cnn")


def took(cell: str, seconds: float, *, paper: str = "tiny", kind: Kind = KIND, scale: float = 0.1) -> Took:
    """A run of ten updates that was made."""
    return Took(paper, cell, scale, kind, 10, seconds)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ([took("asgd", 7.0, scale=1.0), took("asgd", 9.0, scale=1.0), took("asgd", 1.0)], 7.0),
        ([took("adacomp", 2.0), took("asgd", 50.0, kind=OTHER_MODEL), took("asgd", 4.0, paper="other")], 20.0),
        ([took("adacomp", 2.0, kind=OTHER_MODEL), took("asgd", 50.0, kind=OTHER)], 20.0),
        ([took("asgd", 2.0, kind=OTHER), took("asgd", 50.0, paper="other")], 20.0),
        ([took("asgd", 50.0, paper="other")], 500.0),
        ([], 100 * UNKNOWN_S),
    ],
    ids=["the same cell", "its method and model", "its method", "its scenario", "another paper", "nothing"],
)
def test_a_cost_is_that_of_what_is_most_alike(made: list[Took], expected: float) -> None:
    """The same cell with other seeds, at its quickest, else an update's cost elsewhere."""
    assert cost_s(PAPER, ASGD[0], KIND, 100, made) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("method", "name"),
    [("asgd", "asgd"), ({"preset": "asgd", "compression": "int8"}, "asgd"), ({"compression": "int8"}, "None")],
)
def test_a_run_is_of_its_runtime_method_and_model(method: str | dict[str, object], name: str) -> None:
    """However the method is written; one in parts has no name."""
    spec = CellSpec(
        scenario=Path("a.yaml"), place="a.yaml", variant="all", runtime="simulation", sets=(), updates=100,
        settings={"method": method, "task": {"model": "cnn"}},
    )  # fmt: skip

    assert kind_of(spec) == KIND._replace(method=name)


def test_what_decides_most_in_a_second_comes_first() -> None:
    """What decides nothing is last, the cheapest of it first."""
    dear, cheap = candidate(ASGD[0], 100.0, 1.0), candidate(ASGD[1], 10.0, 0.5)
    idle, idler = candidate(ADACOMP[0], 1.0, 0.0), candidate(ADACOMP[1], 2.0, 0.0)

    assert best_first([idler, dear, idle, cheap]) == [cheap, dear, idle, idler]


def test_what_does_not_fit_into_the_budget_leaves_room_for_what_does() -> None:
    """By paper, in the order in which they are to be made."""
    dear, cheap = candidate(ASGD[0], 100.0, 10.0), candidate(ASGD[1], 10.0, 0.5, "other")
    small = candidate(ADACOMP[0], 5.0, 0.1)

    assert within([small, cheap, dear], 15.0) == {"other": [ASGD[1]], "tiny": [ADACOMP[0]]}
    assert within([small, cheap, dear], 110.0) == {"tiny": [ASGD[0]], "other": [ASGD[1]]}
    assert within([small], 0.0) == {}
    assert within([small, cheap, dear], 15.0, jobs=8) == {"other": [ASGD[1]], "tiny": [ADACOMP[0]]}
