"""What the controller's own container does not see of its user's files."""

import os


def in_container() -> bool:
    """Whether this is edgebed's controller in a container of its own: its image sets EDGEBED_CONTAINER=1."""
    return os.environ.get("EDGEBED_CONTAINER") == "1"
