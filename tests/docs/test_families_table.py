"""The page of model families says what tiny models of them do."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from docs.families_table import PAGE, page
from skillpress.models.policy import scoring, token_scores
from skillpress.models.policy.pretrained import SMOLLM2, load_pretrained
from tests.support.models.family_folders import FAMILIES
from tests.support.models.family_rows import CELLS, WRONG, row, scorer

pytestmark = pytest.mark.thorough


def test_the_table_is_what_tiny_models_of_all_families_do(repository: Path) -> None:
    assert page(repository) == (repository / PAGE).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FAMILIES)
def test_nothing_of_a_family_is_wrong(name: str, tmp_path: Path) -> None:
    found = row(FAMILIES[name].policy(tmp_path / "model"), tmp_path)
    assert not {key: cell for key, cell in zip(CELLS, found, strict=True) if WRONG in cell}


@pytest.mark.parametrize(
    ("name", "module", "part", "value"),
    [
        ("Gemma 2", token_scores, "scaled_logits", lambda config, raw: raw.float()),
        ("Gemma 3 (text)", scoring, "sliding_window", lambda config: None),
        ("Mistral 7B v0.1", scoring, "sliding_window", lambda config: None),
    ],
)
def test_a_scorer_that_does_not_know_a_familys_peculiarity_is_found(
    name: str, module: ModuleType, part: str, value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = FAMILIES[name].policy(tmp_path / "model")
    monkeypatch.setattr(module, part, value)
    assert scorer(policy, tmp_path).startswith(WRONG)


def test_smollm2s_template_is_its_packages(tmp_path: Path) -> None:
    real, ours = load_pretrained(SMOLLM2, "bfloat16"), FAMILIES["SmolLM2"].policy(tmp_path / "model")
    talk = [("user", "one"), ("assistant", "two"), ("user", "three")]
    for roles in (talk[:1], talk, [("system", "zero"), *talk]):
        messages = [{"role": role, "content": text} for role, text in roles]
        first, second = (
            each.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            for each in (real, ours)
        )
        assert first == second
