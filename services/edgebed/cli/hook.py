"""A command of the user's that is run for each event, such as one that notifies somebody of a failed node."""

import shlex
import shutil
import subprocess
from collections.abc import Callable

from edgebed.core.errors import ScenarioError

LONGEST_S = 60.0
"""Time after which a command is ended, so that what comes later is told, too."""


def runner_of(command: str, say: Callable[[str], None]) -> Callable[[str], None] | None:
    """A function that runs the command with an event, as a line of JSON on its standard input; None without a command.

    What the command prints goes to where this process prints; `say` is called where it fails or takes too long, and
    the next event is told all the same. ScenarioError where there is no such command.
    """
    if not command:
        return None
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ScenarioError(f"--run: {command!r} is no command: {error}") from error
    if not words or shutil.which(words[0]) is None:
        raise ScenarioError(
            f"--run: there is no command {words[0] if words else command!r}; give a program that can be run, with its "
            "arguments, or sh -c '…' for what a shell is needed for"
        )

    def run(event: str) -> None:
        try:
            done = subprocess.run(  # noqa: S603 # the command is the user's own
                words, input=f"{event}\n", text=True, timeout=LONGEST_S, check=False
            )
        except subprocess.TimeoutExpired:
            say(f"--run: {words[0]} took longer than {LONGEST_S:g} s, and was ended")
        except OSError as error:
            say(f"--run: {words[0]} could not be run: {error.strerror}")
        else:
            if done.returncode:
                say(f"--run: {words[0]} ended with exit code {done.returncode}")

    return run
