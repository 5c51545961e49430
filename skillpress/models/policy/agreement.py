"""Check before training that the scorer's log-probabilities agree with the model's own.

A scorer takes a model apart (backbone, cache, output embeddings) to avoid computing anything twice. A model
family that does more than these parts would silently get wrong importance ratios. So each model is compared
with its own forward pass on a few responses, one row at a time, without cache or padding. A difference larger
than rounding is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from skillpress.core.chains import Pair
from skillpress.core.errors import PolicyError
from skillpress.core.trajectory import TokenIds
from skillpress.models.policy import token_scores
from skillpress.models.policy.attention import with_masks
from skillpress.models.policy.logits import sliding_window
from skillpress.models.policy.packing import PackedScorer
from skillpress.models.policy.passes import PASS_TOKENS, response_logprobs
from skillpress.models.policy.policy import copy_model
from skillpress.models.policy.scorers import choose_scorer
from skillpress.models.policy.scoring import Scorer

TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.3}
"""Difference in nats that rounding explains, as the root mean square over response tokens, by the weights'
type.

SmolLM2-135M in bfloat16 differed by 0.08 nats on real responses and by 0.10 on made-up ones. A mistake in a
sliding window causes a difference of the same size, so in bfloat16 only gross errors can be distinguished
from rounding.
"""

RESPONSES = (3, 1, 5, 2)
"""Numbers of tokens of the responses that :func:`example_pairs` makes; the first two share a prompt."""


def check_agreement(
    model: PreTrainedModel,
    pairs: Sequence[Pair],
    token_limit: int = PASS_TOKENS,
    scorer: Scorer | None = None,
) -> None:
    """Raise ``PolicyError`` if the scorer is off by more than rounding, for a model as it is trained.

    Args:
        scorer: the model's scorer; None uses the one chosen for it.
    """
    kind, scorer = type(model).__name__, scorer or choose_scorer(model)
    dtype = next(model.parameters()).dtype
    type_name = str(dtype).removeprefix("torch.")
    found = disagreement(model, pairs, token_limit, scorer)
    allowed = TOLERANCE.get(dtype, TOLERANCE[torch.bfloat16])
    # Not ``found > allowed``, which is false for NaN.
    if not found <= allowed:
        raise PolicyError(
            f"policy.model: log-probabilities that training computes for {kind} differ by {found:.2g} nats "
            f"from the model's own (rounding in {type_name} explains {allowed:g}), so its "
            "importance ratios would be wrong: this family does something to its logits, cache or positions "
            f"that the {scorer.name} scorer of skillpress does not know; choose another model"
        )


def check_family(model: PreTrainedModel) -> None:
    """Refuse a family that the scorer gets wrong. It is compared in float32, where rounding hides nothing.

    FlashAttention computes in half types alone, so its packed row is compared with sdpa's masks.
    """
    if next(model.parameters()).dtype != torch.float32:
        # A copy, because ``float`` changes a model in place.
        model = copy_model(model).float()
    scorer = PackedScorer(model, one_row=True) if with_masks(model) else None
    check_agreement(model, example_pairs(model), scorer=scorer)


@torch.no_grad()
def disagreement(
    model: PreTrainedModel,
    pairs: Sequence[Pair],
    token_limit: int = PASS_TOKENS,
    scorer: Scorer | None = None,
) -> float:
    """Root mean square of the difference in nats, over response tokens.

    The model's own logits are computed for all positions at once. So only as many tokens of each response are
    compared as one chunk of logits holds (``token_scores.py``).
    """
    most = max(1, token_scores.CHUNK_LOGITS // model.config.get_text_config().vocab_size)
    scored = response_logprobs(scorer or choose_scorer(model), pairs, 1.0, token_limit, model.device)
    found = torch.cat([logprobs[:most] for logprobs in scored])
    expected = torch.cat([_own_logprobs(model, prompt, response[:most]) for prompt, response in pairs])
    return float((found - expected).square().mean().sqrt())


def example_pairs(model: PreTrainedModel) -> list[Pair]:
    """Responses to prompts of different lengths, one of them longer than the model's sliding window if it has
    one.

    Their tokens are drawn from the vocabulary, since the model may not have seen any text yet.
    """
    config = model.config.get_text_config()
    room = int(getattr(config, "max_position_embeddings", None) or 1 << 20) - max(RESPONSES)
    window = sliding_window(config) or 0
    lengths = [max(1, min(length, room)) for length in (4, window + 9, 7)]
    generator = torch.Generator().manual_seed(0)

    def draw(length: int) -> TokenIds:
        return tuple(torch.randint(config.vocab_size, (length,), generator=generator).tolist())

    first, *others = [draw(length) for length in lengths]
    return [(prompt, draw(length)) for prompt, length in zip((first, first, *others), RESPONSES, strict=True)]


def _own_logprobs(model: PreTrainedModel, prompt: TokenIds, response: TokenIds) -> torch.Tensor:
    """[tokens], the log-probabilities by the model's own logits over the whole row."""
    row = torch.tensor([prompt + response], device=model.device)
    with torch.compiler.set_stance("force_eager"):  # so that compiled layers are compared with eager ones
        found = model(input_ids=row, use_cache=False, logits_to_keep=len(response) + 1)
    logits = found.logits[0, :-1]
    logprobs = torch.log_softmax(logits.float(), dim=-1)
    return logprobs.gather(1, row[0, -len(response) :, None]).squeeze(1)
