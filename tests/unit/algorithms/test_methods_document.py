"""docs/methods.md has every method and part, with what a reader looks for."""

import pytest

from docs.generate import methods
from edgebed.algorithms.registry import FAMILIES, KINDS, LIKE, PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_every_method_says_what_it_does_and_leads_to_its_parts(name):
    """By the comment above it, and a link to a heading for each part."""
    document = methods.markdown()
    (row,) = [line for line in document.splitlines() if line.startswith(f"| `{name}` |")]
    _, _, says, *parts = [cell.strip() for cell in row.split("|")][:-1]

    assert says
    kinds = [kind for kind in PRESETS[name] if kind not in LIKE]
    for kind, part in zip(kinds, parts, strict=True):
        assert f"(#{kind}-{PRESETS[name][kind]['name']})" in part
        assert f"\n### {kind}: `{PRESETS[name][kind]['name']}`\n" in document


def test_every_part_has_a_section():
    """Once, whichever kinds of parts share it."""
    document = methods.markdown()
    sections = [line for line in document.splitlines() if line.startswith("### ")]

    assert sections == [
        f"### {kind}: `{name}`" for family in (*FAMILIES.values(),) for kind in family for name in KINDS[kind]
    ]


def test_equations_are_blocks_and_differences_stand_out():
    """Text is escaped where Markdown would read a sign of its own."""
    text = "It is a*b.\n\n    x <- y\n      z\n\nDiffers from the\npaper: nothing."

    assert list(methods._paragraphs(text)) == [
        "It is a\\*b.",
        "```text\nx <- y\n  z\n```",
        "**Differs from the\npaper**: nothing.",
    ]
