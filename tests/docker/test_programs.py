"""Programs of the user's in containers: what holds of them everywhere, and what is of containers alone.

Method: real trials with plans made by hand. What the programs print, the journal and the engine tell what was done.
"""

from program_laws import ProgramLaws


class TestProgramsInContainers(ProgramLaws):
    """Each in the place that its holder keeps; that nothing is left, conftest.py looks at."""

    runtime = "docker"
    command = "python"
    left = 0  # the kernel ends them with the program, and nobody counts
