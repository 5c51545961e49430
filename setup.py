"""What pyproject.toml cannot say: a wheel carries the reference lab.

Its files stay at the root of the repository, where they are used; a build copies them into the package. No
second copy has to be kept in step.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

LAB = (
    "params.yaml", "params", "dvc.yaml", "tasks", "flows", "infra", "benchmarks/results/dictionary.json",
    "studies/reuserl/tables.yaml", "constraints.txt", "pyproject.toml",
)  # fmt: skip
PLACE = Path("skillpress/pipeline/lab")
"""Where skillpress/core/lab.py looks for them."""


class BuildWithLab(build_py):
    """Modules, package data, and the reference lab."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:  # the repository itself is the lab
            return
        for target, source in self._lab().items():
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), *([] if self.editable_mode else self._lab())]

    def _lab(self) -> dict[str, Path]:
        """Target to source of every file."""
        root = Path(__file__).resolve().parent
        if gone := [name for name in LAB if not (root / name).exists()]:
            raise FileNotFoundError(f"{root}: the reference lab lacks {', '.join(gone)}")
        found = [path for name in LAB for path in (root / name, *(root / name).rglob("*"))]
        kept = [path for path in found if path.is_file() and "__pycache__" not in path.parts]
        return {str(Path(self.build_lib) / PLACE / path.relative_to(root)): path for path in kept}


setup(cmdclass={"build_py": BuildWithLab})
