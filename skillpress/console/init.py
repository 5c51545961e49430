"""``skillpress init DIR``: your own lab, ready to run.

    skillpress init my-study
    cd my-study && make run

Writes a git repository with the reference lab's parameters, stages, flows and infrastructure. It adds a small
environment and an algorithm with their tests (my_lab/), a Makefile, a README and continuous integration. The
lab pins this version of skillpress.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from skillpress.core.arguments import Parser
from skillpress.core.errors import UserError
from skillpress.core.lab import PACKAGE, REFERENCE
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
_LEFT_OUT = frozenset({"__pycache__"})


class InitError(UserError):
    """The lab cannot be written to this folder."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = Parser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder that is not there yet, or empty")
    folder: Path = parser.parse_args(arguments).folder
    write_lab(folder)
    print(f"{folder}: a lab with skillpress {__version__}; next: cd {folder} && make run")
    return 0


def write_lab(folder: Path) -> None:
    """Write a lab.

    Raises:
        InitError: the path is a file, or the folder is not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InitError(f"{folder}: is there already and not empty; name another folder")
    for source, target in files():
        place = folder / target
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)
    readme = folder / "README.md"
    readme.write_text(readme.read_text(encoding="utf-8").replace("# NAME", f"# {folder.resolve().name}"))
    wanted = f"skillpress[train,pipeline]=={__version__}\npytest\n"
    (folder / "requirements.txt").write_text(wanted, encoding="utf-8")
    _make_repository(folder)


def files() -> Iterator[tuple[Path, Path]]:
    """(source, place in the lab) of every copied file."""
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
    """Make a git repository, since a workspace is a copy of git's files; the owner makes the first commit."""
    if shutil.which("git") is None:
        raise InitError(f"{folder}: is written, but git is missing, by which experiments know its files")
    inside = ["git", "-C", str(folder), "rev-parse", "--show-toplevel"]
    if subprocess.run(inside, capture_output=True).returncode:
        subprocess.run(["git", "-C", str(folder), "init", "--quiet"], check=True)
