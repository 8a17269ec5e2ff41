"""The commands for the first hour: an experiment to begin with, and what works on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from edgebed.cli.options import Json, put_parts
from edgebed.core.console import put, put_json
from edgebed.core.errors import ScenarioError, unwritten

SCAFFOLD = Path(__file__).with_name("scaffold")
FILES = {
    "scenario.yaml": "what is trained, by which method, on which fleet, and what you expect",
    "mytask.py": "a task: data, a model, its loss and what is measured",
    "mymethod.py": "a part of a method: a compression",
}
NAME = "my-experiment"
"""Name of the scenario in the scaffold."""

Folder = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="Folder to write, which is made; the scenario is named after it.")
]


def init(folder: Folder = Path(NAME)) -> None:
    """Write an experiment to begin with: a scenario, and a task and a method of your own."""
    from edgebed.scenario.names import check_name

    name = folder.absolute().name
    try:
        check_name(name)
    except ValueError as error:
        raise ScenarioError(f"{folder}: {error}") from None
    there = [file for file in FILES if (folder / file).exists()]
    if there:
        raise ScenarioError(f"{folder} has {', '.join(there)} already; choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in FILES:
            text = (SCAFFOLD / file).read_text(encoding="utf-8")
            (folder / file).write_text(text.replace(f"name: {NAME}", f"name: {name}"), encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"{folder} {unwritten(error, 'the argument')}") from None
    width = max(map(len, FILES))
    put(f"{folder}/ has")
    for file, what in FILES.items():
        put(f"  {file:<{width}}  {what}")
    put("next:")
    put(f"  edgebed validate {folder / 'scenario.yaml'}")
    put(f"  edgebed run {folder / 'scenario.yaml'} --runtime simulation")


def doctor(*, json: Json = False) -> None:
    """Check what works on this machine: kernel, engine, memory, disk, data; and say what is lost where it doesn't.

    Nothing is changed, and nothing is downloaded. The exit code is 0: every machine can simulate.
    """
    from edgebed.reports.studies.doctor_table import doctor_parts
    from edgebed.studies.host.doctor import examine

    findings = examine()
    if json:
        put_json(list(findings))
    else:
        put_parts(doctor_parts(findings))
