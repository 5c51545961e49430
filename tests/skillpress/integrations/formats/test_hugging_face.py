"""A folder for Hugging Face ``datasets``, read back by ``load_from_disk``."""

from __future__ import annotations

from pathlib import Path

import datasets
import pytest

from skillpress.core.trajectory import Trajectory
from skillpress.integrations.formats import hugging_face
from skillpress.integrations.formats.hugging_face import write_datasets
from skillpress.integrations.formats.texts import Texts
from tests.support.integrations.playing import episode, unsampled


def written(folder: Path, played: list[Trajectory], texts: Texts) -> datasets.Dataset:
    write_datasets(folder / "episodes", played, texts)
    return datasets.load_from_disk(str(folder / "episodes"))


def test_a_row_is_a_decision_with_its_exact_text_and_tokens(tmp_path: Path, texts: Texts) -> None:
    rows = written(tmp_path, [episode()], texts)
    assert rows["prompt"] == ["<start> you see a door"] * 3
    assert rows["completion"] == ["think first open", "a door", "open it"]
    assert rows["decision"] == [0, 1, 2] and rows["summary"] == [False, True, False]
    for row, decision in zip(rows, episode().decisions, strict=True):
        assert tuple(row["prompt_ids"]) == decision.prompt_ids
        assert tuple(row["completion_ids"]) == decision.response_ids
        assert row["logprobs"] == decision.logprobs.tolist()
        assert (row["action"], row["observation"]) == (decision.action, decision.observation)
        assert (row["invalid"], row["reward"]) == (decision.invalid, decision.reward)
        assert (row["won"], row["episode_reward"], row["policy_version"]) == (True, 10.5, 3)


def test_an_agent_without_tokens_has_no_prompts(tmp_path: Path, texts: Texts) -> None:
    rows = written(tmp_path, [unsampled()], texts)
    assert rows["prompt"] == [None, None] and rows["completion"] == ["why not\nlook", ""]
    assert rows["prompt_ids"] == [[], []]


def test_episodes_keep_their_order_over_many_stretches(
    tmp_path: Path, texts: Texts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hugging_face, "HELD", 2)
    rows = written(tmp_path, [episode(number) for number in range(7)], texts)
    assert rows["rollout_index"] == [number for number in range(7) for _ in range(3)]


def test_nothing_but_the_dataset_is_left(tmp_path: Path, texts: Texts) -> None:
    written(tmp_path, [episode()], texts)
    assert [path.name for path in tmp_path.iterdir()] == ["episodes"]
    assert all(path.suffix in (".arrow", ".json") for path in (tmp_path / "episodes").iterdir())
