"""scripts/pin-images, with a `docker` that knows digests: where they are set, and that nothing is changed without."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = (
    *(f"images/{image}/Dockerfile" for image in ("controller", "parameter-server", "worker")),
    "docker-compose.yml", "scripts/build-images", "scripts/pin-images", ".env",
)  # fmt: skip
DOCKER = """#!/bin/sh
case "$6" in *"$MISSING"*) echo "no such host" >&2; exit 1 ;; esac
echo "sha256:$DIGEST"
"""


@pytest.fixture
def pin(tmp_path):
    """Runs the script in a copy of the files that it may change; gives the result and their texts."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/docker").write_text(DOCKER)
    (tmp_path / "bin/docker").chmod(0o755)

    def run(digit: str, missing: str = "none of them") -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            [tmp_path / "scripts/pin-images"], capture_output=True, text=True, check=False,
            env={"PATH": path, "DIGEST": 64 * digit, "MISSING": missing},
        )  # fmt: skip
        return done, {name: (tmp_path / name).read_text(encoding="utf-8") for name in FILES}

    return run


def test_digests_stand_behind_the_tags_wherever_an_image_is_named(pin):
    """Those of another day replace them; comments keep the tag alone."""
    pin("b")
    done, texts = pin("c")
    digest = f"@sha256:{64 * 'c'}"
    base = f"python:3.11-slim-bookworm{digest}"

    assert done.returncode == 0, done.stderr
    for image in ("controller", "parameter-server", "worker"):
        assert f"\nARG BASE_IMAGE={base}\n" in texts[f"images/{image}/Dockerfile"]
    assert f"BASE_IMAGE: ${{EDGEBED_BASE_IMAGE:-{base}}}\n" in texts["docker-compose.yml"]
    assert f"\nbase=${{EDGEBED_BASE_IMAGE:-{base}}}\n" in texts["scripts/build-images"]
    assert texts[".env"].count(digest) == 2
    assert "sha256:b" not in "".join(texts.values())
    assert all(digest not in line for line in texts["scripts/build-images"].splitlines() if line.startswith("#"))


def test_without_a_registry_nothing_is_changed(pin):
    """Also where it answers for some."""
    done, texts = pin("b", missing="grafana")

    assert done.returncode == 3
    assert "error: no digest of grafana/grafana:" in done.stderr
    assert texts == {name: (ROOT / name).read_text(encoding="utf-8") for name in FILES}
