"""Where an engine is: as `docker` itself finds it, or as the address of a host says.

Of $DOCKER_HOST, $DOCKER_CONTEXT and the configuration's current context the first one that is set counts, as for the
docker command. A context is a file of Docker's, `contexts/meta/<SHA-256 of its name>/meta.json` in the folder of its
configuration, and maybe certificates. One that is asked for and not there is an error: it never means the local engine.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker.errors import TLSParameterError
from docker.tls import TLSConfig
from docker.utils import kwargs_from_env

from edgebed.core.errors import InfrastructureError
from edgebed.core.planned.hosts import CONTEXT, LOCAL, EngineAddress

USUAL = "unix:///var/run/docker.sock"
DEFAULT = "default"  # the name of no context
FILES = ("ca.pem", "cert.pem", "key.pem")


@dataclass(frozen=True)
class Endpoint:
    """Where an engine listens, and with which certificates."""

    url: str = USUAL
    tls: Any = None
    """docker-py's TLSConfig; None: no TLS."""
    told_by: str = ""
    """What named the engine: `DOCKER_HOST`, `the context 'lab'`, `its engine`; empty where nothing did."""

    @property
    def is_remote(self) -> bool:
        """Whether the engine may be another machine's."""
        return not self.url.startswith("unix://")


def endpoint_of(address: EngineAddress | None) -> Endpoint:
    """The engine that an address means; None: the user's own. InfrastructureError where that cannot be told."""
    try:
        if address is None or address.engine == LOCAL:
            return _users_own()
        if address.engine.startswith(CONTEXT):
            return _of_context(address.engine.removeprefix(CONTEXT), "its address")
        return Endpoint(address.engine, _certificates(address), "its engine")
    except TLSParameterError as error:
        raise InfrastructureError(f"the certificates for a container engine cannot be used: {error.args[0]}") from error


def _users_own() -> Endpoint:
    if os.environ.get("DOCKER_HOST"):
        found = kwargs_from_env()
        return Endpoint(found["base_url"], found.get("tls"), "DOCKER_HOST")
    if name := os.environ.get("DOCKER_CONTEXT"):
        return _of_context(name, "DOCKER_CONTEXT")
    settings = _folder() / "config.json"
    try:
        name = json.loads(settings.read_text(encoding="utf-8")).get("currentContext")
    except FileNotFoundError:
        return Endpoint()
    except (OSError, ValueError, AttributeError) as error:
        raise InfrastructureError(f"{settings}: the configuration of docker cannot be read: {error}") from error
    return _of_context(name, str(settings)) if name else Endpoint()


def _of_context(name: str, asked_by: str) -> Endpoint:
    if name == DEFAULT:
        return Endpoint()
    key = hashlib.sha256(name.encode()).hexdigest()
    meta = _folder() / "contexts/meta" / key / "meta.json"
    try:
        endpoint = json.loads(meta.read_text(encoding="utf-8"))["Endpoints"]["docker"]
        url, is_verified = endpoint.get("Host") or USUAL, not endpoint.get("SkipTLSVerify", False)
    except FileNotFoundError as error:
        there_are = ", ".join(sorted({DEFAULT, *_context_names()}))
        raise InfrastructureError(
            f"there is no context '{name}' of docker, which {asked_by} asks for; there are: {there_are}. "
            f"`docker context create {name}` makes one"
        ) from error
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InfrastructureError(f"{meta}: the context '{name}' of docker cannot be read: {error}") from error
    return Endpoint(url, _of_folder(_folder() / "contexts/tls" / key / "docker", is_verified), f"the context '{name}'")


def _context_names() -> Iterator[str]:
    for meta in _folder().glob("contexts/meta/*/meta.json"):
        try:
            yield str(json.loads(meta.read_text(encoding="utf-8"))["Name"])
        except (OSError, ValueError, LookupError, TypeError):
            continue  # it is no context that anybody could ask for


def _of_folder(folder: Path, is_verified: bool) -> Any:
    """The certificates of a context, which may have some of the files alone."""
    ca, cert, key = (path if (path := folder / name).is_file() else None for name in FILES)
    if not (ca or cert or key):
        return None
    mine = (str(cert), str(key)) if cert and key else None
    return TLSConfig(client_cert=mine, ca_cert=str(ca) if ca else None, verify=is_verified)


def _certificates(address: EngineAddress) -> Any:
    if not address.tls:
        return None
    folder = Path(address.tls).expanduser()
    for name in FILES:
        if not (folder / name).is_file():
            raise InfrastructureError(f"tls: there is no {folder / name}; the folder needs {', '.join(FILES)}")
    return _of_folder(folder, is_verified=True)


def _folder() -> Path:
    """Docker's own configuration."""
    return Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
