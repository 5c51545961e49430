"""An experiment's parts, made from its parameters.

This is the one place where names in params.yaml meet the registries and where the whole parameters are
read. Everything else is handed the parts it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from skillpress.core.errors import ParamsError
from skillpress.core.interface import (
    Agent,
    Engine,
    Parser,
    Reflection,
    Rendering,
    Sampling,
    ScratchVocabulary,
    StateUpdate,
)
from skillpress.core.registry import ALGORITHMS, PARSERS, RETRIEVALS, SELECTIONS, STATE_UPDATES, lookup
from skillpress.core.seeds import derive
from skillpress.environments import EnvironmentBundle, bundle
from skillpress.environments.text.answer_forms import FORMS, Answering
from skillpress.experiment.judging import outcome_reward
from skillpress.experiment.params import RENDERINGS_OWN, SCRATCH, Params
from skillpress.models.engines.parameters import EngineDemand
from skillpress.models.policy import Policy
from skillpress.models.policy.domain_tokens import with_tokens
from skillpress.models.policy.pretrained import load_pretrained
from skillpress.models.policy.scratch import build_scratch_policy
from skillpress.play.agents.agent import LanguageAgent
from skillpress.play.agents.context import Prompter
from skillpress.play.agents.explorer import RandomExplorer
from skillpress.play.agents.learned_memory import Memory, MemoryText, MemoryWords, Remembering
from skillpress.play.agents.reward import OutcomeReward
from skillpress.play.agents.structured_parsing import MARKERS
from skillpress.play.rollout import (
    Collector,
    SyncVectorEnv,
    ThreadVectorEnv,
    VectorEnvironment,
    WorkerVectorEnv,
)
from skillpress.play.rollout.collector import Advise
from skillpress.play.workers import cores
from skillpress.play.workers.distributed import Ranks
from skillpress.skills.library.advice import SkillAdvice, with_advice_words
from skillpress.skills.library.library import Skill

if TYPE_CHECKING:  # training alone depends on the algorithms' files
    from skillpress.learn.algorithms.algorithm import Algorithm


@dataclass(frozen=True)
class Experiment:
    """What one params file describes."""

    params: Params

    @cached_property
    def bundle(self) -> EnvironmentBundle:
        """The environment's parts."""
        return bundle(self.params.environment.name)

    @cached_property
    def turns_shown(self) -> int:
        """How many past turns a prompt shows at most that is made anew."""
        return 0 if self.params.policy.state_update == "environment" else self.params.policy.history

    @cached_property
    def rendering(self) -> Rendering:
        """How the environment is put into words.

        Raises:
            ParamsError: the environment has no such rendering.
        """
        known, name = self.bundle.renderings, self.params.policy.rendering
        if name not in known:
            raise ParamsError(
                f"policy.rendering: is {name!r}; {self.params.environment.name} has {', '.join(known)}"
            )
        found = known[name](self.params.environment, self.turns_shown)
        if self.params.policy.parser in FORMS:
            read: Parser = lookup(PARSERS, found.parser, "policy.parser")
            found = Answering(found, self.params.policy.parser, read)
        return found if self.memory is None else Remembering(found, self.memory)

    @cached_property
    def memory(self) -> Memory | None:
        """How a learned state update is written; None with any other."""
        section = self.params.policy.memory
        if section is None:
            return None
        words = self.params.policy.rendering == "compact"
        return MemoryWords(section.length, section.alphabet) if words else MemoryText(section.length)

    @cached_property
    def domain_words(self) -> tuple[str, ...]:
        """What ``policy.domain_tokens`` asks to make tokens of."""
        kinds, listed = self.params.policy.domain_tokens, self.bundle.domain_words
        words: dict[str, Sequence[str]] = {"markers": MARKERS.get(self._parser_name, ())}
        if listed is not None:
            words |= listed(self.params.environment)
        return tuple(dict.fromkeys(word for kind in kinds for word in words[kind]))

    @property
    def _parser_name(self) -> str:
        asked = self.params.policy.parser
        return self.rendering.parser if asked == RENDERINGS_OWN else asked

    @cached_property
    def parser(self) -> Parser:
        """What reads the responses: the rendering's own parser, or the one that is asked for."""
        made: Parser = lookup(PARSERS, self._parser_name, "policy.parser")
        return made

    @cached_property
    def state_update(self) -> StateUpdate:
        """What the agent keeps of its past."""
        make = lookup(STATE_UPDATES, self.params.policy.state_update, "policy.state_update")
        made: StateUpdate = make(self.turns_shown, *([] if self.memory is None else [self.memory]))
        return made

    @cached_property
    def reward(self) -> OutcomeReward:
        """How the agent judges its own steps."""
        return outcome_reward(self.params.reward)

    @cached_property
    def algorithm(self) -> Algorithm:
        """The reinforcement-learning algorithm with its selection."""
        section = self.params.algorithm
        selection = lookup(SELECTIONS, section.select.name, "algorithm.select.name")(section.select)
        make = lookup(ALGORITHMS, section.name, "algorithm.name")
        made: Algorithm = make(section, selection, self.params.sampling.max_new_tokens)
        return made

    @cached_property
    def training_sampling(self) -> Sampling:
        """How tokens are drawn while training: from all of them, or importance ratios would be biased."""
        section = self.params.sampling
        return Sampling(section.temperature, max_new_tokens=section.max_new_tokens)

    @cached_property
    def evaluation_sampling(self) -> Sampling:
        """How tokens are drawn while evaluating."""
        section = self.params.evaluation
        return Sampling(
            section.temperature, section.top_p, section.top_k, self.params.sampling.max_new_tokens
        )

    def starting_policy(self) -> Policy:
        """The policy before any training: fresh weights, or the named pretrained model.

        Raises:
            ParamsError: a scratch model was asked for where the environment has no compact vocabulary.
            PolicyError: the named model cannot be loaded.
        """
        section = self.params.policy
        if section.model != SCRATCH:
            return with_tokens(load_pretrained(section.model, section.dtype), self.domain_words)
        vocabulary = self.bundle.vocabulary
        if vocabulary is None or section.rendering != "compact":
            raise ParamsError(
                f"policy.model: {SCRATCH!r} needs policy.rendering compact and an environment that has it, "
                f"got {section.rendering!r} of {self.params.environment.name!r}"
            )
        words = self._with_memory(vocabulary(self.params.environment, self.turns_shown))
        if (library := self.params.skills.library) is not None:
            alphabet = self.bundle.projection_of(self.params.environment).alphabet
            words = with_advice_words(words, alphabet, library.top_k)
        return build_scratch_policy(
            replace(words, state_words=self._context_words(words)),
            section.width,
            section.layers,
            section.heads,
            self.params.sampling.max_new_tokens,
            derive(self.params.seed, "weights") % 2**32,
        )

    def _with_memory(self, vocabulary: ScratchVocabulary) -> ScratchVocabulary:
        """The words with those of the memory, which also stand in every prompt.

        Raises:
            ParamsError: the environment has such words itself.
        """
        if not isinstance(self.memory, MemoryWords):
            return vocabulary
        if taken := set(vocabulary.words) & set(self.memory.words):
            raise ParamsError(
                f"policy.state_update: 'learned' has words of its own, and {self.params.environment.name} "
                f"has {min(taken)!r} too; take another"
            )
        return replace(
            vocabulary,
            words=(*vocabulary.words, *self.memory.words),
            state_words=vocabulary.state_words + self.memory.length,
        )

    def _context_words(self, vocabulary: ScratchVocabulary) -> int:
        """Words in the longest prompt of a scratch policy.

        Raises:
            ParamsError: prompts are to grow, and the rendering has no continuations.
        """
        first = vocabulary.state_words + self.params.policy.knowledge_words
        if not self.state_update.grows:
            return first
        if vocabulary.continuation_words is None:
            raise ParamsError(
                f"policy.state_update: {self.params.policy.state_update!r} needs a rendering with "
                f"continuations, which {self.params.policy.rendering!r} of "
                f"{self.params.environment.name} has not"
            )
        turn = self.params.sampling.max_new_tokens + vocabulary.continuation_words
        longest = first + (self.params.environment.max_steps - 1) * turn
        return max(first, min(longest, self.params.policy.context_tokens))

    def engine(self, policy: Policy, ranks: Ranks | None = None) -> Engine:
        """The engine that samples from a policy.

        Args:
            ranks: the processes that each make one; None is this process alone.

        Raises:
            UserError: what the engine needs is not installed, not started, or does not fit the policy.
        """
        longest = self.params.policy.context_tokens + self.params.sampling.max_new_tokens
        return self.params.engine.make(
            policy,
            EngineDemand(
                longest=min(longest, policy.context_length),
                slots=self.params.sampling.slots,
                ranks=ranks or Ranks(),
                growing=self.state_update.grows,
            ),
        )

    def prompter(self, policy: Policy) -> Prompter:
        """How prompts are made: within their budget, and within what the model can take."""
        room = policy.context_length - self.params.sampling.max_new_tokens
        budget = min(self.params.policy.context_tokens, room)
        return Prompter(rendering=self.rendering, encode=policy.encode, budget=budget, extend=policy.extend)

    def agent(
        self, policy: Policy, engine: Engine, sampling: Sampling, reflection: Reflection | None = None
    ) -> LanguageAgent:
        """The policy as an agent in the environment.

        Args:
            reflection: how it reflects on earlier attempts, where it is given any.
        """
        return LanguageAgent(
            prompter=self.prompter(policy),
            parse=self.parser,
            state_update=self.state_update,
            reward=self.reward,
            decode=policy.decode,
            engine=engine,
            sampling=sampling,
            reflection=reflection,
        )

    def explorer(self) -> RandomExplorer:
        """The random explorer in the environment."""
        return RandomExplorer(self.bundle.explorer_actions, self.reward)

    def collector(self, agent: Agent, sharing: int = 1, advise: Advise | None = None) -> Collector:
        """A collector for the environment, to be closed after use.

        Args:
            sharing: processes that each have such a collector on this machine.
            advise: what the agent is given in every episode; None is nothing.
        """
        return Collector(self._environments(sharing), agent, self.params.sampling.slots, advise=advise)

    def advice(self, skills: Callable[[int], Sequence[Skill]]) -> SkillAdvice | None:
        """How an agent is told skills of a library; None where the experiment has none.

        Args:
            skills: version of the weights that play to the library's skills.
        """
        library = self.params.skills.library
        if library is None:
            return None
        return SkillAdvice(
            skills=skills,
            retrieve=lookup(RETRIEVALS, library.retrieval, "skills.library.retrieval"),
            top_k=library.top_k,
            seed=self.params.seed,
            compact=self.params.policy.rendering == "compact",
        )

    def _environments(self, sharing: int) -> VectorEnvironment:
        make = partial(self.bundle.make, self.params.environment)
        match self.bundle.hosting:
            case "in_process":
                return SyncVectorEnv(make)
            case "workers":
                return WorkerVectorEnv(make, max(1, cores() // sharing))
            case "threads" if self.bundle.share is not None:
                shared = self.bundle.share(self.params.environment, self.params.sampling.slots)
                return ThreadVectorEnv(shared, shared.seconds, shared.close)
            case "threads":
                return ThreadVectorEnv(make)
