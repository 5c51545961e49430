"""Report sentences that an engineer has to read twice, in docstrings, comments, errors and Markdown.

    python -m docs.plain_english                  exit code 1 if a folder has more findings than it may have
    python -m docs.plain_english docs tasks       list all findings there
    python -m docs.plain_english --lower          lower every allowance to the present number of findings

The checker knows habits of wording, such as a hidden actor or a docstring that begins with "Of". It does not
know grammar, so a finding may be a good sentence, and a bad sentence may have no finding. Rewrite the whole
sentence: who acts comes first. ``plain_english.json`` has the number of findings that each folder may keep.
No command raises an allowance.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ALLOWANCES = Path(__file__).with_suffix(".json")
MOST_WORDS = 40
"""The most words of a sentence."""


@dataclass(frozen=True)
class Habit:
    """A habit of wording."""

    name: str
    pattern: re.Pattern[str]
    remedy: str
    opening: bool = False
    """Whether it counts only at the beginning of a docstring."""


def _habit(name: str, pattern: str, remedy: str, opening: bool = False) -> Habit:
    return Habit(name, re.compile(pattern, re.IGNORECASE), remedy, opening)


HABITS = (
    _habit("hidden actor", r"\b(whoever|whosoever|somebody|nobody|anybody)\b", "name who acts"),
    _habit(
        "negated noun",
        r"(?<!there )\b(?:is|are|was|were|be) "
        r"(?:no (?!longer\b|more\b|less\b|\w+er\b)\w+|(?-i:none)\b(?! of))",
        "write 'is not a ...' or 'there is no ...'",
    ),
    _habit(
        "rare word",
        r"\b(?:anew|afresh|thereof|therein|hereby|whilst|but for|oneself|one's own)\b",
        "use a common word",
    ),
    _habit("passive telling", r"\b(?:is|are|was|were|be|been) told\b", "say who reads, receives or logs it"),
    _habit(
        "standing",
        r"\b(?:stands?|stood) "
        r"(?:in|on|at|for|there|beside|above|below|behind|before|after|under|where|nowhere)\b",
        "use 'is', 'means' or 'comes'",
    ),
    _habit(
        "what as a noun",
        r"\bwhat (?:is|was|are|were|has|had) (?:left|there|said|not|no|none|kept|known|meant|seen|told)\b",
        "use a noun",
    ),
    _habit("cut-off 'so'", r"\b(?:is|are|was|were|does|do|did) so(?=[.,;:)])", "say what it is or does"),
    _habit(
        "belonging",
        r"\b(?:is|are|was|were) of (?:the|a|an|its|their|this|that|those|all|one|it|them|what)\b",
        "say what it belongs to or describes",
    ),
    _habit(
        "no subject",
        r"^(?:Of|That|Whose|Beyond|Nor|But|By|To|At|From|In|On|With|Within|As|Such) [^.]*\.?$",
        "write a noun phrase or a whole sentence",
        opening=True,
    ),
)


class Line(NamedTuple):
    """A line of prose."""

    number: int
    text: str
    opens: bool = False
    """Whether a docstring begins with it."""


class Finding(NamedTuple):
    """A place to rewrite."""

    path: Path
    line: int
    habit: str
    remedy: str
    text: str


def prose_of_python(source: str) -> list[Line]:
    """Lines of docstrings, of comments and of the texts in ``raise`` statements, by line.

    Indented lines of a docstring, such as aligned lists and the entries of ``Args``, belong to it. Code
    examples do not: they are lines that begin with ``>>>`` or ``$``.
    """
    found: list[Line] = []
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            for place, text in enumerate(node.value.value.splitlines()):
                if not text.lstrip().startswith((">>>", "$ ", "python ", "|")):
                    found.append(Line(node.lineno + place, text.strip(), opens=place == 0))
        elif isinstance(node, ast.Raise):
            for part in ast.walk(node):
                if (
                    isinstance(part, ast.Constant)
                    and isinstance(part.value, str)
                    and " " in part.value.strip()
                ):
                    found.append(Line(part.lineno, part.value.strip()))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            found.append(Line(token.start[0], token.string.lstrip("# ")))
    return sorted(found, key=lambda line: line.number)


def prose_of_markdown(source: str) -> list[Line]:
    """Lines of paragraphs, lists and tables, without code, generated parts and the targets of links."""
    found, fenced, made = [], False, False
    for number, text in enumerate(source.splitlines(), 1):
        line = text.strip()
        if line.startswith("```"):
            fenced = not fenced
        elif line.startswith("<!--"):
            made = line.startswith("<!-- made")
        elif not (fenced or made or text.startswith("    ") or line.startswith(("#", ">"))):
            found.append(Line(number, line))
    return found


def readable(text: str) -> str:
    """The text with code, formulas and links replaced by a short word."""
    return re.sub(r"\[[^\]]*\]\([^)]*\)|``[^`]*``|`[^`]*`|\$[^$]*\$|:\w+:", "x", text)


def sentences(lines: Sequence[Line]) -> Iterator[Line]:
    """Sentences over lines that follow each other, each at the line where its paragraph begins."""
    paragraph: list[Line] = []
    for line in [*lines, Line(-1, "")]:
        begins = line.text.startswith(("- ", "* ", "|")) or re.match(r"\d+\. |\S+: |\S+  +\S", line.text)
        if paragraph and (not line.text or begins or line.opens or line.number != paragraph[-1].number + 1):
            whole = readable(" ".join(each.text for each in paragraph))
            for sentence in re.split(r"(?<=[.!?:;])\s", whole):
                yield Line(paragraph[0].number, sentence)
            paragraph = []
        if line.text and not line.text.startswith("|"):
            paragraph.append(line)


def findings(path: Path, source: str) -> Iterator[Finding]:
    """All findings in a file's text; ``path`` says whether it is Python or Markdown."""
    lines = prose_of_python(source) if path.suffix == ".py" else prose_of_markdown(source)
    for line in lines:
        text = readable(line.text)
        for habit in HABITS:
            for match in habit.pattern.finditer(text) if line.opens or not habit.opening else ():
                around = text[max(0, match.start() - 40) : match.end() + 40]
                yield Finding(path, line.number, habit.name, habit.remedy, around)
    for sentence in sentences(lines):
        if len(sentence.text.split()) > MOST_WORDS:
            yield Finding(path, sentence.number, "long sentence", "make two sentences", sentence.text[:80])


