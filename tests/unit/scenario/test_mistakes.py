"""Each mistake in a scenario: all that is said of it, with its place, what is allowed and what was probably meant.

They are in `tests/shared/mistaken_scenarios.txt`, which says how they are written.
"""

import re
from pathlib import Path

import goldens
import mistaken
import pytest

from edgebed.planning.checking import check


def mistakes():
    """Of each in the table: the files of a good scenario, the lines that make it, and those that say it."""
    for name, (files, cases) in mistaken.blocks().items():
        for made, said in re.findall(r"((?:^\S.*\n)+)((?:^ .*\n)+)", cases, re.MULTILINE):
            yield pytest.param(files, made, said, id=f"{name}: {made.strip()}")


def with_mistake(files: dict[str, str], made: str) -> tuple[dict[str, str], list[str]]:
    """The files after the lines that make a mistake, and the options among these."""
    options = []
    for whole in made.splitlines():
        name, line = whole[1:].split(" ", 1) if whole.startswith("@") else ("s.yaml", whole)
        if line.startswith("--set "):
            options.append(line.removeprefix("--set "))
        elif line.startswith("+ "):
            files = files | {name: f"{files[name]}{line[2:]}\n"}
        else:
            old, _, new = line.replace("\\n", "\n").partition(" =>")
            assert files[name].count(old) == 1
            files = files | {name: files[name].replace(old, new[1:])}
    return files, options


@pytest.mark.parametrize(("files", "made", "said"), list(mistakes()))
def test_all_that_is_said_of_a_mistake(tmp_path, monkeypatch, files, made, said):
    """By `edgebed validate`; `doubt` goes before what is no mistake, and may be meant."""
    monkeypatch.chdir(tmp_path)
    files, options = with_mistake(files, made)
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")

    checked = check(Path("s.yaml"), options)
    lines = [*checked.problems, *(f"doubt: {doubt}" for doubt in checked.warnings)] or ["valid"]
    found = "".join(f"    {line.replace(str(tmp_path), 'HERE')}\n" for line in lines)
    found = re.sub(r" in HERE, .*? \.\.\. ", " in HERE ... ", found)  # where else modules are looked for
    found = re.sub(r"(RuntimeError|TypeError: empty\(\)): .*? \(HERE", r"\1: ... (HERE", found)  # torch's own words

    if goldens.UPDATING:
        table = mistaken.TABLE.read_text(encoding="utf-8")
        mistaken.TABLE.write_text(table.replace(made + said, made + found, 1), encoding="utf-8")
    else:
        assert found == said
