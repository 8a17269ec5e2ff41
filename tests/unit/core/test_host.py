"""What is noted of the machine that a run was made on."""

from pathlib import Path

import pytest

from edgebed.core import host

INTEL = """\
processor\t: 0
model name\t: A processor
vmx flags\t: avx512f avx2
flags\t\t: fpu sse sse2 {flags} ht

processor\t: 1
flags\t\t: avx512f avx2
"""
ARM = "processor\t: 0\nFeatures\t: fp {flags} crc32\nModel\t\t: A board\n"


def told(monkeypatch: pytest.MonkeyPatch, text: str | OSError) -> str:
    """The vector instructions of a machine of which the kernel says this."""
    read = Path.read_text

    def read_text(self: Path, *arguments: object, **settings: object) -> str:
        if self != Path("/proc/cpuinfo"):
            return read(self, *arguments, **settings)
        if isinstance(text, OSError):
            raise text
        return text

    monkeypatch.setattr(Path, "read_text", read_text)
    return host.instructions()


@pytest.mark.parametrize(
    ("text", "flags", "widest"),
    [
        (INTEL, "avx avx2 avx512f", "AVX-512"),
        (INTEL, "avx512f avx2", "AVX-512"),
        (INTEL, "avx avx2 avx512_vnni", "AVX2"),
        (INTEL, "avx avx2", "AVX2"),
        (INTEL, "avx", ""),
        (ARM, "asimd sve", "SVE"),
        (ARM, "asimd asimdhp", "NEON"),
        (ARM, "asimdhp svei8mm", ""),
        (ARM, "", ""),
    ],
)
def test_the_widest_vector_instructions_of_the_first_processor_are_noted(
    monkeypatch: pytest.MonkeyPatch, text: str, flags: str, widest: str
) -> None:
    """By whole flags, in whichever order: what others round in another way."""
    assert told(monkeypatch, text.format(flags=flags)) == widest
    assert host.machine()["instructions"] == widest


@pytest.mark.parametrize("text", ["", "nonsense\n", OSError("there is none")])
def test_where_the_kernel_says_nothing_no_instructions_are_made_up(
    monkeypatch: pytest.MonkeyPatch, text: str | OSError
) -> None:
    """An empty word is noted."""
    assert told(monkeypatch, text) == ""


def test_a_machine_is_noted_with_its_model_under_either_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the kernel of one architecture or of another has it."""
    for text, model in ((INTEL, "A processor"), (ARM, "A board")):
        told(monkeypatch, text.format(flags=""))
        assert host.machine()["cpu"] == model
        assert host.facts()["host"]["cpu"] == model
