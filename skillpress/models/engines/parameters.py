"""The ``engine`` section of params.yaml, as far as every engine has it, and the section ``sampling``.

The section of an engine checks its keys and makes the engine. Its module imports neither torch nor vLLM,
so parameters are checked at once; what samples is imported when the engine is made. An overlay that names
another engine replaces the section whole.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from skillpress.core.engine import Sampling
from skillpress.core.sections import Positive, PositiveInt, Section

if TYPE_CHECKING:
    from skillpress.core.engine import Engine
    from skillpress.models.policy import Policy
    from skillpress.play.workers.distributed import Ranks


class SamplingParameters(Section):
    """How training samples, and how many responses at once."""

    temperature: Positive
    max_new_tokens: PositiveInt
    slots: PositiveInt

    def make(self) -> Sampling:
        """How tokens are drawn while training: from all of them, or importance ratios would be biased."""
        return Sampling(self.temperature, max_new_tokens=self.max_new_tokens)


@dataclass(frozen=True)
class EngineDemand:
    """What an experiment asks of its engine."""

    longest: int
    """Tokens of a prompt and its response together, at most."""
    slots: int
    """Responses that are asked for at once, at most."""
    ranks: Ranks
    """The process that makes the engine, among those that make one for the same policy."""
    growing: bool = False
    """Whether prompts go on from earlier ones and their responses, whose keys and values may be kept."""


@dataclass(frozen=True)
class EngineMemory:
    """Bytes that an engine takes of the memory of the process that makes it."""

    weights: int
    cache: int
    """For keys and values."""
    kept: int = 0
    """For keys and values of what later prompts may go on from, beside the cache."""


class EngineParameters(Section):
    """The ``engine`` section; an engine adds its own keys to these.

    A key says where an engine is or how much memory it may take, never what it samples: of this section
    only the name is part of what a result depends on, and :meth:`libraries`, so that a server may move while
    its runs go on.
    """

    packages: ClassVar[tuple[str, ...]] = ()
    """Modules that it imports and that skillpress does without otherwise."""
    exact_seeds: ClassVar[bool] = False
    """Whether a response depends on its prompt, its seed and the weights alone (``Promises.exact_seeds``)."""
    most_processes: ClassVar[int | None] = None
    """Training processes that may each make one; None is any number."""
    shared: ClassVar[bool] = False
    """Whether what samples is outside and serves all processes, with one set of weights at a time. Where
    policies are only played, one process then asks for everything."""
    plays_beside_updates: ClassVar[bool] = False
    """Whether the engine can sample in a thread of its own while the learner updates, its memory kept
    (``training.lag`` 1)."""
    sleeps: ClassVar[bool] = False
    """Whether it holds its memory all the time, but for a GPU's, which it gives back while the learner
    updates. Otherwise it holds weights all the time, and keys and values while it samples."""

    name: str

    @abstractmethod
    def make(self, policy: Policy, demand: EngineDemand) -> Engine:
        """An engine that samples from the policy.

        Raises:
            UserError: what it needs is not installed, not started, or does not fit the policy.
        """

    @abstractmethod
    def memory(self, weights: int, rows: int, row: int, growing: bool) -> EngineMemory:
        """What it takes, at most.

        Args:
            weights: bytes of a copy of the policy.
            rows: responses that are asked for at once.
            row: bytes of the keys and values of the longest prompt and its response.
            growing: whether prompts go on from earlier ones and their responses.
        """

    def libraries(self) -> dict[str, str]:
        """Name to version of what samples, as far as other engines do without it. Results depend on it.

        Raises:
            UserError: it is not installed.
        """
        return {}
