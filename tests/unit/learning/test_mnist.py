"""The MNIST reader, on small stand-ins for the four files, on a local mirror, and on the real files where they are."""

import gzip
import hashlib
import http.server
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from local_mirror import serving

from edgebed.core.errors import InfrastructureError, ScenarioError
from edgebed.learning.data_sets import download, mnist
from edgebed.learning.data_sets.registry import data_directory, load_data

SHAPES = {
    "train-images-idx3-ubyte": (6, 28, 28),
    "train-labels-idx1-ubyte": (6,),
    "t10k-images-idx3-ubyte": (3, 28, 28),
    "t10k-labels-idx1-ubyte": (3,),
}
NOBODY = "http://127.0.0.1:1/"  # a port on which nothing answers


def content_of(name: str) -> bytes:
    """An IDX file: images count upwards, labels are 0, 1, 2 ..."""
    shape = SHAPES[name]
    values = np.arange(np.prod(shape)) % (10 if len(shape) == 1 else 256)
    header = struct.pack(f">HBB{len(shape)}i", 0, 8, len(shape), *shape)
    return header + values.astype(np.uint8).tobytes()


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The reader expects the stand-ins, and no mirror answers."""
    if "real" in request.node.name:
        return
    monkeypatch.setattr(
        mnist,
        "FILES",
        {
            name: (hashlib.md5(content_of(name), usedforsecurity=False).hexdigest(), shape)
            for name, shape in SHAPES.items()
        },
    )
    monkeypatch.setattr(mnist, "MIRRORS", (NOBODY, NOBODY))
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)


def put_files(folder: Path, *, packed: bool = True, dotted: bool = False) -> None:
    """Write the four stand-ins to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SHAPES:
        spelling = name.replace("-idx", ".idx") if dotted else name
        content = content_of(name)
        if packed:
            (folder / f"{spelling}.gz").write_bytes(gzip.compress(content, 1))
        else:
            (folder / spelling).write_bytes(content)


class Mirror(http.server.BaseHTTPRequestHandler):
    """Serves the stand-ins packed; /broken/ lacks the last byte, /other/ has other content, /gone/ has nothing."""

    def do_GET(self) -> None:
        """Answer with a file, or 404."""
        *folders, name = self.path.strip("/").split("/")
        folder = folders[0] if folders else ""
        if folder == "gone":
            self.send_error(404)
            return
        body = gzip.compress(content_of(name.removesuffix(".gz")) + (b"x" if folder == "other" else b""))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:-1] if folder == "broken" else body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def mirror() -> Iterator[str]:
    """The address of a local mirror."""
    with serving(Mirror) as address:
        yield address


@pytest.mark.parametrize("subfolder", ["mnist", "."])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("dotted", [True, False])
def test_files_are_found_in_every_usual_form(tmp_path: Path, subfolder: str, packed: bool, dotted: bool) -> None:
    """In the data directory or its folder `mnist`, gzipped or not, with a dash or a dot before `idx`."""
    put_files(tmp_path / subfolder, packed=packed, dotted=dotted)
    data = load_data("mnist", seed=0, data_dir=tmp_path)
    assert data.train.inputs[""].shape == (6, 1, 28, 28)
    assert data.test.inputs[""].shape == (3, 1, 28, 28)
    assert data.train.inputs[""].dtype == np.uint8
    assert data.train.inputs[""][1, 0, 0, 0] == 28 * 28 % 256
    assert data.train.targets[""].tolist() == [0, 1, 2, 3, 4, 5]
    assert data.outputs == 10


def test_without_a_network_the_missing_files_are_named_with_what_to_do(tmp_path: Path) -> None:
    """Each missing file, the folders looked in, the reason, the environment variable."""
    put_files(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte.gz").unlink()
    (tmp_path / "t10k-images-idx3-ubyte.gz").unlink()
    with pytest.raises(ScenarioError) as caught:
        load_data("mnist", seed=0, data_dir=tmp_path)
    message = str(caught.value)
    for part in (
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        str(tmp_path / "mnist"),
        "EDGEBED_DATA_DIR",
        "refused",
        NOBODY,
    ):
        assert part in message
    assert "train-images" not in message.partition("Downloading")[0]
    assert not (tmp_path / "mnist").exists()


@pytest.mark.parametrize("packed", [True, False])
def test_a_truncated_file_is_refused_with_both_checksums(tmp_path: Path, packed: bool) -> None:
    """It names the file, the md5 expected and the md5 found, and says what to do."""
    put_files(tmp_path, packed=packed)
    path = tmp_path / ("t10k-images-idx3-ubyte" + (".gz" if packed else ""))
    broken = path.read_bytes()[:-20]
    path.write_bytes(broken)
    with pytest.raises(ScenarioError) as caught:
        load_data("mnist", seed=0, data_dir=tmp_path)
    message = str(caught.value)
    assert str(path) in message
    assert mnist.FILES["t10k-images-idx3-ubyte"][0] in message
    assert hashlib.md5(broken, usedforsecurity=False).hexdigest() in message
    assert "Delete it" in message


@pytest.mark.parametrize(
    "content", [b"", b"\x1f\x8b", b"\x1f\x8b\x08garbage that is no gzip", b"<html>not found</html>"]
)
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """Whatever lies there under the name, the answer is a message about that file."""
    put_files(tmp_path)
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(content)
    with pytest.raises(ScenarioError, match=r"train-images-idx3-ubyte\.gz: expected content of md5"):
        load_data("mnist", seed=0, data_dir=tmp_path)


def test_a_changed_pixel_is_noticed(tmp_path: Path) -> None:
    """The checksum is that of the content, not of the packing."""
    put_files(tmp_path)
    content = bytearray(content_of("train-images-idx3-ubyte"))
    content[-1] ^= 1
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(bytes(content)))
    with pytest.raises(ScenarioError, match="found md5"):
        load_data("mnist", seed=0, data_dir=tmp_path)


