"""Values that a program receives at its start: its task, and its model's address."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MARK = "SKILLPRESS_EPISODE"
"""The variable that identifies a program's processes: ``PID:NAMESPACE:KEY``. PID is the number of the
endpoint's process in this namespace of processes."""
NO_TELEMETRY = {
    "DO_NOT_TRACK": "1",
    "ANONYMIZED_TELEMETRY": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "true",
    "LITELLM_TELEMETRY": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "OTEL_SDK_DISABLED": "true",
}
"""Variables that keep known libraries from calling home."""


@dataclass(frozen=True)
class Start:
    """The values that a program receives at its start."""

    key: str
    url: str
    """The base URL with the key, without ``/v1``."""
    task: Mapping[str, object]
    folder: Path
    """An empty folder of its own, which is its working directory."""
    skills: Sequence[str] = ()
    """The names of the skills that it finds."""
    listed: str = ""
    """Words that name these skills in a prompt."""

    @property
    def printed(self) -> Path:
        """The file of its output, which it cannot open."""
        return self.folder.parent / "printed.txt"

    def fills(self, home: str) -> dict[str, str]:
        """The values that replace names in a coding agent's setting."""
        found = {"prompt": str(self.task.get("prompt", "")), "skills": self.listed}
        return {**found, "base_url": f"{self.url}/v1", "key": self.key, "home": home}

    def variables(self) -> dict[str, str]:
        """The environment variables with which clients find the model, and the program finds its task."""
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_BASE": f"{self.url}/v1",
            "OPENAI_API_KEY": self.key,
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": self.key,
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "GEMINI_API_KEY": self.key,
            "SKILLPRESS_TASK": json.dumps(dict(self.task)),
            **NO_TELEMETRY,
            MARK: f"{os.getpid()}:{namespace()}:{self.key}",
        }


def namespace() -> int:
    """The number of this process's namespace of processes; 0 on a system without them."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0
