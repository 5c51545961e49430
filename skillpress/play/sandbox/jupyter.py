"""The walls of bubblewrap with a Jupyter kernel inside, for code with magics."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from skillpress.play.sandbox.bubblewrap import INSIDE, RUNNER, Bubblewrap
from skillpress.play.sandbox.limits import Limits, SandboxUnavailableError

KERNEL_RUNNER = Path(str(files("skillpress.play.sandbox") / "kernel_runner.py"))  # a path: it is mounted
KERNEL = f"{INSIDE}/kernel"
"""The folder in which the packages of the kernel appear."""
START = (
    f"import sys\nsys.path[:0] = ['{INSIDE}', '{KERNEL}']\n"
    "from skillpress.play.sandbox.kernel_runner import main\nmain()"
)
UNUSED = {"debugpy"}
"""ipykernel needs it only for a debugger, and it is as large as all other packages together."""


class Jupyter(Bubblewrap):
    """ipykernel inside, reached over ipc by a runner behind the same walls."""

    program: ClassVar[list[str]] = ["-c", START]
    scripts: ClassVar[Mapping[str, Path]] = {
        f"{INSIDE}/skillpress/play/sandbox/{path.name}": path for path in (RUNNER, KERNEL_RUNNER)
    }

    def __init__(self, limits: Limits, packages: Path | None) -> None:
        """Take bubblewrap's arguments; ``SandboxUnavailableError`` if ipykernel is not installed."""
        super().__init__(limits, packages)
        self.shown |= {f"{KERNEL}/{path.name}": path for path in kernel_packages()}

    @classmethod
    def probe(cls) -> None:
        kernel_packages()
        super().probe()


@functools.cache
def kernel_packages() -> tuple[Path, ...]:
    """Folders and modules of ipykernel and its dependencies here; or ``SandboxUnavailableError``."""
    from packaging.requirements import Requirement  # which the base layer of the package lacks

    found: dict[str, tuple[Path, ...]] = {}
    wanted = ["ipykernel"]
    while wanted:
        name = wanted.pop()
        if name in found or name in UNUSED:
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError as error:
            raise SandboxUnavailableError(
                f"the sandbox backend jupyter needs {name}: pip install 'skillpress[jupyter]'"
            ) from error
        found[name] = _parts(package)
        needs = [Requirement(text) for text in package.requires or ()]
        wanted += [one.name for one in needs if one.marker is None or one.marker.evaluate({"extra": ""})]
    return tuple(path for paths in found.values() for path in paths)


def _parts(package: Distribution) -> tuple[Path, ...]:
    """The top-level folders and modules of a package, without its metadata and its programs."""
    names = {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}
    kept = (name for name in sorted(names) if not name.endswith((".dist-info", ".pth")))
    return tuple(Path(str(package.locate_file(name))).resolve() for name in kept)
