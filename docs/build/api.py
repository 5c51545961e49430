"""The pages of the library's API: a page for each module that other code may import."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

MODULES = {
    "The contracts": (
        "skillpress.core.interface",
        "skillpress.core.parsed_action",
        "skillpress.core.engine",
        "skillpress.core.trajectory",
        "skillpress.core.rollout_files",
        "skillpress.core.task_files",
        "skillpress.core.sequence_files",
        "skillpress.core.registry",
        "skillpress.core.sections",
        "skillpress.core.errors",
    ),
    "Skills": (
        "skillpress.skills.fit",
        "skillpress.skills.dictionary",
        "skillpress.skills.shaping",
        "skillpress.skills.buffer",
        "skillpress.skills.step_corpus",
        "skillpress.skills.bounds",
    ),
    "Playing and judging": (
        "skillpress.rollouts.collection",
        "skillpress.evaluation.statistics",
        "skillpress.evaluation.statistics.trainings",
        "skillpress.evaluation.judge.simpleqa",
    ),
    "Sandboxes": ("skillpress.rollouts.sandbox",),
    "Parts to build on": (
        "skillpress.environments.section",
        "skillpress.environments.sandboxed",
        "skillpress.environments.text.rules",
        "skillpress.training.algorithms.algorithm",
        "skillpress.training.algorithms.batch",
        "skillpress.models.engines.batch",
        "skillpress.models.engines.parameters",
    ),
    "An experiment": (
        "skillpress.experiment.params",
        "skillpress.experiment.experiment",
        "skillpress.core.seeds",
        "skillpress.core.storage",
    ),
}
"""Heading to its modules. All other modules may change with any commit."""

HEAD = """# API

The library works without the pipeline: `import skillpress` needs neither DVC nor MLflow nor Prefect. These
are the modules that code outside of the repository may import; [Extending skillpress](extending.md) shows
how they are used. The pages are made from the signatures and docstrings.
"""

PAGE = """# `{module}`

```{{eval-rst}}
.. automodule:: {module}
   :members:
{imported}```
"""

PACKAGES = frozenset(
    {"skillpress.rollouts.collection", "skillpress.evaluation.statistics", "skillpress.rollouts.sandbox"}
)
"""They gather names from their modules (``__all__``)."""


def pages() -> dict[str, str]:
    """Path of a page, from the folder of pages, to its Markdown."""
    parts, found = [HEAD], {}
    for heading, modules in MODULES.items():
        rows = "".join(f"- [`{module}`](api/{module}.md): {summary(module)}\n" for module in modules)
        parts.append(f"## {heading}\n\n{rows}")
        for module in modules:
            found[f"api/{module}.md"] = PAGE.format(
                module=module, imported="   :imported-members:\n" if module in PACKAGES else ""
            )
    listed = "\n".join(f"api/{module}" for modules in MODULES.values() for module in modules)
    parts.append(f"```{{toctree}}\n:hidden:\n\n{listed}\n```\n")
    return found | {"api.md": "\n".join(parts)}


def summary(module: str) -> str:
    """The first sentence of a module's docstring; the module is read and not imported."""
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None, module
    said = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""
    return " ".join(said.partition("\n\n")[0].split()).replace("``", "`")
