"""Takes what is private out of texts of a log: secrets, keys, home folders, addresses, long literals.

A word of a log enters a skill only if several tasks share it, which most secrets do not survive. This is the
second fence: every text is cleaned when it is read, and the whole document again before it is written.
"""

from __future__ import annotations

import re

from skillpress.core.redaction import without_secrets
from skillpress.core.visible import with_codes

LONGEST_WORD = 60
"""The longest word that is not a long literal."""
_BLOCK = re.compile(r"-----BEGIN [A-Z ]+-----.*?(?:-----END [A-Z ]+-----|\Z)", re.DOTALL)
_OPTION = re.compile(
    r"((?<![\w-])--?(?:\w+-)*(?:password|passwd|pass|pwd|secret|token|api-?key|key|credentials?)[ =]+)"
    r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"]+)",
    re.IGNORECASE,
)
"""``--password VALUE``; the value may be quoted."""
_USER = re.compile(r"((?<!\S)(?:-u|--user)[ =]+['\"]?[^\s:'\"]+):[^\s'\"]+")
"""``curl -u name:password``."""
_MYSQL = re.compile(r"(\bmysql\w*\b[^\n|;]*?\s-p)[^\s-]\S*")
_SSHPASS = re.compile(r"(\bsshpass\s+-p\s*)(?:'[^']*'|\"[^\"]*\"|\S+)")
_ASSIGNED = re.compile(
    r"(\b\w*(?:PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD|SECRET|TOKEN|KEY)=)(?:'[^']*'|\"[^\"]*\"|[^\s'\"]+)",
    re.IGNORECASE,
)
_MAIL = re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")
_HOME = re.compile(r"(?:/home/|/Users/|/export/home/|[A-Za-z]:\\{1,2}Users\\{1,2})[^/\\\s'\"`<>:,;)]+")
_ROOT = re.compile(r"(?<![\w.])/root(?![\w-])")
_KNOWN = re.compile(
    r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\beyJ[\w-]{8,}(?:\.[\w-]+)*|\bxox[a-z]-[\w-]{8,}|\bAIza[\w-]{20,}"
    r"|\bgh[a-z]_\w{16,}|\bnpm_\w{16,}"
)
"""Keys of services, by how they begin."""
_NUMBERED = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
_OPAQUE = re.compile(r"(?<![\w/+-])[\w+=-]{20,}(?![\w/+-])")
_WORD = re.compile(rf"[^\s`]{{{LONGEST_WORD + 1},}}")
_QUOTED = re.compile(r"'[^'\n]{60,}'|\"[^\"\n]{60,}\"")


def cleaned(text: str) -> str:
    """The text without what is private; each such part becomes a place such as ``<key>``."""
    text = _BLOCK.sub("<key>", text)
    for pattern in (_OPTION, _ASSIGNED, _SSHPASS, _MYSQL):
        text = pattern.sub(r"\1<secret>", text)
    text = without_secrets(_USER.sub(r"\1:<secret>", text)).replace("***", "<secret>")
    text = _KNOWN.sub("<key>", _MAIL.sub("<email>", text))
    text = _NUMBERED.sub("<address>", _ROOT.sub("~", _HOME.sub("~", text)))
    text = _OPAQUE.sub(lambda found: "<key>" if _opaque(found[0]) else found[0], text)
    text = _WORD.sub(_shortened, _QUOTED.sub("<text>", text))
    return with_codes(text)


def _opaque(word: str) -> bool:
    """Whether a long word looks drawn at random: letters and digits change places often."""
    changes = len(re.findall(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])", word))
    mixed = len(re.findall(r"(?<=[a-z])(?=[A-Z])", word)) + changes
    return changes >= 3 or (mixed >= 5 and not re.search(r"[_-]", word)) or word.isdigit()


def _shortened(found: re.Match[str]) -> str:
    word = found[0]
    return "<file>" if re.fullmatch(r"[\w./~-]+", word) and word.count("/") > 2 else "<text>"
