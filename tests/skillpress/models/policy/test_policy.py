"""Policies on disk: the round trip, the initial embeddings of numbers, and folders that are not policies."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from skillpress.models.policy import PolicyError, load_policy, save_policy
from skillpress.models.policy.scratch import number_features
from tests.support.models.tiny import tiny_policy


def test_a_saved_policy_encodes_decodes_and_scores_the_same(tmp_path: Path) -> None:
    policy = tiny_policy()
    save_policy(policy, tmp_path / "model")
    loaded = load_policy(tmp_path / "model")
    ids = policy.encode(["7 49 up", "0"])
    assert loaded.encode(["7 49 up", "0"]) == ids and [len(row) for row in ids] == [3, 1]
    assert loaded.decode(ids[0]) == "7 49 up"
    assert loaded.stop_token_ids == policy.stop_token_ids
    tokens = torch.tensor([ids[0]])
    torch.testing.assert_close(loaded.model(tokens).logits, policy.model(tokens).logits)


def test_the_same_seed_gives_the_same_weights_and_another_seed_others() -> None:
    first, again, other = (tiny_policy(seed).model.state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_saving_replaces_a_policy_as_a_whole(tmp_path: Path) -> None:
    save_policy(tiny_policy(0), tmp_path / "model")
    (tmp_path / "model" / "stray").touch()
    save_policy(tiny_policy(1), tmp_path / "model")
    assert not (tmp_path / "model" / "stray").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_neighbouring_numbers_start_out_more_alike_than_distant_ones() -> None:
    features = number_features(torch.arange(1000.0), 64)
    near = torch.cosine_similarity(features[500], features[502], dim=0)
    far = torch.cosine_similarity(features[500], features[900], dim=0)
    assert near > far
    assert features.shape == (1000, 64) and len(torch.unique(features, dim=0)) == 1000


def test_numbers_below_0_start_finite_and_apart_and_the_others_as_log_sines_and_cosines() -> None:
    features = number_features(torch.arange(-9.0, 10.0), 32)
    assert torch.isfinite(features).all() and len(torch.unique(features, dim=0)) == 19
    torch.testing.assert_close(features[10:, 0], torch.log1p(torch.arange(1.0, 10.0)) / math.log(1000))
    torch.testing.assert_close(features[:9, 0], -features[10:, 0].flip(0))


def test_a_response_is_closed_by_a_stop_token() -> None:
    policy = tiny_policy()
    (stop,) = policy.stop_token_ids
    assert policy.encode_response("up stop")[-1] == stop
    assert policy.encode_response("up down")[-1] == stop and len(policy.encode_response("up down")) == 3


@pytest.mark.parametrize("content", [None, "{}", "not json"])
def test_a_folder_that_is_no_model_is_refused_by_name(tmp_path: Path, content: str | None) -> None:
    folder = tmp_path / "nothing"
    folder.mkdir()
    if content is not None:
        (folder / "config.json").write_text(content)
    with pytest.raises(PolicyError, match=str(folder)):
        load_policy(folder)


TEMPLATE = (
    "{% for message in messages %}{{ '1 ' if message.role == 'user' else '2 ' }}{{ message.content }} stop "
    "{% endfor %}{{ '2 ' if add_generation_prompt }}"
)
"""1 begins a turn of the user, 2 begins one of the model; each ends with ``stop``."""


def test_a_prompt_goes_on_from_the_very_tokens_of_an_earlier_one_and_its_response() -> None:
    policy = tiny_policy()
    (before,), (said,) = policy.encode(["7 49"]), policy.encode(["8 9"])
    assert policy.extend([(*before, 11)], ["8 9"]) == [(*before, 11, *said)]
    assert policy.extend([], []) == []


def test_a_chat_goes_on_as_its_template_would_write_it_whether_a_response_was_ended_or_cut() -> None:
    policy = tiny_policy()
    policy.tokenizer.chat_template = TEMPLATE
    (prompt,) = policy.encode(["7"])
    tokens = policy.tokenizer.convert_tokens_to_ids
    assert list(prompt) == tokens(["1", "7", "stop", "2"])
    ended, cut = (tuple(tokens(words)) for words in (["up", "stop"], ["up", "down"]))
    for response in (ended, cut):
        ((*found,),) = policy.extend([prompt + response], ["9"])
        written = [*prompt, *response, *([] if response == ended else tokens(["stop"]))]
        assert found == [*written, *tokens(["1", "9", "stop", "2"])]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused_with_their_names(tmp_path: Path, value: float) -> None:
    policy = tiny_policy()
    name, weight = next(iter(policy.model.named_parameters()))
    with torch.no_grad():
        weight.view(-1)[3] = value
    save_policy(policy, tmp_path / "model")
    with pytest.raises(PolicyError, match=rf"{name}.* not finite .*diverged"):
        load_policy(tmp_path / "model")
