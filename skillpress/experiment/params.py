"""Every parameter of an experiment, one section of params.yaml to one class.

A params file is read whole and checked before any work is done: unknown keys, wrong types, values
out of range and combinations that cannot work are refused with the key's path, the value and what
is allowed. What each key means stands beside it in params.yaml.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    field_validator,
    model_validator,
)

from skillpress.core.errors import ParamsError, UserError, did_you_mean
from skillpress.core.interface import FORMAT_MEASURE
from skillpress.core.registry import (
    CLOSURES,
    CORPORA,
    ENVIRONMENTS,
    PARSERS,
    RETRIEVALS,
    SEARCHES,
    SHAPINGS,
    STATE_UPDATES,
    TEACHERS,
    named,
)
from skillpress.core.trajectory import Credit
from skillpress.core.yaml_files import read_yaml_file
from skillpress.environments import EnvironmentParameters, bundle
from skillpress.experiment.params_mistakes import mistakes, unwritable
from skillpress.learn.algorithms.parameters import AlgorithmParameters, algorithm_parameters
from skillpress.learn.experience.parameters import ExperienceParameters, experience_parameters
from skillpress.models.engines.parameters import EngineParameters, engine_parameters

SCRATCH = "scratch"
"""``policy.model`` of a model made from nothing."""
RENDERINGS_OWN = "rendering"
"""``policy.parser`` of the parser that the rendering itself names."""
TAGGED_PARSERS = frozenset({"tagged", "lenient"})
"""They read the same answers, so one may stand in for the other."""

ASKED_FOR = frozenset({"json", "xml", "planned"})
"""Parsers whose answers a prompt can ask for in place of tags."""
NOTES = frozenset({"observations", "notepad", "summarize"})
"""The state updates that write notes."""

OWN_WORDS = frozenset({"concatenate", "summarize", "learned"})
"""The state updates whose prompts hold what the policy itself has written."""

MOST_COUNTED = 2**31 - 1
"""Nothing is counted beyond."""
PositiveInt = Annotated[int, Field(ge=1, le=MOST_COUNTED)]
NonNegativeInt = Annotated[int, Field(ge=0, le=MOST_COUNTED)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Decay = Annotated[float, Field(ge=0, lt=1)]
Mass = Annotated[float, Field(gt=0, le=1)]


DEEPSPEED = Path(__file__).parents[2] / "infra" / "deepspeed"
"""The DeepSpeed configurations that ``training.deepspeed`` names."""


def _registered(names: Collection[str]) -> AfterValidator:
    """Refuses a name that is not among these, before any work is done."""

    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"allowed: {', '.join(names)}{did_you_mean(name, names)}")
        return name

    return AfterValidator(check)


class Section(BaseModel):
    """A section: frozen, strictly typed, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class TaskParameters(Section):
    train: PositiveInt
    validation: NonNegativeInt
    test: PositiveInt
    unseen: NonNegativeInt = 0
    """Of a kind that no other split has; probes play some of them."""


class MemoryParameters(Section):
    length: PositiveInt
    alphabet: NonNegativeInt


class PolicyParameters(Section):
    model: Annotated[str, Field(min_length=1)]
    rendering: str
    domain_tokens: list[Literal["markers", "actions", "entities"]]
    parser: Annotated[str, _registered((RENDERINGS_OWN, *PARSERS))]
    history: NonNegativeInt
    state_update: Annotated[str, _registered(STATE_UPDATES)]
    memory: MemoryParameters | None
    knowledge_words: NonNegativeInt
    context_tokens: PositiveInt
    width: PositiveInt
    layers: PositiveInt
    heads: PositiveInt
    dtype: Literal["float32", "bfloat16"]

    @model_validator(mode="after")
    def _heads_divide_width(self) -> PolicyParameters:
        if self.width % (2 * self.heads):
            raise ValueError(f"width {self.width} must be a multiple of 2 x heads ({2 * self.heads})")
        return self


