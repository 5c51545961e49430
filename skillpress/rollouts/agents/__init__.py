"""Agents: they parse actions from responses, remember, judge their steps, and act."""

from __future__ import annotations

from skillpress.rollouts.agents.agent import LanguageAgent, decide
from skillpress.rollouts.agents.context import Prompter
from skillpress.rollouts.agents.explorer import RandomExplorer
from skillpress.rollouts.agents.reward import OutcomeReward
from skillpress.rollouts.agents.state_updates import Concatenate, Window

__all__ = [
    "Concatenate",
    "LanguageAgent",
    "OutcomeReward",
    "Prompter",
    "RandomExplorer",
    "Window",
    "decide",
]
