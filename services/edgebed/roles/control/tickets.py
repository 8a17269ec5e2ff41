"""Users who wait for the answer to what they asked for by hand."""

from edgebed.roles.events import CommandResult, Effect


class Tickets:
    """Problems so far by the ticket of each user who waits."""

    def __init__(self) -> None:
        self.problems: dict[int, list[str]] = {}
        self.ordering: int | None = None
        """Ticket whose order is not asked for as a whole yet, and so cannot be answered."""

    def open(self, ticket: int) -> None:
        """Begin an order."""
        self.problems[ticket] = []
        self.ordering = ticket

    def note(self, ticket: int, problem: str) -> None:
        """Note a part of an order that is not done."""
        self.problems[ticket].append(problem)

    def is_due(self, ticket: int) -> bool:
        """Whether a user waits for the answer, and all of the order has been asked for."""
        return ticket in self.problems and ticket != self.ordering

    def answer(self, ticket: int) -> list[Effect]:
        """Answer the user."""
        return [CommandResult(ticket, "; ".join(self.problems.pop(ticket)))]

    def close(self) -> list[Effect]:
        """Tell all users who wait that nothing is done any more."""
        problems, self.problems = self.problems, {}
        return [CommandResult(ticket, "; ".join([*each, "the trial has ended"])) for ticket, each in problems.items()]