class ImitationParameters(Section):
    demonstrations: NonNegativeInt
    thoughts: Annotated[str, Field(min_length=1)] | None
    detour_rate: Fraction
    batch_size: PositiveInt
    optimizer: Literal["adamw", "muon"] = "adamw"
    """What moves the weights; Muon needs fewer updates (``imitation/optimizers.py``)."""
    learning_rate: Positive
    warmup_updates: NonNegativeInt = 50
    """Updates in which the learning rate rises, in a line; never more than a tenth of all of them."""
    epochs: PositiveInt


class SamplingParameters(Section):
    temperature: Positive
    max_new_tokens: PositiveInt
    slots: PositiveInt


class RolloutParameters(Section):
    tasks: PositiveInt
    per_task: PositiveInt


class TeacherParameters(Section):
    """Who writes the library's skills."""

    name: Annotated[str, _registered(TEACHERS)]
    url: Annotated[str, Field(min_length=1)]
    """Base of a chat-completions interface, as in http://127.0.0.1:8000/v1."""
    model: str
    """What the server calls the model; empty for one that offers a single model."""
    key_variable: str
    """Environment variable that holds the server's key; empty sends none."""
    max_new_tokens: PositiveInt
    """Tokens of an answer at most."""
    omit: list[str] = []
    """Parameters of the sampling that the server is not sent, such as ``seed``."""


class LibraryParameters(Section):
    """``skills.library``."""

    retrieval: Annotated[str, _registered(RETRIEVALS)]
    """Which skills a prompt shows."""
    top_k: PositiveInt
    """How many, at most."""
    every: PositiveInt
    """Training steps from one evolution of the library to the next."""
    new: PositiveInt
    """Skills that one adds at most: so many general ones, and so many for each class of tasks that failed."""
    teacher: TeacherParameters | None
    """None takes phrases of the dictionary."""


class SkillParameters(Section):
    max_phrase_length: Annotated[int, Field(ge=1, le=16)]
    buffer: NonNegativeInt
    corpus: Annotated[str, _registered(CORPORA)]
    search: Annotated[str, _registered(SEARCHES)]
    closure: Annotated[str, _registered(CLOSURES)]
    library: LibraryParameters | None


class MeasureParameters(Section):
    weight: float
    credit: Credit


class RewardParameters(Section):
    success: Positive
    invalid_penalty: NonNegative
    invalid_counts: Literal["any", "format"]
    invalid_credit: Credit
    measures: dict[str, MeasureParameters]
    shaping: Annotated[str, _registered(SHAPINGS)]
    shaping_credit: Credit
    efficiency: NonNegative


class LoraParameters(Section):
    rank: PositiveInt
    alpha: PositiveInt

    def libraries(self) -> dict[str, str]:
        """Name to version of what experiments without it do without.

        Raises:
            UserError: it is not installed.
        """
        try:
            return {"peft": version("peft")}
        except PackageNotFoundError:
            raise UserError(
                "training.lora: is set, but the package peft is not installed here; "
                "pip install --constraint constraints.txt -e '.[lora]', or set training.lora to null"
            ) from None


class ReplayParameters(Section):
    groups: PositiveInt
    staleness: PositiveInt


class ProbeParameters(Section):
    every: PositiveInt
    tasks: PositiveInt


class TrainingParameters(Section):
    steps: NonNegativeInt
    tasks_per_step: PositiveInt
    rollouts_per_task: PositiveInt
    learning_rate: Positive
    weight_decay: NonNegative
    betas: Annotated[list[Decay], Field(min_length=2, max_length=2)]
    warmup_steps: NonNegativeInt
    gradient_clipping: NonNegative
    minibatches: PositiveInt
    minibatch_size: NonNegativeInt
    lag: Literal[0, 1]
    replay: ReplayParameters | None
    deepspeed: Annotated[str, _registered(sorted(p.stem for p in DEEPSPEED.glob("*.json")))]
    microbatch_tokens: PositiveInt
    mismatch_limit: Positive
    gradient_checkpointing: bool
    lora: LoraParameters | None
    checkpoint_every: PositiveInt
    keep: Literal["last", "best"]
    probe: ProbeParameters | None
    timeout: Positive


