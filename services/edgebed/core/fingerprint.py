"""Fingerprint of the code: nodes and controller must have the same, and images are easily older than the sources."""

import functools
import hashlib

from edgebed.core.package import PACKAGE, code_files


@functools.cache
def fingerprint() -> str:
    """16 hexadecimal digits that change with any Python file of the package."""
    digest = hashlib.sha256()
    for path in code_files("*.py"):
        digest.update(f"{path}\0".encode())
        digest.update(hashlib.sha256((PACKAGE / path).read_bytes()).digest())
    return digest.hexdigest()[:16]
