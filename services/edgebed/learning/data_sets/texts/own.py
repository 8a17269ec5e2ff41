"""A text file of the user's own, by byte or by character."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from edgebed.core.errors import ScenarioError
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.data_sets.parts import Shares
from edgebed.learning.data_sets.texts.windows import Tokens, in_windows

BYTES = 256


@dataclass(frozen=True, kw_only=True)
class Config(Shares):
    """Windows of a text file, which is cut into parts in its order."""

    file: str
    """The file, beside the scenario or in the data directory."""
    length: int = 64
    """Tokens of a window."""
    tokens: Literal["byte", "character"] = "byte"
    """`byte`: 256 tokens, whatever the file; `character`: those that the file has, in UTF-8."""

    def __post_init__(self) -> None:
        """ValueError where a setting is impossible."""
        super().__post_init__()
        if self.length < 1:
            raise ValueError(f"length: {self.length} is below 1")


def load(config: Config, folders: Sequence[Path]) -> DataSet:
    """Return the windows of the file in the first of the folders that has it; ScenarioError where it cannot be read."""
    path = next((folder / config.file for folder in folders if (folder / config.file).is_file()), None)
    if path is None:
        looked_in = " and ".join(map(str, folders))
        raise ScenarioError(f"file: {config.file} is not there; looked in {looked_in}. Put it beside the scenario.")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ScenarioError(f"file: {path}: cannot be read: {error.strerror}.") from error
    tokens, outputs = (_bytes if config.tokens == "byte" else _characters)(path, content)
    note = f"{config.file}, {len(content):,} bytes, SHA-256 {hashlib.sha256(content).hexdigest()[:16]}"
    return in_windows([("", tokens)], config.length, config, outputs, note)


def _bytes(_: Path, content: bytes) -> tuple[Tokens, int]:
    return np.frombuffer(content, np.uint8).astype(np.int64), BYTES


def _characters(path: Path, content: bytes) -> tuple[Tokens, int]:
    """Return the tokens, numbered in the order of the characters that there are, and how many those are."""
    try:
        points = np.frombuffer(content.decode("utf-8").encode("utf-32-le"), np.uint32)
    except UnicodeDecodeError as error:
        raise ScenarioError(f"file: {path}: is not UTF-8: {error}. Take tokens: byte.") from error
    present, tokens = np.unique(points, return_inverse=True)
    return tokens.astype(np.int64), len(present)
