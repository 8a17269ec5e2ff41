"""How many files a process may open."""

import multiprocessing
import resource

import pytest

from edgebed.core.errors import InfrastructureError
from edgebed.core.linux import allow_open_files


def limits_after(needed: int, soft: int, hard: int) -> tuple[int, int] | str:
    """The limits of a process that had these, and then needs so many files; or what it is told."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(_limits_after, (needed, soft, hard))


def _limits_after(needed: int, soft: int, hard: int) -> tuple[int, int] | str:
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        allow_open_files(needed, "a controller of 900 nodes")
    except InfrastructureError as error:
        return str(error)
    return resource.getrlimit(resource.RLIMIT_NOFILE)


@pytest.mark.parametrize("needed", [0, 500, 800])
def test_a_process_takes_as_many_open_files_as_it_may_have(needed) -> None:
    """The usual limit is far below what the kernel would allow."""
    assert limits_after(needed, 256, 800) == (800, 800)


def test_too_few_open_files_are_said_with_what_to_do() -> None:
    """Before the first node is started, not in the middle of a run."""
    told = limits_after(1864, 256, 1024)

    assert isinstance(told, str)
    assert told.startswith("a controller of 900 nodes needs 1,864 open files, and this process may have 1,024; ")
    assert "ulimit -Hn 1864" in told
