"""Imports what takes a second or two before any test: hypothesis fails an example that takes longer than the others."""

import scipy.optimize
import scipy.stats  # noqa: F401
