"""Fingerprint of the code: nodes and controller must have the same, and images are easily older than the sources."""

import functools
import hashlib

from edgebed.core.package import PACKAGE


@functools.cache
def fingerprint() -> str:
    """16 hexadecimal digits that change with any Python file of the package."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(f"{path.relative_to(PACKAGE)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
