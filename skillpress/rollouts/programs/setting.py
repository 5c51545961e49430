"""A coding agent's variables and files, filled in for each episode."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillpress.rollouts.programs.start import NO_TELEMETRY, Start

INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "SSL_CERT_FILE")
"""This process's variables that an agent without isolation gets; no vendor's key is among them."""
VENDORS = (
    "ANTHROPIC_", "AZURE_API_", "AZURE_OPENAI_", "CLAUDE_", "CODEX_", "DASHSCOPE_", "GEMINI_", "GOOGLE_",
    "LITELLM_", "MSWEA_", "OPENAI_", "OPENCODE_", "OPENROUTER_", "QWEN_",
)  # fmt: skip
"""Prefixes of variables that lead agents to a vendor's model."""
_NAMES = re.compile(r"\{(prompt|skills|base_url|key|home)\}")


def filled(text: str, fills: Mapping[str, str]) -> str:
    """The text with the names of ``Start.fills`` in braces replaced. All names are replaced in one pass, so a
    prompt that mentions ``{key}`` stays unchanged.
    """
    return _NAMES.sub(lambda found: fills[found[1]], text)


@dataclass(frozen=True)
class AgentSetting:
    """The variables and files of a coding agent."""

    variables: Mapping[str, str]
    """Environment variables."""
    files: Mapping[str, str]
    """Maps paths below the agent's home to texts."""

    def prepare(self, folder: Path, fills: Mapping[str, str]) -> dict[str, str]:
        """Write the files into the episode's folder, and return the variables. The folder is its home, so it
        neither reads nor changes the user's own settings."""
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(filled(text, fills))
        found = {name: filled(text, fills) for name, text in self.variables.items()}
        return {"HOME": fills["home"], **found}


@dataclass(frozen=True)
class VendorVariables:
    """Variables of this process that would lead a program without isolation to a vendor's model."""

    ignored: Sequence[str] = ()
    """Names of variables that the program does not get, or gets with the endpoint's values."""
    kept: Sequence[str] = ()
    """Names of variables that the program gets unchanged."""

    @staticmethod
    def found(
        environment: Mapping[str, str],
        run: str | Sequence[str] | None,
        agents: Mapping[str, str] | None,
    ) -> VendorVariables:
        """The variables in an environment, for a function or command ``run``, or for the coding agent whose
        variables ``agents`` are.
        """
        told = Start("", "", task={}, folder=Path()).variables()
        told = {} if isinstance(run, str) else {name: told[name] for name in told if name not in NO_TELEMETRY}
        replaced = {*told, *(agents or ())}
        named = sorted(name for name in environment if name.startswith(VENDORS) or name in replaced)
        ignored = [name for name in named if agents is not None or name in replaced]
        return VendorVariables(ignored, [name for name in named if name not in ignored])

    def __str__(self) -> str:
        """One line that names them; empty if there are none."""
        ignored = f"{', '.join(self.ignored)} of your variables have no effect on the program"
        kept = f"{', '.join(self.kept)} reach the program and may lead it to a vendor's model"
        return "; ".join([ignored] * bool(self.ignored) + [kept] * bool(self.kept))

    def record(self) -> dict[str, str]:
        """The variables' names, for the records of runs and evaluations."""
        named = {"variables without effect": self.ignored, "variables of vendors": self.kept}
        return {name: ", ".join(found) for name, found in named.items() if found}
