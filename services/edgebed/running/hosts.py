"""What the hosts of a scenario have, where it does not say so: asked of their engines before anything is planned."""

from contextlib import closing

from edgebed.core.planned.hosts import EngineAddress
from edgebed.runtimes.containers.engine import connect, explained
from edgebed.scenario.hosts import HostSection
from edgebed.scenario.schema import Scenario


def with_capacities(scenario: Scenario) -> Scenario:
    """Return the scenario with cores and memory of all its hosts; InfrastructureError where no engine answers."""
    asked: dict[EngineAddress, tuple[int, int]] = {}

    def known(name: str, host: HostSection) -> HostSection:
        if host.cores is not None and host.memory is not None:
            return host
        address = EngineAddress(name, host.engine, host.tls)
        if address not in asked:
            asked[address] = _capacity(address)
        cores, memory_bytes = asked[address]
        return host.model_copy(update={"cores": host.cores or cores, "memory": host.memory or memory_bytes})

    trials = {
        key: trial.model_copy(update={"hosts": {name: known(name, host) for name, host in trial.hosts.items()}})
        for key, trial in scenario.trials.items()
    }
    return scenario.model_copy(update={"trials": trials})


def _capacity(address: EngineAddress) -> tuple[int, int]:
    """Return the cores and the bytes of memory of a host."""
    with closing(connect(address)) as client, explained(f"host {address.host}"):
        info = client.info()
    return int(info["NCPU"]), int(info["MemTotal"])
