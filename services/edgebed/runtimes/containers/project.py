"""The Compose project of this checkout, and its images: by the names that docker-compose.yml gives them.

A variable of the shell wins, then `.env` beside that file, as with Compose. Without one a project has the name of its
folder, and its images have the project's name as their tag. So two folders on one engine do not replace each other's
images; two of the same name are told apart by COMPOSE_PROJECT_NAME.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from edgebed.core.package import CHECKOUT

FILE = "docker-compose.yml"
NAME = "edgebed"
"""The project's name where no folder gives one."""
_SETTING = re.compile(r"^[ \t]*(\w+)[ \t]*=[ \t]*(.*?)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class ImageNames:
    """The names of the images that nodes are made of."""

    server: str
    worker: str
    """Image of workers and the evaluator."""

    @classmethod
    def named(cls) -> "ImageNames":
        """The names that are set, or those that Compose gives."""
        tag = project_name()
        return cls(
            server=_setting("EDGEBED_SERVER_IMAGE") or f"edgebed-parameter-server:{tag}",
            worker=_setting("EDGEBED_WORKER_IMAGE") or f"edgebed-worker:{tag}",
        )

    def of(self, role: str) -> str:
        """The image for a node of that role."""
        return self.server if role in ("server", "store") else self.worker


def project_name() -> str:
    """The name of the Compose project."""
    folder = _folder()
    name = _setting("COMPOSE_PROJECT_NAME") or (folder.name if folder else "")
    return re.sub(r"[^-_a-z0-9]", "", name.lower()).lstrip("-_") or NAME


def _folder() -> Path | None:
    """The folder of docker-compose.yml: that of this code, or else the one that this process is in."""
    return next((folder for folder in (CHECKOUT, Path.cwd()) if (folder / FILE).is_file()), None)


def _setting(name: str) -> str:
    """A variable's value; empty where it is set nowhere, or to nothing."""
    if value := os.environ.get(name):
        return value
    folder = _folder()
    if folder is None or not (folder / ".env").is_file():
        return ""
    settings: dict[str, str] = dict(_SETTING.findall((folder / ".env").read_text(encoding="utf-8", errors="replace")))
    return settings.get(name, "").strip("'\"")
