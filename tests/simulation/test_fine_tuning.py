"""docs/fine-tuning.md works: its commands run in their order, and say what the page says that they do."""

import re
from collections import defaultdict

import pytest
from documented_commands import FINE_TUNING, follow
from repository_files import ROOT

LIMIT_S = 300.0
TOLERANCE = 0.03
"""Of its figures, which are rounded, and whose training rounds in another way on another processor."""
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
(PAGE,) = [(ROOT / name).read_text(encoding="utf-8") for name in FINE_TUNING]
TOLD = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

pytestmark = [pytest.mark.simulation, pytest.mark.slow]


def numbers(line: str) -> list[float]:
    """The numbers of a line, in order."""
    return [float(number.replace(",", "")) for number in NUMBER.findall(line)]


@pytest.mark.timeout(LIMIT_S + 30)
def test_the_commands_of_the_page_say_what_it_says() -> None:
    """Training, weights in a file, adapters on them in simulation, and a model that has them merged."""
    said = follow(FINE_TUNING, LIMIT_S)

    lines = defaultdict(list)
    for line in said.splitlines():
        lines[NUMBER.sub("#", line)].append(line)
    for line in [line for block in TOLD for line in block.splitlines()]:
        found = lines[NUMBER.sub("#", line)].pop(0)
        assert numbers(found) == pytest.approx(numbers(line), rel=TOLERANCE), found
    assert len(TOLD) == 2
    assert said.count("not run (") == 1


def test_the_figures_of_the_text_are_those_of_its_tables() -> None:
    """A push of all weights beside one of the adapters, and the updates that the bytes of all of theirs pay for."""
    (push, of_all, kept, *_), (whole, *_) = map(numbers, TOLD[1].splitlines())

    assert f"takes {whole / push:.0f} times the bytes" in PAGE
    assert f"{of_all / whole:.0f} updates of 70" == "2 updates of 70"
    assert "it has made two updates of 70" in PAGE
    assert 4 * kept < push < 4 * kept + 100
