"""The CIFAR-10 reader, on small stand-ins for the six files and on files of the real size."""

import gzip
import hashlib
import http.server
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from local_mirror import serving

from edgebed.core.errors import ScenarioError
from edgebed.learning.data_sets import cifar10
from edgebed.learning.data_sets.registry import load_data

NAMES = tuple(cifar10.FILES)
NOBODY = "http://127.0.0.1:1/"  # a port on which nothing answers
SMALL = 4
"""Records of a stand-in."""


def content_of(name: str, records: int = SMALL) -> bytes:
    """Labels count upwards from the file's number, pixels are random."""
    k = NAMES.index(name)
    labels = (np.arange(records) + k) % 10
    pixels = np.random.default_rng(k).integers(0, 256, (records, 3072), dtype=np.uint8)
    return np.concatenate([labels[:, None].astype(np.uint8), pixels], axis=1).tobytes()


def archive_of(names: tuple[str, ...] = NAMES) -> bytes:
    """The stand-ins as they are published, in an order of their own."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name in ("readme.html", *reversed(names)):
            content = b"text" if name == "readme.html" else content_of(name)
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


PACKED = archive_of()


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The reader expects the stand-ins, and no mirror answers."""
    monkeypatch.setattr(cifar10, "MIRRORS", (NOBODY,))
    for variable in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    if "real_size" in request.node.name:
        return
    sums = {name: hashlib.sha1(content_of(name), usedforsecurity=False).hexdigest() for name in NAMES}
    monkeypatch.setattr(cifar10, "FILES", sums)
    monkeypatch.setattr(cifar10, "RECORDS", SMALL)
    monkeypatch.setattr(cifar10, "ARCHIVE_MD5", hashlib.md5(PACKED, usedforsecurity=False).hexdigest())


def put_files(folder: Path) -> Path:
    """Write the stand-ins."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        (folder / name).write_bytes(content_of(name))
    return folder


@pytest.mark.parametrize("subfolder", ["cifar10/cifar-10-batches-bin", "cifar10", "cifar-10-batches-bin", "."])
def test_unpacked_files_are_found_in_every_usual_place(tmp_path: Path, subfolder: str) -> None:
    """In the data directory or its folder `cifar10`, in the folder that the archive makes or beside it."""
    put_files(tmp_path / subfolder)
    data = load_data("cifar10", seed=0, data_dir=tmp_path)

    assert data.train.inputs[""].shape == (5 * SMALL, 3, 32, 32)
    assert data.test.inputs[""].shape == (SMALL, 3, 32, 32)
    assert (data.train.inputs[""].dtype, data.outputs, data.note) == (np.uint8, 10, "")
    assert data.train.targets[""][SMALL : 2 * SMALL].tolist() == [1, 2, 3, 4]
    assert data.test.targets[""].tolist() == [5, 6, 7, 8]


def test_an_image_is_red_then_green_then_blue_row_by_row(tmp_path: Path) -> None:
    """Byte 1 + 1024 c + 32 y + x of a record."""
    put_files(tmp_path)
    data = load_data("cifar10", seed=0, data_dir=tmp_path)
    raw = content_of("data_batch_3.bin")

    assert data.train.inputs[""][2 * SMALL + 1, 2, 5, 7] == raw[3073 + 1 + 2 * 1024 + 5 * 32 + 7]


def test_the_archive_is_read_as_it_is(tmp_path: Path) -> None:
    """The same as the files in it, whatever their order there."""
    (tmp_path / cifar10.ARCHIVE).write_bytes(PACKED)
    packed = load_data("cifar10", seed=0, data_dir=tmp_path)
    put_files(tmp_path / "cifar10")
    unpacked = load_data("cifar10", seed=0, data_dir=tmp_path)

    assert packed.note == ""
    for one, other in ((packed.train, unpacked.train), (packed.test, unpacked.test)):
        np.testing.assert_array_equal(one.inputs[""], other.inputs[""])
        np.testing.assert_array_equal(one.targets[""], other.targets[""])


def test_other_images_of_the_same_layout_are_taken_and_told(tmp_path: Path) -> None:
    """A pixel that was changed, as by another compression."""
    path = put_files(tmp_path) / "test_batch.bin"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    data = load_data("cifar10", seed=0, data_dir=tmp_path)

    assert data.note == "not the published files"
    assert data.test.inputs[""].reshape(-1)[99] == content[100]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda raw: raw[:-1], r"data_batch_2\.bin: 12,291 bytes, expected 12,292: 4 records\."),
        (lambda raw: b"\x0a" + raw[1:], r"data_batch_2\.bin: has a label 10; labels are 0 to 9\."),
        (lambda raw: b"", r"data_batch_2\.bin: 0 bytes"),
    ],
)
def test_what_is_not_of_that_layout_is_refused(tmp_path: Path, change, said: str) -> None:
    """With the file, and what was expected."""
    path = put_files(tmp_path) / "data_batch_2.bin"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ScenarioError, match=said):
        load_data("cifar10", seed=0, data_dir=tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"<html>not found</html>", PACKED[:-200], PACKED[:1000], gzip.compress(b"no archive", mtime=0)],
    ids=["empty", "a page", "cut short", "only a start", "packed, but no archive"],
)
def test_a_broken_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    """Whatever lies there under the name, the answer is a message about that file."""
    (tmp_path / cifar10.ARCHIVE).write_bytes(content)
    with pytest.raises(ScenarioError, match=r"cifar-10-binary\.tar\.gz"):
        load_data("cifar10", seed=0, data_dir=tmp_path)


def test_an_archive_that_lacks_a_file_is_refused(tmp_path: Path) -> None:
    """It is named."""
    (tmp_path / cifar10.ARCHIVE).write_bytes(archive_of(NAMES[:-1]))
    with pytest.raises(ScenarioError, match=r"has no test_batch\.bin\. Delete it"):
        load_data("cifar10", seed=0, data_dir=tmp_path)


def test_without_a_network_it_says_what_is_missing_and_what_to_do(tmp_path: Path) -> None:
    """A folder that lacks one of the files is none."""
    (put_files(tmp_path / cifar10.UNPACKED) / "test_batch.bin").unlink()
    with pytest.raises(ScenarioError) as caught:
        load_data("cifar10", seed=0, data_dir=tmp_path)
    for part in (cifar10.ARCHIVE, cifar10.UNPACKED, str(tmp_path / "cifar10"), "EDGEBED_DATA_DIR", "refused", NOBODY):
        assert part in str(caught.value)
    assert not (tmp_path / "cifar10").exists()


class Mirror(http.server.BaseHTTPRequestHandler):
    """Serves the archive; below /other/ another one."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(archive_of(NAMES[:2]) if self.path.startswith("/other/") else PACKED)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def mirror() -> Iterator[str]:
    """The address of a local mirror."""
    with serving(Mirror) as address:
        yield address


