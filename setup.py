"""Puts the files that come with the code into a wheel, below `edgebed/shipped/`; all else is in pyproject.toml."""

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
PACKAGE = runpy.run_path(str(ROOT / "services/edgebed/core/package.py"))


class BuildWithShipped(build_py):
    """The usual build, and the files that core/package.py lists; an editable installation reads them where they are."""

    def run(self) -> None:
        """Build the package."""
        super().run()
        if self.editable_mode:
            return
        for path in PACKAGE["shipped_files"]():
            place = Path(self.build_lib, "edgebed", PACKAGE["IN_A_WHEEL"], path)
            self.mkpath(str(place.parent))
            self.copy_file(str(ROOT / path), str(place))


setup(cmdclass={"build_py": BuildWithShipped})
