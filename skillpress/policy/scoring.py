"""log-probabilities of given responses under a model, with logits only where they are needed."""

from __future__ import annotations

import torch
from torch import nn
from transformers import PreTrainedModel


class ResponseScorer(nn.Module):
    """A model as a function from tokens to the log-probabilities of its response tokens.

    The backbone runs over whole rows; the output head, the larger part of a small model's work,
    runs only at the positions whose next token is a response token.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: torch.Tensor, predicting: torch.Tensor, targets: torch.Tensor, temperature: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Score responses.

        Args:
            input_ids: [rows, width] tokens, padded on the right.
            predicting: [tokens] flat positions in ``input_ids`` whose next token is scored.
            targets: [tokens] that next token.
            temperature: divides the logits, as it did in sampling.

        Returns:
            ([tokens] log-probabilities in nats, [tokens] entropies in nats), both float32; the
            entropies carry no gradient.
        """
        hidden = self.model.base_model(input_ids=input_ids, use_cache=False).last_hidden_state
        head = self.model.get_output_embeddings()
        logits = head(hidden.reshape(-1, hidden.shape[-1])[predicting]).float() / temperature
        logprobs = torch.log_softmax(logits, dim=-1)
        with torch.no_grad():
            entropies = -(logprobs.exp() * logprobs).sum(dim=-1)
        return logprobs.gather(1, targets[:, None]).squeeze(1), entropies