def test_missing_files_are_downloaded_once(tmp_path: Path, mirror: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first mirror that answers; afterwards no network is needed, and nothing else is left in the folder."""
    monkeypatch.setattr(mnist, "MIRRORS", (NOBODY, mirror))
    first = load_data("mnist", seed=0, data_dir=tmp_path)
    monkeypatch.setattr(mnist, "MIRRORS", (NOBODY,))
    second = load_data("mnist", seed=0, data_dir=tmp_path)
    assert np.array_equal(first.train.inputs[""], second.train.inputs[""])
    assert sorted(f"{name}.gz" for name in SHAPES) == sorted(path.name for path in (tmp_path / "mnist").iterdir())


@pytest.mark.parametrize(
    ("folder", "reason"),
    [("other/", "found md5"), ("broken/", "IncompleteRead|damaged"), ("gone/", "Not Found")],
)
def test_a_bad_download_leaves_no_file(
    tmp_path: Path, mirror: str, monkeypatch: pytest.MonkeyPatch, folder: str, reason: str
) -> None:
    """Other content, half a file or none: refused, and the folder stays as it was."""
    monkeypatch.setattr(mnist, "MIRRORS", (mirror + folder,))
    with pytest.raises(ScenarioError, match=reason):
        load_data("mnist", seed=0, data_dir=tmp_path)
    assert list(tmp_path.rglob("*")) == []


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path, mirror: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's fault, with the path and the way out."""
    monkeypatch.setattr(mnist, "MIRRORS", (mirror,))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InfrastructureError, match=r"cannot be written: Not a directory; .*EDGEBED_DATA_DIR"):
        load_data("mnist", seed=0, data_dir=tmp_path / "file")


def test_no_space_left_is_reported_and_leaves_nothing(
    tmp_path: Path, mirror: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The half-written temporary file is removed."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mnist, "MIRRORS", (mirror,))
    monkeypatch.setattr("edgebed.learning.data_sets.download.os.replace", full)
    with pytest.raises(InfrastructureError, match="No space left on device"):
        load_data("mnist", seed=0, data_dir=tmp_path)
    assert list((tmp_path / "mnist").iterdir()) == []


def test_a_server_that_never_ends_is_given_up(mirror: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A download that takes too long as a whole counts as failed."""
    monkeypatch.setattr(mnist, "MIRRORS", (mirror,))
    monkeypatch.setattr(download, "TOTAL_TIMEOUT_S", -1.0)
    with pytest.raises(ScenarioError, match="not complete after"):
        load_data("mnist", seed=0, data_dir=tmp_path)


def test_the_real_files_are_read_as_published() -> None:
    """60,000 and 10,000 images of 28x28 with the published counts of each label."""
    if any(mnist.find(name, (data_directory() / "mnist", data_directory())) is None for name in mnist.FILES):
        pytest.skip(f"the MNIST files are not in {data_directory()}; set EDGEBED_DATA_DIR to the folder that has them")
    data = load_data("mnist", seed=0)
    assert data.train.inputs[""].shape == (60_000, 1, 28, 28)
    assert data.test.inputs[""].shape == (10_000, 1, 28, 28)
    assert data.train.targets[""][:5].tolist() == [5, 0, 4, 1, 9]
    assert np.bincount(data.test.targets[""]).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_in_a_container_the_remedy_is_one_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own folders mean nothing there."""
    monkeypatch.setenv("EDGEBED_CONTAINER", "1")
    with pytest.raises(ScenarioError, match=r"run with EDGEBED_DATA_DIR=\S+ docker compose up") as caught:
        mnist.load(tmp_path / "mnist", tmp_path)

    assert f"Put the files into {tmp_path}" not in str(caught.value)
