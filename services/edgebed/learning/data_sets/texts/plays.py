"""Scenes of Shakespeare's plays by speaker, beside this file: 1,115,394 characters, 65 different ones; public domain.

The collection is the one of A. Karpathy's char-rnn (2015, https://github.com/karpathy/char-rnn). A line with a name and
a colon begins a speech, and an empty line ends it. Plays are not told apart: `First Citizen` is one speaker in all.
"""

import bz2
import difflib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from edgebed.core.errors import ScenarioError
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.data_sets.parts import Shares
from edgebed.learning.data_sets.texts.windows import in_windows

FILE = Path(__file__).with_name("plays.txt.bz2")


@dataclass(frozen=True, kw_only=True)
class Config(Shares):
    """Windows of characters, by speaker."""

    length: int = 64
    """Characters of a window."""
    min_characters: int = 2000
    """Characters that a speaker has at least; who says less is left out."""
    speakers: list[str] | None = None
    """Speakers whose words are wanted, such as those of one play; None: all speakers."""

    def __post_init__(self) -> None:
        """ValueError where a setting is impossible."""
        super().__post_init__()
        if self.length < 1:
            raise ValueError(f"length: {self.length} is below 1")
        if self.speakers is not None and not self.speakers:
            raise ValueError("speakers: nobody; name one at least, or leave it out for all")


@cache
def text() -> str:
    """Return the whole collection."""
    return bz2.decompress(FILE.read_bytes()).decode("ascii")


def vocabulary() -> str:
    """Return the characters in order: token k is the k-th."""
    return "".join(sorted(set(text())))


def speeches() -> dict[str, str]:
    """Return what each speaker says in all scenes, in order, speeches divided by an empty line."""
    found: dict[str, list[str]] = {}
    for speech in text().split("\n\n"):
        speaker, _, said = speech.strip("\n").partition(":\n")
        if said:
            found.setdefault(speaker, []).append(said)
    return {speaker: "\n\n".join(said) for speaker, said in found.items()}


def load(config: Config) -> DataSet:
    """Return the windows of the speakers who are wanted and say enough; ScenarioError where there is none."""
    number = np.zeros(128, np.int64)
    number[[ord(each) for each in vocabulary()]] = np.arange(len(vocabulary()))
    said = {speaker: words for speaker, words in speeches().items() if len(words) >= config.min_characters}
    if not said:
        longest = max(map(len, speeches().values()))
        raise ScenarioError(f"min_characters: no speaker has {config.min_characters:,}; the most is {longest:,}")
    if missing := [each for each in config.speakers or () if each not in said]:
        close = difflib.get_close_matches(missing[0].upper(), said, 1)
        hint = f"; is it '{close[0]}'?" if close else ""
        enough = f"{len(said)} speakers who say {config.min_characters:,} characters or more"
        raise ScenarioError(f"speakers: '{missing[0]}' is none of the {enough}{hint}")
    said = {speaker: words for speaker, words in said.items() if config.speakers is None or speaker in config.speakers}
    texts = [(speaker, number[np.frombuffer(words.encode("ascii"), np.uint8)]) for speaker, words in said.items()]
    return in_windows(texts, config.length, config, len(vocabulary()))
