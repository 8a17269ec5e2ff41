"""The project on GitHub: workflows, the action and the templates, and the commands of their steps as written."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from repository_files import ROOT
from ruamel.yaml import YAML
from warm_command import warm_environment

from edgebed.core.package import VERSION

WORKFLOWS_FOLDER = ROOT / ".github/workflows"
WORKFLOWS = sorted(WORKFLOWS_FOLDER.glob("*.yml"))
ACTION = ROOT / "action.yml"
FORMS = sorted(path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "custom.github-workflows-require-timeout": WORKFLOWS,
    "vendor.github-actions": [ACTION],
    "vendor.github-issue-forms": FORMS,
    "vendor.github-issue-config": [ROOT / ".github/ISSUE_TEMPLATE/config.yml"],
    "vendor.citation-file-format": [ROOT / "CITATION.cff"],
}
SAFE_IN_A_SCRIPT = re.compile(r"\$\{\{ matrix\.\w+ \}\}")
"""What is ours alone; anything else reaches a script by `env`, where no shell reads it as words."""


def steps_of(path: Path) -> list[dict]:
    """The steps of a workflow or of the action, in order."""
    document = YAML(typ="safe").load(path)
    jobs = document["jobs"].values() if "jobs" in document else [document["runs"]]
    return [step for job in jobs for step in job["steps"]]


def script_of(path: Path, name: str) -> str:
    """The commands of the step of that name."""
    (script,) = [step["run"] for step in steps_of(path) if step.get("name") == name]
    return script


STEPS = [(path, step) for path in (*WORKFLOWS, ACTION) for step in steps_of(path)]
SCRIPTS = [(path, step["run"]) for path, step in STEPS if "run" in step]


def run_script(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """What the commands of a step do, run as GitHub runs them."""
    environment = os.environ | variables
    bash = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
    return subprocess.run(bash, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def recorder(folder: Path, name: str) -> Path:
    """A folder for PATH with a command that notes its arguments, in `folder/asked`."""
    place = folder / "bin" / name
    place.parent.mkdir()
    place.write_text(f'#!/bin/sh\necho "$*" >>{folder}/asked\n')
    place.chmod(0o755)
    return place.parent


@pytest.mark.parametrize("schema", SCHEMAS)
def test_each_file_is_what_github_takes(schema):
    """By the schemas that check-jsonschema carries; each job has a limit of time."""
    if importlib.util.find_spec("check_jsonschema") is None:
        pytest.skip("check-jsonschema is missing: scripts/setup --dev")
    assert SCHEMAS[schema]
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, SCHEMAS[schema])]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_step_is_bash_that_takes_nothing_from_outside():
    """No syntax error, and no expression in it that others could fill: titles, branches and inputs."""
    assert len(SCRIPTS) > 10
    for path, script in SCRIPTS:
        plain = SAFE_IN_A_SCRIPT.sub("one", script)
        assert "${{" not in plain, path
        subprocess.run(["bash", "-n", "-c", plain], check=True)


def test_every_script_that_a_step_runs_is_there():
    """And can be run."""
    scripts = {name for _, script in SCRIPTS for name in re.findall(r"(?<![\w./-])scripts/[\w-]+", script)}

    assert {"scripts/test", "scripts/setup", "scripts/check-ranges"} <= scripts
    assert [name for name in sorted(scripts) if not os.access(ROOT / name, os.X_OK)] == []


def test_the_actions_of_others_are_pinned():
    """By the hash of a commit, with its version beside it: a tag can be moved."""
    used = [
        (path.name, line.strip())
        for path in (*WORKFLOWS, ACTION)
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r"\s*(- )?uses: (?!\./)", line)
    ]

    assert len(used) > 8
    assert [each for each in used if not re.search(r"uses: [\w/-]+@[0-9a-f]{40} # v[\d.]+$", each[1])] == []


def test_what_gates_builds_or_publishes_installs_by_hash():
    """A package that is replaced on its index comes into none of it; the wheel alone is tried as users get it."""
    installs = [
        (path.name, line.strip())
        for path, script in SCRIPTS
        for line in script.splitlines()
        if re.search(r"\bpip\S* install\b", line)
    ]
    unlocked = [each for each in installs if "--require-hashes --requirement requirements/" not in each[1]]
    publishing = script_of(WORKFLOWS_FOLDER / "wheels.yml", "Publish to the package index, as a trusted publisher")

    assert len(installs) > 3
    assert {(name, "try/bin/pip" in line) for name, line in unlocked} <= {("wheels.yml", True), ("site.yml", False)}
    assert "--require-hashes --requirement requirements/publish.txt" in publishing
    assert '"$GITHUB_ACTION_PATH/scripts/setup"' in script_of(ACTION, "Install edgebed")


@pytest.fixture
def gate(tmp_path):
    """Runs the action's step with this environment's edgebed, each time another of one job, which share its folders.

    Gives the result and the step's outputs.
    """
    warm_environment(tmp_path / "temp/edgebed")
    folder, outputs = tmp_path / "empty", tmp_path / "outputs"
    folder.mkdir()

    def run(scenario: str, *sets: str) -> tuple[subprocess.CompletedProcess[str], str]:
        outputs.write_text("")
        done = run_script(
            script_of(ACTION, "Run the scenario"),
            folder,
            SCENARIO=scenario,
            RUNTIME="simulation",
            SETS="".join(f"{each}\n" for each in sets),
            RUNNER_TEMP=str(tmp_path / "temp"),
            GITHUB_OUTPUT=str(outputs),
        )
        return done, outputs.read_text()

    return run


@pytest.mark.slow
@pytest.mark.parametrize(("expected", "code"), [(">= 0", 0), (">= 0.99", 1)])
def test_the_gate_ends_as_the_expectations_decide(gate, expected, code, tmp_path):
    """With the run's folder as its output either way."""
    few = ("stop.updates=10", "evaluation.every=5 updates", f'expect={{best_accuracy: "{expected}"}}')
    done, outputs = gate("quickstart", "variants={asgd: {method: asgd}}", *few)

    assert done.returncode == code, done.stderr
    folder = Path(outputs.removeprefix("run=").removesuffix("\n"))
    assert (folder.parts[-2:], folder.is_relative_to(tmp_path / "temp")) == (("quickstart", "0001"), True)
    assert (folder / "report.html").is_file()


