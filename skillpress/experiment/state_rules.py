"""The rules between ``policy.state_update`` and other keys: what the agent keeps, and where prompts show it.

They are checked among the others (``rules.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from skillpress.models.engines.parameters import SamplingParameters
from skillpress.rollouts.agents.parameters import RENDERINGS_OWN, MemoryParameters, PolicyParameters

if TYPE_CHECKING:
    from skillpress.experiment.params import Params

NOTES = frozenset({"observations", "notepad", "summarize"})
"""The state updates that write notes."""


def _notes_are_shown(params: Params) -> None:
    update = params.policy.state_update
    if update in NOTES and params.policy.compact:
        raise ValueError(
            f"policy.state_update {update!r} writes notes, which policy.rendering 'compact' cannot "
            "show; use rendering text or paper"
        )
    if update == "notepad" and not params.environment.notepad:
        raise ValueError(
            f"policy.state_update 'notepad' shows the environment's notepad, and {params.environment.name} "
            "has none; use observations, which writes its own notes"
        )


def _there_is_something_to_sum_up(params: Params) -> None:
    policy = params.policy
    if policy.state_update == "summarize":
        key = "policy.state_update 'summarize'"
    elif policy.store is not None and "summaries" in policy.store.writes:
        key = "policy.store.writes 'summaries'"
    else:
        return
    if not policy.history:
        raise ValueError(f"policy.history is 0, must be at least 1: {key} summarizes the turns in prompts")
    if params.imitation.demonstrations:
        raise ValueError(
            f"imitation.demonstrations is {params.imitation.demonstrations}, must be 0: {key} asks the "
            "policy for summaries, which no oracle demonstrates"
        )


def _a_store_is_described_and_shown(params: Params) -> None:
    policy, store = params.policy, params.policy.store
    if (policy.state_update == "store") != (store is not None):
        raise ValueError(
            f"policy.store is {'set' if store else 'null'}, but policy.state_update is "
            f"{policy.state_update!r}: set it ({{shown: 4, length: 300}}) for 'store' alone"
        )
    if store is None:
        return
    if policy.compact and not params.environment.shows_notes:
        raise ValueError(
            f"policy.state_update 'store' shows notes, which policy.rendering 'compact' of "
            f"{params.environment.name} cannot show; use rendering text or paper"
        )
    if policy.compact and store.holds_own_words:
        raise ValueError(
            f"policy.store.writes is {store.writes}, must be [turns] with policy.rendering 'compact', whose "
            "answers have no room for summaries and facts"
        )
    if "facts" in store.writes and policy.parser in {"json", "xml"}:
        raise ValueError(
            f"policy.parser is {policy.parser!r}, but facts are written in <think>: use rendering or "
            "planned, or policy.store.writes without facts"
        )


def _a_learned_state_update_has_its_memory(params: Params) -> None:
    policy, memory = params.policy, params.policy.memory
    if (policy.state_update == "learned") != (memory is not None):
        raise ValueError(
            f"policy.memory is {'set' if memory else 'null'}, but policy.state_update is "
            f"{policy.state_update!r}: set it ({{length: 2, alphabet: 8}}) for 'learned' alone"
        )
    if memory is not None and policy.compact:
        _a_memory_in_words_precedes_an_action(policy, memory, params.sampling)
    elif memory is not None:
        _a_memory_in_text_stands_in_a_thought(policy, memory)


def _a_memory_in_text_stands_in_a_thought(policy: PolicyParameters, memory: MemoryParameters) -> None:
    if memory.alphabet:
        raise ValueError(
            f"policy.memory.alphabet is {memory.alphabet}, must be 0 with policy.rendering "
            f"{policy.rendering!r}: its memory is text of policy.memory.length characters"
        )
    if policy.parser in {"json", "xml"}:
        raise ValueError(
            f"policy.parser is {policy.parser!r}, but a memory is written in <think>: use "
            "rendering or planned"
        )


def _a_memory_in_words_precedes_an_action(
    policy: PolicyParameters, memory: MemoryParameters, sampling: SamplingParameters
) -> None:
    if memory.alphabet < 2:
        raise ValueError(
            f"policy.memory.alphabet is {memory.alphabet}, must be at least 2: a memory of rendering "
            "'compact' is made of that many words"
        )
    if policy.parser != RENDERINGS_OWN:
        raise ValueError(
            f"policy.parser is {policy.parser!r}, must be {RENDERINGS_OWN}: a memory of policy.rendering "
            "'compact' comes before the action"
        )
    if sampling.max_new_tokens <= memory.length:
        raise ValueError(
            f"sampling.max_new_tokens is {sampling.max_new_tokens}, must be more than "
            f"policy.memory.length ({memory.length}): an action follows the memory"
        )


STATE_RULES: tuple[Callable[[Params], None], ...] = (
    _notes_are_shown,
    _a_learned_state_update_has_its_memory,
    _there_is_something_to_sum_up,
    _a_store_is_described_and_shown,
)
