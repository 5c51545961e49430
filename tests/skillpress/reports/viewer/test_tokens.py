"""The texts of tokens join to the tokenizer's decoded text, whatever the tokens are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from skillpress.core.errors import StorageError, UserError
from skillpress.integrations.formats.texts import load_texts
from skillpress.models.policy.scratch import word_tokenizer
from skillpress.reports.viewer.tokens import TokenTexts, sampled, tokens

TEXT = "Hello wörld, naïve 👩‍👩‍👧 def f(x):\n\treturn 'é' <|im_end|>"


def of_bytes() -> Tokenizer:
    """GPT-2's kind: a letter may be several tokens."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=alphabet, special_tokens=["<|im_end|>"], show_progress=False
    )
    made.train_from_iterator([TEXT] * 3, trainer)
    return made


def with_fallback() -> Tokenizer:
    """Llama's kind: characters without a token are bytes, and the first space is dropped."""
    pieces = [("<unk>", 0.0), *((f"<0x{byte:02X}>", -9.0) for byte in range(256))]
    pieces += [("▁Hello", -2.0), ("▁", -3.0), ("Hello", -2.5), ("def", -4.0)]
    made = Tokenizer(models.Unigram(pieces, 0, byte_fallback=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(steps)
    return made


def of_words() -> Tokenizer:
    return word_tokenizer(("one", "two", "three")).backend_tokenizer


@pytest.fixture(scope="module", params=[of_bytes, with_fallback, of_words])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return request.param()


@pytest.fixture(scope="module")
def texts(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> TokenTexts:
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save(str(folder / "tokenizer.json"))
    return TokenTexts(folder)


@given(data=st.data())
def test_texts_make_up_what_is_decoded(data: st.DataObject, tokenizer: Tokenizer, texts: TokenTexts) -> None:
    ids = data.draw(st.lists(st.integers(0, tokenizer.get_vocab_size() + 3), max_size=80))
    found = texts(ids)
    assert len(found) == len(ids)
    assert "".join(found) == tokenizer.decode(ids, skip_special_tokens=False)


def test_a_letter_of_several_tokens_stands_with_its_last(tmp_path: Path) -> None:
    made = of_bytes()
    made.save(str(tmp_path / "tokenizer.json"))
    ids = made.encode("a€b").ids
    found = TokenTexts(tmp_path)(ids)
    assert [text for text in found if text] == ["a", "€", "b"] and "\ufffd" not in "".join(found)


def test_special_tokens_are_shown(tmp_path: Path) -> None:
    made = of_bytes()
    made.save(str(tmp_path / "tokenizer.json"))
    assert TokenTexts(tmp_path)(made.encode("def<|im_end|>").ids)[-1] == "<|im_end|>"


def test_without_a_tokenizer_tokens_have_no_text() -> None:
    assert tokens(None, [5, 6], 9) == (((None, 5), (None, 6)), None)


def test_what_is_too_long_is_cut_and_said() -> None:
    assert tokens(None, [5, 6, 7], 2) == (((None, 5), (None, 6)), 3)
    assert sampled(None, [5, 6, 7], [-0.5, -1.0, -2.0], 2) == (((None, 5, -0.5), (None, 6, -1.0)), 3)


def test_a_token_without_a_log_probability_has_none() -> None:
    assert sampled(None, [5, 6], [-0.5], 9) == (((None, 5, -0.5), (None, 6, None)), None)


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.json: no such file; name the folder"):
        TokenTexts(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(StorageError, match="not valid JSON"):
        TokenTexts(tmp_path)


@pytest.mark.parametrize("text", ["[1, 2]", "null", "3", "{}", '{"model": 3}', '{"model": {"type": "BPE"}}'])
def test_json_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    for read in (TokenTexts, load_texts):
        with pytest.raises(UserError, match=r"tokenizer\.json: not a tokenizer"):
            read(tmp_path)