@pytest.mark.slow
def test_each_step_of_a_job_has_its_own_run(gate):
    """Whatever its name, and whatever steps before it have left, which all share the job's temporary folder."""
    few = ("variants={asgd: {method: asgd}}", "stop.updates=10", "evaluation.every=5 updates")
    names = ("zebra", "ant")
    found = [gate("quickstart", f"name={name}", *few)[1] for name in names]

    assert [each.removesuffix("\n").rpartition("/edgebed-runs.")[2].partition("/")[2] for each in found] == [
        f"{name}/0001" for name in names
    ]
    assert gate("quikstart")[1] == ""


def test_the_gate_ends_with_two_for_a_mistake(gate):
    """There is no run then, and so no output."""
    done, outputs = gate("quikstart")

    assert (done.returncode, outputs) == (2, "")
    assert "did you mean 'quickstart'?" in done.stderr


def test_the_notes_of_a_release_are_what_the_changelog_says(tmp_path):
    """Of that version alone; without a section for it there is no release."""
    bin_folder = recorder(tmp_path, "gh")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    script = script_of(ROOT / ".github/workflows/wheels.yml", "Make the release, with what CHANGELOG.md says of it")
    variables = {"TAG": f"v{VERSION}", "GH_TOKEN": "", "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    (tmp_path / "CHANGELOG.md").write_text(re.sub(r"(?m)^## .*\n", "## Unreleased\n", changes))
    refused = run_script(script, tmp_path, **variables)
    (tmp_path / "CHANGELOG.md").write_text(
        changes.replace("## Unreleased", f"## Unreleased\n\n## {VERSION} - 2026-12-01")
    )

    done = run_script(script, tmp_path, **variables)

    assert refused.returncode == 1
    assert done.returncode == 0, done.stderr
    notes = (tmp_path / "notes.md").read_text()
    assert notes.startswith(f"## {VERSION} - 2026-12-01\n")
    assert notes.count("\n## ") == 0
    assert 10 < len(notes.splitlines()) <= 60
    assert (
        (tmp_path / "asked").read_text().startswith(f"release create v{VERSION} --verify-tag --title edgebed {VERSION}")
    )


def test_an_image_has_one_name_for_both_architectures(tmp_path):
    """Each is pushed by its own architecture, then joined; names of registries are in lower case."""
    images = ROOT / ".github/workflows/images.yml"
    push = "Push the images, each with a list of all that is in it (SBOM)"
    path = f"{recorder(tmp_path, 'docker')}:{os.environ['PATH']}"
    for architecture in ("amd64", "arm64"):
        variables = {"TAG": "v1.2.3", "REGISTRY": "ghcr.io/Who", "ARCHITECTURE": architecture, "PATH": path}
        assert run_script(script_of(images, push), tmp_path, **variables).returncode == 0
    assert run_script(script_of(images, "Join the images"), tmp_path, **variables).returncode == 0

    asked = (tmp_path / "asked").read_text().splitlines()
    name = "ghcr.io/who/edgebed-worker:1.2.3"
    assert f"tag edgebed-worker:edgebed {name}-arm64" in asked
    assert f"push {name}-amd64" in asked
    assert f"buildx build --builder scanning --sbom=true --tag {name}-amd64 --push -" in asked
    assert f"buildx imagetools create --tag {name} {name}-amd64 {name}-arm64" in asked
    assert len(asked) == 2 * (1 + 3 * 3) + 3
