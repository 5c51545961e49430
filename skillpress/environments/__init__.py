"""The environments that an agent can act in, one folder each.

What decides an episode stands in the environment's folder and nothing else does: dynamics
(``environment.py``), skills (``skills.py``), wording (``prompts.py``), tasks (``tasks.py``) and
demonstrations (``oracle.py``). Its ``__init__.py`` names them in a ``BUNDLE``; how its episodes are
described in tables stands in ``skillpress/measure/paper``.
"""

from __future__ import annotations

from skillpress.environments.bundle import EnvironmentBundle, EnvironmentParameters, bundle

__all__ = ["EnvironmentBundle", "EnvironmentParameters", "bundle"]
