"""The hosts of a trial as its plan has them, and whether what is placed on them has room there."""

from collections.abc import Mapping

from edgebed.core.errors import ScenarioError
from edgebed.core.planned.hosts import HostPlan
from edgebed.scenario.hosts import HostSection, overfull
from edgebed.scenario.schema import Scenario


def host_plans(hosts: Mapping[str, HostSection]) -> tuple[HostPlan, ...]:
    """The hosts that nodes are placed on, the controller's first."""
    return tuple(
        HostPlan(
            name=name,
            engine=host.engine,
            tls=host.tls,
            cores=host.cores,
            memory_bytes=host.memory,
            rate_bit_s=host.rate,
        )
        for name, host in hosts.items()
    )


def check_hosts(scenario: Scenario, name: str) -> None:
    """Check that each host of a trial has the memory that its nodes are promised; ScenarioError where one has not."""
    trial = scenario.trials[name]
    memories = [f"fleet.{each}.{key}" for each in trial.fleet for key in ("memory", "count")]
    problems = [
        scenario.cause(name, f"hosts.{host}", *memories).problem(message)
        for host, message in overfull(trial.hosts, trial.promises)
    ]
    if problems:
        raise ScenarioError(*problems)
