"""An experiment's files that the viewer shows, at the paths where the stages wrote them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skillpress.core.errors import ParamsError, StorageError
from skillpress.core.names import CodeNotRunError
from skillpress.core.registry import ENVIRONMENTS, named
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Task
from skillpress.environments.section import Projection, environment_class, projection_without_keys
from skillpress.evaluation.analysis.mdl_report import ARROW, read_phrases
from skillpress.experiment.params import read_yaml
from skillpress.integrations.formats.texts import TOKENIZER
from skillpress.pipeline.files import (
    BASE_POLICY,
    DICTIONARY,
    EVALUATION_ROLLOUTS,
    HISTORY,
    PHRASES,
    SPLITS,
    TRAINED,
    TRAINING_ADVANTAGES,
    TRAINING_ROLLOUTS,
    UNSEEN,
    split_file,
)
from skillpress.reports.viewer.catalogue import RolloutCatalogue
from skillpress.reports.viewer.embedded import episodes_page
from skillpress.reports.viewer.phrases import KnownPhrases
from skillpress.reports.viewer.sample import sample
from skillpress.reports.viewer.source import SourceFiles
from skillpress.skills.dictionary import Skills, load_fitted
from skillpress.skills.history import read_history

PARAMETERS = "params.yaml"


def rollout_source(home: Path, rollouts: Path, name: str) -> SourceFiles:
    """A rollout file with its tasks, skill rules and tokenizer; ``StorageError`` if those are damaged."""
    policy, params = home / BASE_POLICY, home / PARAMETERS
    there = params.is_file()
    trained = rollouts.absolute() == (home / TRAINING_ROLLOUTS).absolute()
    return SourceFiles(
        name=name,
        rollouts=rollouts,
        tasks=experiment_tasks(home),
        projection=stated_projection(read_yaml(params).get("environment"), params) if there else None,
        tokenizer=policy if (policy / TOKENIZER).is_file() else None,
        advantages=home / TRAINING_ADVANTAGES if trained else None,
    )


def stated_projection(section: Any, source: Path) -> Projection | None:
    """φ of an ``environment`` section; None if its code is not imported because this process only looks, or
    if the section is damaged and its keys do not decide φ.

    Raises:
        StorageError: the section is damaged; the message names ``source``.
    """
    try:
        name = named(ENVIRONMENTS, section)
        return environment_class(name).model_validate(section).make_projection()
    except CodeNotRunError:
        return None
    except ValidationError as error:
        known = projection_without_keys(name)
        if known is not None and known.alphabet:  # its keys do not decide φ
            return None
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, ("environment", *first["loc"])))
        raise StorageError(f"{source}: {place}: {first['msg']}; is it the file that the run had?") from error
    except (ValueError, ParamsError) as error:
        raise StorageError(f"{source}: environment: {error}") from error


def experiment_tasks(home: Path) -> dict[str, Task]:
    """The tasks of all existing splits, by id; ``StorageError`` if a file is damaged."""
    files = [home / split_file(split) for split in (UNSEEN, *SPLITS)]
    return {task.task_id: task for file in files if file.is_file() for task in read_tasks(file)}


def known_phrases(home: Path) -> KnownPhrases:
    """The phrases of an experiment's dictionaries, if any; ``StorageError`` for a damaged file."""
    dictionary, history = home / DICTIONARY, home / HISTORY
    return KnownPhrases(
        dictionary=load_fitted(dictionary) if dictionary.is_file() else None,
        history=read_history(history) if history.is_file() else {},
        bits=_bits(home / PHRASES),
    )


def _bits(path: Path) -> dict[Skills, float]:
    """The bits that each learned phrase of the dictionary saves."""
    if not path.is_file():
        return {}
    rows = read_phrases(path).drop_nulls("bits_saved").select("phrase", "bits_saved").rows()
    return {tuple(phrase.split(ARROW)): bits for phrase, bits in rows}


def some_episodes(home: Path, title: str, seed: int) -> str:
    """A page with a sample of the evaluation's episodes and of the episodes that training learned from."""
    sources = [rollout_source(home, path, path.stem) for path in (EVALUATION_ROLLOUTS, TRAINING_ROLLOUTS)]
    with closing(RolloutCatalogue(title, sources, known_phrases(home), opens_on=TRAINED)) as catalogue:
        chosen = sample(catalogue.table(), seed)
        return episodes_page(catalogue, chosen.groups, chosen.note)
