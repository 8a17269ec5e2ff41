"""Help shows what is typed, with examples that can be; Tab offers runs, trials, nodes and variants."""

import os
import shlex
from pathlib import Path

import pytest
import typer
from finished_runs import RISING, finished_run
from warm_command import WarmCommand

from edgebed.cli.help import EXAMPLES
from edgebed.cli.main import app

ROOT = Path(__file__).parents[3]
VARIANTS = """\
name: tiny
task: { data: digits, model: small, batch_size: 16 }
fleet: { edge: { count: 2 } }
stop: { updates: 100 }
variants:
  slow: { method: asgd }
  small: { method: adacomp }
"""


def commands(group, path=()):
    """Every command and group of commands by the words that lead to it."""
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


ALL = {" ".join(path): command for path, command in commands(typer.main.get_command(app))}


@pytest.fixture
def edgebed(tmp_path):
    """The command line in a process of its own; gives (exit code, standard output)."""

    def call(*words, **environment):
        found = {**os.environ, "COLUMNS": "100", "EDGEBED_RUNS_DIR": str(tmp_path / "runs"), **environment}
        command = WarmCommand(*words, cwd=tmp_path, env=found)
        out, _ = command.communicate(60)
        return command.wait(), out

    return call


@pytest.fixture
def complete(edgebed):
    """What Tab offers after these words, the last of which is not complete."""

    def call(line):
        words = shlex.split(line) + [""] * line.endswith(" ")
        instruction = {"_EDGEBED_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        code, out = edgebed(**instruction)
        assert code == 0
        return out.split()

    return call


def test_every_command_has_an_example():
    """And no example is of a command that is not there."""
    assert set(EXAMPLES) == set(ALL)


@pytest.mark.parametrize("line", sorted({line for lines in EXAMPLES.values() for line in lines}))
def test_every_example_can_be_typed(line):
    """Its command knows all of its words; scenarios that it names are there."""
    words = shlex.split(line)
    context = ALL[""].make_context(words[0], words[1:], resilient_parsing=False)
    name, command, rest = ALL[""].resolve_command(context, [*context._protected_args, *context.args])
    while rest and hasattr(command, "commands"):
        name, command, rest = command.resolve_command(context, rest)

    command.make_context(name, rest, parent=context)
    for word in words:
        assert not word.startswith("scenarios/") or (ROOT / word).is_file()


@pytest.mark.parametrize("command", sorted(ALL))
def test_help_shows_the_examples_of_a_command(edgebed, command):
    """`-h` is as good as `--help`; no flag has a value, and no bracket is lost as markup."""
    code, out = edgebed(*command.split(), "-h")

    assert code == 0
    assert all(line in out for line in EXAMPLES[command])
    assert "<bool>" not in out
    assert "{" not in out.strip().partition("\n")[0]


def test_help_names_arguments_as_they_are_typed(edgebed):
    """One that may be left out is in brackets; of several there are dots."""
    assert "Usage: edgebed run [OPTIONS] SCENARIO" in edgebed("run", "-h")[1]
    assert "Usage: edgebed logs [OPTIONS] RUN [NODE]" in edgebed("logs", "-h")[1]
    assert "Usage: edgebed kill [OPTIONS] NODE..." in edgebed("kill", "-h")[1]
    assert "Usage: edgebed compare [OPTIONS] RUN..." in edgebed("compare", "--help", NO_COLOR="1")[1]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("edgebed sh", ["show"]),
        ("edgebed show ", ["latest", "pair", "pair/0001"]),
        ("edgebed show pair/", ["pair/0001"]),
        ("edgebed export pair --trial a", ["asgd", "adacomp"]),
        ("edgebed logs pair ed", ["edge-0", "edge-1"]),
        ("edgebed events pair --node ed", ["edge-0", "edge-1"]),
        ("edgebed kill se", ["server"]),
        ("edgebed run tiny.yaml --variant s", ["slow", "small"]),
        ("edgebed run quickstart --variant a", ["asgd", "adacomp"]),
        ("edgebed run gone.yaml --variant s", []),
        ("edgebed export gone --trial a", []),
    ],
)
def test_tab_offers_what_there_is(complete, tmp_path, line, offered):
    """Of a run or scenario that is not there it offers nothing, without a word."""
    finished_run(tmp_path / "runs", {"asgd": RISING, "adacomp": RISING})
    (tmp_path / "tiny.yaml").write_text(VARIANTS)

    assert complete(line) == offered


def test_tab_offers_nothing_where_there_are_no_runs(complete):
    """Not even the latest."""
    assert complete("edgebed show ") == []
