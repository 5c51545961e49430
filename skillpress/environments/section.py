"""The sections ``environment`` and ``tasks`` of params.yaml. An environment is its section: the fields are
its keys, the methods make its parts.

All stages check parameters, so the module of a section imports neither torch nor an engine of games: its
methods import what they need.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NoReturn, Protocol, runtime_checkable

from skillpress.core.engine import Engine, Sampling
from skillpress.core.errors import ParamsError, TaskError
from skillpress.core.interface import (
    Agent,
    AgentState,
    Environment,
    Info,
    Rendering,
    ScratchVocabulary,
    StepReward,
)
from skillpress.core.names import UnknownPartError, load
from skillpress.core.registry import ENVIRONMENTS, RENDERINGS, lookup
from skillpress.core.sections import ByName, PositiveInt, Section
from skillpress.core.trajectory import Skills, Task, TokenIds, Trajectory
from skillpress.environments.splits import refuse_repetitions
from skillpress.environments.text.prompts import Prompted
from skillpress.skills.library.files import SkillFolder, given_skills

Hosting = Literal["in_process", "workers", "threads"]
"""``in_process``, for steps of microseconds: in the process that plays. ``workers``, for engines that
compute, leak, crash or cannot be pickled: in worker processes. ``threads``, for environments that wait for
something outside (a sandbox, a server): one thread each."""
PROMPT_FILE = ".jinja"
"""The end of a ``policy.rendering`` that is a file with a prompt (``text/prompt_file.py``)."""


@dataclass(frozen=True)
class SplitSizes:
    """Number of tasks to make for each split, after filtering."""

    train: int
    validation: int
    test: int
    unseen: int = 0
    """Number of tasks of a kind that training never meets; 0 in environments without such tasks."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The split of each task: all of ``train`` first, then those of the other splits."""
        return tuple(Counter(asdict(self)).elements())


class Projection(Protocol):
    """φ: maps the steps of a trajectory to atomic skills. A step whose response makes several calls may have
    several."""

    alphabet: tuple[str, ...]
    """Σ, in a fixed order; K = len(alphabet)."""

    def __call__(self, task: Task, trajectory: Trajectory) -> tuple[Skills, ...]:
        """The skills of each step in order; ``()`` for a step without one."""
        ...


class Oracle(Protocol):
    """Demonstrates how a task is solved."""

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        """Actions (in the wording of the compact rendering's responses) that win the task."""
        ...


@runtime_checkable
class AdvisingOracle(Oracle, Protocol):
    """An oracle that can advise in any state, however it was reached.

    Imitation uses its advice instead of its actions: where a detour was played, the action that it would have
    taken.
    """

    def advise(self, state: AgentState) -> str | None:
        """The action to take now, in the environment's own wording; None if it knows none."""
        ...


class SharedEnvironments(Protocol):
    """Makes environments that share resources, and releases these resources."""

    @property
    def seconds(self) -> float:
        """Maximum time that a start or a step of an environment may take."""
        ...

    def __call__(self) -> Environment[Any]:
        """Make another environment; called in the thread in which it lives."""
        ...

    def close(self) -> None:
        """Release the shared resources. No environment is used afterwards."""
        ...


@dataclass(frozen=True)
class AgentParts:
    """What an environment's own agent is made from."""

    encode_request: Callable[[Any], TokenIds]
    """Renders a program's request (``play.programs.requests.ModelRequest``) as a prompt."""
    decode: Callable[[TokenIds], str]
    """Converts response token ids to text, without special tokens."""
    budget: int
    """Maximum number of tokens in a prompt."""
    reward: StepReward
    engine: Engine
    sampling: Sampling


