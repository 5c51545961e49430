"""llms.txt: the list of pages for programs that read, a line each (the form of llmstxt.org)."""

from __future__ import annotations

from pathlib import Path

from docs.build.contents import sayings, sections
from docs.build.markdown import LINK, prose, title

IDEA = "Reinforcement learning of language agents whose successes compress into reusable skills."


def text(pages: Path) -> str:
    """The file; addresses are those of the Markdown pages beside the HTML ones."""
    lines, said = ["# skillpress", "", f"> {IDEA}"], sayings(pages)
    for heading, names in sections(pages).items():
        lines += ["", f"## {heading}", ""]
        for name in names:
            page = pages / f"{name}.md"
            lines.append(
                f"- [{title(page)}](_sources/{name}.md.txt): {said.get(name) or first_sentence(page)}"
            )
    return "\n".join(lines) + "\n"


def first_sentence(page: Path) -> str:
    """A page's own description, up to its first full stop, if no other page describes it."""
    for paragraph in prose(page.read_text(encoding="utf-8")).split("\n\n"):
        words = " ".join(paragraph.split())
        if words and words[0] not in "#|!-<`":
            sentence, mark, _ = LINK.sub(r"\g<text>", words).partition(". ")
            return sentence + mark.strip()
    return ""
