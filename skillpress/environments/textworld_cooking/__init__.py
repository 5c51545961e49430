"""TextWorld-Cooking: follow a recipe in a text game in which food can burn."""

from __future__ import annotations

from skillpress.environments.bundle import EnvironmentBundle
from skillpress.environments.textworld_cooking.environment import TextWorldCooking, explorer_actions
from skillpress.environments.textworld_cooking.oracle import CookingOracle
from skillpress.environments.textworld_cooking.parameters import CookingParameters
from skillpress.environments.textworld_cooking.prompts import (
    OWN,
    PAPER,
    CompactRendering,
    TextRendering,
    domain_words,
    vocabulary,
)
from skillpress.environments.textworld_cooking.skills import PROJECTION
from skillpress.environments.textworld_cooking.tasks import check_tasks, make_tasks

BUNDLE = EnvironmentBundle(
    parameters=CookingParameters,
    make=TextWorldCooking,
    make_tasks=make_tasks,
    check_tasks=check_tasks,
    projection=PROJECTION,
    renderings={
        "compact": lambda section, history: CompactRendering(history, section.show_refusals),
        "text": lambda section, history: TextRendering(history, OWN),
        "paper": lambda section, history: TextRendering(history, PAPER % section.max_steps),
    },
    vocabulary=vocabulary,
    oracle=CookingOracle,
    explorer_actions=explorer_actions,
    domain_words=domain_words,
    answer_forms=True,
    hosting="workers",
)
