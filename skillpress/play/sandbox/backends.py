"""The backends that can build a sandbox, by name. None of them ever replaces another."""

from __future__ import annotations

from typing import Literal

from skillpress.core.errors import UserError
from skillpress.play.sandbox.bubblewrap import Bubblewrap
from skillpress.play.sandbox.jupyter import Jupyter
from skillpress.play.sandbox.sandlock import Sandlock

Backend = Literal["bubblewrap", "jupyter", "sandlock"]
"""``bubblewrap``: namespaces and seccomp. ``jupyter``: the same with a Jupyter kernel inside. ``sandlock``:
Landlock and seccomp, which is weaker."""

BACKENDS: dict[Backend, type[Bubblewrap] | type[Sandlock]] = {
    "bubblewrap": Bubblewrap,
    "jupyter": Jupyter,
    "sandlock": Sandlock,
}


def walls_named(backend: Backend) -> type[Bubblewrap] | type[Sandlock]:
    """Return the class of walls that a backend builds.

    Raises:
        UserError: there is no such backend.
    """
    if backend not in BACKENDS:
        raise UserError(f"sandbox backend {backend!r}: there are {', '.join(BACKENDS)}")
    return BACKENDS[backend]
