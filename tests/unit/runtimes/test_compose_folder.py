"""The folder that `edgebed compose` writes: that it has what Compose needs, and that nobody's file is lost."""

import os
import re
import subprocess
import sys

import pytest
from ruamel.yaml import YAML

from edgebed.core.errors import InfrastructureError, ScenarioError
from edgebed.core.package import SHIPPED, fingerprint
from edgebed.runtimes.containers.compose_folder import CODE, write_compose_folder


@pytest.fixture
def folder(tmp_path):
    """A folder that was written."""
    write_compose_folder(tmp_path / "lab")
    return tmp_path / "lab"


def test_all_that_compose_and_the_images_read_is_there(folder):
    """What the services mount and build from, and what each Dockerfile copies and binds."""
    named = set()
    for service in YAML(typ="safe").load(folder / "docker-compose.yml")["services"].values():
        named |= {volume.partition(":")[0] for volume in service.get("volumes", ()) if volume.startswith("./")}
        named |= {service["build"]["dockerfile"]} if "build" in service else set()
    for recipe in folder.glob("images/*/Dockerfile"):
        text = recipe.read_text()
        named |= set(re.findall(r"^COPY (\S+)", text, re.MULTILINE))
        named |= set(re.findall(r"type=bind,source=(\S+?),", text))

    assert {"./scenarios", "images/worker/Dockerfile", "images/wheels", "requirements/node.txt", str(CODE)} <= named
    assert [name for name in sorted(named - {"./runs"}) if not (folder / name).exists()] == []
    assert all(os.access(folder / name, os.X_OK) for name in ("images/edgebed", "images/edgebed-node"))
    assert os.access(folder / "scripts/build-images", os.X_OK)


def test_the_build_sees_what_it_copies(folder):
    """Whatever .dockerignore keeps out would be missing in the images."""
    kept = [line[1:] for line in (folder / ".dockerignore").read_text().splitlines() if line.startswith("!")]

    assert str(CODE) in kept
    assert "images/wheels/.gitignore" in kept, "a folder without a file would not be there to bind"


def test_the_images_have_the_very_code_that_wrote_the_folder(folder):
    """Nodes of other code than their controller's are refused."""
    program = "from edgebed.core.package import fingerprint; print(fingerprint())"
    environment = os.environ | {"PYTHONPATH": str(folder / CODE.parent)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == fingerprint()


def test_a_second_time_there_is_nothing_to_do(folder):
    """What is right stays untouched."""
    written = write_compose_folder(folder)

    assert (written.files, written.removed) == ((), ())


def test_a_file_that_was_changed_is_kept_and_named(folder):
    """Nothing is written then, not even what is missing; --force replaces it."""
    (folder / ".env").write_text("COMPOSE_PROJECT_NAME=mine\n")
    (folder / "docker-compose.yml").unlink()

    with pytest.raises(ScenarioError, match=r"lab: \.env is there and not edgebed \S+'s; choose .*--force$"):
        write_compose_folder(folder)
    assert (folder / ".env").read_text() == "COMPOSE_PROJECT_NAME=mine\n"
    assert not (folder / "docker-compose.yml").exists()

    assert [str(path) for path in write_compose_folder(folder, force=True).files] == [".env", "docker-compose.yml"]
    assert (folder / ".env").read_text() == (SHIPPED / ".env").read_text()


def test_a_module_of_another_version_goes(folder):
    """It would be in the images, and they would be of other code; it goes when the user has said so."""
    old = folder / CODE / "core/gone.py"
    old.write_text("")

    with pytest.raises(ScenarioError, match=r"services/edgebed/core/gone\.py is there"):
        write_compose_folder(folder)
    assert old.exists()

    assert write_compose_folder(folder, force=True).removed == (CODE / "core/gone.py",)
    assert not old.exists()


def test_what_is_not_edgebeds_stays(folder):
    """Runs, scenarios of one's own, and everything else."""
    (folder / "scenarios/mine.yaml").touch()
    (folder / "runs").mkdir()

    assert write_compose_folder(folder, force=True).files == ()
    assert (folder / "scenarios/mine.yaml").exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    """A file is in its place."""
    (tmp_path / "lab").touch()

    with pytest.raises(
        InfrastructureError, match=r"lab cannot be written: .*choose another folder with edgebed compose"
    ):
        write_compose_folder(tmp_path / "lab")
