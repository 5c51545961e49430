"""Saved policies in other programs: both versions of transformers read them and give the same results as we
do."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skillpress.models.policy import load_policy
from tests.support.models.saved_policies import (
    FAMILIES,
    POLICIES,
    save_and_ask,
    save_trained_and_ask,
    smollm2,
)
from tests.support.programs import PROGRAMS, ROOT
from tests.support.programs.reading_program import read

TRANSFORMERS4 = ROOT / ".venv-transformers4"


def assert_says_the_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert {key: found[key] for key in ("prompt", "response")} == {
        key: expected[key] for key in ("prompt", "response")
    }
    np.testing.assert_allclose(found["logits"], expected["logits"], atol=1e-4)


@pytest.mark.parametrize("name", POLICIES)
def test_a_saved_policy_says_the_same_in_transformers(tmp_path: Path, name: str) -> None:
    expected = save_and_ask(POLICIES[name](tmp_path), tmp_path / "saved")
    assert_says_the_same(read(tmp_path / "saved"), expected)


@pytest.mark.parametrize("name", POLICIES)
def test_what_is_written_has_names_that_transformers_4_knows(tmp_path: Path, name: str) -> None:
    save_and_ask(POLICIES[name](tmp_path), tmp_path / "saved")
    tokenizer = json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text())
    assert tokenizer["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert not isinstance(tokenizer.get("extra_special_tokens"), list)
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    config = config.get("text_config", config)
    rope = config["rope_parameters"]
    whole = rope.get("full_attention", rope)
    assert config["rope_theta"] == whole["rope_theta"]
    assert config.get("partial_rotary_factor", 1.0) == whole.get("partial_rotary_factor", 1.0)
    if "sliding_attention" in rope:
        assert config["rope_local_base_freq"] == rope["sliding_attention"]["rope_theta"]
    if whole["rope_type"] != "default":
        assert config["rope_scaling"]["rope_type"] == whole["rope_type"]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_policy_that_is_saved_again_keeps_its_rotary_embeddings(tmp_path: Path, name: str) -> None:
    policy = POLICIES[name](tmp_path)
    save_and_ask(policy, tmp_path / "once")
    expected = save_and_ask(load_policy(tmp_path / "once"), tmp_path / "twice")
    assert_says_the_same(read(tmp_path / "twice"), expected)
    assert load_policy(tmp_path / "twice").model.config.rope_parameters == policy.model.config.rope_parameters


@pytest.mark.thorough
def test_transformers_4_says_the_same_of_every_saved_policy(tmp_path: Path) -> None:
    assert (TRANSFORMERS4 / ".installed").exists(), "needs transformers 4: make transformers4"
    expected = {}
    for number, make in enumerate([*POLICIES.values(), smollm2]):
        folder = tmp_path / f"{number}"
        expected[str(folder / "saved")] = save_and_ask(make(folder), folder / "saved")
    trained = tmp_path / "trained"
    expected[str(trained / "saved")] = save_trained_and_ask(POLICIES["chat"](trained), trained / "saved")
    command = [str(TRANSFORMERS4 / "bin" / "python"), str(PROGRAMS / "reading_program.py"), *expected]
    offline = {"HF_HUB_OFFLINE": "1"}
    finished = subprocess.run(command, capture_output=True, text=True, check=False, env=offline)
    assert finished.returncode == 0, finished.stderr[-3000:]
    found = json.loads(finished.stdout.splitlines()[-1])
    for folder, said in expected.items():
        assert_says_the_same(found[folder], said)
