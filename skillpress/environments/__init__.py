"""The worlds that an agent can act in, one folder each.

Everything particular to a world stands in its folder: dynamics (``environment.py``), skills
(``skills.py``), wording (``prompts.py``), tasks (``tasks.py``) and demonstrations (``oracle.py``).
Its ``__init__.py`` names them in a ``BUNDLE``. To add a world, add a folder and one line here.
"""

from __future__ import annotations

from importlib import import_module

from skillpress.environments.bundle import EnvironmentBundle, EnvironmentParameters

ENVIRONMENTS: dict[str, str] = {
    "alfworld": "skillpress.environments.alfworld",
    "countdown": "skillpress.environments.countdown",
    "textworld_cooking": "skillpress.environments.textworld_cooking",
}
"""Name in params.yaml to the package that holds its ``BUNDLE``; imported when first asked for."""


def bundle(name: str) -> EnvironmentBundle:
    """What the environment ``name`` consists of.

    Raises:
        ValueError: no environment has this name.
    """
    if name not in ENVIRONMENTS:
        raise ValueError(f"environment {name!r} is unknown; allowed: {', '.join(ENVIRONMENTS)}")
    found = import_module(ENVIRONMENTS[name]).BUNDLE
    assert isinstance(found, EnvironmentBundle)
    return found


def environment_parameters(name: str) -> type[EnvironmentParameters]:
    """The class of the ``environment`` section for this environment."""
    return bundle(name).parameters


__all__ = ["ENVIRONMENTS", "EnvironmentBundle", "EnvironmentParameters", "bundle", "environment_parameters"]
