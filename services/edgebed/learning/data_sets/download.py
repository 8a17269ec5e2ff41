"""Fetching a published file into a folder: checked before it counts, complete or not there at all.

Never waits long: a server that does not answer within a few seconds, or that is too slow as a whole, counts as absent.
"""

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from edgebed.core.errors import InfrastructureError, unwritten

ANSWER_TIMEOUT_S = 10.0
TOTAL_TIMEOUT_S = 180.0  # 10 MB at half a megabit a second
PIECE_BYTES = 1 << 16
SIZE_BYTES_MAX = 1 << 28  # more than any file asked for; a wrong server must not fill the memory


class DownloadError(Exception):
    """No mirror delivered the file; the message says why, for each."""


def fetch(
    urls: Sequence[str], target: Path, check: Callable[[bytes], object], total_timeout_s: float | None = None
) -> None:
    """Write to `target` what the first of `urls` delivers that passes `check`, which raises ValueError otherwise.

    Each has `total_timeout_s` (else `TOTAL_TIMEOUT_S`). DownloadError if none does; InfrastructureError if the file
    cannot be written.
    """
    from http.client import HTTPException  # loads ssl

    failures = []
    for url in urls:
        try:
            content = _get(url, TOTAL_TIMEOUT_S if total_timeout_s is None else total_timeout_s)
            check(content)
        except (OSError, HTTPException, ValueError) as error:
            failures.append(f"{url}: {getattr(error, 'reason', None) or error}")
        else:
            _write(target, content)
            return
    raise DownloadError("; ".join(failures))


def _get(url: str, total_timeout_s: float) -> bytes:
    import urllib.request  # loads ssl

    deadline = time.monotonic() + total_timeout_s
    content = bytearray()
    with urllib.request.urlopen(url, timeout=ANSWER_TIMEOUT_S) as response:  # noqa: S310  # the urls are constants
        while piece := response.read1(PIECE_BYTES):
            content += piece
            if time.monotonic() > deadline:
                raise TimeoutError(f"not complete after {total_timeout_s:g} s")
            if len(content) > SIZE_BYTES_MAX:
                raise ValueError(f"more than {SIZE_BYTES_MAX} bytes")
    return bytes(content)


def _write(target: Path, content: bytes) -> None:
    """Write to a temporary neighbour and rename it, so that no reader ever meets half a file."""
    temporary = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            temporary = file.name
            file.write(content)
        os.chmod(temporary, 0o644)  # noqa: PTH101  # a temporary file is for its owner alone; data may be shared
        os.replace(temporary, target)  # noqa: PTH105
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108
        raise InfrastructureError(f"{target}: {unwritten(error, 'EDGEBED_DATA_DIR')}") from error
