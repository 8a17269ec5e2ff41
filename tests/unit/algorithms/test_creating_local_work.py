"""docs/creating-local-work.md works: its files beside each other, with one process and with two."""

from pathlib import Path

import pytest
from followed_document import Document, run_in

DOCUMENT = Document("creating-local-work.md")


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Path:
    """A folder with the files of one's own."""
    return DOCUMENT.write(tmp_path_factory.mktemp("own"))


@pytest.mark.slow
def test_what_a_worker_remembers_does_not_depend_on_who_computes(own):
    """The same journal with one process and with two, bit for bit; its expectation is met."""
    assert set(DOCUMENT.files) == {"local_lion.py", "local_lion.yaml"}
    for processes in ("1", "2"):
        options = ("--runtime", "simulation", "--processes", processes, "--runs-dir", f"runs-{processes}")
        done = run_in(own, "-m", "edgebed", "run", "local_lion.yaml", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "The expectation is met." in done.stdout
    one, two = own.glob("runs-*/local-lion/0001/*/events.jsonl")

    assert one.read_bytes() == two.read_bytes()


def test_it_is_valid_and_its_memory_is_measured(own):
    """`validate` does it twice at each of two steps."""
    done = run_in(own, "-m", "edgebed", "validate", "local_lion.yaml")

    assert done.returncode == 0, done.stdout + done.stderr
