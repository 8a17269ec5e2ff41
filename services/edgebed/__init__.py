"""edgebed: train a neural network across a fleet of emulated edge devices, under conditions that are checked.

`edgebed.run(scenario, ...)` runs a scenario file, `edgebed.resume(run)` goes on with a run that has broken off,
`edgebed.load(run)` opens the results of an earlier run; all return an `edgebed.results.Run`. `edgebed.compare(runs)`
sets finished runs against each other. They are imported when first used, so that a node of the fleet does not pay for
them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgebed.comparing.comparison import compare as compare
    from edgebed.results import load as load
    from edgebed.resuming import resume as resume
    from edgebed.running import run as run

__version__ = "0.1.0"
__all__ = ["__version__", "compare", "load", "resume", "run"]


def __getattr__(name: str) -> Any:
    """Import `run`, `resume`, `load` and `compare` at their first use."""
    if name == "run":
        from edgebed.running import run

        return run
    if name == "resume":
        from edgebed.resuming import resume

        return resume
    if name == "load":
        from edgebed.results import load

        return load
    if name == "compare":
        from edgebed.comparing.comparison import compare

        return compare
    raise AttributeError(f"module 'edgebed' has no attribute {name!r}")
