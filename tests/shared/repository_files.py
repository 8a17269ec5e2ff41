"""The files that the repository is made of."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tracked_files() -> list[Path]:
    """The files of the repository; outside of git, all that no tool has made."""
    try:
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        names = [ROOT / name for name in listing.stdout.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        made = {".venv", "runs", "build", "__pycache__"}
        names = [path for path in ROOT.rglob("*") if not made & set(path.parts) and ".egg-info" not in str(path)]
    return [path for path in names if path.is_file()]
