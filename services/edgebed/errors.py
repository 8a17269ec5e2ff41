"""What can go wrong, sorted by whose fault it is; the command line turns each into its exit code.

A message says where, what, what is allowed and what to do next. A broken invariant is an `assert`, never one of these.
"""


class EdgebedError(Exception):
    """Anything edgebed reports to a person without a traceback."""

    exit_code = 3


class ScenarioError(EdgebedError):
    """The user's mistake: a scenario, an option or a file that cannot be used. Found before anything starts.

    `problems` holds every mistake found, one complete message each.
    """

    exit_code = 2

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class InfrastructureError(EdgebedError):
    """The machine, the network or a node failed; the scenario was fine."""

    exit_code = 3
