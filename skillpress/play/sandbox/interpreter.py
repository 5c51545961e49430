"""The Python that sandboxes run: where it is on the host, and how it appears inside.

It is the Python that runs this program, with its standard library but without the packages installed on the
host. Its path inside reveals nothing about the host, unless it belongs to ``/usr``, which all sandboxes see
unchanged.
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
"""The folder in which an interpreter outside ``/usr`` appears."""
USR = Path("/usr")
PACKAGES = ("site-packages", "dist-packages")
FOR_BUILDING = "config-*"
"""The folder with a build configuration, which only the host needs, to build extensions."""
EMPTY_BYTES = 4096
"""The smallest size of a folder in memory."""


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

    def mounts(self, shown: Callable[[Path], Path]) -> Iterator[str]:
        """bwrap's arguments for all but the replaced files; ``shown`` maps a path to where bwrap finds it."""
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
    """The interpreter that runs this program."""
    folder = Path(sys.base_prefix).resolve()
    executable = folder / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    return Interpreter(executable, None if folder.is_relative_to(USR) else folder)


def _libraries(folder: Path) -> list[str]:
    """The folders of the standard library and of the shared libraries that it needs."""
    return [name for name in dict.fromkeys(("lib", sys.platlibdir)) if (folder / name).is_dir()]


def _packages(folder: Path) -> list[Path]:
    """The folders of installed packages, which are not part of the standard library."""
    found = (path for name in PACKAGES for path in folder.glob(f"lib*/python3*/{name}"))
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
            f"sandboxes cannot show the Python in {folder}: it looks for its library there by a name that is "
            f"shorter than {INSIDE}/lib; move it, or build it without --enable-shared"
        )
    return program.replace(before, after.ljust(len(before), b"/"))


def _library(folder: Path) -> bytes:
    return os.fsencode(folder / "lib")
