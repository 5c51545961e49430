"""Domain words as tokens: texts survive encoding and decoding, and a new row begins at the mean of its
pieces' rows."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from skillpress.core.registry import PARSERS, lookup
from skillpress.core.trajectory import Task
from skillpress.environments.text.answer_forms import FORMS
from skillpress.environments.text.prompts import tagged_answer
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import check_params, merge, read_yaml
from skillpress.experiment.token_counts import token_counts
from skillpress.models.policy import Policy, load_policy, save_policy
from skillpress.models.policy.domain_tokens import mean_tokens, with_tokens
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from skillpress.rollouts.agents.parsing import tagged
from skillpress.rollouts.agents.structured_parsing import MARKERS
from skillpress.rollouts.collection import requests
from tests.support.environments.small_games import COUNTDOWN as SECTION

NAMED = SECTION.domain_words()
WORDS = [*MARKERS["tagged"], *NAMED["actions"], *NAMED["entities"]]
WRITERS = {"tagged": tagged_answer} | {name: form.write for name, form in FORMS.items()}
numbers = st.integers(0, 12_000)
operations = st.builds("op({}, {}, {})".format, st.sampled_from("+-*/"), numbers, numbers)
actions = st.sampled_from(["rollback", "reset"]) | operations


def prose(tied: bool, spare: int = 0) -> Policy:
    """A small model over a byte-level tokenizer trained on a little prose, as pretrained tokenizers are."""
    backend = Tokenizer(BPE())
    backend.pre_tokenizer = ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    backend.decoder = ByteLevelDecoder()  # type: ignore[assignment]
    trainer = BpeTrainer(
        vocab_size=300, special_tokens=["<eos>"], initial_alphabet=ByteLevel.alphabet(), show_progress=False
    )
    backend.train_from_iterator(["the next step of a solution is the right one"] * 9, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<eos>")
    config = LlamaConfig(
        vocab_size=len(tokenizer) + spare, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, tie_word_embeddings=tied, eos_token_id=0, bos_token_id=None,
        max_position_embeddings=128,
    )  # fmt: skip
    torch.manual_seed(0)
    model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(eos_token_id=0)
    return Policy(model.eval(), tokenizer)


@pytest.fixture(scope="module")
def longer() -> Policy:
    return with_tokens(prose(tied=True), WORDS)


@given(action=actions)
def test_an_action_that_is_written_encoded_decoded_and_read_is_the_same(longer: Policy, action: str) -> None:
    for name, write in {
        "tagged": tagged_answer,
        **{name: form.write for name, form in FORMS.items()},
    }.items():
        said = longer.decode(longer.encode_response(write("the next step", action)))
        assert said == write("the next step", action)
        assert lookup(PARSERS, name, "policy.parser")(said).action == action
    assert tagged(longer.decode(longer.encode_response(tagged_answer("", action)))).thought == ""


@pytest.mark.parametrize(("tied", "spare"), [(True, 0), (False, 0), (False, 2000)])
def test_a_new_row_begins_at_the_mean_of_its_pieces_and_the_old_rows_stay(tied: bool, spare: int) -> None:
    before, policy = prose(tied, spare), with_tokens(prose(tied, spare), WORDS)
    weights = {
        "input": (before.model.get_input_embeddings().weight, policy.model.get_input_embeddings().weight),
        "output": (before.model.get_output_embeddings().weight, policy.model.get_output_embeddings().weight),
    }
    old = len(before.tokenizer)
    for had, has in weights.values():
        assert torch.equal(has[:old], had[:old])
        for word in ("<think>", "rollback", " 77"):
            pieces = before.tokenizer.encode(word, add_special_tokens=False)
            (token,) = policy.tokenizer.encode(word, add_special_tokens=False)
            assert token >= old and len(pieces) > 1
            torch.testing.assert_close(has[token], sum(had[piece] for piece in pieces) / len(pieces))
    assert (policy.model.get_output_embeddings().weight is policy.model.get_input_embeddings().weight) == tied
    assert policy.model.get_input_embeddings().weight.shape[0] == max(len(policy.tokenizer), old + spare)


def test_an_action_takes_fewer_tokens() -> None:
    before, after = prose(tied=True), with_tokens(prose(tied=True), WORDS)
    # op(+, | space and number | , | space and number | ) against a token per character, spaces included.
    assert (
        mean_tokens(after.tokenizer, ["op(+, 80, 28)"])
        == 5
        < mean_tokens(before.tokenizer, ["op(+, 80, 28)"])
    )
    assert mean_tokens(after.tokenizer, ["rollback", "reset"]) == 1


def test_a_saved_policy_comes_back_with_its_tokens_and_scores(longer: Policy, tmp_path: Path) -> None:
    save_policy(longer, tmp_path / "policy")
    back = load_policy(tmp_path / "policy")
    text = tagged_answer("the next step", "op(*, 12, 345)")
    ids = longer.encode_response(text)
    assert back.encode_response(text) == ids and back.decode(ids) == text
    assert back.model.config.vocab_size == longer.model.get_input_embeddings().weight.shape[0]
    with torch.no_grad():
        torch.testing.assert_close(
            back.model(torch.tensor([ids])).logits, longer.model(torch.tensor([ids])).logits
        )


@pytest.mark.thorough
def test_a_real_language_model_says_fewer_tokens_and_samples_with_the_new_ones(tmp_path: Path) -> None:
    overlay = {
        "processes": 1,
        "policy": {
            "model": "smollm2-135m",
            "rendering": "text",
            "domain_tokens": ["markers", "actions", "entities"],
        },
        "imitation": {"demonstrations": 0},
        "environment": {"max_steps": 3},
        "sampling": {"max_new_tokens": 6, "slots": 4},
    }
    root = Path(__file__).parents[4]
    experiment = Experiment(check_params(merge(read_yaml(root / "params.yaml"), overlay), "test"))
    save_policy(experiment.starting_policy(), tmp_path / "policy")
    tasks = [Task("e3", "countdown", 0, {"target": 54, "numbers": [80, 2, 28, 1]})]
    counts = token_counts(experiment, str(tmp_path / "policy"), tasks)
    assert counts["tokens_per_action/after"] < counts["tokens_per_action/before"]
    print(counts)
    policy = load_policy(tmp_path / "policy")
    said = tagged_answer("the next step", "op(*, 12, 345)")
    assert policy.decode(policy.encode_response(said)) == said
    agent = experiment.agent(policy, experiment.engine(policy), experiment.training_sampling)
    with experiment.collector(agent) as collector:
        (episode,) = collector.collect(requests(tasks, 1, 0, "test"))[:1]
    for step in episode.steps:
        with torch.no_grad():
            logprobs, _ = ResponseScorer(policy.model)(
                pack_responses([(step.prompt_ids, step.response_ids)]), 1.0
            )
        torch.testing.assert_close(logprobs, torch.tensor(step.logprobs), atol=5e-3, rtol=0)
