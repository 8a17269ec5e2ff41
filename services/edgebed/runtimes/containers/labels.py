"""The labels by which edgebed's containers and networks are known."""

PREFIX = "edgebed"
LABEL_OWNER = f"{PREFIX}.owner"
LABEL_RUN = f"{PREFIX}.run"
COMPOSE = "com.docker.compose"
