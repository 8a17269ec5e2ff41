"""The examples of messages, as a fixture."""

import pytest
from example_messages import example_messages

from edgebed.wire import messages


@pytest.fixture(scope="session")
def examples() -> list[tuple[messages.AnyMessage, list[memoryview]]]:
    """Every kind of message at least once, with frames."""
    return example_messages()
