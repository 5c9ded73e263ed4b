"""Puts the folder configs/ into the package, as wsol/configs. All else is in pyproject.toml."""

from pathlib import Path
from shutil import copytree, ignore_patterns, rmtree

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithConfigs(build_py):
    """An editable install has no copy: `wsol.shipped_configs` then finds the folder beside the package."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib, "wsol", "configs")
            rmtree(target, ignore_errors=True)  # of an earlier build: a config may have another name since
            copytree("configs", target, ignore=ignore_patterns(".*"))


setup(cmdclass={"build_py": BuildWithConfigs})
