"""Countdown-Stepwise: make a target from all of a few numbers, one operation at a time."""

from __future__ import annotations

from skillpress.environments.bundle import EnvironmentBundle
from skillpress.environments.countdown.environment import Countdown, explorer_actions
from skillpress.environments.countdown.oracle import CountdownOracle
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.countdown.prompts import (
    BRIEF,
    OWN,
    PAPER,
    BriefRendering,
    CompactRendering,
    TextRendering,
    domain_words,
    vocabulary,
)
from skillpress.environments.countdown.skills import CountdownProjection
from skillpress.environments.countdown.tasks import check_tasks, make_tasks

BUNDLE = EnvironmentBundle(
    parameters=CountdownParameters,
    make=Countdown,
    make_tasks=make_tasks,
    check_tasks=check_tasks,
    projection=CountdownProjection(),
    renderings={
        "compact": lambda section, history: CompactRendering(section.largest_pool, history),
        "text": lambda section, history: TextRendering(history, OWN),
        "brief": lambda section, history: BriefRendering(history, BRIEF, parser="plain"),
        "paper": lambda section, history: TextRendering(history, PAPER % section.max_steps),
    },
    vocabulary=vocabulary,
    oracle=CountdownOracle,
    explorer_actions=explorer_actions,
    domain_words=domain_words,
    answer_forms=True,
)
