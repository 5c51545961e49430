"""The ``environment`` section of params.yaml for a server that speaks OpenEnv's protocol."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from skillpress.core.errors import UserError
from skillpress.core.sections import Section
from skillpress.environments.bundle import EnvironmentParameters
from skillpress.environments.text.stated_rules import StatedRules, Word

_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
"""Of the address to that of its WebSocket."""


class Fields(Section):
    """What the server calls the parts of an observation; every server has names of its own."""

    text: list[Word] = Field(default=[])
    """What the agent sees; none shows the whole observation as JSON."""
    admissible: str = ""
    """The list of actions that would be carried out now; empty where no field tells."""
    action: str = ""
    """The last action in the server's own wording, by which skills are named; empty where no field tells."""
    invalid: str = ""
    """Why the last action was not carried out, or null; empty where no field tells."""


class OpenEnvParameters(EnvironmentParameters):
    """Where the server is, what is played there, and how it is read."""

    url: str
    """Such as ``http://127.0.0.1:8000``. Part of what is played: another address is another experiment."""
    resets: str = ""
    """A JSONL file with the arguments of a reset on each line, each a task; empty takes ``{"seed": n}``."""
    first_seed: Annotated[int, Field(ge=0)] = 0
    """The smallest n."""
    opening: Annotated[str, Field(min_length=1)]
    """What the task is: the first lines of every prompt."""
    action: str = "message"
    """The field of an action that takes the agent's text; empty where the agent writes the whole action as a
    JSON object."""
    tool: str = "tool_name"
    """The field of a JSON action that names its tool, which skills are read off."""
    fields: Fields = Field(default_factory=Fields)
    actions: list[Word] = Field(default_factory=list)
    """All actions that there are, where no field tells which are admissible; empty where they cannot be
    listed."""
    won_at: float
    """An episode is won that is done with a last reward of at least this."""
    seconds: Annotated[float, Field(gt=0)] = 60.0
    """For one answer of the server."""
    observation_characters: Annotated[int, Field(ge=100)] = 8000
    """That the agent sees; the middle of more is left out."""
    key_variable: str = ""
    """Environment variable whose value is sent as a bearer token; empty sends none."""
    skills: StatedRules = Field(default_factory=StatedRules)

    @property
    def title(self) -> str:
        """The server that plays it."""
        return f"{self.name} at {urlsplit(self.url).netloc}"

    @property
    def has_oracle(self) -> bool:
        """Nobody demonstrates."""
        return False

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in _SCHEMES or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("must be an address such as http://127.0.0.1:8000")
        if parts.username or parts.password:
            raise ValueError("holds a password; name an environment variable in key_variable instead")
        return url

    @property
    def socket_url(self) -> str:
        """Where the WebSocket is."""
        parts = urlsplit(self.url)
        return f"{_SCHEMES[parts.scheme]}://{parts.netloc}{parts.path.rstrip('/')}/ws"

    @property
    def headers(self) -> dict[str, str]:
        """What a connection is opened with.

        Raises:
            UserError: the variable is not set.
        """
        if not self.key_variable:
            return {}
        key = os.environ.get(self.key_variable)
        if not key:
            raise UserError(
                f"environment.key_variable: the environment variable {self.key_variable} is not set"
            )
        return {"Authorization": f"Bearer {key}"}


def resets_identity(parameters: OpenEnvParameters) -> dict[str, str]:
    """The file of reset arguments to a hash of what is in it.

    Raises:
        UserError: it cannot be read.
    """
    if not parameters.resets:
        return {}
    file = Path(parameters.resets).expanduser()
    try:
        return {file.name: hashlib.blake2b(file.read_bytes()).hexdigest()[:32]}
    except OSError as error:
        raise UserError(f"environment.resets: {file} cannot be read: {error}") from error
