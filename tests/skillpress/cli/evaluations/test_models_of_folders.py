"""Folders of models: an adapter alone, and a model without a chat template."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from skillpress.cli.evaluations.language import LanguageModel
from skillpress.cli.evaluations.models import identify
from skillpress.cli.evaluations.parameters import evaluation_params
from skillpress.models.policy import PolicyError, load_policy
from tests.support.models.folders import write_folder


@pytest.mark.heavy
def test_an_adapter_alone_is_refused_with_the_command_that_merges_it(tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    base, adapter = write_folder(tmp_path / "base"), tmp_path / "an adapter"
    torch.manual_seed(0)
    tuned = get_peft_model(
        AutoModelForCausalLM.from_pretrained(base),
        LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False),
    )
    tuned.save_pretrained(adapter)
    with pytest.raises(PolicyError, match="is an adapter, not a full model; merge it") as refused:
        identify(str(adapter))
    said = str(refused.value)
    assert said.startswith("--model: ") and "\n" not in said
    _, _, code = said.partition("python -c ")
    subprocess.run([sys.executable, "-c", *shlex.split(code)], check=True, capture_output=True)
    merged = load_policy(tmp_path / "an adapter-merged")
    rows = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        torch.testing.assert_close(merged.model(rows).logits, tuned(rows).logits)


@pytest.mark.heavy
@pytest.mark.parametrize("templated", [True, False])
def test_a_folder_without_a_chat_template_says_that_it_plays_without_one(
    templated: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_folder(tmp_path / "tuned")
    if templated:
        (source / "chat_template.jinja").write_text("{% for m in messages %}{{ m['content'] }}{% endfor %}")
    else:
        (source / "chat_template.jinja").unlink(missing_ok=True)
    model = LanguageModel(str(source))
    model.check(evaluation_params("countdown", str(source), [], model.options(), []))
    said = capsys.readouterr().err
    assert ("has no chat template, so it plays without one" in said) == (not templated)
    assert said.count("\n") == (not templated)
