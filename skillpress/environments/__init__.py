"""The environments that an agent can act in, one folder each.

An environment's folder contains everything that determines its episodes: dynamics (``environment.py``),
skills (``skills.py``), wording (``prompts.py``), tasks (``tasks.py``) and demonstrations (``oracle.py``). Its
``__init__.py`` collects them in a ``BUNDLE``. ``skillpress/measure/paper`` defines how its episodes are
described in tables.
"""

from __future__ import annotations

from skillpress.core.registry import ENVIRONMENTS, lookup
from skillpress.environments.bundle import EnvironmentBundle, EnvironmentParameters


def bundle(name: str) -> EnvironmentBundle:
    """Return the bundle of the environment ``name``.

    Raises:
        ParamsError: no environment has this name.
    """
    found = lookup(ENVIRONMENTS, name, "environment.name")
    assert isinstance(found, EnvironmentBundle)
    return found


__all__ = ["EnvironmentBundle", "EnvironmentParameters", "bundle"]
