"""MNIST from its four IDX files, as published or unpacked; fetched where they are missing and there is a network.

LeCun, Cortes, Burges 1998, The MNIST database of handwritten digits. A file is known by the checksum of its unpacked
content, because copies differ in how they are packed. The format: two zero bytes, a byte for the type (8: unsigned
bytes), a byte for the number of axes, a big-endian int32 for the length of each, then the values.
"""

import gzip
import hashlib
import zlib
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgebed.core.errors import ScenarioError
from edgebed.core.host import in_container
from edgebed.learning.data_sets.download import DownloadError, fetch

FILES = {  # name: (md5 of the unpacked content, shape)
    "train-images-idx3-ubyte": ("6bbc9ace898e44ae57da46a324031adb", (60000, 28, 28)),
    "train-labels-idx1-ubyte": ("a25bea736e30d166cdddb491f175f624", (60000,)),
    "t10k-images-idx3-ubyte": ("2646ac647ad5339dbf082846283269ea", (10000, 28, 28)),
    "t10k-labels-idx1-ubyte": ("27ae3e4e09519cfbb04c329615203637", (10000,)),
}
MIRRORS = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")

Images = NDArray[np.uint8]


def load(folder: Path, *others: Path) -> tuple[Images, NDArray[np.uint8], Images, NDArray[np.uint8]]:
    """(60000, 1, 28, 28) and (10000, 1, 28, 28) images with their labels, for training and for testing.

    Looks in `folder`, then in `others`; what is in none of them is downloaded to `folder`. ScenarioError if a file is
    broken, or missing without a way to fetch it.
    """
    missing = [name for name in FILES if find(name, (folder, *others)) is None]
    for k, name in enumerate(missing):
        try:
            fetch([f"{mirror}{name}.gz" for mirror in MIRRORS], folder / f"{name}.gz", partial(unpack, name))
        except DownloadError as error:
            raise ScenarioError(_missing(missing[k:], (folder, *others), error)) from error
    train_x, train_y, test_x, test_y = (_read(name, (folder, *others)) for name in FILES)
    return train_x[:, None], train_y, test_x[:, None], test_y


def is_in(*folders: Path) -> bool:
    """Whether each of the four files is in one of `folders`."""
    return all(find(name, folders) is not None for name in FILES)


def unpack(name: str, raw: bytes) -> NDArray[np.uint8]:
    """Return the array in `raw`, the bytes of file `name`, gzipped or not; ValueError unless it is the original."""
    expected, shape = FILES[name]
    try:
        content = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (EOFError, OSError, zlib.error) as error:
        message = f"expected content of md5 {expected}, found a damaged gzip file, md5 {_md5(raw)} as packed ({error})"
        raise ValueError(message) from error
    if (found := _md5(content)) != expected:
        raise ValueError(f"expected content of md5 {expected}, found md5 {found} ({len(content):,} bytes)")
    header_bytes = 4 + 4 * len(shape)
    return np.frombuffer(content, np.uint8, offset=header_bytes).reshape(shape)


def find(name: str, folders: tuple[Path, ...]) -> Path | None:
    """Return the file called `name` in the first of `folders` that has it, in any usual spelling; None if none has."""
    spellings = (name, name.replace("-idx", ".idx"))
    for folder in folders:
        for spelling in spellings:
            for path in (folder / spelling, folder / f"{spelling}.gz"):
                if path.is_file():
                    return path
    return None


def _read(name: str, folders: tuple[Path, ...]) -> NDArray[np.uint8]:
    path = find(name, folders)
    if path is None:
        raise ScenarioError(f"{name}: was removed from {folders[0]} while the data set was being loaded.")
    try:
        return unpack(name, path.read_bytes())
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise ScenarioError(f"{path}: {error}. Delete it to have it downloaded again, or replace it.") from error


def _missing(names: list[str], folders: tuple[Path, ...], error: Exception) -> str:
    files = ", ".join(f"{name}[.gz]" for name in names)
    looked_in = " and ".join(str(folder) for folder in folders)
    if in_container():
        remedy = "Put the files into a folder `mnist` and run with EDGEBED_DATA_DIR=/folder/above/it docker compose up"
    else:
        remedy = f"Put the files into {folders[0]}, or set EDGEBED_DATA_DIR to the folder that has them"
    return (
        f"data: mnist: missing {files}; looked in {looked_in}. Downloading failed: {error}. "
        f"{remedy}, or run once with a network."
    )


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()
