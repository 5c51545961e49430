"""The ways to build a sandbox, by name. None is ever taken in another's place."""

from __future__ import annotations

from typing import Literal

from skillpress.core.errors import UserError
from skillpress.play.sandbox.bubblewrap import Bubblewrap
from skillpress.play.sandbox.jupyter import Jupyter
from skillpress.play.sandbox.sandlock import Sandlock

Backend = Literal["bubblewrap", "jupyter", "sandlock"]
"""Namespaces and seccomp; the same with a Jupyter kernel inside; Landlock and seccomp, which is weaker."""

BACKENDS: dict[Backend, type[Bubblewrap] | type[Sandlock]] = {
    "bubblewrap": Bubblewrap,
    "jupyter": Jupyter,
    "sandlock": Sandlock,
}


def walls_named(backend: Backend) -> type[Bubblewrap] | type[Sandlock]:
    """The kind of walls that a backend builds.

    Raises:
        UserError: there is no such backend.
    """
    if backend not in BACKENDS:
        raise UserError(f"sandbox backend {backend!r}: there are {', '.join(BACKENDS)}")
    return BACKENDS[backend]
