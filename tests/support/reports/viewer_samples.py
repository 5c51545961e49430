"""Rollout files for the viewer's tests: ordinary episodes of Countdown, and episodes that attack the page.

``python -m tests.support.reports.viewer_samples FOLDER`` writes both, with tasks, a tokenizer and a
dictionary.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from skillpress.core.rollout_files import write_rollouts
from skillpress.core.task_files import write_tasks
from skillpress.core.trajectory import RewardPart, Step, Summary, Task, Trajectory, WeightSpan, skill_sequence
from skillpress.environments.section import projection_without_keys
from skillpress.models.policy.scratch import word_tokenizer
from skillpress.skills.dictionary import SkillDictionary, save_dictionary
from skillpress.skills.fit import fit
from tests.support.episodes import made_step, made_trajectory

ACTIONS = ("op(+, 4, 6)", "op(-, 90, 6)", "op(*, 4, 25)", "op(/, 100, 4)", "rollback", "reset")
WORDS = (*map(str, range(10)), "goal", "numbers", "then", "say", *("".join(a.split()) for a in ACTIONS))
HOSTILE = (
    "<script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "</script><script>document.title='owned'</script>",
    "<!-- <script>",
    "javascript:alert(1) https://evil.example/?q=1 [a link](javascript:alert(1))",
    "\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07click\x1b]8;;\x07 \x00\x07\x08\x7f\x9b31m",
    "safe \u202e gnp.exe \u202c \u2066isolated\u2069 \u200fmark\u200e",
    "zero\u200bwidth\u200djoiner\ufeff \u2028 line \u2029 paragraph \u00ad soft",
    "{{ 7 * 7 }} ${7 * 7} `${document.cookie}` %s %n &lt;b&gt; &#x3c;",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 e\u0301 " + "a\u0300\u0316\u0317" * 200,
    "\udcff".encode("utf-8", "replace").decode() + " \ufffd \ufffe \U000e0041",
    "A" * 1_048_576,
)
"""Texts that a page must show and never run."""


def tasks(count: int = 12) -> list[Task]:
    """Countdown's tasks of three strata, some of them in the test split."""
    return [
        Task(
            task_id=f"task-{number:03}",
            environment="countdown",
            seed=number,
            spec={"target": 20 + 7 * number, "numbers": [4, 6, 25, 90][: 2 + number % 3]},
            split="test" if number % 4 == 3 else "train",
            stratum=f"{2 + number % 3} numbers",
        )
        for number in range(count)
    ]


def ordinary(seed: int = 0, count: int = 12, rollouts: int = 4) -> list[Trajectory]:
    """Every task played by two policies, ``rollouts`` times each; some episodes have a summary."""
    dice = random.Random(seed)
    return [
        _episode(dice, task, policy, index)
        for policy in ("start", "trained")
        for task in tasks(count)
        for index in range(rollouts)
    ]


def hostile() -> list[Trajectory]:
    """One episode for each text of ``HOSTILE``, with that text in every field that can hold one."""
    return [
        made_trajectory(
            (_hostile_step(text, "<b>why</b>"), _hostile_step(text, None)),
            task_id=f"task-{number:03}",
            group_id=f"hostile/{text[:40]}",
            rollout_index=number,
            terminated=True,
            truncated=False,
            outcome=text[:60],
            first_observation=text,
            policy=text[:40],
        )
        for number, text in enumerate(HOSTILE)
    ]


def dictionary() -> SkillDictionary:
    """A dictionary fitted to the ordinary episodes."""
    by_id, projection = {task.task_id: task for task in tasks()}, projection_without_keys("countdown")
    assert projection is not None
    corpus = [skill_sequence(projection, by_id[t.task_id], t) for t in ordinary()]
    return fit(corpus, projection.alphabet, 4)


def write_all(folder: Path) -> None:
    """``ordinary.parquet``, ``hostile.parquet``, ``tasks.parquet``, ``dictionary.json``, ``tokenizer/``."""
    write_rollouts(folder / "ordinary.parquet", ordinary())
    write_rollouts(folder / "hostile.parquet", hostile())
    write_tasks(folder / "tasks.parquet", tasks())
    save_dictionary(folder / "dictionary.json", dictionary())
    word_tokenizer(WORDS).save_pretrained(folder / "tokenizer")


def _episode(dice: random.Random, task: Task, policy: str, index: int) -> Trajectory:
    won, length = dice.random() < (0.7 if policy == "trained" else 0.3), dice.randint(1, 7)
    steps = tuple(_step(dice, task, number, won and number == length - 1) for number in range(length))
    summaries = (Summary(length - 1, _summary(dice)),) if index == 1 else ()
    return made_trajectory(
        steps,
        won=won,
        task_id=task.task_id,
        group_id=f"{policy}/run-0/{task.task_id}",
        rollout_index=index,
        terminated=won or index % 2 == 0,
        truncated=not won and index % 2 == 1,
        outcome="won" if won else ("stuck", "timeout")[index % 2],
        policy_version=30 if policy == "trained" else 0,
        seed=dice.randrange(2**31),
        first_observation=f"Target {task.spec['target']}, numbers {task.spec['numbers']}",
        policy=policy,
        summaries=summaries,
    )


def _step(dice: random.Random, task: Task, number: int, last: bool) -> Step:
    action = dice.choice(ACTIONS)
    invalid = None if last else dice.choice((None, None, None, "not_admissible", "missing_action"))
    prompt = tuple(dice.randrange(2, 2 + len(WORDS)) for _ in range(12))
    answer = (2 + len(WORDS) - len(ACTIONS) + ACTIONS.index(action), 15)
    parts = [RewardPart(name="invalid", value=-0.125, credit="step")] if invalid else []
    parts += [RewardPart(name="success", value=1.0, credit="trajectory")] if last else []
    return made_step(
        prompt_ids=prompt,
        response_ids=answer,
        logprobs=tuple(-dice.expovariate(1.0) for _ in answer),
        thought=f"Perhaps {action} helps towards {task.spec['target']}.",
        action="" if invalid == "missing_action" else action,
        observation=f"Left: {dice.randrange(100)}, {dice.randrange(100)}" + (" Solved." if last else ""),
        invalid=invalid,
        reward_parts=tuple(parts),
        weight_spans=(WeightSpan(0, 0, 1), WeightSpan(1, 1, 2)) if number % 2 else (WeightSpan(1, 0, 2),),
    )


def _summary(dice: random.Random) -> Step:
    return made_step(
        prompt_ids=tuple(dice.randrange(2, 2 + len(WORDS)) for _ in range(20)),
        response_ids=(12, 13, 14),
        logprobs=(-0.25, -0.5, -4.0),
        thought="So far: the numbers are too small.",
        reward_parts=(RewardPart(name="format", value=0.25, credit="step"),),
    )


def _hostile_step(text: str, invalid: str | None) -> Step:
    return made_step(
        prompt_ids=(1, 2, 3),
        response_ids=(4, 5),
        logprobs=(-0.5, -3.0),
        thought=text,
        action=text,
        observation=text,
        invalid=invalid,
        reward_parts=(RewardPart(name=text[:60], value=-1.0, credit="step"),),
        weight_spans=(WeightSpan(0, 0, 2),),
    )


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
