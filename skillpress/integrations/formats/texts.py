"""Decodes token ids with the tokenizer of the policy that saw and sampled them.

Only ``tokenizer.json`` of the policy's folder is read: neither a model nor torch is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillpress.core.errors import UserError
from skillpress.core.markup import opened_thought, silent_tokens
from skillpress.core.storage import read_json
from skillpress.core.trajectory import Step, Trajectory

if TYPE_CHECKING:
    from tokenizers import Tokenizer  # which the base layer of the package lacks

TOKENIZER = "tokenizer.json"
"""The tokenizer's file in a policy's folder."""


class TokenizerError(UserError):
    """The policy's folder has no usable tokenizer."""


@dataclass(frozen=True)
class Said:
    """One decision in words."""

    prompt: str | None
    """The exact prompt that the policy saw, special tokens included; None without a tokenizer."""
    response: str
    """The policy's continuation of the prompt, without special tokens. If its tokens are unknown (no
    tokenizer, or an agent that samples none), its thought and its action."""
    summary: bool
    """Whether the decision is a summary of the agent's past, which the environment did not see."""

    @property
    def answer(self) -> str:
        """The response as a separate message. If the prompt opens the thought, the message opens it too."""
        return opened_thought(self.prompt or "") + self.response


@dataclass(frozen=True)
class Texts:
    """Turns episodes into text."""

    tokenizer: Tokenizer | None = None
    """None if the policy's tokenizer is not available."""

    def __call__(self, trajectory: Trajectory) -> list[Said]:
        """All decisions of an episode, in order."""
        steps = trajectory.decisions
        prompts = self._decoded([step.prompt_ids for step in steps], special=True)
        responses = self._decoded([step.response_ids for step in steps], special=False)
        summaries = {summary.before + earlier for earlier, summary in enumerate(trajectory.summaries)}
        return [
            Said(prompt, _in_short(step) if response is None else response, number in summaries)
            for number, (step, prompt, response) in enumerate(zip(steps, prompts, responses, strict=True))
        ]

    def _decoded(self, rows: Sequence[Sequence[int]], special: bool) -> list[str | None]:
        """The texts of token ids; None where there are no ids or no tokenizer."""
        if self.tokenizer is None:
            return [None] * len(rows)
        silent = frozenset() if special else self._silent
        spoken = [[token for token in row if token not in silent] for row in rows]
        texts = self.tokenizer.decode_batch(spoken, skip_special_tokens=False)
        return [text if row else None for row, text in zip(rows, texts, strict=True)]

    @cached_property
    def _silent(self) -> frozenset[int]:
        return frozenset() if self.tokenizer is None else silent_tokens(self.tokenizer)


def facts(trajectory: Trajectory, *further: str) -> dict[str, Any]:
    """The fields that identify an episode and what sampled it, and further ones."""
    names = ("task_id", "group_id", "rollout_index", "policy", "policy_version", *further)
    return {name: getattr(trajectory, name) for name in names}


def load_texts(folder: str | Path) -> Texts:
    """Texts decoded with the tokenizer in the policy's folder.

    Raises:
        TokenizerError: the folder has no tokenizer that can be read.
        StorageError: the tokenizer's file is damaged.
    """
    path = Path(folder) / TOKENIZER
    if not path.is_file():
        raise TokenizerError(f"{path}: no such file; name the folder of the policy that played")
    text = json.dumps(read_json(path))
    from tokenizers import Tokenizer

    try:
        return Texts(Tokenizer.from_str(text))
    except Exception as error:  # the library raises nothing narrower
        raise TokenizerError(
            f"{path}: not a tokenizer ({error}); name the folder of the policy that played"
        ) from error


def _in_short(step: Step) -> str:
    return "\n".join(part for part in (step.thought, step.action) if part)
