"""Agents: reading actions in responses, remembering, judging steps, and acting."""

from __future__ import annotations

from skillpress.agents.agent import LanguageAgent
from skillpress.agents.context import Prompter
from skillpress.agents.explorer import RandomExplorer
from skillpress.agents.parsing import PARSERS
from skillpress.agents.reward import OutcomeReward
from skillpress.agents.state_updates import STATE_UPDATES, Concatenate, Window

__all__ = [
    "PARSERS",
    "STATE_UPDATES",
    "Concatenate",
    "LanguageAgent",
    "OutcomeReward",
    "Prompter",
    "RandomExplorer",
    "Window",
]
