"""The Python that sandboxes run: where it lies on the host, and how it appears inside.

It is the one that runs this program, with its standard library and without the packages that are installed on
the host. Inside, its place says nothing of the host, unless it belongs to ``/usr``, which all sandboxes see
as it is.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from skillpress.play.sandbox.limits import SandboxUnavailableError

INSIDE = "/opt/python"
"""Where an interpreter appears that is not part of ``/usr``."""
USR = Path("/usr")
PACKAGES = ("site-packages", "dist-packages")
FOR_BUILDING = "config-*"
"""The folder of what an interpreter was built with; extensions are built with it, on the host alone."""
EMPTY_BYTES = 4096
"""The smallest size of a folder in memory."""


@dataclass(frozen=True)
class Interpreter:
    """A Python of the host."""

    executable: Path
    folder: Path | None
    """What holds all of it; None where that is ``/usr``."""

    @property
    def inside(self) -> str:
        """The executable as it is named inside."""
        return str(self.executable) if self.folder is None else _inside(self.executable, self.folder)

    @cached_property
    def hidden(self) -> Sequence[str]:
        """Folders, as they are named inside, that appear empty."""
        hidden = [str(path) for path in (*_packages(USR), *_packages(USR / "local"))]
        if self.folder is not None:
            found = [*_packages(self.folder), *self.folder.glob(f"lib*/python3*/{FOR_BUILDING}")]
            hidden += [_inside(path, self.folder) for path in found]
        return hidden

    @cached_property
    def replaced(self) -> Mapping[str, bytes]:
        """Files, as they are named inside, to what they hold there: those that name their place on the host.

        Raises:
            SandboxUnavailableError: its executable looks for its library at a place that cannot be changed.
        """
        folder = self.folder
        if folder is None:
            return {}
        replaced = {path: _moved(path.read_bytes(), folder) for path in _build_settings(folder)}
        if _needs_its_place(self.executable, folder):
            replaced[self.executable] = _moved_in_place(self.executable.read_bytes(), folder)
        return {_inside(path, folder): content for path, content in replaced.items()}

    def mounts(self, shown: Callable[[Path], Path]) -> Iterator[str]:
        """bwrap's arguments that make it appear, apart from the replaced files.

        Args:
            shown: where the user who starts bwrap finds a path.
        """
        if self.folder is not None:
            found, name = shown(self.folder), self.executable.name
            if self.inside not in self.replaced:
                yield from ("--ro-bind", str(found / "bin" / name), self.inside)
            for link in ("python", "python3"):
                yield from ("--symlink", name, f"{INSIDE}/bin/{link}")
            for library in _libraries(self.folder):
                yield from ("--ro-bind", str(found / library), f"{INSIDE}/{library}")
        for place in self.hidden:
            yield from ("--size", str(EMPTY_BYTES), "--tmpfs", place, "--remount-ro", place)


@functools.cache
def this_interpreter() -> Interpreter:
    """The one that runs this program."""
    folder = Path(sys.base_prefix).resolve()
    executable = folder / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    return Interpreter(executable, None if folder.is_relative_to(USR) else folder)


def _libraries(folder: Path) -> list[str]:
    """Folders of the standard library and of the shared libraries that it needs."""
    return [name for name in dict.fromkeys(("lib", sys.platlibdir)) if (folder / name).is_dir()]


def _packages(folder: Path) -> list[Path]:
    """Where packages are installed that are not of the standard library."""
    found = (path for name in PACKAGES for path in folder.glob(f"lib*/python3*/{name}"))
    return sorted(path for path in found if path.is_dir() and not path.parent.parent.is_symlink())


def _build_settings(folder: Path) -> list[Path]:
    """What ``sysconfig`` reads: it names the folder throughout."""
    return sorted(folder.glob("lib*/python3*/_sysconfigdata*.py"))


def _inside(path: Path, folder: Path) -> str:
    return f"{INSIDE}/{path.relative_to(folder)}"


def _moved(content: bytes, folder: Path) -> bytes:
    """A text with the interpreter's place inside instead of that on the host."""
    for name in {str(folder), sys.base_prefix}:
        content = content.replace(os.fsencode(name), os.fsencode(INSIDE))
    return content


def _needs_its_place(executable: Path, folder: Path) -> bool:
    """Whether an executable looks for its own shared library where that lies on the host."""
    return bool(sysconfig.get_config_var("Py_ENABLE_SHARED")) and _library(folder) in executable.read_bytes()


def _moved_in_place(program: bytes, folder: Path) -> bytes:
    """An executable that looks for its library inside, of the same length: slashes at the end of a path mean
    nothing.

    Raises:
        SandboxUnavailableError: the place on the host is too short a name.
    """
    before, after = _library(folder), os.fsencode(f"{INSIDE}/lib")
    if len(before) < len(after):
        raise SandboxUnavailableError(
            f"sandboxes cannot show the Python in {folder}: it looks for its library there by a name that is "
            f"shorter than {INSIDE}/lib; move it, or build it without --enable-shared"
        )
    return program.replace(before, after.ljust(len(before), b"/"))


def _library(folder: Path) -> bytes:
    return os.fsencode(folder / "lib")
