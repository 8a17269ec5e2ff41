"""The commands that measure this machine, tidy it up, or help an editor."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from edgebed.cli.options import Json, RunsDir, Sets, Variants, engines_in, put_parts, require_place
from edgebed.core.console import put, put_json, say
from edgebed.core.errors import InfrastructureError, ScenarioError, unwritten
from edgebed.core.quantities import count_text

if TYPE_CHECKING:
    from edgebed.planning.planning import PlannedTraining
    from edgebed.scenario.schema import Scenario

ProfileOutput = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Write the profile here (default: beside the scenario, its name with -profile).",
        show_default=False,
    ),
]  # fmt: skip

ProfiledScenario = Annotated[
    Path | None, typer.Argument(metavar="SCENARIO", help="A scenario's YAML file.", show_default=False)
]
Export = Annotated[
    Path | None,
    typer.Option(
        "--export", metavar="FILE", help="Write this machine's profile as a device here, and measure nothing else.",
        show_default=False,
    ),
]  # fmt: skip

HostsOption = Annotated[
    Path | None,
    typer.Option(
        "--hosts",
        metavar="FILE",
        help="Look on the engines of these hosts, too; for logs on these alone.",
        show_default=False,
    ),
]


def down(
    *,
    hosts: HostsOption = None,
    logs: Annotated[
        bool, typer.Option("--logs", help="Remove logs, too, from which runs in the folder of runs can be resumed.")
    ] = False,
    runs_dir: RunsDir = None,
) -> None:
    """Remove what controllers that are gone have left: containers, networks and cgroups.

    The log of a server in a container stays, and is named, while its run can be resumed. With --hosts, logs are looked
    for on these hosts alone.
    """
    from edgebed.emulation import cgroups
    from edgebed.journal.run_folder import runs_root
    from edgebed.runtimes.containers import engine, leftovers
    from edgebed.runtimes.containers.register import engines_left_behind
    from edgebed.runtimes.containers.server_volume import LogKeeping

    addresses = engines_in(hosts) if hosts else ()
    named = frozenset(each.host for each in addresses)
    keeping = LogKeeping(runs_root(runs_dir), removes=logs, hosts=named or None)
    away: list[str] = []

    def put_away(problem: str) -> None:
        away.append(problem)
        put(problem)

    removed = cgroups.remove_leftovers(put)
    if engine.is_there() or addresses or engines_left_behind():
        removed += leftovers.remove_leftovers(put, logs=keeping, hosts=addresses, say_away=put_away)
    else:
        put(f"containers were not looked for: there is no {engine.SOCKET}, and DOCKER_HOST is not set")
    if not removed:
        put("nothing to remove" + (" where an engine answers" if away else ""))


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
    from edgebed.studies.host.calibrate import FULL, QUICK, keep
    from edgebed.studies.host.calibrate import calibrate as measure

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


def traces(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Traces to show (default: those with names); with --convert, recordings to convert.",
            show_default=False,
        ),
    ] = None,
    *,
    collection: Annotated[
        str | None,
        typer.Option(
            "--convert", metavar="COLLECTION", show_default=False,
            help="Make traces of files of this public collection: mahimahi, pensieve or 5gdataset.",
        ),
    ] = None,
    step: Annotated[
        str, typer.Option(metavar="DURATION", help="With --convert: time from one rate to the next.")
    ] = "1s",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FOLDER", show_default=False,
            help="With --convert: put them here (default: where a scenario finds them by name).",
        ),
    ] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Show recorded bandwidths for `link_trace`: rates, licence, source; or convert those of public collections."""
    from edgebed.reports.studies.trace_table import trace_dicts, trace_parts
    from edgebed.scenario.mistakes.problems import Problems
    from edgebed.scenario.traces.csv_file import read_trace
    from edgebed.scenario.traces.library import converted_folder, known

    folder = output or converted_folder()
    try:
        if collection is not None:
            paths = _convert(collection, files or (), step, folder)
        else:
            paths = {path.stem: path for path in files} if files else dict(known())
        found = {name: read_trace(path) for name, path in paths.items()}
    except Problems as error:
        raise ScenarioError(*(problem.message for problem in error.problems)) from None
    if json:
        put_json(trace_dicts(found))
    else:
        put_parts(trace_parts(found, folder))


def _convert(collection: str, files: Sequence[Path], step: str, folder: Path) -> dict[str, Path]:
    """Write traces of a collection's files into a folder; return their paths by name."""
    from edgebed.core.disk import make_folder
    from edgebed.core.units import parse_duration
    from edgebed.journal.run_folder import write_atomically
    from edgebed.scenario.traces.published import convert
    from edgebed.scenario.traces.trace import check_step

    if not files:
        raise ScenarioError(f"--convert {collection}: which files? give them, e.g. traces/ATT-LTE-driving.up and .down")
    try:
        step_s = check_step(parse_duration(step))
    except ValueError as error:
        raise ScenarioError(f"--step: {error}") from None
    converted = list(convert(collection, files, step_s))
    try:
        make_folder(folder)
    except OSError as error:
        raise InfrastructureError(f"{folder} {unwritten(error, '--output')}") from None
    for each in converted:
        write_atomically(folder / f"{each.name}.csv", each.text.encode(), "--output")
    return {each.name: folder / f"{each.name}.csv" for each in converted}


