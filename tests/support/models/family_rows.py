"""A row of docs/families.md: what of a family works here, found by trying it with a tiny model of the family.

Every cell is a function of a policy. A cell that finds a mistake begins with ``WRONG``; the thorough test
allows none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch

from skillpress.core.chat_messages import Message
from skillpress.core.engine import Sampling
from skillpress.core.errors import PolicyError
from skillpress.models.engines.generate import generate
from skillpress.models.engines.local.decoding_cache import can_resume
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.engines.local.static_cache import why_not_static
from skillpress.models.policy import Policy, load_policy, save_policy
from skillpress.models.policy.agreement import disagreement, example_pairs
from skillpress.models.policy.chat_template import QUESTION, chat_template
from skillpress.models.policy.logits import sliding_window
from skillpress.models.policy.lora import LoraAdapter
from skillpress.models.policy.packing import PackedScorer
from skillpress.models.policy.passes import PASS_TOKENS, response_logprobs
from skillpress.models.policy.policy import copy_model
from skillpress.models.policy.scorers import checkpoint_layers
from skillpress.models.policy.scoring import ResponseScorer
from skillpress.models.policy.tree_scoring import TreeScorer
from skillpress.rollouts.programs.requests import ModelRequest

WRONG = "**differs**"
ROUNDING = 1e-4
"""Difference in nats that counts as rounding, in float32."""
NEW = 12
TURN = "And 7 times 8?"
Cell = Callable[[Policy, Path], str]


def architecture(policy: Policy, folder: Path) -> str:
    """The class that transformers loads."""
    return f"`{type(policy.model).__name__}`"


def template(policy: Policy, folder: Path) -> str:
    """What the template adds to a message, and what it refuses."""
    (ids,) = policy.encode([QUESTION])
    text = str(policy.tokenizer.decode(list(ids)))
    found = ["writes a system text"] if text.partition(QUESTION)[0].count("system") else []
    found += ["writes a date"] if "Jul 2024" in text else []
    messages = (Message("system", "Be brief."), Message("user", QUESTION))
    try:
        policy.encode_request(ModelRequest(messages))
    except PolicyError:
        found.append("refuses `system`")
    (longer,) = policy.extend([(*ids, *policy.encode_response("42"))], [TURN])
    if longer[: len(ids)] != ids or TURN not in str(policy.tokenizer.decode(list(longer))):
        found.append(f"{WRONG}: prompts do not grow")
    return ", ".join(found) or "adds nothing"


def begins(policy: Policy, folder: Path) -> str:
    """The token that a prompt begins with, which must be there once."""
    (ids,) = policy.encode([QUESTION])
    bos = policy.tokenizer.bos_token_id
    if bos is None:
        return "none"
    named = f"`{policy.tokenizer.bos_token}`"
    return named if ids[0] == bos != ids[1] else f"{WRONG}: {named}"


def thinking(policy: Policy, folder: Path) -> str:
    """Where a response begins, if the family writes thoughts."""
    chat = chat_template(policy.tokenizer)
    assert chat is not None
    if not chat.opening:
        return "off" if chat.prompt(QUESTION).rstrip().endswith("</think>") else "none"
    read = policy.decode(policy.encode_response("<think>easy</think>42"))
    return "begins inside" if read.replace("\n", "") == "<think>easy</think>42" else f"{WRONG}: {read}"


def ends(policy: Policy, folder: Path) -> str:
    """The tokens that end a response; the one that closes demonstrations is first."""
    closing = policy.encode_response("42")[-1]
    others = sorted(policy.stop_token_ids - {closing})
    return ", ".join(f"`{policy.tokenizer.convert_ids_to_tokens(token)}`" for token in (closing, *others))


def windows(policy: Policy, folder: Path) -> str:
    """How many layers have a sliding window."""
    config = policy.model.config.get_text_config()
    if sliding_window(config) is None:
        return "none"
    kinds = getattr(config, "layer_types", None) or ["sliding_attention"] * config.num_hidden_layers
    slide = kinds.count("sliding_attention")
    return "all layers" if slide == len(kinds) else f"{slide} of {len(kinds)} layers"


def ties(policy: Policy, folder: Path) -> str:
    """Whether embeddings and head are one matrix, before and after saving."""
    save_policy(policy, folder / "tied")
    models = (policy.model, load_policy(folder / "tied").model)
    found = {model.get_input_embeddings().weight is model.get_output_embeddings().weight for model in models}
    return {frozenset([True]): "tied", frozenset([False]): "apart"}.get(frozenset(found), WRONG)


def scorer(policy: Policy, folder: Path) -> str:
    """The scorers whose log-probabilities are those of the model's own forward pass."""
    model = copy_model(policy.model)
    pairs = example_pairs(model)
    if not disagreement(model, pairs) <= ROUNDING:
        return f"{WRONG}: cached"
    with torch.no_grad():
        cached, *others = (
            torch.cat(response_logprobs(kind(model), pairs, 1.0, PASS_TOKENS, model.device))
            for kind in (ResponseScorer, TreeScorer, PackedScorer)
        )
    for kind, other in zip((TreeScorer, PackedScorer), others, strict=True):
        if not float((cached - other).abs().max()) <= ROUNDING:
            return f"{WRONG}: {kind.name}"
    checkpoint_layers(model)
    right = disagreement(model, pairs) <= ROUNDING
    return "cached, tree, packed" if right else f"{WRONG}: checkpointed layers"


