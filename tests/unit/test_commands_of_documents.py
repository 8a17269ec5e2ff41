"""Which commands of documents `scripts/check-docs` runs, how, and which it leaves out."""

import importlib.machinery
import importlib.util
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/check-docs"
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
    """The suite runs everything else of the README."""
    listed = subprocess.run([SCRIPT, "--quick", "--list"], capture_output=True, text=True, check=True).stdout
    run = "edgebed run scenarios/quickstart.yaml --runtime simulation"
    left_out = [line.partition("): ")[2].split("  ")[0] for line in listed.splitlines() if line.startswith("not run")]

    assert left_out == [
        "docker compose up",
        "SCENARIO=scenarios/faults/churn.yaml docker compose up",
        "docker compose up -d --wait && docker compose wait controller",
        "docker compose down",
        "scripts/demo",
        "scripts/test",
        "edgebed run scenarios/two-classes.yaml --runtime simulation",
        "edgebed run scenarios/two-classes.yaml --runtime simulation --set fleet.slow.count=40",
        "docker compose build && edgebed run scenarios/two-classes.yaml --runtime docker",
        "edgebed run scenarios/links/slow-uplink.yaml --runtime simulation",
        "edgebed link show slow-uplink",
        "edgebed calibrate",
        "edgebed run scenarios/faults/server-killed.yaml",
        "edgebed resume flapping-uplink",
        f"for seed in 1 2 3; do {run} --set name=seeds --set seed=$seed; done",
        "edgebed compare seeds/1 seeds/2 seeds/3",
        "edgebed agree scenarios/hardy2017/agree-20.yaml --runtimes simulation,process",
        "edgebed sweep scenarios/sweeps/links.yaml --set sweep.seeds=1 --set 'sweep.methods=[top-k, dgc, fedavg]'",
        "edgebed reproduce hardy2017 --row accuracy-adacomp-0.01 --scale 0.02",
    ]
