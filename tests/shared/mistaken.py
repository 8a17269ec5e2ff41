"""Scenarios with mistakes, and what is said of each: `mistaken_scenarios.txt`, which says how they are written."""

from pathlib import Path

TABLE = Path(__file__).with_name("mistaken_scenarios.txt")


def blocks() -> dict[str, tuple[dict[str, str], str]]:
    """Of each name: the files of a good scenario, s.yaml the first of them, and the lines of its mistakes."""
    found = {}
    for block in TABLE.read_text(encoding="utf-8").split("\n\n=== ")[1:]:
        good, cases = f"{block.rstrip()}\n".split("\n---\n")
        first, *others = f"{good}\n".split("=== ")
        name, _, scenario = first.partition("\n")
        found[name] = {"s.yaml": scenario} | dict(other.split("\n", 1) for other in others), cases
    return found
