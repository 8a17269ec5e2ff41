"""What the controller's container runs: the command `edgebed` as the owner of the scenarios, with the socket's group.

It begins as root, to read who owns the mounted scenarios and which group may use the engine's socket, and to hand over
a runs folder that the engine made; then it becomes that user for good. At its end it waits until the container is some
seconds old, since `docker compose wait` only knows the exit code of a container that still runs when it is asked.
"""

import os
import stat
import sys
import time
from pathlib import Path

SCENARIOS = Path("scenarios")
RUNS = Path("runs")
SOCKET = Path("/var/run/docker.sock")
UP = Path("/tmp/edgebed-up")  # noqa: S108 - what the container's health check looks for
AGE_S_MIN = 30.0  # `up --wait` waits for Prometheus and Grafana, too


def main() -> None:
    """Become the user, run the command, and end not too early."""
    started_s = time.monotonic()
    become_owner()
    UP.touch()
    from edgebed.cli.main import main as command

    try:
        command()
    except SystemExit as leaving:
        interrupted = leaving.code == 130  # a user who ended a run does not wait for its exit code
        if sys.argv[1:2] in (["run"], ["resume"]) and not interrupted:
            _wait_until_old(started_s)
        raise


def become_owner() -> None:
    """Drop to the owner of the scenarios, keeping the right to use the engine."""
    if not (SCENARIOS.is_dir() and RUNS.is_dir()):
        sys.exit("error: ./scenarios and ./runs are not mounted here: start this with docker compose")
    owner = SCENARIOS.stat()
    groups = [SOCKET.stat().st_gid] if SOCKET.exists() and stat.S_ISSOCK(SOCKET.stat().st_mode) else []
    if RUNS.stat().st_uid == 0 and owner.st_uid and not any(RUNS.iterdir()):
        os.chown(RUNS, owner.st_uid, owner.st_gid)
    os.setgroups(groups)
    os.setgid(owner.st_gid)
    os.setuid(owner.st_uid)


def _wait_until_old(started_s: float) -> None:
    left_s = AGE_S_MIN - (time.monotonic() - started_s)
    if left_s > 0:
        print(f"this container ends in {left_s:.0f} s, so that its exit code can be waited for", flush=True)
        time.sleep(left_s)


if __name__ == "__main__":
    main()
