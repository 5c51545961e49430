"""Put prompts to a server, as judges and teachers do.

The seed of a prompt derives from its text, so an answer does not depend on the other prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from skillpress.core.interface import Ask
from skillpress.core.seeds import derive

Reply = Callable[[str, int, str], str]
"""One question to a server, such as ``chat.client.ChatClient.reply``; it keeps its own deadline."""


def ask_server(reply: Reply, at_once: int, seed: int) -> Ask:
    """Asks a server, with at most ``at_once`` prompts at the same time."""

    def ask(prompts: Sequence[str]) -> list[str]:
        with ThreadPoolExecutor(at_once, thread_name_prefix="judge") as threads:
            answers = [
                threads.submit(reply, prompt, derive(seed, "judge", prompt), f"answer {number} to be judged")
                for number, prompt in enumerate(prompts)
            ]
            try:
                return [answer.result() for answer in answers]
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    return ask
