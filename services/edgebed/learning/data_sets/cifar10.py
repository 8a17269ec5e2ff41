"""CIFAR-10 from its binary version, unpacked or in its archive, which is fetched where both are missing.

Krizhevsky 2009, Learning multiple layers of features from tiny images. Each of six files has 10,000 records: a byte for
the label, then the image, 32x32 bytes of red, of green and of blue, row by row.

Users who have the images in other bytes, re-compressed for instance, may use these: any files of that layout are read.
What is not as published, by its checksum, is reported.
"""

import hashlib
import tarfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgebed.core.errors import ScenarioError
from edgebed.core.host import in_container
from edgebed.learning.data_sets.download import DownloadError, fetch

FILES = {  # name: sha1 of the published content; the last is for testing
    "data_batch_1.bin": "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
    "data_batch_2.bin": "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
    "data_batch_3.bin": "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
    "data_batch_4.bin": "aab85764eb3584312d3c7f65fd2fd016e36a258e",
    "data_batch_5.bin": "26e2849e66a845b7f1e4614ae70f4889ae604628",
    "test_batch.bin": "67eb016db431130d61cd03c7ad570b013799c88c",
}
RECORDS = 10_000
"""Records in each file."""
SHAPE = (3, 32, 32)
CLASSES = 10
UNPACKED = "cifar-10-batches-bin"
"""The folder that the archive makes."""
ARCHIVE, ARCHIVE_MD5 = "cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"
MIRRORS = ("https://www.cs.toronto.edu/~kriz/",)
DOWNLOAD_S = 1800.0  # 170 MB at three quarters of a megabit a second
OTHER_FILES = "not the published files"
REMEDY = "Delete it to have it downloaded again, or replace it."

Bytes = NDArray[np.uint8]


class Images(NamedTuple):
    """(50000, 3, 32, 32) and (10000, 3, 32, 32) images with their labels, for training and for testing."""

    train_x: Bytes
    train_y: Bytes
    test_x: Bytes
    test_y: Bytes
    note: str
    """Remark on the files: `OTHER_FILES`, or empty."""


def load(folder: Path, *others: Path) -> Images:
    """Load the images from `folder`, then from `others`; what is in none of them is downloaded to `folder`.

    ScenarioError if a file is broken, or missing without a way to fetch it.
    """
    folders = (folder, *others)
    found = find(folders)
    if found is None:
        try:
            fetch([f"{mirror}{ARCHIVE}" for mirror in MIRRORS], folder / ARCHIVE, check_archive, DOWNLOAD_S)
        except DownloadError as error:
            raise ScenarioError(_missing(folders, error)) from error
        found = folder / ARCHIVE
    try:
        return _read_archive(found) if found.name == ARCHIVE else _read_folder(found)
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise ScenarioError(f"{found}: cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def find(folders: tuple[Path, ...]) -> Path | None:
    """Return the first folder that has all files, or else the first archive; None if there is neither."""
    places = [place for folder in folders for place in (folder / UNPACKED, folder)]
    for place in places:
        if all((place / name).is_file() for name in FILES):
            return place
    return next((folder / ARCHIVE for folder in folders if (folder / ARCHIVE).is_file()), None)


def check_archive(raw: bytes) -> None:
    """Raise ValueError unless `raw` is the published archive."""
    found = hashlib.md5(raw, usedforsecurity=False).hexdigest()
    if found != ARCHIVE_MD5:
        raise ValueError(f"expected md5 {ARCHIVE_MD5}, found md5 {found} ({len(raw):,} bytes)")


def _read_folder(folder: Path) -> Images:
    images = _Reader()
    for name in FILES:
        images.add(name, folder / name, (folder / name).read_bytes())
    return images.all()


def _read_archive(path: Path) -> Images:
    """Read the archive from front to back, since going back would mean to unpack it again."""
    images = _Reader()
    with tarfile.open(path, "r|gz") as archive:
        for member in archive:
            name = Path(member.name).name
            content = archive.extractfile(member) if name in FILES and member.isfile() else None
            if content is not None:
                images.add(name, path / member.name, content.read())
    if missing := images.missing():
        raise ScenarioError(f"{path}: has no {', '.join(missing)}. {REMEDY}")
    return images.all()


class _Reader:
    """Reader of the six files, in any order."""

    def __init__(self) -> None:
        self.x = np.empty((len(FILES), RECORDS, *SHAPE), np.uint8)
        self.y = np.empty((len(FILES), RECORDS), np.uint8)
        self.read: dict[str, bool] = {}
        """Files read so far, and whether each is as published."""

    def add(self, name: str, path: Path, raw: bytes) -> None:
        """Take the content of a file; ScenarioError unless it has the layout."""
        expected_bytes = RECORDS * (1 + int(np.prod(SHAPE)))
        if len(raw) != expected_bytes:
            raise ScenarioError(
                f"{path}: {len(raw):,} bytes, expected {expected_bytes:,}: {RECORDS:,} records. {REMEDY}"
            )
        records = np.frombuffer(raw, np.uint8).reshape(RECORDS, -1)
        if (highest := int(records[:, 0].max())) >= CLASSES:
            raise ScenarioError(f"{path}: has a label {highest}; labels are 0 to {CLASSES - 1}. {REMEDY}")
        k = list(FILES).index(name)
        self.y[k], self.x[k] = records[:, 0], records[:, 1:].reshape(RECORDS, *SHAPE)
        self.read[name] = hashlib.sha1(raw, usedforsecurity=False).hexdigest() == FILES[name]

    def missing(self) -> list[str]:
        """Return the names of the files that have not been read."""
        return [name for name in FILES if name not in self.read]

    def all(self) -> Images:
        """Return what the files hold together."""
        return Images(
            self.x[:-1].reshape(-1, *SHAPE),
            self.y[:-1].reshape(-1),
            self.x[-1],
            self.y[-1],
            "" if all(self.read.values()) else OTHER_FILES,
        )


def _missing(folders: tuple[Path, ...], error: Exception) -> str:
    looked_in = " and ".join(str(folder) for folder in folders)
    if in_container():
        remedy = "Put either into a folder `cifar10` and run with EDGEBED_DATA_DIR=/folder/above/it docker compose up"
    else:
        remedy = f"Put either into {folders[0]}, or set EDGEBED_DATA_DIR to the folder that has it"
    return (
        f"data: cifar10: found neither {ARCHIVE} nor a folder {UNPACKED} with its files; looked in {looked_in}. "
        f"Downloading failed: {error}. {remedy}, or run once with a network."
    )
