"""``skillpress upgrade``: bring a lab's files to the installed version of skillpress.

    pip install --upgrade 'skillpress[train,pipeline]'
    skillpress upgrade --dry-run
    skillpress upgrade

`skillpress init` records in .skillpress.json what it wrote. A file that you have not edited since then is
replaced, added or removed to match the installed version. A file that you have edited is not changed: the
command names it and shows how it differs from the installed version's. When you have merged such a file by
hand, --merged FILE counts it as upgraded. In Python files of your own, former names of modules become the
present ones, and algorithms and selections get their present form. --dry-run shows all differences and
changes nothing.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skillpress.cli.former_classes import with_present_classes
from skillpress.cli.init import MANIFEST, REQUIREMENTS, LabManifest, contents, digest
from skillpress.cli.origin import write_origin
from skillpress.core.arguments import CommandParser
from skillpress.core.errors import UserError, did_you_mean
from skillpress.core.lab import need_lab
from skillpress.core.moved import with_present_names
from skillpress.core.storage import make_folder
from skillpress.core.version import __version__

State = Literal["change", "add", "remove", "edited", "imports"]
SAID: Mapping[State, str] = {
    "change": "changes",
    "add": "is new",
    "remove": "is not in the new version",
    "imports": "uses the present names and forms",
    "edited": "left alone: you have edited it, and the new version differs",
}
_PIN = re.compile(rb"^skillpress(\[[^\]\n]*\])?==[^\s;#]+", re.MULTILINE)


class UpgradeError(UserError):
    """The lab cannot be upgraded; the message says why."""


@dataclass(frozen=True)
class FileChange:
    """What happens to one file."""

    place: Path
    state: State
    before: bytes | None
    """The file in the lab; None if it does not exist."""
    after: bytes | None
    """The installed version's file; None if it has none."""

    def __str__(self) -> str:
        return f"{self.place}: {SAID[self.state]}"

    def difference(self) -> str:
        """A unified diff from the lab's file to the installed version's."""
        sides = (self.before or b"", self.after or b"")
        try:
            before, after = (side.decode("utf-8").splitlines(keepends=True) for side in sides)
        except UnicodeDecodeError:
            return "(not text)\n"
        lines = difflib.unified_diff(before, after, f"{self.place} (lab)", f"{self.place} ({__version__})")
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def changes(folder: Path, manifest: LabManifest) -> Iterator[FileChange]:
    """What the installed version changes in a lab. Files that already equal it, and files that it does not
    change, are left out.
    """
    after = contents(manifest.name)
    pinned = _pinned(folder / REQUIREMENTS)
    if pinned is not None:
        after[REQUIREMENTS] = pinned
    for place in sorted({*after, *map(Path, manifest.files)}):
        file, new, written = folder / place, after.get(place), manifest.files.get(str(place))
        here = file.read_bytes() if file.is_file() else None
        if here == new or (new is not None and digest(new) == written):
            continue
        if pinned is not None and place == REQUIREMENTS:  # only the line of skillpress changes
            yield FileChange(place, "change", here, new)
        else:
            yield FileChange(place, _state(here, new, written), here, new)


def own_imports(folder: Path, found: Sequence[FileChange]) -> Iterator[FileChange]:
    """The lab's own Python files that use former names of modules, or former forms of parts.

    Args:
        found: the other changes; files that they replace or remove are left out.
    """
    replaced = {change.place for change in found if change.state != "edited"}
    for file in sorted(folder.rglob("*.py")):
        place = file.relative_to(folder)
        if place in replaced or any(part.startswith(".") or part == "workspaces" for part in place.parts):
            continue
        before = file.read_bytes()
        after = with_present_classes(with_present_names(before.decode("utf-8", errors="surrogateescape")))
        if (written := after.encode("utf-8", errors="surrogateescape")) != before:
            yield FileChange(place, "imports", before, written)


def _state(here: bytes | None, new: bytes | None, written: str | None) -> State:
    if here is None:  # a file that the user has removed is not brought back
        return "add" if written is None else "edited"
    if digest(here) != written:
        return "edited"
    return "remove" if new is None else "change"


def apply(
    folder: Path, manifest: LabManifest, found: Sequence[FileChange], merged: Sequence[Path] = ()
) -> LabManifest:
    """Apply the changes and return the new manifest, which is written last.

    All new files are on the disk before the first one takes its place. A process that is killed in between
    leaves complete files, and the same command does the rest.

    Args:
        merged: edited files that count as upgraded.
    """
    doing = [change for change in found if change.state != "edited"]
    left = {change.place for change in found if change.state == "edited"} - set(merged)
    fresh = Path(tempfile.mkdtemp(prefix=".upgrade.", dir=folder))
    try:
        for number, change in enumerate(doing):
            if change.after is not None:
                (fresh / str(number)).write_bytes(change.after)
                (fresh / str(number)).chmod(0o644)
            if change.state == "imports":
                shutil.copymode(folder / change.place, fresh / str(number))
        for number, change in enumerate(doing):
            place = folder / change.place
            if change.after is None:
                place.unlink()
                continue
            make_folder(place.parent)
            os.replace(fresh / str(number), place)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    hashes = {str(place): digest(content) for place, content in contents(manifest.name).items()}
    kept = {str(place): manifest.files[str(place)] for place in left if str(place) in manifest.files}
    files = {name: value for name, value in hashes.items() if Path(name) not in left} | kept
    upgraded = LabManifest(manifest.name, __version__, files)
    upgraded.write(folder)
    write_origin(folder)
    return upgraded


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    folder = need_lab()
    manifest = LabManifest.read(folder)
    if _numbers(manifest.version) > _numbers(__version__):
        raise UpgradeError(
            f"{folder / MANIFEST}: the lab was written by skillpress {manifest.version}, but "
            f"{__version__} is installed; install {manifest.version} or later"
        )
    found = list(changes(folder, manifest))
    edited = [change for change in found if change.state == "edited"]
    for file in chosen.merged:
        if file not in [change.place for change in edited]:
            known = [str(change.place) for change in edited]
            raise UpgradeError(f"--merged {file}: is not among the edited files{did_you_mean(file, known)}")
    found += own_imports(folder, found)
    print(f"{folder}: from skillpress {manifest.version} to {__version__}")
    for change in found:
        if change.place not in chosen.merged:
            print(change)
            if chosen.dry_run or change.state == "edited":
                print(change.difference())
    if not found:
        print("no file differs")
    if chosen.dry_run:
        return 0
    apply(folder, manifest, found, chosen.merged)
    left = len(edited) - len(chosen.merged)
    print(f"{len(found) - len(edited)} files upgraded" + (f", {left} left to you" if left else ""))
    return 0


def _pinned(file: Path) -> bytes | None:
    """The lab's requirements with this version; None if no line requires skillpress."""
    text = file.read_bytes() if file.is_file() else b""
    if len(_PIN.findall(text)) != 1:
        return None
    return _PIN.sub(lambda found: b"skillpress%s==%s" % (found[1] or b"", __version__.encode()), text)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="show all differences and change nothing")
    parser.add_argument("--merged", type=Path, action="append", default=[], metavar="FILE",
                        help="an edited file that you have merged by hand; may be repeated")  # fmt: skip
    return parser
