"""Small workshops: sections with changes, and their tasks."""

from __future__ import annotations

from typing import Any

from skillpress.core.trajectory import Task
from skillpress.environments.section import SplitSizes
from skillpress.environments.workshop.parameters import WorkshopParameters
from skillpress.environments.workshop.tasks import make_tasks

SECTION: dict[str, Any] = {
    "name": "workshop", "max_steps": 16, "subgoals": 2, "orders": 8, "pieces": 16,
    "shortcut": {"length": 3, "skills": "own", "order": "fixed", "share": 0.5}, "synonyms": 1,
}  # fmt: skip
SIZES = SplitSizes(train=64, validation=8, test=32, unseen=12)


def section(shortcut: dict[str, Any] | None = None, **changed: Any) -> WorkshopParameters:
    """The small workshop's section with changes of its shortcut and of other keys."""
    return WorkshopParameters.model_validate(
        {**SECTION, **changed, "shortcut": {**SECTION["shortcut"], **(shortcut or {})}}
    )


def made(parameters: WorkshopParameters, seed: int = 7, sizes: SplitSizes = SIZES) -> list[Task]:
    """The tasks of all splits."""
    return list(make_tasks(parameters, sizes, seed))
