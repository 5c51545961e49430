"""ALFWorld: household tasks in rooms described in words, with alfworld's engine and official games."""

from __future__ import annotations

from skillpress.environments.alfworld.compact import CompactRendering, domain_words, vocabulary
from skillpress.environments.alfworld.environment import Alfworld, explorer_actions
from skillpress.environments.alfworld.oracle import SearchingOracle
from skillpress.environments.alfworld.parameters import AlfworldParameters
from skillpress.environments.alfworld.prompts import OWN, PAPER, TextRendering
from skillpress.environments.alfworld.skills import AlfworldProjection
from skillpress.environments.alfworld.tasks import check_tasks, make_tasks
from skillpress.environments.bundle import EnvironmentBundle

BUNDLE = EnvironmentBundle(
    parameters=AlfworldParameters,
    make=Alfworld,
    make_tasks=make_tasks,
    check_tasks=check_tasks,
    projection=AlfworldProjection(),
    renderings={
        "compact": lambda section, history: CompactRendering(history),
        "text": lambda section, history: TextRendering(history, OWN),
        "paper": lambda section, history: TextRendering(history, PAPER % section.max_steps),
    },
    vocabulary=vocabulary,
    oracle=SearchingOracle,
    explorer_actions=explorer_actions,
    domain_words=domain_words,
    answer_forms=True,
    hosting="workers",
)
