"""The environments that an agent can act in, one folder each.

What decides an episode stands in the environment's folder and nothing else does: dynamics
(``environment.py``), skills (``skills.py``), wording (``prompts.py``), tasks (``tasks.py``) and
demonstrations (``oracle.py``). Its ``__init__.py`` names them in a ``BUNDLE``; how its episodes are
described in tables stands in ``skillpress/measure/paper``.
"""

from __future__ import annotations

from skillpress.core.registry import ENVIRONMENTS, lookup
from skillpress.environments.bundle import EnvironmentBundle, EnvironmentParameters


def bundle(name: str) -> EnvironmentBundle:
    """What the environment ``name`` consists of.

    Raises:
        ParamsError: no environment has this name.
    """
    found = lookup(ENVIRONMENTS, name, "environment.name")
    assert isinstance(found, EnvironmentBundle)
    return found


__all__ = ["EnvironmentBundle", "EnvironmentParameters", "bundle"]
