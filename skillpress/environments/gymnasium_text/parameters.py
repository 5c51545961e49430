"""Text environments that are registered with gymnasium, including TextArena's games."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from skillpress.core.errors import ParamsError
from skillpress.core.interface import Environment, Info, Rendering, ScratchVocabulary
from skillpress.core.sections import Section
from skillpress.core.trajectory import Task
from skillpress.environments.section import EnvironmentSection, Hosting, Oracle, Projection, SplitSizes
from skillpress.environments.text.stated_rules import StatedRules, Word

REWARD = "reward"
"""Name of the measure that holds the environment's own reward for the step."""


class Won(Section):
    """``environment.won``: how to recognise that an episode's goal is reached; one of the two keys is
    given."""

    info: str = ""
    """A key of the environment's info. The first step at which it is true wins and ends the episode."""
    reward: float | None = None
    """The minimum sum of the episode's rewards when the environment ends it."""

    @model_validator(mode="after")
    def _one_of_the_two(self) -> Won:
        if bool(self.info) == (self.reward is not None):
            raise ValueError("give one of info (a key) and reward (a number), such as {reward: 1.0}")
        return self


class InfoKeys(Section):
    """``environment.info``: keys of the environment's info; each is empty if the environment has no such
    key."""

    admissible: str = ""
    """Key of the list of actions, as texts, that would be carried out now."""
    invalid: str = ""
    """Key that is true, or a text, after an action that changed nothing."""
    action: str = ""
    """Key of the last action in the environment's own wording."""


class CompactWords(Section):
    """``environment.compact``: the words of a policy that is trained from scratch."""

    words: Annotated[list[Word], Field(min_length=1)]
    """Words in lower case. Prompts and actions consist only of these words and of the words of
    ``environment.actions``; all other words are left out of prompts."""
    per_observation: Annotated[int, Field(ge=1)]
    """Number of words shown of an observation, counted from its end."""
    per_action: Annotated[int, Field(ge=1)]
    """Number of words in the longest action."""


class GymnasiumTextParameters(EnvironmentSection):
    """Which environment is played, and where it states the facts of an episode."""

    hosting: ClassVar[Hosting] = "workers"
    answer_forms: ClassVar[bool] = True
    measures: ClassVar[tuple[str, ...]] = (REWARD,)

    id: Word
    """The id for ``gymnasium.make``."""
    module: str
    """A module that is imported first and registers the environment; empty if gymnasium already knows the
    environment."""
    kwargs: dict[str, Any]
    """Arguments for ``gymnasium.make``."""
    won: Won
    """How to recognise that an episode's goal is reached."""
    info: InfoKeys = InfoKeys()
    """The keys of the environment's info that state facts of a step."""
    actions: list[Word] = Field(default=[])
    """Actions that are possible at any step, if no key of the info lists them; empty if they are unknown."""
    opening: str = ""
    """The description of the task in a text prompt; if empty, the environment's first observation."""
    skills: StatedRules = StatedRules()  # type: ignore[assignment]
    """The rules by which actions become skills."""
    compact: CompactWords | None = None
    """None if no policy is trained from scratch."""
    oracle: str = ""
    """``module:function`` that maps this section to a demonstrator; empty if there is none."""

    @property
    def title(self) -> str:
        """The environment's own id, without the module that may precede it."""
        return self.id.rpartition(":")[2]

    @property
    def has_oracle(self) -> bool:
        """Whether the section names an oracle."""
        return bool(self.oracle)

    def needed_words(self) -> CompactWords:
        """Return ``compact``.

        Raises:
            ParamsError: the section has none.
        """
        if self.compact is None:
            raise ParamsError(
                f"environment.compact: is null, but policy.rendering compact of {self.id} needs its words; "
                "state them, or use rendering text and a pretrained model"
            )
        return self.compact

    def make_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        from skillpress.environments.gymnasium_text.tasks import make_tasks

        return make_tasks(self, sizes, seed)

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        from skillpress.environments.gymnasium_text.tasks import check_tasks

        check_tasks(tasks)

    def make(self) -> Environment:
        from skillpress.environments.gymnasium_text.environment import GymnasiumText

        return GymnasiumText(self)

    def make_projection(self) -> Projection:
        return self.skills.projection()

    def explorer_actions(self, info: Info) -> Sequence[str]:
        from skillpress.environments.gymnasium_text.environment import explorer_actions

        return explorer_actions(info)

    def renderings(self) -> Mapping[str, Callable[[int], Rendering]]:
        from skillpress.environments.gymnasium_text.prompts import TextRendering, compact

        return {
            "compact": lambda history: compact(self, history),
            "text": lambda history: TextRendering(history, self.opening),
        }

    def vocabulary(self, history: int) -> ScratchVocabulary:
        from skillpress.environments.gymnasium_text.prompts import vocabulary

        return vocabulary(self, history)

    def make_oracle(self) -> Oracle:
        from skillpress.environments.gymnasium_text.foreign import oracle_named

        return oracle_named(self.oracle)(self)

    def inputs(self) -> Mapping[str, str]:
        from skillpress.environments.gymnasium_text.foreign import identities

        return identities(self)
