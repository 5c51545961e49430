"""V(X_k, k), the value of a state, from a linear head on the policy's final hidden states and the time.

    V = w h(X_k) + b + sum over j = 1 ... 3 of u_j cos(pi j k / T)

The state of a step is its prompt, so h is read at the prompt's last token. That is where the first token of
the response is predicted, so the pass that scores the responses also computes values, and the policy's layers
are shared. The expected reward also depends on the number of remaining steps, which no prompt shows. So k,
the steps made before, enters through cosines (a Fourier basis of order 3: Konidaris et al. 2011). A value may
see more than the policy does: no value depends on the action, so the policy's gradient stays unbiased (for
time limits: Pardo et al. 2018; for other things that a policy does not see: Pinto et al. 2018).

The head starts at zero, so every first value is 0 and the values' loss has no gradient in the policy at the
first update. The head is trained with its own learning rate and saved with the learner; engines and policy
folders do not have it.
"""

from __future__ import annotations

import torch
from torch import nn
from transformers import PreTrainedModel

from skillpress.models.policy.scoring import Responses, Scorer

WAVES = 3
"""Number of cosines of the time."""


class ValueHead(nn.Module):
    """w h + b + u cos(pi j k / T)."""

    def __init__(self, model: PreTrainedModel, longest: int, rate: float = 1.0) -> None:
        """Zeros with the input width, type and device of the model's output embeddings.

        Args:
            longest: T, the most steps of an episode.
            rate: the head's learning rate, as a multiple of the policy's.
        """
        super().__init__()
        self.longest, self.rate = longest, rate
        embeddings = model.get_output_embeddings().weight
        self.weight = nn.Parameter(embeddings.new_zeros(embeddings.shape[1]))
        self.bias = nn.Parameter(embeddings.new_zeros(1))
        self.time = nn.Parameter(embeddings.new_zeros(WAVES))

    def forward(self, hidden: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
        """[states] values in float32, from final hidden states [states, width] and the steps made before."""
        waves = torch.arange(1, WAVES + 1, device=made.device) * (torch.pi / self.longest)
        seen = torch.cos(made.float()[:, None] * waves)
        # In float32 whatever the type of the weights: bfloat16 cannot distinguish 5.00 from 5.01.
        return hidden.float() @ self.weight.float() + self.bias.float() + seen @ self.time.float()


class ValuedScorer(nn.Module):
    """A scorer and a value head that share one pass."""

    def __init__(self, scorer: Scorer, head: ValueHead) -> None:
        super().__init__()
        self.scorer, self.head = scorer, head

    def forward(
        self,
        responses: Responses,
        temperature: float,
        whole: bool = False,
        made: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """([tokens] log-probabilities and [tokens] entropies, both the scorer's; [responses] values).

        Args:
            made: [responses] steps made before each; None if the values are not used.
        """
        hidden = self.scorer.hidden(responses)
        logprobs, entropies = self.scorer.scores(hidden, responses.targets, temperature, whole)
        if made is None:
            made = torch.zeros(len(responses.first), device=hidden.device)
        return logprobs, entropies, self.head(hidden[responses.first], made)
