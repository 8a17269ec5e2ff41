"""Which commands of documents `scripts/check-docs` runs, how, and which it leaves out."""

import importlib.machinery
import importlib.util
import re
import subprocess

import pytest
from documented_commands import CONTAINERS, ELSEWHERE, PAGES, SCRIPT, TUTORIAL
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
    """The suite runs everything else of README, tutorial and pages; containers, with Docker alone."""
    command = [SCRIPT, "--quick", "--list", "README.md", *TUTORIAL, *PAGES, *CONTAINERS]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    run = "edgebed run quickstart --runtime simulation"
    phones = "edgebed run lte-phones.yaml --runtime simulation"
    left_out = [line.partition("): ")[2].split("  ")[0] for line in listed.splitlines() if line.startswith("not run")]

    assert left_out == [
        "scripts/demo",
        "docker compose up",
        "edgebed run scenarios/two-classes.yaml --runtime simulation",
        "edgebed run scenarios/two-classes.yaml --runtime simulation --set fleet.slow.count=40",
        "docker compose build && edgebed run scenarios/two-classes.yaml --runtime docker",
        "edgebed run shaky.yaml --runtime process",
        "(cd containers && SCENARIO=scenarios/shaky.yaml docker compose up)",
        (
            f"for rate in 0.2 0.4 0.8 1.6; do {phones} --variant top-k --set name=rates --set seed=7 "
            "--set variants.top-k.method.aggregation.learning_rate=$rate; done"
        ),
        "edgebed compare rates/1 rates/2 rates/3 rates/4",
        f"for seed in 2 3; do {phones} --set seed=$seed; done",
        "edgebed compare lte-phones/1 lte-phones/2 lte-phones/3 --baseline top-k",
        (
            "edgebed sweep lte-phones.yaml --set fleet.phone.link_trace=null --set fleet.phone.downlink=27mbit "
            "--set sweep.accuracy=0.9 --set sweep.seeds=5 "
            "--set 'sweep.over.fleet.phone.uplink=[250kbit, 1mbit, 4mbit, 16mbit]'"
        ),
        "edgebed run lte-phones.yaml --variant top-k",
        "edgebed run links/slow-uplink --runtime simulation",
        "edgebed link show slow-uplink",
        "edgebed calibrate",
        "edgebed run faults/server-killed",
        "edgebed resume flapping-uplink",
        f"for seed in 1 2 3; do {run} --set name=seeds --set seed=$seed; done",
        "edgebed compare seeds/1 seeds/2 seeds/3",
        "edgebed agree hardy2017/agree-20 --runtimes simulation,process",
        "edgebed sweep sweeps/links --set sweep.seeds=1 --set 'sweep.methods=[top-k, dgc, fedavg]'",
        "edgebed reproduce hardy2017 --row accuracy-adacomp-0.01 --scale 0.02",
        "docker compose up",
        "SCENARIO=scenarios/faults/churn.yaml docker compose up",
        "docker compose up -d --wait && docker compose wait controller",
        "docker compose down",
        "scripts/setup && docker compose build && .venv/bin/edgebed run scenarios/quickstart.yaml --runtime docker",
    ]


def test_every_document_with_commands_is_followed_by_a_test():
    """As it is written; or, where that would take hours, a network or other machines, the like of it.

    Those of docs/results/ say how they were written themselves, by studies of many hours.
    """
    with_commands = {
        str(path.relative_to(ROOT))
        for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/tutorial").glob("*.md")]
        if "\n```sh\n" in path.read_text(encoding="utf-8")
    }

    assert with_commands == {"README.md", *TUTORIAL, *PAGES, *CONTAINERS, *ELSEWHERE}
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
