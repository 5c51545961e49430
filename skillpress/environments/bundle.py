"""The sections ``environment`` and ``tasks`` of params.yaml, and what every environment's folder provides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol, runtime_checkable

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
from skillpress.core.registry import ENVIRONMENTS, RENDERINGS, lookup
from skillpress.core.sections import NonNegativeInt, PositiveInt, Section
from skillpress.core.trajectory import Skills, Task, TokenIds, Trajectory


class EnvironmentParameters(Section):
    """The ``environment`` section of params.yaml; each environment adds its own keys."""

    name: str
    max_steps: PositiveInt

    @property
    def title(self) -> str:
        """Name of the game on pages and in MLflow's registry. A door to foreign environments returns the name
        of the one behind it, and ``my_lab.walk:BUNDLE`` is called by its module."""
        return self.name.partition(":")[0]

    @property
    def has_oracle(self) -> bool:
        """Whether a demonstrator for its tasks exists; without one, imitation is impossible."""
        return True

    @property
    def gathering(self) -> float | None:
        """Seconds that a batch of an engine in this process waits for further episodes after its first; None
        if it waits for all, which makes batches, and so the last bits of log-probabilities, repeatable."""
        return None

    @property
    def why_nothing_unseen(self) -> str | None:
        """Why no tasks are of a kind that no other split has (``tasks.unseen``); None if such tasks exist."""
        return f"{self.name} has no kind of task that its other splits do not have"


@dataclass(frozen=True)
class SplitSizes:
    """Number of tasks to make for each split, after filtering."""

    train: int
    validation: int
    test: int
    unseen: int = 0
    """Number of tasks of a kind that training never meets; 0 in environments without such tasks."""


class TaskParameters(Section):
    """How many tasks of each split an experiment has."""

    train: PositiveInt
    validation: NonNegativeInt
    test: PositiveInt
    unseen: NonNegativeInt = 0
    """Number of tasks of a kind that no other split has; probes play some of them."""

    def make(self) -> SplitSizes:
        """The sizes of all splits."""
        return SplitSizes(self.train, self.validation, self.test, self.unseen)


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


Hosting = Literal["in_process", "workers", "threads"]
"""``in_process``, for steps of microseconds: in the process that plays. ``workers``, for engines that
compute, leak, crash or cannot be pickled: in worker processes. ``threads``, for environments that wait for
something outside (a sandbox, a server): one thread each."""


class SharedEnvironments(Protocol):
    """Makes environments that share resources, and releases these resources."""

    @property
    def seconds(self) -> float:
        """Maximum time that a start or a step of an environment may take."""
        ...

    def __call__(self) -> Environment:
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


@dataclass(frozen=True)
class EnvironmentBundle:
    """All parts of one environment."""

    parameters: type[EnvironmentParameters]
    make: Callable[[Any], Environment]
    """Maps the ``environment`` section to an environment that can be reset to any task."""
    make_tasks: Callable[[Any, SplitSizes, int], Iterator[Task]]
    """Maps (section, sizes, seed) to the tasks of all splits, lazily, so that progress can be shown. The one
    that :func:`bundle` returns ends with a ``TaskError`` if a split has more or fewer tasks than its size."""
    check_tasks: Callable[[Sequence[Task]], None]
    """Raises a ``TaskError`` that names what is wrong: foreign tasks, or splits that overlap."""
    projection: Projection
    """φ. If the environment's sections state their own rules, this is φ without any rules."""
    renderings: Mapping[str, Callable[[Any, int], Rendering]]
    """Maps a name in params.yaml to a function from (section, past turns shown) to the rendering."""
    vocabulary: Callable[[Any, int], ScratchVocabulary] | None
    """Maps (section, past turns shown) to the words of the compact rendering; None if there is no such
    rendering."""
    oracle: Callable[[Any], Oracle]
    """Maps the ``environment`` section to a demonstrator; called only if the section has one."""
    explorer_actions: Callable[[Info], Sequence[str]]
    """Actions that the random explorer draws from: the admissible actions that do not undo progress, or those
    that do if there are no others."""
    rules: Callable[[Any], Projection] | None = None
    """Maps the section to φ by the rules in the section; None if every section has the same φ."""
    hosting: Hosting = "in_process"
    """Where its environments run."""
    share: Callable[[Any, int], SharedEnvironments] | None = None
    """Maps (section, number of concurrent environments) to threaded environments that share a resource which
    is slow to start individually, such as a pool of sandboxes; None if each environment is made
    separately."""
    domain_words: Callable[[Any], Mapping[str, Sequence[str]]] | None = None
    """Maps the section to the words that ``policy.domain_tokens`` may turn into tokens: ``actions``,
    beginnings of actions, and ``entities``, each with a space before it. None if no words are listed."""
    answer_forms: bool = False
    """Whether its text prompts are made by ``game_prompt``, which can ask for answers in every form of
    ``environments/text/answer_forms.py``."""
    measures: tuple[str, ...] | None = ()
    """The names in ``Info.measures``, which ``reward.measures`` may weigh; None if they are not known before
    an episode has ended, as those of a program's verifier, and any may be weighed."""
    notepad: bool = False
    """Whether its states show a notepad (``interface.HasNotepad``), which ``policy.state_update: notepad``
    requires."""
    libraries: tuple[str, ...] = ()
    """Packages whose version affects the contents of its episodes."""
    data: Callable[[Any], Mapping[str, str]] | None = None
    """Maps the section to an identifier of each file outside this repository that its episodes read; None if
    they read none, or always the same. The files are inputs of its experiments, like ``libraries``."""
    agent: Callable[[Any, AgentParts], Agent] | None = None
    """Maps (section, parts) to the agent that plays it; None if the language agent plays it by a
    rendering."""
    reader: Callable[[Any], Callable[[str], Any]] | None = None
    """Maps the section to what reads the calls in a response to a program (``play.programs.tool_calls``);
    None if the policy does not play programs."""
    dropped: Callable[[Any], Mapping[str, Mapping[str, int]]] | None = None
    """Maps the section to counts of dropped task candidates: data set to reason to number; None if no
    candidates are dropped."""

    def splits(
        self,
        section: EnvironmentParameters,
        sizes: SplitSizes,
        seed: int,
        on_task: Callable[[int], None] = lambda made: None,
    ) -> dict[str, list[Task]]:
        """The tasks of every split, checked together; the split ``unseen`` only if it has a size.

        Args:
            on_task: receives the number of tasks that are made.

        Raises:
            TaskError: a split has another size, splits overlap, or a task is repeated.
        """
        named = [split.name for split in fields(sizes) if split.name != "unseen" or sizes.unseen]
        made: dict[str, list[Task]] = {split: [] for split in named}
        for count, task in enumerate(self.make_tasks(section, sizes, seed), 1):
            made[task.split].append(task)
            on_task(count)
        self.check_tasks([task for tasks in made.values() for task in tasks])
        return made

    def projection_of(self, section: EnvironmentParameters) -> Projection:
        """φ of this section's episodes."""
        return self.projection if self.rules is None else self.rules(section)


