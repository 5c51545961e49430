"""A workspace: a copy of the repository's files in which one variant of the experiment runs.

Runs with different parameters would overwrite each other's params.yaml, dvc.lock and results/. So each gets
its own folder under workspaces/, with overlays and assignments merged into its params.yaml. All share the
repository's DVC cache: if another workspace has run a stage with the same inputs and parameters, the stage is
restored from there and not run again.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skillpress.core.arguments import any_seed
from skillpress.core.errors import ParamsError, UserError
from skillpress.core.lab import overlay
from skillpress.core.storage import make_folder, write_text
from skillpress.core.yaml_files import write_yaml
from skillpress.experiment.layers import Layer, assigned_layers, assignment_of, file_layer
from skillpress.experiment.params import check_params, merged, sources
from skillpress.pipeline.reproduce.dvc_cache import workspace_settings
from skillpress.pipeline.settings import ROOT

FOLDER = "workspaces"
OVERLAYS = "params"
"""The folder whose overlays give a workspace its name; others add a hash of their path."""
LONGEST_NAME = 200
"""The longest name of a workspace. File systems allow 255 bytes, and a log adds an ending."""
_OWN = frozenset({"params.yaml", "dvc.lock"})
"""Files that are a workspace's own."""
_FILLED = {".dvc", "mlruns"}
"""Folders with sources into which programs write as well."""


class WorkspaceError(UserError):
    """A workspace cannot be made; the message says why and what would be right."""


@dataclass(frozen=True)
class Variant:
    """Overlays that are merged into params.yaml, assignments on top, and a seed that replaces the one
    there."""

    overlays: tuple[Path, ...] = ()
    seed: int | None = None
    assignments: tuple[str, ...] = ()
    """Assignments such as ``training.steps=5``; the values are YAML."""

    @property
    def name(self) -> str:
        """Name such as ``grpo-training.steps=5-seed1``; empty without changes; a hash of the path for
        overlays elsewhere."""
        parts = [_overlay_name(file) for file in self.overlays]
        parts += sorted(_folder_name(assigned_name(one)) for one in self.assignments)
        name = "-".join(parts + ([] if self.seed is None else [f"seed{self.seed}"]))
        return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 7]}-{_digest(name)}"

    @property
    def options(self) -> list[str]:
        """The variant as options of ``skillpress run``."""
        words = [word for file in self.overlays for word in ("--params", str(file))]
        words += [word for assignment in self.assignments for word in ("--set", assignment)]
        return words + ([] if self.seed is None else ["--seed", str(self.seed)])

    def values(self, repository: Path) -> dict[str, Any]:
        """The merged parameters.

        Raises:
            ParamsError: a file is missing, named twice, or parameters are wrong.
        """
        places = [file.resolve() for file in self.overlays]
        for number, place in enumerate(places):
            if place in places[:number]:
                raise ParamsError(f"--params: {self.overlays[number]} is named twice; name it once")
        files = [file_layer(repository / "params.yaml"), *map(file_layer, self.overlays)]
        layers = [replace(files[0], name="params.yaml"), *files[1:], *assigned_layers(self.assignments)]
        if self.seed is not None:
            layers.append(Layer("--seed", {"seed": self.seed}))
        values = merged(layers)
        check_params(values, sources(layers[: len(files)]), layers)
        return values


def assigned_name(assignment: str) -> str:
    """An assignment in names of variants, such as ``training.learning_rate=0.0001`` for ``1e-4``."""
    key, value = assignment_of(assignment)
    return f"{key}={value if isinstance(value, str) else json.dumps(value)}"


def _folder_name(assigned: str) -> str:
    """The assignment as a part of a folder's name; with a hash if that cannot hold it."""
    kept = re.sub(r"[^\w.=+]+", "_", assigned, flags=re.ASCII)
    return assigned if kept == assigned else f"{kept}-{_digest(assigned)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def _overlay_name(file: Path) -> str:
    place = file.parent.resolve() / file.name
    if place == ROOT / OVERLAYS / f"{file.stem}.yaml":
        return file.stem
    named = place.relative_to(ROOT) if place.is_relative_to(ROOT) else place
    return f"{file.stem}-{_digest(named.as_posix())}"


def add_variant_options(parser: ArgumentParser) -> None:
    """Add ``--params``, ``--set`` and ``--seed``, which :func:`variant_of` reads."""
    parser.add_argument(
        "--params", type=overlay, action="append", default=[], help="overlay; may be repeated"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="over all overlays, such as training.steps=5; may be repeated",
    )  # fmt: skip
    parser.add_argument("--seed", type=any_seed, help="instead of the seed in the params files")


def variant_of(chosen: Namespace) -> Variant:
    """The variant of the options; ``ParamsError`` for an assignment that cannot be read."""
    assigned_layers(chosen.set)
    return Variant(tuple(chosen.params), chosen.seed, tuple(chosen.set))


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
    keep = set(wanted)
    for path in wanted:
        source, target = repository / path, workspace / path
        try:
            if not target.exists() or _stamp(target) != _stamp(source):
                make_folder(target.parent)
                shutil.copy2(source, target)
        except FileNotFoundError:  # it was listed while another process wrote a file atomically, and is gone
            keep.discard(path)
    for folder in {path.parts[0] for path in wanted if len(path.parts) > 1} - _FILLED:
        for path in (workspace / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and path.relative_to(workspace) not in keep:
                path.unlink()


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)
