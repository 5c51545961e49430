"""``skillpress trajectory-ratio ROLLOUTS A B``: how likely episodes are under policy A, compared with B.

    skillpress trajectory-ratio data/rollouts/evaluation.parquet models/policy models/base --policy start
    skillpress trajectory-ratio results/evaluations/mine/rollouts.parquet models/policy models/base

It scores the sampled tokens of each turn under both policies: their log-probabilities, the difference, and
its sum over turns. It also prints the effective sample size of the weights exp(sum), for trajectories and for
single turns. Weights estimate A's success only from episodes that B sampled, at --temperature and without
top-p or top-k. Writes turns.parquet (a row per turn), trajectory_ratio.json and trajectory_ratio.svg.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from skillpress.core.arguments import CommandParser, output_folder, real
from skillpress.core.errors import UserError
from skillpress.core.rollout_files import TAKEN, iterate_rollouts, scan_rollouts
from skillpress.core.storage import sweep, write_json, write_text
from skillpress.core.tables import write_table
from skillpress.core.trajectory import Trajectory
from skillpress.evaluation.analysis.trajectory_ratio import (
    Spread,
    by_turn,
    of_trajectories,
    of_turns,
    turn_table,
)
from skillpress.pipeline.files import RESULTS
from skillpress.pipeline.progress import StageProgress

if TYPE_CHECKING:
    from skillpress.evaluation.analysis.turn_logprobs import TurnScorer
    from skillpress.models.policy import Policy

TOGETHER = 256
"""Number of trajectories that are scored together."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    keep, episodes = choose_episodes(chosen.rollouts, chosen.policy)
    for name, folder in (("A", chosen.first), ("B", chosen.second)):
        if not (folder / "config.json").is_file():
            raise UserError(
                f"{name}: {folder} is not the folder of a Hugging Face model (it has no config.json)"
            )
    turns = score(
        chosen.rollouts,
        keep,
        episodes=episodes,
        first=chosen.first,
        second=chosen.second,
        temperature=chosen.temperature,
    )
    found = {"trajectory": of_trajectories(turns), "turn": of_turns(turns)}
    write(chosen.output, turns, found, by_turn(turns), _asked(chosen))
    for line in lines(found):
        print(line)
    print(f"written to {chosen.output}")
    return 0


def choose_episodes(rollouts: Path, policy: str | None) -> tuple[pl.Expr, int]:
    """A condition that selects the rows of the policy's episodes, and the number of these episodes.

    Raises:
        UserError: several policies played and none is named, the named one did not play, or there are no
        tokens.
        StorageError: the file is missing, truncated, or has another schema.
    """
    tokens = pl.col("response_ids").list.len().sum()
    first = (TAKEN & (pl.col("step") == 0)).sum()
    rows = scan_rollouts(rollouts).group_by("policy").agg(tokens.alias("tokens"), first.alias("episodes"))
    found = {row["policy"]: row for row in rows.sort("policy").collect().iter_rows(named=True)}
    with_tokens = [name for name, row in found.items() if row["tokens"]]
    if not with_tokens:
        raise UserError(
            f"{rollouts}: has no tokens (the random explorer and models behind a text server record none), "
            "so no model can score it; name episodes of a language agent"
        )
    if policy is None and len(found) > 1:
        raise UserError(
            f"{rollouts}: several policies played ({', '.join(found)}); name one with --policy, "
            f"of those that left tokens: {', '.join(with_tokens)}"
        )
    name = with_tokens[0] if policy is None else policy
    if name not in with_tokens:
        why = "left no tokens" if name in found else "did not play"
        raise UserError(f"--policy: {name!r} {why} in {rollouts}; choose from {', '.join(with_tokens)}")
    return pl.col("policy") == name, int(found[name]["episodes"])


def score(
    rollouts: Path, keep: pl.Expr, episodes: int, first: Path, second: Path, temperature: float
) -> pl.DataFrame:
    """Score the episodes: one row per turn (``TURN_SCHEMA``), with few episodes in memory at a time.

    Raises:
        UserError: the vocabularies differ, or the episodes have tokens outside the vocabulary.
        PolicyError: a folder does not contain a model that can be loaded.
    """
    import torch

    from skillpress.evaluation.analysis.turn_logprobs import TurnScorer
    from skillpress.models.policy import load_policy
    from skillpress.rollouts.workers.distributed import Ranks

    policies = [load_policy(folder) for folder in (first, second)]
    check_vocabularies(first, second, *policies)
    for policy in policies:
        torch.nn.Module.to(policy.model, Ranks().device)
    scorers = [TurnScorer(policy, temperature) for policy in policies]
    tables = []
    with StageProgress("trajectory-ratio", episodes, "episode") as progress:
        for some in _together(iterate_rollouts(rollouts, keep)):
            check_tokens(rollouts, some, policies)
            tables.append(_scored(some, scorers))
            progress.more(len(some))
    return pl.concat(tables)


