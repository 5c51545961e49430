"""What a coding agent needs beside its command: variables and files, filled for each episode."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "SSL_CERT_FILE")
"""What an agent without isolation gets of this process's variables: no vendor's key is among them."""
_NAMES = re.compile(r"\{(prompt|base_url|key|home)\}")


def filled(text: str, fills: Mapping[str, str]) -> str:
    """The text with ``{prompt}``, ``{base_url}``, ``{key}`` and ``{home}`` replaced. In one pass: a prompt
    that mentions ``{key}`` stays as it is."""
    return _NAMES.sub(lambda found: fills[found[1]], text)


@dataclass(frozen=True)
class AgentSetting:
    """The variables and files of a coding agent."""

    variables: Mapping[str, str]
    """Environment variables."""
    files: Mapping[str, str]
    """Maps paths below its home to texts."""

    def prepare(self, folder: Path, fills: Mapping[str, str]) -> dict[str, str]:
        """Write the files into the episode's folder, and return the variables. The folder is its home, so it
        neither reads nor changes the user's own settings."""
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(filled(text, fills))
        found = {name: filled(text, fills) for name, text in self.variables.items()}
        return {"HOME": fills["home"], **found}
