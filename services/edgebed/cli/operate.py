"""The commands that act on nodes of a live run: the faults of scenarios, by hand."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from edgebed.cli import completion
from edgebed.cli.options import Json, RunsDir
from edgebed.core.console import put, put_json
from edgebed.core.errors import ScenarioError

if TYPE_CHECKING:
    from edgebed.core.actions import Action
    from edgebed.core.planned.link import LinkChange

AS_PLANNED = "as-planned"
SHOWN_MAX = 6

Targets = Annotated[
    list[str],
    typer.Argument(
        metavar="NODE",
        help="Names of nodes; that of a class of devices, or 'workers', stands for all its nodes.",
        autocompletion=completion.nodes,
    ),
]
InRun = Annotated[
    str | None,
    typer.Option(
        "--run",
        metavar="RUN",
        help="The run (default: the one in progress).",
        show_default=False,
        autocompletion=completion.runs,
    ),
]


class Plain(NamedTuple):
    """A command that does the same to each node that it names."""

    name: str
    past: str
    actions: "tuple[Action, ...]"
    help: str


PLAIN = (
    Plain("kill", "killed", ("kill",), "Kill nodes of the run in progress, as SIGKILL does."),
    Plain("restart", "restarted", ("kill", "launch"), "Kill nodes, unless they are dead already, and start them anew."),
    Plain("freeze", "froze", ("freeze",), "Freeze nodes: they stand still, and their connections stay."),
    Plain("thaw", "thawed", ("thaw",), "Thaw frozen nodes."),
    Plain("cut", "cut", ("cut",), "Cut nodes off from the data network."),
    Plain("heal", "healed", ("heal",), "Reconnect nodes that are cut off."),
)


def _command(plain: Plain) -> Callable[..., None]:
    def command(nodes: Targets, *, run: InRun = None, json: Json = False, runs_dir: RunsDir = None) -> None:
        _act(plain.past, nodes, run, runs_dir, plain.actions, json=json)

    command.__name__, command.__doc__ = plain.name, plain.help
    return command


COMMANDS = tuple(map(_command, PLAIN))


def cpus(
    nodes: Targets,
    to: Annotated[str, typer.Argument(metavar="CPUS", help=f"The new cap in cores, e.g. 0.5, or '{AS_PLANNED}'.")],
    *,
    run: InRun = None,
    json: Json = False,
    runs_dir: RunsDir = None,
) -> None:
    """Change the CPU cap of nodes."""
    _act(f"set cpus {to} of", nodes, run, runs_dir, ["cpus"], json=json, cpus=_cores(to))


def set_link(
    nodes: Targets,
    *,
    uplink: Annotated[str | None, typer.Option(metavar="RATE", help="Upload rate, e.g. 1mbit.")] = None,
    downlink: Annotated[str | None, typer.Option(metavar="RATE", help="Download rate, e.g. 10mbit.")] = None,
    latency: Annotated[str | None, typer.Option(metavar="TIME", help="One-way latency, e.g. 40ms.")] = None,
    jitter: Annotated[str | None, typer.Option(metavar="TIME", help="Variation of the latency, e.g. 5ms.")] = None,
    loss: Annotated[str | None, typer.Option(metavar="PERCENT", help="Share of packets lost, e.g. 1%.")] = None,
    as_planned: Annotated[bool, typer.Option(f"--{AS_PLANNED}", help="Restore the scenario's settings.")] = False,
    run: InRun = None,
    json: Json = False,
    runs_dir: RunsDir = None,
) -> None:
    """Change the links of nodes to the data network; settings that are not given stay as they are."""
    given = {"uplink": uplink, "downlink": downlink, "latency": latency, "jitter": jitter, "loss": loss}
    change = _change(given)
    if as_planned == (change is not None):
        options = ", ".join(f"--{key}" for key in given)
        raise ScenarioError(f"link set: give what is to change ({options}), or --{AS_PLANNED}")
    _act("set the link of", nodes, run, runs_dir, ["link"], json=json, change=change)


def rollback(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="A run in progress, whose layers lie on several nodes.",
            autocompletion=completion.runs,
        ),
    ],
    step: Annotated[int, typer.Option("--step", metavar="N", min=0, help="Number of steps to keep at most.")],
    *,
    json: Json = False,
    runs_dir: RunsDir = None,
) -> None:
    """Have all shards resume from the newest backup that all have and that is not beyond a step."""
    from edgebed.running.operate import roll_back

    name, found = roll_back(run, step, runs_dir=runs_dir)
    if json:
        put_json({"run": name, "step": found})
        return
    put(f"{name} resumed from step {found:,}")


def _act(
    verb: str,
    targets: Sequence[str],
    run: str | None,
    runs_dir: Path | None,
    actions: "Sequence[Action]",
    *,
    json: bool,
    **settings: Any,
) -> None:
    """Have the actions done to each node, and say what was done."""
    import msgspec

    from edgebed.core.planned.fault import Injection
    from edgebed.running.operate import act

    done = act(
        targets,
        lambda node: [Injection(node=node, action=action, **settings) for action in actions],
        run=run,
        runs_dir=runs_dir,
    )
    if json:
        put_json({"actions": actions, **msgspec.to_builtins(settings), **msgspec.to_builtins(done)})
        return
    put(f"{verb} {_names(done.nodes)} of {done.run} in {done.seconds:.2f} s")


def _names(nodes: Sequence[str]) -> str:
    shown = ", ".join(nodes[:SHOWN_MAX])
    return f"{shown}, … ({len(nodes)} nodes)" if len(nodes) > SHOWN_MAX else shown


def _cores(text: str) -> float | None:
    """The CPU cap in cores; None: that of the plan."""
    from edgebed.scenario.choices import CPUS_MAX, CPUS_MIN

    if text == AS_PLANNED:
        return None
    try:
        cores = float(text)
    except ValueError:
        cores = 0.0
    if not CPUS_MIN <= cores <= CPUS_MAX:
        raise ScenarioError(
            f"cpus: {text!r} is not a number of cores from {CPUS_MIN} to {CPUS_MAX:g}, e.g. 0.5, nor '{AS_PLANNED}'"
        )
    return cores


def _change(given: Mapping[str, str | None]) -> "LinkChange | None":
    """The change of a link, by what is given of its properties; None if nothing is."""
    from edgebed.core.planned.link import PROPERTIES, LinkChange

    problems, settings = [], {}
    for key, text in given.items():
        try:
            if text is not None:
                settings[PROPERTIES[key].field] = PROPERTIES[key].read(text)
        except ValueError as error:
            problems.append(f"--{key}: {error}")
    if problems:
        raise ScenarioError(*problems)
    return LinkChange(**settings) if settings else None
