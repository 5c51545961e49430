"""Agents: they parse actions from responses, remember, judge their steps, and act."""

from __future__ import annotations

from skillpress.play.agents.agent import LanguageAgent, decide
from skillpress.play.agents.context import Prompter
from skillpress.play.agents.explorer import RandomExplorer
from skillpress.play.agents.reward import OutcomeReward
from skillpress.play.agents.state_updates import Concatenate, Window

__all__ = [
    "Concatenate",
    "LanguageAgent",
    "OutcomeReward",
    "Prompter",
    "RandomExplorer",
    "Window",
    "decide",
]
