"""Prepare a trial, play it with the players of evaluations, and judge it when its last episode has ended."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from skillpress.cli.evaluations.chat import Chat
from skillpress.cli.evaluations.code import deciding_code
from skillpress.cli.evaluations.folder import EvaluationFolder
from skillpress.cli.evaluations.parameters import deciding, evaluation_params, tasks_of
from skillpress.cli.evaluations.players import PLAYERS, Player, choose
from skillpress.cli.trial.arms import TrialArm, arms_of, interleaved
from skillpress.cli.trial.metering import METER, MeteredChat, metered
from skillpress.cli.trial.overlap import known_tasks, source_of
from skillpress.cli.trial.price import TrialSize, price
from skillpress.cli.trial.verdict import SkillTrialResult, as_json, episode_rows, judge, lines, overlap_lines
from skillpress.core.errors import ParamsError, UserError
from skillpress.core.resume import ResumeStore, content_key
from skillpress.core.storage import read_schema, write_json, write_text
from skillpress.core.task_files import write_tasks
from skillpress.core.trajectory import Task
from skillpress.environments.program.section import ProgramSection
from skillpress.environments.section import environment_class
from skillpress.evaluation.statistics.power import what_it_shows
from skillpress.evaluation.statistics.unplayed import why_nothing_was_played
from skillpress.experiment.params import Params
from skillpress.logs.fields import Wanted
from skillpress.pipeline.progress import StageProgress
from skillpress.rollouts.collection import EpisodeLog
from skillpress.rollouts.collection.requests import EpisodeRequest
from skillpress.skills.library.files import read_skill_folders

SCHEMA = "skillpress/trial/1"
MOST_BAD = 0.1
"""The share of bad lines above which the logs of ``--logs`` are refused."""


class TrialFolder(EvaluationFolder):
    """The folder of a trial: that of an evaluation, with ``trial.json`` and ``episodes.csv``."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.record_file, self.page = path / "trial.json", path / "episodes.csv"

    def lines(self) -> Sequence[str]:
        """The result of a finished trial in words. Raises ``StorageError`` if its file is damaged."""
        found: Sequence[str] = read_schema(self.record_file, SCHEMA, "name another folder")["lines"]
        return found


@dataclass(frozen=True)
class SkillTrial:
    """A trial that can be played."""

    agent: str
    player: Player
    params: Params
    tasks: tuple[Task, ...]
    arms: tuple[TrialArm, ...]
    rollouts: int
    mounted: bool
    """Whether episodes find the skills as files; otherwise their prompts show them."""
    excluded: Mapping[str, str]
    """Tasks that are left out, each with the reason."""
    included: Mapping[str, str]
    """Tasks that the skills were written from but that are played anyway."""
    unchecked: tuple[str, ...]
    """Skills whose source tasks are unknown."""

    @property
    def size(self) -> TrialSize:
        """The size of the trial."""
        return TrialSize(len(self.tasks), self.rollouts, len(self.arms))

    @cached_property
    def asked(self) -> dict[str, Any]:
        """The settings that identify the trial."""
        return {
            "agent": self.agent,
            "deciding": dict(self.player.check(self.params)),
            "parameters": deciding(self.params),
            "skills": {skill.name: skill.digest for skill in self.arms[0].skills},
            "arms": [arm.name for arm in self.arms],
            "rollouts": self.rollouts,
            "left_out": sorted(self.excluded),
        }

    @cached_property
    def key(self) -> str:
        """The key of unfinished work."""
        code = deciding_code(self.params, PLAYERS[self.agent].partition(":")[0])
        return content_key(self.asked | code, [])

    def episodes(self) -> list[EpisodeRequest]:
        """All episodes of the plan."""
        return interleaved(self.tasks, self.arms, self.rollouts, self.params.seed, self.mounted)

    def before(self, folder: TrialFolder) -> Iterator[str]:
        """The lines that are printed before the trial is played."""
        given = sum(len(skill.body) + len(skill.description) for skill in self.arms[0].skills)
        played = _finished(folder.store(self.key))
        yield from price(self.size, self.params, given, played)
        yield what_it_shows(self.size.tasks, self.rollouts, self.params.evaluation.temperature)
        yield from overlap_lines(self.excluded, self.included, self.unchecked)


