"""A shell command line as the commands that it runs, in order.

``cd /repo && timeout 60 python -m pytest -q | tail -3`` runs ``pytest -q`` and ``tail -3``. A line is split
at pipes, ``&&``, ``||``, ``;``, ``&``, line breaks and round brackets. Quoted text, ``$(...)`` and
here-documents are never split. What only prepares or wraps a command is skipped: ``cd`` and ``export``,
assignments, ``sudo``, ``timeout``, ``python -m``, keywords such as ``do``. A line that only prepares keeps
its commands. This is not a shell's grammar: it reads what agents write, and never fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_QUOTED = r"""'[^']*(?:'|\Z)|"(?:\\.|[^"\\])*(?:"|\Z)|`[^`]*(?:`|\Z)|\\."""
_PIECE = re.compile(
    rf"(?P<kept>{_QUOTED}|[<>]&|&>>?|<<<|[\w./-]+)"
    r"|(?P<nested>[$<>]\()|(?P<comment>(?<!\S)\#[^\n]*)"
    r"|(?P<end>&&|\|\||\|&|[|&;\n()])|(?P<other>.)",
    re.DOTALL,
)
_HERE = re.compile(r"""(?<!<)<<-?[ \t]*(['"]?)([A-Za-z_][\w.-]*)\1([^\n]*)""")
_WORD = re.compile(rf"(?:{_QUOTED}|\S)+", re.DOTALL)
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")

KEYWORDS = frozenset(["do", "then", "else", "elif", "if", "while", "until", "!", "{", "time"])
DROPPED = frozenset([
    "for", "select", "case", "done", "fi", "esac", "}", "in", "break", "continue", "function", "true", ":",
])  # fmt: skip
PREPARE = frozenset([
    "cd", "pushd", "popd", "export", "set", "source", ".", "unset", "shopt", "ulimit", "alias",
])  # fmt: skip
WRAPPERS = {
    "sudo": "ugpCh", "doas": "u", "env": "uCS", "nohup": "", "command": "", "exec": "", "builtin": "",
    "nice": "n", "ionice": "cn", "stdbuf": "ioe", "setsid": "", "timeout": "sk", "gtimeout": "sk",
    "xargs": "nIPLdaEs",
}  # fmt: skip
"""Commands that run another one, with their short options that take a value."""
RUNNERS = {
    ("python", "-m"), ("python3", "-m"), ("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("pdm", "run"),
}  # fmt: skip
"""Pairs of words that run the command that follows them."""
SHELLS = frozenset(["sh", "bash", "zsh", "dash"])
DEEPEST = 3


def text_of_command(value: Any) -> str:
    """The command line in a call's argument: the text itself, or a list of words joined by spaces."""
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        if len(value) > 2 and program(value[0]) in SHELLS and re.fullmatch(r"-\w*c", value[1]):
            return str(value[2])
        return " ".join(value)
    return value if isinstance(value, str) else ""


def commands(text: str, level: int = 0) -> list[str]:
    """The commands that a line runs, each from the program's name on. Preparations count only if there is
    nothing else."""
    run: list[str] = []
    prepared: list[str] = []
    for simple in _simple(_without_bodies(text)):
        words = [(found[0], found.start()) for found in _WORD.finditer(simple)]
        first = _skipped(words)
        if first >= len(words) or not (name := program(words[first][0])):
            continue
        rest = [_unquoted(word) for word, _ in words[first + 1 :]]
        if name in SHELLS and len(rest) > 1 and re.fullmatch(r"-\w*c", rest[0]) and level < DEEPEST:
            run += commands(rest[1], level + 1)
            continue
        begun, word = words[first][1], words[first][0]
        found = name + simple[begun + len(word) :].rstrip()
        (prepared if name in PREPARE else run).append(found)
    return run or prepared


def program(word: str) -> str:
    """A command's first word without quotes and without the folder before it."""
    name = _unquoted(re.split("[<>]", _unquoted(word))[0])
    return name.rstrip("/").rpartition("/")[2].strip()


def _without_bodies(text: str) -> str:
    """The text without its here-documents. If the log cuts one off, it ends with the text, provided that its
    mark is in capitals; any other ``<<`` begins none.
    """
    place, kept = 0, ""
    while opened := _HERE.search(text, place):
        closed = re.compile(rf"\n[ \t]*{re.escape(opened[2])}[ \t]*(?=[\n)]|\Z)").search(text, opened.end())
        if closed is None and not opened[2].isupper():
            return kept + text[place:]
        kept += text[place : opened.start()] + opened[3]
        place = len(text) if closed is None else closed.end()
    return kept + text[place:]


def _simple(text: str) -> Iterator[str]:
    """The pieces between the operators outside quotes and ``$(...)``."""
    kept: list[str] = []
    depth = 0
    for found in _PIECE.finditer(text.replace("\\\n", " ")):
        kind = found.lastgroup
        if kind == "nested" or (depth and found[0] == "("):
            depth += 1
        elif depth:
            depth -= found[0] == ")"
        elif kind == "end":
            yield "".join(kept).strip()
            kept = []
            continue
        if kind != "comment":
            kept.append(found[0])
    yield "".join(kept).strip()


def _skipped(words: list[tuple[str, int]]) -> int:
    """Index of the word that names the program; the number of words if there is none."""
    place = 0
    while place < len(words):
        word = words[place][0]
        name = program(word)
        if word in DROPPED:
            return len(words)
        if word in KEYWORDS or _ASSIGNED.match(word):
            place += 1
        elif name in WRAPPERS and place + 1 < len(words):
            place = _past_options(words, place + 1, WRAPPERS[name])
            place += name.endswith("timeout")  # its duration
        elif place + 2 < len(words) and (name, words[place + 1][0]) in RUNNERS:
            place += 2
        elif re.match(r"\d*[<>]", word):
            place += 2 if re.fullmatch(r"\d*[<>]+", word) else 1
        else:
            return place
    return place


def _past_options(words: list[tuple[str, int]], place: int, valued: str) -> int:
    while place < len(words) and words[place][0].startswith("-"):
        option = words[place][0]
        place += 2 if len(option) == 2 and option[1] in valued else 1
    return place


def _unquoted(word: str) -> str:
    if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"":
        inside = word[1:-1]
        return inside if word[0] == "'" else re.sub(r'\\(["\\$`])', r"\1", inside)
    return word
