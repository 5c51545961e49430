"""Code repair: QuixBugs and HumanEvalFix, with bash, edit and submit, judged by hidden tests."""

from __future__ import annotations

from skillpress.environments.bundle import EnvironmentBundle
from skillpress.environments.code_repair.compact import CompactRendering, vocabulary
from skillpress.environments.code_repair.environment import (
    MEASURES,
    CodeRepair,
    SharedRepairs,
    explorer_actions,
)
from skillpress.environments.code_repair.oracle import GoldPatcher
from skillpress.environments.code_repair.parameters import CodeRepairParameters
from skillpress.environments.code_repair.programs import data_identity
from skillpress.environments.code_repair.prompts import OWN, TextRendering
from skillpress.environments.code_repair.skills import CodeRepairProjection
from skillpress.environments.code_repair.tasks import check_tasks, make_tasks

BUNDLE = EnvironmentBundle(
    parameters=CodeRepairParameters,
    make=CodeRepair,
    make_tasks=make_tasks,
    check_tasks=check_tasks,
    projection=CodeRepairProjection(),
    renderings={
        "compact": lambda section, history: CompactRendering(history),
        "text": lambda section, history: TextRendering(history, OWN),
    },
    vocabulary=vocabulary,
    oracle=GoldPatcher,
    explorer_actions=explorer_actions,
    hosting="threads",
    share=SharedRepairs,
    measures=MEASURES,
    data=data_identity,
)
