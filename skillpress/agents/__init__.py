"""Agents: reading actions in responses, remembering, judging steps, and acting."""

from __future__ import annotations

from skillpress.agents.agent import LanguageAgent
from skillpress.agents.context import Prompter
from skillpress.agents.decide import decide
from skillpress.agents.explorer import RandomExplorer
from skillpress.agents.reward import OutcomeReward
from skillpress.agents.state_updates import Concatenate, Window

__all__ = [
    "Concatenate",
    "LanguageAgent",
    "OutcomeReward",
    "Prompter",
    "RandomExplorer",
    "Window",
    "decide",
]
