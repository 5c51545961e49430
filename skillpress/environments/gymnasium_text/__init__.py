"""Text environments that are registered with gymnasium, including TextArena's games."""

from __future__ import annotations

from skillpress.environments.bundle import EnvironmentBundle
from skillpress.environments.gymnasium_text.environment import REWARD, GymnasiumText, explorer_actions
from skillpress.environments.gymnasium_text.foreign import given_oracle, identities
from skillpress.environments.gymnasium_text.parameters import GymnasiumTextParameters
from skillpress.environments.gymnasium_text.prompts import TextRendering, compact, vocabulary
from skillpress.environments.gymnasium_text.tasks import check_tasks, make_tasks
from skillpress.environments.text.stated_rules import NO_RULES, StatedProjection


def _rules(section: GymnasiumTextParameters) -> StatedProjection:
    return section.skills.projection()


BUNDLE = EnvironmentBundle(
    parameters=GymnasiumTextParameters,
    make=GymnasiumText,
    make_tasks=make_tasks,
    check_tasks=check_tasks,
    projection=NO_RULES,
    rules=_rules,
    renderings={"compact": compact, "text": lambda section, history: TextRendering(history, section.opening)},
    vocabulary=vocabulary,
    oracle=given_oracle,
    explorer_actions=explorer_actions,
    answer_forms=True,
    hosting="workers",
    measures=(REWARD,),
    data=identities,
)
