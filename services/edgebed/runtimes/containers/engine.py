"""Container engines: a connection to one, and its errors in words that say what to do next.

An engine on another host is reached over TCP, with TLS, or through ssh (tunnel.py). A connection that is cut off ends
within half a minute: nobody waits for ever on a host that is gone.
"""

import select
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection

from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.hosts import EngineAddress
from edgebed.runtimes.containers.contexts import USUAL, Endpoint, endpoint_of
from edgebed.runtimes.containers.tunnel import Tunnel

SOCKET = Path("/var/run/docker.sock")  # where an engine listens unless it is told otherwise
CALL_S_MAX = 60  # for one call; a busy engine takes seconds, a dead one for ever
KEPT_ALIVE = (
    *HTTPConnection.default_socket_options,
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 20_000),
)
"""Options of sockets to an engine over TCP: attached ones are silent for hours, and must learn that a host is gone."""
STDOUT = 1
HEADER = struct.Struct(">BxxxL")
"""Header of a frame: the stream it is of, and its size."""
PART_BYTES = 65536


class EngineClient(docker.DockerClient):  # type: ignore[misc] # the library has no types
    """A client of one engine, with the tunnel that leads to it, if any; close it."""

    def __init__(self, endpoint: Endpoint, connections: int) -> None:
        """Connect, and see that an engine answers."""
        self.endpoint = endpoint
        self.tunnel = Tunnel(endpoint.url) if endpoint.url.startswith("ssh://") else None
        try:
            url = f"unix://{self.tunnel.socket}" if self.tunnel else endpoint.url
            _require_listener(url)
            self.api = _Calls(url, endpoint.tls, connections)
            self.ping()
        except BaseException as error:
            self._end_with(error)
            raise

    @property
    def is_remote(self) -> bool:
        """Whether the engine may be another machine's."""
        return self.endpoint.is_remote

    def close(self) -> None:
        """End all connections, and the tunnel."""
        try:
            super().close()
        finally:
            if self.tunnel:
                self.tunnel.close()

    def _end_with(self, error: BaseException) -> None:
        """Close after a failure; what ssh said of it says more than the end of a connection."""
        words = self.tunnel.words() if self.tunnel else ""
        if hasattr(self, "api"):
            self.api.close()
        if self.tunnel:
            self.tunnel.close()
        if words and not isinstance(error, InfrastructureError):
            raise InfrastructureError(
                f"no container engine answers at {self.endpoint.url}: {words}. The path of its socket there, where it "
                "is another, ends the address; may this user use it: docker info"
            ) from error


class _Calls(docker.APIClient):  # type: ignore[misc] # the library has no types
    """The library's calls, over sockets that find out when the other end is gone.

    Differs from it in certificates, too: the environment's, for the web, say nothing of an engine.
    """

    def __init__(self, url: str, tls: Any, connections: int) -> None:
        self._connections = connections
        super().__init__(url, tls=tls or False, timeout=CALL_S_MAX, max_pool_size=connections)

    def mount(self, prefix: str, adapter: Any) -> None:
        """Take what makes connections to such addresses; plain TCP is watched."""
        plain = type(adapter) is HTTPAdapter
        super().mount(prefix, _KeptAlive(pool_maxsize=self._connections) if plain else adapter)

    def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> Any:
        """As `requests` does it, without $REQUESTS_CA_BUNDLE and $CURL_CA_BUNDLE, which it puts before the client's."""
        verify = self.verify if verify is None else verify
        settings = super().merge_environment_settings(url, proxies, stream, verify, cert)
        return settings | {"verify": verify}


class _KeptAlive(HTTPAdapter):
    """Makes connections over TCP that find out when the other end is gone."""

    def init_poolmanager(self, *arguments: Any, **settings: Any) -> None:
        """As its base does it, with the options of the sockets."""
        super().init_poolmanager(*arguments, socket_options=KEPT_ALIVE, **settings)


def _require_listener(url: str) -> None:
    """Raise OSError where nobody listens on a local socket; the library would leave its own end open."""
    if url.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as trial:
            trial.connect(url.removeprefix("unix://"))


def is_there() -> bool:
    """Whether there is a container engine: one is named in any way that `docker` knows, or the usual socket exists."""
    try:
        return endpoint_of(None).url != USUAL or SOCKET.exists()
    except InfrastructureError:
        return True  # one is named, and `connect` says why it cannot be used


def connect(address: EngineAddress | None = None, connections: int = 10) -> EngineClient:
    """A client of a host's engine, or of the user's own as `docker` finds it, for so many calls at once; close it.

    Raises InfrastructureError where no engine answers.
    """
    host = f"host {address.host}: " if address else ""
    endpoint = Endpoint()
    try:
        endpoint = endpoint_of(address)
        return EngineClient(endpoint, connections)
    except InfrastructureError as error:
        raise InfrastructureError(f"{host}{error}") from error
    except (DockerException, requests.RequestException, OSError) as error:
        raise InfrastructureError(
            f"{host}no container engine answers: {_reason(error)}. {_what_next(error, endpoint)}"
        ) from error


