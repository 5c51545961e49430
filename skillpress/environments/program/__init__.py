"""Any program that asks for a model over HTTP, as an environment: its requests are observations, and the
model's responses are actions (``skillpress/play/programs``)."""

from __future__ import annotations

from skillpress.environments.bundle import EnvironmentBundle
from skillpress.environments.program.environment import explorer_actions, program_alone
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.environments.program.policy import no_oracle, program_agent, requests
from skillpress.environments.program.shared import SharedPrograms
from skillpress.environments.program.skills import NO_RULES, projection
from skillpress.environments.program.tasks import check_tasks, identities, make_tasks

BUNDLE = EnvironmentBundle(
    parameters=ProgramParameters,
    make=program_alone,
    make_tasks=make_tasks,
    check_tasks=check_tasks,
    projection=NO_RULES,
    rules=projection,
    renderings={"requests": requests, "compact": requests},
    vocabulary=None,
    oracle=no_oracle,
    explorer_actions=explorer_actions,
    hosting="threads",
    share=SharedPrograms,
    measures=None,
    agent=program_agent,
    reader=ProgramParameters.make_reader,
    data=identities,
)
