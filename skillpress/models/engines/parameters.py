"""The ``engine`` section of params.yaml, with the keys that all engines share, and the section ``sampling``.

The section of an engine checks its keys and makes the engine. Its module imports neither torch nor vLLM, so
parameters are checked immediately; the sampling code is imported when the engine is made. An overlay that
names another engine replaces the whole section.
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
    from skillpress.rollouts.workers.distributed import Ranks


class SamplingParameters(Section):
    """How tokens are drawn in training, and how many responses are sampled at once."""

    temperature: Positive
    """Temperature while training."""
    max_new_tokens: PositiveInt
    """The most tokens of a response."""
    slots: PositiveInt
    """Episodes that each process plays at the same time."""

    def make(self) -> Sampling:
        """How tokens are drawn while training: from all of them, or importance ratios would be biased."""
        return Sampling(self.temperature, max_new_tokens=self.max_new_tokens)


@dataclass(frozen=True)
class EngineDemand:
    """What an experiment requires of its engine."""

    longest: int
    """Maximum number of tokens of a prompt and its response together."""
    slots: int
    """Maximum number of responses that are requested at once."""
    ranks: Ranks
    """The process that makes the engine, among those that make one for the same policy."""
    growing: bool = False
    """Whether prompts extend earlier prompts and responses, whose keys and values may then be kept."""


@dataclass(frozen=True)
class EngineMemory:
    """Bytes that an engine takes of the memory of the process that makes it."""

    weights: int
    cache: int
    """Bytes for keys and values."""
    kept: int = 0
    """Bytes for keys and values that later prompts may extend, in addition to the cache."""


class EngineParameters(Section):
    """The ``engine`` section; each engine adds its own keys.

    A key says where an engine is or how much memory it may use, never what it samples. Of this section, a
    result depends only on the name and on :meth:`libraries`, so a server may move while its runs continue.
    """

    packages: ClassVar[tuple[str, ...]] = ()
    """Modules that this engine imports and that skillpress otherwise does not need."""
    exact_seeds: ClassVar[bool] = False
    """Whether a response depends only on its prompt, its seed and the weights (``Promises.exact_seeds``)."""
    shared: ClassVar[bool] = False
    """Whether one external sampler with one set of weights serves all processes; one process then plays."""
    plays_beside_updates: ClassVar[bool] = False
    """Whether the engine can sample in its own thread while the learner updates (``training.lag``)."""
    sleeps: ClassVar[bool] = False
    """Whether the engine holds all its memory all the time, except that it releases a GPU's memory while the
    learner updates. Otherwise it holds weights all the time, and keys and values only while it samples."""

    name: str
    """``local``, ``vllm`` or ``server``, each with its own keys (docs/engines.md)."""

    @abstractmethod
    def make(self, policy: Policy, demand: EngineDemand) -> Engine:
        """Make an engine that samples from the policy.

        Raises:
            UserError: something that the engine needs is not installed, not started, or does not fit the
            policy.
        """

    @abstractmethod
    def memory(self, weights: int, rows: int, row: int, growing: bool) -> EngineMemory:
        """The maximum memory that it takes.

        Args:
            weights: bytes of a copy of the policy.
            rows: number of responses that are requested at once.
            row: bytes of the keys and values of the longest prompt and its response.
            growing: whether prompts extend earlier prompts and responses.
        """

    def libraries(self) -> dict[str, str]:
        """Name and version of the sampling libraries that other engines do not need. Results depend on them.

        Raises:
            UserError: a library is not installed.
        """
        return {}
