"""An experiment's parts, made from its parameters.

Each section makes the part that it describes; here they are combined. Only this file reads all parameters.
Everything else receives the parts it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from skillpress.core.engine import Engine, Sampling
from skillpress.core.errors import ParamsError
from skillpress.core.interface import Agent, Reflection, Rendering, StateUpdate
from skillpress.core.parsed_action import Parser
from skillpress.core.waiting import waiting
from skillpress.environments.played import packages_of, played_by
from skillpress.environments.section import PROMPT_FILE, AgentParts
from skillpress.environments.text.answer_forms import FORMS, Answering
from skillpress.experiment.params import Params
from skillpress.models.engines.parameters import EngineDemand
from skillpress.rollouts.agents.agent import LanguageAgent
from skillpress.rollouts.agents.context import Prompter
from skillpress.rollouts.agents.explorer import RandomExplorer
from skillpress.rollouts.agents.learned_memory import Remembering
from skillpress.rollouts.agents.parameters import parser_called
from skillpress.rollouts.agents.reward import OutcomeReward
from skillpress.rollouts.agents.store.facts import AsksForFacts
from skillpress.rollouts.agents.structured_parsing import MARKERS
from skillpress.rollouts.collection import (
    Collector,
    SyncVectorEnv,
    ThreadVectorEnv,
    VectorEnvironment,
    WorkerVectorEnv,
)
from skillpress.rollouts.collection.collector import Advise
from skillpress.rollouts.collection.requests import EpisodeRequest
from skillpress.rollouts.workers import cores
from skillpress.skills.library.advice import SkillAdvice
from skillpress.skills.library.files import as_text
from skillpress.skills.library.library import Skill

if TYPE_CHECKING:  # a model behind a URL plays without torch
    from skillpress.models.policy import Policy
    from skillpress.rollouts.remote.pool import WorkersPool
    from skillpress.rollouts.workers.distributed import Ranks


@dataclass(frozen=True)
class Experiment:
    """The experiment that one params file describes."""

    params: Params

    @cached_property
    def rendering(self) -> Rendering:
        """How the environment is put into words.

        Raises:
            ParamsError: the environment has no such rendering.
        """
        environment, name = self.params.environment, self.params.policy.rendering
        if not environment.has_rendering(name):
            raise ParamsError(
                f"policy.rendering: is {name!r}; {environment.name} has {', '.join(environment.renderings())}"
            )
        found = environment.rendering(name, self.params.policy.turns_shown)
        parser = self.params.policy.parser_name(found)
        if parser in FORMS and parser != found.parser:
            asks = not name.endswith(PROMPT_FILE)
            found = Answering(found, parser, parser_called(found.parser), asks)
        memory, store = self.params.policy.make_memory(), self.params.policy.store
        if store is not None and "facts" in store.writes:
            return AsksForFacts(found)
        return found if memory is None else Remembering(found, memory)

    @cached_property
    def domain_words(self) -> tuple[str, ...]:
        """The words that ``policy.domain_tokens`` makes into tokens."""
        section, environment = self.params.policy, self.params.environment
        words: dict[str, Sequence[str]] = {"markers": MARKERS.get(section.parser_name(self.rendering), ())}
        if environment.offers("domain_words"):
            words |= environment.domain_words()
        return tuple(dict.fromkeys(word for kind in section.domain_tokens for word in words[kind]))

    @cached_property
    def parser(self) -> Parser:
        """The parser of responses: the rendering's own, or the one that ``policy.parser`` names."""
        return self.params.policy.make_parser(self.rendering)

    @cached_property
    def state_update(self) -> StateUpdate:
        """How the agent's state includes its past."""
        return self.params.policy.make_state_update()

    @cached_property
    def reward(self) -> OutcomeReward:
        """How the agent judges its own steps."""
        return self.params.reward.make()

    @cached_property
    def training_sampling(self) -> Sampling:
        """How tokens are drawn while training: from the whole vocabulary, or ratios would be biased."""
        return self.params.sampling.make()

    @cached_property
    def evaluation_sampling(self) -> Sampling:
        """How tokens are drawn while evaluating."""
        return self.params.evaluation.make(self.params.sampling.max_new_tokens)

    def starting_policy(self) -> Policy:
        """The policy before any training: fresh weights, or the named pretrained model.

        Raises:
            ParamsError: a scratch model was asked for where the environment has no compact vocabulary.
            PolicyError: the named model cannot be loaded, or its attention cannot be computed here.
        """
        from skillpress.experiment.scratch import scratch_policy
        from skillpress.models.policy.attention import use_attention
        from skillpress.models.policy.domain_tokens import with_tokens
        from skillpress.models.policy.nf4 import round_to_nf4
        from skillpress.models.policy.pretrained import load_pretrained

        section = self.params.policy
        if section.from_scratch:
            policy = scratch_policy(self.params)
        else:
            policy = with_tokens(load_pretrained(section.model, section.dtype), self.domain_words)
        if section.quantised is not None:
            round_to_nf4(policy.model)
        use_attention(policy.model, section.attention)
        return policy

    def engine(self, policy: Policy, ranks: Ranks | None = None) -> Engine:
        """The engine that samples from a policy, in each of these ranks; None means this process alone.

        Raises:
            UserError: a requirement of the engine is not installed, not started, or does not fit the policy.
        """
        from skillpress.rollouts.workers.distributed import Ranks

        longest = self.params.policy.context_tokens + self.params.sampling.max_new_tokens
        demand = EngineDemand(
            longest=min(longest, policy.context_length),
            slots=self.params.sampling.slots,
            ranks=ranks or Ranks(),
            growing=self.state_update.grows,
        )
        with waiting(f"waiting for the engine {self.params.engine.name}"):
            return self.params.engine.make(policy, demand)

    def prompter(self, policy: Policy) -> Prompter:
        """How prompts are made, within their budget and within the model's context."""
        room = policy.context_length - self.params.sampling.max_new_tokens
        budget = min(self.params.policy.context_tokens, room)
        return Prompter(rendering=self.rendering, encode=policy.encode, budget=budget, extend=policy.extend)

    def agent(
        self, policy: Policy, engine: Engine, sampling: Sampling, reflection: Reflection | None = None
    ) -> Agent:
        """The policy as an agent in the environment."""
        if self.params.environment.offers("make_agent"):
            parts = AgentParts(
                encode_request=policy.encode_request,
                decode=policy.decode,
                budget=self.prompter(policy).budget,
                reward=self.reward,
                engine=engine,
                sampling=sampling,
            )
            return self.params.environment.make_agent(parts)
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
        return RandomExplorer(self.params.environment.explorer_actions, self.reward)

    def collector(self, agent: Agent, sharing: int = 1, library: SkillAdvice | None = None) -> Collector:
        """A collector for the environment, to be closed after use.

        Args:
            sharing: number of processes on this machine with such a collector.
            library: gives the agent skills of a library; None gives none.
        """
        return Collector(
            self._environments(sharing, agent.lockstep),
            agent,
            self.params.sampling.slots,
            advise=self._advise(library),
            project=self.params.environment.make_projection(),
            gather_seconds=self.params.environment.gathering,
        )

    def _advise(self, library: SkillAdvice | None) -> Advise | None:
        """What an agent reads above its prompts: a library's skills, then those that its episode is given.
        None for a program, which finds these as files."""
        environment = self.params.environment
        if environment.offers("make_agent"):
            return None
        given = environment.given_skills()

        def told(request: EpisodeRequest, observation: str, version: int) -> str:
            skills = as_text(given if request.skills is None else request.skills)
            advice = "" if library is None else library(request.task, observation, version)
            return "\n".join(filter(None, (advice, skills)))

        return told

    def advice(self, skills: Callable[[int], Sequence[Skill]]) -> SkillAdvice | None:
        """How an agent receives a library's skills, which follow from the version of the playing weights;
        None if the experiment has no library."""
        library = self.params.skills.library
        if library is None:
            return None
        return SkillAdvice(
            skills=skills,
            retrieve=library.make_retrieval(),
            top_k=library.top_k,
            seed=self.params.seed,
            compact=self.params.policy.compact,
        )

    def _environments(self, sharing: int, lockstep: bool) -> VectorEnvironment:
        environment = self.params.environment
        if self.params.workers.urls:
            pool = self._workers(lockstep)
            return ThreadVectorEnv(pool, pool.seconds, pool.close)
        match environment.hosting:
            case "in_process":
                return SyncVectorEnv(environment.make)
            case "workers":
                return WorkerVectorEnv(environment.make, max(1, cores() // sharing))
            case "threads" if environment.offers("make_shared"):
                shared = environment.make_shared(self.params.sampling.slots)
                return ThreadVectorEnv(shared, shared.seconds, shared.close)
            case "threads":
                return ThreadVectorEnv(environment.make)

    def _workers(self, lockstep: bool) -> WorkersPool:
        from skillpress.rollouts.remote.pool import WorkersPool  # with websockets, which few experiments need
        from skillpress.rollouts.remote.slot import key_of_workers

        environment = self.params.environment
        return WorkersPool(
            self.params.workers.urls,
            key_of_workers(),
            played=played_by(environment),
            packages=packages_of(environment),
            processes=self.params.processes,
            lockstep=lockstep,
            strict=environment.hosting == "workers",
            wait_seconds=self.params.workers.wait_seconds,
        )
