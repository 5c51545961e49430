"""Who writes a library's skills, from ``skills.library.teacher``; imported where an experiment has a teacher.

The teacher is asked as a judge is: greedily, each question with a seed of its own, until it answers or its
time is up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from skillpress.chat.client import ChatClient
from skillpress.chat.server import ChatServer
from skillpress.interface import Sampling
from skillpress.judge.asking import ask_server
from skillpress.library.teacher import Ask, remembering
from skillpress.params import TeacherParameters

AT_ONCE = 4
"""Requests under way at most."""


def server(section: TeacherParameters, seed: int, folder: Path) -> Ask:
    """A model behind a chat-completions server.

    Args:
        folder: where its answers are kept until the training has ended, and what they cost.

    Raises:
        ChatError: the address is none, or the key's variable is not set.
    """
    server = ChatServer(
        section.url, section.model, key_variable=section.key_variable, omit=tuple(section.omit)
    )
    server.check()
    sampling = Sampling(temperature=0.0, max_new_tokens=section.max_new_tokens)

    def ask(prompts: Sequence[str]) -> Sequence[str]:
        client = ChatClient(server, sampling, folder / "teacher_costs.jsonl")
        if not section.model:
            client.server = replace(server, model=client.served_model())
        try:
            return ask_server(client.reply, AT_ONCE, seed)(prompts)
        finally:
            client.close()

    return remembering(ask, folder / "teacher_answers.json")
