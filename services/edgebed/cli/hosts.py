"""The commands for hosts: whether they are fit for a run over all of them, and bringing images to them."""

from pathlib import Path
from typing import Annotated

import typer

from edgebed.cli.options import Json, engines_in, put_parts
from edgebed.core.console import put_json, say
from edgebed.core.errors import InfrastructureError

HostsFile = Annotated[Path, typer.Argument(metavar="FILE", help="A file of hosts.", show_default=False)]


def check(file: HostsFile, *, json: Json = False) -> None:
    """Check engines, images and swarm of all hosts, and measure the network and the clocks between them."""
    from edgebed.reports.studies.hosts_table import hosts_parts
    from edgebed.runtimes.containers.hosts.check import check_hosts

    checks = check_hosts(engines_in(file), say)
    if json:
        put_json(checks)
    else:
        put_parts(hosts_parts(checks))
    if any(each.problems for each in checks):
        raise typer.Exit(InfrastructureError.exit_code)


def images(file: HostsFile) -> None:
    """Bring the images of the nodes from the first host to the others; from their registry, if their name has one."""
    from edgebed.runtimes.containers.hosts.images import bring_images

    if problems := bring_images(engines_in(file), say):
        for problem in problems:
            say(f"error: {problem}")
        raise typer.Exit(InfrastructureError.exit_code)
