"""The labels by which edgebed's containers and networks are known."""

PREFIX = "edgebed"
LABEL_OWNER = f"{PREFIX}.owner"
"""Label with the controller that made the container or network (owner.py)."""
LABEL_RUN = f"{PREFIX}.run"
"""Label with the run's name, for people: `quickstart/0001`."""
LABEL_FOLDER = f"{PREFIX}.folder"
"""Label of the volume of a server's log with the run's folder, as its controller sees it."""
LABEL_TRIAL = f"{PREFIX}.trial"
"""Label with the trial's name, for people."""
LABEL_SITE = f"{PREFIX}.site"
"""Label with a value that everything made for one trial has in common."""
LABEL_VOLUME = f"{PREFIX}.volume"
"""Label of a container with the name of the volume that the server of its trial logs to."""
COMPOSE = "com.docker.compose"
OF_NO_PROJECT = {f"{COMPOSE}.project": "", f"{COMPOSE}.service": ""}
"""Labels that Compose gives to the images it builds, emptied: else `docker compose up` takes a container for its own,
and prints what it says."""
