"""The page as one document; either a server answers its requests, or the document holds the answers.

Both kinds have the same style and the same script, and both begin with a policy for the browser. It allows
only the one script and the one style whose hashes it names. So a text in an episode could not run even if it
became markup. It cannot become markup either, since the policy forbids scripts to make markup from strings.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from skillpress.core.errors import UserError
from skillpress.reports.viewer.page_script import linked

PAGE = Path(str(files("skillpress.reports.viewer") / "page"))  # a path: its scripts import by relative paths
ENTRY = "app.js"

_UNSAFE_IN_DATA = re.compile("[<\u2028\u2029\ud800-\udfff]")
"""Characters that would end the data's element, or that UTF-8 cannot write."""
_ENDS_ELEMENT = re.compile(r"</(?:script|style)|<!--", re.IGNORECASE)


def live_page() -> str:
    """The page that sends requests to a server."""
    return _document(None)


def self_contained(data: Mapping[str, Any]) -> str:
    """The page that contains its data and needs no server.

    Args:
        data: ``about``, ``episodes``, ``tokens`` and ``dictionary``, as ``EmbeddedSource`` reads them.

    Raises:
        ValueError: a number is not finite, which JSON cannot write.
    """
    return _document(data)


def _document(data: Mapping[str, Any] | None) -> str:
    style, script = (PAGE / "style.css").read_text(encoding="utf-8"), linked(PAGE, ENTRY)
    for name, text in {"style.css": style, "the script": script}.items():
        if ends := _ENDS_ELEMENT.search(text):
            raise UserError(f"{PAGE}: {name} holds {ends[0]!r}, which ends its element")
    document = Template((PAGE / "index.html").read_text(encoding="utf-8"))
    return document.substitute(
        policy=_policy(style, script, alone=data is not None),
        style=style,
        data="" if data is None else _data_element(data),
        script=script,
    )


def _policy(style: str, script: str, *, alone: bool) -> str:
    """The browser's permissions for this document; everything not listed is forbidden."""
    allowed = {
        "default-src": "'none'",
        "script-src": _hash(script),
        "style-src": _hash(style),
        "img-src": "data:",
        "connect-src": "'none'" if alone else "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in allowed.items())


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _data_element(data: Mapping[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    safe = _UNSAFE_IN_DATA.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return f'<script type="application/json" id="episodes">{safe}</script>'
