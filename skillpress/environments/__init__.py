"""The environments that an agent can act in, one folder each.

An environment's folder contains everything that determines its episodes: dynamics (``environment.py``),
skills (``skills.py``), wording (``prompts.py``), tasks (``tasks.py``) and demonstrations (``oracle.py``). Its
section of params.yaml (``parameters.py``) is the environment: a class whose methods make these parts.
``skillpress/evaluation/paper`` defines how its episodes are described in tables.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from skillpress.environments.section import (
    EnvironmentSection,
    Oracle,
    Projection,
    SplitSizes,
    environment_class,
)
from skillpress.environments.text.rules import VerbProjection
from skillpress.environments.text.spaces import AnyText

__all__ = [
    "AnyText",
    "EnvironmentSection",
    "Oracle",
    "Projection",
    "SplitSizes",
    "VerbProjection",
    "environment_class",
]


def __getattr__(name: str) -> Any:
    # The form before 0.2 is imported for those alone that ask for it.
    if name in ("EnvironmentBundle", "EnvironmentParameters"):
        return getattr(import_module(f"{__name__}.bundle"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
