"""The order of the pages: the lists of docs/index.md, then all other pages.

docs/index.md is the only table of contents, for readers of the repository and for the site. A section is a
heading and the pages linked below it, each with its description after the link. Pages made from the code come
under MADE. A page that no section links to comes under MORE, so that a new file of docs/ is on the site at
once.
"""

from __future__ import annotations

import re
from pathlib import Path

from docs.build.markdown import links

MADE = "Made from the code"
MADE_PAGES = ("parameters", "command_line", "api")
MORE = "More"

LINE = re.compile(r"^- \[[^\]]*\]\((\S+)\.md\): (.+(?:\n  .+)*)", re.MULTILINE)
"""The description of a page."""


def sections(pages: Path) -> dict[str, list[str]]:
    """Heading to the names of its pages, without ``.md``, for a folder with ``index.md`` in it."""
    found: dict[str, list[str]] = {}
    listed: list[str] = []
    for part in ("\n" + (pages / "index.md").read_text(encoding="utf-8")).split("\n## ")[1:]:
        heading, _, below = part.partition("\n")
        for match in links(below):
            name = match["target"].removesuffix(".md")
            if (pages / f"{name}.md").is_file() and name not in listed:
                listed.append(name)
                found.setdefault(heading, []).append(name)
    made = [name for name in MADE_PAGES if (pages / f"{name}.md").is_file()]
    rest = sorted({page.stem for page in pages.glob("*.md")} - {*listed, *made, "index"})
    return {heading: names for heading, names in (found | {MADE: made, MORE: rest}).items() if names}


def sayings(pages: Path) -> dict[str, str]:
    """Name of a page to what docs/index.md says of it."""
    found = LINE.findall((pages / "index.md").read_text(encoding="utf-8"))
    return {name: " ".join(words.split()) for name, words in found}


def toctrees(pages: Path) -> str:
    """The sections as Sphinx wants them: not shown on the page, but in the margin of all."""
    return "".join(
        "\n```{toctree}\n:hidden:\n:caption: " + heading + "\n\n" + "\n".join(names) + "\n```\n"
        for heading, names in sections(pages).items()
    )