def test_the_archive_is_downloaded_once(tmp_path: Path, mirror: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Afterwards no network is needed."""
    monkeypatch.setattr(cifar10, "MIRRORS", (mirror,))
    first = load_data("cifar10", seed=0, data_dir=tmp_path)
    monkeypatch.setattr(cifar10, "MIRRORS", (NOBODY,))
    second = load_data("cifar10", seed=0, data_dir=tmp_path)

    np.testing.assert_array_equal(first.train.inputs[""], second.train.inputs[""])
    assert [path.name for path in (tmp_path / "cifar10").iterdir()] == [cifar10.ARCHIVE]


@pytest.mark.parametrize(("folder", "timeout_s", "reason"), [("other/", 9.0, "found md5"), ("", -1.0, "not complete")])
def test_a_bad_download_leaves_no_file(
    tmp_path: Path, mirror: str, monkeypatch: pytest.MonkeyPatch, folder: str, timeout_s: float, reason: str
) -> None:
    """Another archive, or one that takes too long."""
    monkeypatch.setattr(cifar10, "MIRRORS", (mirror + folder,))
    monkeypatch.setattr(cifar10, "DOWNLOAD_S", timeout_s)
    with pytest.raises(ScenarioError, match=reason):
        load_data("cifar10", seed=0, data_dir=tmp_path)
    assert list(tmp_path.rglob("*")) == []


def test_files_of_the_real_size_are_read(tmp_path: Path) -> None:
    """50,000 and 10,000 images: noise, which is not what was published."""
    content = content_of("data_batch_1.bin", 10_000)
    (tmp_path / "data_batch_1.bin").write_bytes(content)
    for name in NAMES[1:]:
        (tmp_path / name).hardlink_to(tmp_path / "data_batch_1.bin")
    data = load_data("cifar10", seed=0, data_dir=tmp_path)

    assert (data.train.inputs[""].shape, data.test.inputs[""].shape) == ((50_000, 3, 32, 32), (10_000, 3, 32, 32))
    assert data.train.inputs[""].nbytes == 153_600_000
    assert np.bincount(data.train.targets[""]).tolist() == [5000] * 10
    assert data.note == cifar10.OTHER_FILES
