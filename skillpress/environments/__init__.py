"""The environments that an agent can act in, one folder each.

An environment's folder contains everything that determines its episodes: dynamics (``environment.py``),
skills (``skills.py``), wording (``prompts.py``), tasks (``tasks.py``) and demonstrations (``oracle.py``). Its
``__init__.py`` collects them in a ``BUNDLE``. ``skillpress/measure/paper`` defines how its episodes are
described in tables.
"""

from __future__ import annotations

from skillpress.environments.bundle import EnvironmentBundle, EnvironmentParameters, bundle

__all__ = ["EnvironmentBundle", "EnvironmentParameters", "bundle"]
