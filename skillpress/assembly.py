"""From an experiment's parameters to the parts that play and learn it.

The one place where names in params.yaml meet the registries; everything else is handed its parts.
"""

from __future__ import annotations

from functools import partial

from skillpress.agents.agent import LanguageAgent
from skillpress.agents.context import Prompter
from skillpress.agents.explorer import RandomExplorer
from skillpress.agents.parsing import PARSERS
from skillpress.agents.reward import OutcomeReward
from skillpress.agents.state_updates import STATE_UPDATES
from skillpress.environments import EnvironmentBundle, bundle
from skillpress.interface import Agent, Engine, Rendering, Sampling, StateUpdate
from skillpress.params import Params, ParamsError
from skillpress.policy import ENGINES, Policy
from skillpress.policy.pretrained import load_pretrained
from skillpress.policy.scratch import build_scratch_policy
from skillpress.rollout import Collector, InProcess, WorkerWorlds
from skillpress.rollout.crew import cores
from skillpress.seeds import derive

SCRATCH = "scratch"
"""``policy.model`` of a model made from nothing."""


def environment_of(params: Params) -> EnvironmentBundle:
    """The experiment's environment."""
    return bundle(params.environment.name)


def rendering_of(params: Params) -> Rendering:
    """How the experiment puts its environment into words.

    Raises:
        ParamsError: the environment has no such rendering.
    """
    known = environment_of(params).renderings
    if params.policy.rendering not in known:
        raise ParamsError(
            f"policy.rendering: is {params.policy.rendering!r}; {params.environment.name} has "
            f"{', '.join(known)}"
        )
    return known[params.policy.rendering](params.environment, turns_shown(params))


def turns_shown(params: Params) -> int:
    """How many past turns a prompt shows at most."""
    match params.policy.state_update:
        case "window":
            return params.policy.history
        case "concatenate":
            return params.environment.max_steps
        case "environment":
            return 0


def state_update_of(params: Params) -> StateUpdate:
    """What the experiment's agent keeps of its past."""
    return STATE_UPDATES[params.policy.state_update](turns_shown(params))


def starting_policy(params: Params) -> Policy:
    """The policy before any training: fresh weights, or the named pretrained model.

    Raises:
        ParamsError: a scratch model was asked for where the environment has no compact vocabulary.
        PolicyError: the named model cannot be loaded.
    """
    if params.policy.model != SCRATCH:
        return load_pretrained(params.policy.model, params.policy.dtype)
    vocabulary = environment_of(params).vocabulary
    if vocabulary is None or params.policy.rendering != "compact":
        raise ParamsError(
            f"policy.model: {SCRATCH!r} needs policy.rendering compact and an environment that has it, "
            f"got {params.policy.rendering!r} of {params.environment.name!r}"
        )
    return build_scratch_policy(
        vocabulary(params.environment, turns_shown(params)),
        params.policy.width,
        params.policy.layers,
        params.policy.heads,
        params.sampling.max_new_tokens,
        derive(params.seed, "weights") % 2**32,
    )


def engine_of(params: Params, policy: Policy) -> Engine:
    """The experiment's engine over a policy.

    Raises:
        ParamsError: no engine has this name.
    """
    if params.sampling.engine not in ENGINES:
        raise ParamsError(f"sampling.engine: is {params.sampling.engine!r}; allowed: {', '.join(ENGINES)}")
    return ENGINES[params.sampling.engine](policy)


def training_sampling(params: Params) -> Sampling:
    """How tokens are drawn while training: from all of them, or the importance ratios would be biased."""
    section = params.sampling
    return Sampling(section.temperature, max_new_tokens=section.max_new_tokens)


def evaluation_sampling(params: Params) -> Sampling:
    """How tokens are drawn while evaluating."""
    section = params.evaluation
    return Sampling(section.temperature, section.top_p, section.top_k, params.sampling.max_new_tokens)


def prompter_of(params: Params, policy: Policy) -> Prompter:
    """How the experiment makes prompts: within its budget, and within what the model can take."""
    room = policy.longest_text - params.sampling.max_new_tokens
    return Prompter(rendering_of(params), policy.encode, min(params.policy.context_tokens, room))


def language_agent(params: Params, policy: Policy, engine: Engine, sampling: Sampling) -> LanguageAgent:
    """The policy as an agent in the experiment's environment."""
    return LanguageAgent(
        prompter=prompter_of(params, policy),
        parse=PARSERS[rendering_of(params).parser],
        state_update=state_update_of(params),
        reward=reward_of(params),
        decode=policy.decode,
        engine=engine,
        sampling=sampling,
    )


def random_explorer(params: Params) -> RandomExplorer:
    """The random explorer in the experiment's environment."""
    return RandomExplorer(environment_of(params).explorer_actions, reward_of(params))


def reward_of(params: Params) -> OutcomeReward:
    """How the agent judges its own steps."""
    return OutcomeReward(params.reward.success, params.reward.invalid_penalty)


def collector_of(params: Params, agent: Agent, sharing: int = 1) -> Collector:
    """A collector for the experiment's environment, to be closed after use.

    Args:
        sharing: processes that each have such a collector on this machine.
    """
    bundle = environment_of(params)
    make = partial(bundle.make, params.environment)
    worlds = WorkerWorlds(make, max(1, cores() // sharing)) if bundle.separate_process else InProcess(make)
    return Collector(worlds, agent, params.sampling.slots)
