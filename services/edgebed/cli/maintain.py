"""The commands that measure this machine, tidy it up, or help an editor."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from edgebed.cli.options import Json, ScenarioFile, Sets, Variants, put_parts, require_place
from edgebed.core.console import put, put_json, say
from edgebed.core.errors import ScenarioError

if TYPE_CHECKING:
    from edgebed.planning.planning import PlannedTrial
    from edgebed.scenario.schema import Scenario

ProfileOutput = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Write the profile here (default: beside the scenario, its name with -profile).",
        show_default=False,
    ),
]  # fmt: skip


def down() -> None:
    """Remove what controllers that are gone have left: containers, networks, cgroups, logs of servers in containers."""
    from edgebed.emulation import cgroups
    from edgebed.runtimes.containers import engine, leftovers

    removed = cgroups.remove_leftovers(put)
    if engine.is_there():
        removed += leftovers.remove_leftovers(put, volumes=True)
    else:
        put(f"containers were not looked for: there is no {engine.SOCKET}, and DOCKER_HOST is not set")
    if not removed:
        put("nothing to remove")


def calibrate(
    *,
    runtime: Annotated[
        Literal["docker", "process"] | None,
        typer.Option(help="Measure this runtime alone (default: all that this host has).", show_default=False),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Two rates, in minutes; the results are not stored.")] = False,
    json: Json = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the results as JSON here, not where `plan` looks for them."),
    ] = None,
) -> None:
    """Measure what this host can emulate: rates, small pushes, CPU caps, numbers of nodes; for `plan`'s warnings."""
    from edgebed.emulation.calibration import save
    from edgebed.reports.studies.calibration_table import calibration_parts, result_text
    from edgebed.studies.host.calibrating import FULL, QUICK, keep
    from edgebed.studies.host.calibrating import calibrate as measure

    if output is not None:
        require_place("--output", output)
    calibration = measure(
        runtime, QUICK if quick else FULL, say, lambda place, result: say(f"{place}: {result_text(result)}")
    )
    if json:
        put_json(calibration)
    else:
        put_parts(calibration_parts(calibration))
    if output is not None:
        save(calibration, output)
    elif not quick:
        say(f"stored in {keep(calibration)}")


def schema() -> None:
    """Print the JSON Schema of scenarios, for editors."""
    from edgebed.scenario.reference import json_schema

    put(json_schema().rstrip())


def profile(
    scenario: ScenarioFile,
    *,
    sets: Sets = None,
    variants: Variants = None,
    output: ProfileOutput = None,
    json: Json = False,
) -> None:
    """Measure the time and memory of each layer on this machine, for `shards: {profile: FILE}`."""
    from edgebed.journal.run_folder import write_atomically
    from edgebed.planning.describe_profile import as_text, remarks
    from edgebed.scenario.profiles import write_profile
    from edgebed.studies.host.profiling import profile_trials
    from edgebed.studies.host.profiling_nodes import own_s

    place = output or scenario.with_name(f"{scenario.stem}-profile.yaml")
    require_place("--output", place, "profile.yaml")
    trials = _layerwise(_loaded(scenario, sets or ()).only(variants or ()), scenario)
    found = profile_trials(trials, say)
    say("what a live shard needs whatever layers it has …")
    found = found.model_copy(update={"own": own_s()})
    task, methods = trials[0].plan.nodes[0].task, [trial.plan.nodes[0].method for trial in trials]
    write_atomically(place, write_profile(found, list(remarks(task, methods))).encode(), "--output")
    if json:
        put_json(found.model_dump(mode="json"))
    else:
        put(as_text(found))
        put(f"written to {place}; a scenario beside it uses it with shards: {{profile: {place.name}}}")


def _loaded(path: Path, sets: Sequence[str]) -> "Scenario":
    """The scenario; also where the profile that it names does not exist yet."""
    from edgebed.scenario.load import load_scenario

    try:
        return load_scenario(path, sets)
    except ScenarioError as error:
        if not any("profile" in problem for problem in error.problems):
            raise
        return load_scenario(path, (*sets, "shards.profile=null"))


def _layerwise(scenario: "Scenario", path: Path) -> "list[PlannedTrial]":
    """The trials whose layers are measured, with any cuts; ScenarioError where their models differ."""
    from edgebed.planning.planning import plan_trials

    chosen = {}
    for name, trial in scenario.trials.items():
        if (section := trial.sharding) is not None:
            plain = section.model_copy(update={"profile": None, "cuts": "even"})
            chosen[name] = trial.model_copy(update={"shards": plain})
    if not chosen:
        raise ScenarioError(f"{path}: no trial has a layer-wise method; only such a model is cut into layers")
    trials = plan_trials(scenario.model_copy(update={"trials": chosen}))
    kinds = {(each.plan.nodes[0].task.layout, each.plan.nodes[0].task.batch_size, _optimizer(each)) for each in trials}
    if len(kinds) > 1:
        names = ", ".join(chosen)
        raise ScenarioError(
            f"{path}: its trials differ in model, batch or optimizer, and a profile is of one; "
            f"choose by --variant: {names}"
        )
    return trials


def _optimizer(trial: "PlannedTrial") -> str:
    return trial.plan.nodes[0].method.parts["optimizer"].name
