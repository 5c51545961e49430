"""The episodes of a trial as a table, and the verdict, computed once when all have been played."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from skillpress.cli.trial.arms import LESS, WITH, WITHOUT, TrialArm
from skillpress.core.errors import UserError
from skillpress.core.rollout_files import iterate_rollouts
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Trajectory
from skillpress.environments.program.opened_skills import opened_skills
from skillpress.evaluation.statistics.sign_flips import ERROR, PairedMeans, paired_amounts, paired_success
from skillpress.evaluation.study.holm import holm
from skillpress.skills.library.files import EVIDENCE_FILE

COSTS = ("tokens", "calls", "seconds")


def episode_rows(
    rollouts: Path, arms: Sequence[TrialArm], metered: pl.DataFrame, mounted: bool
) -> pl.DataFrame:
    """One row for each episode in the order of the plan: arm, task, outcome, costs, the skills that it got
    with their hashes, and those that it opened (null where they were shown as text)."""
    skills = {arm.name: arm.skills for arm in arms}
    rows = []
    for number, episode in enumerate(iterate_rollouts(rollouts)):
        given = skills[episode.policy]
        names = {skill.name for skill in given}
        tokens = sum(len(step.prompt_ids) + len(step.response_ids) for step in episode.decisions)
        rows.append({
            "episode": number,
            "arm": episode.policy,
            "task": episode.task_id,
            "rollout": episode.rollout_index,
            "won": episode.won,
            "outcome": episode.outcome,
            "calls": len(episode.decisions),
            "own_tokens": tokens or None,
            "skills": " ".join(f"{skill.name}={skill.digest}" for skill in given),
            "opened": " ".join(opened_skills(_carried_out(episode), names)) if mounted else None,
        })  # fmt: skip
    costs = metered.select("episode", "tokens", "seconds")
    found = pl.DataFrame(rows, infer_schema_length=None).join(costs, on="episode", how="left")
    own = pl.coalesce("tokens", pl.col("own_tokens").cast(pl.Int64))
    return found.with_columns(tokens=own).drop("own_tokens").sort("episode")


def _carried_out(episode: Trajectory) -> Iterator[str]:
    return (step.action for step in episode.steps if step.invalid is None)


@dataclass(frozen=True)
class SkillTrialResult:
    """The result of a complete trial."""

    success: PairedMeans
    """Success rates: without the skills first, with them second."""
    rollouts: int
    costs: Mapping[str, PairedMeans]
    """Tokens, calls and seconds of an episode, as far as they are known."""
    each: Mapping[str, PairedMeans]
    """For each skill, the comparison of all other skills (first) with all skills (second)."""
    each_p: Mapping[str, float]
    """The p of each skill, corrected by Holm for the number of skills."""
    opened: Mapping[str, float]
    """For each skill, the share of episodes with all skills that opened it; empty if this is not visible."""
    excluded: Mapping[str, str]
    """Tasks that were left out, each with the reason."""
    included: Mapping[str, str]
    """Tasks that the skills were written from but that were played anyway."""
    unchecked: Sequence[str]
    """Skills whose source tasks are unknown."""

    @property
    def word(self) -> str:
        """The verdict in one word or a few."""
        if self.success.p > ERROR:
            return "no difference shown"
        return "the skills help" if self.success.difference > 0 else "the skills harm"


def judge(
    episodes: pl.DataFrame, tasks: Sequence[str], arms: Sequence[TrialArm], rollouts: int, seed: int
) -> dict[str, Any]:
    """The part of the result that episodes decide.

    Raises:
        UserError: episodes of the plan are missing.
    """
    wanted = len(tasks) * len(arms) * rollouts
    if episodes.height < wanted:
        raise UserError(
            f"{wanted - episodes.height} of {wanted} episodes are missing, so there is no verdict yet; run "
            "the same command again"
        )
    seed = derive(seed, "trial") % 2**32
    names = [name.removeprefix(LESS) for name in (arm.name for arm in arms) if name not in (WITH, WITHOUT)]
    won = {arm.name: _per_task(episodes, arm.name, "won", tasks) for arm in arms}
    each = {
        name: paired_success(won[f"{LESS}{name}"].astype(int), won[WITH].astype(int), rollouts, seed)
        for name in names
    }
    return {
        "success": paired_success(won[WITHOUT].astype(int), won[WITH].astype(int), rollouts, seed),
        "rollouts": rollouts,
        "costs": dict(_costs(episodes, tasks, rollouts, seed)),
        "each": each,
        "each_p": dict(zip(names, holm([found.p for found in each.values()]), strict=True)),
        "opened": dict(_opened(episodes, arms)),
    }


def _opened(episodes: pl.DataFrame, arms: Sequence[TrialArm]) -> Iterator[tuple[str, float]]:
    """For each skill, the share of episodes with all skills that opened it; empty if this is not visible."""
    opened = episodes.filter(pl.col("arm") == WITH)["opened"].to_list()
    for skill in (skill for arm in arms if arm.name == WITH for skill in arm.skills):
        if None not in opened:
            yield skill.name, sum(skill.name in names.split() for names in opened) / len(opened)


def _costs(
    episodes: pl.DataFrame, tasks: Sequence[str], rollouts: int, seed: int
) -> Iterator[tuple[str, PairedMeans]]:
    compared = episodes.filter(pl.col("arm").is_in([WITH, WITHOUT]))
    for name in COSTS:
        if not compared[name].null_count():
            one, other = (_per_task(compared, arm, name, tasks) / rollouts for arm in (WITHOUT, WITH))
            yield name, paired_amounts(one, other, seed)


def _per_task(episodes: pl.DataFrame, arm: str, column: str, tasks: Sequence[str]) -> np.ndarray[Any, Any]:
    """The sum over an arm's rollouts of each task, in the order of ``tasks``."""
    sums = episodes.filter(pl.col("arm") == arm).group_by("task").agg(pl.col(column).cast(pl.Float64).sum())
    ordered = pl.DataFrame({"task": tasks}).join(sums, on="task", how="left", maintain_order="left")
    return ordered[column].to_numpy()


