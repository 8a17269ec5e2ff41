"""What only one test of the machine may do at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCKS = Path("/run/lock")


@contextmanager
def one_at_a_time(what: str) -> Iterator[None]:
    """Have this to oneself, whichever process asks for it."""
    LOCKS.mkdir(parents=True, exist_ok=True)
    with (LOCKS / f"edgebed-{what}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
