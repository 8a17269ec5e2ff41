"""What the bound of shorter runs is worth: runs as long as the papers', cut short, against what they came to."""

from collections import Counter, defaultdict
from pathlib import Path
from statistics import fmean

from learning_curves import learned

from edgebed.studies.cells.result_cache import read_runs
from edgebed.studies.papers.measuring import accuracy
from edgebed.studies.reproduction.extrapolation import beginning, has_levelled, lengthened, over_lengths
from edgebed.studies.trial_result import FinishedTrial

ROOT = Path(__file__).parents[3]
PAPERS = {"hardy2017": (250_000, 5), "tong2016": (10_000, 1)}
"""Updates of the papers, and evaluations that their accuracies are means of."""
SHARES = (1 / 2, 1 / 5, 1 / 10, 1 / 20)
SEEDS_MIN = 3


def cells(paper: str, updates: int) -> list[list[FinishedTrial]]:
    """The runs of the paper's length of each cell in virtual time, by seed; cells of three seeds or more."""
    found = defaultdict(list)
    for run in read_runs(ROOT / "docs" / "results" / paper / "runs.jsonl"):
        if run.runtime == "simulation" and run.settings["stop"]["updates"] == updates:
            curve = learned(run.evaluations["version"], run.evaluations["accuracy"])
            found[run.scenario, run.trial].append(curve)
    return [trials for trials in found.values() if len(trials) >= SEEDS_MIN]


def cut(paper: str) -> Counter[tuple[bool, bool]]:
    """Count over cells and shares: whether the accuracies had levelled off, and whether the bound held."""
    updates, window = PAPERS[paper]
    measure, counted = accuracy("a", window), Counter[tuple[bool, bool]]()
    for trials in cells(paper, updates):
        came_to = fmean(measure({"a": trial}) for trial in trials)
        for share in SHARES:
            short = [{"a": begun} for trial in trials if (begun := beginning(trial, share))]
            if len(short) < len(trials):
                continue
            values = [measure(each) for each in short]
            bound = over_lengths(values, [lengthened(measure, each, share) for each in short])
            if bound is not None:
                low, high = bound.ends
                counted[has_levelled(short), low <= came_to <= high] += 1
    return counted


def test_where_accuracies_had_levelled_off_the_bound_held_and_elsewhere_it_did_not_always() -> None:
    """The guide has the counts."""
    counted = cut("hardy2017") + cut("tong2016")
    others, failed = counted[False, True] + counted[False, False], counted[False, False]

    assert counted[True, False] == 0
    assert failed > 0
    said = f"in all {counted[True, True]} of these cases; of the {others} others it did not in {failed}"
    assert said in " ".join((ROOT / "docs" / "reproducing.md").read_text().split())
