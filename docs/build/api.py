"""The pages of the library's API: a page for each module that somebody else's code may import."""

from __future__ import annotations

MODULES = {
    "The contracts": (
        "skillpress.interface",
        "skillpress.trajectory",
        "skillpress.registry",
        "skillpress.errors",
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
        "skillpress.rollout",
        "skillpress.evaluation",
        "skillpress.evaluation.trainings",
        "skillpress.judge.simpleqa",
    ),
    "Sandboxes": ("skillpress.sandbox",),
    "Parts to build on": (
        "skillpress.environments.bundle",
        "skillpress.environments.sandboxed",
        "skillpress.environments.text.rules",
        "skillpress.algorithms.algorithm",
        "skillpress.algorithms.batch",
        "skillpress.engines.batch",
        "skillpress.engines.parameters",
    ),
    "An experiment": (
        "skillpress.params",
        "skillpress.experiment.experiment",
        "skillpress.seeds",
        "skillpress.storage",
    ),
}
"""Heading to its modules. What is not here may change with any commit."""

HEAD = """# API

The library works without the pipeline: `import skillpress` needs neither DVC nor MLflow nor Prefect. These
are the modules that code outside of the repository may import; [extending.md](extending.md) shows how they
are used. The pages are made from the signatures and docstrings.
"""

PAGE = """# `{module}`

```{{eval-rst}}
.. automodule:: {module}
   :members:
{imported}```
"""

PACKAGES = frozenset({"skillpress.rollout", "skillpress.evaluation", "skillpress.sandbox"})
"""They gather names from their modules (``__all__``)."""


def pages() -> dict[str, str]:
    """Path of a page, from the folder of pages, to its Markdown."""
    parts, found = [HEAD], {}
    for heading, modules in MODULES.items():
        parts.append(
            f"## {heading}\n\n" + "\n".join(f"- [`{module}`](api/{module}.md)" for module in modules) + "\n"
        )
        for module in modules:
            found[f"api/{module}.md"] = PAGE.format(
                module=module, imported="   :imported-members:\n" if module in PACKAGES else ""
            )
    listed = "\n".join(f"api/{module}" for modules in MODULES.values() for module in modules)
    parts.append(f"```{{toctree}}\n:hidden:\n\n{listed}\n```\n")
    return found | {"api.md": "\n".join(parts)}
