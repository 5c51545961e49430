"""Public names of a package that are imported when they are first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose own code never imports its public names.

    The names and their modules are those that the package imports under ``if TYPE_CHECKING:``. Its source is
    read at the first request, so what a program gets is what a type checker sees.
    """

    @cache
    def modules() -> dict[str, str]:
        import ast  # importing skillpress takes no longer because of it

        spec = sys.modules[package].__spec__
        assert spec is not None and spec.loader is not None
        blocks = ast.parse(spec.loader.get_source(package)).body  # type: ignore[attr-defined]
        imports = (node for block in blocks if isinstance(block, ast.If) for node in block.body)
        return {
            alias.name: str(node.module)
            for node in imports
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def get(name: str) -> Any:
        if name not in modules():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules()[name]), name)

    return get, lambda: sorted({*vars(sys.modules[package]), *modules()})
