"""Files that are replaced in one step."""

import os
import stat

import pytest

from edgebed.core.disk import replacing


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_file_has_the_modes_of_the_umask(tmp_path, umask, mode):
    """As every other file of a run: nobody reads one whose user keeps it private."""
    before = os.umask(umask)
    try:
        with replacing(tmp_path / "file") as file:
            os.write(file, b"new")
        os.close(file)
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_an_error_leaves_the_old_file_alone(tmp_path):
    """And nothing of the new one."""
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(OSError, match="Bad file descriptor"), replacing(tmp_path / "file") as file:
        os.write(-1, b"new" * file)

    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"old")]