class EvaluationParameters(Section):
    runs: PositiveInt
    votes: PositiveInt
    temperature: NonNegative
    top_p: Mass
    top_k: NonNegativeInt

    @field_validator("votes")
    @classmethod
    def _no_ties(cls, votes: int) -> int:
        if votes % 2 == 0:
            raise ValueError("must be odd, so that a majority vote cannot tie")
        return votes


class Params(Section):
    """A whole experiment."""

    seed: Seed
    processes: PositiveInt
    environment: SerializeAsAny[EnvironmentParameters]
    tasks: TaskParameters
    policy: PolicyParameters
    imitation: ImitationParameters
    engine: SerializeAsAny[EngineParameters]
    sampling: SamplingParameters
    rollouts: RolloutParameters
    skills: SkillParameters
    reward: RewardParameters
    algorithm: SerializeAsAny[AlgorithmParameters]
    experience: SerializeAsAny[ExperienceParameters]
    training: TrainingParameters
    evaluation: EvaluationParameters

    @model_validator(mode="after")
    def _groups_are_shared_evenly(self) -> Params:
        if self.training.tasks_per_step % self.processes:
            raise ValueError(
                f"training.tasks_per_step {self.training.tasks_per_step} must be a multiple of processes "
                f"({self.processes})"
            )
        return self

    @model_validator(mode="after")
    def _training_fits_a_dictionary_every_step(self) -> Params:
        if self.skills.search == "exact" and self.training.steps:
            raise ValueError(
                "skills.search exact may take a minute per dictionary, and what it finds by then depends on "
                "the machine: set training.steps to 0 with it, or train with another search"
            )
        return self

    @model_validator(mode="after")
    def _the_search_ranks_pairs(self) -> Params:
        if self.skills.corpus == "batch_accepts" and self.skills.search != "greedy":
            raise ValueError(
                f"skills.corpus batch_accepts is a rule for the ranking of skills.search greedy; with "
                f"{self.skills.search!r} take algorithm_1"
            )
        return self

    @model_validator(mode="after")
    def _the_prompt_has_words_for_the_library(self) -> Params:
        library = self.skills.library
        if library is not None and library.teacher is not None and self.policy.rendering == "compact":
            raise ValueError(
                "skills.library.teacher writes sentences, which policy.rendering 'compact' has no words for; "
                "take rendering text or paper, or teacher null"
            )
        return self

    @model_validator(mode="after")
    def _the_best_checkpoint_has_tasks_to_be_found_on(self) -> Params:
        if self.training.keep == "best" and not self.tasks.validation:
            raise ValueError("training.keep best needs tasks.validation of at least 1, got 0")
        return self

    @model_validator(mode="after")
    def _there_are_tasks_to_probe_with(self) -> Params:
        tasks, probe = self.tasks, self.training.probe
        if tasks.unseen and (why := self.environment.why_nothing_unseen):
            raise ValueError(f"tasks.unseen is {tasks.unseen}, must be 0: {why}")
        if probe is not None and probe.tasks > tasks.train:
            raise ValueError(
                f"training.probe.tasks is {probe.tasks}, must be at most tasks.train ({tasks.train})"
            )
        if probe is not None and 0 < tasks.unseen < probe.tasks:
            raise ValueError(
                f"training.probe.tasks is {probe.tasks}, must be at most tasks.unseen ({tasks.unseen}), "
                "which may be 0 to probe with training tasks alone"
            )
        return self

    @model_validator(mode="after")
    def _the_environment_has_the_rendering(self) -> Params:
        found = bundle(self.environment.name)
        if self.policy.rendering not in found.renderings:
            raise ValueError(
                f"policy.rendering is {self.policy.rendering!r}; {self.environment.name} has "
                f"{', '.join(found.renderings)}{did_you_mean(self.policy.rendering, found.renderings)}"
            )
        found.renderings[self.policy.rendering](self.environment, self.policy.history)  # has all it needs
        if self.policy.model == SCRATCH and (self.policy.rendering != "compact" or found.vocabulary is None):
            raise ValueError(
                f"policy.model {SCRATCH!r} needs policy.rendering compact and an environment that has it, "
                f"got {self.policy.rendering!r} of {self.environment.name!r}"
            )
        return self

    @model_validator(mode="after")
    def _domain_words_can_become_tokens(self) -> Params:
        wanted = self.policy.domain_tokens
        if wanted and (self.policy.model == SCRATCH or self.policy.rendering == "compact"):
            raise ValueError(
                f"policy.domain_tokens is {wanted}, must be [] with policy.model {SCRATCH!r} or "
                "policy.rendering 'compact', whose words are tokens already"
            )
        if len(set(wanted)) < len(wanted):
            raise ValueError(f"policy.domain_tokens is {wanted}, must name each kind once")
        if set(wanted) - {"markers"} and bundle(self.environment.name).domain_words is None:
            raise ValueError(
                f"policy.domain_tokens is {wanted}: nobody has listed the words of {self.environment.name}; "
                "allowed: markers"
            )
        return self

    @model_validator(mode="after")
    def _there_is_somebody_to_imitate(self) -> Params:
        if self.imitation.demonstrations and not self.environment.has_oracle:
            raise ValueError(
                f"imitation.demonstrations is {self.imitation.demonstrations}, must be 0: nobody shows how "
                f"this section's tasks of {self.environment.name} are done, so there is nothing to imitate"
            )
        return self

    @model_validator(mode="after")
    def _thoughts_stand_behind_prompts_that_are_made_anew(self) -> Params:
        if self.imitation.thoughts is not None and self.policy.state_update in OWN_WORDS:
            raise ValueError(
                f"imitation.thoughts is {self.imitation.thoughts!r}, must be null: its prompts hold nothing "
                f"that the policy wrote, and those of policy.state_update {self.policy.state_update!r} do"
            )
        return self

    @model_validator(mode="after")
    def _the_environment_states_what_is_rewarded(self) -> Params:
        known = (FORMAT_MEASURE, *bundle(self.environment.name).measures)
        for name in self.reward.measures:
            if name not in known:
                raise ValueError(
                    f"reward.measures: {name!r} is nothing that {self.environment.name} measures; allowed: "
                    f"{', '.join(known)}{did_you_mean(name, known)}"
                )
        return self

    @model_validator(mode="after")
    def _the_parser_reads_what_the_rendering_asks_for(self) -> Params:
        rendering, parser = self.policy.rendering, self.policy.parser
        renderings = bundle(self.environment.name).renderings
        if parser == RENDERINGS_OWN or rendering not in renderings:
            return self
        own = renderings[rendering](self.environment, self.policy.history).parser
        if parser in ASKED_FOR and own == "tagged" and bundle(self.environment.name).answer_forms:
            return self
        if parser != own and not {parser, own} <= TAGGED_PARSERS:
            raise ValueError(
                f"policy.parser is {parser!r}, but policy.rendering {rendering!r} asks for answers that "
                f"{own!r} reads; allowed: {RENDERINGS_OWN}, "
                f"{', '.join(sorted(TAGGED_PARSERS) if own in TAGGED_PARSERS else [own])}"
            )
        return self

    @model_validator(mode="after")
    def _notes_are_shown(self) -> Params:
        update = self.policy.state_update
        if update in NOTES and self.policy.rendering == "compact":
            raise ValueError(
                f"policy.state_update {update!r} writes notes, which policy.rendering 'compact' has no "
                "words for; take rendering text or paper"
            )
        if update == "notepad" and not bundle(self.environment.name).notepad:
            raise ValueError(
                f"policy.state_update 'notepad' shows the environment's notepad, and {self.environment.name} "
                "has none; take observations, which writes notes of its own"
            )
        return self

    @model_validator(mode="after")
    def _a_learned_state_update_has_its_memory(self) -> Params:
        policy, memory = self.policy, self.policy.memory
        if (policy.state_update == "learned") != (memory is not None):
            raise ValueError(
                f"policy.memory is {'set' if memory else 'null'} and policy.state_update "
                f"{policy.state_update!r}: 'learned' needs it ({{length: 2, alphabet: 8}}), no other does"
            )
        if memory is None:
            return self
        if policy.rendering != "compact":
            if memory.alphabet:
                raise ValueError(
                    f"policy.memory.alphabet is {memory.alphabet}, must be 0 with policy.rendering "
                    f"{policy.rendering!r}: its memory is text of policy.memory.length characters"
                )
            if policy.parser in {"json", "xml"}:
                raise ValueError(
                    f"policy.parser is {policy.parser!r}, and a memory stands in <think>: take rendering "
                    "or planned"
                )
            return self
        if memory.alphabet < 2:
            raise ValueError(
                f"policy.memory.alphabet is {memory.alphabet}, must be at least 2: a memory of rendering "
                "'compact' is made of so many words"
            )
        if policy.parser != RENDERINGS_OWN:
            raise ValueError(
                f"policy.parser is {policy.parser!r}, must be {RENDERINGS_OWN}: a memory of policy.rendering "
                "'compact' stands in front of the action"
            )
        if self.sampling.max_new_tokens <= memory.length:
            raise ValueError(
                f"sampling.max_new_tokens is {self.sampling.max_new_tokens}, must be more than "
                f"policy.memory.length ({memory.length}): an action follows the memory"
            )
        return self

    @model_validator(mode="after")
    def _there_is_something_to_sum_up(self) -> Params:
        if self.policy.state_update != "summarize":
            return self
        if not self.policy.history:
            raise ValueError(
                "policy.state_update 'summarize' sums up what prompts show: policy.history is 0, must be at "
                "least 1"
            )
        if self.imitation.demonstrations:
            raise ValueError(
                "policy.state_update 'summarize' asks the policy for summaries, which no oracle "
                f"demonstrates: imitation.demonstrations is {self.imitation.demonstrations}, must be 0"
            )
        return self

    @model_validator(mode="after")
    def _training_suits_the_algorithm(self) -> Params:
        algorithm, training = self.algorithm, self.training
        if algorithm.one_update_per_step and (training.minibatches, training.minibatch_size) != (1, 0):
            raise ValueError(
                f"algorithm {algorithm.name} learns from the policy that sampled and no other: "
                f"training.minibatches is {training.minibatches}, must be 1, and training.minibatch_size "
                f"{training.minibatch_size}, must be 0"
            )
        if algorithm.one_update_per_step and training.lag:
            raise ValueError(
                f"algorithm {algorithm.name} learns from the policy that sampled and no other: training.lag "
                f"is {training.lag}, must be 0"
            )
        if training.rollouts_per_task < algorithm.smallest_group:
            raise ValueError(
                f"algorithm {algorithm.name} compares a task's rollouts: training.rollouts_per_task is "
                f"{training.rollouts_per_task}, must be at least {algorithm.smallest_group}"
            )
        return self

    @model_validator(mode="after")
    def _training_reaches_its_learning_rate(self) -> Params:
        steps, warmup = self.training.steps, self.training.warmup_steps
        if steps and warmup >= steps:
            raise ValueError(
                f"training.warmup_steps is {warmup}, must be less than training.steps ({steps}): no step "
                "would have the learning rate that training.learning_rate says"
            )
        return self

    @model_validator(mode="after")
    def _prompts_have_room_for_what_is_given(self) -> Params:
        words, compact = self.policy.knowledge_words, self.policy.rendering == "compact"
        given = self.experience.gives_knowledge
        if given and self.skills.library is not None:
            raise ValueError(
                f"experience {self.experience.name} teaches prompts without what the agent was given, and "
                "skills.library gives all episodes something: take one of them, or skills.library null"
            )
        if given and compact and not words:
            raise ValueError(
                f"experience {self.experience.name} puts words above the prompts of second attempts: "
                "policy.knowledge_words is 0, must be at least 1 with policy.rendering compact"
            )
        if words and not (given and compact):
            raise ValueError(
                f"policy.knowledge_words is {words}, must be 0: "
                + ("prompts of text need no room of words" if given else "nothing gives any knowledge")
            )
        return self

    @model_validator(mode="after")
    def _rollouts_can_be_played_ahead(self) -> Params:
        if self.training.lag and not self.engine.plays_beside_updates:
            raise ValueError(
                f"training.lag 1 plays while the learner updates, and engine {self.engine.name} does not: "
                "take engine local or server, or lag 0"
            )
        if self.training.lag and self.training.checkpoint_every == 1:
            raise ValueError(
                "training.lag 1 has nothing to play ahead with training.checkpoint_every 1, since the step "
                "after a checkpoint is on-policy: make it at least 2, or lag 0"
            )
        return self

    @model_validator(mode="after")
    def _rollouts_can_be_replayed(self) -> Params:
        replay, training = self.training.replay, self.training
        if replay is None:
            return self
        if not self.algorithm.corrects_staleness:
            raise ValueError(
                f"algorithm {self.algorithm.name} does not correct for rollouts of older weights: "
                "training.replay must be null, or the algorithm one with ratios to the weights that sampled"
            )
        if replay.staleness <= training.lag:
            raise ValueError(
                f"training.replay.staleness is {replay.staleness}: with training.lag 1 a group's weights are "
                "two steps old when it can be replayed first, so make it at least 2, or lag 0"
            )
        most = (replay.staleness - training.lag) * training.tasks_per_step
        if replay.groups > most:
            raise ValueError(
                f"training.replay.groups is {replay.groups}, but at most {most} groups are young enough "
                "(staleness, less the lag, times tasks_per_step): lower it, or raise staleness"
            )
        return self

    @model_validator(mode="after")
    def _every_process_can_have_its_engine(self) -> Params:
        most = self.engine.most_processes
        if most is not None and self.processes > most:
            raise ValueError(
                f"engine {self.engine.name} samples inside the training process: processes is "
                f"{self.processes}, must be {most}; several processes take engine server or local"
            )
        return self

    @field_validator("engine", mode="before")
    @classmethod
    def _engine_by_name(cls, value: Any) -> EngineParameters:
        return engine_parameters(value)

    @field_validator("algorithm", mode="before")
    @classmethod
    def _algorithm_by_name(cls, value: Any) -> AlgorithmParameters:
        return algorithm_parameters(value)

    @field_validator("experience", mode="before")
    @classmethod
    def _experience_by_name(cls, value: Any) -> ExperienceParameters:
        return experience_parameters(value)

    @field_validator("environment", mode="before")
    @classmethod
    def _environment_by_name(cls, value: Any) -> EnvironmentParameters:
        if isinstance(value, EnvironmentParameters):
            return value
        return bundle(named(ENVIRONMENTS, value)).parameters.model_validate(value)


