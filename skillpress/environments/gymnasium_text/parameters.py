"""The ``environment`` section of params.yaml for a text environment that is registered with gymnasium."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from skillpress.core.errors import ParamsError
from skillpress.core.sections import Section
from skillpress.environments.bundle import EnvironmentParameters
from skillpress.environments.text.stated_rules import StatedRules, Word


class Won(Section):
    """``environment.won``: how an episode tells that its goal is reached; one of the two."""

    info: str = ""
    """A key of the environment's info; the first step at which it is true wins and ends the episode."""
    reward: float | None = None
    """What the rewards of the whole episode must sum up to at least, when the environment ends it."""

    @model_validator(mode="after")
    def _one_of_the_two(self) -> Won:
        if bool(self.info) == (self.reward is not None):
            raise ValueError("give one of info (a key) and reward (a number), such as {reward: 1.0}")
        return self


class InfoKeys(Section):
    """``environment.info``: keys of the environment's info; empty where it has no such key."""

    admissible: str = ""
    """The actions that would be carried out now: a list of texts."""
    invalid: str = ""
    """True, or a text, after an action that changed nothing."""
    action: str = ""
    """The last action in the environment's own wording."""


class CompactWords(Section):
    """``environment.compact``: the words of a policy that is made from scratch."""

    words: Annotated[list[Word], Field(min_length=1)]
    """In lower case. With the words of ``environment.actions`` they are all that a prompt or an action may
    hold; every other word is left out of prompts."""
    per_observation: Annotated[int, Field(ge=1)]
    """Words of an observation that are shown, the last ones."""
    per_action: Annotated[int, Field(ge=1)]
    """Words of the longest action."""


class GymnasiumTextParameters(EnvironmentParameters):
    """Which environment, and what its episodes' facts are called."""

    id: Word
    """As for ``gymnasium.make``."""
    module: str
    """Imported first, so that the environment is registered; empty where gymnasium knows it."""
    kwargs: dict[str, Any]
    """As for ``gymnasium.make``."""
    won: Won
    info: InfoKeys = InfoKeys()
    actions: list[Word] = Field(default=[])
    """What can be done at any step, where no key of the info tells; empty where nobody knows."""
    opening: str = ""
    """What a text prompt says of the task; empty: what the environment says first."""
    skills: StatedRules = StatedRules()
    compact: CompactWords | None = None
    """None where no policy is made from scratch."""
    oracle: str = ""
    """``module:function`` from this section to a demonstrator; empty where there is none."""

    @property
    def title(self) -> str:
        """The environment's own id, without the module that gymnasium may find before it."""
        return self.id.rpartition(":")[2]

    @property
    def has_oracle(self) -> bool:
        """Whether one is named."""
        return bool(self.oracle)

    def needed_words(self) -> CompactWords:
        """``compact``.

        Raises:
            ParamsError: there is none.
        """
        if self.compact is None:
            raise ParamsError(
                f"environment.compact: is null, but policy.rendering compact of {self.id} needs its words; "
                "state them, or take rendering text and a pretrained model"
            )
        return self.compact
