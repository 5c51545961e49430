"""``skillpress init DIR``: your own lab, ready to run.

    skillpress init my-study
    cd my-study && make run

Writes a git repository with the reference lab's parameters, stages, flows and infrastructure. It adds a small
environment and an algorithm with their tests (my_lab/), a Makefile, a README and continuous integration. The
lab pins this version of skillpress; `skillpress upgrade` moves it to a later one. origin.mk says where this
version came from, so that make uses this environment, or installs from the same place.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillpress.cli.origin import LAYERS, write_origin
from skillpress.core.arguments import CommandParser
from skillpress.core.errors import UserError
from skillpress.core.lab import PACKAGE, REFERENCE
from skillpress.core.storage import make_folder, read_schema, write_json
from skillpress.core.version import __version__

TEMPLATE = PACKAGE / "pipeline" / "new-lab"
"""Files that only a new lab has. ``dot_`` at the start of a name becomes a dot there."""
COPIED = (
    "params.yaml", "params", "dvc.yaml", "tasks", "flows", "infra", "benchmarks/results/dictionary.json",
    "constraints.txt",
)  # fmt: skip
"""The reference lab's files."""
STUDY = ("params/study", "flows/study.py")
"""The reference lab's study of the paper, which a new lab does not get."""
MANIFEST = ".skillpress.json"
SCHEMA = "skillpress/lab/1"
REQUIREMENTS = Path("requirements.txt")
_LEFT_OUT = frozenset({"__pycache__"})


class InitError(UserError):
    """The lab cannot be written to this folder."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = CommandParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder that is not there yet, or empty")
    folder: Path = parser.parse_args(arguments).folder
    write_lab(folder)
    print(f"{folder}: a lab with skillpress {__version__}; next: cd {folder} && make check")
    return 0


def write_lab(folder: Path) -> None:
    """Write a lab.

    Raises:
        InitError: the path is a file, or the folder is not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InitError(f"{folder}: exists already and is not empty; name another folder")
    name = folder.resolve().name
    written = contents(name)
    for place, content in written.items():
        make_folder((folder / place).parent)
        (folder / place).write_bytes(content)
    hashes = {str(place): digest(content) for place, content in written.items()}
    LabManifest(name=name, version=__version__, files=hashes).write(folder)
    write_origin(folder)
    _make_repository(folder)


@dataclass(frozen=True)
class LabManifest:
    """The file ``.skillpress.json``, which tells ``skillpress upgrade`` what a lab was written from."""

    name: str
    """The lab's name in its README."""
    version: str
    """The version of skillpress that wrote or upgraded it."""
    files: Mapping[str, str]
    """The hash of the content that was written to each file."""

    def write(self, folder: Path) -> None:
        """Write it into a lab, as the last file."""
        values = {"schema": SCHEMA, "name": self.name, "version": self.version}
        write_json(folder / MANIFEST, values | {"files": dict(sorted(self.files.items()))})

    @classmethod
    def read(cls, folder: Path) -> LabManifest:
        """The manifest of a lab.

        Raises:
            InitError: the lab's manifest is missing or damaged.
        """
        if not (folder / MANIFEST).is_file():
            raise InitError(f"{folder}: `skillpress init` did not write this lab: {MANIFEST} is missing")
        values = read_schema(folder / MANIFEST, SCHEMA, "restore it from the repository's history")
        try:
            found = cls(str(values["name"]), str(values["version"]), {**values["files"]})
            for place in map(Path, found.files):
                if place.is_absolute() or ".." in place.parts:
                    raise InitError(f"{folder / MANIFEST}: names {place}, which is not inside the lab")
            return found
        except (KeyError, TypeError) as error:
            raise InitError(
                f"{folder / MANIFEST}: is damaged; restore it from the repository's history"
            ) from error


def digest(content: bytes) -> str:
    """The hash of a file, as manifests record it."""
    return hashlib.sha256(content).hexdigest()


def contents(name: str) -> dict[Path, bytes]:
    """The path and content of every file that this version writes into a lab of this name."""
    found = {target: source.read_bytes() for source, target in files()}
    readme = Path("README.md")
    found[readme] = found[readme].replace(b"# NAME", f"# {name}".encode())
    found[REQUIREMENTS] = f"{pin()}\npytest\n".encode()
    return found


def pin() -> str:
    """The lab's requirement of this version of skillpress."""
    return f"skillpress[{','.join(LAYERS)}]=={__version__}"


def files() -> Iterator[tuple[Path, Path]]:
    """(source, place in the lab) of every copied file; a new lab's own file replaces the reference lab's."""
    left_out = [Path(name) for name in STUDY]
    for name in COPIED:
        for file in _files_of(REFERENCE / name):
            place = file.relative_to(REFERENCE)
            if not any(place.is_relative_to(one) for one in left_out):
                yield file, place
    for file in _files_of(TEMPLATE):
        parts = file.relative_to(TEMPLATE).parts
        yield (
            file,
            Path(*(part.replace("dot_", ".", 1) if part.startswith("dot_") else part for part in parts)),
        )


def _files_of(place: Path) -> Iterator[Path]:
    found = place.rglob("*") if place.is_dir() else [place]
    return (file for file in sorted(found) if file.is_file() and not _LEFT_OUT & set(file.parts))


def _make_repository(folder: Path) -> None:
    """Make a git repository, because workspaces copy git's files; the owner makes the first commit."""
    if shutil.which("git") is None:
        raise InitError(
            "git is not installed, but experiments need it to list the lab's files; the lab is written to "
            f"{folder}"
        )
    inside = ["git", "-C", str(folder), "rev-parse", "--show-toplevel"]
    if subprocess.run(inside, capture_output=True).returncode:
        subprocess.run(["git", "-C", str(folder), "init", "--quiet"], check=True)
