"""The floor of every table: an agent that draws its actions at random.

It draws uniformly from the actions that the environment's folder offers its explorer (for Countdown:
the legal operations, and ``reset`` when one number is left). On small worlds it wins surprisingly
often, so that a success rate means little without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from skillpress.interface import AgentState, Info
from skillpress.seeds import derive


@dataclass(frozen=True)
class RandomExplorer:
    """Uniform over ``choices``; thinks nothing."""

    choices: Callable[[Info], Sequence[str]]
    """The environment bundle's ``explorer_actions``."""

    def act(self, state: AgentState, seed: int = 0) -> tuple[str, str]:
        """(empty thought, action), a function of the state and the seed alone."""
        actions = self.choices(state.info)
        return "", actions[derive(seed, "explore") % len(actions)]
