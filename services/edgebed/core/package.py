"""The package's version, and the folders that it lies in."""

from pathlib import Path

VERSION = "0.1.0"
PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parents[1]
"""The folder with `scenarios/`, where edgebed runs from a checkout."""