def check_vocabularies(first: Path, second: Path, one: Policy, other: Policy) -> None:
    """Refuse models that give the same number to different tokens."""
    mine, theirs = one.tokenizer.get_vocab(), other.tokenizer.get_vocab()
    unlike = sorted(token for token in mine.keys() | theirs.keys() if mine.get(token) != theirs.get(token))
    if unlike:
        token = unlike[0]
        raise UserError(
            f"{first} and {second} have different vocabularies ({len(unlike)} tokens differ; {token!r} is "
            f"number {mine.get(token, 'none')} and {theirs.get(token, 'none')}), so no token sequence has a "
            "probability under both; name two models with the same tokenizer"
        )


def check_tokens(rollouts: Path, trajectories: Sequence[Trajectory], policies: Sequence[Policy]) -> None:
    """Refuse episodes that a model cannot have played."""
    known = min(int(policy.model.config.vocab_size) for policy in policies)
    room = min(policy.context_length for policy in policies)
    for trajectory in trajectories:
        for turn in trajectory.decisions:
            tokens = (*turn.prompt_ids, *turn.response_ids)
            if tokens and max(tokens) >= known:
                raise UserError(
                    f"{rollouts}: task {trajectory.task_id} has token {max(tokens)}, but the models know "
                    f"only {known}; name models with the vocabulary of the policy that played"
                )
            if len(tokens) > room:
                raise UserError(
                    f"{rollouts}: a turn of task {trajectory.task_id} has {len(tokens)} tokens, more than "
                    f"the {room} of the models' context"
                )


def write(
    output: Path,
    turns: pl.DataFrame,
    found: dict[str, Spread],
    spreads: Sequence[Spread],
    asked: dict[str, Any],
) -> None:
    """Write the two result files and the figure, each atomically."""
    from skillpress.reports.report.trajectory_figure import draw

    table, figures = output / "turns.parquet", output / "trajectory_ratio.json"
    for path in (table, figures, output / "trajectory_ratio.svg"):
        sweep(path)
    write_table(table, turns, "turn-ratios")
    levels = {name: _values(spread) for name, spread in found.items()}
    write_json(figures, {**asked, **levels, "by_turn": [_values(spread) for spread in spreads]})
    write_text(output / "trajectory_ratio.svg", draw(spreads))


def lines(found: dict[str, Spread]) -> Iterator[str]:
    """The lines for the terminal."""
    for name, spread in found.items():
        low, high = spread.quantiles["p05"], spread.quantiles["p95"]
        yield (
            f"{name:10}  {spread.count:7,}  log ratio {spread.mean:+.4f} on average, "
            f"{low:+.4f} to {high:+.4f} (90%), "
            f"effective sample size {spread.effective:,.1f} ({spread.effective_share:.1%})"
        )


def _scored(trajectories: Sequence[Trajectory], scorers: Sequence[TurnScorer]) -> pl.DataFrame:
    decisions = [turn for trajectory in trajectories for turn in trajectory.decisions]
    first, second = (scorer(decisions) for scorer in scorers)
    return turn_table(trajectories, first, second)


def _together(trajectories: Iterator[Trajectory]) -> Iterator[list[Trajectory]]:
    while some := list(islice(trajectories, TOGETHER)):
        yield some


def _values(spread: Spread) -> dict[str, Any]:
    return {**asdict(spread), "effective_share": spread.effective_share}


def _asked(chosen: Namespace) -> dict[str, Any]:
    names = {"rollouts": chosen.rollouts, "a": chosen.first, "b": chosen.second}
    played = {"policy": chosen.policy, "temperature": chosen.temperature}
    return {name: str(path) for name, path in names.items()} | played


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("rollouts", type=Path, metavar="ROLLOUTS.parquet")
    parser.add_argument("first", type=Path, metavar="A", help="folder of the model above the fraction line")
    parser.add_argument("second", type=Path, metavar="B", help="of the one below, which sampled")
    parser.add_argument(
        "--output", type=output_folder, default=str(RESULTS / "trajectory_ratio"), metavar="FOLDER"
    )
    parser.add_argument("--policy", help="whose episodes, where several policies played (start, trained ...)")
    parser.add_argument(
        "--temperature", type=real(above=0), default=1.0, help="divides the logits (default 1)"
    )
    return parser
