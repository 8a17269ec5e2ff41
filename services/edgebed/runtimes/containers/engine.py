"""The container engine: a connection to it, and its errors in words that say what to do next."""

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound
from docker.utils.socket import STDOUT, frames_iter

from edgebed.core.errors import InfrastructureError

SOCKET = Path("/var/run/docker.sock")  # where the library looks unless it is told otherwise
CALL_S_MAX = 60  # for one call; a busy engine takes seconds, a dead one for ever


def is_there() -> bool:
    """Whether there is a container engine: $DOCKER_HOST names one, or the usual socket exists."""
    return bool(os.environ.get("DOCKER_HOST")) or SOCKET.exists()


def connect(connections: int = 10) -> docker.DockerClient:
    """A client of the user's own engine ($DOCKER_HOST, else the current context), for so many calls at once; close it.

    Raises InfrastructureError where no engine answers.
    """
    try:
        client = docker.from_env(timeout=CALL_S_MAX, max_pool_size=connections)
        client.ping()
    except (DockerException, requests.RequestException, OSError) as error:
        raise InfrastructureError(f"no container engine answers: {_reason(error)}. {_what_next(error)}") from error
    return client


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn an error of the engine into an InfrastructureError that begins with `what`."""
    try:
        yield
    except ImageNotFound as error:
        raise InfrastructureError(
            f"{what}: {_reason(error)}. Build the images: scripts/build-images (or docker compose build)."
        ) from error
    except APIError as error:
        raise InfrastructureError(f"{what}: {_reason(error)}.{_hint(_reason(error))}") from error
    except (DockerException, requests.RequestException, ConnectionError, TimeoutError) as error:
        raise InfrastructureError(f"{what}: the container engine does not answer: {_reason(error)}") from error
    except OSError as error:
        raise InfrastructureError(f"{what}: {error}") from error


@contextmanager
def attached(client: docker.DockerClient, container: str) -> Iterator[Iterator[bytes]]:
    """The output of a container from now on, until it ends."""
    stream = client.api.attach_socket(container, {"stdout": 1, "stderr": 1, "stream": 1})
    try:
        yield (part for _, part in frames_iter(stream, tty=False))
    finally:
        _close(stream)


class Conversation:
    """Lines to and from a container's process."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._frames = frames_iter(stream, tty=False)
        self._output = b""
        self.complaints = b""
        """The process's output on standard error."""

    def say(self, line: bytes) -> None:
        """Write a line to the process's standard input. Raises OSError if it has ended."""
        self._stream._sock.sendall(line + b"\n")  # noqa: SLF001 - the stream itself is for reading alone

    def hear(self, silence_s_max: float | None = None) -> bytes:
        """The next line from the process's standard output; nothing when it has ended.

        Raises TimeoutError if it prints nothing for so long; without a time it may be silent for ever.
        """
        readable = select.poll()
        readable.register(self._stream, select.POLLIN)
        while b"\n" not in self._output:
            if not readable.poll(None if silence_s_max is None else 1000 * silence_s_max):
                raise TimeoutError
            stream, part = next(self._frames, (0, b""))
            if not part:
                return b""
            if stream == STDOUT:
                self._output += part
            else:
                self.complaints += part
        line, _, self._output = self._output.partition(b"\n")
        return line


@contextmanager
def conversing(client: docker.DockerClient, container: str) -> Iterator[Conversation]:
    """A conversation with a container that was made with an open standard input and is to be started in here.

    Its standard input closes when the conversation ends, or this process.
    """
    stream = client.api.attach_socket(container, {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
    try:
        yield Conversation(stream)
    finally:
        _close(stream)


def _close(stream: Any) -> None:
    stream._sock.close()  # noqa: SLF001 - closing the stream alone leaves the connection open
    stream.close()


def _reason(error: BaseException) -> str:
    """The engine's error, or the system's on the way to the engine, in one line."""
    if isinstance(error, APIError) and error.explanation:
        return " ".join(str(error.explanation).split()).rstrip(".")[:300]
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    return " ".join(str(error).split()).rstrip(".")[:300]


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and all that led to it: libraries wrap them in one another's arguments."""
    waiting: list[object] = [error]
    seen: set[int] = set()
    while waiting:
        found = waiting.pop(0)
        if isinstance(found, BaseException) and id(found) not in seen:
            seen.add(id(found))
            yield found
            waiting += [*found.args, found.__cause__, found.__context__, getattr(found, "reason", None)]


def _what_next(error: Exception) -> str:
    if any(isinstance(cause, PermissionError) for cause in _causes(error)):
        return "This user may not use its socket: `sudo usermod -aG docker $USER`, then log in again."
    where = os.environ.get("DOCKER_HOST")
    if where:
        return f"DOCKER_HOST is {where}: is the engine there running?"
    return "Start it (`sudo systemctl start docker`), or run without it: --runtime process."


def _hint(reason: str) -> str:
    if "address pool" in reason or "no available IPv4" in reason:
        return " The engine has no free addresses: try `edgebed down`, then `docker network prune`."
    if "no space left" in reason:
        return " The engine's disk is full: `docker system df` shows with what."
    return ""