def compose(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Write here (default: the current folder).", show_default=False)
    ] = Path(),
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that differ, as those of another version do.")
    ] = False,
) -> None:
    """Write the files that `docker compose up` needs: Compose's, images, dashboards, scenarios and edgebed's code."""
    from edgebed.runtimes.containers.compose_folder import write_compose_folder

    written = write_compose_folder(folder, force=force)
    if not (written.files or written.removed):
        put(f"{folder}: all is there")
        return
    top = dict.fromkeys(f"{path.parts[0]}{'/' if len(path.parts) > 1 else ''}" for path in written.files)
    put(f"{folder}: {count_text(len(written.files), 'file')} written: {', '.join(top)}")
    for path in written.removed:
        put(f"{folder}: removed {path}, which this version does not have")
    put("next, in that folder: docker compose up; without an image registry: scripts/build-images first, as root")


def schema() -> None:
    """Print the JSON Schema of scenarios, for editors."""
    from edgebed.core.package import SHIPPED

    path = SHIPPED / "schema/scenario.schema.json"
    if not path.exists():
        raise InfrastructureError(f"{path}: missing; images have the package alone, so ask where edgebed is installed")
    put(path.read_text(encoding="utf-8").rstrip())


def profile(
    scenario: ProfiledScenario = None,
    *,
    sets: Sets = None,
    variants: Variants = None,
    output: ProfileOutput = None,
    export: Export = None,
    json: Json = False,
) -> None:
    """Measure how long a gradient takes on this machine; in layer-wise training, each layer.

    The time and memory of each layer are written for `shards: {profile: FILE}`. With --export no scenario is needed.
    """
    if (scenario is None) == (export is None):
        raise ScenarioError("give a scenario, whose model is measured, or --export FILE for a profile of this machine")
    if export is not None:
        _export(export, json=json)
    elif scenario is not None:
        loaded = _loaded(scenario, sets or ()).only(variants or ())
        if any(trial.sharding for trial in loaded.training.values()):
            _profile_layers(loaded, scenario, output, json=json)
        else:
            _profile_gradients(loaded, scenario, output, json=json)


def _export(place: Path, *, json: bool) -> None:
    from edgebed.journal.run_folder import write_atomically
    from edgebed.studies.host.gradient_times import device_profile, measure_machine, write_device

    require_place("--export", place, "my-board.yaml")
    if place.suffix not in (".yaml", ".yml"):
        raise ScenarioError(f"--export: {place}: a scenario finds a profile by its ending; call it {place.stem}.yaml")
    found = device_profile(measure_machine(say))
    text = write_device(found)
    write_atomically(place, text.encode(), "--export")
    if json:
        put_json(found.model_dump(mode="json"))
    else:
        put(text.rstrip())
        put(f"written to {place}; a scenario beside it uses it with fleet: {{edge: {{device: {place.name}}}}}")


def _profile_gradients(loaded: "Scenario", scenario: Path, output: Path | None, *, json: bool) -> None:
    from edgebed.core.errors import Uncountable
    from edgebed.planning.planning import plan_trials
    from edgebed.studies.host.gradient_times import measure_machine, measure_trials, told

    if output is not None:
        raise ScenarioError("--output: no trial has a layer-wise method, and only layers have a profile; leave it out")
    try:
        rows = measure_trials(plan_trials(loaded))
    except Uncountable as error:
        raise ScenarioError(f"{scenario}: task.model: its operations cannot be counted: {error}") from error
    fitted = measure_machine(say)
    if json:
        put_json({"core": fitted.core, "gradients": [row._asdict() | {"off": row.off(fitted.core)} for row in rows]})
    else:
        put("\n".join(told(fitted, rows)))


def _profile_layers(loaded: "Scenario", scenario: Path, output: Path | None, *, json: bool) -> None:
    from edgebed.journal.run_folder import write_atomically
    from edgebed.learning.models.anatomy import anatomy_of
    from edgebed.planning.layer_costs import counted
    from edgebed.reports.plan.profile import parts_of, remarks
    from edgebed.scenario.profiles import write_profile
    from edgebed.studies.host.profile import profile_trials
    from edgebed.studies.host.profiling_nodes import own_s

    place = output or scenario.with_name(f"{scenario.stem}-profile.yaml")
    require_place("--output", place, "profile.yaml")
    trials = _layerwise(loaded, scenario)
    found = profile_trials(trials, say)
    say("what a live shard needs whatever layers it has …")
    found = found.model_copy(update={"own": own_s()})
    task, methods = trials[0].plan.nodes[0].task, [trial.plan.nodes[0].method for trial in trials]
    write_atomically(place, write_profile(found, list(remarks(task, methods))).encode(), "--output")
    if json:
        put_json(found.model_dump(mode="json"))
    else:
        layers = counted(task, methods[0], anatomy_of(task, methods[0])).times
        put_parts(parts_of(found, [layer.forward + layer.backward for layer in layers]))
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


def _layerwise(scenario: "Scenario", path: Path) -> "list[PlannedTraining]":
    """The trials whose layers are measured, with any cuts; ScenarioError where their models differ."""
    from edgebed.planning.planning import plan_trials

    chosen = {}
    for name, trial in scenario.training.items():
        if (section := trial.sharding) is not None:
            plain = section.model_copy(update={"profile": None, "cuts": "even"})
            chosen[name] = trial.model_copy(update={"shards": plain})
    trials = plan_trials(scenario.model_copy(update={"trials": chosen}))
    kinds = {(each.plan.nodes[0].task.layout, each.plan.nodes[0].task.batch_size, _optimizer(each)) for each in trials}
    if len(kinds) > 1:
        names = ", ".join(chosen)
        raise ScenarioError(
            f"{path}: its trials differ in model, batch or optimizer, and a profile is of one; "
            f"choose by --variant: {names}"
        )
    return trials


def _optimizer(trial: "PlannedTraining") -> str:
    return trial.plan.nodes[0].method.parts["optimizer"].name