class EnvironmentSection(Section):
    """The ``environment`` section of params.yaml: an environment. Subclass it in its own file.

    A subclass has ``make_tasks``, ``make`` and ``make_projection``, and ``prompt`` or ``renderings``. Each of
    the other methods is a feature, which an environment that does not override it lacks (:meth:`offers`).
    """

    hosting: ClassVar[Hosting] = "in_process"
    """Where its environments run."""
    answer_forms: ClassVar[bool] = False
    """Whether its text prompts are made by ``game_prompt``, which can ask for answers in every form of
    ``environments/text/answer_forms.py``."""
    measures: ClassVar[tuple[str, ...] | None] = ()
    """The names in ``Info.measures``, which ``reward.measures`` may weigh; None if they are not known before
    an episode has ended, as those of a program's verifier, and any may be weighed."""
    notepad: ClassVar[bool] = False
    """Whether its states show a notepad (``interface.HasNotepad``), which ``policy.state_update: notepad``
    requires."""
    shows_notes: ClassVar[bool] = False
    """Whether its compact prompts show ``AgentState.notes`` and have words for observations and actions in
    them, which ``policy.state_update: store`` requires."""
    own_tests: ClassVar[bool] = False
    """Whether its test tasks do not depend on the sizes of the other splits. If so, an evaluation makes only
    one training task; otherwise it makes as many as its experiment."""
    libraries: ClassVar[tuple[str, ...]] = ()
    """Packages whose version affects the contents of its episodes."""

    name: str
    """An environment of docs/environments.md or of a package, or ``module:Class``."""
    max_steps: PositiveInt
    """T, the maximum number of steps of an episode."""
    skills: str | None = None
    """A folder of skills (``NAME/SKILL.md``), in the working directory or the lab; null gives none. Programs
    find them wherever coding agents look; other agents read them above every text prompt."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse a key with the name of a method, which it would hide."""
        own = EnvironmentSection.model_fields
        if hidden := [key for key in cls.model_fields if key not in own and hasattr(EnvironmentSection, key)]:
            raise TypeError(
                f"{cls.__module__}:{cls.__name__}: the key {hidden[0]!r} has the name of a part that every "
                "environment has; rename the key"
            )

    # What every environment has.

    @abstractmethod
    def make_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        """Yield the tasks of all splits, as many of each as ``sizes`` says; lazily, so that progress can be
        shown.
        """
        self._lacks("make_tasks")

    @abstractmethod
    def make(self) -> Environment[Any]:
        """An environment that can be reset to any task."""
        self._lacks("make")

    @abstractmethod
    def make_projection(self) -> Projection:
        """φ of its episodes."""
        self._lacks("make_projection")

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        """Check tasks that are played together.

        Raises:
            TaskError: one is foreign, or two are the same; by default, two with the same seed and ``spec``.
        """
        refuse_repetitions(
            tasks, self.name, "task", lambda task: json.dumps([task.seed, dict(task.spec)], sort_keys=True)
        )

    def explorer_actions(self, info: Info) -> Sequence[Any]:
        """Actions that the random explorer draws from: the admissible actions that do not undo progress, or
        those that do if there are no others."""
        return info.admissible

    @property
    def title(self) -> str:
        """Name of the game on pages and in MLflow's registry. An adapter of foreign environments returns the
        name of the one behind it, and ``my_lab.walk:Walk`` is called by its module."""
        return self.name.partition(":")[0]

    def given_skills(self) -> tuple[SkillFolder, ...]:
        """The skills that ``skills`` names, checked; ``ParamsError`` if one breaks a rule of the format."""
        # Some sections have a key of this name that states rules.
        return given_skills(self.skills, "environment.skills") if isinstance(self.skills, str) else ()

    # How it is put into words.

    def prompt(self, state: AgentState) -> str:
        """The prompt in a state, for an environment with this one rendering: the task, the observation and,
        if they matter, ``state.history`` and ``state.notes``. The response is the action alone."""
        self._lacks("prompt")

    def renderings(self) -> Mapping[str, Callable[[int], Rendering]]:
        """Maps a name in params.yaml to a function from the number of past turns shown to the rendering.

        By default :meth:`prompt`, as ``compact`` where the environment has a vocabulary and as ``text``
        elsewhere.
        """
        if not self.offers("prompt"):
            return {}
        return {"compact" if self.offers("vocabulary") else "text": partial(Prompted, self)}

    def has_rendering(self, name: str) -> bool:
        """Whether there is a rendering with this name: one of its own, one from outside, or a file with a
        prompt.
        """
        return name in self.renderings() or name in RENDERINGS or name.endswith(PROMPT_FILE)

    def rendering(self, name: str, history: int) -> Rendering:
        """The rendering with this name, which shows at most ``history`` past turns."""
        own = self.renderings()
        if name in own:
            return own[name](history)
        if name.endswith(PROMPT_FILE):
            from skillpress.environments.text.prompt_file import prompt_file

            return prompt_file(self, name, history)
        made: Rendering = lookup(RENDERINGS, name, "policy.rendering")(self, history)
        return made

    def vocabulary(self, history: int) -> ScratchVocabulary:
        """The words of the rendering ``compact`` that shows ``history`` past turns."""
        self._lacks("vocabulary")

    def domain_words(self) -> Mapping[str, Sequence[str]]:
        """The words that ``policy.domain_tokens`` may turn into tokens: ``actions``, beginnings of actions,
        and ``entities``, each with a space before it."""
        self._lacks("domain_words")

    # What some environments have.

    def make_oracle(self) -> Oracle:
        """A demonstrator; called only if :attr:`has_oracle`."""
        self._lacks("make_oracle")

    @property
    def has_oracle(self) -> bool:
        """Whether a demonstrator for its tasks exists; without one, imitation is impossible."""
        return self.offers("make_oracle")

    def make_shared(self, slots: int) -> SharedEnvironments:
        """Environments, at most ``slots`` at once, that share what is slow to start individually, such as a
        pool of sandboxes. It requires ``hosting`` ``threads``."""
        self._lacks("make_shared")

    def make_agent(self, parts: AgentParts) -> Agent:
        """The agent that plays the environment, in place of the language agent that uses a rendering."""
        self._lacks("make_agent")

    def make_reader(self) -> Callable[[str], Any]:
        """The reader of the calls in a response to a program (``play.programs.tool_calls``)."""
        self._lacks("make_reader")

    def inputs(self) -> Mapping[str, str]:
        """An identifier of each file outside this repository that its episodes read. The files are inputs of
        its experiments, like ``libraries``."""
        return {}

    def surroundings(self) -> Mapping[str, str]:
        """Facts about this machine for the records of runs and evaluations, in addition to the versions of
        libraries, such as the version of a program that plays.
        """
        return {}

    def dropped(self) -> Mapping[str, Mapping[str, int]] | None:
        """Counts of dropped task candidates: data set to reason to number; None if none are dropped."""
        return None

    @property
    def gathering(self) -> float | None:
        """Seconds that a batch of an engine in this process waits for further episodes after its first; None
        if it waits for all, which makes batches, and so the last bits of log-probabilities, repeatable."""
        return None

    @property
    def why_nothing_unseen(self) -> str | None:
        """Why there cannot be tasks of a kind only for the split ``unseen``; None if there can."""
        return f"{self.name} has no kind of task of its own for the split unseen"

    @classmethod
    def offers(cls, method: str) -> bool:
        """Whether an environment has the feature that a method of this class makes."""
        return getattr(cls, method) is not getattr(EnvironmentSection, method)

    def _lacks(self, method: str) -> NoReturn:
        with suppress(UnknownPartError):
            load(ENVIRONMENTS, self.name)  # CodeNotRunError where this process only looks
        raise ParamsError(
            f"environment.name: is {self.name!r}, which has no {method}(): its class {type(self).__name__} "
            "must define it"
        )

    def checked_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        """:meth:`make_tasks`, which raises a ``TaskError`` at its end unless every split has its size."""
        wanted = asdict(sizes)
        made: dict[str, set[str]] = {split: set() for split in wanted}
        for task in self.make_tasks(sizes, seed):
            if task.split not in wanted:
                raise TaskError(
                    f"environment {self.name}: task {task.task_id} has the split {task.split!r}; make_tasks "
                    f"may make tasks of {', '.join(wanted)}"
                )
            if task.task_id in made[task.split]:
                raise TaskError(
                    f"environment {self.name}: make_tasks makes two {task.split} tasks with the id "
                    f"{task.task_id!r}; give each task an id of its own"
                )
            made[task.split].add(task.task_id)
            yield task
        wrong = [
            f"tasks.{split} is {size}, and make_tasks made {len(made[split])}"
            for split, size in wanted.items()
            if len(made[split]) != size
        ]
        if wrong:
            raise TaskError(
                f"environment {self.name}: {'; '.join(wrong)}: change the sizes under `tasks`, or "
                "make_tasks, which must make exactly the number asked for of every split"
            )

    def splits(
        self, sizes: SplitSizes, seed: int, on_task: Callable[[int], None] = lambda made: None
    ) -> dict[str, list[Task]]:
        """The tasks of every split, checked together; the split ``unseen`` only if it has a size.

        Args:
            on_task: receives the number of tasks that are made.

        Raises:
            TaskError: a split has another size, splits overlap, or a task is repeated.
        """
        named = [split for split, size in asdict(sizes).items() if split != "unseen" or size]
        made: dict[str, list[Task]] = {split: [] for split in named}
        for count, task in enumerate(self.checked_tasks(sizes, seed), 1):
            made[task.split].append(task)
            on_task(count)
        self.check_tasks([task for tasks in made.values() for task in tasks])
        return made


def environment_class(name: str) -> type[EnvironmentSection]:
    """The class of the environment ``name``.

    Raises:
        ParamsError: no environment has this name.
    """
    found = ByName(ENVIRONMENTS, "environment.name").section(name)
    if not issubclass(found, EnvironmentSection):
        raise ParamsError(
            f"environment.name: is {name!r}, which is not an EnvironmentSection; see docs/extending.md"
        )
    return found


def projection_without_keys(name: str) -> Projection | None:
    """φ of an environment whose section is unknown: without any rules if the section states them; None if it
    depends on keys that have no default.

    Raises:
        ParamsError: no environment has this name.
    """
    try:
        return environment_class(name).model_construct(name=name).make_projection()
    except AttributeError:
        return None
