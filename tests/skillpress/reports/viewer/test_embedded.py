"""A self-contained page holds the server's answers, within its size."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from skillpress.core.rollout_files import write_rollouts
from skillpress.core.trajectory import RewardPart
from skillpress.reports.viewer.catalogue import RolloutCatalogue
from skillpress.reports.viewer.embedded import LIMITS, PROMPTS_BYTES, embedded, episodes_page
from skillpress.reports.viewer.phrases import KnownPhrases
from skillpress.reports.viewer.source import SourceFiles
from tests.support.reports.viewer_samples import ordinary

ORDINARY = range(len(ordinary()))


def held(page: str) -> dict[str, Any]:
    """The data of a page."""
    found = re.search(r'<script type="application/json" id="episodes">(.*?)</script>', page, re.DOTALL)
    assert found
    told: dict[str, Any] = json.loads(found[1])
    return told


def test_every_episode_is_what_the_server_answers(catalogue: RolloutCatalogue) -> None:
    data = embedded(catalogue, ORDINARY)
    for place, found in zip(ORDINARY, data["episodes"], strict=True):
        name = catalogue.name(place)
        whole = orjson.loads(orjson.dumps(catalogue.episode(name)))
        prompts = [orjson.loads(orjson.dumps(prompt)) for prompt in catalogue.prompts(name, LIMITS)]
        for step, prompt, decision in zip(found["decisions"], prompts, whole["decisions"], strict=True):
            assert [data["tokens"][token] for token in step.pop("prompt")] == prompt["tokens"]
            assert step.pop("prompt_cut") == prompt["tokens_cut"]
            assert step.pop("prompt_length") == len(prompt["tokens"])
            assert decision.pop("prompt_length") is None
            told = [[*data["tokens"][token], logprob] for token, logprob in step["response_tokens"]]
            assert [token[:2] for token in told] == [token[:2] for token in decision["response_tokens"]]
            assert [token[2] for token in told] == pytest.approx(
                [token[2] for token in decision["response_tokens"]], abs=1e-4
            )
            step.pop("response_tokens"), decision.pop("response_tokens")
        del whole["siblings"], whole["same_task"]
        assert found == whole


def test_the_same_episodes_make_the_same_page(catalogue: RolloutCatalogue) -> None:
    groups = [[place] for place in ORDINARY]
    assert episodes_page(catalogue, groups, "note") == episodes_page(catalogue, groups, "note")


@pytest.mark.parametrize("room", [400_000, 200_000])
def test_a_page_is_no_larger_than_it_may_be_and_says_what_is_missing(
    room: int, catalogue: RolloutCatalogue
) -> None:
    groups = [[place, place + 1] for place in ORDINARY[::2]]
    page = episodes_page(catalogue, groups, "Some.", room)
    assert len(page.encode()) <= room
    data = held(page)
    shown = [episode["id"] for episode in data["episodes"]]
    left_out = len(ORDINARY) - len(shown)
    said = f"Some. {left_out} of these would have made the page too large and are left out."
    assert data["about"]["note"] == (said if left_out else "Some.")
    pairs = [[f"0-{place}", f"0-{place + 1}"] for place in ORDINARY[::2]]
    assert shown == [name for pair in pairs if pair[0] in shown for name in pair]


def test_episodes_full_of_markup_stay_within_the_room_too(catalogue: RolloutCatalogue) -> None:
    everything = [[place] for place in range(len(catalogue))]
    page = episodes_page(catalogue, everything, "All.", 500_000)
    assert len(page.encode()) <= 500_000
    assert held(page)["about"]["note"].startswith("All. ")


def opened(folder: Path, *episodes: Any) -> RolloutCatalogue:
    write_rollouts(folder / "some.parquet", episodes)
    return RolloutCatalogue(
        "some", [SourceFiles(name="some", rollouts=folder / "some.parquet")], KnownPhrases()
    )


def test_long_texts_are_cut_with_their_length(tmp_path: Path) -> None:
    first = ordinary()[0]
    step = replace(first.steps[0], observation="x" * 12_000)
    found = embedded(opened(tmp_path, replace(first, steps=(step,), summaries=())), [0])["episodes"][0]
    assert found["decisions"][0]["observation"] == "x" * 10_000
    assert found["decisions"][0]["observation_cut"] == 12_000


def test_prompts_that_take_too_much_room_are_left_out_and_their_length_said(tmp_path: Path) -> None:
    first = ordinary()[0]
    step = replace(first.steps[0], prompt_ids=tuple(range(PROMPTS_BYTES // 40)))
    played = replace(first, steps=(step,) * 20, summaries=())
    data = embedded(opened(tmp_path, played), [0])
    decisions = data["episodes"][0]["decisions"]
    assert [decision["prompt"] for decision in decisions] == [None] * 20
    assert decisions[0]["prompt_length"] == PROMPTS_BYTES // 40
    assert len(data["tokens"]) == len({id for step in played.steps for id in step.response_ids})


def test_what_is_no_number_is_null(tmp_path: Path) -> None:
    first = ordinary()[0]
    parts = (RewardPart("odd", float("nan"), "step"), RewardPart("odder", float("inf"), "step"))
    step = replace(first.steps[0], reward_parts=parts, logprobs=(float("-inf"), -1.0))
    page = episodes_page(opened(tmp_path, replace(first, steps=(step,), summaries=())), [[0]], "One.")
    found = held(page)["episodes"][0]
    assert found["reward"] is None and found["decisions"][0]["reward"] is None
    assert [part["value"] for part in found["decisions"][0]["reward_parts"]] == [None, None]
    assert [logprob for _, logprob in found["decisions"][0]["response_tokens"]] == [None, -1.0]
