"""What Tab offers: runs, their trials and nodes, variants of a scenario. What cannot be read offers nothing."""

import contextlib
from collections.abc import Callable, Iterable, Iterator

from typer import Context

from edgebed.core.errors import EdgebedError

OFFERED_MAX = 200


def _offering(find: Callable[[Context], Iterable[str]]) -> Callable[[Context, str], list[str]]:
    """A function for typer: of what `find` finds, that which begins as what is typed."""

    def offer(ctx: Context, incomplete: str) -> list[str]:
        found: dict[str, None] = {}
        with contextlib.suppress(EdgebedError, OSError, ValueError):
            for name in find(ctx):
                if name.startswith(incomplete):
                    found[name] = None
                if len(found) == OFFERED_MAX:
                    break
        return list(found)

    return offer


def _argument(ctx: Context, name: str) -> str:
    """The argument of a command; as a word that is left over where the option to be completed follows it."""
    found = ctx.params.get(name) or next(iter(ctx.args), None)
    if found is None:
        raise ValueError(f"no {name}")
    return str(found)


def _runs(ctx: Context) -> Iterator[str]:
    """The latest run, scenarios, runs."""
    from edgebed.journal.run_folder import LATEST, list_runs, runs_root

    runs = list_runs(runs_root(ctx.params.get("runs_dir")))
    if runs:
        yield LATEST
    yield from (run.scenario_name for run in runs)
    yield from (run.name for run in reversed(runs))


def _trials(ctx: Context) -> Iterator[str]:
    """The trials of the run that is named."""
    from edgebed.journal.run_folder import RunFolder, runs_root

    folder = RunFolder.find(runs_root(ctx.params.get("runs_dir")), _argument(ctx, "name"))
    yield from folder.read_manifest().get("trials", ())


def _nodes(ctx: Context) -> Iterator[str]:
    """The nodes of the run that is named, else of the latest."""
    from edgebed.journal.following import planned_nodes
    from edgebed.journal.run_folder import LATEST, RunFolder, runs_root

    takes_run = any(param.name == "name" for param in ctx.command.params)
    name = _argument(ctx, "name") if takes_run else ctx.params.get("run") or LATEST
    folder = RunFolder.find(runs_root(ctx.params.get("runs_dir")), name)
    yield from planned_nodes(folder)


def _variants(ctx: Context) -> Iterator[str]:
    """The variants in the scenario file that is named."""
    from edgebed.scenario.shipped import scenario_file
    from edgebed.scenario.source import read_file

    variants = read_file(scenario_file(_argument(ctx, "scenario"))).value.get("variants")
    yield from (name for name, _ in variants.items()) if variants else ()


runs, trials, nodes, variants = map(_offering, (_runs, _trials, _nodes, _variants))
