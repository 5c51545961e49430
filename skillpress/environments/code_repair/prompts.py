"""Code repair in words, for pretrained models: the task, the tools, past actions, and the current
observation."""

from __future__ import annotations

from skillpress.core.interface import AgentState
from skillpress.environments.code_repair.environment import RepairState
from skillpress.environments.text.prompts import GameRendering, last_turns, noted, own_state, past

OWN = """\
You repair a program. The function {program} in {file} has a bug; what it should do:
{description}

You act by calls of tools, one at a time, each a JSON object in one line, in which a line break is \\n.
Run a command in the repository:
{{"tool": "bash", "command": "ls"}}
Show lines of a file, or without view_range all of it:
{{"tool": "edit", "command": "view", "path": "{file}", "view_range": [1, 20]}}
Replace the one place where old_str stands:
{{"tool": "edit", "command": "str_replace", "path": "{file}", "old_str": "...", "new_str": "..."}}
Add lines after a line:
{{"tool": "edit", "command": "insert", "path": "{file}", "insert_line": 3, "new_str": "..."}}
Run the visible tests:
{{"tool": "test"}}
End the task, so that hidden tests decide; only {file} counts, and there are at most {max_steps} steps:
{{"tool": "submit"}}
"""
_ANSWER = """\
Think before you act: write your reasoning between <think> and </think>. After it, write the one call of a
tool between <action> and </action>.
"""


class TextRendering(GameRendering):
    """One user turn, which says how tools are called."""

    thought = "I take the next step of the repair."

    def prompt(self, state: AgentState) -> str:
        """The text of the prompt; a chat template may be put around it."""
        repair = own_state(state, RepairState)
        opening = self.wording.format(
            program=repair.program,
            file=repair.files[0],
            description=repair.description,
            max_steps=repair.max_steps,
        )
        turns = past(last_turns(state, self.history), repair.steps)
        return f"{opening}\n{noted(state.notes)}{turns}{self.continuation(state)}\n{_ANSWER}"

    def continuation(self, state: AgentState) -> str:
        """The current observation."""
        return f"This is step {own_state(state, RepairState).steps + 1}. You see:\n{state.observation}\n"
