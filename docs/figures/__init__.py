"""The figures of the pages, drawn by code: ``python -m docs.figures`` writes them beside their modules.

All numbers in them are computed by the library when they are drawn, or read from a benchmark's record. The
files are in the repository, so that pages show them there too; a test draws them again and holds the files to
it.
"""

from __future__ import annotations

from collections.abc import Callable

from docs.figures import cut, dictionary, loop, machines, overview, penalty, planted_skills, projection

FIGURES: dict[str, Callable[[], str]] = {
    "overview": overview.draw,
    "step_mdp": loop.draw,
    "skills": projection.draw,
    "dictionary": dictionary.draw,
    "segmentation": cut.draw,
    "shaping": penalty.draw,
    "machines": machines.draw,
    "planted_skills": planted_skills.draw,
}
"""Name of the file to what draws it."""
