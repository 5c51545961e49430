"""The workshop: a piece of training is made by a routine that transfers, or by a shortcut that does not."""

from __future__ import annotations

from skillpress.environments.bundle import EnvironmentBundle
from skillpress.environments.workshop.environment import MEASURES, Workshop, explorer_actions
from skillpress.environments.workshop.oracle import WorkshopOracle
from skillpress.environments.workshop.parameters import WorkshopParameters
from skillpress.environments.workshop.prompts import (
    OWN,
    PAPER,
    CompactRendering,
    TextRendering,
    domain_words,
    vocabulary,
)
from skillpress.environments.workshop.skills import PROJECTION
from skillpress.environments.workshop.tasks import check_tasks, make_tasks

BUNDLE = EnvironmentBundle(
    parameters=WorkshopParameters,
    make=Workshop,
    make_tasks=make_tasks,
    check_tasks=check_tasks,
    projection=PROJECTION,
    renderings={
        "compact": CompactRendering,
        "text": lambda section, history: TextRendering(history, OWN),
        "paper": lambda section, history: TextRendering(history, PAPER % section.max_steps),
    },
    vocabulary=vocabulary,
    oracle=WorkshopOracle,
    explorer_actions=explorer_actions,
    domain_words=domain_words,
    answer_forms=True,
    measures=MEASURES,
)
