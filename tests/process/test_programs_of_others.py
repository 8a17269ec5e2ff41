"""Frameworks of others as programs, under a cut and a kill; what they did is written to docs/results/programs.md.

`scripts/campaign --only programs` runs it. It needs packages that edgebed does not, and the sources of the two for an
example of each, which is run as it is, but for its data: modules in peers/digits/ are in the place of those that would
download some. The page says what the run's records and the programs' output say, and nothing else.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from warm_command import WarmCommand

from edgebed.core.package import SHIPPED

ROOT = Path(__file__).parents[2]
PEERS = Path(__file__).with_name("peers")
RECIPES = SHIPPED / "scenarios/programs"
PAGE = ROOT / "docs/results/programs.md"
NEEDED = "pip install flwr torchft torchdata torch==2.13.0 scikit-learn # and its bin/ first on the PATH"
SOURCES = {"flower": "https://github.com/flwrlabs/flower", "torchft": "https://github.com/pytorch/torchft"}
EXAMPLES = {
    "flower-quickstart": ("flower", "examples/quickstart-pytorch", (RECIPES / "flower").glob("*.sh")),
    "torchft-ddp": ("torchft", "train_ddp.py", ()),
}
"""By scenario in peers/: whose sources it is in, where, and what is put beside it."""
PACKAGES = ("flwr", "torchft", "torch")
HEAD = """# Frameworks of others under conditions

What Flower and torchft did while a node was cut off and another one was killed

Written by `scripts/campaign --only programs`, from one run each in processes, on {cores} cores: {versions}. Scenarios
named `programs/…` come with edgebed. The others are examples from their sources, their files as they are; in the place
of data that they would download are digits, by modules of the same name in
[tests/process/peers/digits](https://github.com/edgebed/edgebed/tree/main/tests/process/peers/digits).
"""
SECTION = """
## {name}

{question} {what}

{text}

| {heads} |
|{rules}|
| {values} |

What happened, by the controller's clock:

```text
{events}
```

How each program ended:

```text
{exits}
```
"""


@pytest.mark.campaign
@pytest.mark.timeout(0)
def test_frameworks_of_others_under_a_cut_and_a_kill(tmp_path: Path) -> None:
    """The recipes meet what they expect; of the examples is written what they do."""
    sources = Path(os.environ.get("EDGEBED_PEERS", ROOT / "peers"))
    if missing := [name for name in ("flwr", "torchft_lighthouse") if not shutil.which(name)]:
        pytest.skip(f"{', '.join(missing)}: not there; python -m venv peers; peers/bin/{NEEDED}")
    if missing := [
        f"git clone {url} {sources / name}" for name, url in SOURCES.items() if not (sources / name).is_dir()
    ]:
        pytest.skip(f"EDGEBED_PEERS names a folder with the sources of both; {'; '.join(missing)}")
    python = shutil.which("python", path=Path(shutil.which("flwr") or "").parent)
    asked = f"from importlib.metadata import version as v; print(', '.join(f'{{n}} {{v(n)}}' for n in {PACKAGES}))"
    versions = subprocess.run([str(python), "-c", asked], capture_output=True, text=True, check=True).stdout.strip()

    parts = [HEAD.format(cores=os.cpu_count(), versions=versions)]
    for name in ("flower", "torchft"):
        code, part = ran(RECIPES / f"{name}.yaml", f"programs/{name}", "", tmp_path)
        parts.append(part)
        assert code == 0, part
    for name, (source, place, beside) in EXAMPLES.items():
        scenario = shutil.copy2(PEERS / f"{name}.yaml", tmp_path)
        example, app = sources / source / place, tmp_path / "app"
        shutil.rmtree(app, ignore_errors=True)
        shutil.copytree(example, app) if example.is_dir() else (app.mkdir(), shutil.copy2(example, app))
        for each in beside:
            shutil.copy2(each, app)
        commit = ["git", "-C", str(sources / source), "log", "-1", "--format=%h of %cs"]
        found = subprocess.run(commit, capture_output=True, text=True, check=False).stdout.strip()
        what = f"It is {place} of [{source}]({SOURCES[source]})" + (f", commit {found}." if found else ".")
        settings = ("--set", f"program.env.PYTHONPATH={PEERS / 'digits'}")
        parts.append(ran(Path(scenario), name, what, tmp_path, *settings)[1])
    PAGE.write_text("".join(parts), encoding="utf-8")


def ran(scenario: Path, name: str, what: str, folder: Path, *settings: str) -> tuple[int, str]:
    """Run it to its end; return its exit code and its part of the page."""
    command = WarmCommand(
        "run", str(scenario), "--runtime", "process", "--runs-dir", str(folder / "runs"), "--json", *settings
    )
    out, err = command.communicate()
    assert command.returncode in (0, 1), err
    said = json.loads(out)
    (found,) = said["programs"]
    cells = {
        "ended": f"{found['outcome']}: {found['reason']}",
        "after": f"{found['time_s']:.0f} s",
        "deaths": found["nodes_died"],
        "restarts": found["restarts"],
        "bytes on all links": f"{found['traffic_bytes']:,}",
        **{f"{each}, last": f"{found['final'][each]:,g}" for each in found["measures"] if each in found["final"]},
        "verdict": found["fidelity"]["verdict"],
    }
    events = [line.removeprefix("! program at ") for line in err.splitlines() if line.startswith("! program at ")]
    return command.returncode, SECTION.format(
        name=name,
        question=said["question"],
        what=what,
        text=said["text"],
        heads=" | ".join(cells),
        rules=" --- |" * len(cells),
        values=" | ".join(str(each) for each in cells.values()),
        events="\n".join(re.sub(r"/\S*/", "", line) for line in events) or "nothing",
        exits="\n".join(ending(each) for each in found["exits"]),
    )


def ending(exited: dict[str, Any]) -> str:
    """As a line: who, in which life, how."""
    how = exited.get("signal") or f"exit code {exited.get('code')}"
    return f"{exited['name']} ({exited['incarnation']}): {how}" + (", asked for" if exited.get("asked") else "")
