"""ShareGPT, read back by the JSON loader of ``datasets`` and made into chat messages by TRL."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import datasets
from trl import maybe_convert_to_chatml

from skillpress.core.trajectory import Trajectory
from skillpress.integrations.formats.sharegpt import write_sharegpt
from skillpress.integrations.formats.texts import Texts
from tests.support.integrations.playing import episode, unsampled


def written(folder: Path, played: list[Trajectory], texts: Texts) -> datasets.Dataset:
    path = folder / "talks.jsonl"
    write_sharegpt(path, played, texts)
    return datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=str(folder / "cache"))


def test_a_talk_takes_turns_and_ends_with_an_answer(tmp_path: Path, texts: Texts) -> None:
    talks = written(tmp_path, [episode(), unsampled()], texts)
    assert talks[0]["conversations"] == [
        {"from": "human", "value": "You see a door."},
        {"from": "gpt", "value": "think first open"},
        {"from": "human", "value": "what?"},
        {"from": "gpt", "value": "open it"},
    ], "a summary is no turn, and nobody answers the last observation"
    for talk in talks["conversations"]:
        expected = zip(talk, cycle(["human", "gpt"]), strict=False)
        assert all(turn["from"] == speaker for turn, speaker in expected) and talk[-1]["from"] == "gpt"


def test_who_played_what_and_how_it_ended_stand_beside_the_talk(tmp_path: Path, texts: Texts) -> None:
    row = written(tmp_path, [episode()], texts)[0]
    assert row["id"] == "trained/run-0/door/0" and row["policy"] == "trained"
    assert (row["won"], row["outcome"], row["reward"]) == (True, "won", 10.5)


def test_trl_makes_chat_messages_of_it(tmp_path: Path, texts: Texts) -> None:
    row = maybe_convert_to_chatml(written(tmp_path, [episode()], texts)[0])
    assert [message["content"] for message in row["messages"]] == [
        "You see a door.", "think first open", "what?", "open it",
    ]  # fmt: skip
