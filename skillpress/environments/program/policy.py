"""The policy of a program: it reads requests, so its one rendering is the model's own chat template."""

from __future__ import annotations

from dataclasses import dataclass

from skillpress.core.interface import AgentState, Info
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.environments.section import AgentParts
from skillpress.play.programs.agent import ProgramAgent


@dataclass(frozen=True)
class Requests:
    """A ``Rendering`` for what shows an episode as text; the agent itself renders requests with the
    template."""

    parser: str = "plain"
    history: int | None = None

    def prompt(self, state: AgentState) -> str:
        """What the request adds to earlier ones."""
        return state.observation

    def continuation(self, state: AgentState) -> str:
        """The same."""
        return state.observation

    def response(self, action: str, info: Info) -> str:
        """The action itself."""
        return action


def program_agent(section: ProgramParameters, parts: AgentParts) -> ProgramAgent:
    """The agent that answers a program's requests with a policy."""
    return ProgramAgent(
        render=parts.encode_request,
        budget=parts.budget,
        read=section.make_reader(),
        decode=parts.decode,
        reward=parts.reward,
        engine=parts.engine,
        sampling=parts.sampling,
    )
