"""A probe's figures of episodes, calculated by hand."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.errors import StorageError
from skillpress.core.storage import write_text
from skillpress.core.trajectory import Task
from skillpress.experiment.params import load_params
from skillpress.training.loop.describing.probes import (
    PROBE_SCHEMA,
    ProbedEpisode,
    frame_of,
    metrics_of,
    probe_rows,
    probed_tasks,
    read_probes,
)

SKILLS = load_params(Path(__file__).parents[5] / "params.yaml").skills
ALPHABET = ("A", "B", "C")
T = 10


def episode(
    split: str, number: int, skills: str, stratum: str = "", won: bool = True, steps: int = 0
) -> ProbedEpisode:
    return ProbedEpisode(
        split=split, number=number, stratum=stratum, won=won, steps=steps or len(skills), skills=tuple(skills)
    )


def rows(episodes: list[ProbedEpisode]) -> list[dict]:
    return probe_rows(4, episodes, ALPHABET, SKILLS, T, 0)


TRAINING = [episode("train", number, "AB", "easy") for number in range(60)]
"""60 successes, each of which is one phrase."""
UNSEEN = [
    episode("unseen", 0, "ABC", "near", steps=5),
    episode("unseen", 1, "A", "near"),
    episode("unseen", 2, "CCC", "far", won=False),
]


def test_training_successes_are_described_by_their_own_dictionary() -> None:
    """The singletons and AB: each phrase takes log2 3 bits per skill, and log2 4 for its length (Eq. 2)."""
    lost = episode("train", 60, "CCCC", "hard", won=False)
    whole = rows([*TRAINING, lost])[0]
    bits = 3 * (math.log2(3) + 2) + (2 * math.log2(3) + 2)
    assert whole["description_length"] == pytest.approx((bits + 60 * 2) / 60)
    assert (whole["tasks"], whole["success"], whole["corpus"], whole["phrases"]) == (61, 60 / 61, 60, 1)
    assert (whole["steps"], whole["skills"], whole["segments"], whole["segments_per_skill"]) == (2, 2, 1, 0.5)


def test_the_certificate_is_the_half_samples() -> None:
    """30 successes teach AB; the other 30 need 1 segment of T = 10 each. The bound is the largest l with
    kl(0.1 || l) <= ln(20) / 30, found by trying a million values. Without phrases they need 2 segments of
    10."""

    def largest(mean: float) -> float:
        def kl(other: float) -> float:
            return mean * math.log(mean / other) + (1 - mean) * math.log((1 - mean) / (1 - other))

        return max(k / 1e6 for k in range(round(mean * 1e6), 10**6) if kl(k / 1e6) <= math.log(20) / 30)

    whole = rows(TRAINING)[0]
    bits = 3 * (math.log2(3) + 2) + (2 * math.log2(3) + 2)
    assert whole["certificate"] == pytest.approx(bits / 60 + largest(0.1) * T * 2, abs=1e-3)
    singles = 3 * (math.log2(3) + 2)
    expected = singles / 60 + largest(0.2) * T * math.log2(3)
    assert whole["certificate_singletons"] == pytest.approx(expected, abs=1e-3)


def test_unseen_successes_are_judged_by_the_training_successes_dictionary() -> None:
    """ABC is cut into AB C, and A into A: 3 segments for 4 skills."""
    found = {(row["split"], row.get("stratum")): row for row in rows([*TRAINING, *UNSEEN])}
    whole, near, far = (found["unseen", stratum] for stratum in (None, "near", "far"))
    assert (whole["success"], whole["steps"], whole["skills"]) == (2 / 3, 3, 2)
    assert (whole["segments"], whole["segments_per_skill"]) == (1.5, 0.75)
    assert near == {**whole, "stratum": "near", "tasks": 2, "success": 1}
    assert far == {"step": 4, "split": "unseen", "stratum": "far", "tasks": 1, "success": 0}
    assert "description_length" not in whole, "its successes are fitted by nobody"


def test_without_a_training_success_there_is_no_dictionary_and_one_is_not_enough_for_halves() -> None:
    none = rows([episode("train", 0, "AB", won=False), *UNSEEN])
    assert none[0] == {"step": 4, "split": "train", "tasks": 1, "success": 0, "corpus": 0}
    assert all("segments" not in row for row in none)
    (one, _) = rows([episode("train", 0, "AB")])
    assert one["corpus"] == 1 and "description_length" in one and "certificate" not in one


def test_a_success_without_a_skill_counts_but_is_no_part_of_the_corpus() -> None:
    whole = rows([*TRAINING, episode("train", 60, "", steps=4)])[0]
    assert whole["corpus"] == 60 and whole["success"] == 1
    assert whole["skills"] == pytest.approx(120 / 61) and whole["segments_per_skill"] == 0.5


@given(st.randoms(use_true_random=False))
def test_the_order_in_which_ranks_tell_of_episodes_changes_nothing(order: random.Random) -> None:
    mixed = [episode("train", number, "ABCA"[number % 3 :]) for number in range(40)] + UNSEEN
    shuffled = list(mixed)
    order.shuffle(shuffled)
    assert rows(shuffled) == rows(mixed)


def test_rows_are_read_as_they_were_written_and_metrics_are_of_whole_splits(tmp_path: Path) -> None:
    found = rows([*TRAINING, *UNSEEN])
    frame = frame_of(found)
    assert frame.schema == PROBE_SCHEMA and frame["stratum"].to_list() == [None, "easy", None, "far", "near"]
    metrics = metrics_of(found)
    assert metrics["probe/unseen/success"] == 2 / 3 and metrics["probe/train/corpus"] == 60
    assert "probe/unseen/certificate" not in metrics
    write_text(tmp_path / "probes.parquet", "nothing")
    with pytest.raises(StorageError, match="not a readable Parquet file"):
        read_probes(tmp_path / "probes.parquet")


def test_the_same_tasks_are_probed_each_time_and_others_with_another_seed() -> None:
    tasks = [Task(str(number), "countdown", 0, {}) for number in range(100)]
    drawn = probed_tasks(tasks, 20, 0, "train")
    assert drawn == probed_tasks(tasks, 20, 0, "train") and len({task.task_id for task in drawn}) == 20
    assert drawn != probed_tasks(tasks, 20, 1, "train")
