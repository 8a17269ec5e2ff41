"""The command line. Each command imports what it needs when it runs, so that `edgebed --help` is quick.

Exit codes: 0 all expectations met, 1 one is not or a trial diverged, 2 the user's mistake, 3 the infrastructure's or
edgebed's own, 130 interrupted; journal/outcome.py says which of several decides. With
`--json` standard output carries JSON alone; progress and errors go to standard error.
"""

import errno
import gc
import os
import sys
import traceback
from collections.abc import Callable
from typing import Annotated

import typer

from edgebed.cli import begin, hosts, look, maintain, operate, run, runs, study
from edgebed.cli.help import HELP_OPTIONS, Command, Group, epilog
from edgebed.cli.problems import say_problems
from edgebed.core.console import discard_output, prepare_streams, put, say
from edgebed.core.errors import FULL, EdgebedError, InfrastructureError, ScenarioError
from edgebed.runtimes.containers.register import are_left_behind

app = typer.Typer(
    name="edgebed",
    cls=Group,
    context_settings=HELP_OPTIONS,
    epilog=epilog(""),
    help="Train a neural network across a fleet of emulated edge devices.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None if os.environ.get("NO_COLOR") else "rich",
)

OPERATE = "Operate a live run"
OBJECTS_A_COLLECTION = 100_000
"""Objects to be made before garbage is looked for: most of what a command imports stays."""
NAME_SHOWN = 60
"""Characters that are shown of a name that is too long."""


def main(program: typer.Typer = app) -> None:
    """Run a command line: errors of users and machines become one line each, bugs show their traceback."""
    gc.set_threshold(OBJECTS_A_COLLECTION)
    prepare_streams()
    try:
        program(prog_name=program.info.name)
    except EdgebedError as error:
        if isinstance(error, ScenarioError):
            say_problems(error.located)
        else:
            say(f"error: {error}")
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # a name that the user gave
            say(f"error: {str(error.filename)[:NAME_SHOWN]}…: {error.strerror}; give a shorter one")
            sys.exit(2)
        if error.errno not in FULL:
            traceback.print_exc()
        say(f"error: {error.strerror}")
        discard_output()
        sys.exit(3)
    except Exception:  # noqa: BLE001 - a bug: the traceback is what helps, and exit code 1 means something else.
        traceback.print_exc()
        sys.exit(3)


def _version(asked: bool) -> None:
    if asked:
        from edgebed.core.package import VERSION

        put(f"edgebed {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train a neural network across a fleet of emulated edge devices."""
    if are_left_behind() and context.invoked_subcommand != "down":
        _remove_leftovers()


def _remove_leftovers() -> None:
    """Remove containers and networks of a controller that was killed; say why where that fails."""
    from edgebed.runtimes.containers.leftovers import remove_leftovers

    try:
        remove_leftovers(say, say_kept=lambda _: None)
    except InfrastructureError as error:
        say(f"containers of a controller that was killed are left: {error}")


GROUPS: dict[str, tuple[Callable[..., None], ...]] = {
    "Begin": (begin.init, begin.doctor),
    "Run": (run.run, run.resume, run.validate, run.plan),
    "Look": (runs.ls, look.show, look.report, look.watch, look.events, look.logs, look.export, look.replay),
    "Study": (study.compare, study.agree, study.sweep, study.reproduce),
    OPERATE: (*operate.COMMANDS, operate.cpus, operate.rollback),
    "Maintain": (
        runs.note,
        runs.rm,
        runs.prune,
        maintain.calibrate,
        maintain.profile,
        maintain.traces,
        maintain.down,
        maintain.compose,
        maintain.schema,
    ),
}
"""Commands by group, as `edgebed --help` shows them."""

for group, commands in GROUPS.items():
    for command in commands:
        app.command(rich_help_panel=group, cls=Command, epilog=epilog(command.__name__))(command)

link = typer.Typer(
    cls=Group,
    epilog=epilog("link"),
    help="Show links as asked, as held and as measured; or change them.",
    no_args_is_help=True,
)
link.command("show", cls=Command, epilog=epilog("link show"))(look.show_links)
link.command("set", cls=Command, epilog=epilog("link set"))(operate.set_link)
app.add_typer(link, name="link", rich_help_panel=OPERATE)

machines = typer.Typer(
    cls=Group,
    epilog=epilog("hosts"),
    help="Check the hosts of a run over several machines; bring images to them.",
    no_args_is_help=True,
)
machines.command("check", cls=Command, epilog=epilog("hosts check"))(hosts.check)
machines.command("images", cls=Command, epilog=epilog("hosts images"))(hosts.images)
app.add_typer(machines, name="hosts", rich_help_panel="Maintain")
