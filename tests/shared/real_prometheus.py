"""A Prometheus that is started for a test, and asked."""

import contextlib
import dataclasses
import json
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from edgebed.metrics.openmetrics import SampleStore
from edgebed.running.replay import into_folder


def require_tools() -> None:
    """Skip where Prometheus and promtool are not here."""
    if not (shutil.which("prometheus") and shutil.which("promtool")):
        pytest.skip("no Prometheus: install it (Debian: apt-get install prometheus, and stop the service)")


@dataclasses.dataclass
class Prometheus:
    """A Prometheus that answers, at a host and port."""

    address: str

    def get(self, path: str, **parameters: str) -> Any:
        """The data of an answer that is a success."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://{self.address}/api/v1/{path}?{query}", timeout=10) as answer:
            said = json.load(answer)
        assert said["status"] == "success"
        assert not said.get("warnings")
        return said["data"]

    def at(self, query: str, at_s: float) -> list[tuple[dict[str, str], float]]:
        """What a query has at that Unix time: labels and value of each series."""
        result = self.get("query", query=query, time=f"{at_s:.3f}")["result"]
        return [(one["metric"], float(one["value"][1])) for one in result]

    def last(self, selector: str) -> float:
        """The sum of the selected series' last values, however long ago."""
        (result,) = self.get("query", query=f"sum(last_over_time({selector}[15m]))")["result"]
        return float(result["value"][1])

    def up(self, trial: str) -> dict[str, float]:
        """Node of a trial: 1 if its last scrape was answered; for the nodes on the list now."""
        result = self.get("query", query=f'up{{job="edgebed-nodes",trial="{trial}"}}')["result"]
        return {one["metric"]["node"]: float(one["value"][1]) for one in result}

    def answers(self) -> bool:
        """Whether it is up."""
        try:
            return self.get("query", query="1") is not None
        except OSError:
            return False


@contextlib.contextmanager
def showing(folder: Path, *books: SampleStore) -> Iterator[Prometheus]:
    """One in an empty folder that began with the blocks of these books."""
    require_tools()
    (folder / "prometheus.yml").write_text("global: {}\n")
    (folder / "data").mkdir()
    for book in books:
        into_folder(book, folder / "data")
    assert [path.name for path in (folder / "data").iterdir() if not (path / "meta.json").is_file()] == []
    prometheus = Prometheus(f"127.0.0.1:{free_port()}")
    command = (
        "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
        "--storage.tsdb.retention.time=100y", f"--web.listen-address={prometheus.address}",
    )  # fmt: skip
    with started(*command, log=folder / "log"):
        until(prometheus.answers, "Prometheus")
        yield prometheus


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def started(*command: str | Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is gone afterwards."""
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            yield process
        finally:
            process.kill()
