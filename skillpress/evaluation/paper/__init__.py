"""The papers' printed figures, and the same figures computed from runs.

This folder decides no result: an edit remakes tables and pages and nothing else. Each environment has its own
folder (``paper/<environment>``) with its rows of the paper's tables and the behaviour that only its actions
show. ``FIGURES`` below lists these folders.
"""

from __future__ import annotations

from skillpress.core.registry import Registry, lookup
from skillpress.evaluation.paper.figures import EnvironmentFigures

FIGURES = Registry(
    "",
    "environment.name",
    {
        "alfworld": "skillpress.evaluation.paper.alfworld:FIGURES",
        "code_repair": "skillpress.evaluation.paper.code_repair:FIGURES",
        "countdown": "skillpress.evaluation.paper.countdown:FIGURES",
        "notebook_qa": "skillpress.evaluation.paper.notebook_qa:FIGURES",
        "shop": "skillpress.evaluation.paper.shop:FIGURES",
        "textworld_cooking": "skillpress.evaluation.paper.textworld_cooking:FIGURES",
    },
)
"""``environment.name`` to its figures; not in ``core/registry.py``, which decides results."""


def environment_figures(name: str) -> EnvironmentFigures:
    """An environment's figures; none if it has no folder here."""
    if name not in FIGURES:
        return EnvironmentFigures()
    found = lookup(FIGURES, name, "environment.name")
    assert isinstance(found, EnvironmentFigures)
    return found
