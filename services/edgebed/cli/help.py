"""What commands have in common: how their help looks, with examples below it, and that they begin quickly."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer
from typer._click.core import Command as AnyCommand
from typer._click.core import Context
from typer._click.formatting import HelpFormatter
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from edgebed.cli.as_typed import take_as_typed
from edgebed.cli.options import INTERRUPTED
from edgebed.core.console import say

TYPED = {Path: "PATH", int: "N", str: "TEXT"}
"""What stands for a value of a type in help."""
HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}

EXAMPLES: dict[str, tuple[str, ...]] = {
    "": ("edgebed run quickstart --runtime simulation", "edgebed show latest"),
    "init": ("edgebed init my-experiment", "edgebed init --program mine"),
    "doctor": ("edgebed doctor",),
    "run": (
        "edgebed run quickstart --runtime simulation",
        "edgebed run scenarios/two-classes.yaml --set fleet.slow.count=8 --set stop.updates=1000",
    ),
    "resume": ("edgebed resume quickstart",),
    "validate": ("edgebed validate scenario.yaml", "edgebed validate scenario.yaml --json"),
    "plan": ("edgebed plan two-classes --runtime docker", "edgebed plan two-classes --output plan.html"),
    "ls": ("edgebed ls", "edgebed ls quickstart fleet.edge.count=8 --sort best"),
    "show": ("edgebed show quickstart", "edgebed show quickstart/0003 -v"),
    "report": ("edgebed report latest", "edgebed report quickstart --figures figures"),
    "watch": ("edgebed watch latest",),
    "events": (
        "edgebed events latest --follow --kind fault",
        "edgebed events quickstart --node edge-0 --json",
        "edgebed events latest --follow --kind node --run ./notify.sh",
    ),
    "logs": ("edgebed logs latest edge-0 --follow",),
    "export": ("edgebed export quickstart --format parquet --output tables",),
    "replay": ("edgebed replay quickstart --now",),
    "compare": ("edgebed compare quickstart/1 quickstart/2 --to 95%",),
    "agree": ("edgebed agree scenarios/quickstart.yaml --runtimes simulation,process --seeds 5",),
    "sweep": ("edgebed sweep scenarios/sweeps/links.yaml --jobs 2",),
    "reproduce": ("edgebed reproduce hardy2017 --list", "edgebed reproduce hardy2017 --scale 0.002"),
    "kill": ("edgebed kill edge-0", "edgebed kill edge-0 edge-1 --run quickstart"),
    "restart": ("edgebed restart server",),
    "freeze": ("edgebed freeze edge-0",),
    "thaw": ("edgebed thaw edge-0",),
    "cut": ("edgebed cut edge-0",),
    "heal": ("edgebed heal edge-0",),
    "cpus": ("edgebed cpus edge-0 0.1", "edgebed cpus edge-0 as-planned"),
    "rollback": ("edgebed rollback latest --step 400",),
    "link": ("edgebed link show latest", "edgebed link set edge-0 --uplink 1mbit"),
    "link show": ("edgebed link show latest",),
    "link set": ("edgebed link set edge-0 --uplink 1mbit --latency 40ms", "edgebed link set edge-0 --as-planned"),
    "note": ('edgebed note quickstart/0003 "rate 0.4, as in the paper"',),
    "rm": ("edgebed rm quickstart/0003",),
    "prune": (
        "edgebed prune --older 30d",
        "edgebed prune quickstart --keep 5 --yes",
        "edgebed prune --result 'no result' --force",
    ),
    "calibrate": ("edgebed calibrate --quick",),
    "profile": ("edgebed profile scenarios/layers/four-layers.yaml", "edgebed profile --export my-board.yaml"),
    "traces": ("edgebed traces", "edgebed traces --convert mahimahi ATT-LTE-driving.up ATT-LTE-driving.down"),
    "down": ("edgebed down",),
    "compose": ("edgebed compose edgebed-compose",),
    "schema": ("edgebed schema",),
    "hosts": ("edgebed hosts check hosts.yaml", "edgebed hosts images hosts.yaml"),
    "hosts check": ("edgebed hosts check hosts.yaml",),
    "hosts images": ("edgebed hosts images hosts.yaml",),
}
"""Command lines by command, "" for `edgebed` itself; each can be typed as it is, where the run or file is there."""


def epilog(command: str) -> str:
    """Return what stands below the help of a command."""
    lines = EXAMPLES[command]
    return "\n\n".join([f"Example{'s' * (len(lines) > 1)}:", *lines])


class _Shared(AnyCommand):
    """What a command and a group of commands do alike."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Read what is typed."""
        take_as_typed(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the help."""
        tidy(self.get_params(ctx))
        super().format_help(ctx, formatter)


class Command(_Shared, TyperCommand):
    """A command whose help shows what is typed."""

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """Return what follows the command's name: options, then arguments as they are typed."""
        arguments = [param for param in self.get_params(ctx) if isinstance(param, TyperArgument)]
        return [self.options_metavar or "", *map(_usage, arguments)]


class Group(_Shared, TyperGroup):
    """A group of commands whose help shows what is typed, and of which no interruption is silent."""

    def invoke(self, ctx: Context) -> Any:
        """Run a command; one that Ctrl-C has ended, and that says nothing of that itself, is said to be interrupted."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say("interrupted")
            raise typer.Exit(INTERRUPTED) from None


def tidy(params: Iterable[Any]) -> None:
    """Give options the word that stands for their value; flags have none, and an argument's type is not typed."""
    for param in params:
        if isinstance(param, TyperArgument):
            param.metavar = _word(param)
            vars(param)["display_type_rich"] = lambda ctx: None  # noqa: ARG005 - its name, by which it is called
        elif isinstance(param, TyperOption) and param.is_flag:
            param.metavar = ""
        elif isinstance(param, TyperOption) and param.metavar is None:
            param.metavar = TYPED.get(param.type_descriptor.annotation)


def _word(argument: TyperArgument) -> str:
    return argument.metavar or str(argument.name).upper()


def _usage(argument: TyperArgument) -> str:
    word = _word(argument).removesuffix("...") + "..." * (argument.nargs != 1)
    return word if argument.required else f"[{word}]"