@contextmanager
def connected(
    addresses: Sequence[EngineAddress | None], connections: int = 10
) -> Iterator[tuple[Mapping[str, EngineClient], Mapping[EngineAddress | None, InfrastructureError]]]:
    """Clients of several engines by host ("" for the user's own, as None), and why others do not answer.

    All are tried at once. An engine that is named twice has one client, under its first host.
    """

    def tried(address: EngineAddress | None) -> tuple[EngineClient, str] | InfrastructureError:
        try:
            client = stack.enter_context(closing(connect(address, connections)))
            return client, engine_id(client)
        except InfrastructureError as error:
            return error

    different = list(dict.fromkeys(addresses))
    clients: dict[str, EngineClient] = {}
    problems: dict[EngineAddress | None, InfrastructureError] = {}
    seen: set[str] = set()
    with ExitStack() as stack:
        with ThreadPoolExecutor(max(1, len(different))) as pool:
            answers = list(pool.map(tried, different))
        for address, answer in zip(different, answers, strict=True):
            if isinstance(answer, InfrastructureError):
                problems[address] = answer
            elif answer[1] not in seen:
                seen.add(answer[1])
                host = address.host if address else ""
                clients[f"{host} ({answer[0].endpoint.url})" if host in clients else host] = answer[0]
        yield clients, problems


def engine_id(client: docker.DockerClient) -> str:
    """The engine's id, the same however it is reached; with its host's name, as copies of a machine share the id."""
    with explained("the container engine"):
        info = client.info()
        return f"{info['ID']}@{info['Name']}"


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn an error of the engine into an InfrastructureError that begins with `what`."""
    try:
        yield
    except ImageNotFound as error:
        raise InfrastructureError(
            f"{what}: {_reason(error).partition(': No such image')[0]}. Build the images: scripts/build-images (or "
            "docker compose build)."
        ) from error
    except APIError as error:
        raise InfrastructureError(f"{what}: {_reason(error)}.{_hint(_reason(error))}") from error
    except (DockerException, requests.RequestException, ConnectionError, TimeoutError) as error:
        raise InfrastructureError(f"{what}: the container engine does not answer: {_reason(error)}") from error
    except OSError as error:
        raise InfrastructureError(f"{what}: {error}") from error


class Stream:
    """The connection to an attached container: its output comes in frames, and its standard input goes."""

    def __init__(self, stream: Any) -> None:
        """`stream` is the library's; a socket lies beneath, plain or with TLS."""
        self._stream = stream
        self._socket: socket.socket = getattr(stream, "_sock", stream)
        self._socket.settimeout(None)

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """Parts of the output, each with its stream, until that ends."""
        while len(header := self._read(HEADER.size)) == HEADER.size:
            stream, left = HEADER.unpack(header)
            while left:
                part = self._socket.recv(min(left, PART_BYTES))
                if not part:
                    return
                left -= len(part)
                yield stream, part

    def send(self, data: bytes) -> None:
        """Write to the standard input. Raises OSError where that has been closed."""
        self._socket.sendall(data)

    def is_readable(self, wait_s: float | None) -> bool:
        """Whether there is something to read, or the end, within so long; None: for ever."""
        if getattr(self._socket, "pending", int)():  # TLS has decrypted more than was taken
            return True
        readable = select.poll()
        readable.register(self._socket, select.POLLIN)
        return bool(readable.poll(None if wait_s is None else 1000 * wait_s))

    def close(self) -> None:
        """End the connection; the library keeps references to it, so that closing it would not do."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if response := getattr(self._stream, "_response", None):
            response.close()
        self._socket.close()
        self._stream.close()

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size and (part := self._socket.recv(size - len(data))):
            data += part
        return data


def joined(client: docker.DockerClient, container: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The networks that an inspected container is in, itself or by the one whose network it has, as the engine tells.

    Of each its id (`NetworkID`) and the container's address there (`IPAddress`), among others.
    """
    _, _, other = container["HostConfig"]["NetworkMode"].partition("container:")
    found = client.api.inspect_container(other) if other else container
    networks: dict[str, dict[str, Any]] = found["NetworkSettings"]["Networks"]
    return networks


@contextmanager
def attached(client: docker.DockerClient, container: str) -> Iterator[Iterator[bytes]]:
    """The output of a container from now on, until it ends."""
    with closing(Stream(client.api.attach_socket(container, {"stdout": 1, "stderr": 1, "stream": 1}))) as stream:
        yield (part for _, part in stream.frames())


class Conversation:
    """Lines to and from a container's process."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._frames = stream.frames()
        self._output = b""
        self.complaints = b""
        """The process's output on standard error."""

    def say(self, line: bytes) -> None:
        """Write a line to the process's standard input. Raises OSError if it has ended."""
        self._stream.send(line + b"\n")

    def hear(self, silence_s_max: float | None = None) -> bytes:
        """The next line from the process's standard output; nothing when it has ended.

        Raises TimeoutError if it prints nothing for so long; without a time it may be silent for ever.
        """
        while b"\n" not in self._output:
            if not self._stream.is_readable(silence_s_max):
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
    what = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
    with closing(Stream(client.api.attach_socket(container, what))) as stream:
        yield Conversation(stream)


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


def _what_next(error: Exception, endpoint: Endpoint) -> str:
    if any(isinstance(cause, PermissionError) for cause in _causes(error)):
        return "This user may not use its socket: `sudo usermod -aG docker $USER`, then log in again."
    if endpoint.url != USUAL:
        told_by = endpoint.told_by[:1].upper() + endpoint.told_by[1:]
        return f"{told_by} is {endpoint.url}: is the engine there running?"
    return "Start it (`sudo systemctl start docker`), or run without it: --runtime process."


def _hint(reason: str) -> str:
    if "address pool" in reason or "no available IPv4" in reason:
        return " The engine has no free addresses: try `edgebed down`, then `docker network prune`."
    if "no space left" in reason:
        return " The engine's disk is full: `docker system df` shows with what."
    return ""