def bundle(name: str) -> EnvironmentBundle:
    """What the environment ``name`` consists of.

    Raises:
        ParamsError: no environment has this name.
    """
    found = lookup(ENVIRONMENTS, name, "environment.name")
    if not isinstance(found, EnvironmentBundle):
        raise ParamsError(
            f"environment.name: is {name!r}, which is not an EnvironmentBundle; see docs/extending.md"
        )
    return replace(
        found, renderings=Renderings(found.renderings), make_tasks=_counted(name, found.make_tasks)
    )


def _counted(
    name: str, make_tasks: Callable[[Any, SplitSizes, int], Iterator[Task]]
) -> Callable[[Any, SplitSizes, int], Iterator[Task]]:
    """``make_tasks``, which raises a ``TaskError`` at its end unless every split has the size asked for."""

    def make(section: Any, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        wanted = {split.name: getattr(sizes, split.name) for split in fields(SplitSizes)}
        made: dict[str, set[str]] = {split: set() for split in wanted}
        for task in make_tasks(section, sizes, seed):
            if task.split not in wanted:
                raise TaskError(
                    f"environment {name}: task {task.task_id} has the split {task.split!r}; make_tasks may "
                    f"make tasks of {', '.join(wanted)}"
                )
            if task.task_id in made[task.split]:
                raise TaskError(
                    f"environment {name}: make_tasks makes two {task.split} tasks with the id "
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
                f"environment {name}: {'; '.join(wrong)}: change the sizes under `tasks`, or make_tasks, "
                "which must make exactly the number asked for of every split"
            )

    return make


class Renderings(Mapping[str, Callable[[Any, int], Rendering]]):
    """An environment's own renderings; ``in`` and ``[]`` also know those that come from outside."""

    def __init__(self, own: Mapping[str, Callable[[Any, int], Rendering]]) -> None:
        self._own = own

    def __getitem__(self, name: str) -> Callable[[Any, int], Rendering]:
        if name in self._own:
            return self._own[name]
        made: Callable[[Any, int], Rendering] = lookup(RENDERINGS, name, "policy.rendering")
        return made

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in RENDERINGS

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)
