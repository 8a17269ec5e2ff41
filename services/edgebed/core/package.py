"""The package's version, the folders that it lies in, the files that come with its code, and a fingerprint of that.

These lie at the root of the repository, and below `edgebed/shipped/` in a wheel, where setup.py puts them: the same
paths, so that both are read alike. setup.py runs this file by itself: it imports the standard library alone.
"""

import functools
import hashlib
from pathlib import Path

VERSION = "0.1.0"
PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parents[1]
"""The repository's root, where this code lies in one."""
IN_A_WHEEL = "shipped"
SHIPPED = PACKAGE / IN_A_WHEEL if (PACKAGE / IN_A_WHEEL).is_dir() else CHECKOUT
"""The folder with `scenarios/`, `schema/` and the other files that come with the code."""
SHIPPED_FILES = (
    ".dockerignore",
    ".env",
    "docker-compose.yml",
    "docker-compose.swarm.yml",
    "dashboards/grafana/**/*.json",
    "dashboards/grafana/**/*.yaml",
    "dashboards/prometheus/**/*.yml",
    "images/*/Dockerfile",
    "images/edgebed*",
    "images/wheels/.gitignore",
    "requirements/[!dp]*.txt",
    "scenarios/**/*.md",
    "scenarios/**/*.pl",
    "scenarios/**/*.py",
    "scenarios/**/*.sh",
    "scenarios/**/*.toml",
    "scenarios/**/*.yaml",
    "schema/*.json",
    "scripts/build-images",
)
"""What comes with the code; all that `docker compose up` needs is among it. requirements/dev.txt is for tests
alone, publish.txt for releases."""


def shipped_files() -> list[Path]:
    """Paths of the files that come with the code, relative to `SHIPPED`, in order."""
    return sorted({path.relative_to(SHIPPED) for pattern in SHIPPED_FILES for path in SHIPPED.glob(pattern)})


def code_files(pattern: str = "*") -> list[Path]:
    """Paths of the package's own files that match, relative to `PACKAGE`, in order: neither compiled nor shipped."""
    found = (path.relative_to(PACKAGE) for path in PACKAGE.rglob(pattern) if path.is_file())
    return sorted(path for path in found if path.parts[0] != IN_A_WHEEL and "__pycache__" not in path.parts)


@functools.cache
def fingerprint() -> str:
    """16 hexadecimal digits that change with any Python file of the package.

    Nodes and controller must have the same, and images are easily older than the sources.
    """
    digest = hashlib.sha256()
    for path in code_files("*.py"):
        digest.update(f"{path}\0".encode())
        digest.update(hashlib.sha256((PACKAGE / path).read_bytes()).digest())
    return digest.hexdigest()[:16]
