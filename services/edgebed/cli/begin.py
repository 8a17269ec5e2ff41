"""The commands for the first hour: an experiment to begin with, and what works on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from edgebed.cli.options import Json, put_parts
from edgebed.core.console import put, put_json
from edgebed.core.errors import ScenarioError, unwritten

SCAFFOLD = Path(__file__).with_name("scaffold")
FILES = {
    "scenario.yaml": ("scenario.yaml", "what is trained, by which method, on which fleet, and what you expect"),
    "mytask.py": ("mytask.py", "a task: data, a model, its loss and what is measured"),
    "mymethod.py": ("mymethod.py", "a part of a method: a compression"),
}
"""What is written: (file of the scaffold, what it is)."""
PROGRAM_FILES = {
    "scenario.yaml": ("program.yaml", "what runs on which fleet, what is measured of it, and what you expect"),
    "app/train.py": ("train.py", "the program; put your own in its place"),
}
"""Files written for a program: (file of the scaffold, what it is)."""
NAME = "my-experiment"
"""Name of the scenario in the scaffold."""

Folder = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="Folder to write, which is made; the scenario is named after it.")
]

OfAProgram = Annotated[
    bool, typer.Option("--program", help="A scenario for a program of your own, instead of a task and a method.")
]


def init(folder: Folder = Path(NAME), *, program: OfAProgram = False) -> None:
    """Write an experiment to begin with: a scenario, and a task and a method of your own, or a program."""
    from edgebed.scenario.names import check_name

    files, how = (PROGRAM_FILES, "process # as root") if program else (FILES, "simulation")
    name = folder.absolute().name
    try:
        check_name(name)
    except ValueError as error:
        raise ScenarioError(f"{folder}: {error}") from None
    there = [file for file in files if (folder / file).exists()]
    if there:
        raise ScenarioError(f"{folder} has {', '.join(there)} already; choose another folder")
    try:
        for file, (source, _) in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            text = (SCAFFOLD / source).read_text(encoding="utf-8")
            (folder / file).write_text(text.replace(f"name: {NAME}", f"name: {name}"), encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"{folder} {unwritten(error, 'the argument')}") from None
    width = max(map(len, files))
    put(f"{folder}/ has")
    for file, (_, what) in files.items():
        put(f"  {file:<{width}}  {what}")
    put("next:")
    put(f"  edgebed validate {folder / 'scenario.yaml'}")
    put(f"  edgebed run {folder / 'scenario.yaml'} --runtime {how}")


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
