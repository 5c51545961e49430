"""Countdown as a program: it keeps the pool, what can be undone and its last words, and asks for one word at
a time, such as ``-02``: the number in slot 2 of the pool minus the number in slot 0."""

from typing import Any

import openai

HTTP = openai.DefaultAsyncHttpxClient()  # shared by all episodes of a process: making one takes 20 ms
OPERATIONS = {f"{sign}{i}{j}" for sign in "+-*/" for j in range(4) for i in range(j)}
STEPS, LARGEST = 10, 999


def operated(pool: list[int], word: str) -> list[int] | None:
    """The pool after an operation; None if it is not legal."""
    if word not in OPERATIONS or int(word[2]) >= len(pool):
        return None
    small, large = pool[int(word[1])], pool[int(word[2])]
    over, under = (large, small) if small else (small, large)  # division by 0 means 0 divided by the other
    made = {"+": large + small, "-": large - small, "*": large * small, "/": over // (under or 1)}[word[0]]
    legal = made <= LARGEST and (word[0] != "/" or (under and over % under == 0))
    rest = [number for slot, number in enumerate(pool) if str(slot) not in word[1:]]
    return sorted([*rest, made]) if legal else None


async def play(task: dict[str, Any], base_url: str, api_key: str) -> str:
    """Play until the target is made, the game is stuck, or all steps are taken."""
    client = openai.AsyncOpenAI(base_url=base_url, api_key=api_key, http_client=HTTP)
    pool: list[int] = sorted(task["numbers"])
    undo: list[list[int]] = []
    said: list[str] = []
    while pool != [task["target"]] and len(said) < STEPS:
        shown = [task["target"], *pool, *["_"] * (8 - len(pool) - len(said[-4:])), *said[-4:]]
        content = " ".join(map(str, shown))
        answer = await client.chat.completions.create(
            model="policy", messages=[{"role": "user", "content": content}]
        )
        word = answer.choices[0].message.content or ""
        said.append(word if word in OPERATIONS | {"rollback", "reset"} else "?")
        if word == "rollback" and undo:
            pool = undo.pop()
        elif word == "reset" and undo:
            pool, undo = undo[0], []
        elif word not in ("rollback", "reset") and len(pool) < 2:
            return "stuck"
        elif after := operated(pool, word):
            pool, undo = after, [*undo, pool]
    return " ".join(map(str, pool))
