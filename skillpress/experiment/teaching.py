"""The teacher of a skill library (``skills.library.teacher``); imported only by experiments that have one.

The teacher answers like a judge: greedily, with a separate seed for each question. A question is repeated
until the teacher answers or its time is up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from skillpress.core.engine import Sampling
from skillpress.core.interface import Ask
from skillpress.rollouts.chat.asking import ask_server
from skillpress.rollouts.chat.client import ChatClient
from skillpress.rollouts.chat.server import ChatServer
from skillpress.skills.library.parameters import TeacherParameters
from skillpress.skills.library.teacher import remembering

AT_ONCE = 4
"""The most requests at the same time."""


def server(section: TeacherParameters, seed: int, folder: Path) -> Ask:
    """A model behind a chat-completions server.

    Raises:
        ChatError: the address is invalid, or the key's variable is not set.
    """
    server = ChatServer(
        section.url,
        section.model,
        key_variable=section.key_variable,
        omit=tuple(section.omit),
        body=section.body,
        stream=section.stream,
    )
    server.check()
    sampling = Sampling(temperature=0.0, max_new_tokens=section.max_new_tokens)

    def ask(prompts: Sequence[str]) -> Sequence[str]:
        client = ChatClient(server, sampling, folder / "teacher_costs.jsonl")
        try:
            client.meet(patiently=True)
            if not section.model:
                client.server = replace(server, model=client.served_model())
            return ask_server(partial(_whole_lines, client), AT_ONCE, seed)(prompts)
        finally:
            client.close()

    return remembering(ask, folder / "teacher_answers.json")


def _whole_lines(client: ChatClient, prompt: str, seed: int, what: str) -> str:
    """The teacher's answer without a line that was cut off, because half a rule is useless."""
    answer = client.ask(prompt, seed, what)
    return answer.text.rpartition("\n")[0] if answer.ended == "cut_off" else answer.text
