"""``skillpress actions ROLLOUTS MODEL``: how likely a policy's actions are, whatever words express them.

    skillpress actions data/rollouts/evaluation.parquet models/policy --environment countdown --policy trained
    skillpress actions results/evaluations/mine/rollouts.parquet models/policy --environment countdown

One action can be said in many ways, so the probability of a response is only a part of the probability of its
action. The command draws states of the episodes, samples responses to their prompts, reads each as an action,
and estimates the probability of the action that was taken and the entropy of actions (docs/macro_actions.md).
Writes actions.parquet, a row per state, and actions.json, the means over states.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import polars as pl

from skillpress.cli.evaluations.parameters import evaluation_params
from skillpress.cli.evaluations.trajectory_ratio import check_tokens, choose_episodes
from skillpress.cli.parameter_options import add_environment
from skillpress.core.arguments import CommandParser, output_folder, whole
from skillpress.core.rollout_files import iterate_rollouts
from skillpress.core.seeds import generator
from skillpress.core.storage import write_json
from skillpress.core.tables import write_table
from skillpress.core.trajectory import Step, Trajectory
from skillpress.pipeline.files import RESULTS
from skillpress.pipeline.progress import StageProgress

KIND = "macro-actions"
TOGETHER = 8
"""Number of states whose responses are sampled together."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    from skillpress.experiment.experiment import Experiment
    from skillpress.models.macro_policy.sampling import sample_actions
    from skillpress.models.policy.pretrained import load_pretrained

    chosen = _parser().parse_args(arguments)
    experiment = Experiment(
        evaluation_params(chosen.environment, chosen.model, chosen.params, assignments=chosen.set)
    )
    keep, _ = choose_episodes(chosen.rollouts, chosen.policy)
    episodes = list(iterate_rollouts(chosen.rollouts, keep))
    policy = load_pretrained(chosen.model, experiment.params.policy.dtype)
    check_tokens(chosen.rollouts, episodes, [policy])
    states = drawn_states(episodes, chosen.states, chosen.seed)

    def read(tokens: tuple[int, ...]) -> str:
        return experiment.parser(policy.decode(tokens)).action

    rows = []
    with (
        closing(experiment.engine(policy)) as engine,
        StageProgress("actions", len(states), "state") as progress,
    ):
        for first in range(0, len(states), TOGETHER):
            some = states[first : first + TOGETHER]
            found = sample_actions(
                engine,
                [step.prompt_ids for _, step in some],
                read,
                experiment.training_sampling,
                samples=chosen.samples,
                seed=chosen.seed + first,
            )
            for (task, step), policy_there in zip(some, found, strict=True):
                taken = read(step.response_ids)
                share, of_entropy = policy_there.interval(taken), policy_there.entropy_interval
                rows.append({
                    "task_id": task, "taken": taken, "share": policy_there.share(taken),
                    "share_low": share.low, "share_high": share.high, "entropy": policy_there.entropy,
                    "entropy_low": of_entropy.low, "entropy_high": of_entropy.high,
                    "actions": len(policy_there.counts), "without_action": policy_there.share(""),
                })  # fmt: skip
            progress.more(len(some))
    table = pl.DataFrame(rows)
    means = {
        name: float(table[name].to_numpy().mean())
        for name in ("share", "entropy", "actions", "without_action")
    }
    write_table(chosen.output / "actions.parquet", table, KIND)
    write_json(chosen.output / "actions.json", {"states": table.height, "samples": chosen.samples, **means})
    print(
        f"{table.height} states, {chosen.samples} responses each: the action taken has {means['share']:.1%}, "
        f"entropy {means['entropy']:.3f} nats, {means['actions']:.1f} different actions, "
        f"{means['without_action']:.1%} of responses without one"
    )
    print(f"written to {chosen.output}")
    return 0


def drawn_states(episodes: Sequence[Trajectory], count: int, seed: int) -> list[tuple[str, Step]]:
    """(task, step) of at most ``count`` different prompts, drawn with the seed."""
    prompts: dict[tuple[int, ...], tuple[str, Step]] = {}
    for episode in episodes:
        for step in episode.steps:
            if step.response_ids:
                prompts.setdefault(step.prompt_ids, (episode.task_id, step))
    states = list(prompts.values())
    chosen = generator(seed, KIND).choice(len(states), min(count, len(states)), replace=False)
    return [states[place] for place in np.sort(chosen)]


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    add = parser.add_argument
    add("rollouts", type=Path, metavar="ROLLOUTS", help="episodes of a language agent")
    add("model", metavar="MODEL", help="the folder or name of the policy whose actions are described")
    add_environment(parser)
    add("--policy", metavar="NAME", help="whose episodes, if several policies played")
    add("--params", type=Path, action="append", default=[], metavar="OVERLAY", help="may be repeated")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="may be repeated")
    add("--states", type=whole(1), default=32, metavar="N", help="states that are drawn (default 32)")
    add("--samples", type=whole(2), default=64, metavar="N", help="responses to each (default 64)")
    add("--seed", type=whole(0), default=0, metavar="SEED")
    add("--output", type=output_folder, default=str(RESULTS / "actions"), metavar="FOLDER")
    return parser