def headline(found: PairedMeans, rollouts: int) -> str:
    """The result in one line."""
    often = "only" if rollouts == 1 else "more often"
    return (
        f"{_points(found.difference)} points ({_points(found.low, '')} to {_points(found.high, '')}), "
        f"{found.tasks} tasks, {found.more_second} won {often} with, {found.more_first} {often} without, "
        f"exact p = {found.p:.2g}"
    )


def lines(result: SkillTrialResult) -> Iterator[str]:
    """The verdict first, then the figures behind it."""
    yield headline(result.success, result.rollouts)
    yield (
        f"verdict: {result.word} (5%, one look after the last planned episode); success "
        f"{result.success.second:.1%} with, {result.success.first:.1%} without"
    )
    for name, cost in result.costs.items():
        yield (
            f"{name} of an episode: {cost.second:,.1f} with, {cost.first:,.1f} without, "
            f"{cost.difference:+,.1f} ({cost.low:+,.1f} to {cost.high:+,.1f}), p = {cost.p:.2g}"
        )
    for name, found in result.each.items():
        yield (
            f"{name} beside the others: {_points(found.difference)} points ({_points(found.low, '')} to "
            f"{_points(found.high, '')}), exact p = {found.p:.2g}, by Holm {result.each_p[name]:.2g}"
        )
    if result.opened:
        told = ", ".join(f"{name} {share:.0%}" for name, share in result.opened.items())
        yield f"opened, of the episodes with skills: {told}"
    yield from overlap_lines(result.excluded, result.included, result.unchecked)


def overlap_lines(
    excluded: Mapping[str, str], included: Mapping[str, str], unchecked: Sequence[str]
) -> Iterator[str]:
    """Lines about tasks that the skills were written from."""
    if excluded:
        told = "; ".join(f"{name}: {why}" for name, why in list(excluded.items())[:3])
        yield f"left out: {len(excluded)} tasks that the skills were written from ({told})"
    if included:
        told = "; ".join(f"{name}: {why}" for name, why in list(included.items())[:3])
        yield f"--allow-overlap: {len(included)} tasks are those that the skills were written from ({told})"
    if unchecked:
        told = f"neither {EVIDENCE_FILE} nor --logs say what {', '.join(unchecked)} comes from"
        yield f"overlap could not be checked: {told}"


def as_json(result: SkillTrialResult) -> dict[str, Any]:
    """The result for ``trial.json``, with the headline."""
    return {"headline": headline(result.success, result.rollouts), "verdict": result.word, **asdict(result)}


def _points(share: float, sign: str = "+") -> str:
    return f"{100 * share:{sign}.1f}"
