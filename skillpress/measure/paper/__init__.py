"""What the papers printed, and how the same figures are computed from runs.

Nothing here decides a result: editing this folder makes tables and pages anew and nothing else. Each
environment has a folder of its own (``paper/<environment>``) with its rows of the paper's tables and the
behaviour that only its actions show; it is named in ``FIGURES`` below.
"""

from __future__ import annotations

from skillpress.core.registry import Registry, lookup
from skillpress.measure.paper.figures import EnvironmentFigures

FIGURES: Registry = {
    "alfworld": "skillpress.measure.paper.alfworld:FIGURES",
    "code_repair": "skillpress.measure.paper.code_repair:FIGURES",
    "countdown": "skillpress.measure.paper.countdown:FIGURES",
    "notebook_qa": "skillpress.measure.paper.notebook_qa:FIGURES",
    "textworld_cooking": "skillpress.measure.paper.textworld_cooking:FIGURES",
}
"""``environment.name`` in params.yaml to its figures; not in ``core/registry.py``, which decides."""


def environment_figures(name: str) -> EnvironmentFigures:
    """An environment's figures; none for one that has no folder here."""
    if name not in FIGURES:
        return EnvironmentFigures()
    found = lookup(FIGURES, name, "environment.name")
    assert isinstance(found, EnvironmentFigures)
    return found