def engine(policy: Policy, folder: Path) -> str:
    """How the local engine decodes on a GPU, and whether it keeps growing prompts.

    It samples here too, and its log-probabilities must be the scorer's.
    """
    sampler = LocalEngine(policy, growing=True)
    (prompt,) = policy.encode([QUESTION])
    sampling = Sampling(max_new_tokens=NEW)
    first = generate(sampler, [prompt, prompt[:5]], sampling, [1, 2])
    (longer,) = policy.extend([prompt + first[0].token_ids], [TURN])
    second = generate(sampler, [longer], sampling, [3])
    rows = zip([prompt, prompt[:5], longer], [*first, *second], strict=True)
    for context, answer in rows:
        (scores,) = response_logprobs(
            ResponseScorer(policy.model), [(context, answer.token_ids)], 1.0, PASS_TOKENS, policy.model.device
        )
        if not np.allclose(scores.detach().numpy(), answer.logprobs, atol=ROUNDING):
            return f"{WRONG}: log-probabilities"
    recorded = "recorded steps" if why_not_static(policy.model) is None else "growing cache"
    return f"{recorded}, {'kept' if can_resume(policy.model.config.get_text_config()) else 'computed again'}"


def lora(policy: Policy, folder: Path) -> str:
    """Whether a changed adapter, merged and saved, opens as the model that was trained."""
    model = copy_model(policy.model)
    adapter = LoraAdapter(model, rank=2, alpha=4, seed=0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=0.2, generator=torch.Generator().manual_seed(len(name)))
    trained = Policy(model, policy.tokenizer)
    save_policy(
        policy, folder / "lora", adapter.merged(lambda weight: weight), adapter.saved(lambda weight: weight)
    )
    changed, opened = logits(trained), logits(load_policy(folder / "lora"))
    if torch.equal(changed, logits(policy)) or not torch.allclose(changed, opened, atol=1e-3):
        return WRONG
    return "the same"


def saved(policy: Policy, folder: Path) -> str:
    """Whether a saved policy has the same prompts, ends, logits and responses, twice in a row."""
    save_policy(policy, folder / "once")
    save_policy(load_policy(folder / "once"), folder / "twice")
    again = load_policy(folder / "twice")
    prompts = policy.encode([QUESTION, TURN])
    if again.encode([QUESTION, TURN]) != prompts or again.stop_token_ids != policy.stop_token_ids:
        return f"{WRONG}: prompts or ends"
    if again.encode_response("<think>easy</think>42") != policy.encode_response("<think>easy</think>42"):
        return f"{WRONG}: responses"
    sampling, seeds = Sampling(max_new_tokens=NEW), [1, 2]
    answers = [generate(LocalEngine(each), prompts, sampling, seeds) for each in (policy, again)]
    same = answers[0] == answers[1] and torch.equal(logits(policy), logits(again))
    return "the same" if same else f"{WRONG}: logits"


def attention(policy: Policy, folder: Path) -> str:
    """Whether the attention that is loaded computes what transformers' written-out one does."""
    plain = Policy(copy_model(policy.model), policy.tokenizer)
    plain.model.set_attn_implementation("eager")
    same = torch.allclose(logits(plain), logits(policy), atol=1e-3)
    return f"{policy.model.config._attn_implementation}, whole" if same else WRONG


@torch.no_grad()
def logits(policy: Policy) -> torch.Tensor:
    """[tokens, vocabulary] of a prompt that is longer than the tiny windows."""
    found: torch.Tensor = policy.model(torch.tensor(policy.encode([QUESTION]))).logits[0]
    return found


CELLS: Mapping[str, Cell] = {
    "class": architecture,
    "template": template,
    "begins": begins,
    "thinking": thinking,
    "ends": ends,
    "sliding windows": windows,
    "embeddings and head": ties,
    "attention": attention,
    "scorers": scorer,
    "local engine on a GPU, growing prompts": engine,
    "LoRA merged": lora,
    "saved and opened": saved,
}
"""Column to cell."""


def row(policy: Policy, folder: Path) -> list[str]:
    """All cells of a family, in the order of ``CELLS``."""
    return [cell(policy, folder) for cell in CELLS.values()]
