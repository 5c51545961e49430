"""Rules between the sections of params.yaml.

A section checks its own keys. A rule looks at several sections and raises a ``ValueError`` that names the
keys, their values and what would be right. Rules are checked in the order of ``RULES``, and the first broken
one is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from skillpress.core.errors import did_you_mean
from skillpress.core.parsed_action import FORMAT_MEASURE
from skillpress.core.storage import read_json
from skillpress.experiment.state_rules import STATE_RULES
from skillpress.rollouts.agents.parameters import (
    ASKED_FOR,
    RENDERINGS_OWN,
    SCRATCH,
)
from skillpress.training.loop.parameters import DEEPSPEED

if TYPE_CHECKING:
    from skillpress.experiment.params import Params

TAGGED_PARSERS = frozenset({"tagged", "lenient"})
"""Parsers that read the same answers, so one may replace the other."""


def check_rules(params: Params) -> None:
    """Check every rule."""
    for rule in RULES:
        rule(params)


# What the agent is shown, keeps and says.


def _the_environment_has_the_rendering(params: Params) -> None:
    environment = params.environment
    if not environment.has_rendering(params.policy.rendering):
        known = environment.renderings()
        raise ValueError(
            f"policy.rendering is {params.policy.rendering!r}; {environment.name} has "
            f"{', '.join(known)}{did_you_mean(params.policy.rendering, known)}"
        )
    environment.rendering(params.policy.rendering, params.policy.history)  # has all it needs
    if params.policy.from_scratch and (not params.policy.compact or not environment.offers("vocabulary")):
        raise ValueError(
            f"policy.model {SCRATCH!r} needs policy.rendering compact and an environment that has it, "
            f"got {params.policy.rendering!r} of {params.environment.name!r}"
        )


def _domain_words_can_become_tokens(params: Params) -> None:
    wanted = params.policy.domain_tokens
    if wanted and (params.policy.from_scratch or params.policy.compact):
        raise ValueError(
            f"policy.domain_tokens is {wanted}, must be [] with policy.model {SCRATCH!r} or "
            "policy.rendering 'compact', whose words are tokens already"
        )
    if len(set(wanted)) < len(wanted):
        raise ValueError(f"policy.domain_tokens is {wanted}, must name each kind once")
    if set(wanted) - {"markers"} and not params.environment.offers("domain_words"):
        raise ValueError(
            f"policy.domain_tokens is {wanted}: {params.environment.name} lists no domain words; "
            "allowed: markers"
        )


def _the_parser_reads_what_the_rendering_asks_for(params: Params) -> None:
    rendering, parser = params.policy.rendering, params.policy.parser
    environment = params.environment
    if parser == RENDERINGS_OWN or not environment.has_rendering(rendering):
        return
    own = environment.rendering(rendering, params.policy.history).parser
    if parser in ASKED_FOR and own == "tagged" and environment.answer_forms:
        return
    if parser != own and not {parser, own} <= TAGGED_PARSERS:
        raise ValueError(
            f"policy.parser is {parser!r}, but policy.rendering {rendering!r} asks for answers that "
            f"{own!r} reads; allowed: {RENDERINGS_OWN}, "
            f"{', '.join(sorted(TAGGED_PARSERS) if own in TAGGED_PARSERS else [own])}"
        )


def _prompts_have_room_for_what_is_given(params: Params) -> None:
    words, compact = params.policy.knowledge_words, params.policy.compact
    given = params.experience.gives_knowledge
    shown = isinstance(params.environment.skills, str) and not params.environment.offers("make_agent")
    for name, added in (("skills.library", params.skills.library is not None), ("environment.skills", shown)):
        if given and added:
            raise ValueError(
                f"experience {params.experience.name} and {name} cannot be combined: it trains on prompts "
                f"without added knowledge, and {name} adds some to every prompt; set {name} to null, or "
                "experience to none"
            )
    if shown and compact:
        raise ValueError(
            "environment.skills gives sentences, which policy.rendering 'compact' cannot show; use rendering "
            "text or paper, or set skills to null"
        )
    if given and compact and not words:
        raise ValueError(
            "policy.knowledge_words is 0, must be at least 1 with policy.rendering compact: experience "
            f"{params.experience.name} puts words above the prompts of second attempts"
        )
    if words and not (given and compact):
        raise ValueError(
            f"policy.knowledge_words is {words}, must be 0: "
            + ("prompts of text reserve no words" if given else "nothing adds knowledge to prompts")
        )


def _the_prompt_has_words_for_the_library(params: Params) -> None:
    library = params.skills.library
    if library is None or not params.policy.compact:
        return
    for name, given in (("teacher", library.teacher), ("folder", library.folder)):
        if given is not None:
            raise ValueError(
                f"skills.library.{name} gives sentences, which policy.rendering 'compact' cannot show; "
                f"use rendering text or paper, or set {name} to null"
            )


def _the_environment_states_what_is_rewarded(params: Params) -> None:
    stated = params.environment.measures
    if stated is None:
        return
    known = (FORMAT_MEASURE, *stated)
    for name in params.reward.measures:
        if name not in known:
            raise ValueError(
                f"reward.measures: {name!r} is not measured by {params.environment.name}; allowed: "
                f"{', '.join(known)}{did_you_mean(name, known)}"
            )


# What imitation learns from.


def _there_is_something_to_imitate(params: Params) -> None:
    section = params.environment
    if params.imitation.demonstrations and (not section.has_oracle or section.offers("make_reader")):
        raise ValueError(
            f"imitation.demonstrations is {params.imitation.demonstrations}, must be 0: "
            f"{params.environment.name} has no demonstrations of this section's tasks"
        )
    if params.imitation.thoughts is not None and params.policy.shows_own_words:
        raise ValueError(
            f"imitation.thoughts is {params.imitation.thoughts!r}, must be null: its prompts cannot have "
            f"the policy's own words, which policy.state_update {params.policy.state_update!r} needs"
        )


def _low_rank_changes_go_on(params: Params) -> None:
    imitated, trained = params.imitation.lora, params.training.lora
    if imitated is None or imitated.then != "continue":
        return
    if trained is None or (trained.rank, trained.alpha) != (imitated.rank, imitated.alpha):
        found = "null" if trained is None else f"{{rank: {trained.rank}, alpha: {trained.alpha}}}"
        raise ValueError(
            f"imitation.lora.then is continue, but training.lora is {found}: must be "
            f"{{rank: {imitated.rank}, alpha: {imitated.alpha}}}, as in imitation; or make then merge"
        )


def _weights_of_4_bits_stay(params: Params) -> None:
    quantised, imitation, training = params.policy.quantised, params.imitation, params.training
    if quantised is None:
        return
    if training.lora is None:
        raise ValueError(
            f"policy.quantised is {quantised}, whose weights cannot be trained: training.lora is null, must "
            "be {rank, alpha}, or policy.quantised null"
        )
    if imitation.wanted and (imitation.lora is None or imitation.lora.then != "continue"):
        found = "null" if imitation.lora is None else f"one whose then is {imitation.lora.then}"
        raise ValueError(
            f"policy.quantised is {quantised}, to which imitated weights would be rounded: imitation.lora is "
            f"{found}, must be {{rank, alpha, then: continue}}, or policy.quantised null"
        )
    stage = read_json(DEEPSPEED / f"{training.deepspeed}.json").get("zero_optimization", {}).get("stage", 0)
    if stage == 3:
        raise ValueError(
            f"policy.quantised is {quantised}, which ZeRO stage 3 cannot divide among processes: "
            f"training.deepspeed is {training.deepspeed}, must be one of stage 0 to 2"
        )


# Dictionaries.


def _the_search_suits_the_training(params: Params) -> None:
    if params.skills.search == "exact" and params.training.steps:
        raise ValueError(
            "skills.search exact may take a minute per dictionary, and what it finds by then depends on "
            "the machine: set training.steps to 0 with it, or train with another skills.search"
        )
    if params.skills.corpus == "batch_accepts" and params.skills.search != "greedy":
        raise ValueError(
            f"skills.corpus batch_accepts needs skills.search greedy, which ranks phrases; with "
            f"{params.skills.search!r} use algorithm_1"
        )


# How training goes on.


def _groups_are_shared_evenly(params: Params) -> None:
    if params.training.tasks_per_step % params.processes:
        raise ValueError(
            f"training.tasks_per_step {params.training.tasks_per_step} must be a multiple of processes "
            f"({params.processes})"
        )


def _training_suits_the_algorithm(params: Params) -> None:
    algorithm, training = params.algorithm, params.training
    if algorithm.one_update_per_step and (training.minibatches, training.minibatch_size) != (1, 0):
        raise ValueError(
            f"algorithm {algorithm.name} learns only from the policy that sampled: "
            f"training.minibatches is {training.minibatches}, must be 1, and training.minibatch_size "
            f"{training.minibatch_size}, must be 0"
        )
    if algorithm.one_update_per_step and training.lag:
        raise ValueError(
            f"algorithm {algorithm.name} learns only from the policy that sampled: training.lag "
            f"is {training.lag}, must be 0"
        )
    if training.rollouts_per_task < algorithm.smallest_group:
        raise ValueError(
            f"algorithm {algorithm.name} compares a task's rollouts: training.rollouts_per_task is "
            f"{training.rollouts_per_task}, must be at least {algorithm.smallest_group}"
        )
    steps, warmup = params.training.steps, params.training.warmup_steps
    if steps and warmup >= steps:
        raise ValueError(
            f"training.warmup_steps is {warmup}, must be less than training.steps ({steps}): no step "
            "would have the learning rate that training.learning_rate says"
        )


def _rollouts_can_be_of_older_weights(params: Params) -> None:
    training, replay = params.training, params.training.replay
    if training.lag and not params.engine.plays_beside_updates:
        raise ValueError(
            f"training.lag is {training.lag}, but engine {params.engine.name} cannot sample while the "
            "learner updates: use engine local or server, or lag 0"
        )
    if training.lag and training.checkpoint_every == 1:
        raise ValueError(
            f"training.checkpoint_every is 1, must be at least 2 with training.lag {training.lag}, because "
            "the step after a checkpoint is on-policy; or set lag to 0"
        )
    if training.lag >= training.checkpoint_every:
        raise ValueError(
            f"training.lag is {training.lag}, must be smaller than training.checkpoint_every "
            f"({training.checkpoint_every}), because rollouts cannot cross a checkpoint: make lag at most "
            f"{training.checkpoint_every - 1}, or checkpoint_every at least {training.lag + 1}"
        )
    if replay is None:
        return
    if not params.algorithm.corrects_staleness:
        raise ValueError(
            f"algorithm {params.algorithm.name} does not correct for rollouts of older weights: "
            "training.replay must be null, or the algorithm one with ratios to the weights that sampled"
        )
    if replay.staleness <= training.lag:
        raise ValueError(
            f"training.replay.staleness is {replay.staleness}: with training.lag {training.lag} a group's "
            f"weights are up to {training.lag + 1} steps old when it can be replayed first, so make it at "
            f"least {training.lag + 1}, or lag 0"
        )
    most = (replay.staleness - training.lag) * training.tasks_per_step
    if replay.groups > most:
        raise ValueError(
            f"training.replay.groups is {replay.groups}, but at most {most} groups are young enough "
            "(staleness, less the lag, times tasks_per_step): lower it, or raise staleness"
        )


def _there_are_tasks_to_choose_and_probe_with(params: Params) -> None:
    if params.training.keep == "best" and not params.tasks.validation:
        raise ValueError("training.keep best needs tasks.validation of at least 1, got 0")
    tasks, probe = params.tasks, params.training.probe
    if tasks.unseen and (why := params.environment.why_nothing_unseen):
        raise ValueError(f"tasks.unseen is {tasks.unseen}, must be 0: {why}")
    if probe is not None and probe.tasks > tasks.train:
        raise ValueError(
            f"training.probe.tasks is {probe.tasks}, must be at most tasks.train ({tasks.train})"
        )
    if probe is not None and 0 < tasks.unseen < probe.tasks:
        raise ValueError(
            f"training.probe.tasks is {probe.tasks}, must be at most tasks.unseen ({tasks.unseen}), "
            "which may be 0 to probe only with training tasks"
        )


def _some_task_can_be_kept(params: Params) -> None:
    keep, played = params.tasks.keep, params.rollouts.per_task
    if keep is None or any(keep.keeps(wins, played) for wins in range(played + 1)):
        return
    raise ValueError(
        f"tasks.keep is {keep.at_least} to {keep.at_most} and rollouts.per_task {played}, so the only pass "
        f"rates are multiples of 1/{played}: no training task would be left; raise rollouts.per_task, or "
        "widen tasks.keep"
    )


def _other_machines_can_play_it(params: Params) -> None:
    environment = params.environment
    if not params.workers.urls:
        return
    if environment.hosting == "in_process":
        raise ValueError(
            f"workers.urls names {len(params.workers.urls)} machines, must be []: a step of "
            f"{environment.name} takes less time than a message to them"
        )
    if environment.offers("make_agent"):
        raise ValueError(
            f"workers.urls names {len(params.workers.urls)} machines, must be []: they play only text "
            f"actions, and {environment.name} has actions of its own"
        )


RULES: tuple[Callable[[Params], None], ...] = (
    _groups_are_shared_evenly,
    _the_search_suits_the_training,
    _the_prompt_has_words_for_the_library,
    _there_are_tasks_to_choose_and_probe_with,
    _some_task_can_be_kept,
    _the_environment_has_the_rendering,
    _domain_words_can_become_tokens,
    _there_is_something_to_imitate,
    _low_rank_changes_go_on,
    _weights_of_4_bits_stay,
    _the_environment_states_what_is_rewarded,
    _the_parser_reads_what_the_rendering_asks_for,
    *STATE_RULES,
    _training_suits_the_algorithm,
    _prompts_have_room_for_what_is_given,
    _rollouts_can_be_of_older_weights,
    _other_machines_can_play_it,
)
