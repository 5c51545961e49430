"""The contents of a sandbox, independent of its isolation: mainly the Python that it runs.

It is the Python that runs this program, with its standard library but without the packages installed on the
host. Its path inside reveals nothing about the host, unless it belongs to ``/usr``, which all sandboxes see
unchanged.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path

from skillpress.rollouts.sandbox.isolation import Bind, Inside
from skillpress.rollouts.sandbox.limits import Limits, SandboxUnavailableError
from skillpress.rollouts.sandbox.spawner import spawner

HOME = "/home/agent"
"""The working folder."""
RUNNER = "/opt/agent/runner.py"
"""The file of the interpreter that answers the host."""
PACKAGES = "/opt/agent/packages"
"""The folder in which packages that are given to the sandbox appear."""

SEEN: Mapping[str, object] = {
    "Seccomp": "2",
    "NoNewPrivs": 1,
    "CapEff": f"{0:016x}",
    "CapBnd": f"{0:016x}",
    "process": 2,
    "interfaces": ["lo"],
}
"""What the interpreter must report before it runs anything, whatever isolates it."""
INSIDE = "/opt/python"
"""The folder in which an interpreter outside ``/usr`` appears."""
USR = Path("/usr")
OF_PACKAGES = ("site-packages", "dist-packages")
FOR_BUILDING = "config-*"
"""The folder with a build configuration, which only the host needs, to build extensions."""


@dataclass(frozen=True)
class Interpreter:
    """A Python of the host."""

    executable: Path
    folder: Path | None
    """The folder that contains all of it; None if that is ``/usr``."""

    @property
    def inside(self) -> str:
        """The executable's path inside."""
        return str(self.executable) if self.folder is None else _inside(self.executable, self.folder)

    @cached_property
    def hidden(self) -> Sequence[str]:
        """Folders, by their path inside, that appear empty."""
        hidden = [str(path) for path in (*_packages(USR), *_packages(USR / "local"))]
        if self.folder is not None:
            found = [*_packages(self.folder), *self.folder.glob(f"lib*/python3*/{FOR_BUILDING}")]
            hidden += [_inside(path, self.folder) for path in found]
        return hidden

    @cached_property
    def replaced(self) -> Mapping[str, bytes]:
        """Maps paths inside to file contents, for files that contain the interpreter's path on the host.

        Raises:
            SandboxUnavailableError: the executable looks for its library at a path that cannot be changed.
        """
        folder = self.folder
        if folder is None:
            return {}
        build_settings = sorted(folder.glob("lib*/python3*/_sysconfigdata*.py"))
        replaced = {path: _moved(path.read_bytes(), folder) for path in build_settings}
        if _needs_its_place(self.executable, folder):
            replaced[self.executable] = _moved_in_place(self.executable.read_bytes(), folder)
        return {_inside(path, folder): content for path, content in replaced.items()}

    def binds(self, shown: Callable[[Path], Path]) -> list[Bind]:
        """All paths except replaced files; ``shown`` maps a path to where the user of sandboxes finds it."""
        if self.folder is None:
            return []
        names = [*_libraries(self.folder)]
        if self.inside not in self.replaced:
            names.append(f"bin/{self.executable.name}")
        return [Bind(f"{INSIDE}/{name}", shown(self.folder) / name) for name in names]

    @property
    def links(self) -> Mapping[str, str]:
        """The interpreter's other names, by their path inside."""
        names = () if self.folder is None else ("python", "python3")
        return {f"{INSIDE}/bin/{name}": self.executable.name for name in names}


@functools.cache
def this_interpreter() -> Interpreter:
    """The interpreter that runs this program."""
    folder = Path(sys.base_prefix).resolve()
    executable = folder / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    return Interpreter(executable, None if folder.is_relative_to(USR) else folder)


def inside(limits: Limits, packages: Path | None = None) -> Inside:
    """What a sandbox finds inside.

    Args:
        packages: a folder that its code can import from; None for none.

    Raises:
        SandboxUnavailableError: the interpreter cannot be shown there.
    """
    birth, interpreter = spawner(), this_interpreter()
    binds = interpreter.binds(birth.shown)
    if packages is not None:
        binds.append(Bind(PACKAGES, birth.shown(packages)))
    runner = files("skillpress.rollouts.sandbox") / "runner.py"
    return Inside(
        home=HOME,
        disk_mb=limits.disk_mb,
        ip_sockets=limits.ip_sockets,
        folders=[HOME],
        binds=binds,
        links=interpreter.links,
        hidden=interpreter.hidden,
        files={**interpreter.replaced, RUNNER: runner.read_bytes()},
    )


def command(
    setting: Mapping[str, object], descriptor: int, packages: Path | None, first: Sequence[str] = ()
) -> list[str]:
    """The command that starts the interpreter inside.

    Args:
        descriptor: that of its socket to the host.
        packages: as for ``inside``.
        first: a script inside that runs the interpreter's.
    """
    told = {**setting, "socket": descriptor, "paths": [] if packages is None else [PACKAGES]}
    python = [this_interpreter().inside, "-I", "-S", "-B", "-X", "utf8"]
    return [*python, *first, RUNNER, json.dumps(told)]


def _libraries(folder: Path) -> list[str]:
    """The folders of the standard library and of the shared libraries that it needs."""
    return [name for name in dict.fromkeys(("lib", sys.platlibdir)) if (folder / name).is_dir()]


def _packages(folder: Path) -> list[Path]:
    """The folders of installed packages, which are not part of the standard library."""
    found = (path for name in OF_PACKAGES for path in folder.glob(f"lib*/python3*/{name}"))
    return sorted(path for path in found if path.is_dir() and not path.parent.parent.is_symlink())


def _inside(path: Path, folder: Path) -> str:
    return f"{INSIDE}/{path.relative_to(folder)}"


def _moved(content: bytes, folder: Path) -> bytes:
    """A text with the interpreter's path on the host replaced by its path inside."""
    for name in {str(folder), sys.base_prefix}:
        content = content.replace(os.fsencode(name), os.fsencode(INSIDE))
    return content


def _needs_its_place(executable: Path, folder: Path) -> bool:
    """Whether an executable looks for its own shared library at the library's path on the host."""
    return bool(sysconfig.get_config_var("Py_ENABLE_SHARED")) and _library(folder) in executable.read_bytes()


def _moved_in_place(program: bytes, folder: Path) -> bytes:
    """An executable of the same length that looks for its library inside. Slashes at the end of the path have
    no effect.

    Raises:
        SandboxUnavailableError: the path on the host is too short.
    """
    before, after = _library(folder), os.fsencode(f"{INSIDE}/lib")
    if len(before) < len(after):
        raise SandboxUnavailableError(
            f"sandboxes cannot show the Python in {folder}: it looks for its library there under a path "
            f"shorter than {INSIDE}/lib; move it, or build it without --enable-shared"
        )
    return program.replace(before, after.ljust(len(before), b"/"))


def _library(folder: Path) -> bytes:
    return os.fsencode(folder / "lib")