def folder(path: Path) -> str:
    """The folder whose allowance covers a file: two levels in skillpress and tests, one elsewhere."""
    parts = path.parts[:-1]
    return "/".join(parts[: 2 if parts and parts[0] in ("skillpress", "tests") else 1]) or "."


def excess(found: Mapping[str, int], allowed: Mapping[str, int]) -> dict[str, int]:
    """Folder to the number of findings beyond its allowance, for folders that have too many."""
    return {
        name: count - allowed.get(name, 0) for name, count in found.items() if count > allowed.get(name, 0)
    }


def lowered(found: Mapping[str, int], allowed: Mapping[str, int]) -> dict[str, int]:
    """Allowances that are nowhere larger than before, and no larger than the present counts."""
    return {name: most for name in sorted(allowed) if (most := min(allowed[name], found.get(name, 0)))}


def prose_files(paths: Sequence[str]) -> list[Path]:
    """The repository's Python and Markdown files, without the changelog and vendored files."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    files = [Path(name) for name in listed.splitlines() if (ROOT / name).is_file()]
    kept = [path for path in files if path.name != "CHANGELOG.md" and "vendor" not in path.parts]
    return [path for path in kept if not paths or any(path.is_relative_to(each) for each in paths)]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="docs.plain_english", description="Find sentences to rewrite.")
    parser.add_argument("paths", nargs="*", help="list all findings in these files and folders")
    parser.add_argument("--lower", action="store_true", help="lower allowances to the present counts")
    chosen = parser.parse_args(arguments)
    by_folder: dict[str, list[Finding]] = defaultdict(list)
    for path in prose_files(chosen.paths):
        by_folder[folder(path)] += findings(path, (ROOT / path).read_text(encoding="utf-8"))
    counts = {name: len(each) for name, each in by_folder.items()}
    allowed: dict[str, int] = json.loads(ALLOWANCES.read_text(encoding="utf-8"))
    if chosen.lower:
        ALLOWANCES.write_text(json.dumps(lowered(counts, allowed), indent=2) + "\n", encoding="utf-8")
        return 0
    too_many = excess(counts, {} if chosen.paths else allowed)
    for name in sorted(too_many):
        for each in by_folder[name]:
            print(f"{each.path}:{each.line}: {each.habit} ({each.remedy}): {each.text}")
    for name, more in sorted(too_many.items() if not chosen.paths else ()):
        print(f"{name}: {counts[name]} findings, {more} more than plain_english.json allows; rewrite {more}")
    return int(bool(too_many))


if __name__ == "__main__":
    sys.exit(main())
