"""The workers of a dask.distributed scheduler as an executor. Slurm, Kubernetes and ssh are dask's own launchers'."""

import contextlib
import importlib.util
from collections.abc import Callable, Iterator
from concurrent.futures import Executor

from edgebed.core.errors import InfrastructureError, ScenarioError
from edgebed.core.quantities import count_text

CONNECT_S = 10.0


@contextlib.contextmanager
def dask_executor(address: str, tell: Callable[[str], None]) -> Iterator[Executor]:
    """Yield an executor on the scheduler at `address`; `tell` hears how many workers it has.

    Raises ScenarioError without the extra, InfrastructureError where no scheduler answers.
    """
    if importlib.util.find_spec("distributed") is None:
        raise ScenarioError("--dask: distributed is not installed; pip install 'edgebed[dask]' installs it")
    from distributed import Client

    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InfrastructureError(
            f"--dask {address}: no scheduler answers there ({error}); `dask scheduler` starts one and prints its "
            "address, `dask worker ADDRESS` a worker"
        ) from error
    with client:
        threads = client.nthreads()
        if threads:
            tell(f"{address}: {count_text(len(threads), 'worker')}, {count_text(sum(threads.values()), 'thread')}")
        else:
            tell(f"{address} has no worker yet, and runs wait for one; `dask worker {address}` starts one")
        yield client.get_executor(pure=False)
