"""Any OpenEnv server as an environment: its address and reset arguments are the tasks.

``connection.py`` speaks the protocol over one WebSocket. ``environment.py`` plays episodes over connections
that may break. ``reading.py`` selects what an agent sees of an observation. ``skills.py`` derives skills from
actions by the rules in the section. The server judges; its reward is a fact here, which the agent may weigh.
"""

from __future__ import annotations

from skillpress.environments.bundle import EnvironmentBundle
from skillpress.environments.openenv.environment import REWARD, OpenEnv, Sessions, explorer_actions
from skillpress.environments.openenv.parameters import OpenEnvParameters, resets_identity
from skillpress.environments.openenv.prompts import TextRendering
from skillpress.environments.openenv.skills import ToolProjection, rules
from skillpress.environments.openenv.tasks import check_tasks, make_tasks, nobody
from skillpress.environments.text.stated_rules import NO_RULES

BUNDLE = EnvironmentBundle(
    parameters=OpenEnvParameters,
    make=OpenEnv,
    make_tasks=make_tasks,
    check_tasks=check_tasks,
    projection=ToolProjection(NO_RULES, ""),
    rules=rules,
    renderings={"text": lambda section, history: TextRendering(history, section.opening)},
    vocabulary=None,
    oracle=nobody,
    explorer_actions=explorer_actions,
    answer_forms=True,
    hosting="threads",
    share=Sessions,
    measures=(REWARD,),
    data=resets_identity,
)
