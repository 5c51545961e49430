"""The sections ``environment`` and ``tasks`` of params.yaml, and what every environment's folder offers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from skillpress.core.interface import AgentState, Environment, Info, Rendering, ScratchVocabulary
from skillpress.core.registry import ENVIRONMENTS, lookup
from skillpress.core.sections import NonNegativeInt, PositiveInt, Section
from skillpress.core.trajectory import Task, Trajectory


class EnvironmentParameters(Section):
    """The ``environment`` section of params.yaml; an environment adds its own keys to these."""

    name: str
    max_steps: PositiveInt

    @property
    def title(self) -> str:
        """What pages and MLflow's registry call what is played; a door to foreign environments names the
        one behind it."""
        return self.name

    @property
    def has_oracle(self) -> bool:
        """Whether somebody demonstrates its tasks; where nobody does, there is nothing to imitate."""
        return True

    @property
    def why_nothing_unseen(self) -> str | None:
        """Why no tasks are of a kind that no other split has (``tasks.unseen``); None where some are."""
        return f"{self.name} has no kind of task that its other splits do not have"


@dataclass(frozen=True)
class SplitSizes:
    """How many tasks of each split to make, after filtering."""

    train: int
    validation: int
    test: int
    unseen: int = 0
    """Of a kind that training never meets; 0 in all environments that have none."""


class TaskParameters(Section):
    """How many tasks of each split an experiment has."""

    train: PositiveInt
    validation: NonNegativeInt
    test: PositiveInt
    unseen: NonNegativeInt = 0
    """Of a kind that no other split has; probes play some of them."""

    def make(self) -> SplitSizes:
        """The sizes of all splits."""
        return SplitSizes(self.train, self.validation, self.test, self.unseen)


class Projection(Protocol):
    """φ: a trajectory's actions to atomic skills, at most one each."""

    alphabet: tuple[str, ...]
    """Σ, in a fixed order; K = len(alphabet)."""

    def __call__(self, task: Task, trajectory: Trajectory) -> tuple[str | None, ...]:
        """One label per step; None where the rules leave the action unmapped."""
        ...


class Oracle(Protocol):
    """Demonstrates how a task is solved."""

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        """Actions (in the wording of the compact rendering's responses) that win the task."""
        ...


@runtime_checkable
class AdvisingOracle(Oracle, Protocol):
    """An oracle that can be asked in any state, whoever has led there.

    What it advises is imitated instead of what it did: where a detour was played, what it would have done.
    """

    def advise(self, state: AgentState) -> str | None:
        """The action to take now, in the environment's own wording; None where it knows of none."""
        ...


Hosting = Literal["in_process", "workers", "threads"]
"""Steps of microseconds: in the process that plays. Engines that compute, leak, crash or cannot be pickled:
in worker processes. Environments that wait for something outside (a sandbox, a server): one thread each."""


class SharedEnvironments(Protocol):
    """Makes environments that share something, and ends it."""

    @property
    def seconds(self) -> float:
        """The longest that a start or a step of one may take."""
        ...

    def __call__(self) -> Environment:
        """One more environment; called in the thread that it lives in."""
        ...

    def close(self) -> None:
        """End what they share; none of them is used any more."""
        ...


@dataclass(frozen=True)
class EnvironmentBundle:
    """One environment, whole."""

    parameters: type[EnvironmentParameters]
    make: Callable[[Any], Environment]
    """From the ``environment`` section to an environment that can be reset to any task."""
    make_tasks: Callable[[Any, SplitSizes, int], Iterator[Task]]
    """(section, sizes, seed) to the tasks of all splits, lazily, so that progress can be shown."""
    check_tasks: Callable[[Sequence[Task]], None]
    """Raises ``TaskError`` naming what is wrong: foreign tasks, splits that overlap."""
    projection: Projection
    """φ; of an environment whose sections state rules of their own, φ without any rules."""
    renderings: Mapping[str, Callable[[Any, int], Rendering]]
    """Name in params.yaml to (section, past turns shown) to the rendering."""
    vocabulary: Callable[[Any, int], ScratchVocabulary] | None
    """(section, past turns shown) to the words of the compact rendering; None where there is none."""
    oracle: Callable[[Any], Oracle]
    """From the ``environment`` section to a demonstrator; asked only where the section has one."""
    explorer_actions: Callable[[Info], Sequence[str]]
    """What the random explorer draws from: the admissible actions that do not undo progress, and
    those that do only where nothing else is left."""
    rules: Callable[[Any], Projection] | None = None
    """(section) to φ by the rules that stand in the section; None where every section has the same φ."""
    hosting: Hosting = "in_process"
    """Where its environments live."""
    share: Callable[[Any, int], SharedEnvironments] | None = None
    """(section, environments at once) to environments of threads that share what each alone would be slow
    to start, such as a pool of sandboxes; None where each is made alone."""
    domain_words: Callable[[Any], Mapping[str, Sequence[str]]] | None = None
    """(section) to what ``policy.domain_tokens`` may make tokens of: ``actions``, as an action begins, and
    ``entities``, each with the space before it; None where nobody has listed them."""
    answer_forms: bool = False
    """Whether its text prompts are ``game_prompt``'s, which can ask for answers of every form in
    ``environments/text/answer_forms.py``."""
    measures: tuple[str, ...] = ()
    """The names in ``Info.measures``, which ``reward.measures`` may weigh."""
    notepad: bool = False
    """Whether its states show a notepad (``interface.HasNotepad``), which ``policy.state_update: notepad``
    asks for."""
    code: tuple[Path, ...] = ()
    """Folders of the library that it imports and most environments do not (``skillpress/play/sandbox``). They
    are inputs of its experiments, and of no others."""
    libraries: tuple[str, ...] = ()
    """Packages whose version decides what its episodes hold."""
    data: Callable[[Any], Mapping[str, str]] | None = None
    """(section) to what identifies each file that its episodes read and this repository has not; None where
    they read none, or always the same. They are inputs of its experiments like ``code``."""
    dropped: Callable[[Any], Mapping[str, Mapping[str, int]]] | None = None
    """(section) to why candidates for tasks were dropped: data set to reason to how many; None where all that
    can be made are."""

    def projection_of(self, section: EnvironmentParameters) -> Projection:
        """φ of this section's episodes."""
        return self.projection if self.rules is None else self.rules(section)


def bundle(name: str) -> EnvironmentBundle:
    """What the environment ``name`` consists of.

    Raises:
        ParamsError: no environment has this name.
    """
    found = lookup(ENVIRONMENTS, name, "environment.name")
    assert isinstance(found, EnvironmentBundle)
    return found
