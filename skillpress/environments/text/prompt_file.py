"""A prompt in a file: ``policy.rendering: prompts/mine.jinja``.

With it, a checkpoint that another project trained is evaluated on that project's prompt. The file is a Jinja
template of the user turn; :data:`FIELDS` lists what it may use. It is rendered in Jinja's sandbox, so it
reaches nothing else. Responses are read by ``policy.parser``, or as those of ``text``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import StrictUndefined, Template, TemplateError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from skillpress.core.errors import ParamsError
from skillpress.core.interface import AgentState, Info
from skillpress.core.lab import found_here
from skillpress.environments.text.prompts import GameRendering, last_turns, steps_taken

if TYPE_CHECKING:
    from skillpress.environments.section import EnvironmentSection

FIELDS: Mapping[str, str] = {
    "observation": "the current observation",
    "history": "the last policy.history turns, oldest first, each with number, observation and action",
    "actions": "the possible actions; none if they are unknown",
    "step": "the number of this step, from 1",
    "taken": "the number of steps taken so far, also of those that history does not show",
    "notes": "what the state update noted; empty if it keeps turns only",
    "own": "fields of the environment's own state, such as own.goal of alfworld and own.target of countdown",
}
"""Maps each field of a template to its meaning."""


@dataclass(frozen=True)
class PromptFile:
    """The prompt that a template makes."""

    history: int
    file: Path
    template: Template
    usual: GameRendering
    """The environment's rendering ``text``, which knows the possible actions and the form of answers."""

    @property
    def parser(self) -> str:
        """The parser of the rendering ``text``."""
        return self.usual.parser

    def prompt(self, state: AgentState) -> str:
        """The template's text for this state.

        Raises:
            ParamsError: the template uses a field that ``own`` or a turn does not have, or fails.
        """
        own, taken = state.info.state, steps_taken(state)
        turns = last_turns(state, self.history)
        numbered = enumerate(turns, taken - len(turns) + 1)
        shown = [{"number": at, "observation": one.observation, "action": one.action} for at, one in numbered]
        own_fields = [field.name for field in fields(own)] if is_dataclass(own) else []
        try:
            return self.template.render(
                observation=state.observation,
                history=shown,
                actions=self.usual.choices(state),
                step=taken + 1,
                taken=taken,
                notes=state.notes,
                own={name: getattr(own, name) for name in own_fields},
            )
        except (TemplateError, TypeError, ValueError, ArithmeticError) as error:
            raise ParamsError(
                f"policy.rendering: {self.file}: {error}; own has {', '.join(own_fields) or 'no field'} here"
            ) from error

    def continuation(self, state: AgentState) -> str:
        """The current observation alone."""
        return state.observation

    def response(self, action: str, info: Info) -> str:
        """The action in the environment's own wording, in the tags that the parser reads."""
        return self.usual.response(action, info)


def prompt_file(section: EnvironmentSection, name: str, history: int) -> PromptFile:
    """The rendering with the template in this file, which shows at most ``history`` past turns.

    Raises:
        ParamsError: the file does not exist or is not a template, it uses a field that does not exist, or the
        environment has no rendering ``text`` for it to replace.
    """
    usual = section.renderings().get("text", lambda shown: None)(history)
    if not isinstance(usual, GameRendering):
        raise ParamsError(
            f"policy.rendering: is {name!r}, a file with a prompt, but {section.name} has no rendering text "
            f"that it could replace; it has {', '.join(section.renderings())}"
        )
    file = found_here(name)
    try:
        text = file.read_text("utf-8")
        jinja = ImmutableSandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        unknown = meta.find_undeclared_variables(jinja.parse(text)) - set(FIELDS)
        template: Any = jinja.from_string(text)
    except OSError as error:
        raise ParamsError(f"policy.rendering: {file}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ParamsError(f"policy.rendering: {file}: not UTF-8 at byte {error.start}") from None
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        raise ParamsError(f"policy.rendering: {file}: line {line}: not a Jinja template: {error}") from None
    if unknown:
        raise ParamsError(
            f"policy.rendering: {file}: uses {', '.join(sorted(unknown))}; "
            f"a prompt's fields are {', '.join(FIELDS)}"
        )
    return PromptFile(history=history, file=file, template=template, usual=usual)
