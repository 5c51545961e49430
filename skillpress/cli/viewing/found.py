"""Resolves an argument of ``skillpress view``: an experiment's folder, an evaluation's, or a rollout file.

An experiment has its tasks, its dictionary and its policy's tokenizer next to its rollouts; an evaluation has
its tasks there. They are also found for a rollout file that is named by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skillpress.cli import layers
from skillpress.cli.evaluations.folder import EvaluationFolder
from skillpress.core.errors import UserError
from skillpress.pipeline.files import BASE_ROLLOUTS, EVALUATION_ROLLOUTS, TRAINING_ROLLOUTS
from skillpress.pipeline.finished.episodes import PARAMETERS, known_phrases, rollout_source, stated_projection
from skillpress.reports.skill_files.writing import noted_page
from skillpress.reports.viewer.phrases import KnownPhrases
from skillpress.reports.viewer.source import SourceFiles

ROLLOUTS = (BASE_ROLLOUTS, TRAINING_ROLLOUTS, EVALUATION_ROLLOUTS)
"""An experiment's rollout files, in the order of its stages."""
SKILLS_PAGE, SKILLS_MARK = "skills.html", '<meta name="generator" content="skillpress skills">'
"""The page of ``skillpress skills``, and a line of its head."""


@dataclass(frozen=True)
class FoundEpisodes:
    """The rollout files to open, with what belongs to them."""

    sources: tuple[SourceFiles, ...]
    """The rollout files."""
    phrases: KnownPhrases
    """The phrases of the first experiment among the named paths."""


def find(paths: Sequence[Path], tokenizer: Path | None = None) -> FoundEpisodes:
    """Resolve the paths to rollout files without duplicates. A given tokenizer overrides the one next to
    them.

    Raises:
        UserError: a path cannot be viewed.
        StorageError: the tasks or the dictionary next to it are damaged.
        UserError: a tokenizer is named, but the package that reads it is not installed.
    """
    if tokenizer is not None:
        layers.need(["tokens"])
    sources: dict[Path, SourceFiles] = {}
    phrases = KnownPhrases()
    for path in paths:
        home = experiment_of(path)
        for source in _sources(path, home, alone=len(paths) == 1):
            chosen = source if tokenizer is None else replace(source, tokenizer=tokenizer)
            sources.setdefault(source.rollouts.resolve(), chosen)
        if home is not None and phrases.dictionary is None:
            phrases = known_phrases(home)
    return FoundEpisodes(tuple(_readable(source) for source in sources.values()), phrases)


def _readable(source: SourceFiles) -> SourceFiles:
    """The source, without its tokenizer if the package for it is missing: tokens then appear as numbers."""
    return replace(source, tokenizer=None) if layers.missing("tokens") else source


def skills_page(path: Path) -> Path | None:
    """The page of ``skillpress skills`` that a path means: a file, the folder that holds it, or the folder of
    skills that names it; None for anything else.

    Raises:
        UserError: a folder of skills names a page that no longer exists.
        StorageError: its manifest is damaged.
    """
    folder = path.is_dir() and experiment_of(path) is None  # a lab has a manifest of the same name
    if folder and (page := noted_page(path)) is not None:
        if not page.is_file():
            raise UserError(
                f"{path}: the page of these skills, {page}, does not exist; skillpress skills LOGS --write "
                f"{path} makes it again"
            )
        return page
    file = path / SKILLS_PAGE if folder else path
    if not file.is_file():
        return None
    with file.open("rb") as opened:
        return file if SKILLS_MARK.encode() in opened.read(2000) else None


def experiment_of(path: Path) -> Path | None:
    """The folder of the experiment that is meant or that the file belongs to; None for anything else."""
    if path.is_dir():
        return path if (path / PARAMETERS).is_file() else None
    place = path.absolute()
    home = place.parents[2] if len(place.parents) > 2 else place.parent
    inside = any(place == home / rollouts for rollouts in ROLLOUTS)
    return home if inside and (home / PARAMETERS).is_file() else None


def _sources(path: Path, home: Path | None, alone: bool) -> list[SourceFiles]:
    if not path.exists():
        raise UserError(
            f"{path}: no such file or folder; name an experiment's folder, a rollout file "
            "(.parquet), a folder of skillpress evaluate, or a log"
        )
    if path.is_file():
        return [_file(path, home)]
    if home is not None:
        return _of_experiment(home, alone)
    folder = EvaluationFolder(path)
    if folder.finished:
        return [_of_evaluation(folder)]
    if folder.parameters.is_file():
        raise UserError(f"{path}: is an unfinished evaluation; run its command again")
    raise UserError(
        f"{path}: contains neither {PARAMETERS} (an experiment) nor {folder.record_file.name} (an "
        f"evaluation) nor {SKILLS_PAGE} (of skillpress skills)"
    )


def _file(path: Path, home: Path | None) -> SourceFiles:
    if home is not None:
        return rollout_source(home, path, str(path))
    folder = EvaluationFolder(path.parent)
    if path.name == folder.rollouts_file.name and folder.finished:
        return _of_evaluation(folder)
    return SourceFiles(name=str(path), rollouts=path)


def _of_experiment(home: Path, alone: bool) -> list[SourceFiles]:
    there = [home / rollouts for rollouts in ROLLOUTS if (home / rollouts).is_file()]
    if not there:
        inside = {str(file.parents[2]) for each in ROLLOUTS for file in home.glob(f"workspaces/*/{each}")}
        raise UserError(
            f"{home}: has no episodes yet (none of {', '.join(map(str, ROLLOUTS))} exists); "
            + (f"name one of {', '.join(sorted(inside))}" if inside else "skillpress run makes them")
        )
    prefix = "" if alone else f"{home.resolve().name}/"
    return [rollout_source(home, path, f"{prefix}{path.stem}") for path in there]


def _of_evaluation(folder: EvaluationFolder) -> SourceFiles:
    return SourceFiles(
        name=folder.path.resolve().name,
        rollouts=folder.rollouts_file,
        tasks={task.task_id: task for task in folder.tasks()},
        projection=stated_projection(folder.sections()["environment"], folder.record_file),
        tokenizer=folder.tokenizer(),
    )
