"""A workspace: a copy of the repository's files in which one variant of the experiment runs.

Runs with different parameters would overwrite each other's params.yaml, dvc.lock and results/. So each gets
its own folder under workspaces/, with the overlay merged into its params.yaml. All share the repository's DVC
cache: if another workspace has run a stage with the same inputs and parameters, the stage is restored from
there and not run again.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillpress.core.arguments import any_seed
from skillpress.core.errors import UserError
from skillpress.core.storage import write_text
from skillpress.core.yaml_files import write_yaml
from skillpress.experiment.params import check_params, merge, read_yaml
from skillpress.pipeline.reproduce.dvc_cache import workspace_settings
from skillpress.pipeline.settings import ROOT

FOLDER = "workspaces"
OVERLAYS = "params"
"""The folder whose overlays give a workspace its name; others add a hash of their path."""
_OWN = frozenset({"params.yaml", "dvc.lock"})
"""Files that are a workspace's own."""


class WorkspaceError(UserError):
    """A workspace cannot be made; the message says why and what would be right."""


@dataclass(frozen=True)
class Variant:
    """Overlays that are merged into params.yaml, and a seed that replaces the one there."""

    overlays: tuple[Path, ...] = ()
    seed: int | None = None

    @property
    def name(self) -> str:
        """Name such as ``grpo-seed1``; empty without changes; a hash of the path for overlays elsewhere."""
        parts = [_overlay_name(overlay) for overlay in self.overlays]
        return "-".join(parts + ([] if self.seed is None else [f"seed{self.seed}"]))

    def values(self, repository: Path) -> dict[str, Any]:
        """The merged parameters; ``ParamsError`` if a file is missing, or they are wrong."""
        values = read_yaml(repository / "params.yaml")
        for overlay in self.overlays:
            values = merge(values, read_yaml(overlay))
        if self.seed is not None:
            values["seed"] = self.seed
        check_params(values, source=" + ".join(map(str, ("params.yaml", *self.overlays))))
        return values


def _overlay_name(overlay: Path) -> str:
    place = overlay.parent.resolve() / overlay.name
    if place == ROOT / OVERLAYS / f"{overlay.stem}.yaml":
        return overlay.stem
    named = place.relative_to(ROOT) if place.is_relative_to(ROOT) else place
    return f"{overlay.stem}-{hashlib.sha256(named.as_posix().encode()).hexdigest()[:6]}"


def add_variant_options(parser: ArgumentParser) -> None:
    """Add ``--params`` and ``--seed``."""
    parser.add_argument("--params", type=Path, action="append", default=[], help="overlay; may be repeated")
    parser.add_argument("--seed", type=any_seed, help="instead of the seed in the params files")


def prepare_workspace(repository: Path, variant: Variant) -> Path:
    """Create the variant's workspace, or update its files; an empty variant uses the repository itself.

    Results of earlier runs there (data, models, checkpoints, dvc.lock) stay, so that the next run continues.

    Raises:
        ParamsError: the merged parameters are wrong.
    """
    values = variant.values(repository)
    if not variant.name:
        return repository
    workspace = repository / FOLDER / variant.name
    _copy_sources(repository, workspace)
    _write_if_changed(workspace / "params.yaml", write_yaml(values))
    _write_if_changed(workspace / ".dvc" / "config.local", workspace_settings(repository))
    return workspace


def source_files(repository: Path) -> list[Path]:
    """The files that git tracks or would track, relative to the repository; or ``WorkspaceError``."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=repository, capture_output=True, text=True,
    )  # fmt: skip
    if listed.returncode:
        raise WorkspaceError(
            f"{repository}: git cannot list its files ({listed.stderr.strip()}); a workspace is a copy of "
            "what git knows, so clone the repository with git"
        )
    names = sorted({name for name in listed.stdout.split("\0") if name and name not in _OWN})
    return [Path(name) for name in names if (repository / name).is_file()]


def _copy_sources(repository: Path, workspace: Path) -> None:
    """Copy changed files, and remove source files that the repository no longer has."""
    wanted = source_files(repository)
    for path in wanted:
        source, target = repository / path, workspace / path
        if not target.exists() or _stamp(target) != _stamp(source):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    keep = set(wanted)
    for folder in {path.parts[0] for path in wanted if len(path.parts) > 1} - {".dvc"}:
        for path in (workspace / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and path.relative_to(workspace) not in keep:
                path.unlink()


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)