def prepare(chosen: Namespace) -> SkillTrial:
    """The trial that the options describe.

    Raises:
        UserError: a skill breaks a rule of the format, parameters are wrong, or no task is left.
    """
    skills = read_skill_folders(chosen.skills, "--skills")
    arms = arms_of(skills, chosen.each)
    mounted = issubclass(environment_class(chosen.environment), ProgramSection)
    _params(chosen, mounted, {"policy": {"model": chosen.model}})  # wrong ones wait for no server
    agent, player = choose(chosen)
    if isinstance(player, Chat):
        player = MeteredChat(player.server)
    params = _params(chosen, mounted, player.options())
    if not mounted and params.policy.compact:
        raise ParamsError("--skills: policy.rendering compact has no words for them; use another")
    tasks = tasks_of(params, "test")
    source = source_of(skills, chosen.logs, Wanted(task=chosen.task), MOST_BAD)
    known = known_tasks(source, tasks)
    kept = tuple(task for task in tasks if chosen.allow_overlap or task.task_id not in known)
    if not kept:
        first = next(iter(known.items()))
        raise UserError(
            f"--skills: no task is left, because the skills were written from all {len(tasks)} tasks "
            f"({first[0]}: {first[1]}); name other tasks, or give --allow-overlap"
        )
    return SkillTrial(
        agent=agent,
        player=player,
        params=params,
        tasks=kept,
        arms=arms,
        rollouts=chosen.rollouts,
        mounted=mounted,
        excluded={} if chosen.allow_overlap else known,
        included=known if chosen.allow_overlap else {},
        unchecked=source.unchecked,
    )


def play(trial: SkillTrial, folder: TrialFolder, accept_unread: bool = False) -> None:
    """Play the missing episodes and write the result; does nothing if the trial is finished.

    Raises:
        UserError: the folder holds another trial, or no answer could be read.
    """
    folder.sweep()
    folder.claim(trial.asked)
    if folder.finished:
        return
    store, wanted = folder.store(trial.key), trial.episodes()
    with StageProgress("trial", len(wanted), "episode") as progress:
        trial.player.play(trial.params, wanted, store, folder.rollouts_file, progress.more)
    if not accept_unread and (why := why_nothing_was_played(folder.rollouts())):
        raise UserError(
            f"{trial.player.label}: {why}. A verdict would say nothing about the skills; --accept-unread "
            "gives one anyway"
        )
    write_tasks(folder.tasks_file, list(trial.tasks))
    rows = episode_rows(folder.rollouts_file, trial.arms, metered(store.folder / METER), trial.mounted)
    write_text(folder.page, rows.write_csv())
    result = result_of(trial, rows)
    record = {"schema": SCHEMA, "lines": list(lines(result)), **as_json(result), "asked": trial.asked}
    write_json(folder.record_file, record)
    folder.remove_unfinished()


def result_of(trial: SkillTrial, episodes: pl.DataFrame) -> SkillTrialResult:
    """The result of all episodes. Raises ``UserError`` if some are missing."""
    ids = [task.task_id for task in trial.tasks]
    return SkillTrialResult(
        **judge(episodes, ids, trial.arms, trial.rollouts, trial.params.seed),
        excluded=trial.excluded,
        included=trial.included,
        unchecked=trial.unchecked,
    )


def _params(chosen: Namespace, mounted: bool, of_player: Mapping[str, Any]) -> Params:
    given: dict[str, Any] = {"evaluation": {"votes": 1, "runs": 1}, "seed": chosen.seed}
    if chosen.temperature is not None:
        given["evaluation"]["temperature"] = chosen.temperature
    if chosen.tasks is not None:
        given["tasks"] = {"test": chosen.tasks}
    if mounted:
        given["environment"] = {"skills": str(chosen.skills.resolve())}
    options = given | dict(of_player)
    return evaluation_params(chosen.environment, chosen.model, chosen.params, options, chosen.set)


def _finished(store: ResumeStore) -> pl.DataFrame:
    """The costs of the episodes that are finished and metered."""
    played, log = metered(store.folder / METER), EpisodeLog(store.of_rank(0))
    return played.filter(pl.Series([number in log for number in played["episode"]], dtype=pl.Boolean))
