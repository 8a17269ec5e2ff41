"""Section 4.3 with other caps, and what a step takes of a core, device by device."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from edgebed.planning.planning import plan_trials
from edgebed.scenario.load import load_scenario
from edgebed.studies.host.profile import profile_trials
from edgebed.studies.papers.measuring import ratio, updates_per_s
from edgebed.studies.papers.paper import Cell, Near, Row, Table, Unit

SCENARIO = "section-4-3.yaml"
CAP = 0.7
"""Share of a core that each device has here; in section 4.3's other rows it is 0.4."""
DEVICES = 4
PUBLISHED = Near(value=1.114, tolerance=0.114)
"""Iterations a second of synthetic gradients on four devices, 185, over those of back-propagation on the host, 166."""
RATES = {
    "sg": "Synthetic gradients on four devices",
    "bp": "Back-propagation on the same devices",
    "whole-capped": "Back-propagation on one of them",
}
CELLS = {
    f"{variant}-{CAP}": Cell(
        scenario=SCENARIO, variant=variant, runtime="docker", sets=lambda _: (f"fleet.edge.cpus={CAP}",)
    )
    for variant in RATES
}
OF_CORES = {"sg-1": Cell(scenario=SCENARIO, variant="sg", runtime="docker", sets=lambda _: ("fleet.edge.cpus=1",))}
"""The paper's setting: a core for each of four devices."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """Seconds of a core that a device works in a step."""

    layers_s: float
    """Forward, backward and the optimizer's step."""
    module_s: float
    """To predict a gradient and to be taught the true one."""


@cache
def profiled() -> tuple[Work, ...]:
    """What each device works in a step with synthetic gradients: on the machine at hand, one layer after the other.

    Raises ScenarioError where MNIST is not there.
    """
    trials = plan_trials(load_scenario(Path(__file__).parent / SCENARIO).only(["sg"]))
    profile, plan = profile_trials(trials), trials[0].plan
    method = plan.nodes[0].method
    beside = profile.beside_of(method.parts["learning"])
    assert beside is not None
    shards = [node.shard for node in plan.workers() if node.shard is not None]
    return tuple(
        Work(
            layers_s=sum(row.forward + row.backward + row.step for row in profile.layers[shard.first : shard.end]),
            module_s=beside[shard.end - 1].predict + beside[shard.end - 1].teach,
        )
        for shard in shards
    )


def slowest_s(*, with_modules: bool) -> float:
    """Seconds of a core that the device with most work needs for a step."""
    return max(work.layers_s + work.module_s * with_modules for work in profiled())


def whole_s() -> float:
    """Seconds of a core for a step of the whole model by back-propagation."""
    return sum(work.layers_s for work in profiled())


def computed(what: str, value: Callable[[], float], unit: Unit, note: str = "") -> Row:
    """A row that needs no run."""
    return Row(what=what, measure=lambda _: value(), unit=unit, note=note)


TABLE = Table(
    title="Section 4.3: the cap, and the step taken apart",
    seeds=5,
    other_setting=True,

    rows={
        **{
            f"rate-{cell}": Row(
                what=f"{RATES[cell.removesuffix(f'-{CAP}')]}, {CAP} of a core each", cells=(cell,),
                measure=updates_per_s(cell), unit="updates/s",
            )
            for cell in CELLS
        },
        **{
            f"faster-than-{other}-{CAP}": Row(
                what=f"Synthetic gradients over back-propagation {words}, {CAP} of a core each",
                cells=(f"sg-{CAP}", f"{other}-{CAP}"),
                measure=ratio(updates_per_s(f"sg-{CAP}"), updates_per_s(f"{other}-{CAP}")), unit="x",
            )
            for other, words in (("bp", "on the same devices"), ("whole-capped", "on one of them"))
        },
        f"faster-than-whole-{CAP}": Row(
            what=f"Synthetic gradients on four devices of {CAP} of a core over back-propagation on one without a cap",
            cells=(f"sg-{CAP}", "whole"), measure=ratio(updates_per_s(f"sg-{CAP}"), updates_per_s("whole")), unit="x",
            claim=PUBLISHED, beside="faster-than-whole-1",
        ),
        "faster-than-whole-1": Row(
            what="Synthetic gradients on four devices of a core each over back-propagation on one without a cap",
            cells=("sg-1", "whole"), measure=ratio(updates_per_s("sg-1"), updates_per_s("whole")), unit="x",
            claim=PUBLISHED, note="The paper's 185 over 166. It takes a host of four cores and more.",
        ),
        "faster-by-the-cap": Row(
            what=f"Synthetic gradients: {CAP} of a core over 0.4", cells=(f"sg-{CAP}", "sg"),
            measure=ratio(updates_per_s(f"sg-{CAP}"), updates_per_s("sg")), unit="x",
            note=f"{CAP / 0.4:.3g} if a step took nothing but the work of the device with most.",
        ),
        **{
            f"work-{part}-{device}": computed(
                f"Device {device}: a step of its {words}, of the whole model's",
                lambda device=device, name=name: getattr(profiled()[device], name) / whole_s(), "x",  # type: ignore[misc]
            )
            for device in range(DEVICES)
            for part, name, words in (("layers", "layers_s", "layers"), ("module", "module_s", "module"))
            if device < DEVICES - 1 or part == "layers"
        },
        "rate-of-cores": computed(
            "Synthetic gradients on four devices of a core, by the profile",
            lambda: 1 / slowest_s(with_modules=True), "updates/s", "What messages take is not in it.",
        ),
        "faster-of-cores": computed(
            "Synthetic gradients on four devices of a core over back-propagation on one, by the profile",
            lambda: whole_s() / slowest_s(with_modules=True), "x",
            "What the paper's 1.11 would be of these devices.",
        ),
        "faster-of-cores-without-modules": computed(
            "Synthetic gradients on four devices of a core over back-propagation on one, if modules cost nothing",
            lambda: whole_s() / slowest_s(with_modules=False), "x", "What cutting these layers can give at most.",
        ),
    },
)  # fmt: skip
