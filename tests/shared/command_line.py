"""A command in this process, as a fixture gives it to tests."""

import sys
from collections.abc import Callable

import pytest
from typer import Typer

from edgebed.cli import main as cli

Command = Callable[..., tuple[int, str, str]]


def command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: Typer = cli.app
) -> Command:
    """A function that runs a program with a command line; gives (exit code, standard output, standard error)."""

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["edgebed", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            cli.main(program)
        return int(left.value.code or 0), *capsys.readouterr()

    return call
