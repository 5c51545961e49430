"""Removes private content from texts of a log: secrets, keys, home folders, addresses, long literals.

A word of a log enters a skill only if several tasks share it, which most secrets do not survive. This is the
second safeguard: every text is cleaned when it is read, and the whole document again before it is written.
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
_VALUE = r"(?:'[^'\n]*'|\"[^\"\n]*\"|[^\s'\"]+)"
_USER = re.compile(
    r"((?<!\S)(?:-u[ =]*|--user[ =]+))(?:'[^':\n]+:[^'\n]+'|\"[^\":\n]+:[^\"\n]+\"|[^\s:'\"]+:[^\s'\"]+)"
)
"""``curl -u name:password``; name and password are removed."""
_LOGIN = re.compile(rf"(\blogin\b[^\n|;&]*?\s-[pu][ =]*)(?!<secret>){_VALUE}")
"""``docker login -u name -p password``; ``-p`` of other commands is a port."""
_PIPED = re.compile(
    rf"(\b(?:echo|printf)\s+(?:-\w+\s+)*){_VALUE}(?=\s*\|[^|\n]*(?:\bsudo\s+-\w*S|--password-stdin|\blogin\b))"
)
_CACHE = re.compile(rf"(\b(?:redis-cli\b[^\n|;&]*?\s-a|mongo\w*\b[^\n|;&]*?\s-p)[ =]+){_VALUE}")
_SAID = re.compile(
    r"(\b(?:password|passwd|passphrase|token|secret)\s+(?:is\s+)?)(?=\S*\d)[^\s'\"<>]{4,}", re.IGNORECASE
)
"""``password hunter2`` in a sentence or in .netrc; a value without a digit is an ordinary word."""
_COOKIE = re.compile(r"(\bCookie:\s*)[^'\"\n]+", re.IGNORECASE)
_NAMED = re.compile(rf"(\buser\.(?:name|email)[ =]+|--(?:author|committer)[ =]+){_VALUE}")
"""The names of people in git's options."""
_REMOTE = re.compile(r"(\b(?:ssh|scp|sftp|rsync|mosh)[\w-]*\s[^\n|;&]*?)(?<![\w.+%-])[\w.+%-]+@[\w.-]+")
"""``ssh name@host`` of a host without a dot."""
_MYSQL = re.compile(r"(\bmysql\w*\b[^\n|;]*?\s-p)[^\s-]\S*")
_SSHPASS = re.compile(r"(\bsshpass\s+-p\s*)(?:'[^']*'|\"[^\"]*\"|\S+)")
_ASSIGNED = re.compile(
    r"(\b\w*(?:PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD|SECRET|TOKEN|KEY)=)(?:'[^']*'|\"[^\"]*\"|[^\s'\"]+)",
    re.IGNORECASE,
)
_MAIL = re.compile(r"[\w.+%-]+@(?!v?\d+(?:\.\d+){0,2}(?![\w.]))[\w-]+(?:\.[\w-]+)+")
"""An address; ``package@1.2`` is a version."""
_HOME = re.compile(
    r"(?:(?:/[\w.-]+)*/home\d?/|(?:/mnt/[a-z]|/[a-z]|[A-Za-z]:)?/Users/|[A-Za-z]:\\{1,2}Users\\{1,2})"
    r"[^/\\\s'\"`<>:,;)]+"
    r"|(?<![\w/~])~[A-Za-z_][\w.-]*"
)
_ROOT = re.compile(r"(?<![\w.])/root(?![\w-])")
_KNOWN = re.compile(
    r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\beyJ[\w-]{8,}(?:\.[\w-]+)*|\bxox[a-z]-[\w-]{8,}|\bAIza[\w-]{20,}"
    r"|\bgh[a-z]_\w{16,}|\bnpm_\w{16,}|\b(?:sk|rk|pk|hf|glpat|pypi|shpat|dop_v1)[-_](?=\S*\d)[\w-]{8,}"
)
"""Keys of services, by how they begin."""
_NUMBERED = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
_HOST = re.compile(
    r"(?<![\w:.])(?:(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}|(?:[0-9A-Fa-f]{1,4}:){1,6}(?::[0-9A-Fa-f]{1,4}){1,6}"
    r"|(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2})(?![\w:])"
)
"""IPv6, and the address of a network card."""
_WEBHOOK = re.compile(r"https?://(?:hooks\.slack\.com|[\w.]*discord(?:app)?\.com/api/webhooks)/[^\s'\"<>]+")
_DIALLED = re.compile(r"(?<![\w+])\+\d[\d ()-]{6,}\d(?!\w)|(?<![\w-])(?:\d{4}[ -]){3}\d{4}(?![\w-])")
"""Numbers of telephones and of cards."""
_OPAQUE = re.compile(r"(?<![\w/+-])[\w+=-]{20,}(?![\w/+-])")
_WORD = re.compile(rf"[^\s`]{{{LONGEST_WORD + 1},}}")
_QUOTED = re.compile(r"'[^'\n]{60,}'|\"[^\"\n]{60,}\"")
_VALUES = (
    _OPTION, _ASSIGNED, _SSHPASS, _MYSQL, _USER, _LOGIN, _LOGIN, _PIPED, _CACHE, _SAID, _COOKIE,
)  # fmt: skip
"""Text before a secret is kept; a login has a name and a password."""


def cleaned(text: str) -> str:
    """The text with each private part replaced by a placeholder such as ``<key>``."""
    text = _BLOCK.sub("<key>", text)
    for pattern in _VALUES:
        text = pattern.sub(r"\1<secret>", text)
    text = without_secrets(text).replace("***", "<secret>")
    text = _MAIL.sub("<email>", _REMOTE.sub(r"\1<email>", _NAMED.sub(r"\1<person>", text)))
    text = _ROOT.sub("~", _HOME.sub("~", _KNOWN.sub("<key>", _WEBHOOK.sub("<address>", text))))
    text = _DIALLED.sub("<number>", _HOST.sub("<address>", _NUMBERED.sub("<address>", text)))
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
