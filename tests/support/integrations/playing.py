"""Episodes for the tests of formats, and the tokenizer of the policy that played them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from skillpress.core.logprobs import NO_LOGPROBS
from skillpress.core.trajectory import RewardPart, Step, Summary, Trajectory, WeightSpan
from tests.support.episodes import made_step, made_trajectory

WORDS = ["<start>", "<end>", "you", "see", "a", "door", "open", "it", "think", "first"]
"""The words that the policy knows, by their token ids."""


def write_tokenizer(folder: Path) -> Path:
    """The policy's folder, with only the tokenizer's files."""
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}))
    tokenizer.add_special_tokens(["<start>", "<end>"])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def ids(text: str) -> tuple[int, ...]:
    return tuple(WORDS.index(word) for word in text.split())


def step(said: str, action: str, observation: str, **changes: object) -> Step:
    """A decision whose prompt has all words."""
    values: dict[str, object] = {
        "prompt_ids": ids("<start> you see a door"),
        "response_ids": ids(said),
        "logprobs": tuple(-0.5 * (number + 1) for number in range(len(said.split()))),
        "thought": "",
        "action": action,
        "observation": observation,
        "invalid": None,
        "reward_parts": (RewardPart("success", 0.0, "trajectory"),),
        "weight_spans": (WeightSpan(3, 0, len(said.split())),),
    }
    return Step(**{**values, **changes})  # type: ignore[arg-type]


def episode(number: int = 0, task: str = "door") -> Trajectory:
    """An episode with a thought, an unreadable answer, a summary and a win."""
    return made_trajectory(
        (
            step("think first open <end>", "open", "what?", thought="think first", invalid="unreadable"),
            step(
                "open it <end>",
                "open it",
                "It is open.",
                reward_parts=(RewardPart("success", 10.0, "trajectory"), RewardPart("tidy", 0.5, "step")),
            ),
        ),
        won=True,
        task_id=task,
        group_id=f"trained/run-0/{task}",
        rollout_index=number,
        policy_version=3,
        seed=7,
        first_observation="You see a door.",
        policy="trained",
        run=0,
        summaries=(Summary(1, step("a door <end>", "", "", thought="a door")),),
    )


def unsampled(number: int = 0) -> Trajectory:
    """An episode by an agent without tokens."""
    steps = (
        made_step(thought="why not", action="look", observation="Nothing."),
        Step((), (), NO_LOGPROBS, "", "", "", "prompt_too_long", ()),
    )
    return made_trajectory(
        steps,
        task_id="dark",
        group_id="explorer/run-0/dark",
        rollout_index=number,
        seed=1,
        first_observation="It is dark.",
        policy="explorer",
    )


def failing() -> Iterator[Trajectory]:
    """Episodes from a file that is damaged."""
    yield episode()
    raise OSError("the disk is gone")