def load_params(path: str | Path = "params.yaml", *overlays: str | Path) -> Params:
    """The experiment of a params file with overlays laid over it in order.

    Raises:
        ParamsError: a file is missing or not YAML, or a key, type or value is wrong.
    """
    merged = read_yaml(path)
    for overlay in overlays:
        merged = merge(merged, read_yaml(overlay))
    return check_params(merged, source=" + ".join(str(p) for p in (path, *overlays)))


def check_params(values: Mapping[str, Any], source: str) -> Params:
    """Validate a mapping; ``source`` names it in the error.

    Raises:
        ParamsError: a key, a type or a value is wrong; the message has a line for each.
    """
    try:
        params = Params.model_validate(values)
        lines = list(unwritable(values))
    except ValidationError as error:
        lines = mistakes(Params, values, error)
    if lines:
        raise ParamsError(f"{source}:\n" + "\n".join(f"  {line}" for line in lines))
    return params


def read_yaml(path: str | Path) -> dict[str, Any]:
    """A YAML file that holds a mapping.

    Raises:
        ParamsError: it is missing, not YAML, or holds something else.
    """
    values = read_yaml_file(path)
    if not isinstance(values, dict):
        raise ParamsError(f"{path}: must hold sections of parameters, holds {type(values).__name__}")
    return values


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with the overlay's keys laid over it, section by section.

    A section that gives another ``name`` than the one below replaces it whole: no key of Countdown's
    means anything to another environment, none of GRPO's to another algorithm.
    """
    merged = dict(base)
    for key, value in overlay.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping) and not _renames(below, value):
            merged[key] = merge(below, value)
        else:
            merged[key] = value
    return merged


def _renames(below: Mapping[str, Any], section: Mapping[str, Any]) -> bool:
    return "name" in section and section["name"] != below.get("name")
