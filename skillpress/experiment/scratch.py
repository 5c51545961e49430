"""A policy made from scratch, with the words of every section that adds some to prompts or answers."""

from __future__ import annotations

from dataclasses import replace

from skillpress.core.errors import ParamsError
from skillpress.core.interface import ScratchVocabulary
from skillpress.core.seeds import derive
from skillpress.experiment.params import Params
from skillpress.models.policy import Policy
from skillpress.models.policy.scratch import build_scratch_policy
from skillpress.rollouts.agents.learned_memory import MemoryWords
from skillpress.skills.library.advice import with_advice_words


def scratch_policy(params: Params) -> Policy:
    """A policy with fresh weights. Its vocabulary is the environment's, plus the words of memory and library.

    Raises:
        ParamsError: the environment has no compact vocabulary, or one that lacks what prompts need.
    """
    section, environment = params.policy, params.environment
    if not environment.offers("vocabulary") or not section.compact:
        raise ParamsError(
            f"policy.model: {section.model!r} needs policy.rendering compact and an environment that has it, "
            f"got {section.rendering!r} of {params.environment.name!r}"
        )
    words = _with_memory(environment.vocabulary(section.turns_shown), params)
    if (store := section.store) is not None:
        words = replace(words, state_words=words.state_words + store.shown * store.length)
    if (library := params.skills.library) is not None:
        alphabet = environment.make_projection().alphabet
        words = with_advice_words(words, alphabet, library.top_k)
    return build_scratch_policy(
        replace(words, state_words=_context_words(words, params)),
        section.width,
        layers=section.layers,
        heads=section.heads,
        response_words=params.sampling.max_new_tokens,
        seed=derive(params.seed, "weights") % 2**32,
    )


def _with_memory(vocabulary: ScratchVocabulary, params: Params) -> ScratchVocabulary:
    """The vocabulary plus the words of the memory, which are also in every prompt."""
    memory = params.policy.make_memory()
    if not isinstance(memory, MemoryWords):
        return vocabulary
    if taken := set(vocabulary.words) & set(memory.words):
        raise ParamsError(
            f"policy.state_update: 'learned' has its own words, and {params.environment.name} "
            f"has {min(taken)!r} too; use another"
        )
    return replace(
        vocabulary,
        words=(*vocabulary.words, *memory.words),
        state_words=vocabulary.state_words + memory.length,
    )


def _context_words(vocabulary: ScratchVocabulary, params: Params) -> int:
    """Number of words of a scratch policy's longest prompt."""
    section = params.policy
    first = vocabulary.state_words + section.knowledge_words
    if not section.make_state_update().grows:
        return first
    if vocabulary.continuation_words is None:
        raise ParamsError(
            f"policy.state_update: {section.state_update!r} needs a rendering that can continue a "
            f"prompt, and {section.rendering!r} of {params.environment.name} cannot"
        )
    turn = params.sampling.max_new_tokens + vocabulary.continuation_words
    longest = first + (params.environment.max_steps - 1) * turn
    return max(first, min(longest, section.context_tokens))
