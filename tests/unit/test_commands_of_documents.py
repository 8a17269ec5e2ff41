"""Which commands of documents `scripts/check-docs` runs, how, and which it leaves out."""

import importlib.machinery
import importlib.util
import re
import subprocess

import pytest
from documented_commands import CONTAINERS, ELSEWHERE, FINE_TUNING, PAGES, PROGRAMS, SCRIPT, TUTORIAL
from repository_files import ROOT
from typer.main import get_command

from edgebed.cli.main import app

README_LINES_MAX = 120
README = """\
# It

```sh
first; echo 'a  b'   # a comment
```

<!-- check-docs: docker: it needs Docker -->
```sh
up
down
```

```python
no_command()
```

File `a.py`, to begin with:

```python
written()
```

<!-- check-docs: long: an hour: slow -->
<!-- check-docs: suite: it is the suite: all -->
```sh
quick
slow one

slow two
all
```
"""


@pytest.fixture(scope="module")
def script():
    """The script as a module."""
    loader = importlib.machinery.SourceFileLoader("check_docs", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_lines_of_the_shell_blocks_are_commands_with_the_marks_before_their_block(script):
    """A mark without a command is of the whole block; a file of the reader's is written where it stands."""
    assert [(command.text, command.kind, command.reason) for command in script.commands_of(README)] == [
        ("first; echo 'a  b'   # a comment", "", ""),
        ("up", "docker", "it needs Docker"),
        ("down", "docker", "it needs Docker"),
        ("cat >a.py <<'END'\nwritten()\nEND", "", ""),
        ("quick", "", ""),
        ("slow one", "long", "an hour"),
        ("slow two", "long", "an hour"),
        ("all", "suite", "it is the suite"),
    ]


@pytest.mark.parametrize(("old", "new"), [("docker: it", "doker: it"), ("an hour: slow", "an hour: slower")])
def test_a_mark_of_nothing_is_refused(script, old, new):
    """It would leave out less, or more, than it says."""
    with pytest.raises(SystemExit, match="no such kind, or no such command"):
        script.commands_of(README.replace(old, new))


def test_commands_share_a_shell_and_the_first_that_fails_ends_it(script):
    """Each is said before it is run, as it is written."""
    commands = [script.Command(text) for text in ("word='a  b'  # kept", 'echo "$word"', "(exit 3)", "echo never")]

    done = subprocess.run(["bash", "-c", script.script_of(commands)], capture_output=True, text=True, check=False)

    assert done.returncode == 3
    assert done.stdout == "\n$ word='a  b'  # kept\n\n$ echo \"$word\"\na  b\n\n$ (exit 3)\n"


def test_what_is_left_out_is_left_out_on_purpose():
    """With a reason, and containers alone for Docker; the suite runs most of README, tutorial and pages."""
    command = [SCRIPT, "--quick", "--list", "README.md", *TUTORIAL, *PAGES, *FINE_TUNING, *PROGRAMS, *CONTAINERS]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    left_out = re.findall(r"^not run \((\w+): (.*?)\): (.*)", listed, re.MULTILINE)
    run = re.findall(r"^(?!not run).*\b(?:edgebed|scripts/\S+|docker) ", listed, re.MULTILINE)

    assert len(left_out) == listed.count("not run (")
    assert len(left_out) < len(run)
    for kind, reason, text in left_out:
        assert kind != "docker" or "docker" in text
        assert len(reason.split()) > 1, text


def test_every_document_with_commands_is_followed_by_a_test():
    """As it is written; or, where that would take hours, a network or other machines, the like of it.

    Those of docs/results/ say how they were written themselves, by studies of many hours.
    """
    with_commands = {
        str(path.relative_to(ROOT))
        for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/tutorial").glob("*.md")]
        if "\n```sh\n" in path.read_text(encoding="utf-8")
    }

    assert with_commands == {"README.md", *TUTORIAL, *PAGES, *FINE_TUNING, *PROGRAMS, *CONTAINERS, *ELSEWHERE}
    assert [place for place in ELSEWHERE.values() if not (ROOT / place).exists()] == []


def test_every_command_in_a_document_has_a_name_and_options_that_there_are():
    """Also where no test runs it as it is written."""
    known = get_command(app).commands
    wrong, seen = [], 0
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for block in re.findall(
            r"^```(?:sh|console)?\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            for words in re.findall(
                r"(?:^(?:\$ )?|; |&& |do |until )edgebed ([^;|&#\n]*)", block.replace("\\\n", ""), re.MULTILINE
            ):
                name, *rest = words.split()
                seen += 1
                command = known.get(name)
                command = getattr(command, "commands", {}).get(rest[0], command) if rest else command
                options = {option for each in getattr(command, "params", ()) for option in each.opts}
                given = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
                if command is None or not given <= options | {"--help"}:
                    wrong.append(f"{path.name}: edgebed {words}")

    assert wrong == []
    assert seen > 100


def test_the_readme_says_what_its_words_need_that_a_clone_has_not():
    """The site's builder, which is for developers, and images that are downloaded."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (serving,) = (line for line in text.splitlines() if "mkdocs serve" in line)

    assert "scripts/setup --dev" in serving
    assert "data: mnist" in text
    assert "EDGEBED_DATA_DIR" in text


def test_the_readme_is_short():
    """What it doesn't say, the site does."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= README_LINES_MAX
